"""Phase and energy on the harmonic oscillator, in closed form.

A stable step of the family on L = ½ v² − ½ ω² q² is a rotation in scaled variables (`leastaction.methods.oscillator`):

    M^k = |  cos kθ      −√ρ sin kθ |     cos θ = c(x²),   sin θ = a √ρ,   x = hω,
          | sin kθ / √ρ      cos kθ |

so that the method produces the frequency ω_h = θ/h instead of ω, and the energy E = ½ (p² + ω²q²) oscillates between
½ A² and ½ A²/ρ, A² = p₀² + ρ ω²q₀²: a bounded error at every time, since p² + ρ ω²q² is conserved. A method that does
not keep areas has the factor √det M in each step: RK4 is a rotation (ρ = 1) that shrinks, E_k = E_0 (1 − x⁶/72 +
x⁸/576)^k.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.analysis.rational_functions import phase_series, quotient, series, to_sympy, value
from leastaction.analysis.stability import Stability, stability
from leastaction.docstrings import described, documented
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.methods.oscillator import OscillatorStep, exact_step, positive_roots
from leastaction.numbers.arrays import FloatArray

if TYPE_CHECKING:
    import sympy


@described
@dataclass(frozen=True)
class Leading:
    """The first term of a series, coefficient · x^power. `la.analysis.dispersion` gives it."""

    coefficient: Annotated[Any, "Exact."]
    power: Annotated[int, "Of x."]

    def __repr__(self) -> str:
        if self.coefficient == 0:
            return "0, exactly"
        return f"{self.coefficient} x^{self.power} + …"


@dataclass(frozen=True)
class Dispersion(figures.Drawn, picture=figures.draw_dispersion):
    """The frequency that a method produces on the harmonic oscillator, and what becomes of the energy.

    x = hω throughout. `la.analysis.dispersion` gives it. `plot` draws |ω_h/ω − 1| and the oscillation of the energy
    over x, with their first terms.
    """

    method: Annotated[Method, "Which method."]
    phase_error: Annotated[Leading, "The first term of ω_h/ω − 1."]
    energy_error: Annotated[Leading, "Of ρ − 1, the oscillation of the energy; for RK4 of E_{k+1}/E_k − 1, its loss."]

    @property
    def cosine(self) -> sympy.Expr:
        """cos θ in x, θ being the angle of one step."""
        import sympy

        return quotient(self._step.c, sympy.Symbol("x"))

    @property
    def rho(self) -> sympy.Expr:
        """ρ in x: p² + ρ (ωq)² is conserved."""
        import sympy

        return quotient(self._step.rho, sympy.Symbol("x"))

    @property
    def _step(self) -> OscillatorStep:
        return exact_step(self.method)

    def series(self, terms: int = 3) -> sympy.Expr:
        """ω_h/ω as an exact series in x = hω.

        Parameters
        ----------
        terms : int, default 3
            How many terms beyond the 1.
        """
        import sympy

        x = sympy.Symbol("x")
        found = islice(_nonzero(partial(_phase_terms, self._step)), terms + 1)
        return sympy.Add(*(a * x**power for a, power in found))

    @documented("x")
    def phase(self, x: ArrayLike) -> FloatArray:
        """The angle θ of one step, continued from θ ≈ x. Where the method is unstable, θ is a multiple of π."""
        values = np.asarray(x, float)
        return np.array([_phase(self.method, float(y)) for y in values.ravel()]).reshape(values.shape)

    @documented("x")
    def frequency_ratio(self, x: ArrayLike) -> FloatArray:
        """ω_h/ω, of the shape of x."""
        return self.phase(x) / np.asarray(x, float)

    def energy(self, x: float, k: ArrayLike, p0: float = 1.0, wq0: float = 0.0) -> FloatArray:
        """The energy after k steps, in closed form.

        Parameters
        ----------
        x : float
            hω.
        k : array_like
            How many steps.
        p0, wq0 : float, default 1 and 0
            The start (p, ωq).

        Raises
        ------
        ValueError
            The method is unstable at x.
        """
        steps, theta = np.asarray(k, float), float(self.phase(x))
        root, area = math.sqrt(self._positive_rho(x)), value(self._step.area, x)
        assert area is not None
        p = np.cos(steps * theta) * p0 - root * np.sin(steps * theta) * wq0
        wq = np.sin(steps * theta) / root * p0 + np.cos(steps * theta) * wq0
        return 0.5 * (p**2 + wq**2) * float(area) ** steps

    def energy_bounds(self, x: float, p0: float = 1.0, wq0: float = 0.0) -> tuple[float, float]:
        """The least and the largest energy that a run can reach: ½ A² and ½ A²/ρ, in order.

        Parameters
        ----------
        x : float
            hω.
        p0, wq0 : float, default 1 and 0
            The start (p, ωq).

        Raises
        ------
        ValueError
            The method is unstable at x, or is RK4, whose energy has no bounds.
        """
        if not self.method.symplectic:
            raise ValueError(f"{self.method!r} keeps the energy in no bounds: every step loses or gains some of it")
        rho = self._positive_rho(x)
        square = p0**2 + rho * wq0**2
        low, high = sorted((0.5 * square, 0.5 * square / rho))
        return low, high

    def _positive_rho(self, x: float) -> float:
        rho = value(self._step.rho, x)
        if rho is None or rho <= 0:
            raise ValueError(f"{self.method.name} is not stable at x = hω = {x:g}: the energy grows without bound")
        return float(rho)

    def __repr__(self) -> str:
        what = "relative oscillation of the energy" if self.method.symplectic else "E_{k+1}/E_k − 1"
        return (
            f"{self.method.name} on the harmonic oscillator, x = hω\n  ω_h/ω − 1 = {self.phase_error!r}\n  {what} = "
            f"{self.energy_error!r}"
        )


@lru_cache(maxsize=128)
def dispersion(method: str | Method) -> Dispersion:
    """The frequency that a method produces on the harmonic oscillator, and its energy error, exactly.

    Parameters
    ----------
    method : str or method
        A symmetric member, or RK4.

    Raises
    ------
    ValueError
        The method is a composition, or is not symmetric.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.dispersion("simpson")
    P2N3Q4Lob on the harmonic oscillator, x = hω
      ω_h/ω − 1 = 1/2880 x^4 + …
      relative oscillation of the energy = 1/288 x^4 + …
    """
    import sympy

    chosen = method_named(method)
    if len(chosen.parts) > 1:
        raise ValueError(
            f"{chosen.name} is a composition, whose factors are seldom rational, so it has no exact series. "
            "analysis.stability and analysis.iteration_matrix take it"
        )
    step = exact_step(chosen)
    if step.diagonal[0] != step.diagonal[1]:
        raise ValueError(
            f"{chosen.name} is not symmetric in time, and the closed forms of analysis.dispersion are those of "
            "symmetric members. analysis.stability and analysis.iteration_matrix take it"
        )
    energy = step.rho if step.symplectic else step.area
    phase, lost = (
        Leading(*next((term for term in _nonzero(terms) if term[1]), (sympy.Integer(0), 0)))
        for terms in (partial(_phase_terms, step), partial(series, energy))
    )
    return Dispersion(chosen, phase, lost)


def _nonzero(terms: Callable[[int], list[Any]]) -> Iterator[tuple[Any, int]]:
    """The coefficients that are not zero, each with its power of x; `terms(count)` computes a series in x²."""
    seen = 0
    for count in (8, 16, 32, 64, 128):
        yield from ((to_sympy(a), 2 * (seen + k)) for k, a in enumerate(terms(count)[seen:]) if a != 0)
        seen = count


def _phase_terms(step: OscillatorStep, count: int) -> list[Any]:
    """Coefficients of θ/x in powers of x²."""
    return phase_series(step.a_by_x, step.c, step.rho, count)


@lru_cache(maxsize=128)
def _turns(chosen: Method) -> tuple[Stability, tuple[float, ...]]:
    """The stable bands, and the points inside them at which a step is ±1, where θ passes a multiple of π."""
    found = stability(chosen)
    zeros = [float(root) for root in positive_roots(exact_step(chosen).a_by_x) if root.order > 0]
    return found, tuple(x for x in zeros if any(x in interval for interval in found))


def _phase(chosen: Method, x: float) -> float:
    if x == 0:
        return 0.0
    found, touching = _turns(chosen)
    passed = sum(float(gap.upper) <= x for gap in found.gaps) + sum(point < x for point in touching)
    if not found.stable(x):
        return math.pi * (passed + 1)
    step = exact_step(chosen)
    c, a, rho = value(step.c, x), value(step.a_by_x, x), value(step.rho, x)
    assert c is not None and a is not None and rho is not None
    # In each band cos θ runs from one of ±1 to the other; the sign just after the band's lower end tells from which.
    lower = max(
        [0.0, *(float(gap.upper) for gap in found.gaps if float(gap.upper) <= x), *(p for p in touching if p < x)]
    )
    after = value(step.c, lower + 1e-9 * (x - lower))
    begins = 1 if lower == 0 or (after is not None and after > 0) else -1
    return math.pi * passed + math.atan2(abs(float(a)) * x * math.sqrt(rho), float(begins * c))
