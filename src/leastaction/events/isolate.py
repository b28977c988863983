"""Nodes in a step: between two of them an event function changes its sign at most once.

The step is divided until each part is settled. A part is settled if the ball of the event function does not contain
zero: then the middle is a node whose sign is certain. A part is also settled if the ball of the function's rate does
not contain zero: then the signs at the ends are enough. A part that cannot be settled is as near to a turn on the axis
as `off` can tell: its node is the place where the function comes nearest to zero, and is still to be found.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events.curve import FURTHER, Curve
from leastaction.events.kinds import Watch
from leastaction.kernel import loops
from leastaction.program import Program

FloatArray = NDArray[np.float64]

MOST_HALVINGS = 14
MOST_PARTS = 512  # the most parts of one step that are divided further: a function may be zero everywhere


# τ at the begin of a part of a step; τ where the function is certain or nearest to zero; τ at the end of the part; the
# value at the second τ, if its sign is certain.
Part = tuple[float, float, float, float | None]


def parts(
    watch: Watch, curve: Curve, params: FloatArray, wanted: NDArray[np.bool_]
) -> tuple[dict[tuple[int, int], list[Part]], set[tuple[int, int]]]:
    """For each (step, event) that is `wanted`, (K, events), the parts that have a node, in order; `params` has a row
    for each step. Also the (step, event) with too many parts in doubt in which the function is a number.
    """
    row, event = np.nonzero(wanted)
    centre, half = np.zeros(len(row)), np.ones(len(row))
    leaves: dict[tuple[int, int], list[tuple[float, float, float, float]]] = defaultdict(list)
    found: dict[tuple[int, int], list[Part]] = defaultdict(list)
    given_up: set[tuple[int, int]] = set()
    for halvings in range(MOST_HALVINGS + 1):
        g, spread, rate, rate_spread, fine = _balls(watch, curve, params, row, event, centre, half)
        certain = spread < np.abs(g)
        open_ = ~certain & ~(rate_spread < np.abs(rate))
        _, pair, count = np.unique(row[open_] * len(watch) + event[open_], return_inverse=True, return_counts=True)
        crowded = np.zeros(len(row), bool)
        crowded[open_] = count[pair] > MOST_PARTS
        # Where a function is NaN its parts are never settled, and tell nothing about zeros.
        numbers = np.bincount(pair, ~np.isnan(g[open_]), len(count))[pair] > MOST_PARTS
        given_up.update(zip(row[open_][numbers].tolist(), event[open_][numbers].tolist(), strict=True))
        last = open_ & (fine | crowded if halvings < MOST_HALVINGS else open_)
        for k in np.flatnonzero(last | certain):
            begin, middle, end = ((1 + x) / 2 for x in (centre[k] - half[k], centre[k], centre[k] + half[k]))
            place = int(row[k]), int(event[k])
            if certain[k]:
                found[place].append((begin, middle, end, g[k]))
            else:
                leaves[place].append((begin, middle, end, abs(g[k])))
        open_ &= ~last
        if not open_.any():
            break
        row, event = np.tile(row[open_], 2), np.tile(event[open_], 2)
        quarter, old = half[open_] / 2, centre[open_]
        half, centre = np.tile(quarter, 2), np.concatenate([old - quarter, old + quarter])
    for place, some in leaves.items():
        found[place] += _joined(some)
    return {place: sorted(some, key=lambda part: part[0]) for place, some in found.items()}, given_up


def surveyed(watch: Watch, curve: Curve, params: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether event functions may be zero in steps, and whether they may turn in these steps, (K, events)."""
    shape = len(curve.t), len(watch)
    row, event = (x.ravel() for x in np.indices(shape))
    half = np.full(len(row), 1.0 + FURTHER)
    g, spread, rate, rate_spread, _ = _balls(watch, curve, params, row, event, np.zeros(len(row)), half)
    return ~(spread < np.abs(g)).reshape(shape), ~(rate_spread < np.abs(rate)).reshape(shape)


def _balls(
    watch: Watch, curve: Curve, params: FloatArray, row: NDArray[np.intp], event: NDArray[np.intp], centre: FloatArray,
    half: FloatArray,
) -> tuple[NDArray[Any], ...]:  # fmt: skip
    """Event functions over parts x = centre ± half of steps, and their rates, with radii; and whether a part is so
    short that its radii come from `off`, so that dividing the part would tell no more.
    """
    at, radius, slope, slope_radius = curve.boxes(row, centre, half)
    off = curve.off[row]
    beyond = curve.steeper * off
    h = curve.h[row]
    t = (curve.t[row] + (1 + centre) / 2 * h)[:, None]
    width, rest = (half * np.abs(h) / 2)[:, None], params[row]
    dt = h[:, None] / 2
    g = _ball(watch.bounds, "g", event, [t, at, rest, width, radius + off])
    rate = _ball(
        watch.rate_bounds, "rate", event, [t, at, rest, dt, slope, width, radius + off, slope_radius + beyond]
    )  # fmt: skip
    fine = (radius <= off).all(axis=1) & ~np.array(watch.by_time)[event]
    return *g, *rate, fine


def _joined(leaves: list[tuple[float, float, float, float]]) -> list[Part]:
    """Neighbouring leaves as one part; its nearest place is that of the leaf with the smallest value."""
    parts: list[Part] = []
    least = 0.0
    for begin, nearest, end, size in sorted(leaves):
        if parts and begin <= parts[-1][2]:
            first, best, *_ = parts[-1]
            parts[-1] = (first, nearest if size < least else best, end, None)
            least = min(least, size)
        else:
            parts.append((begin, nearest, end, None))
            least = size
    return parts


def _ball(program: Program, name: str, event: NDArray[np.intp], columns: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Centre and radius of each row's event, by a program that encloses all events."""
    found = loops.evaluate(program, np.concatenate(columns, axis=1))
    k = np.arange(len(event))
    return tuple(found[:, program.output_slice(block)][k, event] for block in (name, f"{name}_radius"))
