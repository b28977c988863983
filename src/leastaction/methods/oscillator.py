"""One step of a method on the oscillator L = ½ v² − ½ ω² q², exactly: rational functions of x² = (hω)².

With y = 2τ − 1 and the inner coefficients of the polynomial eliminated, the discrete action is 2h L_d = (q₀, q₁) S
(q₀, q₁)ᵀ, a Schur complement in

    Â − x² B̂,     Â_jk = 4 j k μ_{j+k−2},   B̂_jk = μ_{j+k},   μ_k = Σ_i b_i y_i^k.

The moments μ_k are rational numbers although the nodes are not: y^k modulo the rule's node polynomial has degree below
r, and there the rule integrates exactly. So S has rational coefficients whatever the degree and the rule. With

    h X = ½ (S₀₀ + S₁₁) − S₀₁,   h Y = −½ (S₀₀ + S₁₁) − S₀₁,   skew = ½ (S₁₁ − S₀₀)

a step in the variables (p, ωq) is

    M = | c + δ  −b   |     c = (X − Y)/(X + Y),   a = 2x / h(X + Y),   δ = a skew / x,   det M = 1.
        |   a   c − δ |

Of a method that is not symplectic det M is a function of x², too, and ρ = (det M − c²)/a². A symmetric rule has
skew = 0, and p₁ + p₀ = X (q₁ − q₀), p₁ − p₀ = −Y (q₁ + q₀) (the form of Proposition 7 of
Rojas-Quintero, Dubois and Cabrera-Díaz 2024).

M conserves p² − 2 (δ/a) p ωq + (b/a) (ωq)², and ρ = b/a − (δ/a)² = h²XY/x² is what is left of the last coefficient
when the square is completed: for a symmetric rule p² + ρ (ωq)² is conserved. Where 0 < ρ < ∞ the level sets are
ellipses and M is stable; this includes the points with a = b = 0, M = ±1, at which bands touch. Where ρ < 0 an
eigenvalue has modulus |c| + √(−ρ) |a| > 1, and at a zero or a pole of ρ itself M is not diagonalisable: powers grow
linearly. So the stable intervals are the intervals of x² > 0 on which the rational function ρ is positive and finite.
All its zeros and poles are isolated, on the whole half-line, hence nothing is missed: neither islands nor thin gaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from flint import fmpq, fmpq_mat, fmpq_poly

from leastaction.methods import Composition, Galerkin, Method
from leastaction.methods.quadrature import Quadrature, node_polynomial
from leastaction.numbers.conversion import fraction
from leastaction.numbers.expressions import plain
from leastaction.numbers.precision import flint_bits
from leastaction.numbers.rounding import to_mpf

OWN_BITS = 256  # of moments that are not rational
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

    def scaled(self, factor: Any) -> Rational:
        """The function of (factor · x)²."""
        square = fmpq_poly([0, factor * factor])
        return Rational.of(self.numerator(square), self.denominator(square))

    def times(self, number: Any) -> Rational:
        return Rational(self.numerator * number, self.denominator)

    def __truediv__(self, other: Rational) -> Rational:
        return Rational.of(self.numerator * other.denominator, self.denominator * other.numerator)


X2 = Rational(fmpq_poly([0, 1]), fmpq_poly([1]))  # x²
ONE = Rational(fmpq_poly([1]), fmpq_poly([1]))
TWO = Rational(fmpq_poly([2]), fmpq_poly([1]))


@dataclass(frozen=True)
class OscillatorStep:
    """One step of a method on the oscillator, as rational functions of x².

    exact      whether their coefficients are not rounded
    diagonal   c + δ and c − δ
    a_by_x     a / x
    b_by_x     b / x
    c          half the trace of M
    area       det M, one where the method is symplectic
    rho        (det M − c²) / a²
    """

    diagonal: tuple[Rational, Rational]
    a_by_x: Rational
    b_by_x: Rational
    exact: bool = True

    @property
    def c(self) -> Rational:
        return (self.diagonal[0] + self.diagonal[1]) / TWO

    @cached_property
    def area(self) -> Rational:
        return self.diagonal[0] * self.diagonal[1] + X2 * self.a_by_x * self.b_by_x

    @property
    def symplectic(self) -> bool:
        return bool(self.area.numerator == self.area.denominator)

    @cached_property
    def rho(self) -> Rational:
        return (self.area - self.c * self.c) / (X2 * self.a_by_x * self.a_by_x)

    def after(self, other: OscillatorStep) -> OscillatorStep:
        """This step, done after another one."""
        (a, d), (e, h) = self.diagonal, other.diagonal
        return OscillatorStep(
            (a * e - X2 * self.b_by_x * other.a_by_x, d * h - X2 * self.a_by_x * other.b_by_x),
            self.a_by_x * e + d * other.a_by_x,
            a * other.b_by_x + self.b_by_x * h,
        )

    def scaled(self, factor: Any) -> OscillatorStep:
        """The step of the length factor · h."""
        return OscillatorStep(
            (self.diagonal[0].scaled(factor), self.diagonal[1].scaled(factor)),
            self.a_by_x.scaled(factor).times(factor),
            self.b_by_x.scaled(factor).times(factor),
        )


def moments(rule: Quadrature, count: int) -> list[Any]:
    """μ_k = Σ_i b_i (2c_i − 1)^k for k < count, as exact rational numbers.

    If nodes of one's own are irrational or floats, the moments that make up the order are those of the integral, and
    the others are rounded to OWN_BITS.
    """
    if rule.given is not None:
        return _own_moments(rule, count)
    nodes = node_polynomial(rule.family, rule.r)
    means = []
    for k in range(count):
        remainder = fmpq_poly([0] * k + [1]) % nodes
        means.append(sum((a / (j + 1) for j, a in enumerate(remainder.coeffs()) if j % 2 == 0), fmpq(0)))
    return means


def _own_moments(rule: Quadrature, count: int) -> list[Any]:
    c, b = rule.given or ((), ())
    found = []
    for k in range(count):
        if k < rule.order:
            mean: Any = Fraction(1 - k % 2, k + 1)
        elif rule.symmetric and k % 2:
            mean = Fraction(0)
        else:
            mean = sum(w * (2 * x - 1) ** k for x, w in zip(c, b, strict=True))
            if not isinstance(mean, Fraction):
                mean = plain(mean.expand())
            if not isinstance(mean, Fraction):
                mean = fraction(to_mpf(mean, OWN_BITS))
        found.append(fmpq(mean.numerator, mean.denominator))
    return found


@lru_cache(maxsize=128)
def exact_step(method: Method) -> OscillatorStep:
    """One step of the method on the oscillator; of a composition with factors that are rational, or rounded to
    OWN_BITS.
    """
    return method.on_oscillator()


def of_member(method: Galerkin) -> OscillatorStep:
    """One step of a member of the family."""
    first, mixed, last = _discrete_action(method.s, moments(method.rule, 2 * method.s + 1))
    a, b = -ONE / mixed, (first * last - mixed * mixed) / (X2 * mixed)
    return OscillatorStep((-last / mixed, -first / mixed), a, b, method.rule.exact)


def of_truncated_rotation(order: int) -> OscillatorStep:
    """The step of a Runge–Kutta method with as many stages as its order: the series of a rotation, cut after
    x^order.
    """
    terms = [fmpq((-1) ** (k // 2), math.factorial(k)) for k in range(order + 1)]
    cosine, sine = (Rational(fmpq_poly(terms[k::2]), fmpq_poly([1])) for k in (0, 1))
    return OscillatorStep((cosine, cosine), sine, sine)


def _discrete_action(s: int, mu: Sequence[Any]) -> tuple[Rational, Rational, Rational]:
    """S₀₀, S₀₁ and S₁₁: quotients of determinants, each found by its values at enough integers x².

    (1 − y)/2 and (1 + y)/2 carry the end values; the differences P_k − P_{k−2} of Legendre's polynomials are zero at
    the ends. With these Â and B̂ are all but diagonal, and their numbers are short.
    """
    legendre = [fmpq_poly.legendre_p(k) for k in range(s + 1)]
    ends = [fmpq_poly([fmpq(1, 2), fmpq(sign, 2)]) for sign in (-1, 1)]
    basis = ends + [legendre[k] - legendre[k - 2] for k in range(2, s + 1)]
    C = fmpq_mat(s + 1, s + 1, [f[j] for f in basis for j in range(s + 1)])
    degrees = [(j, k) for j in range(s + 1) for k in range(s + 1)]
    kinetic = C * fmpq_mat(s + 1, s + 1, [4 * j * k * mu[max(j + k - 2, 0)] for j, k in degrees]) * C.transpose()
    potential = C * fmpq_mat(s + 1, s + 1, [mu[j + k] for j, k in degrees]) * C.transpose()
    inner = range(2, s + 1)

    def part(N: Any, rows: Sequence[int], columns: Sequence[int]) -> Any:
        return fmpq_mat(len(rows), len(columns), [N[i, j] for i in rows for j in columns])

    found = [fmpq_poly([0])] * 4  # the determinant of the inner part, and its products with S₀₀, S₀₁ and S₁₁
    newton, x2 = fmpq_poly([1]), -1
    while newton.degree() <= s:
        x2 += 1
        N = kinetic - x2 * potential
        S, determinant = part(N, (0, 1), (0, 1)), fmpq(1)
        if s > 1:
            determinant = part(N, inner, inner).det()
            if determinant == 0:
                continue
            S -= part(N, (0, 1), inner) * part(N, inner, inner).solve(part(N, inner, (0, 1)))
        values = [determinant, determinant * S[0, 0], determinant * S[0, 1], determinant * S[1, 1]]
        found = [f + newton * ((y - f(x2)) / newton(x2)) for f, y in zip(found, values, strict=True)]
        newton *= fmpq_poly([-x2, 1])
    below, *above = found
    first, mixed, last = (Rational.of(f, below) for f in above)
    return first, mixed, last


def of_composition(method: Composition) -> OscillatorStep:
    """The steps of a composition, one after the other."""
    digits = math.ceil(OWN_BITS * math.log10(2))
    root, whole = exact_step(method.root), None
    for factor in method.factors(digits):
        number = _fraction(factor, method)
        step = root.scaled(fmpq(number.numerator, number.denominator))
        whole = step if whole is None else step.after(whole)
    assert whole is not None
    return replace(whole, exact=False)


def _fraction(factor: Any, method: Composition) -> Fraction:
    """A factor as it was given, if that is rational; else rounded."""
    number = fraction(to_mpf(factor, OWN_BITS))
    simple = number.limit_denominator(10**12)
    return simple if not method.known and simple in method.given else number


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
    """The roots at x² > 0, by isolation of all complex roots."""
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


def bands(step: OscillatorStep) -> tuple[list[Root], list[bool]]:
    """The points x² > 0 at which a step may begin or end to be stable, and of each interval before, between and after
    them whether it is stable there.

    Of a symplectic step they are zeros and poles of ρ. Those with ρ < 0 on both sides bound nothing, and are left out.
    Of the others, which are rotations (ρ = 1), they are zeros of 1 − det M.
    """
    if not step.symplectic and step.rho.numerator != step.rho.denominator:
        raise NotImplementedError("a step that neither keeps areas nor is a rotation with a factor")
    f = step.rho if step.symplectic else ONE - step.area
    roots: list[Root] = []
    first = [next((a for a in part.coeffs() if a != 0), 1) for part in (f.numerator, f.denominator)]
    positive = [bool(first[0] * first[1] > 0)]  # of the first terms, as x → 0
    for root in positive_roots(f):
        if root.order % 2 == 1 or positive[-1]:
            roots.append(root)
            positive.append(positive[-1] ^ (root.order % 2 == 1))
    return roots, positive
