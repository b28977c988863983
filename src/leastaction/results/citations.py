"""Citations: the papers behind a method and a run, as BibTeX.

All entries stand in `references.bib`. The parts that a run has used decide which entries are given: its method, whether
its system is quadratic, constrained or a sum, its pace, its events, its digits.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from leastaction.methods import Method, method
from leastaction.results.path import Path
from leastaction.results.paths import Paths
from leastaction.version import __version__

_TOOLS = {"scipy": "scipy2020"}


def cite(what: Path | Paths | Method | str) -> str:
    """BibTeX for what stands behind a run or a method: this library, the papers of the method, the tools used.

    Parameters
    ----------
    what : Path, Paths, method or str
        A path or paths, as `la.integrate` and `la.ensemble` give them, or a method or its name.

    Returns
    -------
    str
        Entries of a .bib file, the library's own first.

    Examples
    --------
    >>> import leastaction as la
    >>> print(la.cite("simpson")[:20])
    @software{leastactio
    >>> [line for line in la.cite(la.compose("verlet", "suzuki")).splitlines() if "Suzuki" in line]
    ['  author = {Suzuki, Masuo},']
    """
    if isinstance(what, Path | Paths):
        keys = [*_behind(what.method, what.system), *_used(what)]
    elif isinstance(what, str | Method):
        keys = _behind(method(what), None)
    else:
        raise TypeError(f"expected a path, paths, a method or its name; got {what!r}")
    return "\n".join(_entries()[key] for key in dict.fromkeys(["leastaction", *keys]))


def _behind(chosen: Method, system: Any) -> list[str]:
    """The papers of a method; for Simpson's method only the papers about systems of this kind."""
    keys, root, quadratic = list(chosen.citations), chosen.root, system is not None and system.linear
    if root == method("simpson"):
        keys += ["rojasquintero2024"] if quadratic or system is None else []
        keys += [] if quadratic else ["dubois2023", "rojasquintero2025"]
    if root == method("stormer-verlet"):
        keys.append("verlet1967")
    if root == method("newmark") and quadratic:
        keys.append("newmark1959")
    return keys


def _used(run: Path | Paths) -> list[str]:
    """The entries for all else that a run has used: papers, then tools."""
    keys = []
    if run.system.m:
        keys.append("andersen1983" if run.method == method("stormer-verlet") else "hairer2006")
    if run.pace is not None:
        keys.append("hairer1997")
    if run.events:
        keys.append("chandrupatla1997")
    return [
        *keys,
        "numpy2020",
        *(_TOOLS[name] for name in run.system.tools),
        "llvm2004" if run.digits is None else "arb2017",
    ]


@cache
def _entries() -> dict[str, str]:
    """The entries of the file, by key."""
    text = files("leastaction.results").joinpath("references.bib").read_text("utf-8").replace("VERSION", __version__)
    return {re.match(r"@\w+\{(\w+),", one)[1]: one.strip() + "\n" for one in re.split(r"\n(?=@)", text)}  # type: ignore[index]
