"""What is read off a linear run: velocities, accelerations, the forces of supports, response spectra.

A path stores q and p of some degrees of freedom, D. With a lumped mass v_i = p_i/m_i, and row i of

    m_i a_i = f_i(t) − (C v)_i − (K q)_i

needs the states that K and C couple to i: `Quadratic.around` lists them. With a consistent mass v and a at one place
depend on p everywhere, so the whole state must be stored. In stiff systems this equation multiplies rounding; see
`acceleration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.linear.factor import factor
from leastaction.linear.forcing import Load, Rayleigh, as_load, at_times
from leastaction.linear.matrices import chosen_dofs, free, is_sparse, symmetric
from leastaction.methods import Method
from leastaction.printing import freedom

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leastaction.linear.system import Quadratic
    from leastaction.results.path import Path

FloatArray = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
NEGLIGIBLE = 1e-6  # of the accelerations: what the first τ lets rounding be
CLOSE, KNOWN = 1e-3, 1e-2  # of the largest acceleration: τ is short enough, and the largest error that is given
RESOLVED = 1 / 32  # τ over a step, by a degree: at h ω = 3 s, the quickest motion that steps follow, (τω)⁴ < 10⁻⁴


def velocity(path: Path, dofs: ArrayLike | None = None) -> FloatArray:
    """v at every stored time, of the degrees of freedom `dofs`; without `dofs`, of all that are stored."""
    system = _system(path)
    stored, wanted = _stored(path), _wanted(path, dofs)
    if path.output is None:
        return system.velocity(path.q, path.p)[:, wanted]
    if system.mass_diagonal is None:
        raise ValueError(_whole("velocities", path))
    return np.asarray(np.asarray(path.p)[:, _places(wanted, stored)] / system.mass_diagonal[wanted])


def acceleration(path: Path, dofs: ArrayLike | None = None) -> FloatArray:
    """a at every stored time, of the degrees of freedom `dofs`; without `dofs`, of all that are stored.

    M a = f − C v − K q multiplies the rounding of q by ω²: by 10¹⁶ in the stiffest mode of a beam of 1,000 elements.
    With P = M + τC + τ²K and E = I − P⁻¹M,

        a = (I + E) P⁻¹ (f − C v − K q)

    multiplies it by no more than 2/τ². a of a mode with τω ≪ 1 changes by (τω)⁴ of itself, without damping. τ is first
    such that rounding is NEGLIGIBLE, as far as can be said before. Then a shorter τ tells whether a depends on it: a
    changes less and less where quick modes of the motion are found, and more and more where rounding is. At the first
    change that is larger than the one before, a longer τ is tried. The smallest change is the error that can be
    expected. Modes that are too quick for the steps move by rounding alone, so τ remains above a part of a step.
    The equation itself, τ = 0, is taken at once where rounding cannot be seen.
    """
    system = _system(path)
    wanted = _wanted(path, dofs)
    if path.output is not None:
        return _from_neighbours(path, wanted)
    q, p = (np.asarray(x, dtype=float) for x in (path.q, path.p))
    v = system.velocity(q, p)
    force = system.external_force(q, v, path.t) - (system.K @ q.T).T
    a = system.velocity(q, force)
    size, speed, quick = (float(np.sqrt((x * system.momentum(q, x)).sum(axis=1).max())) for x in (q, v, a))
    stiffness, damping = _relative(system.K, system), _relative(system.damping_matrix(), system)
    slow = min(size / speed if speed else np.inf, np.sqrt(size / quick) if quick else np.inf)
    least = RESOLVED * abs(float(path.h)) / (path.method.degree or 1)
    first = max(float(np.sqrt(_rounding(path) / NEGLIGIBLE) * slow), least)
    if not 1 < stiffness * first**2 + damping * first < np.inf:
        return np.asarray(a[:, wanted])
    span = float(abs(path.t[-1] - path.t[0]))
    still = float(np.abs(q[:, wanted]).max()) / span**2 if span else 0.0

    given = _smoothed(system, force, first)[:, wanted]
    best = (np.inf, np.inf, given)
    for change in (1 / 4, 4.0):
        tau, before, last = first, given, np.inf
        while tau >= least and best[0] > CLOSE:
            tau *= change
            now = _smoothed(system, force, tau)[:, wanted]
            finer = now if change < 1 else before
            error, largest = float(np.abs(now - before).max()), max(float(np.abs(finer).max()), still)
            best, before = min(best, (error / largest, error, finer), key=lambda one: one[0]), now
            if error >= last:
                break
            last = error
    _require_known(*best[:2], "take K and M of fewer degrees of freedom, or differences of path.q")
    return np.asarray(best[2])


def _smoothed(system: Quadratic, force: FloatArray, tau: float) -> FloatArray:
    """(I + E) P⁻¹ times the forces; see `acceleration`."""
    P = system.M + tau**2 * system.K + (0 if system.C is None else tau * system.damping_matrix())
    solve = factor(P).solve
    a = solve(force.T)
    return np.asarray((2 * a - solve(system.M @ a)).T)


def _relative(a: Any, system: Quadratic) -> float:
    """About the largest eigenvalue of M⁻¹ times this matrix."""
    return 0.0 if a is None else float((a.diagonal() / system.M.diagonal()).max())


def _rounding(path: Path) -> float:
    """What rounding leaves in q and v, relative: steps of members on Gauss nodes do not damp it in stiff modes."""
    return EPS * float(np.sqrt(max(1, path.stats.get("steps", len(path.t)))))


def _require_known(relative: float, error: float, instead: str) -> None:
    """Refuse accelerations with too large an error."""
    if relative > KNOWN:
        raise ValueError(
            f"these accelerations are not known: rounding of the stored states leaves an error of about {error:.1e}, "
            f"{relative:.1e} of the largest of them. For other values {instead}"
        )


def _from_neighbours(path: Path, wanted: NDArray[np.int64]) -> FloatArray:
    """a of some degrees of freedom with a lumped mass, from the states of their neighbours."""
    system = _system(path)
    stored = _stored(path)
    if system.mass_diagonal is None:
        raise ValueError(_whole("accelerations", path))
    if (missing := np.setdiff1d(system.around(wanted), stored)).size:
        raise ValueError(
            f"accelerations of {_listed(wanted)} need the states of the degrees of freedom coupled to them; "
            f"{_listed(missing)} are not stored. Run with output=system.around({_listed(wanted)})."
        )
    mass, q, v = system.mass_diagonal[wanted], np.asarray(path.q, dtype=float), velocity(path)
    C = system.damping_matrix()
    parts = [(system.K, q)] if C is None else [(system.K, q), (C, v)]
    a = np.zeros((len(q), len(wanted))) if system.f is None else at_times(system.f, system.n, path.t)[:, wanted] / mass
    lost = np.zeros(len(wanted))
    for matrix, x in parts:
        a = a - _coupled(matrix, wanted, stored, x, np.arange(system.n)) / mass
        largest = np.abs(x).max(axis=0, keepdims=True)
        lost += _rounding(path) * _coupled(abs(matrix), wanted, stored, largest, np.arange(system.n))[0] / mass
    largest_a, error = float(np.abs(a).max()), float(lost.max())
    if largest_a:
        _require_known(error / largest_a, error, "store whole states: run without output=")
    return a


def reactions(path: Path, fixed: Any, M: Any, K: Any, *, C: Any = None, f: Any = None) -> FloatArray:
    """The forces that hold the held degrees of freedom, in a run of `la.Quadratic.without`.

    R = M_hf a + C_hf v + K_hf q − f_h, with the rows of the held and the columns of the free degrees of freedom. The
    whole state of the free ones must be stored, or, with a lumped mass, the states of those that K couples to the held
    ones.

    Parameters
    ----------
    path : Path
        The run.
    fixed, M, K, C, f
        What `la.Quadratic.without` was given.

    Returns
    -------
    ndarray, shape (K, held)
        A row for each stored time.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> M, K = np.ones(2), np.array([[1.0, -1.0], [-1.0, 1.0]])  # a mass on a spring, the other end held
    >>> path = la.integrate(la.Quadratic.without([0], M, K), "simpson", [0.5], [0.0], h=0.1, steps=1)
    >>> la.linear.reactions(path, [0], M, K)[0]
    array([-0.5])
    """
    n = np.shape(K)[0]
    keep = free(n, fixed)
    held = np.setdiff1d(np.arange(n), keep)
    system = _system(path)
    if system.n != len(keep):
        raise ValueError(f"the path is one of {freedom(system.n)}; without the fixed ones {len(keep)} are left")
    stored = keep[_stored(path)]
    mass, stiffness = symmetric(M, "M"), symmetric(K, "K")

    def rows(a: Any, x: Any) -> FloatArray:
        return _coupled(a, held, stored, x, keep)

    R = rows(stiffness, path.q)
    if isinstance(C, Rayleigh):
        v = velocity(path)
        R += C.beta * rows(stiffness, v) + (C.alpha * rows(mass, v) if mass.ndim == 2 else 0.0)
    elif C is not None:
        R += rows(symmetric(C, "C"), velocity(path))
    if mass.ndim == 2 and _rows(mass, held, keep)[1].size:
        R += rows(mass, acceleration(path))
    load = as_load(f, n)
    return R if load is None else R - np.array([np.asarray(load(float(t)), dtype=float)[held] for t in path.t])


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The largest answers of damped oscillators to a ground's acceleration. `la.linear.response_spectrum` gives it.

    Attributes
    ----------
    period : ndarray, shape (P,)
        The periods 2π/ω of the oscillators.
    damping : ndarray, shape (Z,)
        Damping ratios.
    displacement, velocity : ndarray, shape (P, Z)
        The largest |u| and |u̇|, relative to the ground.
    acceleration : ndarray, shape (P, Z)
        The largest absolute acceleration |ü + a|.

    Methods
    -------
    plot

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> t = np.linspace(0, 10, 201)
    >>> spectrum = la.linear.response_spectrum(t, np.sin(3 * t), periods=[0.5, 2.1], damping=0.05)
    >>> bool(spectrum.displacement[1] > spectrum.displacement[0])  # 2π/3 is nearly 2.1
    True
    """

    period: FloatArray
    damping: FloatArray
    displacement: FloatArray
    velocity: FloatArray
    acceleration: FloatArray

    def __repr__(self) -> str:
        periods = f"{len(self.period)} periods from {self.period.min():.4g} to {self.period.max():.4g}"
        return f"Spectrum({periods}, damping {', '.join(f'{ratio:g}' for ratio in self.damping)})"

    @documented()
    def plot(self, what: str = "acceleration", ax: Axes | None = None) -> Axes:
        """Draw one of the three over the period.

        Parameters
        ----------
        what : {"acceleration", "velocity", "displacement"}, default "acceleration"
            Which.
        {ax}
        """
        if what not in ("displacement", "velocity", "acceleration"):
            raise ValueError(f"expected 'displacement', 'velocity' or 'acceleration'; got {what!r}")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
        for ratio, column in zip(self.damping, getattr(self, what).T, strict=True):
            ax.plot(self.period, column, linewidth=1, label=f"{100 * ratio:g} % of critical damping")
        largest = "largest absolute acceleration" if what == "acceleration" else f"largest relative {what}"
        ax.set(xlabel="period $2\\pi/\\omega$", ylabel=largest)
        ax.legend(frameon=False)
        return ax


