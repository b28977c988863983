"""Derivatives carried along by steps that are too long for a Program: the equations of `directions`, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.call import Called
from leastaction.engine.ending import CURVED
from leastaction.step.form import Step, stencils
from leastaction.step.sensitivity import sensitivity

FloatArray = NDArray[np.float64]

READ = ("q", "v", "multipliers")


class Carrying:
    """The derivatives of single steps with these parameters."""

    def __init__(self, step: Step, params: FloatArray, varied: int) -> None:
        self.step, self.params = step, params
        self.further = max(0, varied - 2 * step.n)
        self.slopes = [Called(term.slopes) for term in step.terms]
        self.more = [Called(sensitivity(term)) for term in step.terms] if self.further else []
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
        K, push = self._slopes(t, h, period, q, z, inputs, begun)
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
            v = self.step.method.table.slope[1:] @ z[: s * n].reshape(s, n) / h
            dp = self._ended(t + h, q + z[(s - 1) * n : s * n], v, p + push, dq, dp, seeds, begun + h / period)
        return np.concatenate([dq, dp]).T

    def _slopes(
        self, t: float, h: float, period: float, q: FloatArray, z: FloatArray, inputs: FloatArray, begun: float
    ) -> tuple[FloatArray, FloatArray]:
        """The derivatives of (R, I) by (z, q, w, h), and I."""
        step, n, s, m, further = self.step, self.step.n, self.step.s, self.step.multipliers, self.further
        N, held = s * (n + m), ("multipliers", "g")
        K, push = np.zeros((N + n, N + n + further)), np.zeros(n)
        # Increments and q, equations and I; multipliers and g.
        places = np.concatenate([np.arange(s * n), N + np.arange(n)]), np.arange(s * n, N)
        pairs: dict[tuple[bool, bool], list[tuple[FloatArray, FloatArray]]] = {}
        unknowns = {"q": z[: s * n].reshape(s, n), "multipliers": z[s * n :].reshape(s, m)}
        unknowns["v"] = unknowns["q"]
        for e, term in enumerate(step.terms):
            table, count = stencils(step.samples(term), h), len(step.samples(term).tau)
            motion = {block: table.gather[block] @ unknowns[block] for block in READ}
            found = self._found(e, t + table.times, q, motion, inputs)
            ones, nothing = np.ones((count, 1)), np.zeros((count, 1))
            gathers = {
                "q": np.concatenate([table.gather["q"], ones], axis=1),
                "v": np.concatenate([table.gather["v"], nothing], axis=1),
                "multipliers": table.gather["multipliers"],
            }
            weight = table.weights[:, None]
            scatters = {
                "f": np.concatenate([weight * table.scatter["f"], weight], axis=1),
                "m": np.concatenate([weight * table.scatter["m"], nothing], axis=1),
                "g": table.scatter["g"],
            }
            if "f" in found:
                push += table.weights @ found["f"]
            for out, scatter in scatters.items():
                if out not in found:
                    continue
                size = found[out].shape[1]
                slopes = {block: found[f"{out}_{block}"] for block in READ if f"{out}_{block}" in found}
                for block, slope in slopes.items():
                    both = (scatter[:, :, None] * gathers[block][:, None, :]).reshape(count, -1)
                    pairs.setdefault((out in held, block in held), []).append((both, slope))
                if further:
                    more = np.zeros((count, size, further))
                    more[:, :, :-1] = found[f"{out}_params"].reshape(count, size, further - 1)
                    more[:, :, -1] = found[f"{out}_t"] * (begun + table.times / period)[:, None]
                    if out == "f":
                        more[:, :, -1] += found["f"] / period
                    if "v" in slopes:
                        more[:, :, -1] -= (
                            np.einsum("ijk,ik->ij", slopes["v"].reshape(count, size, n), motion["v"]) / period
                        )
                    K[places[out in held], N + n :] += (scatter.T @ more.reshape(count, -1)).reshape(-1, further)
        for (row, column), own in pairs.items():
            both, slope = (np.concatenate(part) for part in zip(*own, strict=True))
            sizes = [m if kind else n for kind in (row, column)]
            heights = [len(places[kind]) // size for kind, size in zip((row, column), sizes, strict=True)]
            part = (both.T @ slope).reshape(*heights, *sizes).swapaxes(1, 2)
            K[np.ix_(places[row], places[column])] = part.reshape(len(places[row]), len(places[column]))
        return K, push

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

    def _ended(
        self,
        t: float,
        q: FloatArray,
        v: FloatArray,
        p: FloatArray,
        dq: FloatArray,
        dp: FloatArray,
        seeds: FloatArray,
        when: float,
    ) -> FloatArray:
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
