"""The two arithmetics of runs, float64 and N digits; what the user wrote is rounded to them once."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.conversion import fraction
from leastaction.numbers.expressions import check_bits
from leastaction.numbers.notation import exact
from leastaction.numbers.precision import mpmath_bits

# Kept beyond the digits asked for: the roundings of some 10⁹ steps stay below the last digit.
GUARD_BITS = 32
MOST_DIGITS = 10_000  # of runs and files: a step of one coordinate takes about a second
_BITS_BEFORE_FLOAT = 160  # of an irrational number, before it is rounded to the 53 of a float


class Reals(Protocol):
    """The arithmetic of a run: how it holds numbers."""

    @property
    def digits(self) -> int | None:
        """Decimal digits; None in float64."""
        ...

    def array(self, value: Any) -> NDArray[Any]:
        """What the user gave, each number rounded once; the shape stays."""
        ...

    def working(self) -> AbstractContextManager[Any]:
        """Inside, arithmetic on these numbers is done at their precision."""
        ...


@dataclass(frozen=True)
class Float64:
    """Double precision: NumPy arrays of floats."""

    digits: None = None

    def array(self, value: Any) -> NDArray[np.float64]:
        if type(value) is float:
            return np.array(value)
        # NumPy, left alone with a list, would turn a number beside text into text, and so change what it means.
        given = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
        if given.dtype.kind in "biuf" or all(isinstance(x, int | float) for x in given.flat):
            return np.array(given, dtype=float)
        return np.array([to_float(x) for x in given.flat], dtype=float).reshape(given.shape)

    def working(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class Digits:
    """Any precision: object arrays of mpmath numbers, of `digits` decimal digits and a few guard bits.

    >>> with Digits(40).working():
    ...     print(mpmath.nstr(Digits(40).array("1/3")[()], 40))
    0.3333333333333333333333333333333333333333
    """

    digits: int

    def __post_init__(self) -> None:
        digits = self.digits
        if isinstance(digits, bool) or not isinstance(digits, int | np.integer) or digits < 2:
            raise ValueError(f"digits must be an integer, at least 2 (None means float64); got {digits!r}")
        if digits > MOST_DIGITS:
            raise ValueError(
                f"digits must be at most {MOST_DIGITS}, with which a single step takes seconds; got {digits}"
            )
        object.__setattr__(self, "digits", int(digits))  # a NumPy integer would not go into a file's header

    @property
    def bits(self) -> int:
        """Working precision."""
        return math.ceil(self.digits * math.log2(10)) + GUARD_BITS

    def array(self, value: Any) -> NDArray[np.object_]:
        given = np.asarray(value, dtype=object)
        result = np.empty(given.size, dtype=object)
        result[:] = [to_mpf(x, self.bits) for x in given.flat]
        return result.reshape(given.shape)

    def working(self) -> AbstractContextManager[Any]:
        return mpmath_bits(self.bits)


FLOAT64 = Float64()


def reals(digits: int | None) -> Reals:
    """The arithmetic with this many digits; float64 for None."""
    return FLOAT64 if digits is None else Digits(digits)


def to_float(x: Any) -> float:
    """The float nearest to x; what is not finite stays so, for the caller to say where it came from."""
    if isinstance(x, float) or (isinstance(x, mpmath.mpf) and not mpmath.isfinite(x)):
        return float(x)
    number = exact(x)
    try:
        return float(number if isinstance(number, Fraction) else fraction(_nearest(number, _BITS_BEFORE_FLOAT)))
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def to_mpf(x: Any, bits: int | None = None) -> Any:
    """The mpmath number with `bits` bits that is nearest to x; without `bits`, with those of the working precision.

    What is not finite stays so, for the caller to say where it came from.
    """
    bits = mpmath.mp.prec if bits is None else bits
    if isinstance(x, float | mpmath.mpf):
        number = mpmath.mpf(x, prec=bits)
        check_bits(abs(int(number._mpf_[2])))
        return number
    return _nearest(exact(x), bits)


def all_finite(values: NDArray[Any]) -> bool:
    """np.isfinite, on either arithmetic."""
    if values.dtype == object:
        return all(mpmath.isfinite(x) for x in values.flat)
    return bool(np.isfinite(values).all())


def _nearest(number: Any, bits: int) -> Any:
    """An exact number, rounded to so many bits."""
    if isinstance(number, Fraction):
        return mpmath.mp.make_mpf(mpmath.libmp.from_rational(number.numerator, number.denominator, bits, "n"))
    import sympy

    near = sympy.N(number, math.ceil(bits / math.log2(10)) + 5)
    return mpmath.mp.make_mpf(mpmath.libmp.mpf_pos(near._mpf_, bits, "n"))