@documented()
def response_spectrum(
    times: ArrayLike,
    acceleration: ArrayLike,
    periods: ArrayLike,
    damping: float | Sequence[float] = 0.05,
    *,
    method: Method | str = "P2N2Q4Gau",
    steps_per_period: int = 40,
) -> Spectrum:
    """The response spectrum of a ground's acceleration a: of ü + 2ζω u̇ + ω² u = −a(t) from rest, for each period 2π/ω
    and each damping ratio ζ.

    The record is joined by straight lines. Steps are no longer than a sample of the record and a part of the shortest
    period. Maxima are those at the ends of steps during the record.

    Parameters
    ----------
    times, acceleration : array_like, shape (m,)
        The record.
    periods : array_like, shape (P,)
        Periods of the oscillators.
    damping : float or sequence of float, default 0.05
        Damping ratios.
    {method}
    steps_per_period : int, default 40
        Least number of steps in the shortest period.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> t = np.linspace(0, 5, 101)
    >>> la.linear.response_spectrum(t, np.sin(3 * t), [0.5, 1.0, 2.0], damping=[0.02, 0.05]).acceleration.shape
    (3, 2)
    """
    from leastaction.linear.propagator import Propagator
    from leastaction.linear.system import Quadratic

    period, ratio = np.atleast_1d(np.asarray(periods, dtype=float)), np.atleast_1d(np.asarray(damping, dtype=float))
    if period.ndim != 1 or not period.size or not (np.isfinite(period) & (period > 0)).all():
        raise ValueError(f"periods must be positive and finite, in one dimension; got {periods!r}")
    if ratio.ndim != 1 or not ratio.size or not (np.isfinite(ratio) & (ratio >= 0)).all():
        raise ValueError(f"damping ratios must be finite and not negative; got {damping!r}")
    record = Load(np.ones(1), times, acceleration, rule="linear")
    omega, zeta = (x.ravel() for x in np.meshgrid(2 * np.pi / period, ratio, indexing="ij"))
    h, count = _step(record.times, float(period.min()) / steps_per_period)
    # The oscillators do not touch each other: each is a system of its own, whose step is a 2 × 2 matrix.
    unit = [Propagator(Quadratic([1.0], [w**2], C=[2 * z * w]), method, h) for w, z in zip(omega, zeta, strict=True)]
    W = np.array([np.eye(2) + one.operator.W + one.operator.W_low for one in unit])
    G = np.array([one.operator.G for one in unit])
    at = record.start + h * (np.arange(count)[:, None] + unit[0].operator.c)
    ground = np.interp(at, record.times, record.values[:, 0])
    y, largest = np.zeros((len(omega), 2)), np.zeros((3, len(omega)))
    for k in range(count):
        y = np.einsum("kij,kj->ki", W, y) - G @ ground[k]
        u, v = y.T
        absolute = -2 * zeta * omega * v - omega**2 * u  # ü + a
        np.maximum(largest, np.abs([u, v, absolute]), out=largest)
    return Spectrum(period, ratio, *largest.reshape(3, len(period), len(ratio)))


