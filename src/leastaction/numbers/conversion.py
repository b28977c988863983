"""The same number as one of mpmath, of flint (an `arb`, a ball of radius zero) and of Python; never rounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import flint
import mpmath
import numpy as np
from numpy.typing import NDArray

Balls = list[Any]


def ball(x: Any) -> Any:
    """The arb of an mpmath number."""
    sign, mantissa, exponent, _ = x._mpf_
    if not mantissa and exponent:
        return flint.arb("nan")
    return flint.arb((-int(mantissa) if sign else int(mantissa), int(exponent)))


def balls(values: Iterable[Any]) -> Balls:
    return [ball(x) for x in values]


def ball_array(values: NDArray[Any]) -> NDArray[Any]:
    """An array of numbers of any kind as one of flint's."""
    result = np.empty(values.shape, dtype=object)
    result.reshape(-1)[:] = [ball(x) if isinstance(x, mpmath.mpf) else flint.arb(x) for x in values.flat]
    return result


def ball_matrix(rows: Any) -> Any:
    """An arb matrix of mpmath numbers."""
    return flint.arb_mat(len(rows), len(rows[0]), [ball(x) for row in rows for x in row])


def identity(n: int) -> Any:
    """The arb matrix 1."""
    return flint.arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


def mpf(x: Any) -> Any:
    """The mpmath number at an arb's midpoint."""
    x = x.mid()
    if not x.is_finite():
        return mpmath.nan
    mantissa, exponent = x.man_exp()
    return mpmath.mp.make_mpf(mpmath.libmp.from_man_exp(int(mantissa), int(exponent)))


def mpfs(values: Sequence[Any]) -> NDArray[np.object_]:
    result = np.empty(len(values), dtype=object)
    result[:] = [mpf(x) for x in values]
    return result


def fraction(x: Any) -> Fraction:
    """The Fraction of a finite float of mpmath or SymPy."""
    sign, mantissa, exponent, _ = x._mpf_
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** int(exponent)
