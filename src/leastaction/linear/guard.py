"""Is this h stable for this system? Asked before the run, answered with the limit and an alternative.

The method is stable while hω stays in its first interval, so the question is whether every frequency is below a limit:
`Quadratic.below` answers it in one factorisation at most. Frequencies themselves are computed only if some are above,
and the system is so small that all of them are known soon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import UnstableStepError
from leastaction.linear.forcing import Rayleigh
from leastaction.linear.highest import estimate
from leastaction.linear.oscillators import propagators
from leastaction.linear.propagator import Propagator
from leastaction.linear.stability import stable_intervals
from leastaction.linear.system import ALL_MODES
from leastaction.methods import Galerkin, Method, galerkin
from leastaction.methods.quadrature import gauss

FloatArray = NDArray[np.float64]

SCAN = 4000  # frequencies tried to find where damped steps begin to grow
SLACK = 1e-12  # of the trace and the determinant of a mode's step, for rounding
GROWTH = 1e-7  # per step; a free body's double eigenvalue 1 is computed to half the digits


def require_stable(propagator: Propagator) -> None:
    """Raise UnstableStepError if a motion of the system would grow.

    Undamped, every frequency must lie in a stable interval (for large systems: in the first one). With Rayleigh
    damping each mode's own 2 × 2 step decides, and for small systems with any damping the spectral radius of the step.
    For a large system with general damping the undamped part is judged.
    """
    system, method, h = propagator.system, propagator.method, propagator.h
    if h < 0:  # a damped motion grows backward in time: judge the same steps forward
        return require_stable(Propagator(system, method, -h))
    intervals = stable_intervals(method)
    if intervals[0][1] == np.inf:
        return
    if propagator.small and system.C is not None:
        radius = float(np.abs(np.linalg.eigvals(np.eye(2 * system.n) + propagator.operator.W)).max())
        if radius > 1 + GROWTH:
            raise _error(propagator, f"a step multiplies some motion by {radius:.6g}")
        return
    limit = intervals[0][1] / h
    if isinstance(system.C, Rayleigh):
        limit = _damped_limit(propagator, system.C)
    if system.below(limit):
        return
    if system.n > ALL_MODES:
        raise _error(propagator, f"modes grow whose frequencies are above {limit:.6g}")
    omega = system.modes().omega
    if isinstance(system.C, Rayleigh):
        unstable = omega[~_damped_stable(propagator, omega, system.C)]
    else:
        x = h * omega
        unstable = omega[(x > 0) & ~np.any([(lo < x) & (x < hi) for lo, hi in intervals], axis=0)]
    if unstable.size:
        raise _error(propagator, f"{unstable.size} of the {system.n} modes grow, the first at ω = {unstable[0]:.6g}")


def _error(propagator: Propagator, finding: str) -> UnstableStepError:
    system, method, h = propagator.system, propagator.method, propagator.h
    intervals = stable_intervals(method)
    written = " ∪ ".join(f"({lo:.6g}, {hi:.6g})" for lo, hi in intervals)
    if system.n <= ALL_MODES:
        highest, about, advice = system.omega_max, "", f"Use h < {system.stable_step(method):.6g}"
    else:
        highest, about = float(np.sqrt(estimate(system)[0])), "about "
        advice = (
            f"Use h below about {intervals[0][1] / highest:.3g} (system.stable_step({method.name!r}) knows it well)"
        )
    return UnstableStepError(
        f"{method.name} is not stable with h = {h:.6g} on this system: {finding}. The highest frequency is {about}"
        f"ω_max = {highest:.6g}, h ω_max = {h * highest:.6g}; undamped, the method is stable for h ω in {written}. "
        f"{advice}, or {stable_alternative(method).name}, which is stable for every h, or insist with "
        "allow_unstable=True."
    )


def stable_alternative(method: Method) -> Galerkin:
    """The member PsNsQ2sGau, stable for every h, of the same order or the next even one."""
    s = max(1, (method.order + 1) // 2)
    return galerkin(s, gauss(s))


def _damped_limit(propagator: Propagator, damping: Rayleigh) -> float:
    """The frequency below which every mode's step is stable, on a fine grid; ∞ if the system has none above."""
    system = propagator.system
    end = 2 * float(np.sqrt(estimate(system)[0])) or 1.0
    while True:
        omega = np.linspace(0, end, SCAN + 1)
        stable = _damped_stable(propagator, omega, damping)
        if not stable.all():
            return float(omega[max(int(np.argmin(stable)) - 1, 0)])
        if system.below(end):
            return np.inf
        end *= 2


def _damped_stable(propagator: Propagator, omega: FloatArray, damping: Rayleigh) -> NDArray[np.bool_]:
    """For each ω: are both eigenvalues of the mode's step inside the unit circle? |trace| ≤ 1 + det and det ≤ 1."""
    step = propagators(propagator.method, propagator.h, omega, damping.alpha + damping.beta * omega**2)
    trace, determinant = np.trace(step, axis1=1, axis2=2), np.linalg.det(step)
    return np.asarray((np.abs(trace) <= 1 + determinant + SLACK) & (determinant <= 1 + SLACK))
