"""Runs in one file, .npz: what `Path.save` and `Paths.save` write, and their `load` reads.

A file may come from anybody, so that everything in it is checked. Nothing in it is executed but its Program of L.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.events import Happened
from leastaction.methods import Galerkin
from leastaction.numbers.notation import BINARY_NUMBER, to_text, to_texts
from leastaction.numbers.rounding import MOST_DIGITS, Reals, all_finite, reals
from leastaction.reading import entry, floats, integer, listing, mapping, numbers, text
from leastaction.results import files, tables
from leastaction.run.advice import Advice
from leastaction.run.given_inputs import from_record as inputs_from_record
from leastaction.run.standing import Status
from leastaction.step.form import samples
from leastaction.step.inputs import Inputs
from leastaction.store.header import checked_output, method_of_file
from leastaction.systems.protocol import System, from_record

if TYPE_CHECKING:
    import pandas

    from leastaction.results.path import Path
    from leastaction.results.paths import Paths

Arrays = Mapping[str, Any]

FORMATS = {False: "leastaction path 1", True: "leastaction paths 1"}
STATES = ("q", "p", "tangent", "sensitivity")
NAN = "nan"  # where a trajectory has ended; other numbers of many digits are binary ones


class Savable:
    """Tables and files of a Path, or of Paths."""

    @documented("file", "columns")
    def to_csv(self, file: str | os.PathLike[str], dofs: ArrayLike | None = None, names: Any = None) -> None:
        """Write a table with every digit, one row for each state: t, q, p, and the energy where whole states are
        stored. Of an ensemble the number of the trajectory stands in front.
        """
        tables.write(cast(Any, self), file, dofs, names)

    @documented("columns")
    def to_pandas(self, dofs: ArrayLike | None = None, names: Any = None) -> pandas.DataFrame:
        """The table of `to_csv` as a pandas DataFrame with the index t, of an ensemble (trajectory, t). Needs the extra
        ``leastaction[pandas]``.
        """
        return tables.frame(cast(Any, self), dofs, names)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write everything to one file. An existing file is replaced only by a whole one.

        Parameters
        ----------
        file : path
            "run.npz" keeps the states with their system and every digit; "run", without an ending, does the same.
            "run.csv" is a table of t, q and p alone. Other endings are refused.
        """
        _save(cast(Any, self), file)


def _save(run: Path | Paths, file: str | os.PathLike[str]) -> None:
    """Write a table, or everything, as the ending says. Of one path with a pace the run in its own time is kept."""
    table = files.kind(file) == files.TABLE
    if not table and run.q.ndim == 2 and run.pace is not None:
        run = replace(cast("Path", run.pace), advice=run.advice)
    header, arrays = ({}, {}) if table else _packed(run)
    with files.replacing(file) as stream:
        if table:
            tables.write_table(run, stream)
        else:
            np.savez(stream, header=np.array(json.dumps(header)), **arrays)


