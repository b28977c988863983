"""The rescue: a step for which the compiled forms fail, alone, in NumPy, by Newton's iteration with the whole Jacobian.

Three predictions are tried, one after the other:

march         the motion, followed by the classical Runge–Kutta method from control point to control point
linearised    the uniform motion, from which a first iteration finds the step of the linearised equations
continuation  steps x h that grow from x → 0 to 1 (`step.continuation`), so that the root is the one that is connected
              with the motion

A root is trusted where Newton's iteration contracts at once (`newton`) and the determinant of ∂R/∂z has the sign
that it has for h → 0. With `branch="any"` any root is trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.call import Called
from leastaction.engine.linearised import Linearised
from leastaction.engine.verdict import MOST_ITERATIONS, STALLED
from leastaction.step.continuation import SECOND, SMALLEST, TRUST, follow, weights
from leastaction.step.form import Step
from leastaction.step.status import BRANCH_ENDS, NOT_CONVERGED, NOT_FINITE, SINGULAR, Failure

FloatArray = NDArray[np.float64]

SETTLED = 1e-13  # an increment, relative to the step, after which it is done; STALLED if they shrink no more
WOKEN = 2.0**-20  # a coordinate whose step grows from such a part of it was set in motion: there is nothing to compare
RESOLVED = 2.0**-40  # steps shorter than such a part of the coordinate count as that long
MARCHED = 4  # steps of Runge and Kutta, at least


class Unsolved(Exception):  # noqa: N818
    """A step without a root that can be trusted."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass
class _Tried:
    """What Newton's iteration found: the unknowns, or None and why; whether det ∂R/∂z is negative."""

    z: FloatArray | None
    status: int
    residual: float
    iterations: int
    negative: bool = False


@dataclass(frozen=True)
class Solved:
    """The unknowns of a step, (s, n + m), its impulse without the reaction at its end, and the iterations spent."""

    z: FloatArray
    impulse: FloatArray
    iterations: int
    continued: bool
    floor: FloatArray | float = 0.0  # scales are at least so long


