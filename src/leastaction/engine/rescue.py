"""The rescue: Newton's iteration with the whole Jacobian in NumPy, by continuation in h where it fails.

A step for which the compiled forms fail is solved here, alone. First the whole step from the velocity, then parts of
it, each predicted by the part before, so that the root is the one that is connected with h → 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.status import BRANCH_ENDS, NOT_CONVERGED, NOT_FINITE, SINGULAR, Failure
from leastaction.engine.call import Called
from leastaction.engine.verdict import NEAR, SLOWER, TRUST
from leastaction.step.form import Step, stencils

FloatArray = NDArray[np.float64]

MOST_ITERATIONS = 16
SETTLED, STALLED = 1e-13, 1e-9  # increments relative to the step: done; done if they shrink no more
SMALLEST = 2.0**-10  # the least part of a step by which a continuation grows
FURTHER = 1.5  # by how much more the next part grows where the last one was found


class Unsolved(Exception):  # noqa: N818
    """A step without a root that can be trusted."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass
class _Tried:
    """What Newton's iteration found: the unknowns, or None and why."""

    z: FloatArray | None
    status: int
    residual: float
    iterations: int


@dataclass(frozen=True)
class Solved:
    """The unknowns of a step, (s, n + m), its impulse without the reaction at its end, and the iterations spent."""

    z: FloatArray
    impulse: FloatArray
    iterations: int
    continued: bool