def _packed(run: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays. Of paced paths those in their own time too, under names that begin with "pace_"."""
    many, events = run.q.ndim == 3, run.events
    header = {
        "format": FORMATS[many],
        "method": run.method.text,
        "h": to_text(run.h),
        "digits": run.digits,
        "every": run.every,
        **run.system.record(),
        "stats": dict(run.stats),
        "advice": None if run.advice is None else run.advice.record(),
    }
    of_reals = {f"event_{k}": found.table() for k, found in enumerate(events.values())}
    of_reals |= {name: getattr(run, name) for name in ("t", *(run.last if many else STATES))}
    arrays = dict(run.system.arrays())
    if many:
        header |= {"t0": to_text(run.t0), "reduced": list(run.reduced)}
        header["events"] = [[name, found.p_after is not None] for name, found in events.items()]
        of_reals |= {"values": run.values, **{f"last_{name}": x for name, x in run.last.items()}}
        arrays |= {f"count_{k}": np.asarray(found.count, np.int64) for k, found in enumerate(events.values())}
        arrays |= {f"reduced_{k}": x for k, x in enumerate(run.reduced.values())}
        arrays |= {"status": run.status, "steps": run.steps}
    else:
        header["params"] = {name: to_texts(value) for name, value in run.params.items()}
        header["events"] = [[name, found.count, found.p_after is not None] for name, found in events.items()]
    if run.output is not None:
        arrays["output"] = run.output
    if run.inputs is not None:
        header["driven"] = [to_text(run.inputs.t0), run.inputs.record()]
        arrays |= run.inputs.arrays()
    if many and run.pace is not None:
        header["paced"], own = _packed(run.pace)
        arrays |= {f"pace_{name}": x for name, x in own.items()}
    return header, arrays | {name: _exactly(x, run.digits) for name, x in of_reals.items() if x is not None}


def _exactly(values: Any, digits: int | None) -> NDArray[Any]:
    """Numbers as a file keeps them: floats, or texts with every digit."""
    x = np.asarray(values)
    if digits is None:
        return x
    return np.array([to_text(y) if y == y else NAN for y in x.flat], dtype=str).reshape(x.shape)


def fields(arrays: Arrays, header: Any, many: bool) -> dict[str, Any]:
    """The fields of a Path or of Paths, from a file whose contents are not trusted; "pace" as fields, too."""
    if entry(header, "format") != FORMATS[many]:
        raise ValueError(f"format {header['format']!r}, expected {FORMATS[many]!r}")
    system, digits = from_record(header, arrays), entry(header, "digits")
    if digits is not None:
        integer(digits, "digits", 2, MOST_DIGITS)
    arithmetic, n = reals(digits), system.n
    output = checked_output(floats(arrays, "output", (None,), np.int64), n) if "output" in arrays else None
    h, every = _number(header, "h", arithmetic), integer(entry(header, "every"), "every", 0 if many else 1)
    width, size = n if output is None else len(output), len(system.values())
    shapes = {"q": (width,), "p": (width,), "tangent": (2 * n, 2 * n), "sensitivity": (2 * n, size + 1)}
    shapes = {name: shape for name, shape in shapes.items() if name in arrays or name in "qp"}
    common = {
        "system": system,
        "method": method_of_file(entry(header, "method")),
        "h": h,
        "every": every,
        "stats": mapping(entry(header, "stats"), "stats"),
        "output": output,
        "digits": digits,
        "advice": None if header.get("advice") is None else Advice.from_record(header["advice"]),
        "inputs": _inputs(arrays, header, system, h, arithmetic, many),
    }
    return common | (_many if many else _one)(arrays, header, common, arithmetic, shapes)


def _one(arrays: Arrays, header: Any, common: Any, arithmetic: Reals, shapes: Any) -> dict[str, Any]:
    """The fields of a Path alone."""
    system, given = common["system"], mapping(entry(header, "params"), "params")
    params = {name: numbers(value, f"the parameter {name!r}") for name, value in given.items()}
    if (count := len(entry(arrays, "t"))) < 1:
        raise ValueError("it has no states")
    states = {name: _reals(arrays, name, (count, *shape), arithmetic) for name, shape in {"t": (), **shapes}.items()}
    with arithmetic.working():
        _check_times(states["t"], common["h"], common["every"])
    events = {}
    for k, record in enumerate(listing(header.get("events", []), "events")):
        name, met, impact = listing(record, "an event", 3)
        table = _reals(arrays, f"event_{k}", (len(entry(arrays, f"event_{k}")), _width(impact, system)), arithmetic)
        events[text(name, "the name of an event")] = Happened.of(integer(met, "a count", len(table)), table, system.n)
    return {**states, "params": system.named(system.values(params, arithmetic)), "events": events}


def _many(arrays: Arrays, header: Any, common: Any, arithmetic: Reals, shapes: Any) -> dict[str, Any]:
    """The fields of Paths alone."""
    system, paced = common["system"], "paced" in header
    B, K = len(entry(arrays, "values")), np.shape(entry(arrays, "q"))[1:2]
    status, steps = floats(arrays, "status", (B,), np.int8), floats(arrays, "steps", (B,), np.int64)
    if not np.isin(status, [*Status]).all() or (steps < 0).any():
        raise ValueError("status and steps must be how trajectories ended, and how many steps they did")
    events = {}
    for k, record in enumerate(listing(entry(header, "events"), "events")):
        name, impact = listing(record, "an event", 2)
        most = np.shape(entry(arrays, f"event_{k}"))[1:2]
        table = _reals(arrays, f"event_{k}", (B, *most, _width(impact, system)), arithmetic)
        met = floats(arrays, f"count_{k}", (B,), np.int64)
        events[text(name, "the name of an event")] = Happened.of(met, table, system.n)
    own = {name.removeprefix("pace_"): x for name, x in arrays.items() if name.startswith("pace_")}
    return {
        "t": _reals(arrays, "t", (B, *K) if paced else K, arithmetic),
        **{name: _reals(arrays, name, (B, *K, *shape), arithmetic) for name, shape in shapes.items()},
        "t0": _number(header, "t0", arithmetic),
        "values": _reals(arrays, "values", (B, len(system.values())), arithmetic),
        "status": status,
        "steps": steps,
        "last": {name: _reals(arrays, f"last_{name}", (B, *shape), arithmetic) for name, shape in shapes.items()},
        "reduced": {
            text(name, "a reduction's name"): floats(arrays, f"reduced_{k}", (B, 2))
            for k, name in enumerate(listing(entry(header, "reduced"), "reduced"))
        },
        "events": events,
        "pace": fields(own, mapping(header["paced"], "paced"), True) if paced else None,
    }


def _number(header: Any, name: str, arithmetic: Reals) -> Any:
    return arithmetic.array(text(entry(header, name), name)).item()


def _width(impact: Any, system: System) -> int:
    """How many numbers an event has: t, q, p, and p after an impact."""
    return 1 + (3 if impact is True else 2) * system.n


def _reals(arrays: Arrays, name: str, shape: tuple[int | None, ...], arithmetic: Reals) -> NDArray[Any]:
    """Numbers of the run's arithmetic. At more digits they are text: a mantissa and an exponent, both exact, or NAN."""
    if arithmetic.digits is None:
        return floats(arrays, name, shape)
    kept = floats(arrays, name, shape, getattr(entry(arrays, name), "dtype", None))
    ended = kept == NAN
    whole = np.where(ended, "0x0p+0", kept)
    if not all(BINARY_NUMBER.fullmatch(str(x)) for x in whole.flat):
        raise ValueError(f"{name} must hold binary numbers as text, such as 0x1a2bp-52")
    found = arithmetic.array(whole)
    found[ended] = arithmetic.array(np.nan)[()]
    return found


def _inputs(arrays: Arrays, header: Any, system: System, h: Any, arithmetic: Reals, many: bool) -> Inputs | None:
    """The inputs that drive the system."""
    if not system.inputs:
        return None
    begin, record = listing(entry(header, "driven"), "driven", 2)
    t0 = arithmetic.array(text(begin, "the start of the inputs")).item()
    nodes = method_of_file(entry(header, "method"))
    c = samples(nodes, digits=arithmetic.digits).tau if isinstance(nodes, Galerkin) else np.zeros(1)
    return inputs_from_record(record, arrays, system.inputs, t0, h, c, arithmetic, many)


def _check_times(t: NDArray[Any], h: Any, every: int) -> None:
    """Check that the stored times are those after multiples of `every` steps h, and that of the last step."""
    if not (all_finite(t) and all_finite(np.array(h))) or h == 0:
        raise ValueError("times and h must be finite, and h not zero")
    if len(t) == 1:
        return
    steps = np.arange(len(t)) * every
    wanted = t[0] + steps[:-1] * h
    with np.errstate(over="ignore", invalid="ignore"):
        last = (t[-1] - t[0]) / h
        slack = 1e-6 * every + 64 * np.finfo(float).eps * float(max(abs(t[0]), abs(t[-1])) / abs(h))
        off = float(abs((t[:-1] - wanted) / h).max())
    if not (np.isfinite(slack) and np.isfinite(off)):
        raise ValueError(f"h = {float(h):g} is next to nothing beside its times, which go to {float(t[-1]):g}")
    if off > slack or not steps[-2] - slack <= float(last) <= steps[-1] + slack:
        raise ValueError(f"its times are not those of every {every} steps of h = {float(h):g}")
