"""Propositions 1 to 7 and what the text states beside table and figures, checked on random systems and on the paper's.

The propositions hold for all symmetric positive definite matrices; here they are checked to round-off on random ones of
one to six degrees of freedom, drawn anew from the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.linear import newmark, simpson_first, simpson_second
from leastaction.linear.schemes import Scheme, simpson_L
from leastaction.papers.model import Claim, Options, Statement, statement
from leastaction.papers.quadratic2024.tables import METHODS, P0, Q0, errors, run, system

Array = NDArray[Any]

SAMPLES = 200
NEAR = 0.999  # of the largest h that (40) allows


def _definite(rng: np.random.Generator, n: int) -> Array:
    """A random symmetric positive definite matrix, eigenvalues between 0.1 and 10."""
    turn, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return np.asarray((turn * 10 ** rng.uniform(-1, 1, n)) @ turn.T)


def _pairs() -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng(2024)
    for k in range(SAMPLES):
        n = 1 + k % 6
        a, b = _definite(rng, n), _definite(rng, n)
        yield (a + a.T) / 2, (b + b.T) / 2


def _limit(M: Array, K: Array) -> float:
    """The h at which (k/μ) h² = 8."""
    return float(np.sqrt(8 * np.linalg.eigvalsh(M)[0] / np.linalg.eigvalsh(K)[-1]))


def _lack_of_symplecticity(Phi: Array) -> float:
    """‖ΦᵀJΦ − J‖, relative to ‖Φ‖²."""
    n = len(Phi) // 2
    J = np.block([[np.zeros((n, n)), -np.eye(n)], [np.eye(n), np.zeros((n, n))]])
    return float(np.abs(Phi.T @ J @ Phi - J).max() / np.linalg.norm(Phi, 2) ** 2)


def _times(count: int) -> str:
    return f"{count} random pairs of matrices, n = 1 … 6"


@statement("Proposition 1")
def proposition_1(options: Options) -> Claim:
    worst = max(_lack_of_symplecticity(Scheme(X, Y).Phi) for X, Y in _pairs())
    skew = np.array([[0.0, 1.0], [-1.0, 0.0]])
    without = _lack_of_symplecticity(Scheme(np.eye(2) + 0.5 * skew, np.diag([1.0, 3.0])).Phi)
    return Claim(
        "a scheme of the form (34) with symmetric positive definite X and Y is symplectic",
        worst < 1e-12 < without,
        f"ΦᵀJΦ − J relative to ‖Φ‖²: at most {worst:.0e}, {_times(SAMPLES)}; {without:.2f} for an X that is not "
        "symmetric",
    )


@statement("Proposition 2")
def proposition_2(options: Options) -> Claim:
    worst = max(_lack_of_symplecticity(newmark(M, K, 0.7).Phi) for M, K in _pairs())
    return Claim(
        "Newmark's scheme is symplectic",
        worst < 1e-12,
        f"ΦᵀJΦ − J relative to ‖Φ‖²: at most {worst:.0e}, h = 0.7, {_times(SAMPLES)}",
    )


def _Y(M: Array, K: Array, h: float) -> Array:
    """Y_s of (31), not made symmetric."""
    return np.asarray(h / 3 * (K @ np.linalg.inv(simpson_L(M, K, h)) + K / 2))


@statement("Proposition 3")
def proposition_3(options: Options) -> Claim:
    worst = 0.0
    for M, K in _pairs():
        Y = _Y(M, K, 0.5 * _limit(M, K))
        worst = max(worst, float(np.abs(Y - Y.T).max() / np.abs(Y).max()))
    return Claim("Y_s is symmetric", worst < 1e-12, f"|Y_s − Y_sᵀ|/|Y_s| at most {worst:.0e}, {_times(SAMPLES)}")


@statement("Proposition 4")
def proposition_4(options: Options) -> Claim:
    least = np.inf
    for M, K in _pairs():
        Y = _Y(M, K, NEAR * _limit(M, K))
        values = np.linalg.eigvalsh((Y + Y.T) / 2)
        least = min(least, float(values[0] / values[-1]))
    return Claim(
        "Y_s is positive definite if 0 < (k/μ)h² < 8",
        least > 0,
        f"smallest eigenvalue, of the largest: at least {least:.1e} at {NEAR} of the largest h, {_times(SAMPLES)}",
    )


@statement("Proposition 5")
def proposition_5(options: Options) -> Claim:
    least = np.inf
    for M, K in _pairs():
        h = NEAR * _limit(M, K)
        least = min(least, float(np.linalg.eigvalsh(M - h**2 / 12 * K)[0] / np.linalg.eigvalsh(M)[0]))
    return Claim(
        "X_s is positive definite if 0 < (k/μ)h² < 8; as the proof has it, M − (h²/12)K ≥ μ/3",
        least >= 1 / 3,
        f"smallest eigenvalue of M − (h²/12)K at least {least:.4f} μ at {NEAR} of the largest h, {_times(SAMPLES)}",
    )


@statement("Proposition 6")
def proposition_6(options: Options) -> Claim:
    worst = max(_lack_of_symplecticity(simpson_second(M, K, 0.9 * _limit(M, K)).Phi) for M, K in _pairs())
    return Claim(
        "Simpson's scheme is symplectic",
        worst < 1e-12,
        f"Φ_sᵀJΦ_s − J relative to ‖Φ_s‖²: at most {worst:.0e} at 0.9 of the largest h, {_times(SAMPLES)}",
    )


def _lost(scheme: Scheme, p_form: Array, q_form: Array) -> float:
    """How far a step changes ½pᵀ(p_form)p + ½qᵀ(q_form)q, as a form, relative to its size and that of Φ."""
    n = len(p_form)
    O = np.zeros((n, n))
    form = np.block([[p_form, O], [O, q_form]])
    Phi = scheme.Phi
    return float(np.abs(Phi.T @ form @ Phi - form).max() / (np.abs(form).max() * np.linalg.norm(Phi, 2) ** 2))


@statement("Proposition 7")
def proposition_7(options: Options) -> Claim:
    worst = max(_lost(s, s.xi, s.zeta) for s in (Scheme(X, Y) for X, Y in _pairs()))
    return Claim(
        "a scheme of the form (34) conserves φ = ½pᵀξp + ½qᵀζq, ξ = (X + Y)⁻¹, ζ = (X⁻¹ + Y⁻¹)⁻¹",
        worst < 1e-12,
        f"Φᵀ diag(ξ, ζ) Φ = diag(ξ, ζ) to {worst:.0e} at worst, {_times(SAMPLES)}",
    )


@statement("section 6.3")
def newmark_energy(options: Options) -> Claim:
    worst = max(_lost(newmark(M, K, 0.7), np.linalg.inv(M), K) for M, K in _pairs())
    M, K = system().M, system().K
    simpson = _lost(simpson_second(M, K, 0.1), np.linalg.inv(M), K)
    return Claim(
        "Newmark's integrator exactly preserves the energy; Simpson's does not",
        worst < 1e-12 < simpson,
        f"Φᵀ diag(M⁻¹, K) Φ = diag(M⁻¹, K) to {worst:.0e} at worst, {_times(SAMPLES)}; Simpson's scheme on the double "
        f"pendulum with h = 0.1 t̄ misses it by {simpson:.0e}",
    )


@statement("below (40)")
def sufficient(options: Options) -> Claim:
    """Stable: no power of Φ grows; as φ is positive definite, all eigenvalues have modulus one."""
    worst = 0.0
    for M, K in _pairs():
        values = np.linalg.eigvals(simpson_second(M, K, NEAR * _limit(M, K)).Phi)
        worst = max(worst, float(np.abs(np.abs(values) - 1).max()))
    return Claim(
        "(k/μ)h² < 8 is sufficient for the stability of Simpson's scheme",
        worst < 1e-6,
        f"moduli of the eigenvalues of Φ_s at {NEAR} of the largest h differ from 1 by at most {worst:.0e}, "
        f"{_times(SAMPLES)} (near a double eigenvalue by the root of round-off)",
    )


@statement("section 6, before 6.1")
def same_nodes(options: Options) -> Claim:
    M, K = system().M, system().K
    first, second = simpson_first(M, K, 0.1).Phi[2:], simpson_second(M, K, 0.1).Phi
    path = run("Simpson", 0.1, 100)
    eta = np.concatenate([P0, Q0])
    for _ in range(100):
        eta = first @ eta
    apart = float(np.abs(eta - np.concatenate([path.p[-1], path.q[-1]])).max())
    return Claim(
        "both variants of Simpson's scheme give the same result at each node",
        float(np.abs(first - second).max()) < 1e-13 and apart < 1e-12,
        f"the rows of (29) for η_{{j+1}} and Φ_s of (32) differ by {np.abs(first - second).max():.0e}; after 100 "
        f"steps of 0.1 t̄ the first variant and the library's Simpson are {apart:.0e} apart",
    )


@statement("section 6.1")
def refined_newmark(options: Options) -> Claim:
    """An error is visible from a hundredth of the range of the motion on."""
    from leastaction.papers.quadratic2024.figures import VISIBLE, deviations

    path = run("Newmark", 0.01, 1000)
    off = deviations(path, "q").max(axis=1)
    first = float(path.t[np.argmax(off > VISIBLE)]) if off.max() > VISIBLE else np.inf
    coarse, fine = (errors("Newmark", 1, mesh)["q"] for mesh in (10, 100))
    return Claim(
        "with h = 0.01 t̄ Newmark's solutions improve, but still deviate after a couple of periods",
        fine < coarse and 1 < first < 10,
        f"error of q over one t̄ {coarse:.2f} with h = 0.1 t̄, {fine:.4f} with 0.01 t̄; more than {VISIBLE:.0%} of "
        f"the range away from {first:.1f} t̄ on",
    )


@statement("section 6.4")
def one_order_for_ten(options: Options) -> Claim:
    """This holds while errors are small against the motion."""
    found = {T: errors("Simpson", T, 40) for T in (1, 10, 100, 1000)}
    ratios = [found[10 * T][v] / found[T][v] for T in (1, 10, 100) for v in "pq"]
    return Claim(
        "Simpson's scheme loses one order of magnitude of precision each time the length is multiplied by ten",
        all(8 < ratio < 12.5 for ratio in ratios),
        f"with 40 steps per t̄ errors grow by factors between {min(ratios):.1f} and {max(ratios):.1f}",
    )


@statement("section 6.1")
def precise_order(options: Options) -> Claim:
    fine = {method: errors(method, 1, 100) for method in METHODS}
    return Claim(
        "Simpson's integrator is more precise than RK4, RK4 than Newmark's",
        all(fine["Simpson"][v] < fine["RK4"][v] < fine["Newmark"][v] for v in "pq"),
        "errors of q over one t̄ with h = 0.01 t̄: " + ", ".join(f"{m} {fine[m]['q']:.1e}" for m in METHODS),
    )


STATEMENTS = [entry for entry in tuple(globals().values()) if isinstance(entry, Statement)]