class Rescue:
    """Single steps of one trajectory with these parameters."""

    def __init__(self, system: Any, step: Step, params: FloatArray) -> None:
        self.system, self.step, self.params = system, step, np.asarray(params, float)
        self.controls = np.array([float(d) for d in step.controls(20)[1:]])
        self.slopes = [Called(term.slopes) for term in step.terms]

    def solve(self, t: float, q: FloatArray, p: FloatArray, h: float, inputs: FloatArray) -> Solved:
        """The step from (q, p); inputs are those at the nodes, (r, channels)."""
        v = self.velocity(t, q, p)
        n, m, s = self.step.n, self.step.multipliers, self.step.s
        part, grow, found, spent = 0.0, 1.0, None, 0
        why = _Tried(None, NOT_CONVERGED, np.inf, 0)
        while part < 1.0:
            to = min(1.0, part + grow)
            if found is None:
                guess = np.zeros((s, n + m))
                guess[:, :n] = np.outer(self.controls, v) * h * to
            else:
                guess = found * np.concatenate([np.full(n, to / part), np.ones(m)])
            tried = self.newton(t, q, p, h * to, guess, inputs)
            spent += tried.iterations
            if tried.z is None:
                why, grow = tried, (0.5 * grow if part else 0.125 * grow)
                if grow < SMALLEST:
                    status = BRANCH_ENDS if part and why.status != NOT_FINITE else why.status
                    raise Unsolved(Failure(status, why.residual, spent, part))
            else:
                grow, part, found = (FURTHER * grow if part else to), to, tried.z
        assert found is not None
        _, _, impulse = self.equations(t, q, p, h, found, inputs)
        return Solved(found, impulse, spent, why.iterations > 0)

    def velocity(self, t: float, q: FloatArray, p: FloatArray) -> FloatArray:
        """The velocity of a momentum."""
        with np.errstate(all="ignore"):
            (v,), (found,) = self.system.velocities(np.array([t]), q[None], p[None], self.params)
        if not found or not np.isfinite(v).all():
            status = SINGULAR if np.isfinite(np.concatenate([q, p])).all() else NOT_FINITE
            raise Unsolved(Failure(status, np.inf, 0, 0.0))
        return np.asarray(v, float)

    def newton(self, t: float, q: FloatArray, p: FloatArray, h: float, z: Any, inputs: FloatArray) -> _Tried:
        """Newton's iteration from z; trusted where its first contraction is below a quarter."""
        n = self.step.n
        before, residual = np.inf, np.inf
        scale = np.abs(z[:, :n]).max(axis=0)
        for k in range(1, MOST_ITERATIONS + 1):
            R, J, _ = self.equations(t, q, p, h, z, inputs)
            residual = float(np.abs(R).max())
            if not np.isfinite(R).all():
                return _Tried(None, NOT_FINITE, residual, k)
            found = self.increment(J, R)
            if found is None:
                return _Tried(None, SINGULAR, residual, k)
            dz = self._by_point(found)
            z = z + dz
            before_it, scale = scale, np.maximum(scale, np.abs(z[:, :n]).max(axis=0))
            waking = bool((scale > 2.0 * before_it).any())  # a coordinate moves that was at rest
            unit = self.unit(np.maximum(scale, np.abs(q) * 2.0**-40)) + 1e-280
            size = float((np.abs(dz[:, :n]) / unit).max())
            if not np.isfinite(size):
                return _Tried(None, NOT_FINITE, residual, k)
            if size <= SETTLED or (k > 2 and size <= STALLED and size > 0.25 * before):
                return _Tried(z, 0, residual, k)
            if k > 1 and not waking and size > (TRUST if k == 2 and before > NEAR else SLOWER) * before:
                return _Tried(None, NOT_CONVERGED, residual, k)
            before = size
        return _Tried(None, NOT_CONVERGED, residual, MOST_ITERATIONS)

    def increment(self, J: Any, R: FloatArray) -> FloatArray | None:
        """−J⁻¹R; None where there is none. No numbers in J give no numbers here."""
        try:
            return -np.linalg.solve(J, R)
        except np.linalg.LinAlgError:
            return None

    def unit(self, scale: FloatArray) -> FloatArray:
        """By what increments of each coordinate are measured, from the size of its step."""
        return scale

    def _by_point(self, x: NDArray[Any]) -> FloatArray:
        s, n, m = self.step.s, self.step.n, self.step.multipliers
        return np.concatenate([x[: s * n].reshape(s, n), x[s * n :].reshape(s, m)], axis=1)

    def equations(
        self, t: float, q: FloatArray, p: FloatArray, h: float, z: FloatArray, inputs: FloatArray
    ) -> tuple[FloatArray, Any, FloatArray]:
        """R, ∂R/∂z and the impulse (`step.form`); multipliers and their equations stand behind all increments."""
        step, n, s, m = self.step, self.step.n, self.step.s, self.step.multipliers
        N = s * n
        R, J, impulse = np.zeros(s * (n + m)), np.zeros((s * (n + m), s * (n + m))), np.zeros(n)
        R[N - n : N] = -p
        read = {"q": z[:, :n], "v": z[:, :n], "multipliers": z[:, n:]}
        place = {"q": (slice(0, N), n), "v": (slice(0, N), n), "multipliers": (slice(N, None), m)}
        put = {"f": (slice(0, N), n), "m": (slice(0, N), n), "g": (slice(N, None), m)}
        for e, term in enumerate(step.terms):
            table = stencils(step.samples(term), h)
            for i, (time, weight) in enumerate(zip(table.times, table.weights, strict=True)):
                at = self._at(
                    e, t + time, q + table.gather["q"][i] @ read["q"], table.gather["v"][i] @ read["v"],
                    table.gather["multipliers"][i] @ read["multipliers"], inputs[i] if len(inputs) else inputs,
                )  # fmt: skip
                for name, (rows, _) in put.items():
                    if name not in at:
                        continue
                    scatter, w = table.scatter[name][i], 1.0 if name == "g" else weight
                    R[rows] += np.outer(scatter, w * at[name]).ravel()
                    if name == "f":
                        impulse += w * at[name]
                    for block, (columns, _) in place.items():
                        slope = at.get(f"{name}_{block}")
                        if slope is not None:
                            J[rows, columns] += w * np.kron(np.outer(scatter, table.gather[block][i]), slope)
        return R, J, impulse

    def _at(
        self, e: int, t: float, q: FloatArray, v: FloatArray, multipliers: FloatArray, inputs: FloatArray
    ) -> dict[str, Any]:
        """What a term gives at a point, derivatives as matrices."""
        given = {"t": t, "q": q, "v": v, "multipliers": multipliers, "params": self.params, "inputs": inputs}
        sizes = dict(self.step.terms[e].slopes.outputs)
        return {
            name: values.reshape(sizes[name.split("_")[0]], -1) if "_" in name else values
            for name, values in self.slopes[e](given).items()
        }
