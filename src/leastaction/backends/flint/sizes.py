"""Sizes of flint numbers: the largest of many, of each coordinate, and their logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import flint

from leastaction.numbers.conversion import Balls

ROUGH = 53  # bits of a number that is only a size


def largest(values: Iterable[Any]) -> Any:
    """max |x|; NaN if one of the values is NaN."""
    result = flint.arb(0)
    for x in values:
        size = abs(x)
        if not size <= result:
            result = size
            if not size.is_finite():
                break
    return result


def lengths(places: Sequence[Iterable[int]], z: Balls) -> Balls:
    """The largest |z_i| of each set of places."""
    return [largest([z[i] for i in own]) for own in places]


def log2(x: Any) -> float:
    """log₂|x| of an arb or a float; −∞ for zero. A size, unlike a float, may be 10⁻¹⁰⁰⁰."""
    if isinstance(x, float):
        return math.log2(x) if 0 < x < math.inf else -math.inf if x == 0 else math.inf
    if not x.is_finite():
        return math.inf
    mantissa, power = x.mid().man_exp()
    return math.log2(abs(int(mantissa))) + int(power) if mantissa else -math.inf
