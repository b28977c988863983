"""Jacobi's elliptic functions in either arithmetic.

R. Bulirsch, Numerical calculation of elliptic integrals and elliptic functions, Numerische Mathematik 7 (1965) 78–90:
descending Landen transformation by the arithmetic-geometric mean. The parameter is given by its complement 1 − m, so
that nothing is lost near m = 1; all sums are of positive terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.problems.arithmetic import Arithmetic


def sncndn(x: Arithmetic, u: Any, m1: Any) -> tuple[Any, Any, Any]:
    """sn, cn, dn (u | m) with m = 1 − m1, 0 < m1 ≤ 1, u an array."""
    a, b = x(1), x.sqrt(x(m1))
    means = [(a, b)]
    while abs(a - b) > x.eps**0.5 * a / 4:  # convergence is quadratic: one mean more is exact
        a, b = (a + b) / 2, x.sqrt(a * b)
        means.append((a, b))
    mean = (a + b) / 2
    s, cn = x.sin(mean * u), x.cos(mean * u)
    zero = s == 0
    w = cn / np.where(zero, x(1), s)
    c, dn = mean * w, w * 0 + x(1)
    for a, b in reversed(means):
        w = w * c
        c = c * dn
        dn = (b + w) / (a + w)
        w = c / a
    size = 1 / x.sqrt(c**2 + 1)
    sn = np.where(s < 0, -size, size)
    return np.where(zero, x(0), sn), np.where(zero, cn, c * sn), np.where(zero, x(1), dn)
