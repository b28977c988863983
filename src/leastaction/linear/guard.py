"""Is this h stable for this system? Asked before the run, answered with ω_max, the limit and an alternative."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import UnstableStepError
from leastaction.linear.forcing import Rayleigh
from leastaction.linear.stability import stable_alternative, stable_intervals
from leastaction.linear.system import ALL_MODES, Quadratic
from leastaction.linear.weak import weak
from leastaction.methods import Galerkin, Method

FloatArray = NDArray[np.float64]

SCAN = 4000  # frequencies tried between 0 and ω_max where not all are known


def require_stable(system: Quadratic, method: Method, h: float) -> None:
    """Raise UnstableStepError if a mode of the system would grow.

    Undamped, every frequency must lie in a stable interval (for large systems: ω_max in the first one). With Rayleigh
    damping each mode's own 2 × 2 step decides. General damping mixes the modes: its undamped part is judged.
    """
    intervals = stable_intervals(method)
    if intervals[0][1] == np.inf:
        return
    damping = system.C if isinstance(system.C, Rayleigh) and isinstance(method, Galerkin) else None
    if system.n <= ALL_MODES:
        omega = system.modes.omega
    elif damping is None:
        omega = np.array([system.omega_max])
        intervals = intervals[:1]
    else:
        omega = np.linspace(0, system.omega_max, SCAN + 1)
    if damping is not None:
        assert isinstance(method, Galerkin)
        unstable = omega[~damped_modes_stable(method, h, omega, damping)]
    else:
        x = h * omega
        unstable = omega[~np.any([(lo < x) & (x < hi) for lo, hi in intervals], axis=0) & (omega > 0)]
    if unstable.size:
        limit, alternative = system.stable_step(method), stable_alternative(method)
        count = f"{unstable.size} of the {system.n} modes grow" if system.n <= ALL_MODES else "modes grow"
        raise UnstableStepError(
            f"{method.name} is not stable with h = {h:.6g} on this system: {count}, the first at ω = {unstable[0]:.6g}. "
            f"The highest frequency is ω_max = {system.omega_max:.6g}, h ω_max = {h * system.omega_max:.6g}; the method is "
            f"stable for h ω in {_written(stable_intervals(method))}. Use h < {limit:.6g}, or {alternative.name}, which is "
            "stable for every h, or insist with allow_unstable=True."
        )


def damped_modes_stable(method: Galerkin, h: float, omega: FloatArray, damping: Rayleigh) -> NDArray[np.bool_]:
    """For each ω: are both eigenvalues of one mode's step inside the unit circle? |trace| ≤ 1 + det and det ≤ 1."""
    small = weak(method)
    x2, c = (h * omega) ** 2, h * (damping.alpha + damping.beta * omega**2)
    N = small.A - c[:, None, None] * small.D - x2[:, None, None] * small.B
    # unit mass, q = 1 and then h p = 1
    right = np.zeros((len(omega), method.s, 2))
    right[:, :, 0] = x2[:, None] * small.beta[:-1]
    right[:, 0, 1] = -1.0
    z = np.linalg.solve(N, right)
    dp = -x2[:, None] * (np.array([1.0, 0.0]) + small.beta[1:] @ z) - c[:, None] * z[:, -1]
    trace = 2 + z[:, -1, 0] + dp[:, 1]
    determinant = (1 + z[:, -1, 0]) * (1 + dp[:, 1]) - z[:, -1, 1] * dp[:, 0]
    slack = 1e-12
    return np.asarray((np.abs(trace) <= 1 + determinant + slack) & (determinant <= 1 + slack))


def _written(intervals: tuple[tuple[float, float], ...]) -> str:
    return " ∪ ".join(f"({lo:.6g}, {hi:.6g})" for lo, hi in intervals)
