"""The equations of a step and their derivatives at one z, in NumPy: gather, evaluate, scatter (`step.form`).

The rescue solves with them, and the derivatives that long steps carry along follow from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.call import Called
from leastaction.engine.ending import CURVED
from leastaction.engine.newton_equations import READ
from leastaction.step.form import Step, stencils
from leastaction.step.sensitivity import sensitivity

FloatArray = NDArray[np.float64]


class Linearised:
    """R and I, and their derivatives by z and q, and by `further` quantities: the parameters w, and behind them h.

    Rows are those of R and behind them I; unknowns of all increments, and behind them multipliers; equations likewise.
    """

    def __init__(self, step: Step, params: FloatArray, further: int = 0) -> None:
        self.step, self.params, self.further = step, params, further
        self.slopes = [Called(term.slopes) for term in step.terms]
        self.more = [Called(sensitivity(term)) for term in step.terms] if further else []

    def __call__(
        self, t: float, h: float, q: FloatArray, z: FloatArray, inputs: FloatArray, period: float = 1.0,
        begun: float = 0.0,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
        """(R without p, I), the matrix of derivatives, and what R and I are summed from, without signs, of a step that
        begins `begun` periods after the start of the run; z is (s, n + m).
        """
        step, n, s, m, further = self.step, self.step.n, self.step.s, self.step.multipliers, self.further
        N, held = s * (n + m), ("multipliers", "g")
        values, rough, K = np.zeros(N + n), np.zeros(N + n), np.zeros((N + n, N + n + further))
        # Increments and q, equations and I; multipliers and g.
        places = np.concatenate([np.arange(s * n), N + np.arange(n)]), np.arange(s * n, N)
        pairs: dict[tuple[bool, bool], list[tuple[FloatArray, FloatArray]]] = {}
        unknowns = {"q": z[:, :n], "v": z[:, :n], "multipliers": z[:, n:]}
        for e, term in enumerate(step.terms):
            table, count = stencils(step.samples(term), h), len(step.samples(term).tau)
            motion = {block: table.gather[block] @ unknowns[block] for block in READ}
            found = self._found(e, t + table.times, q, motion, inputs)
            weight, nothing = table.weights[:, None], np.zeros((count, 1))
            gathers = {
                "q": np.concatenate([table.gather["q"], nothing + 1.0], axis=1),
                "v": np.concatenate([table.gather["v"], nothing], axis=1),
                "multipliers": table.gather["multipliers"],
            }
            scatters = {
                "f": np.concatenate([weight * table.scatter["f"], weight], axis=1),
                "m": np.concatenate([weight * table.scatter["m"], nothing], axis=1),
                "g": table.scatter["g"],
            }
            for out, scatter in scatters.items():
                if out not in found:
                    continue
                size, place = found[out].shape[1], places[out in held]
                values[place] += (scatter.T @ found[out]).ravel()
                slopes = {block: found[f"{out}_{block}"] for block in READ if f"{out}_{block}" in found}
                terms = np.abs(found[out])
                for block, slope in slopes.items():
                    at = np.abs(motion[block] + q if block == "q" else motion[block])
                    terms = terms + np.einsum("ijk,ik->ij", np.abs(slope).reshape(count, size, at.shape[1]), at)
                    both = (scatter[:, :, None] * gathers[block][:, None, :]).reshape(count, -1)
                    pairs.setdefault((out in held, block in held), []).append((both, slope))
                rough[place] += (np.abs(scatter).T @ terms).ravel()
                if not further:
                    continue
                more = np.zeros((count, size, further))
                more[:, :, :-1] = found[f"{out}_params"].reshape(count, size, further - 1)
                more[:, :, -1] = found[f"{out}_t"] * (begun + table.times / period)[:, None]
                if out == "f":
                    more[:, :, -1] += found["f"] / period
                if "v" in slopes:
                    faster = np.einsum("ijk,ik->ij", slopes["v"].reshape(count, size, n), motion["v"])
                    more[:, :, -1] -= faster / period
                K[place, N + n :] += (scatter.T @ more.reshape(count, -1)).reshape(-1, further)
        for (row, column), own in pairs.items():
            both, slope = (np.concatenate(part) for part in zip(*own, strict=True))
            sizes = [m if kind else n for kind in (row, column)]
            heights = [len(places[kind]) // size for kind, size in zip((row, column), sizes, strict=True)]
            part = (both.T @ slope).reshape(*heights, *sizes).swapaxes(1, 2)
            K[np.ix_(places[row], places[column])] = part.reshape(len(places[row]), len(places[column]))
        return values, K, rough

    def _found(
        self, e: int, times: FloatArray, q: FloatArray, motion: dict[str, FloatArray], inputs: FloatArray
    ) -> dict[str, FloatArray]:
        """What a term gives at all points, a row for each."""
        every = []
        for i, time in enumerate(times):
            at: dict[str, Any] = {name: motion[name][i] for name in ("v", "multipliers")}
            at |= {"t": time, "q": q + motion["q"][i], "params": self.params}
            at["inputs"] = inputs[i % len(inputs)] if len(inputs) else inputs
            every.append(self.slopes[e](at) | (self.more[e](at) if self.further else {}))
        return {name: np.array([at[name] for at in every]) for name in every[0]}


class Carrying(Linearised):
    """Derivatives carried along by steps that are too long for a Program: the equations of `directions`."""

    def __init__(self, step: Step, params: FloatArray, varied: int) -> None:
        super().__init__(step, params, max(0, varied - 2 * step.n))
        self.end = None if step.end is None else (Called(step.end.program), Called(step.end.slopes))

    def carried(
        self, D: FloatArray, t: float, h: float, period: float, q: FloatArray, p: FloatArray, z: FloatArray,
        inputs: FloatArray, begun: float,
    ) -> FloatArray:  # fmt: skip
        """The directions D after a step of length h from (q, p) with the unknowns z; `begun` periods after the
        start of the run.
        """
        n, s, m = self.step.n, self.step.s, self.step.multipliers
        N, seeds = s * (n + m), np.eye(self.further, len(D), 2 * n)
        z = np.concatenate([z[: s * n].reshape(s, n), z[s * n :].reshape(s, m)], axis=1)
        values, K, _ = self(t, h, q, z, inputs, period, begun)
        given = np.concatenate([D[:, :n].T, seeds])
        right = -K[:N, N:] @ given
        right[(s - 1) * n : s * n] += D[:, n:].T
        try:
            dz = np.linalg.solve(K[:N, :N], right)
        except np.linalg.LinAlgError:
            dz = np.full(right.shape, np.nan)
        dq = D[:, :n].T + dz[(s - 1) * n : s * n]
        dp = D[:, n:].T + K[N:] @ np.concatenate([dz, given])
        if self.end is not None:
            v = self.step.method.table.slope[1:] @ z[:, :n] / h
            dp = self._ended(t + h, q + z[-1, :n], v, p + values[N:], dq, dp, seeds, begun + h / period)
        return np.concatenate([dq, dp]).T

    def _ended(
        self, t: float, q: FloatArray, v: FloatArray, p: FloatArray, dq: FloatArray, dp: FloatArray, seeds: FloatArray,
        when: float,
    ) -> FloatArray:  # fmt: skip
        """dp⁺ from dq⁺ and dp⁻."""
        assert self.end is not None and self.step.end is not None
        (still, moving), n, m = self.end, self.step.n, self.step.multipliers
        at: dict[str, Any] = {"t": t, "q": q, "multipliers": np.zeros(m), "params": self.params}
        for _ in range(1 if self.step.end.linear else CURVED):
            found = still(at | {"v": v})
            G = found["c_v"].reshape(m, n)
            saddle = np.block([[found["e_v"].reshape(n, n), -G.T], [G, np.zeros((m, m))]])
            solved = np.linalg.solve(saddle, np.concatenate([p - found["e"], -found["c"]]))
            v = v + solved[:n]
        found = moving(at | {"v": v, "multipliers": solved[n:]})

        def along(name: str, size: int) -> FloatArray:
            by = np.concatenate([found[f"{name}_w"].reshape(size, -1), when * found[f"{name}_t"][:, None]], axis=1)
            return found[f"{name}_q"].reshape(size, n) @ dq + by[:, : len(seeds)] @ seeds

        right = np.concatenate([dp - along("e", n), -along("c", m)])
        dv = np.linalg.solve(saddle, right)[:n]
        return along("m", n) + found["e_v"].reshape(n, n) @ dv
