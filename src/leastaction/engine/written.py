"""A Lagrangian as scripts see it: its node, compiled for the points of a step side by side, and its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.long_steps import LongSteps, Middle, Sweep
from leastaction.engine.mass import Mass, mass_of
from leastaction.engine.rescue import Rescue
from leastaction.kernel import compile_program, native_lanes
from leastaction.kernel.script import Call, Each, Operation, Place
from leastaction.methods import Galerkin
from leastaction.program import Builder, Program
from leastaction.step.form import Step, step_of

FloatArray = NDArray[np.float64]


class Written:
    """A Lagrangian and a method."""

    kinds, kind_of = 0, np.zeros(0, np.int64)
    stiffness: tuple[str, ...] = ("m_v", "f_q", "gyro")

    def __init__(self, system: Any, method: Galerkin, step: Step) -> None:
        self.system, self.method, self.step, self.n = system, method, step, step.n
        self.channels = step.channels

    @cached_property
    def mass(self) -> Mass:
        return mass_of(self.step)

    @property
    def constant(self) -> bool:
        return self.mass.constant

    @property
    def diagonal(self) -> bool:
        return self.mass.diagonal and self.constant

    @property
    def separable(self) -> bool:
        return self.mass.separable and self.diagonal

    @property
    def vectors(self) -> int:
        return -(-len(self.method.table.c) // self.lanes)

    @property
    def lanes(self) -> int:
        return native_lanes()

    @property
    def padded(self) -> int:
        return -(-self.n // self.lanes) * self.lanes

    def _node(self, *names: str) -> Program:
        """The node's Program for padded coordinates."""
        program, N = self.step.terms[0].program, self.padded
        B = Builder([(name, N if name in ("q", "v") else size) for name, size in program.inputs])
        at = B.at(program.select(*names), self._unpadded(B))
        return B.finished(**{name: [*at[name], *[0.0] * (N - self.n)] for name in names})

    def _unpadded(self, B: Builder) -> dict[str, list[Any]]:
        return {name: x[: self.n] if name in ("q", "v") else x for name, x in B.blocks().items()}

    def sweep(self, form: LongSteps, name: str, nodes: Sequence[int]) -> Sweep:
        names = ("f",) if self.separable else ("f", "m")
        L, work, program = (form.lanes if len(nodes) > 1 else 1), form.work, self._node(*names)
        native = compile_program(program, L, bounded=L > 1)
        groups = -(-len(nodes) // L)
        slot = work.slot(2)
        room = work.block(f"{name} work", native.work)
        form.further.append((slot, native, room))
        given = [work.block(f"{name} given {g}", program.input_size * L) for g in range(groups)]
        found = [work.block(f"{name} found {g}", program.output_size * L) for g in range(groups)]

        def places(begins: Sequence[int], first: int) -> Place:
            at = tuple(begins[k // L] + first * L + k % L for k in range(len(nodes)))
            return Place("work", at, form.lanes * L, L)

        def block(name: str) -> Place:
            return places(given, program.input_slice(name).start)

        outputs = [places(found, program.output_slice(x).start) for x in names]
        calls = [Call(slot, Place("work", (a,)), Place("work", (b,))) for a, b in zip(given, found, strict=True)]
        t = block("t")
        for begin in given:
            form.params_at.append((begin + program.input_slice("params").start * L, L))
        first = program.input_slice("inputs").start if self.channels else 0
        for k, i in enumerate(nodes):
            form.points.append(
                (t.begins[k], i, [given[k // L] + (first + j) * L + k % L for j in range(self.channels)])
            )
        return Sweep(calls, Place("work", t.begins), block("q"), block("v"), outputs[0], outputs[-1], False)

    def around(self, form: LongSteps, before: Each, sweep: Sweep, after: Each) -> list[Operation]:
        return [before, *sweep.operations, after]

    def driven(self, form: LongSteps) -> list[Operation]:
        """Times and inputs of all points, where the node reads them."""
        points, vectors, W, r = form.points, self.vectors, form.lanes, len(self.method.table.c)
        begin = form.places["inputs"].start
        source = tuple((begin + j * vectors) * W + i for _, i, places in points for j in range(len(places)))
        reads = {"times": form.times, "inputs": Place("state", source)}
        at_t = Place("work", tuple(t for t, _, _ in [*points, *form.middles]))
        at_inputs = Place("work", tuple(x for _, _, places in points for x in places))

        def build(rows: Any, x: Any) -> Any:
            times = [x["times"][i] for _, i, _ in points] + [x["times"][r]] * len(form.middles)
            return {"given t": times, "given inputs": x["inputs"]}

        return [form.once(build, reads, **{"given t": at_t, "given inputs": at_inputs})]

    def middle(self, form: LongSteps, what: Sequence[str]) -> Middle:
        slopes, n, work = self.step.terms[0].slopes, self.n, form.work
        there, zero = dict(slopes.outputs), ("const", 0.0)
        wanted = [*what, "m_q", "f_v"] if "gyro" in what else what
        names = [name for name in ("m_v", "f_q", "m_q", "f_v") if name in wanted and name in there]
        pattern = np.eye(n, dtype=bool)
        for name in names:
            pattern |= np.array([slopes.code[k] != zero for k in slopes.output(name)]).reshape(n, n)
        pattern |= pattern.T
        row, column = np.nonzero(np.triu(pattern))
        both = [*zip(row.tolist(), column.tolist(), strict=True), *zip(column.tolist(), row.tolist(), strict=True)]
        N = self.padded
        B = Builder([(name, N if name in ("q", "v") else size) for name, size in slopes.inputs])
        at, nothing = B.at(slopes.select(*names), self._unpadded(B)), [B.number(0.0)] * (n * n)
        found = {name: [at.get(name, nothing)[i * n + j] for i, j in both] for name in ("m_v", "f_q") if name in what}
        if "gyro" in what:
            m_q, f_v = (at.get(name, nothing) for name in ("m_q", "f_v"))
            gyro = [m_q[i * n + j] - f_v[i * n + j] for i, j in both]
            if any(x.known != 0 for x in gyro):
                found["gyro"] = gyro
        program = B.finished(**found)
        native = compile_program(program, 1)
        slot, label = work.slot(2), " ".join(what)
        form.further.append((slot, native, work.block(f"{label} work", native.work)))
        given, out = work.block(f"{label} given", program.input_size), work.block(f"{label} found", program.output_size)
        form.params_at.append((given + program.input_slice("params").start, 1))
        form.middles.append((given + program.input_slice("t").start, len(self.method.table.c), []))
        if self.channels:
            r, first = len(self.method.table.c), given + program.input_slice("inputs").start
            form.points.append(
                (given + program.input_slice("t").start, r // 2, [first + j for j in range(self.channels)])
            )
        q, v = (Place("work", (given + program.input_slice(x).start,), form.lanes) for x in "qv")
        entries = {x: out + program.output_slice(x).start for x in found}
        e = np.arange(len(row))
        call = [Call(slot, Place("work", (given,)), Place("work", (out,)))]
        return Middle(call, q, v, entries, row, column, e, e + len(row))

    def fill(self, form: LongSteps, work: FloatArray, params: FloatArray) -> Any:
        slots = work.view(np.int64)
        for slot, native, room in form.further:
            slots[slot : slot + 2] = native.address, work.ctypes.data + 8 * room
        for begin, lanes in form.params_at:
            work[begin : begin + len(params) * lanes] = np.repeat(params, lanes)
        (begin,) = form.mass_place.begins
        work[begin : begin + form.count * form.lanes] = 1.0
        if self.diagonal:
            given = {name: np.zeros(size) for name, size in self.mass.program.inputs} | {"params": params}
            work[begin : begin + self.n] = 1.0 / np.array(self.mass.program(*given.values())["m_v"])

    def rescue(self, params: FloatArray) -> Rescue:
        return Rescue(self.system, self.step, params)

    def velocity(self, t: float, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        (v,), _ = self.system.velocities(np.array([t]), q[None], p[None], params)
        return np.asarray(v, float)


@lru_cache(maxsize=64)
def written(system: Any, method: Galerkin) -> Written:
    return Written(system, method, step_of(system, method))
