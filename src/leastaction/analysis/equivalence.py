"""Which methods are the same map?

With as many nodes as the degree, r = s, the increments z can be eliminated for the velocities V_i at the nodes, and a
member of the family is the partitioned Runge–Kutta method

    Q_i = q₀ + h Σ_j a_ij V_j,     P_i = p₀ + h Σ_j â_ij F_j,     a = l (l′)⁻¹,   â = −(b l′)⁻ᵀ (b l)ᵀ,

in the matrices of its own table (Marsden and West 2001, section 2.6): Gauss collocation where a = â is the matrix of
Gauss, Lobatto IIIA–IIIB where a and â are the matrices of that pair. If the mass is constant any member, also with
r > s, is the Nyström method

    Q_i = q₀ + c_i h M⁻¹p₀ + h² Σ_j α_ij M⁻¹F_j,   q₁ = … + h² Σ_j β_j M⁻¹F_j,   p₁ = p₀ + h Σ_j b_j F_j,

α = −l K⁻¹ (b l)ᵀ with K = l′ᵀ b l′; its weights b_j are positive and its nodes distinct, so that two members are the
same map for a constant mass exactly where these tables agree. Tables are compared in 60 digits. Two methods of any
kinds are compared as maps: single steps in 40 digits, on systems without symmetries. A difference there is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.analysis import figures
from leastaction.integrate import integrate
from leastaction.methods import Galerkin, Method, family, require_member
from leastaction.methods import method as method_named
from leastaction.methods.quadrature import Quadrature, gauss, lagrange_basis, lobatto
from leastaction.numbers.precision import mpmath_digits
from leastaction.systems.lagrangian import Lagrangian

TABLE_DIGITS, MAP_DIGITS = 60, 40
START = (["3/10", "-1/2"], ["2/5", "7/10"])


@dataclass(frozen=True, eq=False)
class SameMap(figures.Drawn, picture=figures.draw_same_map):
    """Whether two methods are the same map. `la.analysis.same_map` gives it.

    `plot` draws how far apart one step leads over h, with a mass that depends on q and with a constant one.
    """

    first: Annotated[Method, "One method."]
    second: Annotated[Method, "The other."]
    always: Annotated[bool, "The same for every Lagrangian. ``bool(found)`` is this."]
    constant_mass: Annotated[bool, "The same for L = ½ vᵀMv − V(q) with a constant M."]
    h: Annotated[NDArray[np.float64], "The steps tried."]
    difference: Annotated[NDArray[np.float64], "shape (K,)", "How far one step leads them apart, with a mass M(q)."]
    constant_mass_difference: Annotated[NDArray[np.float64], "shape (K,)", "The same with a constant mass."]

    def __bool__(self) -> bool:
        return self.always

    def __repr__(self) -> str:
        pair = f"{self.first.name} and {self.second.name}"
        if self.always:
            return f"{pair} are the same map"
        if self.constant_mass:
            return (
                f"{pair} are the same map where the mass is constant, and not elsewhere "
                f"(a step of {self.h[0]:.3g} leads them {self.difference[0]:.1e} apart)"
            )
        return f"{pair} are different maps, also where the mass is constant"


def same_map(first: str | Method, second: str | Method) -> SameMap:
    """Whether two methods are the same map: always, for a constant mass, or not at all.

    Parameters
    ----------
    first, second : str or method
        The two methods.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.same_map("P3N4Q6Lob", "P4N4Q6Lob").constant_mass
    True
    """
    one, other = method_named(first), method_named(second)
    h = np.array([1 / 3, 1 / 6, 1 / 12])
    apart, apart_constant = (
        np.array([_apart(_system(constant), one, other, parts) for parts in (1, 2, 4)]) for constant in (False, True)
    )
    always, constant = (bool((x < 10.0 ** (8 - MAP_DIGITS)).all()) for x in (apart, apart_constant))
    return SameMap(one, other, always, constant, h, apart, apart_constant)


@dataclass(frozen=True)
class Equivalences(figures.Drawn, picture=figures.draw_equivalences):
    """What else a method is. `la.analysis.equivalences` gives it.

    `plot` draws what the method is (1) and is not (0): where the mass is constant, and for every Lagrangian.
    """

    method: Annotated[Galerkin, "Which method."]
    gauss: Annotated[bool, "Whether it is Gauss collocation with r stages."]
    lobatto_pair: Annotated[str, "Whether it is the Lobatto IIIA–IIIB pair with r stages."]
    twins: Annotated[tuple[Galerkin, ...], "Members up to s = r that are the same map for a constant mass."]

    def __repr__(self) -> str:
        r = self.method.rule.r
        where = {"always": "for every Lagrangian", "constant mass": "where the mass is constant"}
        lines, stages = [self.method.name], f"{r} stage{'s' if r > 1 else ''}"
        if self.gauss:
            lines.append(f"  is Gauss collocation with {stages}, for every Lagrangian")
        if self.lobatto_pair != "no":
            lines.append(f"  is the Lobatto IIIA–IIIB pair with {stages}, {where[self.lobatto_pair]}")
        if self.twins:
            lines.append(f"  is {', '.join(twin.name for twin in self.twins)} where the mass is constant")
        nothing = "  is neither a Gauss collocation nor a Lobatto IIIA–IIIB pair, nor another member of its rule"
        return "\n".join(lines if len(lines) > 1 else [*lines, nothing])


def equivalences(method: str | Method) -> Equivalences:
    """Whether a method is a Gauss collocation, a Lobatto IIIA–IIIB pair, or the same map as another member.

    Parameters
    ----------
    method : str or method
        A member PsNrQu.

    Raises
    ------
    ValueError
        The method is no member of the family.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.equivalences("P3N3Q4Lob")
    P3N3Q4Lob
      is the Lobatto IIIA–IIIB pair with 3 stages, for every Lagrangian
      is P2N3Q4Lob where the mass is constant
    """
    chosen = require_member(method_named(method), "equivalences", "to compare two maps use same_map")
    s, rule = chosen.s, chosen.rule
    r = rule.r
    is_gauss = s == r and _agree(_partitioned(chosen), _gauss_collocation(r))
    pair = "no"
    if r >= 2:
        if s == r and _agree(_partitioned(chosen), _lobatto_pair(r)):
            pair = "always"
        elif _agree(_nystrom(chosen), _nystrom_of(lobatto(r), *_lobatto_pair(r)[1:])):
            pair = "constant mass"
    twins = tuple(
        member
        for member in family(r, r)
        if member != chosen and member.rule == rule and _agree(_nystrom(member), _nystrom(chosen))
    )
    return Equivalences(chosen, is_gauss, pair, twins)


Tables = tuple[Any, ...]


def _agree(one: Tables, other: Tables) -> bool:
    if any((a.rows, a.cols) != (b.rows, b.cols) for a, b in zip(one, other, strict=True)):
        return False
    with mpmath_digits(TABLE_DIGITS):
        far = max(mpmath.norm(a - b, mpmath.inf) for a, b in zip(one, other, strict=True))
        return bool(far < mpmath.mpf(10) ** (15 - TABLE_DIGITS))


def _matrices(chosen: Galerkin) -> tuple[Any, Any, Any, Any]:
    table = chosen.exact_table(TABLE_DIGITS)
    c, b, l, dl = (mpmath.matrix(table[name]) for name in ("c", "b", "l", "dl"))
    return c, b, l, dl


@lru_cache(maxsize=64)
def _partitioned(chosen: Galerkin) -> Tables:
    """c, a, â of a member with r = s."""
    with mpmath_digits(TABLE_DIGITS):
        c, b, l, dl = _matrices(chosen)
        s = chosen.s
        a = l[:, 1:] * mpmath.inverse(dl[:, 1:])
        weighted = mpmath.diag(list(b))
        a_hat = -mpmath.inverse((weighted * dl[:, :s]).T) * (weighted * l[:, :s]).T
        return c, a, a_hat


@lru_cache(maxsize=64)
def _nystrom(chosen: Galerkin) -> Tables:
    """c, α, β, b of a member, for a constant mass."""
    with mpmath_digits(TABLE_DIGITS):
        c, b, l, dl = _matrices(chosen)
        s, weighted = chosen.s, mpmath.diag(list(b))
        K = dl[:, :s].T * weighted * dl[:, 1:]
        z = -mpmath.inverse(K) * (weighted * l[:, :s]).T
        return c, l[:, 1:] * z, z[s - 1 :, :], b


def _nystrom_of(rule: Quadrature, a: Any, a_hat: Any) -> Tables:
    """The Nyström table of a partitioned pair."""
    with mpmath_digits(TABLE_DIGITS):
        c, b = (mpmath.matrix(x) for x in rule.points(TABLE_DIGITS))
        return c, a * a_hat, b.T * a_hat, b


def _collocation(rule: Quadrature) -> Any:
    """a_ij = ∫₀^{c_i} of the Lagrange basis on the rule's own nodes, by a Gauss rule on [0, c_i]."""
    with mpmath_digits(TABLE_DIGITS):
        c, _ = rule.points(TABLE_DIGITS)
        x, w = gauss(rule.r).points(TABLE_DIGITS)
        values = [mpmath.matrix(lagrange_basis(c, [c_i * y for y in x], TABLE_DIGITS)[0]) for c_i in c]
        rows = [c_i * (mpmath.matrix([w]) * basis) for c_i, basis in zip(c, values, strict=True)]
        return mpmath.matrix([list(row) for row in rows])


