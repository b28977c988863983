"""Single steps of any length, each from a state of its own: dense output, events, steps of compositions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.guarded import check_zones, guarded
from leastaction.engine.rescue import Rescue, Unsolved
from leastaction.engine.run import call_record, engine
from leastaction.kernel.driver import BEGIN, FAILED, HARD, PLACE, SOLVED
from leastaction.methods import Galerkin

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]


class SingleSteps:
    """Steps of a method on a system."""

    def __init__(self, system: Lagrangian, method: Galerkin) -> None:
        how = engine(system, method, 1, lifts=True)
        assert how is not None, "a system asks first whether steps are short enough"
        self.engine, self._call = how, call_record()
        self._state = guarded((how.values, how.lanes), "a state")
        self._h, self._scratch, self._hard = np.nan, guarded((0,), "work"), False
        self._rescue: tuple[FloatArray, Rescue] | None = None

    def solved(
        self, starts: FloatArray, lengths: FloatArray, params: FloatArray, inputs: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps of these lengths from rows (t, q, p), with
        one set of parameters or a row of them for each, and the inputs at their nodes, (K, r, channels).

        NaN where a step cannot be solved.
        """
        step, count = self.engine.step, len(starts)
        z, impulses = np.full((count, step.s, step.n), np.nan), np.full((count, step.n), np.nan)
        sets = np.broadcast_to(params, (count, step.params))
        for k in range(count):
            driven = np.zeros((0, 0)) if inputs is None else np.ascontiguousarray(inputs[k], float)
            found = self._one(starts[k], float(lengths[k]), sets[k], driven)
            if found is not None:
                z[k], impulses[k] = found
        return z, impulses

    def _one(
        self, start: FloatArray, h: float, params: FloatArray, inputs: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        how, state, n = self.engine, self._state, self.engine.step.n
        places = how.places
        if h == 0.0:
            return np.zeros((how.step.s, n)), np.zeros(n)
        state[: places["tables"].start] = 0.0
        if h != self._h:
            state[places["tables"]], self._h = how.tables_in_passing(h), h
        q, p = start[None, 1 : 1 + n], start[None, 1 + n :]
        state[places["q"]], state[places["p"]] = how.packed(q), how.packed(p)
        if state[places["params"]].size:
            state[places["params"]] = params[:, None]
        for name, value in (("h", h), ("period", h), ("t0", start[0]), ("alive", 1.0)):
            state[places[name]] = value
        blocks = {name: state[place] for name, place in places.items()}
        how.form.began(blocks, float(start[0]), q[0], p[0], h, params)
        why = self._run(BEGIN, inputs, params)
        if why == FAILED and not self._hard and how.hard:
            self._hard = True
            why = self._run(HARD, inputs, params)
        if why == FAILED:
            try:
                solved = self._rescued(params).solve(float(start[0]), q[0], p[0], h, inputs)
            except Unsolved:
                return None
            how.form.put(blocks, 0, solved.z, solved.impulse, h)
            state[places["failed"]] = 0.0
            if self._run(SOLVED, inputs, params) == FAILED:
                return None
        found = how.form.solved(blocks, q[0], p[0])
        return found if np.isfinite(found[0]).all() and np.isfinite(found[1]).all() else None

    def _run(self, enter: int, inputs: FloatArray, params: FloatArray) -> int:
        native, function = self.engine.compiled(self._hard)
        self._scratch = self.engine.form.scratch(native.work, self._scratch, params)
        call = self._call
        call[PLACE["steps"]], call[PLACE["enter"]], call[PLACE["due"]] = 1, enter, 2
        if inputs.size:
            nodes = len(self.engine.method.table.c)
            table = np.ascontiguousarray(np.broadcast_to(inputs, (nodes, inputs.shape[1])))
            call[PLACE["table"]], call[PLACE["table_node"]] = table.ctypes.data, table.shape[1]
        function(self._state.ctypes.data, self._scratch.ctypes.data, call.ctypes.data)
        check_zones(self._state, self._scratch)
        return int(call[PLACE["why"]])

    def _rescued(self, params: FloatArray) -> Rescue:
        if self._rescue is None or not np.array_equal(self._rescue[0], params):
            self._rescue = params.copy(), self.engine.how.rescue(params)
        return self._rescue[1]