class Rescue:
    """Single steps of one trajectory with these parameters."""

    end: Called | None = None

    def __init__(self, system: Any, step: Step, params: FloatArray) -> None:
        self.system, self.step, self.params = system, step, np.asarray(params, float)
        self.controls = np.array([float(d) for d in step.controls(20)[1:]])
        self.linearised = Linearised(step, self.params)
        if step.end is not None:
            self.end = Called(step.end.slopes.select("e_v", "c_v", "c_q", "c_t"))

    @np.errstate(all="ignore")  # what is no number is seen, and failed
    def solve(self, t: float, q: FloatArray, p: FloatArray, h: float, inputs: FloatArray) -> Solved:
        """The step from (q, p); inputs are those at the nodes, (r, channels)."""
        v = self.velocity(t, q, p)
        predictions = [self._march, self._uniform] if self.step.checked else [self._uniform, self._march]
        spent, continued, short = 0, False, self._short(t, q, p, h, v, inputs) if self.step.checked else None
        for predict in predictions:
            guess = predict(t, q, v, h, inputs)
            tried = self.newton(t, q, p, h, guess, inputs, short=short)
            spent += tried.iterations
            if tried.z is not None and (short is None or tried.negative == self.turned(short)):
                break
        else:
            tried, continued = self.follow(t, q, p, h, v, inputs, spent), True
            spent = tried.iterations
        assert tried.z is not None
        _, J, impulse, rough = self.equations(t, q, p, h, tried.z, inputs)
        return Solved(tried.z, impulse, spent, continued, self.floor(J, rough))

    def _uniform(self, t: float, q: FloatArray, v: FloatArray, h: float, inputs: FloatArray) -> FloatArray:
        guess = np.zeros((self.step.s, self.step.n + self.step.multipliers))
        guess[:, : self.step.n] = np.outer(self.controls, v) * h
        return guess

    def _march(self, t: float, q: FloatArray, v: FloatArray, h: float, inputs: FloatArray) -> FloatArray:
        guess, n = self._uniform(t, q, v, h, inputs), self.step.n
        driven = inputs[0] if len(inputs) else inputs

        def rate(t: float, y: FloatArray) -> FloatArray:
            return np.concatenate([y[n:], self.acceleration(t, y[:n], y[n:], driven)[:n]])

        y, now = np.concatenate([q, v]), 0.0
        try:
            for k, c in enumerate(self.controls):
                count = max(1, -(-MARCHED // self.step.s))
                d = h * (c - now) / count
                for j in range(count):
                    T = t + h * now + j * d
                    a = rate(T, y)
                    b = rate(T + d / 2, y + d / 2 * a)
                    e = rate(T + d / 2, y + d / 2 * b)
                    y = y + d / 6 * (a + 2 * (b + e) + rate(T + d, y + d * e))
                guess[k, :n], now = y[:n] - q, c
            # Multipliers belong to the controls 0 … s − 1, and change little from one to the next.
            guess[:, n:] = self.acceleration(t, q, v, driven)[n:]
        except np.linalg.LinAlgError:
            guess[:] = np.nan
        return guess

    def acceleration(self, t: float, q: FloatArray, v: FloatArray, inputs: FloatArray) -> FloatArray:
        """About that of the motion; behind it the multipliers with which g̈ = 0."""
        n, none = self.step.n, np.zeros(self.step.multipliers)
        given = {"t": t, "q": q, "v": v, "multipliers": none, "params": self.params, "inputs": inputs}
        at = self.linearised.slopes[0](given)
        M, turn = at["m_v"].reshape(n, n), at["m_q"].reshape(n, n) @ v if "m_q" in at else 0.0
        if self.end is None:
            return np.asarray(np.linalg.solve(M, at["f"] - turn))
        held = self.end(given)
        bend = held["c_q"].reshape(-1, n) @ v + held["c_t"]
        return np.asarray(np.linalg.solve(self._saddle(held), np.concatenate([at["f"] - turn, -bend])))

    def _saddle(self, held: dict[str, Any]) -> FloatArray:
        M, G = (held[name].reshape(-1, self.step.n) for name in ("e_v", "c_v"))
        return np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])

    def _folds(self, t: float, q: FloatArray, h: float, solved: Any) -> bool:
        """Whether constraints depend on each other where a branch ends: a singular value of G in the metric of the mass
        is as small as the way that is left.
        """
        if self.end is None:
            return False
        x, n = solved[-1][0], self.step.n
        place = q + _extrapolated(solved, x + SMALLEST)[-1, :n]
        held = self.end({"t": t + x * h, "q": place, "v": 0.0, "multipliers": 0.0, "params": self.params})
        weights = np.sqrt(np.abs(np.diagonal(held["e_v"].reshape(n, n))))
        rows = held["c_v"].reshape(-1, n) / np.where(weights > 0.0, weights, 1.0)
        sines = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
        return bool(sines[-1] < SMALLEST)

    def floor(self, J: Any, rough: FloatArray) -> FloatArray | float:
        """The scales of which STALLED is what rounding of the terms moves the coordinates by: 16 ε |J⁻¹| Σ |terms|."""
        try:
            moved = np.abs(self._by_point(np.abs(np.linalg.inv(J)) @ rough)[:, : self.step.n]).max(axis=0)
        except np.linalg.LinAlgError:
            return 0.0
        return np.where(moved < np.inf, moved * (2.0**-48 / STALLED), 0.0)

    def _short(self, t: float, q: FloatArray, p: FloatArray, h: float, v: FloatArray, inputs: FloatArray) -> Any:
        """∂R/∂z for h → 0, where it is about A/h ⊗ L_vv."""
        small = h * SMALLEST
        _, J, *_ = self.equations(t, q, p, small, self._uniform(t, q, v, small, inputs), inputs)
        return J * SMALLEST

    def follow(
        self, t: float, q: FloatArray, p: FloatArray, h: float, v: FloatArray, inputs: FloatArray, spent: int
    ) -> _Tried:
        """The root that is connected with the solution at h → 0."""
        counts = [spent]

        def attempt(x: float, solved: Any) -> _Tried:
            guess = _extrapolated(solved, x) if solved else self._uniform(t, q, v, h * x, inputs)
            tried = self.newton(t, q, p, h * x, guess, inputs, near=bool(solved))
            counts.append(tried.iterations)
            return tried

        tried, solved = follow(attempt)
        reached = solved[-1][0] if solved else 0.0
        if reached == 1.0:
            return replace(tried, iterations=sum(counts))
        status = BRANCH_ENDS if solved and tried.status != NOT_FINITE else tried.status or BRANCH_ENDS
        if solved and self._folds(t, q, h, solved):
            status = SINGULAR
        raise Unsolved(Failure(status, tried.residual, sum(counts), reached))

    def velocity(self, t: float, q: FloatArray, p: FloatArray) -> FloatArray:
        """The velocity of a momentum."""
        with np.errstate(all="ignore"):
            (v,), (found,) = self.system.velocities(np.array([t]), q[None], p[None], self.params)
        if not found or not np.isfinite(v).all():
            status = SINGULAR if np.isfinite(np.concatenate([q, p])).all() else NOT_FINITE
            raise Unsolved(Failure(status, np.inf, 0, 0.0))
        return np.asarray(v, float)

    def newton(
        self, t: float, q: FloatArray, p: FloatArray, h: float, z: Any, inputs: FloatArray, near: bool = False,
        short: Any = None,
    ) -> _Tried:  # fmt: skip
        """Newton's iteration from z. Increments are counted in parts of their coordinate's step; trusted is what
        contracts to a quarter at first, also where the second one is that of the `short` step's matrix, and to SECOND
        of the step then. With `near` the first one may be a 64th part of it.
        """
        n, checked = self.step.n, self.step.checked
        before, begun, residual = (1 / 64 if near else np.inf), False, np.inf
        scale = np.maximum(np.abs(z[:, :n]).max(axis=0), np.abs(q) * RESOLVED + 1e-280)
        for k in range(1, MOST_ITERATIONS + 1):
            R, J, _, rough = self.equations(t, q, p, h, z, inputs)
            residual = float(np.abs(R).max())
            if not np.isfinite(R).all():
                return _Tried(None, NOT_FINITE, residual, k)
            found = self.increment(J, R)
            if found is None:
                return _Tried(None, SINGULAR, residual, k)
            if k == 1:
                scale = np.maximum(scale, self.floor(J, rough))
            dz = self._by_point(found)
            z, last = z + dz, before
            old, scale = scale, np.maximum(scale, np.abs(z[:, :n]).max(axis=0))
            size = float((np.abs(dz[:, :n]) / self.unit(scale)).max())
            if not np.isfinite(size):
                return _Tried(None, NOT_FINITE, residual, k)
            if size <= SETTLED or (k > 1 and size <= STALLED and size > 0.25 * last):
                return _Tried(z, 0, size, k, self.turned(J))
            if (old < WOKEN * scale).any():
                begun, before = False, np.inf
                continue
            if k == 2 and short is not None and not self.step.multipliers:
                plain = self.increment(short, R)
                if plain is None or (np.abs(self._by_point(plain)) > TRUST * last * self.unit(scale)).any():
                    return _Tried(None, NOT_CONVERGED, size, k)
            if checked and size > (min(TRUST * last, SECOND) if begun else TRUST * last if not near else last):
                return _Tried(None, NOT_CONVERGED, size, k)
            begun, before = True, size
        return _Tried(None, NOT_CONVERGED, size, MOST_ITERATIONS)

    def increment(self, J: Any, R: FloatArray) -> FloatArray | None:
        """−J⁻¹R; None where there is none. No numbers in J give no numbers here."""
        try:
            return -np.linalg.solve(J, R)
        except np.linalg.LinAlgError:
            return None

    def turned(self, J: Any) -> bool:
        """Whether the determinant is negative."""
        return bool(np.linalg.slogdet(J)[0] < 0)

    def unit(self, scale: FloatArray) -> FloatArray:
        """By what increments of each coordinate are measured, from the size of its step."""
        return scale

    def _by_point(self, x: NDArray[Any]) -> FloatArray:
        s, n, m = self.step.s, self.step.n, self.step.multipliers
        return np.concatenate([x[: s * n].reshape(s, n), x[s * n :].reshape(s, m)], axis=1)

    def equations(
        self, t: float, q: FloatArray, p: FloatArray, h: float, z: FloatArray, inputs: FloatArray
    ) -> tuple[FloatArray, Any, FloatArray, FloatArray]:
        """R, ∂R/∂z, the impulse, and what R is summed from, without signs; multipliers and their equations stand behind
        all increments.
        """
        values, K, rough = self.linearised(t, h, q, z, inputs)
        n, N, end = self.step.n, z.size, self.step.s * self.step.n
        values[end - n : end] -= p
        rough[end - n : end] += np.abs(p)
        return values[:N], K[:N, :N], values[N:], rough[:N]


def _extrapolated(solved: Any, x: float) -> FloatArray:
    return np.asarray(sum(w * tried.z for w, (_, tried) in zip(weights(solved, x), solved, strict=True)))
