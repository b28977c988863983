"""Many trajectories in one file: what `Paths.save` writes, and `Paths.load` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events import Happened
from leastaction.numbers.notation import to_text
from leastaction.numbers.rounding import MOST_DIGITS, Reals, reals
from leastaction.reading import entry, floats, integer, listing, mapping, text
from leastaction.results import files, tables
from leastaction.results.path import inputs_of_file, reals_of_file
from leastaction.run.advice import Advice
from leastaction.run.standing import Status
from leastaction.store.header import checked_output, method_of_file
from leastaction.systems.protocol import from_record

if TYPE_CHECKING:
    from leastaction.results.paths import Paths

FORMAT = "leastaction paths 1"
NAN = "nan"  # where a trajectory has ended; other numbers of many digits are binary ones


def save(paths: Paths, file: str | os.PathLike[str]) -> None:
    """Write a table, or everything, as the ending says."""
    table = files.kind(file) == files.TABLE
    header, arrays = ({}, {}) if table else packed(paths)
    with files.replacing(file) as stream:
        if table:
            tables.write_table(paths, stream)
        else:
            np.savez(stream, header=np.array(json.dumps(header)), **arrays)


def packed(paths: Paths) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays. Of a paced run those in its own time too, under names that begin with "pace_"."""
    header = {
        "format": FORMAT,
        "method": paths.method.text,
        "h": to_text(paths.h),
        "t0": to_text(paths.t0),
        "digits": paths.digits,
        "every": paths.every,
        **paths.system.record(),
        "stats": dict(paths.stats),
        "advice": None if paths.advice is None else paths.advice.record(),
        "events": [[name, found.p_after is not None] for name, found in paths.events.items()],
        "reduced": list(paths.reduced),
    }
    of_reals: dict[str, Any] = {"t": paths.t, "values": paths.values}
    of_reals |= {name: getattr(paths, name) for name in paths.last}
    of_reals |= {f"last_{name}": x for name, x in paths.last.items()}
    of_reals |= {f"event_{k}": found.table() for k, found in enumerate(paths.events.values())}
    arrays: dict[str, Any] = {name: _exactly(np.asarray(x), paths.digits) for name, x in of_reals.items()}
    arrays |= {f"count_{k}": np.asarray(found.count, np.int64) for k, found in enumerate(paths.events.values())}
    arrays |= {f"reduced_{k}": x for k, x in enumerate(paths.reduced.values())}
    arrays |= {"status": paths.status, "steps": paths.steps} | paths.system.arrays()
    if paths.output is not None:
        arrays["output"] = paths.output
    if paths.inputs is not None:
        header["driven"] = [to_text(paths.inputs.t0), paths.inputs.record()]
        arrays |= paths.inputs.arrays()
    if paths.pace is not None:
        header["paced"], own = packed(paths.pace)
        arrays |= {f"pace_{name}": x for name, x in own.items()}
    return header, arrays


def _exactly(x: NDArray[Any], digits: int | None) -> NDArray[Any]:
    """Numbers as a file keeps them: floats, or texts with every digit."""
    if digits is None:
        return x
    return np.array([to_text(y) if y == y else NAN for y in x.flat], dtype=str).reshape(x.shape)


def fields(arrays: Mapping[str, Any], header: Any) -> dict[str, Any]:
    """The fields of Paths, from a file whose contents are not trusted; "pace" as fields, too."""
    if entry(header, "format") != FORMAT:
        raise ValueError(f"format {header['format']!r}, expected {FORMAT!r}")
    system, digits = from_record(header, arrays), entry(header, "digits")
    if digits is not None:
        integer(digits, "digits", 2, MOST_DIGITS)
    arithmetic, n, size = reals(digits), system.n, len(system.values())
    output = checked_output(floats(arrays, "output", (None,), np.int64), n) if "output" in arrays else None
    B, K = len(entry(arrays, "values")), np.shape(entry(arrays, "q"))[1:2]
    width = n if output is None else len(output)
    shapes = {"q": (width,), "p": (width,), "tangent": (2 * n, 2 * n), "sensitivity": (2 * n, size + 1)}
    shapes = {name: shape for name, shape in shapes.items() if name in arrays or name in "qp"}
    status, steps = floats(arrays, "status", (B,), np.int8), floats(arrays, "steps", (B,), np.int64)
    if not np.isin(status, [*Status]).all() or (steps < 0).any():
        raise ValueError("status and steps must be how trajectories ended, and how many steps they did")
    h = arithmetic.array(text(entry(header, "h"), "h")).item()
    return {
        "system": system,
        "method": method_of_file(entry(header, "method")),
        "t": _reals(arrays, "t", K if "paced" not in header else (B, *K), arithmetic),
        **{name: _reals(arrays, name, (B, *K, *shape), arithmetic) for name, shape in shapes.items()},
        "h": h,
        "t0": arithmetic.array(text(entry(header, "t0"), "t0")).item(),
        "every": integer(entry(header, "every"), "every"),
        "values": _reals(arrays, "values", (B, size), arithmetic),
        "status": status,
        "steps": steps,
        "last": {name: _reals(arrays, f"last_{name}", (B, *shape), arithmetic) for name, shape in shapes.items()},
        "reduced": {
            text(name, "a reduction's name"): floats(arrays, f"reduced_{k}", (B, 2))
            for k, name in enumerate(listing(entry(header, "reduced"), "reduced"))
        },
        "events": _events(arrays, listing(entry(header, "events"), "events"), B, n, arithmetic),
        "stats": mapping(entry(header, "stats"), "stats"),
        "output": output,
        "digits": digits,
        "advice": None if header.get("advice") is None else Advice.from_record(header["advice"]),
        "inputs": inputs_of_file(arrays, header, system, h, arithmetic, True),
        "pace": None if "paced" not in header else fields(_own(arrays), mapping(header["paced"], "paced")),
    }


def _own(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("pace_"): x for name, x in arrays.items() if name.startswith("pace_")}


def _events(arrays: Mapping[str, Any], given: list[Any], B: int, n: int, arithmetic: Reals) -> dict[str, Happened]:
    events = {}
    for k, record in enumerate(given):
        name, impact = listing(record, "an event", 2)
        most = np.shape(entry(arrays, f"event_{k}"))[1:2]
        table = _reals(arrays, f"event_{k}", (B, *most, 1 + (3 if impact is True else 2) * n), arithmetic)
        events[text(name, "the name of an event")] = Happened.of(floats(arrays, f"count_{k}", (B,), np.int64), table, n)
    return events


def _reals(arrays: Mapping[str, Any], name: str, shape: tuple[int, ...], arithmetic: Reals) -> NDArray[Any]:
    """Numbers of the run's arithmetic, NaN where a trajectory has ended."""
    if arithmetic.digits is None:
        return floats(arrays, name, shape)
    kept = np.asarray(entry(arrays, name))
    ended = kept == NAN
    found = reals_of_file({name: np.where(ended, "0x0p+0", kept)}, name, shape, arithmetic)
    found[ended] = arithmetic.array(np.nan)[()]
    return found
