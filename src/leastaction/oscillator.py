"""One step of a method on the oscillator L = ½ v² − ½ ω² q², exactly: rational functions of x² = (hω)².

A symmetric method splits its polynomial about the middle of the step, y = 2τ − 1, into an even and an odd part. The
discrete action does not mix them, so that eliminating the inner coefficients of each leaves

    p₁ + p₀ = X (q₁ − q₀),     p₁ − p₀ = −Y (q₁ + q₀),

    h X(x²) = ½ σ_odd,   h Y(x²) = −½ σ_even,   σ = det(Â − x² B̂) / det(the same without the end value),
    Â_jk = 4 j k μ_{j+k−2},   B̂_jk = μ_{j+k},   μ_k = Σ_i b_i y_i^k

(the form of Proposition 7 of Rojas-Quintero, Dubois and Cabrera-Díaz 2024). The moments μ_k are rational numbers
although the nodes are not: y^k modulo the rule's node polynomial has degree below r, and there the rule integrates
exactly. So X and Y have rational coefficients whatever the degree and the rule, and in the variables (p, ωq) a step is

    M = |  c   −b |     c = (X − Y)/(X + Y),   a = 2x / h(X + Y),   b = 2 h²XY / (x h(X + Y)),   c² + a b = 1.
        |  a    c |

M conserves p² + ρ (ωq)², ρ = b/a. Where 0 < ρ < ∞ that is an ellipse and M is stable; this includes the points with
a = b = 0, M = ±1, at which bands touch. Where ρ < 0 an eigenvalue has modulus |c| + √(−ρ) |a| > 1, and at a zero or a
pole of ρ itself M is not diagonalisable: powers grow linearly. So the stable intervals are the intervals of x² > 0 on
which the rational function ρ is positive and finite. All its zeros and poles are isolated, on the whole half-line,
hence nothing is missed: neither islands nor thin gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from flint import fmpq, fmpq_mat, fmpq_poly

from leastaction.methods import Galerkin
from leastaction.numbers.precision import flint_bits
from leastaction.quadrature import Quadrature

BITS = 256  # of the enclosures of roots: they are far narrower than the spacing of floats


@dataclass(frozen=True)
class Rational:
    """numerator / denominator: polynomials over the rational numbers without a common factor, denominator monic."""

    numerator: Any
    denominator: Any

    @classmethod
    def of(cls, numerator: Any, denominator: Any) -> Rational:
        """The quotient in lowest terms."""
        common = numerator.gcd(denominator) * denominator.leading_coefficient()
        return cls(numerator / common, denominator / common)

    def __call__(self, x2: Any) -> Any:
        return self.numerator(x2) / self.denominator(x2)

    def __add__(self, other: Rational) -> Rational:
        return Rational.of(
            self.numerator * other.denominator + other.numerator * self.denominator,
            self.denominator * other.denominator,
        )

    def __neg__(self) -> Rational:
        return Rational(-self.numerator, self.denominator)

    def __sub__(self, other: Rational) -> Rational:
        return self + -other

    def __mul__(self, other: Rational) -> Rational:
        return Rational.of(self.numerator * other.numerator, self.denominator * other.denominator)

    def __truediv__(self, other: Rational) -> Rational:
        return Rational.of(self.numerator * other.denominator, self.denominator * other.numerator)


X2 = Rational(fmpq_poly([0, 1]), fmpq_poly([1]))  # x²
TWO = Rational(fmpq_poly([2]), fmpq_poly([1]))


@dataclass(frozen=True)
class Step:
    """One step of a member of the family on the oscillator, as rational functions of x².

    X, Y     h X and h Y
    c        half the trace of M
    a_by_x   a / x
    b_by_x   b / x
    rho      b / a = h²XY / x²: p² + ρ (ωq)² is conserved
    """

    X: Rational
    Y: Rational

    @property
    def c(self) -> Rational:
        return (self.X - self.Y) / (self.X + self.Y)

    @property
    def a_by_x(self) -> Rational:
        return TWO / (self.X + self.Y)

    @property
    def b_by_x(self) -> Rational:
        return self.rho * self.a_by_x

    @property
    def rho(self) -> Rational:
        return self.X * self.Y / X2


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
def exact_step(method: Galerkin) -> Step:
    """One step of the method on the oscillator."""
    mu = moments(method.rule, 2 * method.s + 1)
    odd, even = (_end_value_form(range(first, method.s + 1, 2), mu) for first in (1, 0))
    return Step(Rational(odd.numerator / 2, odd.denominator), Rational(-even.numerator / 2, even.denominator))


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

    return Rational.of(determinant(0), determinant(1))


@dataclass(frozen=True)
class Root:
    """A positive x with f(x²) = 0 for an irreducible polynomial f, enclosed: `x2` is the ball that holds x²."""

    polynomial: Any
    x2: Any
    order: int  # as a zero (positive) or a pole (negative)

    def __float__(self) -> float:
        """The float nearest to x: the enclosure decides it."""
        with flint_bits(BITS):
            root = self.x2.sqrt()
            lower, upper = float(root.lower()), float(root.upper())
        return (lower + upper) / 2

    def refined(self, bits: int) -> Root:
        """The same root in an enclosure of so many bits."""
        with flint_bits(bits):
            return next(root for root in _real_roots(self.polynomial, self.order) if root.x2.overlaps(self.x2))


def positive_roots(f: Rational) -> list[Root]:
    """Every zero and pole of f at x² > 0, in ascending order; complete, by isolation of all complex roots."""
    bits = BITS
    while True:
        with flint_bits(bits):
            found = sorted(_isolated(f), key=lambda root: root.x2.mid())
            if all(low.x2 < high.x2 for low, high in pairwise(found)):
                return found
        # Different irreducible polynomials have different roots, so that more bits tell them apart.
        bits *= 2


def _isolated(f: Rational) -> Iterator[Root]:
    for polynomial, sign in ((f.numerator, 1), (f.denominator, -1)):
        for factor, multiplicity in polynomial.factor()[1]:
            yield from _real_roots(fmpq_poly(factor.coeffs()), sign * multiplicity)


def _real_roots(irreducible: Any, order: int) -> Iterator[Root]:
    """Those at x² > 0, by isolation of all complex roots."""
    for root, _ in irreducible.complex_roots():
        if root.imag == 0 and root.real > 0:
            yield Root(irreducible, root.real, order)


def zeros_between(f: Any, lower: Root | None, upper: Root | None) -> list[Root]:
    """The roots of the polynomial f strictly between two roots (None: 0, or ∞), ascending, however near they are."""
    return [
        root
        for root in positive_roots(Rational(f, f**0))
        if (lower is None or _ascending(lower, root)) and (upper is None or _ascending(root, upper))
    ]


def _ascending(a: Root, b: Root) -> bool:
    """Whether a < b. Enclosures that overlap are refined; roots of one irreducible polynomial are told apart by one."""
    bits = BITS
    while a.x2.overlaps(b.x2):
        bits *= 2
        a, b = a.refined(bits), b.refined(bits)
        if a.polynomial == b.polynomial and a.x2.overlaps(b.x2):
            return False  # the same root: isolation gives each root of a polynomial a ball of its own
    return bool(a.x2 < b.x2)


def bands(rho: Rational) -> tuple[list[Root], list[bool]]:
    """The zeros and poles of ρ at x² > 0, and of each interval before, between and after them whether ρ > 0 there."""
    roots, positive = positive_roots(rho), [True]  # ρ → 1 as x → 0
    for root in roots:
        positive.append(positive[-1] ^ (root.order % 2 == 1))
    return roots, positive
