"""Pace: variable steps that stay symplectic, by another time along the same orbits.

With dt = σ(q) ds, σ > 0, and the energy E of a motion,

    L̂(q, w) = σ(q) [ L(q, w/σ(q)) + E ],      w = dq/ds,

has the momenta of L, ∂L̂/∂w = ∂L/∂v, and its energy is K = σ (H − E). So where K = 0 the orbits are those of L, and
equal steps h of s are steps σ h of time. Any method of the family steps L̂ as it steps any Lagrangian.

Time and energy are conjugate, and L̂ makes use of it: E becomes one more coordinate, of a mass μ so great that it does
not move,

    L̂(q, E, w, u) = σ(q) [ L(q, w/σ(q)) + E ] + ½ μ u².

The force on this coordinate is ∂L̂/∂E = σ = dt/ds, so its momentum is the time. A step's impulse, t⁺ = t + Σ_i h b_i
σ(q_i), is the method's own quadrature, summed with compensation as all momenta are; with it the map of (q, E, p, t) is
symplectic. In a run of duration t and length s, E drifts by less than s t/μ < 10⁻⁹⁰ s t: not at all.

Where E changes, because L or σ depends on t or external forces act, the roles are exchanged: the time is a coordinate,
and its momentum is −E. With u = dt/ds and any number C > 0

    L̂(q, t, w, u) = u L(t, q, w/u) + ½ C (u/σ(t, q) − 1)²

has the momenta p = ∂L/∂v and p_t = −H + y/σ, y = C (u/σ − 1), and the energy y + y²/2C, which is zero where p_t = −H.
There u = σ, and the orbits are those of L, which may depend on t in any way: this is the motion in the extended phase
space (q, t, p, −E). External forces are (u F, −w·F) there: they change p, and by their work E. Constraints g(t, q) = 0
are constraints of (q, t). L̂ is regular wherever L is: it is convex in (w, u), u > 0, if L is in v. C has no influence
on the motion; it is chosen large against σ times the kinetic energy, since a step's u/σ − 1 is its error of y, over C.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import TraceError
from leastaction.kernel import loops
from leastaction.numbers.rounding import Digits, Reals
from leastaction.program import Builder, Program, dot
from leastaction.program.elimination import factors, square, substitute
from leastaction.reading import entry, integer, mapping
from leastaction.step.status import Failure
from leastaction.systems.defaults import Clock
from leastaction.systems.frequencies import SOON
from leastaction.systems.lagrangian import Lagrangian
from leastaction.trace.algebra import Algebra

if TYPE_CHECKING:
    from leastaction.systems.protocol import System

FloatArray = NDArray[np.float64]

STILL = 300  # μ = 2^STILL in float64, where numbers end beyond 2^1000; more digits add twice their bits
AUTO = "auto"
TIMES = 1.1 ** np.arange(-1500.0, 1500.0)  # the times in which a motion may turn, whatever the units
LONGEST = 600  # instructions of a pace that the library makes; its derivatives have a hundred times as many
# Parameters that a run brings along, by names that no function has: for a pace that the library makes, its size at the
# start and an energy; C, if time is a coordinate; and the end time of the run, if one was asked for. So another t_end
# needs no other code.
OWN = ("pace σ₀", "pace W")
STIFF = "pace C"
UNTIL = "pace t_end"
LOOKED = 65  # places in a step that failed, at which the sign of σ is looked for
STIFFNESS = 30.0  # C in units of σ W at the start


class Paced(Lagrangian):
    """L̂: a Lagrangian with one more coordinate and momentum: the energy and the time of its motions.

    of       the Lagrangian, n coordinates; this system has n + 1
    sigma    (t, q, v, params) ↦ σ; its parameters are those of L and, if the library has made it, OWN
    bits     of μ = 2^bits
    clock    the time is the last coordinate where E changes, else the last momentum
    """

    def __init__(self, of: Lagrangian, sigma: Program, bits: int = STILL) -> None:
        if of.inputs:
            raise ValueError(
                f"pace= is not for {of.name}, which is driven by {', '.join(of.inputs)}: inputs belong to steps of "
                "equal time. Take equal steps"
            )
        changes = of.depends_on_time or of.forced or bool(of.m) or sigma.depends("sigma", "t")
        self.of, self.sigma, self.bits = of, sigma, bits
        self.n, self.name, self.fn, self.force, self.constraints = of.n + 1, of.name, None, None, None
        self.inputs, self.clock = {}, Clock("q" if changes else "p", self.n)
        self.names = (*of.names, "time" if changes else "E") if of.names else ()
        more = dict.fromkeys((*(OWN if self.automatic else ()), *((STIFF,) if changes else ()), UNTIL), 1.0)
        self._given = {**of._given, **more}
        self._defaults = {**of._defaults, **{name: np.array(x) for name, x in more.items()}}
        if changes:
            self._with_time()
        else:
            self._with_energy()

    def _blocks(self, *names: str) -> Algebra:
        added = len(self._given) - len(self.of._given)  # parameters that L does not have
        sizes = {"t": 1, "q": self.n, "v": self.n, "params": self.of.program.inputs[-1][1] + added}
        return Algebra([(name, sizes[name]) for name in names])

    def _with_energy(self) -> None:
        """σ (L + E) + ½ μ u²."""
        B, own = self._blocks("t", "q", "v", "params"), self.of.program.inputs[-1][1]
        (t,), (*q, E), (*w, u), params = (B.input(name) for name, _ in B.inputs)
        (s,) = B.inline(self.sigma, t=[t], q=q, v=w, params=params[: self.sigma.inputs[-1][1]])["sigma"]
        s = _positive(B, s)
        (L,) = B.inline(self.of.program, t=[t], q=q, v=[B.div(x, s) for x in w], params=params[:own])["L"]
        still = B.mul(B.const(Fraction(2) ** (self.bits - 1)), B.op("sq", u))
        self.program, self.still = B.build(L=[B.add(B.mul(s, B.add(L, E)), still)]), (self.n - 1,)

    def _with_time(self) -> None:
        """u L + ½ C (u/σ − 1)², the forces (u F, −w·F) and the constraints."""
        of, own, of_sigma = self.of, self.of.program.inputs[-1][1], self.sigma.inputs[-1][1]
        B = self._blocks("t", "q", "v", "params")
        _, (*q, t), (*w, u), params = (B.input(name) for name, _ in B.inputs)
        (s,) = B.inline(self.sigma, t=[t], q=q, v=w, params=params[:of_sigma])["sigma"]
        s, u = _positive(B, s), _positive(B, u)
        v = [B.div(x, u) for x in w]
        (L,) = B.inline(of.program, t=[t], q=q, v=v, params=params[:own])["L"]
        off = B.mul(B.mul(B.const(0.5), params[-2]), B.op("sq", B.sub(B.div(u, s), B.const(1.0))))
        self.program = B.build(L=[B.add(B.mul(u, L), off)])
        self.rest = B.build(rest=[*([B.const(0.0)] * of.n), s])
        if of.force is not None:
            B = self._blocks("t", "q", "v", "params")
            _, (*q, t), (*w, u), params = (B.input(name) for name, _ in B.inputs)
            F = B.inline(of.force, t=[t], q=q, v=[B.div(x, u) for x in w], params=params[:own])["F"]
            work = B.sum(B.mul(f, x) for f, x in zip(F, w, strict=True))
            self.force = B.build(F=[*(B.mul(u, f) for f in F), B.sub(B.const(0.0), work)])
        if of.constraints is not None:
            B = self._blocks("t", "q", "params")
            _, (*q, t), params = (B.input(name) for name, _ in B.inputs)
            self.constraints = B.build(g=B.inline(of.constraints, t=[t], q=q, params=params[:own])["g"])

    def __reduce__(self) -> tuple[Any, ...]:
        """The arguments with which another process makes the system."""
        return Paced, (self.of, self.sigma, self.bits)

    def paces(self, t: FloatArray, q: FloatArray, params: FloatArray) -> FloatArray:
        """σ at K times and positions, with parameters (K, …)."""
        rows = np.concatenate([t[:, None], q, np.zeros_like(q), params[:, : self.sigma.inputs[-1][1]]], axis=1)
        return loops.evaluate(self.sigma, rows)[:, 0]

    @property
    def in_time(self) -> Lagrangian:
        return self.of

    @property
    def automatic(self) -> bool:
        """Whether the library has made the pace."""
        return self.sigma.inputs[-1][1] > self.of.program.inputs[-1][1]

    @property
    def moved_by_time(self) -> bool:
        """Whether E changes because L or σ depends on t, not only by forces."""
        return bool(self.of.depends_on_time or self.sigma.depends("sigma", "t"))

    def own(
        self, t: float, q: FloatArray, p: FloatArray, v: FloatArray, a: FloatArray, params: FloatArray
    ) -> FloatArray:
        """The parameters OWN of motions that begin with these states and accelerations, a row for each.

        W is the sum of the kinetic energy and g·M⁻¹g/ω². ω may vanish at the start, so ω is also taken a little later:
        at the first time τ at which the motion q + v τ + ½ a τ² has a frequency ω ≥ SOON/τ.
        """
        measures, tau = _measures(self.of), TIMES[:, None]
        found = np.empty((len(q), len(OWN)))
        for i in range(len(q)):
            places = np.vstack([q[i : i + 1], q[i] + tau * (v[i] + tau * a[i] / 2)])
            fixed = np.broadcast_to(params[i], (len(places), params.shape[1]))
            rows = np.concatenate([np.full((len(places), 1), t), places, np.zeros_like(places), fixed], axis=1)
            with np.errstate(all="ignore"):
                frequency, power = loops.evaluate(measures, rows).T
                omega = np.abs(frequency) ** 0.25
                later = np.flatnonzero(omega[1:] * TIMES >= SOON)
                W = 0.5 * abs(p[i] @ v[i]) + power[0] / max(omega[0], omega[1 + later[0]] if len(later) else 0.0) ** 2
                found[i] = (frequency[0] + (power[0] / W if power[0] else 0.0) ** 2) ** -0.25, W
        return found

    def explain(self, failure: Failure, h: float) -> tuple[str, str]:
        reason, advice = super().explain(failure, h)
        return reason, f"{advice}. A step has no solution, either, where the pace σ is not positive"

    def not_positive(self, t: float, q: FloatArray, p: FloatArray, params: FloatArray, h: float) -> str | None:
        """Where the pace is no positive number in the next step h of s, and what to do; None if it is positive there.
        The way is q + v τ + ½ a τ², dτ = σ ds.
        """
        own = params[: len(self.of.values())]
        v, tau = self.of.velocity(q, p, t, own), 0.0
        with np.errstate(all="ignore"):
            for _ in range(LOOKED):
                (there,) = self.of.places_ahead(t, q[None], v[None], own[None], [tau])
                there = there if np.isfinite(there).all() else q[None] + v * tau
                (sigma,) = self.paces(np.array([t + tau]), there, params[None])
                if not 0 < sigma < np.inf:
                    return (
                        f"the pace must be a positive number wherever the motion goes; ahead, at t ≈ {t + tau:.6g}, "
                        f"q ≈ {there[0]}, it is σ = {sigma:.3g}. Give a pace that is positive there, too, or end the "
                        "run before, with an event"
                    )
                tau += float(sigma) * h / (LOOKED - 1)
        return None

    def record(self) -> dict[str, Any]:
        pace = {"of": self.of.record(), "sigma": self.sigma.to_json(), "bits": self.bits}
        return {**super().record(), "pace": pace}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Paced:
        """A system from the header of a file. Everything in it is checked."""
        pace = mapping(entry(record, "pace"), "pace")
        of = Lagrangian.from_record(mapping(entry(pace, "of"), "the system of a pace"))
        sigma = Program.from_json(entry(pace, "sigma"))
        *blocks, (_, size) = of.program.inputs
        wanted = [(*blocks, ("params", size + more)) for more in (0, len(OWN))]
        if sigma.inputs not in wanted or sigma.outputs != (("sigma", 1),):
            raise ValueError(f"the pace takes {of.program.inputs} to sigma; got {sigma.inputs} and {sigma.outputs}")
        if sigma.depends("sigma", "v"):
            raise ValueError("a pace depends on time, positions and parameters alone")
        return cls(of, sigma, integer(entry(pace, "bits"), "bits", 1, 10**9))

    def __repr__(self) -> str:
        return f"Paced({self.of!r})"


def _positive(B: Algebra, x: int) -> int:
    """x, but NaN where x is negative, so that a step fails there: (√x)², which an Algebra simplifies."""
    return B.op("sq", B.op("sqrt", x))


def paced(system: Any, pace: Callable[..., Any] | str, reals: Reals) -> Paced:
    """A system with the pace that a user asked for, in the arithmetic of the run."""
    if system.linear:
        raise ValueError(
            f"pace= is for la.Lagrangian: the frequencies of {system.name} are the same everywhere, and so is the best "
            "step"
        )
    if not system.clock.steady:
        raise ValueError(f"{system.name} has a pace already: give pace= with the system it was made from, system.of")
    if pace != AUTO and not callable(pace):
        raise TypeError(f'pace must be a function σ(q, …), as in pace=lambda q: np.sum(q**2), or "auto"; got {pace!r}')
    bits = STILL + (2 * reals.bits if isinstance(reals, Digits) else 0)
    known = system.__dict__.setdefault("_paced", {})  # the code compiled for a Paced system is found again, too
    if (pace, bits) not in known:
        known[pace, bits] = Paced(system, traced(pace, system) if callable(pace) else automatic(system), bits)
    found: Paced = known[pace, bits]
    return found


def worth_a_pace(system: System) -> bool:
    """Whether a pace that the library makes is worth a try: where E is constant, and the pace can be made."""
    if system.linear or not system.clock.steady or system.depends_on_time or system.forced or system.m:
        return False
    try:
        automatic(cast(Lagrangian, system.expanded()))
    except ValueError:
        return False
    return True


def automatic(system: Lagrangian) -> Program:
    """A pace made from L: one over the frequency that L has at q, measured at rest,

        σ = σ₀⁻¹ [ tr A² + (g·M⁻¹g / W)² ]^(−¼),      A = M⁻¹ ∂²L/∂q²,   g = ∂L/∂q,   M = ∂²L/∂v²,   all at v = 0.

    The first summand is Σ ω⁴ of the frequencies and growth rates ω that the motion has near q; linear changes of the
    coordinates do not change it. The second is there because the first may vanish, as where a potential turns from
    convex to concave: g·M⁻¹g is force² over mass, and W an energy. For Kepler's problem both are powers of the
    distance: σ is r^(3/2) far out, and r² where the second one dominates. σ₀ is such that σ = 1 at the start.
    """
    if system.m:
        raise ValueError(
            'pace="auto" is for systems without constraints: it would need the frequencies of the motions that the '
            f"constraints of {system.name} leave free. Give pace= as a function of q"
        )
    found = _measures(system)
    B = Builder([*found.inputs[:-1], ("params", found.inputs[-1][1] + len(OWN))])
    *params, unit, W = B.input("params")
    at = B.inline(found, t=B.input("t"), q=B.input("q"), v=B.input("v"), params=params)
    (frequency,), (power,) = at["frequency"], at["power"]
    inside = B.add(frequency, B.op("sq", B.div(power, W)))
    if len(B.code) > LONGEST:
        raise ValueError(
            f'pace="auto" of {system.name} takes {len(B.code)} instructions, and its derivatives take minutes to '
            "compile: give pace= as a function of q, such as one over the sum of all 1/distance"
        )
    return B.build(sigma=[B.div(B.div(B.const(1.0), B.op("sqrt", B.op("sqrt", inside))), B.op("abs", unit))])


@lru_cache(maxsize=64)
def _measures(system: Lagrangian) -> Program:
    """(t, q, v, params) ↦ frequency, tr A², and power, g·M⁻¹g, at v = 0."""
    n, second = system.n, system.hessian
    B = Builder(second.inputs)
    at = B.at(second, B.blocks() | {"v": [0.0] * n})
    M = factors(square(at["Lvv"]))
    A = [substitute(M, at["Lqq"][k::n]) for k in range(n)]  # columns
    frequency = sum(A[j][k] * A[k][j] for j in range(n) for k in range(n))
    return B.finished(frequency=[frequency], power=[dot(at["Lq"], substitute(M, at["Lq"]))])


def traced(pace: Callable[..., Any], system: Lagrangian) -> Program:
    """The Program of a pace σ(q, …) or σ(t, q, …), which may ask for parameters of the system by their names."""
    from leastaction.trace.function import Role, trace

    shapes = {name: np.shape(value) for name, value in system.params.items()}
    try:
        arguments = list(inspect.signature(pace).parameters.values())
    except (TypeError, ValueError):
        raise TypeError("the function of pace= does not tell its arguments: write it in Python") from None
    takes = [a.name for a in arguments if a.name in shapes]
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    free = [a.name for a in arguments if a.kind in positional and a.default is a.empty and a.name not in takes]
    time = len(free) == 2 and free[0] in ("t", "time")
    if (len(free) != 1 and not time) or free[-1] in ("t", "time", "v"):
        raise TraceError(
            "the pace must be a function σ(q) of the position, or σ(t, q), and may ask for parameters of the system by "
            f"name ({', '.join(shapes) or 'it has none'}); got {getattr(pace, '__name__', 'σ')}"
            f"({', '.join(a.name for a in arguments)})"
        )

    def of_state(*state: Any, **values: Any) -> Any:
        return pace(*state[:-1], **values)  # without the velocity

    of_state.__module__ = getattr(pace, "__module__", __name__)  # where errors are looked for
    try:
        return trace(of_state, system.n, shapes, time, Role("sigma", "the pace"), takes)
    except TraceError as error:
        raise TraceError(f"the function of pace=, σ(q): {error}") from error
