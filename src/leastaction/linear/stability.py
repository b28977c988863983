"""Where a method is stable: exactly, from two rational functions of x² = (hω)².

On one oscillator, L = ½ v² − ½ ω² q², a symmetric method splits its polynomial about the middle of the step,
y = 2τ − 1, into an even and an odd part. The discrete action does not mix them, so that eliminating the inner
coefficients of each leaves

    p₁ + p₀ = X (q₁ − q₀),     p₁ − p₀ = −Y (q₁ + q₀),         the form (34), (41) of Proposition 7,

    h X(x²) = ½ σ_odd,   h Y(x²) = −½ σ_even,   σ = det(Â − x² B̂) / det(the same without the end value),
    Â_jk = 4 j k μ_{j+k−2},   B̂_jk = μ_{j+k},   μ_k = Σ_i b_i y_i^k.

The moments μ_k are rational numbers although the nodes are not: y^k modulo the rule's node polynomial has degree
below r, and there the rule integrates exactly. So X and Y have rational coefficients, half the trace of the iteration
matrix is (X − Y)/(X + Y), and the method is stable just where X Y > 0. Signs change only at roots of their numerators
and denominators. Where a zero of X meets a pole of Y, one step is −1 (and where a pole of X meets a zero of Y, +1),
a stable point; any other root is the end of an interval and does not belong to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flint import fmpq, fmpq_mat, fmpq_poly

from leastaction.methods import Galerkin, Method
from leastaction.methods import method as by_name
from leastaction.quadrature import Quadrature

Interval = tuple[float, float]


@dataclass(frozen=True)
class Rational:
    """numerator / denominator, polynomials in x² over the rational numbers without a common factor."""

    numerator: Any
    denominator: Any

    def __call__(self, x2: Any) -> Any:
        return self.numerator(x2) / self.denominator(x2)


def moments(rule: Quadrature, count: int) -> list[Any]:
    """μ_k = Σ_i b_i (2c_i − 1)^k for k < count, as exact rational numbers."""
    if rule.family == "Gau":
        nodes = fmpq_poly.legendre_p(rule.r)
    else:
        nodes = fmpq_poly([1, 0, -1]) * fmpq_poly.legendre_p(rule.r - 1).derivative()
    means = []
    for k in range(count):
        remainder = fmpq_poly([0] * k + [1]) % nodes
        means.append(sum((a / (j + 1) for j, a in enumerate(remainder.coeffs()) if j % 2 == 0), fmpq(0)))
    return means


@lru_cache(maxsize=128)
def step_functions(method: Galerkin) -> tuple[Rational, Rational]:
    """h X and h Y of the method on one oscillator of unit mass, as rational functions of x² = (hω)²."""
    mu = moments(method.rule, 2 * method.s + 1)
    odd, even = (_end_value_form(range(first, method.s + 1, 2), mu) for first in (1, 0))
    return Rational(odd.numerator / 2, odd.denominator), Rational(-even.numerator / 2, even.denominator)


def _end_value_form(powers: range, mu: list[Any]) -> Rational:
    """σ(x²): the discrete action 2h L_d for end value one, stationary in the inner coefficients.

    The basis is y^a and y^k − y^{k−2}: only the first is not zero at the ends.
    """
    basis = [{powers[0]: 1}] + [{k: 1, k - 2: -1} for k in powers[1:]]
    size = len(basis)

    def entry(f: dict[int, int], g: dict[int, int]) -> Any:
        kinetic = sum((a * b * 4 * j * k * mu[j + k - 2] for j, a in f.items() for k, b in g.items() if j * k), fmpq(0))
        potential = sum((a * b * mu[j + k] for j, a in f.items() for k, b in g.items()), fmpq(0))
        return fmpq_poly([kinetic, -potential])

    N = [[entry(f, g) for g in basis] for f in basis]

    def determinant(first: int) -> Any:
        """det of N without its first rows and columns, by its values at enough integers."""
        order = size - first
        if order == 0:
            return fmpq_poly([1])
        result, newton = fmpq_poly([0]), fmpq_poly([1])
        for x2 in range(order + 1):
            value = fmpq_mat(order, order, [N[i][j](x2) for i in range(first, size) for j in range(first, size)]).det()
            result += newton * ((value - result(x2)) / newton(x2))
            newton *= fmpq_poly([-x2, 1])
        return result

    numerator, denominator = determinant(0), determinant(1)
    common = numerator.gcd(denominator)
    return Rational(numerator / common, denominator / common)


@lru_cache(maxsize=128)
def stable_intervals(method: Method | str) -> tuple[Interval, ...]:
    """Every interval of x = hω in which the method's powers stay bounded, ascending; the first begins at 0.

    >>> stable_intervals("newmark"), stable_intervals("stormer-verlet")
    (((0.0, inf),), ((0.0, 2.0),))
    """
    method = by_name(method)
    if not isinstance(method, Galerkin):
        return ((0.0, math.sqrt(8.0)),)  # RK4: |1 + ix − x²/2 − ix³/6 + x⁴/24| ≤ 1 up to x = 2√2
    X, Y = step_functions(method)
    intervals: list[Interval] = []
    start, stable, sign_X, sign_Y = 0.0, True, 1, 1  # X → 2/h and Y → hω²/2 as x → 0
    for x, order_X, order_Y in _sign_changes(X, Y):
        sign_X, sign_Y = sign_X * (-1) ** order_X, sign_Y * (-1) ** order_Y
        still = sign_X == sign_Y
        if stable and not (still and order_X * order_Y < 0):
            intervals.append((start, x))
            start = x
        elif still and not stable:
            start = x
        stable = still
    if stable:
        intervals.append((start, math.inf))
    return tuple(intervals)


def _sign_changes(X: Rational, Y: Rational) -> list[tuple[float, int, int]]:
    """(x, order of X, order of Y) at each positive root or pole of either; poles count negative."""
    orders: dict[Any, list[int]] = {}
    for place, (function, part, sign) in enumerate(
        [(X, "numerator", 1), (X, "denominator", -1), (Y, "numerator", 1), (Y, "denominator", -1)]
    ):
        for factor, multiplicity in getattr(function, part).factor()[1]:
            orders.setdefault(tuple(factor.coeffs()), [0, 0])[place // 2] += sign * multiplicity
    changes = []
    for coefficients, (order_X, order_Y) in orders.items():
        roots: Any = fmpq_poly(list(coefficients)).complex_roots()
        for root, _ in roots:
            if root.imag == 0 and root.real > 0:
                changes.append((math.sqrt(float(root.real.mid())), order_X, order_Y))
    return sorted(changes)


def stable_alternative(method: Method) -> Galerkin:
    """The member PsNsQ2sGau, stable for every h, of the same order or the next even one."""
    s = max(1, (method.order + 1) // 2)
    alternative = by_name(f"P{s}N{s}Q{2 * s}Gau")
    assert isinstance(alternative, Galerkin)
    return alternative
