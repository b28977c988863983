"""The error of the members PsNsQ2sGau on M q̈ + K q = 0, by formulas, for the frequencies that a start excites.

On an oscillator of frequency ω one step turns (p, ωq) by an angle θ instead of x = hω: e^{iθ} = P(ix)/P(−ix) is the
diagonal Padé approximant of e^{ix}, and P(ix) e^{−ix/2} is, up to factors, the spherical Hankel function of x/2. So

    θ = x + δ,     tan(δ/2) = j_s(x/2) / y_s(x/2),

correct to the last bit also where δ is far below x. After N steps the only error of q is the turn N δ: the amplitude is
exact. With modes φ_k and amplitudes a_k = φ_kᵀM q₀ − i φ_kᵀp₀/ω_k the position at the end T = N h is the real part of
Σ_k φ_k a_k e^{iω_kT} e^{iN δ_k}, and the imaginary part is the position where every mode is a quarter of its period
later. So

    |Σ_k φ_k a_k e^{iω_kT} 2 sin(N δ_k/2)|

is the error, also where T happens to be a time at which the error of the real part vanishes.

The modes of large systems are not known. For these the norm of the error, ∫ (2 sin(N δ/2))² dμ(ω), is found by Gauss
quadrature for the measure μ that the start has on the spectrum: its nodes and weights are those of Lanczos' process on
M⁻¹K, begun with the start. δ² is like ω^{4s+2}, a polynomial of low degree in ω², so a few dozen products tell it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from leastaction.linear.system import Quadratic

FloatArray = NDArray[np.float64]

FEW = 400  # unknowns: up to so many, all modes are computed
LANCZOS_STEPS = 40
POWERS = 8
TIMES = 256  # how many times are used to find the size of a motion


def turn(s: int, x: FloatArray) -> FloatArray:
    """δ of one step of PsNsQ2sGau with hω = x ≥ 0."""
    from scipy.special import spherical_jn, spherical_yn

    with np.errstate(all="ignore"):
        found = 2 * np.arctan(spherical_jn(s, x / 2) / spherical_yn(s, x / 2))
    return np.where(x > 0, found, 0.0)


@dataclass(frozen=True, eq=False)
class Excited:
    """The frequencies that a start excites over a span of time.

    span     of time
    omega    (m,)
    shape    (n, m) modes with their amplitudes at the end, complex; or (m, m) diagonal, the roots of weights of a norm
    size     of the motion in the norm of `error`: the largest range of a coordinate, or a norm
    exact    whether these are all modes
    """

    span: float
    omega: FloatArray
    shape: NDArray[np.complex128]
    size: float
    exact: bool

    def error(self, s: int, steps: int) -> float:
        """A bound of the error of the position at the end, relative to the size of the motion."""
        delta = turn(s, self.span / steps * self.omega)
        off = 2 * np.sin(np.minimum(steps * np.abs(delta), np.pi) / 2)
        found = np.abs(self.shape @ off)
        return float((found.max() if self.exact else np.linalg.norm(found)) / self.size)

    def steps(self, s: int, tol: float, most: int) -> int:
        """The fewest steps with an error below tol, to a percent; `most` if that is not enough."""
        low, high = 0, 1
        while high < most and self.error(s, high) > tol:
            low, high = high, 2 * high
        high = min(high, most)
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if self.error(s, middle) <= tol else (middle, high)
        return high


def excited(system: Quadratic, q: FloatArray, p: FloatArray, duration: float) -> Excited:
    """What a start excites: by all modes of a small system, by Lanczos' process of a large one."""
    if system.n <= FEW or "_all_modes" in system.__dict__:
        return _by_modes(system, q, p, duration)
    span = abs(duration)
    v = system.velocity(q, p)
    found = [_measure(system, x) for x in (q, v)]
    omega = np.concatenate([omega for omega, _ in found])
    (_, of_q), (of_v, weight) = found
    with np.errstate(divide="ignore"):
        late = np.minimum(1 / of_v, span)  # v t is the way of a body that nothing holds
    roots = np.sqrt(np.concatenate([of_q, weight * late**2]))
    return Excited(span, omega, np.diag(roots).astype(complex), float(np.linalg.norm(roots)) or 1.0, False)


def highest_excited(system: Quadratic, q: FloatArray, p: FloatArray) -> float:
    """About the highest frequency in a start; if the system is at rest, one that a load excites.

    Powers of A = M⁻¹K amplify the high frequencies of x most: (|A⁸x|/|x|)^(1/16).
    """
    v = system.velocity(q, p)
    x = next((z for z in (q, v) if z.any()), np.random.default_rng(0).normal(size=system.n))
    growth = 0.0
    for _ in range(POWERS):
        y = np.asarray(system.velocity(q, system.K @ x))
        size = float(np.linalg.norm(y) / np.linalg.norm(x)) if x.any() else 0.0
        if not size or not np.isfinite(size):
            break
        growth, x = growth + np.log(size), y / np.linalg.norm(y)
    return float(np.exp(growth / (2 * POWERS))) if growth else 0.0


def _by_modes(system: Quadratic, q: FloatArray, p: FloatArray, duration: float) -> Excited:
    modes = system.modes()
    omega, a, b = modes.omega, modes.dual.T @ q, modes.shape.T @ p
    at = np.concatenate([modes.motion(q, p, t)[0] for t in np.split(np.linspace(0, duration, TIMES), 8)])
    size = float(np.ptp(at, axis=0).max())
    moves = omega > 0  # the method is exact for the others
    amplitude = (a[moves] - 1j * b[moves] / omega[moves]) * np.exp(1j * omega[moves] * duration)
    return Excited(abs(duration), omega[moves], modes.shape[:, moves] * amplitude, size or 1.0, True)


def _measure(system: Quadratic, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Frequencies and weights of the vector x: Σ w_j f(ω_j) is xᵀM f(√(M⁻¹K)) x for f of low degree in ω².

    The process does not orthogonalise: a frequency may come twice, and its weight is then in two parts.
    """
    Mx = system.M @ x
    whole = float(x @ Mx)
    if whole == 0:
        return np.zeros(0), np.zeros(0)
    v, before, diagonal, off = x / np.sqrt(whole), np.zeros_like(x), [], [0.0]
    for _ in range(min(LANCZOS_STEPS, system.n)):
        w = system.velocity(x, system.K @ v) - off[-1] * before
        diagonal.append(float(w @ (system.M @ v)))
        w -= diagonal[-1] * v
        beta = float(np.sqrt(max(w @ (system.M @ w), 0.0)))
        off.append(beta)
        if beta <= 1e-14 * max(map(abs, diagonal)):
            break
        before, v = v, w / beta
    squares, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off[1:-1], 1) + np.diag(off[1:-1], -1))
    return np.sqrt(np.maximum(squares, 0.0)), whole * vectors[0] ** 2
