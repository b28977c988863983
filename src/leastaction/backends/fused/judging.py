"""After an increment: the new unknowns, the verdict on them, and what the trajectory wants next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastaction.program import Value
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, size
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
) -> Seen:
    """The verdict on increments, a row for each coordinate.

    x has before, iterations, doubt; and rows with a number for each coordinate, scale, floor and reach.
    A `rate` by which increments are known to shrink is used where rounding keeps them from shrinking. Where the verdict
    is not `final`, another iteration follows that checks whether all numbers are finite, and how far the root is.
    `unique` tells of one root within reach.
    """
    moved, top = rows.packed([size(row) for row in moves]), rows.packed([size(row) for row in new])
    scale = [a.op("max", b) for a, b in zip(x["scale"], top, strict=True)]
    still = [(b <= a * STILL).op("if", a) for a, b in zip(x["floor"], scale, strict=False)]
    beyond = [(a - b).op("max", 0.0) for a, b in zip(moved, still, strict=False)]
    largest = rows.largest([a / b for a, b in zip(beyond, scale, strict=True)])
    limits = list(zip(x["reach"], moved, scale, strict=False))
    seen = {
        **{name: x[name][0] for name in ("before", "iterations", "doubt")},
        "size": largest,
        "sound": finite(largest),
        "off": rows.largest([reach < a for reach, a, _ in limits]),
        "far": largest * 0.0,
    }
    if final:
        total = sum((d for row in moves for d in row), moves[0][0] * 0.0)
        seen["sound"] &= ~rows.largest([(total - total).op("ne", 0.0)])
        seen["far"] = rows.largest([reach * FAR < b for reach, _, b in limits])
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