@lru_cache(maxsize=32)
def _gauss_collocation(r: int) -> Tables:
    with mpmath_digits(TABLE_DIGITS):
        a = _collocation(gauss(r))
        return mpmath.matrix(gauss(r).points(TABLE_DIGITS)[0]), a, a


@lru_cache(maxsize=32)
def _lobatto_pair(r: int) -> Tables:
    """IIIA is collocation on the Lobatto nodes, and IIIB its symplectic partner b_j (1 − a_ji / b_i)."""
    with mpmath_digits(TABLE_DIGITS):
        a = _collocation(lobatto(r))
        c, b = lobatto(r).points(TABLE_DIGITS)
        partner = [[b[j] * (1 - a[j, i] / b[i]) for j in range(r)] for i in range(r)]
        return mpmath.matrix(c), a, mpmath.matrix(partner)


@lru_cache(maxsize=2)
def _system(constant_mass: bool) -> Lagrangian:
    """Two coordinates with nothing conserved but the energy."""

    def moving(q: Any, v: Any) -> Any:
        mass = (2, 3, 1) if constant_mass else (2 + np.sin(q[1]), 1 + q[0] ** 2, np.cos(q[0]))
        kinetic = mass[0] * v[0] ** 2 + mass[1] * v[1] ** 2 + mass[2] * v[0] * v[1]
        return kinetic / 2 - q[0] ** 4 / 4 + np.cos(q[0] + 2 * q[1])

    return Lagrangian(moving, n=2)


def _apart(system: Lagrangian, one: Method, other: Method, parts: int) -> float:
    """How far one step leads two methods apart."""
    h = f"1/{3 * parts}"
    ends = [integrate(system, m, *START, h=h, steps=1, digits=MAP_DIGITS) for m in (one, other)]
    return float(max(abs(ends[0].q[-1] - ends[1].q[-1]).max(), abs(ends[0].p[-1] - ends[1].p[-1]).max()))
