"""Settings as a few lines of Python that compute the same numbers."""

from __future__ import annotations

from typing import Any

from leastaction.lab.settings import Settings
from leastaction.lab.subjects import OWN


def code(wanted: Settings, steps: list[float]) -> str:
    """A script of one run, or of both runs."""
    subject = wanted.subject
    lines = ["import leastaction as la"]
    if subject.file is not None:
        lines = ["import runpy", *lines, "", f"system = runpy.run_path({subject.file!r})['system']"]
    elif subject.key == OWN:
        lines += ["", "# system is the one that the lab was given"]
    else:
        lines += ["", f"system = la.problems.get({subject.key!r}).system"]
    lines += [f"start = dict(q0={_list(wanted.q0)}, v0={_list(wanted.v0)})", f"params = {dict(wanted.params)!r}"]
    names = ["path", "other"][: len(wanted.runs)]
    end = wanted.after + wanted.span
    driven = ""
    if wanted.inputs:
        held = [
            f"{name!r}: la.Samples([0, {end!r}], {[value.tolist()] * 2}, 'previous')"
            for name, value in wanted.inputs.items()
        ]
        lines.append(f"inputs = {{{', '.join(held)}}}")
        driven = ", inputs=inputs"
    for name, run, h in zip(names, wanted.runs, steps, strict=True):
        pace = f", pace={run.pace!r}" if run.paced else ""
        told = f"{run.name!r}, **start, params=params, h={h!r}, t_end={end!r}{pace}{driven}"
        lines.append(f"{name} = la.integrate(system, {told})")
    for name in names:
        lines.append(f"print({name}, abs({name}.energy() - {name}.energy()[0]).max())")
    beside = f", beside=[{names[1]}]" if len(names) > 1 else ""
    begin = f", begin={wanted.after!r}" if wanted.after else ""
    lines.append(f"path.to_html({subject.key + '.html'!r}{beside}{begin})")
    return "\n".join(lines) + "\n"


def _list(values: Any) -> str:
    return "[" + ", ".join(repr(float(x)) for x in values) + "]"
