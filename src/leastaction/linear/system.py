"""Quadratic(M, K): L = ½ vᵀMv − ½ qᵀKq, with damping C and load f(t) if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.kernel import fingerprint
from leastaction.linear.definite import positive_definite, require_positive_definite, require_positive_semidefinite
from leastaction.linear.factor import Factorised, blas_threads, factor
from leastaction.linear.forcing import Constant, Rayleigh, as_load, at_times, is_constant, reduced
from leastaction.linear.matrices import chosen_dofs, diagonal, eliminate, exact_entries, free, is_sparse, symmetric
from leastaction.linear.modal import ALL_MODES, Modes, highest_frequency, lowest_modes, modes
from leastaction.linear.propagator import Propagator
from leastaction.linear.stability import require_stable, stable_intervals
from leastaction.methods import Method
from leastaction.methods import method as by_name
from leastaction.numbers.rounding import Reals
from leastaction.step.samples import Samples
from leastaction.step.status import GOING_WELL, NOT_FINITE, Failure
from leastaction.systems.arguments import coordinate_names
from leastaction.systems.defaults import Usual
from leastaction.systems.programs import Parameters

if TYPE_CHECKING:
    from leastaction.linear.stepper import LinearStepper
    from leastaction.step.stepper import Start
    from leastaction.step.stored_row import Row

FloatArray = NDArray[np.float64]


@documented()
class Quadratic(Parameters, Usual):
    """A linear system M q̈ + C q̇ + K q = f(t), of the Lagrangian L = ½ vᵀMv − ½ qᵀKq.

    Matrices are NumPy or scipy.sparse. If one is sparse, all are. Dense matrices may hold exact numbers, as text
    ("1/3"), Fraction or SymPy numbers: float64 rounds them, and runs with ``digits=`` use them exactly.

    Parameters
    ----------
    M : array_like or sparse array, shape (n, n) or (n,)
        Mass: symmetric and positive definite. A vector is a lumped (diagonal) mass.
    K : array_like or sparse array, shape (n, n) or (n,)
        Stiffness: symmetric and positive semidefinite. A structure may float freely.
    C : array_like, sparse array or Rayleigh, optional
        Viscous damping: a symmetric matrix, or αM + βK.
    f : callable, tuple, Load, Samples or array_like, optional
        Load: a function of t that returns n numbers, `la.Samples` with values (m, n) or the pair (times, values) of
        cubic ones, a vector times a record (`la.linear.Load`), or a constant vector.
    {names}

    Attributes
    ----------
    n : int
        Degrees of freedom.
    M, K, C, f
        The matrices and the load.
    sparse : bool
        Whether the matrices are sparse.
    omega_max : float
        The highest frequency, in radians per unit of time.

    Methods
    -------
    without, energy, momentum, velocity, acceleration, external_force, modes, stable_step, below, exact, conserved,
    around, propagator

    Examples
    --------
    >>> import leastaction as la
    >>> system = la.Quadratic([[2.0, 1.0], [1.0, 1.0]], [2.0, 1.0])
    >>> system.n, round(system.omega_max**2, 12)
    (2, 3.414213562373)
    >>> path = la.integrate(system, "simpson", q0=[0.1, 0.0], v0=[0.0, 0.0], h=0.01, t_end=10)
    """

    def __init__(self, M: Any, K: Any, *, C: Any = None, f: Any = None, names: Sequence[str] | None = None) -> None:
        mass, stiffness = symmetric(M, "M"), symmetric(K, "K")
        damping = C if C is None or isinstance(C, Rayleigh) else symmetric(C, "C")
        self.n: int = mass.shape[0]
        for name, a in (("K", stiffness), ("C", damping)):
            if a is not None and not isinstance(a, Rayleigh) and a.shape[0] != self.n:
                other = ". Damping αM + βK is C=la.linear.Rayleigh(α, β)" if name == "C" else ""
                raise ValueError(f"M and {name} must have the same size; got {mass.shape} and {a.shape}{other}")
        self.names = coordinate_names(names, self.n)
        self.mass_diagonal = diagonal(mass)
        require_positive_definite(mass if self.mass_diagonal is None else self.mass_diagonal, "M")
        require_positive_semidefinite(stiffness, "K")
        self.sparse: bool = is_sparse(mass) or is_sparse(stiffness) or is_sparse(damping)
        self.M, self.K = self._matrix(mass), self._matrix(stiffness)
        self.C = damping if damping is None or isinstance(damping, Rayleigh) else self._matrix(damping)
        self.f = as_load(f, self.n)
        given = {"M": M, "K": K, "C": None if isinstance(C, Rayleigh) else C, "f": f if is_constant(f) else None}
        entries = {name: exact_entries(a) for name, a in given.items() if a is not None}
        self.unrounded = {name: a for name, a in entries.items() if a is not None}
        self._last: tuple[tuple[Method, float], Propagator] | None = None

    def _matrix(self, a: Any) -> Any:
        """Dense or CSR, as the others are."""
        if not self.sparse:
            return np.diag(a) if a.ndim == 1 else a
        from scipy.sparse import csr_array, diags_array

        return csr_array(diags_array(a) if a.ndim == 1 else a)

    @classmethod
    def without(cls, fixed: Any, M: Any, K: Any, *, C: Any = None, f: Any = None) -> Quadratic:
        """The system that is left when some degrees of freedom are held at zero.

        Parameters
        ----------
        fixed : array_like of int or bool
            Which ones: indices, or a mask.
        M, K, C, f
            Of the whole system, as `la.Quadratic` takes them.

        Returns
        -------
        Quadratic
            Its degrees of freedom are the others in their order, counted anew from 0:
            ``np.setdiff1d(np.arange(n), fixed)`` are their numbers in the whole system.

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> K = np.diag([1.0, 2.0, 1.0]) - np.eye(3, k=1) - np.eye(3, k=-1)
        >>> la.Quadratic.without([0], np.ones(3), K).K
        array([[ 2., -1.],
               [-1.,  1.]])
        """
        keep = free(np.shape(K)[0], fixed)
        damping = C if C is None or isinstance(C, Rayleigh) else eliminate(C, fixed)
        return cls(eliminate(M, fixed), eliminate(K, fixed), C=damping, f=reduced(f, keep))

    def __repr__(self) -> str:
        kind = "sparse" if self.sparse else "dense"
        extras = [name for name, x in (("damping", self.C), ("load", self.f)) if x is not None]
        return f"Quadratic({kind}, n={self.n}{', with ' + ' and '.join(extras) if extras else ''})"

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle keeps: not the factors, which are made again."""
        made = ("mass_factor", "_last")
        return {name: value for name, value in self.__dict__.items() if name not in made} | {"_last": None}

    # Energy and momentum: q, p, v may carry leading axes, one state per row.

    @documented("linear_states")
    def energy(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Any = None) -> float | FloatArray:
        """The energy ½ pᵀM⁻¹p + ½ qᵀKq."""
        q, p = np.asarray(q, dtype=float), np.asarray(p, dtype=float)
        H = 0.5 * (p * self.velocity(q, p)).sum(axis=-1) + 0.5 * (q * _rows(self.K, q)).sum(axis=-1)
        return float(H) if H.ndim == 0 else H

    @documented("linear_states")
    def momentum(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Any = None) -> FloatArray:
        """The momentum p = M v."""
        return _rows(self.M, np.asarray(v, dtype=float))

    @documented("linear_states")
    def velocity(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Any = None) -> FloatArray:
        """The velocity v = M⁻¹ p."""
        p = np.asarray(p, dtype=float)
        return np.asarray(self.mass_factor.solve(p.reshape(-1, self.n).T).T.reshape(p.shape))

    @documented("linear_states")
    def acceleration(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Any = None) -> FloatArray:
        """The acceleration a = M⁻¹ (f(t) − C v − K q)."""
        q, p = np.asarray(q, dtype=float), np.asarray(p, dtype=float)
        v = self.velocity(q, p) if self.C is not None else np.zeros_like(q)
        return self.velocity(q, self.external_force(q, v, t) - _rows(self.K, q))

    @documented("linear_states")
    def external_force(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Any = None) -> FloatArray:
        """The external force f(t) − C v."""
        v = np.asarray(v, dtype=float)
        force = np.zeros_like(v)
        if self.C is not None:
            force -= np.asarray(self.damping_force(v.reshape(-1, self.n).T)).T.reshape(v.shape)
        if self.f is not None:
            times = np.broadcast_to(np.asarray(t, dtype=float), v.shape[:-1])
            force += at_times(self.f, self.n, times)
        return force

    def around(self, dofs: Any) -> NDArray[np.int64]:
        """These degrees of freedom and all that K and C couple to them, ascending.

        With a lumped mass ``output=system.around(dofs)`` of a run stores what `path.acceleration` needs.

        Parameters
        ----------
        dofs : array_like of int
            Degrees of freedom.
        """
        dofs = chosen_dofs(dofs, self.n)
        coupled = [a for a in (self.K, self.C) if a is not None and not isinstance(a, Rayleigh)]
        return np.unique(np.concatenate([dofs, *(a[dofs].nonzero()[1] for a in coupled)])).astype(np.int64)

    def damping_force(self, v: FloatArray) -> Any:
        """C v."""
        if self.C is None:
            return 0.0
        if isinstance(self.C, Rayleigh):
            return self.C.alpha * (self.M @ v) + self.C.beta * (self.K @ v)
        return self.C @ v

    def damping_matrix(self) -> Any:
        """C, written out; None if there is none."""
        if isinstance(self.C, Rayleigh):
            return self.C.alpha * self.M + self.C.beta * self.K
        return self.C

    @cached_property
    def mass_factor(self) -> Factorised:
        """M, factorised once."""
        return factor(self.M if self.mass_diagonal is None else self.mass_diagonal)

    @cached_property
    def stiffness_diagonal(self) -> FloatArray | None:
        """The diagonal of K, where K is diagonal; else None."""
        return diagonal(self.K)

    # What a run asks of a system; see `systems.protocol`.

    @property
    def depends_on_time(self) -> bool:
        """Whether there is a load that changes."""
        return self.f is not None and not isinstance(self.f, Constant)

    @property
    def forced(self) -> bool:
        return self.C is not None or self.f is not None

    @property
    def forced_by_state(self) -> bool:
        return self.C is not None

    linear = True
    name = "quadratic"
    _given, _defaults = MappingProxyType({}), MappingProxyType({})  # all numbers stand in M, K, C and f
    tools = ("scipy",)
    m = 0  # constraints
    mass_varies_with_velocity = False

    def check_inputs(self) -> None:
        raise ValueError(
            "inputs= are for Lagrangians; a Quadratic system has its load f: la.Quadratic(M, K, f=la.Samples(times, "
            "values)), or la.linear.Load(vector, times, samples), a vector times a record"
        )

    @property
    def instructions(self) -> int:
        """The products of one application of the matrices."""
        return int(self.K.nnz if self.sparse else self.n**2)

    def longest_step(self, t0: float) -> float | None:
        """The length of the pieces of a load whose record is joined with kinks at equal distances; None for others."""
        load = self.f
        if not isinstance(load, Samples) or load.rule == "cubic":
            return None
        gap = float(np.diff(load.times).min())
        begins = (t0 - load.start) / gap
        equal = np.ptp(np.diff(load.times)) < 1e-9 * gap and abs(begins - round(begins)) < 1e-6
        return gap if equal else None

    def frequency(
        self, t: float, q: FloatArray, p: FloatArray, v: FloatArray, params: FloatArray, length: float
    ) -> float:
        """|v|/|q| or |a|/|v| at the start, in the norm of M: stiff modes that hardly move do not change them much."""
        sizes = [np.sqrt(float(x @ self.momentum(q, x))) for x in (q, v, self.acceleration(q, p, t))]
        return min((b / a for a, b in pairwise(sizes) if a > 0 and 0 < b < np.inf), default=0.0)

    def energies(self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        return np.asarray(self.energy(q, p))

    def begin(
        self, t: float, q: FloatArray, p: FloatArray | None, v: FloatArray | None, params: FloatArray
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
        """Momenta, and a status, of trajectories that begin at q with p or v, a row for each; v is not needed."""
        if p is None:
            assert v is not None
            p = self.momentum(q, v)
        status = np.where(np.isfinite(p).all(axis=1), GOING_WELL, NOT_FINITE).astype(np.int8)
        return p, np.zeros((len(q), 0)), status

    def check_start(self, t: float, q: FloatArray, p: FloatArray | None, v: FloatArray | None, params: Any) -> None:
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}")

    def check_span(self, t0: float, t_end: float) -> None:
        """Ask for the load at both ends of a run before the run: samples may be too few."""
        if isinstance(self.f, Samples):
            self.f(t0), self.f(t_end)

    def check_stable(self, method: Method, h: float) -> None:
        """Refuse a step that is too large for the highest frequency."""
        require_stable(self.propagator(method, h))

    def stepper(self, method: Method, start: Start, row: Row | None = None) -> LinearStepper:
        from leastaction.linear.stepper import LinearStepper

        return LinearStepper(self, method, start, row)

    def explain(self, failure: Failure, h: float) -> tuple[str, str]:
        """Why a step could not be done: the equations can always be solved, but the numbers can become too large."""
        return "the state became infinite or not a number", (
            "An unstable step grows without bound: compare h with system.stable_step(method); else look at the start "
            "and the load for what is too large"
        )

    def record(self) -> dict[str, Any]:
        return {"n": self.n, "name": self.name, "names": list(self.names), "defaults": {}, "sparse": self.sparse}

    def arrays(self) -> dict[str, NDArray[Any]]:
        from leastaction.linear.archive import to_arrays

        return to_arrays(self)

    def machine(self) -> str:
        import scipy

        libraries = f"NumPy {np.__version__}, SciPy {scipy.__version__}, "
        # How many threads share a dense product or solution decides the order of its sums; sparse work has one.
        threads = "" if self.sparse else f"{blas_threads()} BLAS threads, "
        return libraries + threads + fingerprint()

    def exact_matrices(self, reals: Reals) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """M, K and C (None if there is none) at another precision, as they were given, written out."""
        M, K = self._exact_matrix("M", self.M, reals), self._exact_matrix("K", self.K, reals)
        if self.C is None:
            return M, K, None
        if isinstance(self.C, Rayleigh):
            alpha, beta = reals.array([self.C.alpha, self.C.beta])
            with reals.working():
                return M, K, alpha * M + beta * K
        return M, K, self._exact_matrix("C", self.C, reals)

    def _exact_matrix(self, name: str, rounded: Any, reals: Reals) -> NDArray[Any]:
        a = reals.array(self.unrounded.get(name, rounded.toarray() if self.sparse else rounded))
        a = a.reshape(1, 1) if a.ndim == 0 else np.diag(a) if a.ndim == 1 else a
        with reals.working():
            return np.asarray(reals.array("1/2").item() * (a + a.T))

    # Steps, frequencies, stability, exact motion.

    @documented("method", "h")
    def propagator(self, method: Method | str, h: float) -> Propagator:
        """One method at one h, ready to step. The last one asked for is kept, with its factors."""
        key = (by_name(method), float(h))
        if self._last is None or self._last[0] != key:
            self._last = None  # let go of the old factors before the new ones are made
            self._last = (key, Propagator(self, *key))
        return self._last[1]

    @documented("state", "method", "h")
    def conserved(self, q: ArrayLike, p: ArrayLike, method: Method | str, h: float) -> float:
        """φ(p, q), the quadratic form that the steps of a symmetric method conserve; see `la.linear.Propagator`."""
        return self.propagator(method, h).conserved(q, p)

    def modes(self, k: int | None = None) -> Modes:
        """The lowest frequencies and their shapes.

        Parameters
        ----------
        k : int, optional
            How many. Without `k` all: of dense systems, and of sparse ones up to 1500 unknowns.
        """
        if k is None or (self.n <= ALL_MODES and 0 < k <= self.n):
            found = self._all_modes
            return found if k is None else found.lowest(k)
        return lowest_modes(self, k)

    @cached_property
    def _all_modes(self) -> Modes:
        if self.sparse and self.n > ALL_MODES:
            raise ValueError(
                f"all modes of a sparse system with n = {self.n} > {ALL_MODES} are not computed; ask for the lowest k "
                "with modes(k)"
            )
        return modes(self.M, self.K)

    def below(self, omega: float) -> bool:
        """Whether every frequency is below ω: whether M − K/ω² is positive definite. No eigenvalue is computed.

        Parameters
        ----------
        omega : float
            ω, in radians per unit of time.
        """
        square = omega * omega
        if square == np.inf or not (self.K.data if self.sparse else self.K).any():
            return omega > 0
        if square == 0:
            return False
        if self.mass_diagonal is not None and self.stiffness_diagonal is not None:
            return bool((self.stiffness_diagonal / square < self.mass_diagonal).all())
        return positive_definite(self.M - self.K / square)

    @cached_property
    def omega_max(self) -> float:
        """The highest frequency, in radians per unit of time. It is computed when it is asked for."""
        return float(self.modes().omega[-1]) if self.n <= ALL_MODES else highest_frequency(self)

    @documented("method")
    def stable_step(self, method: Method | str) -> float:
        """The h below which every step of a method is stable on the system without damping; inf if all are."""
        limit = stable_intervals(by_name(method))[0][1]
        return limit / self.omega_max if np.isfinite(limit) and self.omega_max > 0 else float("inf")

    def exact(self, q0: ArrayLike, p0: ArrayLike, t: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """q(t) and p(t) of the system without damping and load, by its modes.

        Parameters
        ----------
        q0, p0 : array_like, shape (n,)
            The start.
        t : number or array_like
            One time, or many.
        """
        if self.C is not None or self.f is not None:
            raise ValueError("the exact motion is known for M q̈ + K q = 0 only; this system has damping or a load")
        q0, p0 = (np.asarray(x, dtype=float) for x in (q0, p0))
        if q0.shape != (self.n,) or p0.shape != (self.n,):
            raise ValueError(f"q0 and p0 must have shape ({self.n},); got {q0.shape} and {p0.shape}")
        return self.modes().motion(q0, p0, t)


def _rows(a: Any, x: FloatArray) -> FloatArray:
    """a @ x for each row of x."""
    return np.asarray((a @ x.reshape(-1, a.shape[0]).T).T.reshape(x.shape))
