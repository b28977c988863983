"""Linear stability: where in x = hω the powers of a step on the oscillator stay bounded, exactly.

Ober-Blöbaum and Saake (2014), section 4.3. In the variables (p, ωq) a step of a member of the family is

    M = |  c   −b |     with rational c, a, b and c² + a b = 1 (see `leastaction.methods.oscillator`),
        |  a    c |

and is stable where ρ = b/a is positive and finite; that module explains why, also for rules that are not symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike, NDArray

from leastaction.analysis.rational_functions import algebraic, middle, quotient, value_at
from leastaction.docstrings import described, documented
from leastaction.methods import Galerkin, Method, family
from leastaction.methods import method as method_named
from leastaction.methods.oscillator import BITS, OscillatorStep, Root, bands, exact_step, zeros_between
from leastaction.numbers.precision import flint_bits

if TYPE_CHECKING:
    import sympy
    from matplotlib.axes import Axes

FACTOR_DIGITS = 30  # of a composition's factors in formulas
EXACT_DEGREE = 5  # up to this s the ends of intervals are algebraic numbers; above it they are floats


def iteration_matrix(method: str | Method) -> sympy.Matrix:
    """The matrix of one step on the oscillator L = ½ v² − ½ ω² q², in x = hω.

    Parameters
    ----------
    method : str or method
        Any method. Of a composition, whose factors are seldom rational, coefficients have thirty digits.

    Returns
    -------
    SymPy matrix
        M with (p, ωq)_{k+1} = M (p, ωq)_k.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.iteration_matrix("stormer-verlet")
    Matrix([
    [1 - x**2/2, x*(x - 2)*(x + 2)/4],
    [         x,          1 - x**2/2]])
    """
    import sympy

    chosen = method_named(method)
    x = sympy.Symbol("x")
    step = exact_step(chosen.root)
    (first, last), a, b = step.diagonal, x * quotient(step.a_by_x, x), x * quotient(step.b_by_x, x)
    root = sympy.Matrix([[quotient(first, x), sympy.factor(-b)], [sympy.factor(a), quotient(last, x)]])
    factors = chosen.factors(FACTOR_DIGITS)
    if len(factors) == 1:
        return root
    M = sympy.eye(2)
    for factor in factors:
        M = root.subs(x, sympy.Float(factor, FACTOR_DIGITS) * x) * M
    return M.applyfunc(sympy.cancel)


@described
@dataclass(frozen=True)
class Interval:
    """A stable interval of x = hω. It unpacks into its ends. `la.analysis.stability` gives it."""

    lower: Annotated[Any, "A SymPy number for s ≤ 5, else the nearest float."]
    upper: Annotated[Any, "As lower."]
    closed: Annotated[bool, "Whether the upper end is stable, too."] = False

    def __iter__(self) -> Iterator[Any]:
        return iter((self.lower, self.upper))

    def __getitem__(self, index: int) -> Any:
        return (self.lower, self.upper)[index]

    def __contains__(self, x: float) -> bool:
        return float(self.lower) < x < float(self.upper) or (self.closed and x == float(self.upper))

    @property
    def floats(self) -> tuple[float, float]:
        """Both ends as floats."""
        return float(self.lower), float(self.upper)

    def __repr__(self) -> str:
        lower, upper = self.floats
        return f"({_text(self.lower)}, {_text(self.upper)}{']' if self.closed else ')'}" + (
            "" if upper == math.inf or isinstance(self.upper, float) else f" ≈ ({lower:.10g}, {upper:.10g})"
        )


@described
@dataclass(frozen=True)
class Gap:
    """An unstable interval of x = hω. `la.analysis.stability` gives it.

    Gaps of members with s > 10 are thinner than the spacing of floats: then lower == upper, and `width` tells.
    """

    lower: Annotated[Any, "As of `Interval`."]
    upper: Annotated[Any, "As of `Interval`."]
    excess: Annotated[float, "By how much the largest |λ| of one step exceeds 1."]
    at: Annotated[float, "Where; inf means x → ∞."]
    width: Annotated[float, "How wide it is."]

    @property
    def growth(self) -> float:
        """The largest |λ| of one step, 1 + excess."""
        return 1 + self.excess

    def __repr__(self) -> str:
        lower, upper = float(self.lower), float(self.upper)
        if self.width == 0:
            return f"x = {lower:.10g}: powers grow linearly"
        end = "∞" if upper == math.inf else f"{upper:.10g}"
        place = f"({lower:.10g}, {end})" if self.width > 1e-8 else f"x = {lower:.10g}, {self.width:.3g} wide:"
        largest = "without bound"
        if self.excess < math.inf:
            amount = f"{self.growth:.6g}" if self.excess > 0.01 else f"1 + {self.excess:.3g}"
            largest = f"up to {amount}, " + (f"at x = {self.at:.6g}" if self.at < math.inf else "as x → ∞")
        return f"{place} |λ| {largest}"


@described
@dataclass(frozen=True)
class Stability:
    """Every stable interval of x = hω of a method, and the gaps between them. `la.analysis.stability` gives it.

    It is a sequence of `la.analysis.Interval`.
    """

    method: Annotated[Method, "Which method."]
    intervals: Annotated[tuple[Interval, ...], "Where it is stable."]
    gaps: Annotated[tuple[Gap, ...], "Where it is not."]

    @property
    def trace(self) -> sympy.Expr:
        """The trace of the iteration matrix in x: |trace| ≤ 2 where a symplectic method is stable."""
        import sympy

        return sympy.cancel(iteration_matrix(self.method).trace())

    @property
    def for_all_h(self) -> bool:
        """Whether every step is stable: ρ has no zero and no pole in x > 0 at all."""
        return not self.gaps

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.intervals)

    def __len__(self) -> int:
        return len(self.intervals)

    def __getitem__(self, index: int) -> Interval:
        return self.intervals[index]

    def stable(self, x: float) -> bool:
        """Whether the method is stable at x.

        Parameters
        ----------
        x : float
            hω.
        """
        return any(abs(x) in interval for interval in self.intervals)

    @documented("x")
    def growth(self, x: ArrayLike) -> NDArray[np.float64]:
        """The largest |λ| of one step, of the shape of x."""
        values, step = np.asarray(x, float), exact_step(self.method)
        squares = [fmpq(*float(y).as_integer_ratio()) ** 2 for y in values.ravel()]
        return np.array([1 + _excess(step, x2) for x2 in squares]).reshape(values.shape)

    def __repr__(self) -> str:
        if self.for_all_h:
            return f"{self.method.name} is stable for every x = hω > 0"
        stable = "\n".join(f"  stable    {interval!r}" for interval in self.intervals)
        return f"{self.method.name}, x = hω\n{stable}\n" + "\n".join(f"  unstable  {gap!r}" for gap in self.gaps)

    @documented()
    def plot(self, ax: Axes | None = None, x: tuple[float, float] | None = None) -> Axes:
        """Draw the moduli of both eigenvalues over x = hω, as the Galerkin paper's Figures 4.1 to 4.3.

        Parameters
        ----------
        {ax}
        x : tuple of float, optional
            The window.
        """
        from leastaction.analysis.figures import draw_stability, drawn

        return drawn(draw_stability, self, ax, x=x)


@lru_cache(maxsize=256)
def stability(method: str | Method) -> Stability:
    """Every interval of x = hω in which a method is stable, and how fast powers grow in the gaps. Exact.

    Parameters
    ----------
    method : str or method
        Any method.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.stability("simpson")
    P2N3Q4Lob, x = hω
      stable    (0, 2*sqrt(2)) ≈ (0, 2.828427125)
      stable    (2*sqrt(3), 2*sqrt(6)) ≈ (3.464101615, 4.898979486)
      unstable  (2.828427125, 3.464101615) |λ| up to 1.40703, at x = 3.15296
      unstable  (4.898979486, ∞) |λ| without bound
    """
    chosen = method_named(method)
    step = exact_step(chosen)
    roots, positive = bands(step)
    if step.exact and max(step.c.numerator.degree(), step.c.denominator.degree()) <= EXACT_DEGREE:
        import sympy

        bounds: list[Any] = [sympy.Integer(0), *map(algebraic, roots), sympy.oo]
    else:
        bounds = [0.0, *map(float, roots), math.inf]
    intervals, gaps = [], []
    for k, stable in enumerate(positive):
        if stable:
            intervals.append(Interval(bounds[k], bounds[k + 1], closed=not step.symplectic))
            if k and roots[k - 1].order % 2 == 0:
                gaps.append(Gap(bounds[k], bounds[k], 0.0, float(roots[k - 1]), 0.0))
        else:
            lower, upper = roots[k - 1] if k else None, roots[k] if k < len(roots) else None
            excess, at = _largest(step, lower, upper)
            width = math.inf if upper is None else float(upper) if lower is None else _distance(lower, upper)
            gaps.append(Gap(bounds[k], bounds[k + 1], excess, at, width))
    return Stability(chosen, tuple(intervals), tuple(gaps))


def stable_for_all_h(max_s: int = 8, max_r: int | None = None) -> tuple[Galerkin, ...]:
    """The members with s ≤ max_s and r ≤ max_r that are stable for every h.

    This is proved, not sampled: on the whole half-line x² > 0 their ρ has no zero and no pole, as the isolation of all
    complex roots of its numerator and denominator shows, and ρ(0) = 1.

    Parameters
    ----------
    max_s : int, default 8
        Highest degree.
    max_r : int, optional
        Highest number of nodes. Without `max_r`: s + 2.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.stable_for_all_h(3)
    (P1N1Q2Gau, P2N2Q4Gau, P3N3Q6Gau)
    """
    members = {
        member
        for s in range(1, max_s + 1)
        for member in family(s, s + 2 if max_r is None else max_r)
        if member.s == s and stability(member).for_all_h
    }
    return tuple(sorted(members, key=lambda m: (m.s, m.rule.r, m.rule.family)))


def _largest(step: OscillatorStep, lower: Root | None, upper: Root | None) -> tuple[float, float]:
    """By how much the largest |λ| between two ends exceeds 1, and where. |λ| grows with |c|; of a rotation with a
    factor, with det M.
    """
    c = step.c if step.symplectic else step.area
    for pole in zeros_between(c.denominator, lower, upper):
        return math.inf, float(pole)
    if upper is None and c.numerator.degree() > c.denominator.degree():
        return math.inf, math.inf
    slope = c.numerator.derivative() * c.denominator - c.numerator * c.denominator.derivative()
    candidates = [(_excess(step, middle(turn)), float(turn)) for turn in zeros_between(slope, lower, upper)]
    if upper is None:
        limit = c.numerator.leading_coefficient() / c.denominator.leading_coefficient()
        same_degree = c.numerator.degree() == c.denominator.degree()
        candidates.append((_above_one(Fraction(int(limit.p), int(limit.q)) if same_degree else Fraction(0)), math.inf))
    return max(candidates)


def _distance(lower: Root, upper: Root) -> float:
    """x_upper − x_lower, however near they are."""
    bits = BITS
    while True:
        with flint_bits(bits):
            a, b = lower.refined(bits), upper.refined(bits)
            width = b.x2.sqrt() - a.x2.sqrt()
            if width > 0 and width.rel_accuracy_bits() >= 53:
                return float(width.mid())
        bits *= 2


def _excess(step: OscillatorStep, x2: Any) -> float:
    """The larger |λ| of a step, less 1, at a rational x²."""
    if not step.symplectic:  # a rotation with the factor √det M
        area = value_at(step.area, x2)
        return math.inf if area is None else math.sqrt(area) - 1
    c = value_at(step.c, x2)
    return math.inf if c is None else _above_one(c)


def _above_one(c: Fraction) -> float:
    """The larger |λ| of a matrix with determinant one and half trace c, less 1."""
    return 0.0 if abs(c) <= 1 else float(abs(c) - 1) + math.sqrt(c * c - 1)


def _text(end: Any) -> str:
    if isinstance(end, float):
        return "∞" if end == math.inf else f"{end:.16g}"
    return "∞" if end == math.inf else str(end)
