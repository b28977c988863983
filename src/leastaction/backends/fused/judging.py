"""After an increment: the new unknowns, the verdict on them, and what the trajectory wants next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from leastaction.program import Value
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, numbers, size
from leastaction.step.verdict import FAR, STILL, verdict


@dataclass(frozen=True)
class Seen:
    """What an iteration found, and what the verdict says of it."""

    found: dict[str, Any]
    after: dict[str, list[Any]]  # the parts of the state that any iteration changes


def judged(
    step: Step,
    rows: Rows,
    x: dict[str, list[Value]],
    moves: Sequence[Row],
    new: Sequence[Row],
    *,
    fresh: bool,
    chords: int,
    rate: Value | None = None,
    again: bool = False,
    twice: bool = False,
    final: bool = True,
    unique: Value | None = None,
    swiftly: bool = False,
) -> Seen:
    """The verdict on increments, a row for each coordinate.

    x has before, iterations, doubt; and rows with a number for each coordinate, scale, floor and reach.
    A `rate` by which increments are known to shrink is used where rounding keeps them from shrinking. Where the verdict
    is not `final`, another iteration follows that checks whether all numbers are finite, and how far the root is.
    `unique` tells of one root within reach. `swiftly`, increments are measured by the scale before them, which is known
    early: then nothing waits for quotients.
    """
    sizes, top = [size(row) for row in moves], rows.packed([size(row) for row in new])
    scale = [a.op("max", b) for a, b in zip(x["scale"], top, strict=True)]
    if swiftly:
        largest, reaches = measured(rows, x, sizes), numbers(rows, x["reach"], len(sizes))
        off = rows.largest([reduce(or_, [reach < a for reach, a in zip(reaches, sizes, strict=True)])])
    else:
        moved = rows.packed(sizes)
        still = [(b <= a * STILL).op("if", a) for a, b in zip(x["floor"], scale, strict=False)]
        beyond = [(a - b).op("max", 0.0) for a, b in zip(moved, still, strict=False)]
        largest = rows.largest([a / b for a, b in zip(beyond, scale, strict=True)])
        off = rows.largest([reach < a for reach, a in zip(x["reach"], moved, strict=False)])
    seen = {
        **{name: x[name][0] for name in ("before", "iterations", "doubt")},
        "size": largest,
        "sound": finite(largest),
        "off": off,
        "far": largest * 0.0,
    }
    if final:
        total = sum((d for row in moves for d in row), moves[0][0] * 0.0)
        seen["sound"] &= ~rows.largest([(total - total).op("ne", 0.0)])
        seen["far"] = rows.largest([reach * FAR < b for reach, b in zip(x["reach"], scale, strict=False)])
    found = verdict(
        seen, fresh=fresh, chords=chords, checked=step.checked, known=rate, again=again, twice=twice, unique=unique
    )
    after: dict[str, list[Any]] = {
        "scale": [found["anew"].where(a, b) for a, b in zip(top, scale, strict=True)] if again else scale,
        "before": [largest],
        "doubt": [found["doubt"]],
        "iterations": [seen["iterations"] + found["counts"]],
        "left": [found["left"]],
    }
    return Seen(found, after)


def measured(rows: Rows, x: dict[str, list[Value]], sizes: Sequence[Value]) -> Value:
    """The size of increments, measured by the scale before them; as by a scale that has grown with them, no increment
    is longer than two: from one end of a step to the other. A coordinate that others set in motion had no scale.
    """
    still = [(b <= a * STILL).op("if", a) for a, b in zip(x["floor"], x["scale"], strict=True)]
    units, floors = (numbers(rows, row, len(sizes)) for row in ([1 / a for a in x["scale"]], still))
    beyond = [(a - b) * unit for a, b, unit in zip(sizes, floors, units, strict=True)]
    return rows.largest(beyond).op("max", 0.0).op("min", 2.0)


def finite(x: Any) -> Value:
    """Whether a number is neither infinite nor NaN."""
    return (x - x).op("eq", 0.0)


def chosen(
    wanted: Value, after: Mapping[str, Sequence[Any]], before: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """What changes of the trajectories that want it; the others keep what they have."""
    return {
        name: [wanted.where(new, old) for new, old in zip(values, before[name], strict=True)]
        for name, values in after.items()
    }
