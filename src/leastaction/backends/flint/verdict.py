"""What `step.verdict` asks of an iteration, and its answer, on flint numbers: their exponents have no limit.

A coordinate that no force moves, as the middle one of a symmetric chain, moves by rounding alone, and on its own scale
it never settles. Where its size of rest is known (`still`), no smaller size is a motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import flint

from leastaction.backends.flint.evaluate import decisions
from leastaction.backends.flint.sizes import ROUGH, lengths
from leastaction.numbers.conversion import Balls
from leastaction.step.verdict import FAR, REACH, WAKING, WOKEN, verdict_program

CHORDS = 2  # iterations with a kept Jacobian that cost as much as one with a new one (measured, double pendulum)
SETTLING = 2.0**-10  # increments so small change no scale that matters
FLOAT_BITS = 900  # up to here relative sizes can be told apart as floats


class Verdict(NamedTuple):
    """The verdict on one iteration (`step.verdict`); and the sizes of it and of the next one, relative to the step."""

    size: Any
    left: Any
    solved: bool
    ended: bool
    good: bool
    keep: bool


class Judge:
    """The verdict on the iterations of one step, to the floor of so many bits.

    places   where the unknowns of each coordinate are; multipliers enter linearly, and settle with the coordinates
    z        the prediction
    reach    how far each coordinate may go; None: as far as it likes
    still    the size below which each coordinate is at rest; empty where no coordinate is known to be at rest
    checked  whether it must be checked that the root is the one nearby
    way      in continuation: the longest step of each coordinate so far
    """

    def __init__(
        self,
        places: Sequence[range],
        z: Balls,
        bits: int,
        reach: Balls | None,
        still: Balls,
        checked: bool = True,
        way: Balls | None = None,
    ) -> None:
        self._checked = checked
        self._places = places
        self._limits, self._scale = reach or [], lengths(places, z)
        if still:
            self._limits = [max(a, REACH * b) for a, b in zip(self._limits, still, strict=False)]
            self._scale = [*map(max, self._scale, still), *self._scale[len(still) :]]
        if way:
            self._scale = [*map(max, self._scale, way)]
        self._units: Balls = []
        self._number, self._floor = _numbers(bits)
        self._before: Any = math.inf
        self._doubt = self._far = self._settling = False
        self._woken: list[int] = []  # coordinates that this iteration set in motion
        self._iterations, self._newton = 0, True

    def __call__(self, dz: Balls, z: Balls, fresh: bool) -> Verdict:
        """The verdict on the increments dz, which led to z."""
        precision, flint.ctx.prec = flint.ctx.prec, ROUGH
        off = False if self._settling else self._measure(dz, z)
        number = self._number
        sizes = [abs(number(dz[i] * unit)) for own, unit in zip(self._places, self._units, strict=True) for i in own]
        size = max(sizes) if sum(sizes) < math.inf else math.inf  # `max` does not notice a NaN
        self._settling = size < SETTLING and not self._woken
        # Where all Jacobians were fresh, each iteration follows the one before as the second follows the first.
        self._newton = self._newton and fresh
        count = min(self._iterations, 1) if self._newton else self._iterations
        solved, ended, good, self._doubt, keep, left, _ = _rule(fresh, self._checked)(
            size, self._before, count, size < math.inf, off, self._far, self._doubt, *(4 * [False]), *self._floor
        )
        self._before, self._iterations = size, self._iterations + 1
        flint.ctx.prec = precision
        return Verdict(size, left if count else size, solved, ended, good, keep)

    def _measure(self, dz: Balls, z: Balls) -> bool:
        """Set scales and units of all components anew; returns whether a component goes farther than it may at once."""
        moved, before = lengths(self._places, dz), self._scale
        scale = self._scale = [max(a, b) for a, b in zip(before, lengths(self._places, z), strict=True)]
        self._units = [a if a.is_zero() else (1 / a).mid() for a in scale]
        self._woken = []
        if self._iterations:
            self._woken = [j for j, (a, b) in enumerate(zip(before, scale, strict=True)) if WAKING * a < b]
        for j in self._woken:
            self._units[j] = min(self._units[j], (WOKEN * self._before / moved[j]).mid())
        self._far = any(FAR * a < b for a, b in zip(self._limits, scale, strict=False))
        return any(a < b for a, b in zip(self._limits, moved, strict=False))


@lru_cache(maxsize=8)
def _numbers(bits: int) -> tuple[Callable[[Any], Any], tuple[Any, Any]]:
    """How a size becomes a number for the verdict; and which sizes are negligible, and acceptable."""
    number = float if bits <= FLOAT_BITS else flint.arb.mid
    return number, (number(flint.arb((1, -bits - 10))), number(flint.arb((1, -(bits // 2)))))


@lru_cache(maxsize=4)
def _rule(fresh: bool, checked: bool) -> Callable[..., Any]:
    return decisions(verdict_program(fresh, CHORDS, checked))
