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
from leastaction.linear.propagator import Propagator
from leastaction.linear.stability import stable_alternative, stable_intervals
from leastaction.linear.system import ALL_MODES
from leastaction.methods import Composition, Galerkin, RungeKutta4
from leastaction.step.kronecker import kronecker_of

FloatArray = NDArray[np.float64]

SCAN = 4000  # frequencies tried to find where damped steps begin to grow
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
    """For each ω: is the mode's step stable?"""
    method, h = propagator.method, propagator.h
    if isinstance(method, RungeKutta4):
        return _damped_modes_stable_rk4(h, omega, damping)
    root, parts = (method.root, method.parts) if isinstance(method, Composition) else (method, np.ones(1))
    step = np.broadcast_to(np.eye(2), (len(omega), 2, 2))
    for part in parts:
        step = _damped_modes(root, part * h, omega, damping) @ step
    return _both_inside(step)


def _damped_modes(method: Galerkin, h: float, omega: FloatArray, damping: Rayleigh) -> FloatArray:
    """For each ω the step of one mode with unit mass, as a matrix on (q, p), (K, 2, 2)."""
    small = kronecker_of(method)
    x2, c = (h * omega) ** 2, h * (damping.alpha + damping.beta * omega**2)
    N = small.A - c[:, None, None] * small.D - x2[:, None, None] * small.B
    right = np.zeros((len(omega), method.s, 2))  # unit mass; from q = 1, and from h p = 1
    right[:, :, 0] = x2[:, None] * small.beta
    right[:, -1, 1] = 1.0
    z = np.linalg.solve(N, right)
    dp = -x2[:, None] * (np.array([1.0, 0.0]) + small.mean @ z) - c[:, None] * z[:, -1]
    rows = [1 + z[:, -1, 0], h * z[:, -1, 1]], [dp[:, 0] / h, 1 + dp[:, 1]]
    return np.moveaxis(np.array(rows), 2, 0)


def _both_inside(step: FloatArray) -> NDArray[np.bool_]:
    """For each matrix: are both eigenvalues inside the unit circle? |trace| ≤ 1 + det and det ≤ 1."""
    trace, determinant = np.trace(step, axis1=1, axis2=2), np.linalg.det(step)
    slack = 1e-12
    return np.asarray((np.abs(trace) <= 1 + determinant + slack) & (determinant <= 1 + slack))


def _damped_modes_stable_rk4(h: float, omega: FloatArray, damping: Rayleigh) -> NDArray[np.bool_]:
    """For each ω: |1 + μ + μ²/2 + μ³/6 + μ⁴/24| ≤ 1 at both roots μ/h of λ² + cλ + ω² = 0?"""
    half = (damping.alpha + damping.beta * omega**2) / 2
    root = np.sqrt((half**2 - omega**2).astype(complex))
    mu = h * np.array([-half + root, -half - root])
    growth = np.abs(1 + mu * (1 + mu / 2 * (1 + mu / 3 * (1 + mu / 4))))
    return np.asarray((growth <= 1 + 1e-12).all(axis=0))
