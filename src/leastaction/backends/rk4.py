"""The classical Runge–Kutta method at work, by the native loops: trajectories in lanes, or one with its derivative."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.field import explicit, field, momenta, slopes
from leastaction.backends.fused.rk4 import rk4_program
from leastaction.backends.layout import RK4
from leastaction.backends.native import loop
from leastaction.backends.points import evaluate, place_of_rest
from leastaction.backends.records import Memory
from leastaction.backends.workspace import NEVER, driven_by
from leastaction.kernel import Native, compile_program
from leastaction.kernel.guarded import guarded
from leastaction.methods import RungeKutta4
from leastaction.step.status import GOING_WELL, STOPPED, Failure
from leastaction.step.stepper import Start, require_inputs
from leastaction.step.stored_row import Row

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]


class RK4Stepper:
    """The classical Runge–Kutta method at work on (q, p) or (q, v): on one trajectory, or on many side by side.

    A step is one kernel where it can be written as one Program. Where it cannot, or where the row asks for derivatives,
    the step of one trajectory goes stage by stage.
    """

    INTEGERS: tuple[str, ...] = ("status", "steps")

    def __init__(
        self,
        system: Lagrangian,
        method: RungeKutta4,
        start: Start,
        row: Row | None = None,
        lanes: int = 1,
        status: Any = GOING_WELL,
    ) -> None:
        require_inputs(system, start)
        self._system, self._start, self._form = system, start, method.form
        self.row = row or Row.whole(system.n)
        q, p, v, self._params = (np.atleast_2d(x) for x in (start.q, start.p, start.v, start.params))
        (self.size, P), n, C, L = self._params.shape, system.n, self.row.varied, lanes
        stages, groups, outer = len(method.c), -(-self.size // L), max(0, C - 2 * n)
        self._outer = ("params", "t") if outer else ()  # what varies beside the state
        self._c, numbers = np.array(method.c, float), 2 * n * (1 + C)
        self._before = 2 + P + stages * system.channels  # numbers of a trajectory in front of y
        kernels = self._compiled(method, L)
        self._memory = Memory()
        self._place = self._memory.add(
            (RK4, {
                **dict.fromkeys(("kernel", "single", "equation", "field", "point"), 0),
                **{name: kernel.address for name, kernel in kernels.items()},
                "n": n, "params": P, "channels": system.channels, "rest": place_of_rest(system.node),
                "implicit": "point" in kernels, "nodes": stages, "size": numbers, "directions": C, "outer": outer,
                **driven_by(np.zeros((0, 0, 0))), "inputs": 2 + P, "vectors": 0, "trajectories": self.size,
                "lanes": L, "stride": L, "groups": groups, "who": list(range(groups * L)),
                "every": NEVER, "skipped": 0, "rows": 0, "table_first": 0, "steps": 0,
                "start": [start.t], "step": [start.h], "b": np.array(method.b, float), "c": self._c,
                "a": [[*map(float, a), *[0.0] * (stages - len(a))] for a in method.a], "rates": stages * numbers,
                "argument": numbers, "turned": np.eye(C, 3 * n + outer), "own": self._before + numbers,
                "after": numbers, "mass_pivots": np.zeros(n), "v": v[0], "V": n * n, "move": n, "fastest": n,
                "at": 1 + 3 * n + P + system.channels, "work": max(kernel.work for kernel in kernels.values()),
                "at_values": max(kernel.outputs for kernel in kernels.values()),
            })
        )  # fmt: skip
        self._memory.finish()
        self._kernels, self._table = kernels, np.zeros(1)
        self._states = guarded((groups, self._before + numbers, L), "the state of trajectories")
        self._Y = guarded((numbers, L), "what kernels give")
        self._counts = np.zeros((groups * L, 2), np.int64)
        self._counts[self.size :, 0] = STOPPED  # lanes beyond the last trajectory never begin
        self._counts[: self.size, 0] = status
        values = np.zeros((self.size, self._before + numbers))
        values[:, :2], values[:, 2 : 2 + P] = [start.t, start.h], self._params
        values[:, self._before : self._before + 2 * n] = np.concatenate(
            [q, p if self._form == "hamilton" else v], axis=1
        )
        self._put(values)
        self.count_from(0)

    def _compiled(self, method: RungeKutta4, lanes: int) -> dict[str, Native]:
        """The kernels of a step, by their names in the record."""
        system, C = self._system, self.row.varied
        program, whole, programs = rk4_program(system, method), field(system, method.form), {}
        found = {}
        if program is not None and not C:
            found["kernel"] = compile_program(program, lanes, bounded=lanes > 1)
        if program is not None and (C or lanes > 1):
            programs["single"] = program
        if C or program is None:
            programs["equation"] = whole.select("gap", "mass")
            programs["field"] = slopes(system, method.form, self._outer) if C else whole.select("rate")
        if not explicit(system, method.form):
            programs["point"] = system.node
        return found | {name: compile_program(program) for name, program in programs.items()}

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time and what varies with h count these, too."""
        self._counts[: self.size, 1] = step
        self.D[...] = self.row.directions()
        if self.row.varied and self._form == "lagrange":  # dv = p_v⁻¹ (dp − p_q dq − p_w dw − p_t dt)
            n = self._system.n
            _, (by,), (turned,) = self._varied(self._get(), np.array([step]), self._params)
            turned[:, n : 2 * n] = 0.0
            self.D[:, n:] = np.linalg.solve(by[:, n : 2 * n], (self.D[:, n:] - turned @ by.T).T).T

    @property
    def D(self) -> FloatArray:
        """The derivative that the first trajectory carries of its (q, p) or (q, v), a row for each quantity: a view."""
        return self._states[0, self._before + 2 * self._system.n :, 0].reshape(self.row.varied, 2 * self._system.n)

    @D.setter
    def D(self, D: FloatArray) -> None:
        self.D[...] = D

    def _put(self, values: FloatArray) -> None:
        groups, numbers, L = self._states.shape
        padded = np.zeros((groups * L, numbers))
        padded[: self.size], padded[self.size :] = values, values[-1]
        self._states[...] = padded.reshape(groups, L, numbers).transpose(0, 2, 1)

    def _values(self) -> FloatArray:
        groups, numbers, L = self._states.shape
        return self._states.transpose(0, 2, 1).reshape(groups * L, numbers)[: self.size].copy()

    def _get(self) -> FloatArray:
        """The state y of each trajectory, with the derivatives it carries."""
        return self._values()[:, self._before :]

    @property
    def done(self) -> int:
        going = self.status() == GOING_WELL
        return int((self.steps()[going] if going.any() else self.steps()).max())

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, start = self.done, self._start
        k = np.arange(begun + 1, begun + steps + 1)
        k = k[k % every == 0] if every else k[:0]
        states = np.empty((self.size, len(k), len(self._Y)))
        numbers = {"table_first": begun, "steps": steps, "every": every or NEVER, "rows": len(k)}
        numbers["skipped"] = k[0] // every if len(k) else 0
        if start.inputs is not None:
            self._table = start.inputs.along(start.t, start.h, begun, steps, self._c)
            numbers |= driven_by(self._table)
        for name, value in numbers.items():
            self._memory.I[self._memory.number(self._place, RK4, name)] = value
        arrays = self._states, self._Y, self._counts, states
        loop("rk4.run")(self._memory.I, self._memory.D, self._place, *arrays)
        if len(k):
            there = self.steps()[:, None] >= k
            i, j = np.nonzero(there)
            rows[i, k[j] // every - first] = self.row.kept(self._momenta(states[there], k[j], self._params[i]))
        return int(self.steps().max()) - begun

    def _momenta(self, states: FloatArray, k: NDArray[np.int64], params: FloatArray) -> FloatArray:
        """The states (q, p) after k steps with their derivatives, from those (q, p) or (q, v) of the method."""
        n = self._system.n
        if self._form == "lagrange" and len(states):
            p, by, turned = self._varied(states, k, params)
            D = turned @ by.swapaxes(1, 2) if self.row.varied else turned[..., :n]
            states[:, n : 2 * n] = p
            states[:, 2 * n :].reshape(turned[..., : 2 * n].shape)[..., n:] = D
        return states

    def _varied(
        self, states: FloatArray, k: NDArray[np.int64], params: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of K states (q, v) after k steps: p; its derivatives by (q, v, w, t), (K, n, …); and how much these vary with
        each quantity, (K, varied, …).
        """
        n, C = self._system.n, self.row.varied
        t = np.asarray(self._start.t + k * self._start.h, float)
        at = np.concatenate([t[:, None], states[:, : 2 * n], params], axis=1)
        p = evaluate(momenta(self._system), at)  # with derivatives in one Program p would be rounded otherwise
        by = evaluate(momenta(self._system, "q", "v", *self._outer).select("by"), at) if C else p[:, :0]
        turned = np.tile(np.eye(C, max(C, 2 * n)), (len(states), 1, 1))
        turned[..., : 2 * n] = states[:, 2 * n :].reshape(len(states), C, 2 * n)
        if self._outer:
            turned[:, -1, -1] = k
        return p, by.reshape(len(states), n, C and max(C, 2 * n)), turned

    def steps(self) -> NDArray[np.int64]:
        return self._counts[: self.size, 1].copy()

    def status(self) -> NDArray[np.int8]:
        return self._counts[: self.size, 0].astype(np.int8)

    def at(self) -> FloatArray:
        return self._momenta(self._get(), self.steps(), self._params)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)

    def counts(self) -> dict[str, Any]:
        return {}

    def failure(self) -> Failure | None:
        failed = self.status()[self.status() != GOING_WELL]
        return Failure(int(failed[-1])) if failed.size else None

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def state(self) -> dict[str, NDArray[Any]]:
        velocity = {"velocity": self._memory.array(self._place, "v")[None].copy()} if "point" in self._kernels else {}
        return {"y": self._get(), **velocity, "integers": self._counts[: self.size].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        values = self._values()
        values[:, self._before :] = state["y"]
        self._put(values)
        self._counts[: self.size] = state["integers"]
        if "velocity" in state:
            self._memory.array(self._place, "v")[:] = state["velocity"][0]
