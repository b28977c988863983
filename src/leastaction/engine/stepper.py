"""Trajectories at work in float64: their states, the native runs, and what Python does where a run stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.rows import Row
from leastaction.backends.status import GOING_WELL, NOT_FINITE, Failure
from leastaction.backends.stepper import Forgetful, Start, require_inputs
from leastaction.engine.form import Watching
from leastaction.engine.rescue import Rescue, Unsolved
from leastaction.engine.run import Engine, call_record, engine
from leastaction.kernel.driver import EASY, FAILED, HARD, LOOK, PLACE, RESTING, SOLVED
from leastaction.methods import Composition, Galerkin

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]

NEVER = 2**62
STATUS, STEPS, CONTINUED = 0, 1, 2
MOST_LOOKS = 256


def aligned(shape: tuple[int, ...]) -> FloatArray:
    """Zeros that begin where a vector may begin."""
    size = int(np.prod(shape))
    found = np.zeros(size + 8)
    begin = -(found.ctypes.data // 8) % 8
    return found[begin : begin + size].reshape(shape)


class FormStepper(Forgetful):
    """A member of the family, or a composition of one, at work: one trajectory, or many side by side in lanes.

    Trajectories lie in groups, as many as a vector has lanes. A group runs in native code until its steps are done, a
    step fails, or an event may lie in a step that cannot wait. A step that fails is rescued, trajectory by trajectory.
    """

    INTEGERS: tuple[str, ...] = ("status", "steps", "continued", "phase", "layout")

    def __init__(
        self, system: Lagrangian, method: Galerkin | Composition, start: Start, row: Row | None = None, lanes: int = 1,
        watch: Watching | None = None, lifts: bool = False,
    ) -> None:  # fmt: skip
        require_inputs(system, start)
        self.row, self._start = row or Row.whole(system.n), start
        root = method.root if isinstance(method, Composition) else method
        self.parts = np.array(method.parts, float) if isinstance(method, Composition) else np.ones(1)
        self.offsets = np.concatenate([[0.0], np.cumsum(self.parts)[:-1]])
        self.engine: Engine = engine(system, root, lanes, watch, lifts, len(self.parts))
        how = self.engine
        q, p, v = (np.atleast_2d(np.asarray(x, float)) for x in (start.q, start.p, start.v))
        self.size, self.lanes = len(q), lanes
        self.groups = -(-self.size // lanes)
        self.params = np.broadcast_to(np.atleast_2d(np.asarray(start.params, float)), (self.size, how.step.params))
        self.counts = np.zeros((self.groups * lanes, 3), np.int64)
        self.states = aligned((self.groups, len(self.parts), how.values, how.lanes))
        self._phase = np.zeros(self.groups, np.int64)
        self._hard = False
        self._failure: Failure | None = None
        self._rescues: dict[int, Rescue] = {}
        self._call = call_record()
        self._kept = how.kept(self.row.columns)
        self._table: FloatArray | None = None
        self._table_first = 0
        self._looks = np.zeros((self.groups * lanes, MOST_LOOKS if watch is not None else 0, 1 + how.shape.look))
        self._noted = np.zeros((self.groups * lanes, 1 + self._looks.shape[1] * self._looks.shape[2]))
        self._rows: tuple[int, int, FloatArray] = (0, 0, np.zeros((self.size, 0, self.row.width)))
        for g in range(self.groups):
            self._begin(g, np.arange(lanes), q, p, v, 0)

    # ---- states

    def block(self, g: int, name: str, phase: int = 0) -> FloatArray:
        """A block of a group's state, (values, lanes): a view."""
        return self.states[g, phase, self.engine.places[name]]

    def _begin(self, g: int, who: NDArray[np.int64], q: FloatArray, p: FloatArray, v: FloatArray, step: int) -> None:
        """The states of some lanes of a group before a step, as at the start of a run; q, p, v are rows by trajectory.
        Lanes beyond the last trajectory repeat it and are not alive.
        """
        how, start, h = self.engine, self._start, float(self._start.h)
        lanes = g * self.lanes + who
        own = np.minimum(lanes, self.size - 1)
        columns = slice(None) if how.form.side else who
        for k, (part, offset) in enumerate(zip(self.parts, self.offsets, strict=True)):
            state = self.states[g, k]
            fresh = np.zeros((how.values, how.lanes if how.form.side else len(who)))
            state[:, columns] = fresh

            def put(name: str, values: Any, state: FloatArray = state) -> None:
                state[how.places[name]][:, columns] = values

            put("q", how.packed(q[own]))
            put("p", how.packed(p[own]))
            put("params", self.params[own].T)
            for name, value in (("h", part * h), ("period", h), ("t0", float(start.t) + offset * h), ("t", float(step)),
                                ("alive", 1.0)):  # fmt: skip
                put(name, value)
            state[how.places["alive"]][:, columns] = (lanes < self.size) & (self.counts[lanes, STATUS] == GOING_WELL)
            state[how.places["tables"]] = how.tables(part * h)
            blocks = {name: state[place] for name, place in how.places.items()}
            controls = np.array([float(d) for d in how.step.controls(20)[1:]])
            for lane, i in zip(who, own, strict=True):
                z = np.zeros((how.step.s, how.step.n + how.step.multipliers))
                z[:, : how.step.n] = np.outer(controls, v[i] * part * h)
                how.form.put(blocks, lane, z, np.zeros(how.step.n), part * h)
            longest = how.packed(np.abs(v[own]) * abs(part * h))
            put("scale", longest)
            if how.begins is not None:
                self._once(state)
        self.counts[lanes, STEPS] = step

    def _once(self, state: FloatArray) -> None:
        native, function = self.engine.begins or (None, None)
        call, work = call_record(), np.zeros(native.work + 8)
        call[PLACE["steps"]], call[PLACE["enter"]], call[PLACE["every"]] = 1, SOLVED, NEVER
        call[PLACE["due"]] = NEVER
        inputs = np.zeros(self.engine.step.driven + 8)
        call[PLACE["table"]] = inputs.ctypes.data
        function(state.ctypes.data, work.ctypes.data, call.ctypes.data)

    def leave(self, status: NDArray[np.int8]) -> None:
        """Before the first step: which trajectories cannot begin."""
        for i in np.flatnonzero(status != GOING_WELL):
            self.end(int(i), int(status[i]), undone=False)

    def end(self, i: int, status: int = GOING_WELL, undone: bool = True) -> None:
        """Trajectory i goes no further; its last step is not to count (`undone`)."""
        g, lane = divmod(i, self.lanes)
        for k in range(len(self.parts)):
            for name in ("alive", "going", "failed"):
                self.block(g, name, k)[:, slice(None) if self.engine.form.side else lane] = 0.0
        self.counts[i, STATUS] = status
        if undone:
            every, first, rows = self._rows
            done = int(self.counts[i, STEPS])
            if every and done % every == 0 and 0 <= done // every - first < rows.shape[1]:
                rows[i, done // every - first] = np.nan
            self.counts[i, STEPS] -= 1

    def restart(self, i: int, step: int, state: FloatArray) -> None:
        """Trajectory i goes on from another state (q, p) before this step, like a new run."""
        g, lane = divmod(i, self.lanes)
        n = self.engine.step.n
        q, p = (np.repeat(x[None], self.size, axis=0) for x in (state[:n], state[n:]))
        t = float(self._start.t + step * self._start.h)
        v = np.repeat(self._velocity(i, t, state)[None], self.size, axis=0)
        self.counts[i, STATUS] = GOING_WELL
        self._begin(g, np.array([lane]), q, p, v, step)
        self.counts[i, STEPS] = step

    def _velocity(self, i: int, t: float, state: FloatArray) -> FloatArray:
        n = self.engine.step.n
        inputs = self._inputs_at(i, t)
        return self._rescue(i).velocity(t, state[:n], state[n:], None, inputs[0] if len(inputs) else np.zeros(0))

    # ---- the run

    @property
    def done(self) -> int:
        counts = self.counts[: self.size]
        return int(counts[counts[:, STATUS] == GOING_WELL, STEPS].max(initial=0))

    @property
    def furthest(self) -> int:
        return int(self.counts[: self.size, STEPS].max())

    def going(self, end: int) -> bool:
        """Whether a trajectory goes on that has done fewer steps than these."""
        counts = self.counts[: self.size]
        return bool(((counts[:, STATUS] == GOING_WELL) & (counts[:, STEPS] < end)).any())

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun = self.done
        self.drive(begun, steps)
        self.advance_to(begun + steps, every, first, rows)
        return self.furthest - begun

    def drive(self, first: int, count: int) -> None:
        """The inputs of the steps to come, where there are any."""
        start = self._start
        if start.inputs is not None:
            c = self.engine.method.table.c
            points = np.concatenate([offset + part * c for offset, part in zip(self.offsets, self.parts, strict=True)])
            table = np.asarray(start.inputs.along(start.t, start.h, first, count, points), float)
            if table.shape[2] == 1 and len(points) > 1:
                table = np.broadcast_to(table, (*table.shape[:2], len(points), table.shape[3]))
            self._table, self._table_first = np.ascontiguousarray(table), first

    def advance_to(self, end: int, every: int, first: int, rows: FloatArray) -> None:
        """Every group up to this step, or as far as it goes; state k goes to rows[:, k // every − first]."""
        self._rows = every, first, rows
        for g in range(self.groups):
            lanes = slice(g * self.lanes, min((g + 1) * self.lanes, self.size))
            going = self.counts[lanes, STATUS] == GOING_WELL
            if going.any():
                self._group(g, lanes, int(self.counts[lanes, STEPS][going].max()), end)

    def _group(self, g: int, lanes: slice, now: int, end: int) -> None:
        """One group from a step on; it ends early where an event may lie."""
        enter, before = EASY, self.states[g].copy()
        begun = now
        while now < end:
            done, why = self._native(g, now, end, enter)
            if not np.isfinite(self.states[g, 0, : self.engine.places["carry"].start]).all() and done:
                now, enter = self._last_finite(g, lanes, before, begun, now + done), EASY
                before, begun = self.states[g].copy(), now
                if not (self.counts[lanes, STATUS] == GOING_WELL).any():
                    return
                continue
            now += done
            alive = self.counts[lanes, STATUS] == GOING_WELL
            self.counts[lanes, STEPS][alive] = now
            if why == LOOK:
                return
            if why == FAILED:
                if not self._hard and enter == EASY and self.engine.hard:
                    self._hard, enter = True, HARD
                    if self.lanes == 1:
                        self.block(g, "resting", int(self._phase[g]))[:] = RESTING
                    continue
                self._rescue_lanes(g, lanes, now)
                enter = SOLVED
                if not (self.counts[lanes, STATUS] == GOING_WELL).any():
                    return
            else:
                enter = EASY

    def _native(self, g: int, now: int, end: int, enter: int) -> tuple[int, int]:
        """Native steps: how many whole ones were done, and why they ended."""
        native, function = self.engine.compiled(self._hard)
        every, first, rows = self._rows
        phases, call = len(self.parts), self._call
        if len(self._scratch) < native.work + 8:
            self._scratch = aligned((native.work + 8,))
        steps = (end - now) * phases - int(self._phase[g])
        row = now // every + 1 - first if every else 0
        width, own = self.row.width, g * self.lanes
        given = {
            "steps": steps, "enter": enter, "phase": int(self._phase[g]), "due": every - now % every if every else NEVER,
            "every": every or NEVER, "rows": rows.ctypes.data + 8 * (own * rows.strides[0] // 8 + row * width),
            "lane": rows.strides[0] // 8, "width": width, "kept": self._kept.ctypes.data, "kept_count": len(self._kept),
            "looks": self._noted[own:].ctypes.data, "look_room": self._looks.shape[1],
            "look_lane": self._noted.shape[1], "step": now,
        }  # fmt: skip
        if self._table is not None:
            table, r = self._table, len(self.engine.method.table.c)
            B, _, nodes, channels = table.shape
            item = nodes * channels
            begin = (own if B > 1 else 0) * table.shape[1] * item
            begin += (now - self._table_first) * item + int(self._phase[g]) * r * channels
            given |= {"table": table.ctypes.data + 8 * begin, "table_step": r * channels,
                      "table_lane": table.shape[1] * item if B > 1 else 0, "table_node": channels}  # fmt: skip
        for name, value in given.items():
            call[PLACE[name]] = value
        function(self.states[g].ctypes.data, self._scratch.ctypes.data, call.ctypes.data)
        done = int(self._phase[g]) + int(call[PLACE["done"]])
        self._phase[g] = call[PLACE["phase"]]
        return done // phases, int(call[PLACE["why"]])

    _scratch = np.zeros(0)

    def _last_finite(self, g: int, lanes: slice, before: FloatArray, begun: int, now: int) -> int:
        """A state is not finite: go back to the last step after which all are, and end those that go no further."""
        good, bad = begun, now
        place, phase = self.engine.places["carry"].start, 0
        while bad - good > 1:
            self.states[g], middle = before, (good + bad) // 2
            self._phase[g] = phase
            self._replayed(g, lanes, good, middle)
            if np.isfinite(self.states[g, 0, :place]).all():
                before, good = self.states[g].copy(), middle
            else:
                bad = middle
        self.states[g] = before
        self._replayed(g, lanes, good, bad)
        q, p = (self.engine.unpacked(self.block(g, name)) for name in ("q", "p"))
        lost = ~np.isfinite(np.concatenate([q, p], axis=1)).all(axis=1)
        self.states[g], self._phase[g] = before, phase
        own = np.arange(lanes.start, lanes.stop)
        self.counts[own[self.counts[own, STATUS] == GOING_WELL], STEPS] = good
        for i in own[lost[: len(own)]]:
            self._failure = Failure(NOT_FINITE, np.inf, 0, 0.0)
            self.end(int(i), NOT_FINITE, undone=False)
        return good

    def _replayed(self, g: int, lanes: slice, begin: int, end: int) -> None:
        """The steps once more that a run has done already."""
        now, enter = begin, EASY
        while now < end:
            done, why = self._native(g, now, end, enter)
            now, enter = now + done, EASY
            if why == FAILED:
                try:
                    self._rescue_lanes(g, lanes, now, replay=True)
                except Unsolved:
                    return
                enter = SOLVED

    # ---- rescues

    def _rescue(self, i: int) -> Rescue:
        found = self._rescues.get(i)
        if found is None:
            if len(self._rescues) > 64:
                self._rescues.clear()
            found = self._rescues[i] = Rescue(self.engine.step, self.params[i])
        return found

    def _inputs_at(self, i: int, t: float, phase: int = 0) -> FloatArray:
        """The inputs at the nodes of the step that begins at t."""
        start = self._start
        if start.inputs is None:
            return np.zeros((0, 0))
        h = float(start.h)
        nodes = self.offsets[phase] + self.parts[phase] * self.engine.method.table.c
        who = np.array([i]) if start.inputs.batch > 1 else None
        return np.asarray(start.inputs.nodes(np.array([t]), np.array([h]), nodes, who)[0], float)

    def _rescue_lanes(self, g: int, lanes: slice, now: int, replay: bool = False) -> None:
        """Solve the step of the lanes where it failed; a trajectory where that fails, too, ends here."""
        how, phase = self.engine, int(self._phase[g])
        h, n = float(self._start.h) * self.parts[phase], how.step.n
        failed = self.block(g, "failed", phase)[0]
        blocks = {name: self.states[g, phase, place] for name, place in how.places.items()}
        for lane in range(self.lanes) if self.lanes > 1 else range(1):
            i = lanes.start + lane
            if failed[lane] == 0.0 or i >= self.size or self.counts[i, STATUS] != GOING_WELL:
                continue
            q, p = (how.unpacked(blocks[name])[lane] for name in ("q", "p"))
            t = float(self._start.t) + now * float(self._start.h)
            try:
                solved = self._rescue(i).solve(
                    t + self.offsets[phase] * float(self._start.h), q, p, h, None, self._inputs_at(i, t, phase)
                )
            except Unsolved as error:
                if replay:
                    raise
                self._failure = error.failure
                self.end(i, error.failure.status, undone=False)
                continue
            how.form.put(blocks, lane, solved.z, solved.impulse, h)
            own = slice(None) if how.form.side else lane
            for name in ("failed", "going"):
                blocks[name][:, own] = 0.0
            blocks["spent"][:, own] += solved.iterations
            if not replay and now:
                self.counts[i, CONTINUED] += 1
        del n

    # ---- events

    def looks(self) -> tuple[NDArray[np.intp], FloatArray]:
        """The steps in which an event may lie, since this was asked last: which trajectory's, and rows (step, look)."""
        counts = self._noted[:, 0].astype(int)
        who = np.repeat(np.arange(len(counts)), counts)
        notes = self._noted[:, 1:].reshape(self._looks.shape)
        found = np.concatenate([notes[i, :k] for i, k in enumerate(counts) if k] or [np.zeros((0, notes.shape[2]))])
        self._noted[:, 0] = 0.0
        return who, found.copy()

    # ---- what is told

    def steps(self) -> NDArray[np.int64]:
        return self.counts[: self.size, STEPS].copy()

    def status(self) -> NDArray[np.int8]:
        return self.counts[: self.size, STATUS].astype(np.int8)

    def at(self) -> FloatArray:
        states = [
            np.concatenate([self.engine.unpacked(self.block(g, name)) for name in ("q", "p")], axis=1)
            for g in range(self.groups)
        ]
        return np.concatenate(states)[: self.size]

    def _numbers(self, name: str) -> FloatArray:
        """A number of each trajectory, over all factors of a composition, (size, phases)."""
        block = self.states[:, :, self.engine.places[name].start, : self.lanes]
        return block.transpose(0, 2, 1).reshape(-1, len(self.parts))[: self.size]

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._numbers("spent").sum(axis=1).astype(np.int64), self.counts[: self.size, CONTINUED].copy()

    def counts_(self) -> dict[str, Any]:
        iterations, continued = self.spent()
        return {
            "newton_iterations": int(iterations.sum()),
            "most_iterations": int(self._numbers("most").max()),
            "continued": int(continued.sum()),
        }

    def failure(self) -> Failure | None:
        return self._failure if (self.status() != GOING_WELL).any() else None

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time counts these, too."""
        self.states[:, :, self.engine.places["t"]] = step
        self.counts[: self.size, STEPS] = step

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of all that the steps to come depend on, a row for each trajectory."""
        how = self.engine
        lasting = self.states[:, :, how.lasting]
        if how.form.side:
            found = lasting.reshape(self.groups, -1)
        else:
            found = lasting.transpose(0, 3, 1, 2).reshape(self.groups * self.lanes, -1)
        phase = np.repeat(self._phase, self.lanes)[: self.size]
        further = np.stack([phase, np.full(self.size, how.layout)], axis=1)
        integers = np.concatenate([self.counts[: self.size], further], axis=1)
        return {"state": found[: self.size].copy(), "integers": integers}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        how, integers = self.engine, state["integers"]
        if (integers[:, -1] != how.layout).any():
            raise ValueError(
                "the trajectories stand as another version of leastaction has left them; go on with the version that "
                "wrote them"
            )
        self.counts[: self.size] = integers[:, :3]
        padded = np.concatenate([state["state"], np.repeat(state["state"][-1:], self.groups * self.lanes - self.size, 0)])
        count = int(how.lasting.sum())
        if how.form.side:
            self.states[:, :, how.lasting] = padded.reshape(self.groups, len(self.parts), count, how.lanes)
        else:
            shape = (self.groups, self.lanes, len(self.parts), count)
            self.states[:, :, how.lasting] = padded.reshape(shape).transpose(0, 2, 3, 1)
        for i in range(self.size, self.groups * self.lanes):
            self.block(i // self.lanes, "alive")[:, i % self.lanes] = 0.0
        self._phase[:] = integers[:: self.lanes, -2][: self.groups]
