"""Trajectories at work in float64: their states, the native runs, and what Python does where a run stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.form import Watching
from leastaction.engine.rescue import Rescue, Unsolved
from leastaction.engine.run import Engine, engine
from leastaction.engine.singles import SingleSteps
from leastaction.kernel.driver import BEGIN, CALL, EASY, FAILED, FINISHED, HARD, LOOK, PLACE, RESTING, SOLVED
from leastaction.kernel.guarded import check_zones, guarded
from leastaction.methods import Method
from leastaction.step.status import GOING_WELL, NOT_CONVERGED, NOT_FINITE, SINGULAR, Failure
from leastaction.step.stepper import Start, require_inputs
from leastaction.step.stored_row import Row

FloatArray = NDArray[np.float64]

ENERGIES = ("lowest", "highest")
NEVER = 2**62
STATUS, STEPS, CONTINUED = 0, 1, 2
MOST_LOOKS = 256


@dataclass(frozen=True)
class Snapshot:
    """A group between two native runs."""

    states: FloatArray
    phase: int
    unbegun: bool
    noted: FloatArray  # how many steps of each trajectory were noted for an event


class FormStepper:
    """A method at work: one trajectory, or many side by side in lanes.

    Trajectories lie in groups, as many as a vector has lanes. A group runs in native code until its steps are done, a
    step fails, or an event may lie in a step that cannot wait. A step that fails is rescued, trajectory by trajectory.
    """

    INTEGERS: tuple[str, ...] = ("status", "steps", "continued", "phase", "layout")
    hasty = False

    def __init__(
        self, system: Any, method: Method, start: Start, row: Row | None = None, lanes: int = 1,
        watch: Watching | None = None, energy: bool = False,
    ) -> None:  # fmt: skip
        require_inputs(system, start)
        self.row, self._start = row or Row.whole(system.n), start
        root, self.parts = method.root, method.parts
        self.offsets = np.concatenate([[0.0], np.cumsum(self.parts)[:-1]])
        how = engine(system, root, lanes, watch, False, energy, len(self.parts), self.row.varied)
        assert how is not None, "a system asks first whether steps are short enough"
        self.engine: Engine = how
        q, p = (np.atleast_2d(np.asarray(x, float)) for x in (start.q, start.p))
        self.size, self.lanes = len(q), lanes
        self.groups = -(-self.size // lanes)
        self.params = np.broadcast_to(np.atleast_2d(np.asarray(start.params, float)), (self.size, how.step.params))
        self.tally = np.zeros((self.groups * lanes, 3), np.int64)
        self.states = guarded((self.groups, len(self.parts), how.values, how.lanes), "states")
        self._phase = np.zeros(self.groups, np.int64)
        self._hard = False
        self._failure: Failure | None = None
        self._rescues: dict[int, Rescue] = {}
        self._carrying: Any = None
        if how.form.varied and not how.form.varies:
            self._carrying = how.form.carrying(self.params[0])
        self._calls, self._scratch = np.zeros((self.groups, len(CALL)), np.int64), np.zeros(0)
        self._kept = how.kept(self.row.columns)
        self._table: FloatArray | None = None
        self._table_first = 0
        self._looks = MOST_LOOKS if watch is not None else 0, 1 + how.shape.look  # behind their count
        self._noted = guarded((self.groups * lanes, 1 + self._looks[0] * self._looks[1]), "steps in doubt")
        self._rows: tuple[int, int, FloatArray] = (0, 0, np.zeros((self.size, 0, self.row.width)))
        self._unbegun = np.ones(self.groups, bool)
        for g in range(self.groups):
            self._begin(g, np.arange(lanes), q, p, 0)
        if energy:
            E = self._energies(np.full(self.size, start.t), np.concatenate([q, p], axis=1), self.params)
            for g in range(self.groups):
                own = np.minimum(np.arange(g * lanes, (g + 1) * lanes), self.size - 1)
                for name in ("lowest", "highest"):
                    self.block(g, name)[:] = E[own]

    def _energies(self, t: FloatArray, states: FloatArray, params: FloatArray) -> FloatArray:
        q, p = (np.ascontiguousarray(part) for part in np.split(states, 2, axis=1))
        return self.engine.system.energies(t, q, p, np.ascontiguousarray(params))

    # ---- states

    def block(self, g: int, name: str, phase: int = 0) -> FloatArray:
        """A block of a group's state, (values, lanes): a view."""
        return self.states[g, phase, self.engine.places[name]]

    @property
    def D(self) -> FloatArray:
        """The derivatives, (varied, 2n), of the one trajectory."""
        return self._directions("directions")

    @D.setter
    def D(self, D: FloatArray) -> None:
        size, lanes = self.row.varied, self.engine.lanes
        padded = np.zeros((-(-size // lanes) * lanes, D.shape[1]))
        padded[:size] = D
        at_work = self.block(0, "directions", int(self._phase[0]))
        at_work[:] = padded.reshape(-1, lanes, D.shape[1]).swapaxes(1, 2).reshape(at_work.shape)

    @property
    def earlier(self) -> FloatArray:
        """The derivatives before the last step."""
        return self._directions("earlier")

    def _directions(self, name: str) -> FloatArray:
        block, numbers = self.block(0, name, int(self._phase[0])), 2 * self.engine.step.n
        found = block.reshape(-1, numbers, self.engine.lanes).swapaxes(1, 2)
        return found.reshape(-1, numbers)[: self.row.varied].copy()

    def _begin(self, g: int, who: NDArray[np.int64], q: FloatArray, p: FloatArray, step: int) -> None:
        """The states of some lanes of a group before a step, as at the start of a run; q and p are rows by trajectory.
        Lanes beyond the last trajectory repeat it and are not alive.
        """
        how, start, h = self.engine, self._start, float(self._start.h)
        lanes = g * self.lanes + who
        own = np.minimum(lanes, self.size - 1)
        alive = (lanes < self.size) & (self.tally[lanes, STATUS] == GOING_WELL)
        columns = slice(None) if how.form.side else who
        blocks = {"q": how.packed(q[None, own])[0], "p": how.packed(p[None, own])[0], "params": self.params[own].T}
        if "v" in how.places:  # a run begins with the velocity that was given
            blocks["v"] = np.broadcast_to(start.v, q.shape)[own].T
        for state, part, offset in zip(self.states[g], self.parts.tolist(), self.offsets.tolist(), strict=True):
            state[:, columns] = 0.0
            for name, block in blocks.items():
                if (place := state[how.places[name]]).size:  # parameters of sums stand elsewhere
                    place[:, columns] = block
            t0 = float(start.t) + offset * h
            single = {"h": part * h, "period": h, "t0": t0, "t": step, "alive": alive, "offset": offset}
            for name, value in single.items():
                state[how.places[name].start, columns] = value
            state[how.places["tables"]] = how.tables(part * h)
            if how.form.alone:
                x, i = {name: state[place] for name, place in how.places.items()}, own[0]
                how.form.began(x, float(start.t) + (step + offset) * h, q[i], p[i], part * h, self.params[i])
        if self.row.varied:
            self.D = self.row.directions()
        self.tally[lanes, STEPS] = step
        self._unbegun[g] = True

    def hurry(self) -> None:
        """From now on steps after the first are not rescued: in large systems that takes minutes."""
        self.hasty = True

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
        self.tally[i, STATUS] = status
        if undone:
            every, first, rows = self._rows
            done = int(self.tally[i, STEPS])
            if every and done % every == 0 and 0 <= done // every - first < rows.shape[1]:
                rows[i, done // every - first] = np.nan
            self.tally[i, STEPS] -= 1

    def restart(self, i: int, step: int, state: FloatArray) -> None:
        """Trajectory i goes on from another state (q, p) before this step, like a new run."""
        g, lane = divmod(i, self.lanes)
        n = self.engine.step.n
        q, p = (np.repeat(x[None], self.size, axis=0) for x in (state[:n], state[n:]))
        self.tally[i, STATUS] = GOING_WELL
        own = slice(None) if self.engine.form.side else lane
        energies = [self.block(g, name)[:, own].copy() for name in ENERGIES if name in self.engine.places]
        self._begin(g, np.array([lane]), q, p, step)
        if energies:
            t = np.array([float(self._start.t + step * self._start.h)])
            E = self._energies(t, state[None], self.params[i : i + 1])
            for name, old, choose in zip(ENERGIES, energies, (np.fmin, np.fmax), strict=True):
                self.block(g, name)[:, own] = choose(old, E)

    # ---- the run

    @property
    def done(self) -> int:
        counts = self.tally[: self.size]
        return int(counts[counts[:, STATUS] == GOING_WELL, STEPS].max(initial=0))

    @property
    def furthest(self) -> int:
        return int(self.tally[: self.size, STEPS].max())

    def going(self, end: int) -> bool:
        """Whether a trajectory goes on that has done fewer steps than these."""
        counts = self.tally[: self.size]
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
            c = self.engine.method.nodes
            points = np.concatenate([offset + part * c for offset, part in zip(self.offsets, self.parts, strict=True)])
            table = np.asarray(start.inputs.along(start.t, start.h, first, count, points), float)
            if table.shape[2] == 1 and len(points) > 1:
                table = np.broadcast_to(table, (*table.shape[:2], len(points), table.shape[3]))
            lanes = self.groups * self.lanes
            if 1 < len(table) < lanes:  # native code reads the inputs of all lanes
                table = table[np.minimum(np.arange(lanes), len(table) - 1)]
            self._table, self._table_first = np.ascontiguousarray(table), first

    def advance_to(self, end: int, every: int, first: int, rows: FloatArray) -> None:
        """Every group up to this step, or as far as it goes; state k goes to rows[:, k // every − first]."""
        self._rows = every, first, rows
        counts, status = (self.tally[: self.groups * self.lanes, k].reshape(-1, self.lanes) for k in (STEPS, STATUS))
        going = status == GOING_WELL
        now = np.where(going, counts, -1).max(axis=1)
        which = np.flatnonzero(going.any(axis=1) & (now < end))
        if self._carrying is not None or not which.size:
            for g in which.tolist():
                self._group(g, int(now[g]), end)
            return
        before = [self._snapshot(g) for g in which.tolist()]
        self._prepare(which, now[which], EASY, end)
        hard = self._hard
        done, why = self._called(which)
        sound = np.isfinite(self.states[which, 0, : self.engine.places["carry"].start]).all(axis=(1, 2))
        for k, g in enumerate(which.tolist()):
            if why[k] == FINISHED and sound[k]:
                counts[g][going[g]] = now[g] + done[k]
            else:
                self._group(g, int(now[g]), end, before[k], (int(done[k]), int(why[k])), hard)

    def _group(
        self, g: int, now: int, end: int, before: Snapshot | None = None, ran: tuple[int, int] | None = None,
        hard: bool = False,
    ) -> None:  # fmt: skip
        """One group from a step on; it ends early where an event may lie. `ran` is how its native run ended that began
        with the states `before`, with the hard way or without.
        """
        lanes = slice(g * self.lanes, min((g + 1) * self.lanes, self.size))
        enter, begun = EASY, now
        before = before or self._snapshot(g)
        while now < end:
            if ran is None:
                hard = self._hard
            phase = int(self._phase[g])
            done, why = ran or self._native(g, now, end, enter)
            ran = None
            if not np.isfinite(self.states[g, 0, : self.engine.places["carry"].start]).all() and done:
                now, enter = self._last_finite(g, lanes, before, begun, now + done), EASY
                before, begun = self._snapshot(g), now
                if not (self.tally[lanes, STATUS] == GOING_WELL).any():
                    return
                continue
            now += done
            alive = self.tally[lanes, STATUS] == GOING_WELL
            self.tally[lanes, STEPS][alive] = now
            if why == LOOK:
                return
            if why == FAILED:
                if not hard and enter == EASY and self.engine.hard:
                    self._hard, enter = True, HARD
                    if self.lanes == 1:
                        self.block(g, "resting", int(self._phase[g]))[:] = RESTING
                    continue
                ended = enter == SOLVED and not done and phase == self._phase[g]
                self._rescue_lanes(g, lanes, now, before, begun, ended)
                enter = SOLVED
                if not (self.tally[lanes, STATUS] == GOING_WELL).any():
                    return
            else:
                enter = EASY

    def _native(self, g: int, now: int, end: int, enter: int) -> tuple[int, int]:
        """Native steps: how many whole ones were done, and why they ended."""
        which = np.array([g])
        if self._carrying is None:
            self._prepare(which, np.array([now]), enter, end)
            done, why = self._called(which)
            return int(done[0]), int(why[0])
        begun, ended = now, FINISHED
        while now < end and ended == FINISHED:
            phase = int(self._phase[g])
            q, p = (self.engine.unpacked(self.block(g, name, phase))[0] for name in ("q", "p"))
            self._prepare(which, np.array([now]), enter, None)
            done, why = self._called(which)
            ended = int(why[0])
            if ended != FAILED:
                self._carry(phase, now, q, p)
            now, enter = now + int(done[0]), EASY
            every, first, rows = self._rows
            if done[0] and every and now % every == 0:
                rows[0, now // every - first, len(self.row.columns) :] = self.D.ravel()
        return now - begun, ended

    def _carry(self, phase: int, step: int, q: FloatArray, p: FloatArray) -> None:
        """The derivatives through a factor of this step, that native code has just done."""
        start, part, offset = self._start, self.parts[phase], self.offsets[phase]
        z = self.engine.form.unknowns_of({name: self.block(0, name, phase) for name in self.engine.places})
        t, h = float(start.t) + step * float(start.h), float(start.h)
        assert self._carrying is not None
        D, inputs = self.D, self._inputs_at(0, t, phase)
        self.block(0, "earlier")[:] = self.block(0, "directions", int(self._phase[0]))
        self.D = self._carrying.carried(D, t + offset * h, part * h, h, q, p, z, inputs, step + offset)

    def _prepare(self, which: NDArray[np.intp], now: NDArray[Any], enter: int, end: int | None) -> None:
        """What native runs of these groups are told, of steps from `now` up to `end`, or of one factor of a step."""
        every, first, rows = self._rows
        phases, phase, own = len(self.parts), self._phase[which], which * self.lanes
        row = now // every + 1 - first if every else 0 * now
        given = {
            "steps": 1 if end is None else (end - now) * phases - phase,
            "enter": np.where(self._unbegun[which], BEGIN, enter) if enter == EASY else enter,
            "phase": phase, "due": every - now % every if every else NEVER, "every": every or NEVER,
            "rows": rows.ctypes.data + rows.strides[0] * own + 8 * self.row.width * row,
            "lane": rows.strides[0] // 8, "width": self.row.width,
            "kept": self._kept.ctypes.data, "kept_count": len(self._kept),
            "looks": self._noted.ctypes.data + self._noted.strides[0] * own, "look_room": self._looks[0],
            "look_lane": self._noted.shape[1], "step": now,
        }  # fmt: skip
        if self._table is not None:
            table, r = self._table, len(self.engine.method.nodes)
            B, _, nodes, channels = table.shape
            item = nodes * channels
            begin = (own if B > 1 else 0 * own) * table.shape[1] * item
            begin = begin + (now - self._table_first) * item + phase * r * channels
            given |= {"table": table.ctypes.data + 8 * begin, "table_step": r * channels,
                      "table_lane": table.shape[1] * item if B > 1 else 0, "table_node": channels}  # fmt: skip
        told = np.zeros((len(CALL), len(which)), np.int64)
        for name, value in given.items():
            told[PLACE[name]] = value
        self._calls[which] = told.T

    def _called(self, which: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Native runs of some groups: how many whole steps each did, and why they ended."""
        native, function = self.engine.compiled(self._hard)
        self._scratch = self.engine.form.scratch(native.work, self._scratch, self.params[which[0] * self.lanes])
        work, calls = self._scratch.ctypes.data, self._calls
        states = self.states.ctypes.data + self.states.strides[0] * which
        records = calls.ctypes.data + calls.strides[0] * which
        for state, record in zip(states.tolist(), records.tolist(), strict=True):
            function(state, work, record)
        check_zones(self.states, self._scratch, self._noted)
        self._unbegun[which] = False
        done = self._phase[which] + calls[which, PLACE["done"]]
        self._phase[which] = calls[which, PLACE["phase"]]
        return done // len(self.parts), calls[which, PLACE["why"]]

    def _snapshot(self, g: int) -> Snapshot:
        noted = self._noted[g * self.lanes : (g + 1) * self.lanes, 0].copy()
        return Snapshot(self.states[g].copy(), int(self._phase[g]), bool(self._unbegun[g]), noted)

    def _back(self, g: int, to: Snapshot) -> None:
        self.states[g], self._phase[g], self._unbegun[g] = to.states, to.phase, to.unbegun
        self._noted[g * self.lanes : (g + 1) * self.lanes, 0] = to.noted

    def _last_finite(self, g: int, lanes: slice, before: Snapshot, begun: int, now: int) -> int:
        """A state is not finite: go back to the last step after which all are, and end those that go no further."""
        good, bad, place = begun, now, self.engine.places["carry"].start
        while bad - good > 1:
            middle = (good + bad) // 2
            self._replay(g, lanes, before, good, middle)
            if np.isfinite(self.states[g, 0, :place]).all():
                before, good = self._snapshot(g), middle
            else:
                bad = middle
        self._replay(g, lanes, before, good, bad)
        q, p = (self.engine.unpacked(self.block(g, name)) for name in ("q", "p"))
        lost = ~np.isfinite(np.concatenate([q, p], axis=1)).all(axis=1)
        self._back(g, before)
        own = np.arange(lanes.start, lanes.stop)
        self.tally[own[self.tally[own, STATUS] == GOING_WELL], STEPS] = good
        for i in own[lost[: len(own)]]:
            self._failure = Failure(NOT_FINITE, np.inf, 0, 0.0)
            self.end(int(i), NOT_FINITE, undone=False)
            every, first, rows = self._rows
            if every:
                rows[i, max(0, good // every + 1 - first) :] = np.nan
        return good

    def _replay(self, g: int, lanes: slice, before: Snapshot, begin: int, end: int) -> None:
        """The steps once more, from a snapshot, that a run has done already."""
        self._back(g, before)
        now, enter = begin, EASY
        while now < end:
            done, why = self._native(g, now, end, enter)
            now, enter = now + done, EASY
            if why == FAILED:
                try:
                    self._rescue_lanes(g, lanes, now)
                except Unsolved:
                    return
                enter = SOLVED

    # ---- rescues

    def _rescue(self, i: int) -> Rescue:
        found = self._rescues.get(i)
        if found is None:
            if len(self._rescues) > 64:
                self._rescues.clear()
            found = self._rescues[i] = self.engine.how.rescue(self.params[i])
        return found

    def _inputs_at(self, i: int, t: float, phase: int = 0) -> FloatArray:
        """The inputs at the nodes of the step that begins at t."""
        start = self._start
        if start.inputs is None:
            return np.zeros((0, 0))
        h = float(start.h)
        nodes = self.offsets[phase] + self.parts[phase] * self.engine.method.nodes
        who = np.array([i]) if start.inputs.batch > 1 else None
        return np.asarray(start.inputs.nodes(np.array([t]), np.array([h]), nodes, who)[0], float)

    def _rescue_lanes(
        self, g: int, lanes: slice, now: int, before: Snapshot | None = None, begun: int = 0, ended: bool = False
    ) -> None:  # fmt: skip
        """Solve the step of the lanes where it failed. A trajectory where that fails, too, ends here; where steps are
        replayed, nothing `before` is known, Unsolved is raised. Where a step is solved, but constraints depend on each
        other at its end, `ended`, no other root helps.
        """
        how, phase = self.engine, int(self._phase[g])
        h = float(self._start.h) * self.parts[phase]
        blocks = {name: self.states[g, phase, place] for name, place in how.places.items()}
        for lane in range(self.lanes):
            i = lanes.start + lane
            if blocks["failed"][0, lane] == 0.0 or i >= self.size or self.tally[i, STATUS] != GOING_WELL:
                continue
            q, p = (how.unpacked(blocks[name])[lane] for name in ("q", "p"))
            t = float(self._start.t) + now * float(self._start.h)
            begin = t + self.offsets[phase] * float(self._start.h)
            try:
                if self.hasty and now and how.form.continues:
                    raise Unsolved(Failure(NOT_CONVERGED, np.inf, 0, 0.0))
                if ended:
                    raise Unsolved(Failure(SINGULAR, np.inf, 0, 0.0))
                solved = self._rescue(i).solve(begin, q, p, h, self._inputs_at(i, t, phase))
            except Unsolved as error:
                if before is None:
                    raise
                self._failure = error.failure
                self.end(i, error.failure.status, undone=False)
                if phase:
                    self._stand(g, lane, lanes, before, begun, now)
                continue
            how.form.put(blocks, lane, solved.z, solved.impulse, h)
            own = slice(None) if how.form.side else lane
            if "floor" in blocks and np.ndim(solved.floor):
                blocks["floor"][:, own] = how.packed(np.tile(solved.floor, (1, self.lanes, 1)))[0][:, own]
            for name in ("failed", "going"):
                blocks[name][:, own] = 0.0
            blocks["spent"][:, own] += solved.iterations
            if before is not None and now and how.form.continues:
                self.tally[i, CONTINUED] += 1

    def _stand(self, g: int, lane: int, lanes: slice, before: Snapshot, begun: int, now: int) -> None:
        """A trajectory that fails inside a step of a composition stands where the step began."""
        here, own = self._snapshot(g), slice(None) if self.engine.form.side else lane
        self._replay(g, lanes, before, begun, now)
        home = {name: self.block(g, name)[:, own].copy() for name in ("q", "p")}
        self._back(g, here)
        for k in range(len(self.parts)):
            for name, values in home.items():
                self.block(g, name, k)[:, own] = values

    # ---- events

    def looks(self) -> tuple[NDArray[np.intp], FloatArray]:
        """The steps in which an event may lie, since this was asked last: which trajectory's, and rows (step, look)."""
        counts = self._noted[:, 0].astype(int)
        who = np.repeat(np.arange(len(counts)), counts)
        notes = self._noted[:, 1:].reshape(len(counts), *self._looks)
        found = np.concatenate([notes[i, :k] for i, k in enumerate(counts) if k] or [np.zeros((0, notes.shape[2]))])
        self._noted[:, 0] = 0.0
        return who, found.copy()

    @cached_property
    def singles(self) -> SingleSteps:
        return SingleSteps(self.engine.system, self.engine.method)

    def driving(self, t: FloatArray, lengths: FloatArray, phase: int = 0) -> FloatArray | None:
        """The inputs at the nodes of single steps, (K, r, channels), where there are any."""
        inputs, c = self._start.inputs, self.engine.method.nodes
        nodes = self.offsets[phase] + self.parts[phase] * c
        return None if inputs is None else inputs.nodes(t, lengths, nodes, None)

    def polynomials(self, starts: FloatArray) -> tuple[FloatArray, int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        z, _ = self.solved_steps(starts, np.full(len(starts), float(self._start.h)))
        failed = np.flatnonzero(np.isnan(z[:, 0, 0]))
        return z, int(failed[0]) if len(failed) else len(z)

    def solved_steps(self, starts: FloatArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps; NaN where one is not solved."""
        return self.singles.solved(starts, lengths, self._start.params, self.driving(starts[:, 0], lengths))

    def single_steps(self, starts: FloatArray, lengths: FloatArray) -> FloatArray:
        """The states (q, p) after single steps of these lengths; NaN where one is not solved."""
        states = starts.copy()
        for k, part in enumerate(self.parts):
            driven = self.driving(starts[:, 0], lengths, k)
            z, impulses = self.singles.solved(states, part * lengths, self._start.params, driven)
            states[:, 1:] += np.concatenate([z[:, -1], impulses], axis=1)
            states[:, 0] += part * lengths
        return states[:, 1:]

    # ---- what is told

    def steps(self) -> NDArray[np.int64]:
        return self.tally[: self.size, STEPS].copy()

    def status(self) -> NDArray[np.int8]:
        return self.tally[: self.size, STATUS].astype(np.int8)

    def at(self) -> FloatArray:
        states = [
            np.concatenate([self.engine.unpacked(self.block(g, name)) for name in ("q", "p")], axis=1)
            for g in range(self.groups)
        ]
        found = np.concatenate(states)[: self.size]
        return np.concatenate([found, self.D.reshape(1, -1)], axis=1) if self.row.varied else found

    def _numbers(self, name: str) -> FloatArray:
        """A number of each trajectory, over all factors of a composition, (size, phases)."""
        block = self.states[:, :, self.engine.places[name].start, : self.lanes]
        return block.transpose(0, 2, 1).reshape(-1, len(self.parts))[: self.size]

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self._numbers("spent").sum(axis=1).astype(np.int64), self.tally[: self.size, CONTINUED].copy()

    def counts(self) -> dict[str, Any]:
        iterations, continued = self.spent()
        return {
            "newton_iterations": int(iterations.sum()),
            "most_iterations": int(self._numbers("most").max()),
            "continued": int(continued.sum()),
        }

    def failure(self) -> Failure | None:
        return self._failure if (self.status() != GOING_WELL).any() else None

    def finish(self, standing: Any) -> None:
        """The range of the energy."""
        if "lowest" in self.engine.places:
            for k, name in enumerate(ENERGIES):
                standing.energy[:, k] = self._numbers(name)[:, 0]

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time counts these, too."""
        self.states[:, :, self.engine.places["t"]] = step
        self.tally[: self.size, STEPS] = step

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
        integers = np.concatenate([self.tally[: self.size], further], axis=1)
        return {"state": found[: self.size].copy(), "integers": integers}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        how, integers = self.engine, state["integers"]
        if (integers[:, -1] != how.layout).any():
            raise ValueError(
                "the trajectories stand as another version of leastaction has left them; go on with the version that "
                "wrote them"
            )
        self.tally[: self.size] = integers[:, :3]
        missing = self.groups * self.lanes - self.size
        padded = np.concatenate([state["state"], np.repeat(state["state"][-1:], missing, 0)])
        count = int(how.lasting.sum())
        if how.form.side:
            self.states[:, :, how.lasting] = padded.reshape(self.groups, len(self.parts), count, how.lanes)
        else:
            shape = (self.groups, self.lanes, len(self.parts), count)
            self.states[:, :, how.lasting] = padded.reshape(shape).transpose(0, 2, 3, 1)
        for i in range(self.size, self.groups * self.lanes):
            self.block(i // self.lanes, "alive")[:, i % self.lanes] = 0.0
        self._phase[:] = integers[:: self.lanes, -2][: self.groups]
        self._hard = bool((self.states[:, :, how.places["resting"]] > 0.0).any()) and bool(how.hard)
        for g in range(self.groups):
            self._unbegun[g] = bool((self.block(g, "started") == 0.0).any())
