"""Jacobi's elliptic functions, and the angle in elliptic integrals of the third kind, in either arithmetic.

sncndn: R. Bulirsch, Numerical calculation of elliptic integrals and elliptic functions, Numerische Mathematik 7 (1965),
78–90: descending Landen transformation by the arithmetic-geometric mean. The parameter is given by its complement
1 − m, so that nothing is lost near m = 1; all sums are of positive terms.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from leastaction.numbers.formulas import Arithmetic


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


def theta_series(y: Any, nome: Any) -> list[tuple[Any, Any]]:
    """q^{n(n+1)} (cosh, sinh)((2n + 1)y)/cosh y for n = 0, 1, …: θ₁ and θ₂ on the line Im z = y, but for a factor."""
    terms: list[tuple[Any, Any]] = []
    scale, n = mpmath.cosh(y), 0
    while not terms or terms[-1][0] > mpmath.mp.eps:
        weight = nome ** (n * (n + 1)) / scale
        terms.append((weight * mpmath.cosh((2 * n + 1) * y), weight * mpmath.sinh((2 * n + 1) * y)))
        n += 1
    return terms


def theta_angle(x: Arithmetic, w: Any, terms: list[tuple[Any, Any]]) -> Any:
    """The angle of Σ b_n cos (2n + 1)w + i Σ a_n sin (2n + 1)w with terms (a_n, b_n), |w| ≤ π/2."""
    s, c = x.sin(w), x.cos(w)
    s2, c2 = 2 * s * c, 1 - 2 * s**2
    sine = cosine = w * 0
    for a, b in terms:
        if abs(a) + abs(b) < x.eps / 16:
            break
        sine, cosine = sine + x(a) * s, cosine + x(b) * c
        s, c = s * c2 + c * s2, c * c2 - s * s2
    return x.arctan2(sine, cosine)
