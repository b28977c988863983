"""The classical Runge–Kutta method at work, by the native loops: one trajectory, its derivative, or many in lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.rk4 import rk4_program
from leastaction.backends.layout import RK4, RK4_LANES
from leastaction.backends.native import loop
from leastaction.backends.points import evaluate, room
from leastaction.backends.records import Memory, aligned
from leastaction.backends.rk4_tangent import STAGES, one_steps
from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, STOPPED, Failure
from leastaction.backends.stepper import Alone, Forgetful, Start, require_inputs
from leastaction.backends.workspace import NEVER
from leastaction.kernel import Native, compile_program
from leastaction.methods import RungeKutta4

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]

RK4_STAGES = np.array([c for c, _ in STAGES])


class RK4Stepper(Alone):
    """The classical Runge–Kutta method at work, on (q, p) or (q, v)."""

    INTEGERS: tuple[str, ...] = ("steps",)

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start, row: Row | None = None) -> None:
        require_inputs(system, start)
        self._system, self._method, self._params = system, method, start.params
        self.row = row or Row.whole(system.n)
        n = system.n
        self._kernel, fields = self.fields(system, method, start)
        self._memory = Memory()
        self._place = self._memory.add((RK4, fields))
        self._memory.finish()
        self._memory.array(self._place, "at")[1 + 2 * n : 1 + 2 * n + len(start.params)] = start.params
        self._t, self._h, self._inputs = float(start.t), float(start.h), start.inputs
        self._table: FloatArray = np.zeros(1)
        self.y = np.concatenate([start.q, start.p if method.form == "hamilton" else start.v])

    @staticmethod
    def fields(system: Lagrangian, method: RungeKutta4, start: Start) -> tuple[Native, dict[str, Any]]:
        """The kernel of a point, and the record of one trajectory."""
        n = system.n
        kernel, fields = room(system.node, n)
        return kernel, {
            **fields, "hamilton": method.form == "hamilton", "every": NEVER,
            "first": 0, "steps": 0, "done": 0, "stored": 0, "status": 0, "start": [start.t], "step": [start.h],
            "tableau": STAGES, "rate": 2 * n, "argument": 2 * n, "total": 2 * n, "own": 2 * n, "v": start.v,
            "channels": system.channels, "given": 4 * system.channels, "table": 0, "table_step": 0, "table_node": 0,
        }  # fmt: skip

    def _number(self, name: str) -> int:
        return self._memory.number(self._place, RK4, name)

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun = self.done
        states, k = self._states(steps, every)
        if len(k):
            rows[0, k // every - first, : len(self.row.columns)] = states[:, self.row.columns]
        return self.done - begun

    def _states(self, steps: int, every: int) -> tuple[FloatArray, NDArray[np.int64]]:
        """Do steps; the states (q, p) after every so many of them, and after how many each is."""
        I, first = self._memory.I, self.done
        names = ("first", "steps", "every", "done", "stored")
        I[[self._number(name) for name in names]] = first, steps, every or NEVER, 0, 0
        if self._inputs is not None:
            self._table = self._inputs.along(self._t, self._h, first, steps, RK4_STAGES)[0]
            pitches = {"table": self._table.ctypes.data, "table_step": self._table.strides[0] // 8}
            pitches["table_node"] = self._table.strides[1] // 8 if self._table.shape[1] > 1 else 0
            for name, value in pitches.items():
                I[self._number(name)] = value
        k = np.arange(first + 1, first + steps + 1)
        k = k[k % every == 0] if every else k[:0]
        states = np.empty((len(k), len(self.y)))
        loop("rk4.run")(I, self._memory.D, self._place, self.y, states)
        done, stored, status = (int(I[self._number(name)]) for name in ("done", "stored", "status"))
        self.done = first + done
        if status != GOING_WELL:
            self.failed = Failure(status, float("nan"), 0, 0.0)
        return self._momenta(states[:stored], k[:stored]), k[:stored]

    def _momenta(self, states: FloatArray, k: NDArray[np.int64]) -> FloatArray:
        """The states (q, p) after k steps, from the states (q, p) or (q, v) of the method."""
        if self._method.form == "lagrange" and len(states):
            n = self._system.n
            t = self._t + k * self._h
            states[:, n:] = self._system.momentum(states[:, :n], states[:, n:], t, self._params)
        return states

    def at(self) -> FloatArray:
        return self._momenta(self.y[None].copy(), np.array([self.done]))

    def state(self) -> dict[str, NDArray[Any]]:
        velocity = self._memory.array(self._place, "v").copy()
        return {"y": self.y[None].copy(), "velocity": velocity[None], "integers": np.array([[self.done]])}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.y[:], self.done = state["y"][0], int(state["integers"][0, 0])
        self._memory.array(self._place, "v")[:] = state["velocity"][0]


class RK4Lanes(Forgetful):
    """The classical Runge–Kutta method at work on many trajectories, side by side."""

    INTEGERS: tuple[str, ...] = ("status", "steps")

    def __init__(
        self, system: Lagrangian, method: RungeKutta4, start: Start, row: Row, lanes: int, status: NDArray[np.int8]
    ) -> None:
        program = rk4_program(system, method)
        assert program is not None
        self._system, self._method, self._start, self.row = system, method, start, row
        self.size, n, P, L = len(start.q), system.n, start.params.shape[1], lanes
        self._kernel = compile_program(program, L, bounded=True)
        groups = -(-self.size // L)
        self._memory = Memory()
        self._one = RK4Stepper.fields(
            system, method, Start(start.t, start.q[0], start.p[0], np.zeros(n), start.h, start.params[0])
        )
        self._before = 2 + P + 4 * system.channels  # numbers of a trajectory's state in front of y
        self._table: FloatArray = np.zeros(1)
        alone = self._memory.add((RK4, self._one[1]))
        self._place = self._memory.add(
            (RK4_LANES, {
                "kernel": self._kernel.address, "alone": alone, "n": n, "param_count": P, "lanes": L, "groups": groups,
                "channels": system.channels, "trajectories": self.size, "table": 0, "table_trajectory": 0,
                "table_step": 0, "table_node": 0, "every": NEVER, "skipped": 0, "rows": 0, "first": 0, "steps": 0,
                "start": [start.t], "step": [start.h],
            })
        )  # fmt: skip
        self._memory.finish()
        self._states = aligned(np.zeros((groups, self._before + 2 * n, L)))
        self._Y, self._work = aligned(np.zeros((2 * n, L))), aligned(np.zeros(self._kernel.work))
        self._counts = np.zeros((groups * L, 2), np.int64)
        self._counts[self.size :, 0] = STOPPED  # lanes beyond the last trajectory never begin
        self._counts[: self.size, 0] = status
        y = np.concatenate([start.q, start.p if method.form == "hamilton" else start.v], axis=1)
        driven = np.zeros((self.size, 4 * system.channels))
        self._put(np.concatenate([np.full((self.size, 2), [start.t, start.h]), start.params, driven, y], axis=1))

    def _put(self, values: FloatArray) -> None:
        groups, numbers, L = self._states.shape
        padded = np.zeros((groups * L, numbers))
        padded[: self.size], padded[self.size :] = values, values[-1]
        self._states[...] = padded.reshape(groups, L, numbers).transpose(0, 2, 1)

    def _get(self) -> FloatArray:
        groups, numbers, L = self._states.shape
        return self._states.transpose(0, 2, 1).reshape(groups * L, numbers)[: self.size]

    @property
    def done(self) -> int:
        return int(self.steps()[self.status() == GOING_WELL].max(initial=0))

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, n = self.done, self._system.n
        k = np.arange(begun + 1, begun + steps + 1)
        k = k[k % every == 0] if every else k[:0]
        states = np.full((self.size, len(k), 2 * n), np.nan)
        I, place = self._memory.I, self._place
        numbers = {"first": begun, "steps": steps, "every": every or NEVER, "rows": len(k)}
        numbers["skipped"] = k[0] // every if len(k) else 0
        start = self._start
        if start.inputs is not None:
            table = self._table = start.inputs.along(start.t, start.h, begun, steps, RK4_STAGES)
            names = ("table_trajectory", "table_step", "table_node")
            lengths = zip(names, table.shape, table.strides, strict=False)
            numbers |= {name: 0 if length == 1 else pitch // 8 for name, length, pitch in lengths}
            numbers["table"] = table.ctypes.data
        for name, value in numbers.items():
            I[self._memory.number(place, RK4_LANES, name)] = value
        arrays = self._states, self._Y, self._counts, states, self._work
        loop("rk4.lanes")(I, self._memory.D, place, *arrays)
        if len(k):
            there = self.steps()[:, None] >= k
            i, j = np.nonzero(there)
            found = self._momenta(states[there], k[j], self._start.params[i])
            rows[i, k[j] // every - first] = found[:, self.row.columns]
        return int(self.steps().max()) - begun

    def _momenta(self, states: FloatArray, k: NDArray[np.int64], params: FloatArray) -> FloatArray:
        """The states (q, p) after k steps, from the states (q, p) or (q, v) of the method."""
        n = self._system.n
        if self._method.form == "lagrange" and len(states):
            t = np.asarray(self._start.t + k * self._start.h, float)
            at = np.concatenate([t[:, None], states, params], axis=1)
            states = np.concatenate([states[:, :n], evaluate(self._system.gradient.select("Lv"), at)], axis=1)
        return states

    def steps(self) -> NDArray[np.int64]:
        return self._counts[: self.size, 1].copy()

    def status(self) -> NDArray[np.int8]:
        return self._counts[: self.size, 0].astype(np.int8)

    def at(self) -> FloatArray:
        return self._momenta(self._get()[:, -2 * self._system.n :].copy(), self.steps(), self._start.params)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)

    def counts(self) -> dict[str, Any]:
        return {}

    def failure(self) -> Failure | None:
        failed = self.status()[self.status() != GOING_WELL]
        return Failure(int(failed[-1]), float("nan"), 0, 0.0) if failed.size else None

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {"y": self._get()[:, -2 * self._system.n :].copy(), "integers": self._counts[: self.size].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        values = self._get().copy()
        values[:, -2 * self._system.n :] = state["y"]
        self._put(values)
        self._counts[: self.size] = state["integers"]


class RK4Tangent(RK4Stepper):
    """The classical Runge–Kutta method at work, and its derivative, through the derivatives of the stages."""

    def __init__(self, system: Lagrangian, method: RungeKutta4, start: Start, row: Row) -> None:
        super().__init__(system, method, start, row)
        self._state = np.concatenate([start.q, start.p])
        self.D = row.directions()

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, n, kept = self.done, self._system.n, len(self.row.columns)
        after, _ = self._states(steps, 1)
        states = np.concatenate([self._state[None], after])
        k = np.arange(begun, self.done)
        driven = None
        if self._inputs is not None:
            table = self._inputs.along(self._t, self._h, begun, len(k), RK4_STAGES)[0]
            driven = np.broadcast_to(table, (len(k), len(RK4_STAGES), table.shape[2]))
        state, extra = one_steps(
            self._system, self._method, np.asarray(self._t + k * self._h, float), states[:-1], self._h, self._params,
            k if self.row.varied > 2 * n else None, driven,
        )  # fmt: skip
        for i, number in enumerate(k + 1):
            self.D = self.D @ state[i].T
            self.D[2 * n :] += extra[i].T
            if every and number % every == 0:
                row = rows[0, number // every - first]
                row[:kept], row[kept:] = states[i + 1, self.row.columns], self.D.ravel()
        self._state = states[-1]
        return self.done - begun

    def at(self) -> FloatArray:
        return np.concatenate([super().at(), self.D.reshape(1, -1)], axis=1)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"directions": self.D[None].copy(), "at": self._state[None].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore(state)
        self.D[...], self._state = state["directions"][0], state["at"][0].copy()