def _step(times: FloatArray, longest: float) -> tuple[float, int]:
    """Equal steps over the record, none longer than `longest` or a sample; equal samples lie at ends of steps."""
    gaps = np.diff(times)
    span = float(times[-1] - times[0])
    if np.allclose(gaps, gaps[0], rtol=1e-6):
        count = len(gaps) * int(np.ceil(gaps[0] / longest - 1e-9))
    else:
        count = int(np.ceil(span / min(longest, float(gaps.min())) - 1e-9))
    return span / count, count


def _system(path: Path) -> Quadratic:
    return cast("Quadratic", path.system)


def _stored(path: Path) -> NDArray[np.int64]:
    return np.arange(path.system.n) if path.output is None else np.asarray(path.output)


def _wanted(path: Path, dofs: ArrayLike | None) -> NDArray[np.int64]:
    stored = _stored(path)
    if dofs is None:
        return stored
    wanted = chosen_dofs(dofs, path.system.n)
    if (missing := np.setdiff1d(wanted, stored)).size:
        raise ValueError(
            f"the degrees of freedom {_listed(missing)} are not stored; this path stores {_listed(stored)}"
        )
    return wanted


def _places(wanted: NDArray[np.int64], stored: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where in `stored` each of `wanted` is."""
    order = np.argsort(stored, kind="stable")
    return np.asarray(order[np.searchsorted(stored, wanted, sorter=order)])


def _rows(a: Any, rows: NDArray[np.int64], among: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """Some rows of a matrix in those of the columns `among` in which they have entries, and these columns. A vector
    stands for a diagonal matrix.
    """
    from scipy.sparse import diags_array

    part = diags_array(a) if a.ndim == 1 else a
    part = part.tocsr()[rows] if is_sparse(part) else part[rows]
    columns = np.intersect1d(part.nonzero()[1], among)
    return part[:, columns], columns


def _coupled(
    a: Any, rows: NDArray[np.int64], stored: NDArray[np.int64], x: Any, among: NDArray[np.int64]
) -> FloatArray:
    """(A x) at some rows for each time, by the columns `among`; x is known at the stored ones, which must be enough."""
    part, columns = _rows(a, rows, among)
    if (missing := np.setdiff1d(columns, stored)).size:
        raise ValueError(f"the states of the degrees of freedom {_listed(missing)} are needed, but not stored")
    known = np.asarray(x, dtype=float)[:, _places(columns, stored)]
    return np.asarray((part @ known.T).T)


def _whole(what: str, path: Path) -> str:
    return (
        f"{what} need the whole state where M is not diagonal, since v = M⁻¹p at one place depends on all p; this "
        f"path stores {len(_stored(path))} of {path.system.n} degrees of freedom. Run without output= (store= keeps "
        "the states on disk), or with a lumped mass"
    )


def _listed(dofs: NDArray[np.int64]) -> str:
    return str(dofs.tolist()) if len(dofs) <= 8 else f"[{', '.join(map(str, dofs[:6]))}, … {len(dofs)} in all]"
