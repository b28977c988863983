"""Mechanics: what follows from a Lagrangian at a state, or at several with the same parameters.

momentum      p = ∂L/∂v (q, v)
velocity      its inverse v(q, p), by Newton where L is not quadratic in v
energy        E = p·v − L
acceleration  a = L_vv⁻¹ (L_q + F + Gᵀλ − L_vq v − L_vt), with the external force F and the reaction Gᵀλ, if there are
multipliers   λ such that g̈ = 0 where constraints g(t, q) = 0 hold, G = ∂g/∂q
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.backends import points
from leastaction.docstrings import documented
from leastaction.errors import DegenerateLagrangianError
from leastaction.numbers.rounding import FLOAT64, Reals
from leastaction.program import Program
from leastaction.step.inputs import flat
from leastaction.systems.arguments import Given, Params, values_of
from leastaction.systems.programs import Programs
from leastaction.systems.regularity import is_regular

FloatArray = NDArray[np.float64]

# What to do about a degenerate Lagrangian: at one configuration, or anywhere.
POLE = (
    "Beside this configuration it is not: this is a pole of its chart, as of an upright top in Euler's angles. Start "
    "beside it, or take coordinates without a pole there."
)
EVERYWHERE = "Give every coordinate a kinetic term, or eliminate the ones without."


class Mechanics(Programs):
    """Momenta, velocities, energies and accelerations of a system with parameters."""

    _given: dict[str, Any]  # the parameters as they were given
    _defaults: dict[str, NDArray[Any]]  # as arrays of floats

    @property
    def given(self) -> dict[str, Any]:
        """Names and default values of the parameters, as they were given."""
        return dict(self._given)

    @property
    def params(self) -> dict[str, Any]:
        """Names and default values of the parameters."""
        return self.named(self.values())

    def named(self, values: NDArray[Any]) -> dict[str, Any]:
        """The flat array of `values`, by name."""
        named, start = {}, 0
        for name, default in self._defaults.items():
            block = values[start : start + default.size].reshape(default.shape)
            named[name] = block.item() if default.shape == () else block.copy()
            start += default.size
        return named

    def values(self, params: Params | None = None, reals: Reals = FLOAT64) -> NDArray[Any]:
        """The parameters as one flat array, defaults replaced by what `params` brings."""
        if isinstance(params, np.ndarray):
            size = self.program.inputs[-1][1]
            if params.shape != (size,):
                raise ValueError(f"the flat array of {self.name}'s parameters has shape ({size},), got {params.shape}")
            return params
        if not isinstance(params, Mapping | None):
            raise TypeError(f"params must map names to values, as in dict(m=1.0); got {params!r}")
        if not params and reals is FLOAT64:
            return self._flat.copy()
        merged = dict(self._defaults) if reals is FLOAT64 else values_of(self._given, reals)
        for name, value in values_of(params or {}, reals).items():
            if name not in merged:
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {sorted(merged) or 'none'}")
            if value.shape != merged[name].shape:
                raise ValueError(f"parameter {name!r} has shape {merged[name].shape}, got {value.shape}")
            merged[name] = value
        return np.concatenate([reals.array([]), *(value.ravel() for value in merged.values())])

    @cached_property
    def _flat(self) -> FloatArray:
        """The defaults of the parameters, one after the other."""
        return np.concatenate([np.zeros(0), *(value.ravel() for value in self._defaults.values())])

    @documented("states_v", "t", "params")
    def momentum(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The momentum p = ∂L/∂v, (n,) or (K, n).

        Examples
        --------
        >>> import leastaction as la
        >>> free = la.Lagrangian(lambda q, v, m: 0.5 * m * v[0] ** 2, n=1, params={"m": 2.0})
        >>> free.momentum([0.0], [3.0]), free.momentum([0.0], [3.0], params={"m": 5.0})
        (array([6.]), array([15.]))
        """
        return self._evaluate(self.gradient, q, v, t, params)["Lv"]

    @documented("states_v", "t", "params")
    def value(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The Lagrangian L itself, a number or (K,).

        Examples
        --------
        >>> import leastaction as la
        >>> free = la.Lagrangian(lambda q, v, m: 0.5 * m * v[0] ** 2, n=1, params={"m": 2.0})
        >>> float(free.value([0.0], [3.0]))
        9.0
        """
        return self._evaluate(self.gradient, q, v, t, params)["L"][..., 0]

    @documented("states_p", "t", "params")
    def velocity(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The velocity v with ∂L/∂v(q, v) = p, (n,) or (K, n); by Newton's iteration where L is not quadratic in v.

        Raises
        ------
        DegenerateLagrangianError
            No velocity has this momentum.

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> relativistic = la.Lagrangian(lambda q, v: -np.sqrt(1 - v[0] ** 2), n=1)
        >>> relativistic.velocity([0.0], [0.75])
        array([0.6])
        """
        Q, P, T, single = self._rows(q, p, t, "p")
        V, failed = self._inverse(T, Q, P, self.values(params))
        if failed is not None:
            raise DegenerateLagrangianError(
                f"no velocity of {self.name} has the momentum p = {P[failed]} at q = {Q[failed]}: ∂²L/∂v² is singular "
                "there, or the momentum is outside the range of ∂L/∂v. A Lagrangian must be regular in its velocities."
            )
        return V[0] if single else V

    @documented("states_p", "t", "params")
    def energy(self, q: ArrayLike, p: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None) -> FloatArray:
        """The energy E = p·v − L, which is the Hamiltonian, a number or (K,).

        Examples
        --------
        >>> import leastaction as la
        >>> spring = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 2 * q[0] ** 2, n=1)
        >>> float(spring.energy([1.0], [2.0]))
        4.0
        """
        v = self.velocity(q, p, t, params)
        return np.einsum("...i,...i->...", np.asarray(p, float), v) - self.value(q, v, t, params)

    @documented("states_v", "t", "params", "inputs")
    def external_force(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The external force F, with that of the Rayleigh function, (n,) or (K, n). Zero where there is none.

        Examples
        --------
        >>> import leastaction as la
        >>> slowed = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1, dissipation=lambda q, v: 0.1 * v[0] ** 2)
        >>> slowed.external_force([0.0], [3.0])
        array([-0.6])
        """
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

        Examples
        --------
        >>> import numpy as np, leastaction as la
        >>> kepler = la.Lagrangian(lambda q, v: 0.5 * (v @ v) + 1 / np.sqrt(q @ q), n=2)
        >>> kepler.acceleration([2.0, 0.0], [0.0, 1.0])
        array([-0.25,  0.  ])
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

        Examples
        --------
        >>> import leastaction as la
        >>> hanging = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 10 * q[1], n=2, constraints=lambda q: q[1] + 1)
        >>> hanging.multipliers([0.0, -1.0], [0.0, 0.0])
        array([10.])
        """
        return self._motion(q, v, t, params, inputs)[1]

    @documented("states_v", "t", "params", "inputs")
    def reaction(
        self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0, params: Params | None = None, inputs: Given = None
    ) -> FloatArray:
        """The generalised forces Gᵀλ that hold the constraints, (n,) or (K, n). Zero where there are none.

        Examples
        --------
        >>> import leastaction as la
        >>> hanging = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 10 * q[1], n=2, constraints=lambda q: q[1] + 1)
        >>> hanging.reaction([0.0, -1.0], [0.0, 0.0])
        array([ 0., 10.])
        """
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

    @cached_property
    def _inverse(self) -> points.Velocities:
        return points.Velocities(self.node, self.n)

    def _evaluate(
        self, program: Program, q: ArrayLike, v: ArrayLike, t: ArrayLike, params: Params | None, inputs: Given = None
    ) -> Any:
        Q, V, T, single = self._rows(q, v, t, "v")
        values = self.values(params)
        rows = np.concatenate([T[:, None], Q, V, np.broadcast_to(values, (len(Q), len(values)))], axis=1)
        if "inputs" in dict(program.inputs) or inputs is not None:
            rows = np.concatenate([rows, flat(inputs, self.inputs, len(Q), self.name)], axis=1)
        result = points.evaluate(program, rows)
        blocks = {name: result[:, program.output_slice(name)] for name, _ in program.outputs}
        return {name: block[0] if single else block for name, block in blocks.items()}

    def _rows(
        self, q: ArrayLike, other: ArrayLike, t: ArrayLike, name: str
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Both arrays as (K, n), the times as (K,), and whether a single point was given."""
        Q, X = np.asarray(q, float), np.asarray(other, float)
        for label, array in (("q", Q), (name, X)):
            if array.ndim not in (1, 2) or array.shape[-1] != self.n:
                raise ValueError(f"{label} must have shape ({self.n},) or (K, {self.n}); got {array.shape}")
        if Q.shape != X.shape:
            raise ValueError(f"q and {name} must have the same shape; got {Q.shape} and {X.shape}")
        single = Q.ndim == 1
        Q, X = np.atleast_2d(Q), np.atleast_2d(X)
        T = np.asarray(t, float)
        if T.shape not in ((), (1,), (len(Q),)):
            wanted = "one number" if single else f"one number or {len(Q)}, one for each state"
            raise ValueError(f"t must be {wanted}; got shape {T.shape}")
        T = np.broadcast_to(T, (len(Q),))
        return np.ascontiguousarray(Q), np.ascontiguousarray(X), np.ascontiguousarray(T), single
