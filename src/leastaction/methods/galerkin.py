"""The Galerkin family PsNrQu: a polynomial space of degree s and a quadrature rule, and nothing else.

Ober-Blöbaum and Saake (2014), sections 3.1 and 3.2. On one step the motion is the polynomial

    q(τ h) = Σ_ν q^ν l_ν(τ),   ν = 0 … s,   τ ∈ [0, 1],

through values q^ν at control points d_0 = 0 < … < d_s = 1, and the discrete Lagrangian is

    L_d(q^0, …, q^s) = h Σ_i b_i L(q(c_i h), q̇(c_i h)).

A step solves p_k = −∂L_d/∂q^0 and 0 = ∂L_d/∂q^ν (0 < ν < s) for q^1 … q^s = q_{k+1}, and sets
p_{k+1} = ∂L_d/∂q^s. The control points do not change the method, only its conditioning: they are
the Lobatto points, since equispaced ones fail from s ≈ 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.docstrings import documented
from leastaction.methods.linear_form import LinearForm, of_polynomial
from leastaction.methods.protocol import Branch, Method
from leastaction.methods.quadrature import (
    FLOAT64_DIGITS,
    GUARD_DIGITS,
    MOST_NODES,
    Quadrature,
    gauss,
    lagrange_basis,
    lobatto,
    rounded,
)
from leastaction.numbers.precision import mpmath_digits

if TYPE_CHECKING:
    from leastaction.methods.oscillator import OscillatorStep

FloatArray = NDArray[np.float64]

EPS = 2.0**-52


@dataclass(frozen=True, eq=False)
class Table:
    """What the stepper reads of a method: the basis at the nodes and the predictor.

    c, b       nodes and weights, (r,)
    d          control points, (s+1,)
    l, dl      l_ν(c_i) and l_ν′(c_i), (r, s+1)
    slope      l_ν′(1), (s+1,): the velocity at the end of a step, times h
    modes      z^ν ↦ Legendre coefficients of h q̇ on the step, (s, s)
    growth     those coefficients ↦ q(1 + d_μ) − q(1), (s, s): the next step predicted from this one
    """

    c: FloatArray
    b: FloatArray
    d: FloatArray
    l: FloatArray
    dl: FloatArray
    slope: FloatArray
    modes: FloatArray
    growth: FloatArray
    symmetric: bool = True

    def __post_init__(self) -> None:
        eps = np.finfo(float).eps
        s, r = len(self.d) - 1, len(self.c)
        checks = {
            "the weights sum to one": abs(self.b.sum() - 1) < 4 * r * eps,
            "the basis sums to one": np.abs(self.l.sum(axis=1) - 1).max() < 8 * s * eps,
            "the derivatives sum to zero": np.abs(self.dl.sum(axis=1)).max() < 8 * s * eps * np.abs(self.dl).max(),
            "the nodes are symmetric": not self.symmetric or np.abs(self.c + self.c[::-1] - 1).max() < 4 * eps,
            "the weights are symmetric": not self.symmetric or np.abs(self.b - self.b[::-1]).max() < 4 * eps,
            "the control points are symmetric": np.abs(self.d + self.d[::-1] - 1).max() < 2 * eps,
        }
        for claim, holds in checks.items():
            if not holds:
                raise ArithmeticError(f"table of degree {s} with {r} nodes: it is not true that {claim}")

    @cached_property
    def equations(self) -> tuple[FloatArray, FloatArray]:
        """l and dl as they weigh L_q and L_v in the equations: with 1 − l_s and −l_s′ in the column ν = 0.

        This column is the sum of the equations ν = 0 … s−1, in place of the first equation. The sum needs neither l_0
        nor l_0′, which the increments z^ν, ν ≥ 1, imply. If l_0 and l_0′ were rounded on their own, they would differ
        from the implied values, and the method would not be quite symplectic: its energy would drift by some 10⁻⁵ ε a
        step instead of walking at random. (Hairer, McLachlan and Razakarivony, BIT 48, 2008, 231–243, found this for
        rounded Runge–Kutta coefficients.) For s = 1, where l_0′ = −l_1′ = −1, the first equation may stay, if
        l_0 = 1 − l_1 as rounded.
        """
        if len(self.d) == 2 and all(math.fsum(row) == 1 for row in self.l):
            return self.l, self.dl
        l, dl = self.l.copy(), self.dl.copy()
        l[:, 0], dl[:, 0] = 1 - l[:, -1], -dl[:, -1]
        return l, dl


@documented()
@dataclass(frozen=True)
class Galerkin(Method):
    """A member PsNrQu of the Galerkin family: degree s, r quadrature nodes, quadrature order u.

    It is symplectic, of order min(2s, u) (section 5 of the paper), and symmetric in time if its rule is (Theorem 4.9).
    `la.method` and `la.galerkin` make it.

    Attributes
    ----------
    s : int
        Degree of the polynomials.
    rule : Quadrature
        The quadrature rule.
    {method_facts}
    branch : {"followed", "any"}
        The equations of a coarse step have several roots. "followed" is the root that is connected with h → 0; "any"
        is the root that Newton's iteration finds.

    Examples
    --------
    >>> import leastaction as la
    >>> simpson = la.method("simpson")
    >>> simpson.s, simpson.rule, simpson.order, simpson.symmetric
    (2, lobatto(3), 4, True)
    """

    s: int
    rule: Quadrature
    branch: Branch = "followed"

    @property
    def symplectic(self) -> bool:
        return True

    @property
    def degree(self) -> int:
        return self.s

    @property
    def citations(self) -> tuple[str, ...]:
        return ("marsden2001", "oberbloebaum2014")

    @property
    def name(self) -> str:
        return f"P{self.s}N{self.rule.r}Q{self.rule.order}{self.rule.family}"

    @property
    def nodes(self) -> FloatArray:
        return self.table.c

    @property
    def order(self) -> int:
        return min(2 * self.s, self.rule.order)

    @property
    def symmetric(self) -> bool:
        return self.rule.symmetric

    @property
    def text(self) -> str:
        own = "" if self.branch == "followed" else ", any branch"
        return f"P{self.s}N{self.rule.r}Q{self.rule.order}{self.rule.text}{own}"

    @property
    def table(self) -> Table:
        """The table in float64, every entry correctly rounded; those of l_0 and l_s to multiples of ε, so that
        1 − l_s is exact.
        """
        return _table(self.s, self.rule)

    def exact_table(self, digits: int = FLOAT64_DIGITS) -> dict[str, Any]:
        """The entries of `Table` as mpmath numbers, correct to `digits` and a few more."""
        return _exact_table(self.s, self.rule, digits)

    def linear_form(self, digits: int | None = None) -> LinearForm:
        return _linear_form(self, digits)

    def on_oscillator(self) -> OscillatorStep:
        from leastaction.methods.oscillator import of_member

        return of_member(self)

    def __repr__(self) -> str:
        return self.name if self.branch == "followed" else f"{self.name}, any branch"


def galerkin(s: int, rule: Quadrature) -> Galerkin:
    """The member of the family with polynomials of degree s and this quadrature rule of order u: it has order
    min(2s, u).

    Parameters
    ----------
    s : int
        Degree of the polynomials, at least 1.
    rule : Quadrature
        A rule with r ≥ s nodes, as from `la.gauss`, `la.lobatto` or `la.rule`.

    Examples
    --------
    >>> import leastaction as la
    >>> la.galerkin(2, la.lobatto(3))
    P2N3Q4Lob
    >>> la.galerkin(2, la.radau(2)).order
    3
    """
    if not isinstance(rule, Quadrature):
        raise TypeError(
            f"expected a quadrature rule, as from la.gauss(r), la.lobatto(r) or la.rule(c, b); got {rule!r}"
        )
    if isinstance(s, bool) or not isinstance(s, int | np.integer) or s < 1:
        raise ValueError(f"the degree s must be an integer, at least 1; got {s!r}")
    if s >= MOST_NODES:
        raise ValueError(f"the degree s is at most {MOST_NODES - 1}, since a step has s + 1 control points; got {s}")
    if rule.r < s:
        raise ValueError(
            f"P{s}N{rule.r}Q{rule.order}{rule.family} has fewer nodes than its degree (r = {rule.r} < s = {s}): "
            f"some of the {s} velocity unknowns do not enter the discrete action, so a step has no unique solution. "
            f"Use r ≥ {s}, for example P{s}N{s}Q{2 * s}Gau."
        )
    made = Galerkin(int(s), rule)
    if rule.given is not None:
        _check_own(made)
    return made


def require_member(chosen: Method, what: str, instead: str = "take a member PsNrQu") -> Galerkin:
    """The method, if it is a member of the family; else refuse it, and say what to do instead."""
    if not isinstance(chosen, Galerkin):
        raise ValueError(f"{what} is for members PsNrQu; got {chosen.name}: {instead}")
    return chosen


def _check_own(made: Galerkin) -> None:
    """Refuse rules that do not integrate velocities exactly or whose discrete kinetic energy is not positive."""
    s, u = made.s, made.rule.order
    if u < s:
        raise ValueError(
            f"{made.name}: the rule has order u = {u}, and does not integrate velocities of degree {s - 1} exactly; "
            f"that needs u ≥ {s}. Change its weights, or take a lower degree"
        )
    modes = np.polynomial.legendre.legvander(2 * made.rule.c - 1, s - 1)  # of the velocity
    least = np.linalg.eigvalsh((made.rule.b[:, None] * modes).T @ modes)[0]
    if least < 1e-12:
        raise ValueError(
            f"{made.name}: with these weights the discrete kinetic energy of some motion is not positive (its least "
            f"eigenvalue is {least:.2g}), so a step has no unique solution. Take positive weights, or a lower degree"
        )


@lru_cache(maxsize=64)
def _table(s: int, rule: Quadrature) -> Table:
    entries = {name: rounded(array) for name, array in _exact_table(s, rule, FLOAT64_DIGITS).items()}
    ends = entries["l"].copy()
    ends[:, [0, -1]] = np.rint(ends[:, [0, -1]] / EPS) * EPS
    return Table(**{**entries, "l": ends}, symmetric=rule.symmetric)


@lru_cache(maxsize=64)
def _linear_form(made: Galerkin, digits: int | None) -> LinearForm:
    if digits is None:
        return _linear_form(made, FLOAT64_DIGITS).in_floats()
    table = made.exact_table(digits)
    c, b, l, dl = (np.array(table[name], dtype=object) for name in ("c", "b", "l", "dl"))
    with mpmath_digits(digits + GUARD_DIGITS):
        return of_polynomial(c, b, l[:, 1:], dl[:, 1:], made.rule.family == "Gau" and made.rule.r == made.s)


@lru_cache(maxsize=64)
def _exact_table(s: int, rule: Quadrature, digits: int) -> dict[str, Any]:
    c, b = rule.points(digits)
    d = lobatto(s + 1).points(digits)[0]
    l, dl = lagrange_basis(d, c, digits)
    slope = lagrange_basis(d, [d[-1]], digits)[1][0]
    with mpmath_digits(digits + GUARD_DIGITS):
        # h q̇(τ) = Σ_j w_j P_j(2τ − 1); Gauss with s points integrates the products exactly.
        x, w = gauss(s).points(digits)
        dl_at_x = lagrange_basis(d, x, digits)[1]
        P = [[mpmath.legendre(j, 2 * at - 1) for at in x] for j in range(s)]
        modes = [
            [(2 * j + 1) * mpmath.fsum(w[i] * P[j][i] * dl_at_x[i][v] for i in range(s)) for v in range(1, s + 1)]
            for j in range(s)
        ]
        growth = [[_legendre_integral(j, 2 * d[m] + 1) for j in range(s)] for m in range(1, s + 1)]
    return {"c": c, "b": b, "d": d, "l": l, "dl": dl, "slope": slope, "modes": modes, "growth": growth}


def _legendre_integral(j: int, x: Any) -> Any:
    """∫ P_j(2τ − 1) dτ from τ = 1 to (x + 1)/2: half of (P_{j+1} − P_{j−1})/(2j + 1), taken between 1 and x."""
    if j == 0:
        return (x - 1) / 2
    return (mpmath.legendre(j + 1, x) - mpmath.legendre(j - 1, x)) / (2 * (2 * j + 1))
