"""Single steps of any length, each from a state of its own: dense output, events, steps of compositions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.rescue import Rescue, Unsolved
from leastaction.engine.run import call_record, engine
from leastaction.kernel.driver import BEGIN, HARD, PLACE, SOLVED
from leastaction.kernel.guarded import check_zones, guarded
from leastaction.methods import Method

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]
ROOM = 2**20  # numbers of the states of steps that are solved one after the other in native code


class SingleSteps:
    """Steps of a method on a system."""

    def __init__(self, system: Lagrangian, method: Method) -> None:
        how = engine(system, method, 1, lifts=True)
        assert how is not None, "a system asks first whether steps are short enough"
        self.engine, self._call = how, call_record()
        self._params = np.zeros(0)
        self._states, self._scratch = guarded((0, how.values, how.lanes), "states"), guarded((0,), "work")
        self._call[PLACE["steps"]], self._call[PLACE["due"]] = 1, 2
        self._hard = False
        self._rescue: tuple[FloatArray, Rescue] | None = None

    def solved(
        self, starts: FloatArray, lengths: FloatArray, params: FloatArray, inputs: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps of these lengths from rows (t, q, p), with
        one set of parameters or a row of them for each, and the inputs at their nodes, (K, r, channels).

        NaN where a step cannot be solved.
        """
        step, most = self.engine.step, max(1, ROOM // (self.engine.values * self.engine.lanes))
        most = 1 if self.engine.form.alone else most
        sets = np.broadcast_to(params, (len(starts), step.params))
        if inputs is None:
            driven = np.zeros((len(starts), 0, 0))
        else:
            nodes = len(self.engine.method.nodes)
            driven = np.ascontiguousarray(np.broadcast_to(inputs, (len(starts), nodes, inputs.shape[2])), float)
        parts = [slice(k, k + most) for k in range(0, max(len(starts), 1), most)]
        found = [self._solved(starts[k], lengths[k], sets[k], driven[k]) for k in parts]
        z, impulses = (np.concatenate(each) for each in zip(*found, strict=True))
        return z, impulses

    def _solved(
        self, starts: FloatArray, lengths: FloatArray, params: FloatArray, inputs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        how, count, step = self.engine, len(starts), self.engine.step
        n, s = step.n, step.s
        if len(self._states) < count:
            self._states = guarded((count, how.values, how.lanes), "states")
        states, places = self._states[:count], how.places
        states[:, : places["tables"].start] = 0.0
        still = lengths == 0.0
        states[:, places["tables"]] = how.tables_in_passing(np.where(still, 1.0, lengths))
        begun: dict[str, FloatArray] = {"q": starts[:, 1 : 1 + n], "p": starts[:, 1 + n :]}
        if "v" in places:
            given = (starts[:, 0], begun["q"], begun["p"], params)
            begun["v"], _ = how.how.system.velocities(*map(np.ascontiguousarray, given))
        for name, values in begun.items():
            states[:, places[name]] = how.packed(values[:, None])
        if states[:, places["params"]].size:
            states[:, places["params"]] = params[:, :, None]
        for name, value in (("h", lengths), ("period", lengths), ("t0", starts[:, 0])):
            states[:, places[name]] = value[:, None, None]
        states[:, places["alive"]] = 1.0
        blocks = [{name: state[place] for name, place in places.items()} for state in states] if how.form.alone else []
        for x, start, h, own in zip(blocks, starts, lengths, params, strict=False):
            how.form.began(x, float(start[0]), start[1 : 1 + n], start[1 + n :], float(h), own)
        self._params = params[0] if count else self._params
        failed = self._run(np.flatnonzero(~still), BEGIN, inputs)
        if failed.size and not self._hard and how.hard:
            self._hard = True
            failed = self._run(failed, HARD, inputs)
        lost = [k for k in failed if not self._rescued(k, starts[k], float(lengths[k]), params[k], inputs)]
        if how.form.alone:
            ended = [how.form.solved(x, y[1 : 1 + n], y[1 + n :]) for x, y in zip(blocks, starts, strict=True)]
            z, impulses = (
                np.array([x[k] for x in ended]).reshape(count, *shape) for k, shape in ((0, (s, n)), (1, (n,)))
            )
        else:
            z = states[:, places["z"], 0][:, : s * n].reshape(count, s, n).copy()
            impulses = states[:, places["impulse"], 0].copy()
        z[still], impulses[still] = 0.0, 0.0
        bad = ~np.isfinite(z).all(axis=(1, 2)) | ~np.isfinite(impulses).all(axis=1)
        bad[lost] = True
        z[bad], impulses[bad] = np.nan, np.nan
        return z, impulses

    def _run(self, which: NDArray[np.intp], enter: int, inputs: FloatArray) -> NDArray[np.intp]:
        """Some steps in native code; those that failed."""
        native, function = self.engine.compiled(self._hard)
        self._scratch = self.engine.form.scratch(native.work, self._scratch, self._params)
        call = self._call
        call[PLACE["enter"]] = enter
        first, pitch = self._states.ctypes.data, self._states.strides[0]
        work, record = self._scratch.ctypes.data, call.ctypes.data
        addresses = (first + pitch * which).tolist()
        if inputs.size:
            call[PLACE["table_node"]] = inputs.shape[2]
            done = []
            for k, address in zip(which, addresses, strict=True):
                call[PLACE["table"]] = inputs[k].ctypes.data
                done.append(function(address, work, record))
        else:
            done = [function(address, work, record) for address in addresses]
        check_zones(self._states, self._scratch)
        return which[np.array(done, int) == 0]

    def _rescued(self, k: int, start: FloatArray, h: float, params: FloatArray, inputs: FloatArray) -> bool:
        """A step that native code fails on; whether it is solved now."""
        how, n = self.engine, self.engine.step.n
        if self._rescue is None or not np.array_equal(self._rescue[0], params):
            self._rescue = params.copy(), how.how.rescue(params)
        try:
            solved = self._rescue[1].solve(float(start[0]), start[1 : 1 + n], start[1 + n :], h, inputs[k])
        except Unsolved:
            return False
        state = self._states[k]
        how.form.put({name: state[place] for name, place in how.places.items()}, 0, solved.z, solved.impulse, h)
        state[how.places["failed"]] = 0.0
        return not self._run(np.array([k]), SOLVED, inputs).size
