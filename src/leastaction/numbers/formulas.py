"""The same formula on doubles or on mpmath numbers: arrays of components in, arrays out.

An exact solution is written once, as a function of an arithmetic x and of the times t, an array of shape (K,):
x.sin and its like act on arrays, x(c) is a constant c, known to many digits, in this arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.numbers.rounding import to_mpf


class Doubles:
    """float64, by NumPy."""

    eps = 2.0**-52
    pi = np.pi
    sin, cos, sqrt, rint, arctan2 = np.sin, np.cos, np.sqrt, np.rint, np.arctan2
    exp, log = np.exp, np.log

    def __call__(self, c: Any) -> float:
        return float(c)

    def array(self, values: Any) -> NDArray[Any]:
        return np.asarray(values, float)

    def turns(self, t: NDArray[Any], period: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """k, r with t = k·period + r, |r| ≤ period/2, and r as accurate as if the period had 106 bits.

        The phase of a long run is then as good as that of a short one.
        """
        high = float(period)
        low = float(period - high)
        k = np.rint(t / high)
        product, error = _two_product(k, high)
        return k, ((t - product) - error) - k * low


class Mpfs:
    """mpmath numbers of the working precision, in object arrays. Use inside `mpmath_digits`."""

    sin, cos, sqrt, rint = (np.frompyfunc(f, 1, 1) for f in (mpmath.sin, mpmath.cos, mpmath.sqrt, mpmath.nint))
    exp, log = (np.frompyfunc(f, 1, 1) for f in (mpmath.exp, mpmath.log))
    arctan2 = np.frompyfunc(mpmath.atan2, 2, 1)
    _array = np.frompyfunc(to_mpf, 1, 1)

    @property
    def eps(self) -> Any:
        return +mpmath.mp.eps

    @property
    def pi(self) -> NDArray[Any]:
        return self(mpmath.pi)

    def __call__(self, c: Any) -> NDArray[Any]:
        # An array of one: with a bare number on its left, mpmath would first print the array on its right.
        return np.array([+mpmath.mpf(c)], object)

    def array(self, values: Any) -> NDArray[Any]:
        return np.asarray(self._array(np.asarray(values, object)), object)

    def turns(self, t: NDArray[Any], period: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """k, r with t = k·period + r, |r| ≤ period/2."""
        k = self.rint(t / period)
        return k, t - k * period


Arithmetic = Doubles | Mpfs

DOUBLES, MPFS = Doubles(), Mpfs()


def by_components(x: Arithmetic, formula: Callable[..., Any], *states: ArrayLike) -> NDArray[Any]:
    """The formula's value, or values stacked, on states of shape (…, n), each given to it as n arrays of shape (K,)."""
    arrays = [x.array(state) for state in states]
    shape = arrays[0].shape[:-1]
    found = formula(*(tuple(array.reshape(-1, array.shape[-1]).T) for array in arrays))
    if isinstance(found, tuple):
        return np.stack(found, axis=-1).reshape(*shape, len(found))
    return found.reshape(shape)[()]


def _two_product(a: NDArray[Any], b: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """a·b as a rounded product and its rounding error, exactly (Dekker 1971)."""
    a1, b1 = 134217729.0 * a, 134217729.0 * b
    a1, b1 = a1 - (a1 - a), b1 - (b1 - b)
    a2, b2 = a - a1, b - b1
    product = a * b
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
