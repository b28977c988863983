"""Mechanics: what follows from a Lagrangian at a state, or at several with the same parameters.

momentum      p = ∂L/∂v (q, v)
velocity      its inverse v(q, p), by Newton where L is not quadratic in v
energy        E = p·v − L
acceleration  a = L_vv⁻¹ (L_q + F + Gᵀλ − L_vq v − L_vt), with the external force F and the reaction Gᵀλ, if there are
multipliers   λ such that g̈ = 0 where constraints g(t, q) = 0 hold, G = ∂g/∂q
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.docstrings import documented
from leastaction.errors import DegenerateLagrangianError
from leastaction.kernel.loops import evaluate
from leastaction.kernel.velocities import velocities
from leastaction.numbers.rounding import all_finite
from leastaction.program import Builder, Program
from leastaction.step.status import GOING_WELL, NOT_FINITE, SINGULAR
from leastaction.systems.arguments import Given, Params, flat
from leastaction.systems.frequencies import fastest
from leastaction.systems.programs import Parameters, Programs

FloatArray = NDArray[np.float64]

# What to do about a degenerate Lagrangian: at one configuration, or anywhere.
POLE = (
    "Beside this configuration it is not: this is a pole of its chart, as of an upright top in Euler's angles. Start "
    "beside it, or take coordinates without a pole there."
)
EVERYWHERE = "Give every coordinate a kinetic term, or eliminate the ones without."
EQUILIBRATIONS = 24  # each one halves the remaining exponents
DOMINANT = 1.999  # if a row whose diagonal is one sums up to less, the diagonal outweighs the other entries
ORDINARY = 1e-100  # quotients of numbers between this and one over this do not overflow


class Mechanics(Programs, Parameters):
    """Momenta, velocities, energies and accelerations of a system with parameters: at a state or at several with the
    same parameters, and, for runs, of many states each with its own.
    """

    @documented("states_v", "t", "params")
    def momentum(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The momentum p = ∂L/∂v, (n,) or (K, n)."""
        return self._evaluate(self.gradient, q, v, t, params)["Lv"]

    @documented("states_v", "t", "params")
    def value(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The Lagrangian L itself, a number or (K,)."""
        return self._evaluate(self.gradient, q, v, t, params)["L"][..., 0]

    @documented("states_p", "t", "params")
    def velocity(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The velocity v with ∂L/∂v(q, v) = p, (n,) or (K, n); by Newton's iteration where L is not quadratic in v.

        Raises
        ------
        DegenerateLagrangianError
            No velocity has this momentum.
        """
        Q, P, T, single = states_of(self.n, q, p, t, "p")
        V, found = velocities(self.node, self.mass_varies_with_velocity, T, Q, P, self.values(params))
        if not found.all():
            failed = int(np.argmin(found))
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has the momentum p = {P[failed]} at q = {Q[failed]}: ∂²L/∂v² is singular "
                "there, or the momentum is outside the range of ∂L/∂v. A Lagrangian must be regular in its velocities."
            )
        return V[0] if single else V

    @documented("states_p", "t", "params")
    def energy(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The energy E = p·v − L, which is the Hamiltonian, a number or (K,)."""
        v = self.velocity(q, p, t, params)
        return np.einsum("...i,...i->...", np.asarray(p, float), v) - self.value(q, v, t, params)

    @documented("states_v", "t", "params", "inputs")
    def external_force(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The external force F, with that of the Rayleigh function, (n,) or (K, n). Zero where there is none."""
        if self.force is None:
            return np.zeros(np.shape(v))
        return self._evaluate(self.force, q, v, t, params, inputs)["F"]

    @documented("states_v", "t", "params", "inputs")
    def acceleration(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The acceleration by the equations of Lagrange and d'Alembert, with forces and reactions, (n,) or (K, n).

        Raises
        ------
        DegenerateLagrangianError
            ∂²L/∂v² is singular at this state, or constraints depend on each other.
        """
        return self._motion(q, v, t, params, inputs)[0]

    @documented("states_v", "t", "params", "inputs")
    def multipliers(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The multipliers λ with which the constraints stay satisfied, g̈ = 0.

        Returns
        -------
        ndarray, shape (m,) or (K, m)
            The sign is that of the reaction Gᵀλ, which acts beside ∂L/∂q.
        """
        return self._motion(q, v, t, params, inputs)[1]

    @documented("states_v", "t", "params", "inputs")
    def reaction(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The generalised forces Gᵀλ that hold the constraints, (n,) or (K, n). Zero where there are none."""
        if not self.m:
            return np.zeros(np.shape(v))
        G = self._evaluate(self.geometry, q, v, t, params)["G"].reshape(*np.shape(v)[:-1], self.m, self.n)
        return np.einsum("...ij,...i->...j", G, self.multipliers(q, v, t, params, inputs))

    def _motion(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike, params: Params | None, inputs: Given
    ) -> tuple[FloatArray, FloatArray]:
        """Accelerations and multipliers: m_v a − Gᵀλ = f − m_q v − m_t, and G a = −bend."""
        n, m = self.n, self.m
        at = self._evaluate(self.node, q, v, t, params, inputs)
        shape = at["f"].shape[:-1]
        m_q, m_v = at["m_q"].reshape(*shape, n, n), at["m_v"].reshape(*shape, n, n)
        right = (at["f"] - np.einsum("...jk,...k->...j", m_q, np.asarray(v, float)) - at["m_t"])[..., None]
        try:
            if not m:
                return np.linalg.solve(m_v, right)[..., 0], np.zeros((*shape, 0))
            held = self._evaluate(self.geometry, q, v, t, params)
            G = held["G"].reshape(*shape, m, n)
            by_mass = np.linalg.solve(m_v, np.concatenate([right, np.swapaxes(G, -1, -2)], axis=-1))
            free, pulled = by_mass[..., :1], by_mass[..., 1:]
            multipliers = np.linalg.solve(G @ pulled, -held["bend"][..., None] - G @ free)
            return (free + pulled @ multipliers)[..., 0], multipliers[..., 0]
        except np.linalg.LinAlgError:
            reason = "∂²L/∂v² is singular there" + (", or its constraints depend on each other" if m else "")
            raise DegenerateLagrangianError(
                f"{self.name} has no acceleration at q = {q!r}, v = {v!r}: {reason}"
            ) from None

    def check_regular(self, q: FloatArray, v: FloatArray, t: float, params: FloatArray) -> None:
        """Raise if ∂²L/∂v² is singular at this point."""
        Lvv = self._evaluate(self.inertia, q, v, t, params)["m_v"].reshape(self.n, self.n)
        if not np.isfinite(Lvv).all():
            raise ValueError(f"∂²L/∂v² of {self.name} is not finite at q = {q}, v = {v}: {Lvv.tolist()}")
        if not is_regular(Lvv):
            still = ", ".join(f"∂L/∂v[{j}]" for j in np.flatnonzero(~Lvv.any(axis=1)))
            reason = f"{still} does not depend on v" if still else f"∂²L/∂v² = {Lvv.tolist()}"
            beside = q + 1e-3 * np.random.default_rng(0).standard_normal(self.n) * np.maximum(1.0, np.abs(q))
            near = self._evaluate(self.inertia, beside, v, t, params)["m_v"].reshape(self.n, self.n)
            raise DegenerateLagrangianError(
                f"{self.name} is degenerate at q = {q}, v = {v}: {reason}, so momenta do not determine velocities. "
                + (POLE if is_regular(near) else EVERYWHERE)
            )

    def _evaluate(
        self, program: Program, q: ArrayLike, v: ArrayLike, t: ArrayLike, params: Params | None, inputs: Given = None
    ) -> Any:
        Q, V, T, single = states_of(self.n, q, v, t, "v")
        values = self.values(params)
        rows = np.concatenate([T[:, None], Q, V, np.broadcast_to(values, (len(Q), len(values)))], axis=1)
        if "inputs" in dict(program.inputs) or inputs is not None:
            rows = np.concatenate([rows, flat(inputs, self.inputs, len(Q), self.name)], axis=1)
        result = evaluate(program, rows)
        blocks = {name: result[:, program.output_slice(name)] for name, _ in program.outputs}
        return {name: block[0] if single else block for name, block in blocks.items()}

    def velocities(
        self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """v(t, q, p) at K points with parameters (K, …), and a mask of the points that have a v; NaN elsewhere."""
        return velocities(self.node, self.mass_varies_with_velocity, t, q, p, params)

    def energies(self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        v, _ = self.velocities(t, q, p, params)
        L = evaluate(self.program, np.concatenate([t[:, None], q, v, params], axis=1))[:, 0]
        return np.asarray(np.einsum("ki,ki->k", p, v) - L)

    def terms_of_energy(
        self, t: float, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """v and L, and f and m at rest, at many states (K, n), each with its parameters; NaN where there is no v."""
        head = np.full((len(q), 1), t)
        v, _ = self.velocities(head[:, 0], q, p, params)
        found = evaluate(self._of_energy, np.concatenate([head, q, v, params], axis=1))
        return v, found[:, 0], found[:, 1 : 1 + self.n], found[:, 1 + self.n :]

    @cached_property
    def _of_energy(self) -> Program:
        """(t, q, v, params) ↦ L, and f = ∂L/∂q and m = ∂L/∂v at rest."""
        B = Builder(self.program.inputs)
        given = {name: B.input(name) for name, _ in B.inputs}
        rest = B.inline(self.gradient, **(given | {"v": [B.const(0.0)] * self.n}))
        return B.build(L=B.inline(self.program, **given)["L"], f=rest["Lq"], m=rest["Lv"])

    def places_ahead(
        self, t: float, q: FloatArray, v: FloatArray, params: FloatArray, times: Sequence[float]
    ) -> FloatArray:
        """q + v τ + ½ a τ² for these τ, (times, B, n), with a as without constraints; NaN where there is no a."""
        size, n = q.shape
        node = evaluate(self.node, np.concatenate([np.full((size, 1), t), q, v, params], axis=1))
        f, m_q, m_v = (node[:, self.node.output_slice(name)] for name in ("f", "m_q", "m_v"))
        right = f - np.einsum("bjk,bk->bj", m_q.reshape(size, n, n), v)
        try:
            a = np.linalg.solve(m_v.reshape(size, n, n), right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # constraints may make up for a singular mass
            a = np.full((size, n), np.nan)
        return np.array([q + v * tau + a * tau**2 / 2 for tau in times])

    def frequency(
        self, t: float, q: FloatArray, p: FloatArray, v: FloatArray, params: FloatArray, length: float
    ) -> float:
        return fastest(self, t, q, v, params, length)

    def begin(
        self,
        t: float,
        q: FloatArray,
        p: FloatArray | None,
        v: FloatArray | None,
        params: FloatArray,
        inputs: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int8]]:
        n, size, times = self.n, len(q), np.full(len(q), t)
        status = np.zeros(size, np.int8)
        if v is None:
            assert p is not None
            v, found = self.velocities(times, q, p, params)
            status[~found] = SINGULAR
        at = np.concatenate([times[:, None], q, v, params], axis=1)
        driven = at if inputs is None else np.concatenate([at, inputs], axis=1)
        values = evaluate(self.node, driven)
        block = {name: values[:, self.node.output_slice(name)] for name, _ in self.node.outputs}
        p = block["m"] if p is None else p
        m_q, Lvv = block["m_q"].reshape(size, n, n), block["m_v"].reshape(size, n, n)
        right = block["f"] - (m_q @ v[:, :, None])[:, :, 0] - block["m_t"]
        L = evaluate(self.program, at)
        terms = np.abs(np.concatenate([p, right, L], axis=1))
        if not status.any() and dominant(Lvv) and (terms < 1 / ORDINARY).all():
            return p, v, status
        finite = np.isfinite(Lvv).all(axis=(1, 2))
        usable = finite & (np.abs(Lvv).max(axis=2) > 0).all(axis=1)
        safe = np.where(usable[:, None, None], Lvv, np.eye(n))
        regular = usable & (np.linalg.matrix_rank(equilibrated(safe)) == n)
        a = np.linalg.solve(np.where(regular[:, None, None], safe, np.eye(n)), right[:, :, None])[:, :, 0]
        status[finite & ~regular] = SINGULAR
        known = finite & np.isfinite(np.concatenate([p, a, L], axis=1)).all(axis=1)
        status[(status == GOING_WELL) & ~known] = NOT_FINITE
        return p, v, status


def states_of(
    n: int, q: ArrayLike, other: ArrayLike, t: ArrayLike, name: str
) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    """q and another array as (K, n), the times as (K,), and whether a single state was given."""
    Q, X, T = (np.asarray(x, float) for x in (q, other, t))
    for label, array in (("q", Q), (name, X)):
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise ValueError(f"{label} must have shape ({n},) or (K, {n}); got {array.shape}")
    if Q.shape != X.shape:
        raise ValueError(f"q and {name} must have the same shape; got {Q.shape} and {X.shape}")
    single = Q.ndim == 1
    Q, X = np.atleast_2d(Q), np.atleast_2d(X)
    if T.shape not in ((), (1,), (len(Q),)):
        wanted = "one number" if single else f"one number or {len(Q)}, one for each state"
        raise ValueError(f"t must be {wanted}; got shape {T.shape}")
    T = np.broadcast_to(T, (len(Q),))
    return np.ascontiguousarray(Q), np.ascontiguousarray(X), np.ascontiguousarray(T), single


def check_start(
    system: Any,
    t: Any,
    q: NDArray[Any],
    p: NDArray[Any] | None,
    v: NDArray[Any] | None,
    params: NDArray[Any],
    inputs: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """p and v where a trajectory begins, or why it cannot; `system` may be a Lagrangian at another precision."""
    if p is None:
        system.check_regular(q, v, t, params)
        p = system.momentum(q, v, t, params)
    else:
        try:
            v = system.velocity(q, p, t, params)
        except DegenerateLagrangianError:
            system.check_regular(q, 0 * q, t, params)
            raise
        system.check_regular(q, v, t, params)
    if not all_finite(p):
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}: p = {p}")
    if not all_finite(np.array(system.energy(q, p, t, params))):
        raise ValueError(f"L is not finite at the start, q = {q}, v = {v}: the motion begins outside its domain")
    a = system.acceleration(q, v, t, params) if inputs is None else system.acceleration(q, v, t, params, inputs)
    if not all_finite(a):
        raise ValueError(f"the acceleration is not finite at the start, q = {q}, v = {v}: {a}")
    assert v is not None
    return p, v


def is_regular(Lvv: FloatArray) -> bool:
    """Whether a symmetric matrix has full rank, whatever the units of its rows and columns."""
    if dominant(Lvv[None]):
        return True
    return bool(Lvv.any(axis=1).all()) and int(np.linalg.matrix_rank(equilibrated(Lvv))) == len(Lvv)


def equilibrated(matrices: FloatArray) -> FloatArray:
    """Symmetric matrices, (…, n, n), with rows and columns scaled until the largest entry of each is about one.

    The result does not depend on units (Ruiz, *A scaling algorithm to equilibrate both rows and columns norms in
    matrices*, 2001). Rows of zeros stay zero.
    """
    scaled = matrices
    for _ in range(EQUILIBRATIONS):
        row = np.sqrt(np.abs(scaled).max(axis=-1, initial=0.0))
        row = np.where(row > 0, row, 1.0)
        scaled = scaled / row[..., :, None] / row[..., None, :]
    return scaled


def dominant(matrices: FloatArray) -> bool:
    """Whether symmetric matrices, (B, n, n), have diagonals of ordinary size that outweigh the rest of their rows, in
    units in which all diagonals are one, and so are regular beyond doubt.
    """
    size = np.abs(matrices)
    diagonal = np.diagonal(size, axis1=1, axis2=2)
    if not ((diagonal > ORDINARY) & (diagonal < 1 / ORDINARY)).all():
        return False
    unit = np.sqrt(diagonal)
    return bool(((size / unit[:, None, :]).sum(axis=2) < DOMINANT * unit).all())
