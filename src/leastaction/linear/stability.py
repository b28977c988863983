"""Where a method is stable on a system of oscillators, from its exact step on one of them; and is this h stable?

The latter is asked before a run. The method is stable while hω stays in its first interval, so the question is whether
every frequency is below a limit: `Quadratic.below` answers it in one factorisation at most. Frequencies themselves are
computed only if some are above, and the system is so small that all of them are known soon.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import UnstableStepError
from leastaction.linear.forcing import Rayleigh
from leastaction.linear.modal import ALL_MODES, highest_estimate
from leastaction.methods import Galerkin, Method, galerkin
from leastaction.methods import method as by_name
from leastaction.methods.oscillator import bands, exact_step
from leastaction.methods.quadrature import gauss

if TYPE_CHECKING:
    from leastaction.linear.propagator import Propagator

FloatArray = NDArray[np.float64]
Interval = tuple[float, float]

SCAN = 4000  # frequencies tried to find where damped steps begin to grow
SLACK = 1e-12  # of the trace and the determinant of a mode's step, for rounding
GROWTH = 1e-7  # per step; a free body's double eigenvalue 1 is computed to half the digits


@lru_cache(maxsize=128)
def stable_intervals(method: Method | str) -> tuple[Interval, ...]:
    """Every interval of x = hω in which the powers of a method's step stay bounded, as floats.

    `la.analysis.stability` has the exact ends.

    Parameters
    ----------
    method : str or method
        The method.

    Returns
    -------
    tuple of (lower, upper)
        Ascending. The first interval begins at 0.

    Examples
    --------
    >>> import leastaction as la
    >>> la.linear.stable_intervals("newmark"), la.linear.stable_intervals("stormer-verlet")
    (((0.0, inf),), ((0.0, 2.0),))
    """
    roots, positive = bands(exact_step(by_name(method)))
    ends = [0.0, *map(float, roots), math.inf]
    found = tuple((ends[k], ends[k + 1]) for k, stable in enumerate(positive) if stable)
    return found if positive[0] else ((0.0, 0.0), *found)


def require_stable(propagator: Propagator) -> None:
    """Raise UnstableStepError if a motion of the system would grow.

    Undamped, every frequency must lie in a stable interval (for large systems: in the first one). With Rayleigh
    damping each mode's own 2 × 2 step decides, and for small systems with any damping the spectral radius of the step.
    For a large system with general damping the undamped part is judged.
    """
    system, method, h = propagator.system, propagator.method, propagator.h
    if h < 0:  # a damped motion grows backward in time: judge the same steps forward
        propagator, h = type(propagator)(system, method, -h), -h
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
        highest, about = float(np.sqrt(highest_estimate(system)[0])), "about "
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
    end = 2 * float(np.sqrt(highest_estimate(system)[0])) or 1.0
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
    step = _steps(propagator.method, propagator.h, omega, damping.alpha + damping.beta * omega**2)
    trace, determinant = np.trace(step, axis1=1, axis2=2), np.linalg.det(step)
    return np.asarray((np.abs(trace) <= 1 + determinant + SLACK) & (determinant <= 1 + SLACK))


def _steps(method: Method, h: float, omega: FloatArray, c: FloatArray) -> FloatArray:
    """The steps of a method on oscillators of mass one with damping c, (K, 2, 2) on (q, p)."""
    form = method.root.linear_form()
    whole = np.broadcast_to(np.eye(2), (len(omega), 2, 2))
    for part in method.parts:
        length = part * h
        x2, hc = (length * omega) ** 2, length * c
        N = form.A - hc[:, None, None] * form.D - x2[:, None, None] * form.B
        right = np.stack([x2[:, None] * form.beta, np.broadcast_to(form.start, (len(omega), len(form.A)))], axis=2)
        z = np.linalg.solve(N, right)  # from q, and from h p
        dq = form.end @ z
        hdp = -x2[:, None] * (form.mean @ z) - hc[:, None] * dq
        hdp[:, 0] -= x2
        whole = (np.eye(2) + np.stack([dq, hdp / length], axis=1) * [1.0, length]) @ whole
    return whole
