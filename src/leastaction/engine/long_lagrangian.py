"""A Lagrangian as scripts see it: its node, compiled for the points of a step side by side, and its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.long_form import Held, LongForm, Middle, Sweep
from leastaction.engine.mass import mass_of
from leastaction.engine.rescue import Rescue
from leastaction.kernel import compile_program, native_lanes
from leastaction.kernel.script import Call, Each, Operation, Place
from leastaction.methods import Galerkin
from leastaction.program import Builder, Program, Value, dot
from leastaction.step.form import End, Step, step_of

FloatArray = NDArray[np.float64]


class Written:
    """A Lagrangian and a method."""

    stiffness: tuple[str, ...] = ("m_v", "f_q", "gyro")

    def __init__(self, system: Any, method: Galerkin, step: Step) -> None:
        self.system, self.method, self.step, self.n = system, method, step, step.n
        self.mass, self.lanes, self.channels = mass_of(step), native_lanes(), step.channels
        self.constant, self.diagonal = self.mass.constant, self.mass.diagonal and self.mass.constant
        self.separable = self.mass.separable and self.diagonal
        self.curved, slopes = step.end is not None and not step.end.linear, step.terms[0].slopes
        self.hollow = any(slopes.code[k] == ("const", 0.0) for k in slopes.output("m_v")[:: self.n + 1])
        self.weighted = step.multipliers > 0 and self.constant
        self.kinds, self.vectors = int(self.weighted), -(-len(method.table.c) // self.lanes)
        self.padded = -(-self.n // self.lanes) * self.lanes

    def _node(self, *names: str) -> Program:
        """The node's Program for padded coordinates."""
        program, N = self.step.terms[0].program, self.padded
        B = Builder([(name, N if name in ("q", "v") else size) for name, size in program.inputs])
        at = B.at(program.select(*names), self._unpadded(B))
        return B.finished(**{name: [*at[name], *[0.0] * (N - self.n)] for name in names})

    def _unpadded(self, B: Builder) -> dict[str, list[Any]]:
        return {name: x[: self.n] if name in ("q", "v") else x for name, x in B.blocks().items()}

    def sweep(self, form: LongForm, name: str, nodes: Sequence[int]) -> Sweep:
        names = ("f",) if self.separable else ("f", "m")
        calls, (t, q, v), found = self._calls(form, name, self._node(*names), nodes, ("t", "q", "v"), names)
        return Sweep(calls, Place("work", t.begins), q, v, found[0], found[-1], False)

    def held(self, form: LongForm, name: str, times: Sequence[int]) -> Held:
        """What constraints give at points (`long_held.Held`)."""
        n, m, N, W = self.n, self.step.multipliers, self.padded, self.lanes
        M = -(-m // W) * W
        reaction, end = self.step.terms[1].program, cast(End, self.step.end).program
        B = Builder([("t", 1), ("q", N), ("by", M if name == "reaction" else N), ("params", self.step.params)])
        x = self._unpadded(B)
        given = {block: [B.number(0.0)] * size for block, size in end.inputs} | x
        if name == "reaction":
            found = [*B.at(reaction, given | {"multipliers": x["by"][:m]}).values()]
        elif name == "end":
            at = B.at(end, given | {"v": x["by"][:n]})
            found = [at["e"], at["c"]]
        else:
            G, by = B.at(end, given)["c_v"], x["by"]
            found = [[B.number(0.0)] * n, [dot([a * a for a in G[k : k + n]], by[:n]) for k in range(0, n * m, n)]]
        whole = {
            name: [*part, *[0.0] * (size - len(part))] for name, part, size in zip("fg", found, (N, M), strict=True)
        }
        calls, (_, q, other), out = self._calls(form, name, B.finished(**whole), times, ("t", "q", "by"), "fg")
        return Held(calls, q, other, *out)

    def _calls(
        self, form: LongForm, name: str, program: Program, nodes: Sequence[int], reads: Sequence[str],
        gives: Sequence[str],
    ) -> tuple[list[Call], list[Place], list[Place]]:  # fmt: skip
        """A Program at some points, side by side: calls of it, and where it reads and gives blocks."""
        L, work = (form.lanes if len(nodes) > 1 else 1), form.work
        native = compile_program(program, L, bounded=L > 1)
        groups = -(-len(nodes) // L)
        slot = work.native(native)
        given = [work.block(program.input_size * L) for g in range(groups)]
        found = [work.block(program.output_size * L) for g in range(groups)]

        def places(begins: Sequence[int], first: int) -> Place:
            at = tuple(begins[k // L] + first * L + k % L for k in range(len(nodes)))
            return Place("work", at, form.lanes * L, L)

        def block(name: str) -> Place:
            return places(given, program.input_slice(name).start)

        outputs = [places(found, program.output_slice(x).start) for x in gives]
        calls = [Call(slot, Place("work", (a,)), Place("work", (b,))) for a, b in zip(given, found, strict=True)]
        t = block("t")
        for begin in given:
            form.params_at.append((begin + program.input_slice("params").start * L, L))
        channels = dict(program.inputs).get("inputs", 0)
        first = program.input_slice("inputs").start if channels else 0
        for k, i in enumerate(nodes):
            form.points.append((t.begins[k], i, [given[k // L] + (first + j) * L + k % L for j in range(channels)]))
        return calls, [block(x) for x in reads], outputs

    def around(self, form: LongForm, before: Each, sweep: Sweep, after: Each) -> list[Operation]:
        return [before, *sweep.operations, after]

    def driven(self, form: LongForm) -> list[Operation]:
        """Times and inputs of all points, where the node reads them."""
        points, vectors, W = [*form.points, *form.middles], self.vectors, form.lanes
        begin = form.places["inputs"].start
        source = tuple((begin + j * vectors) * W + i for _, i, places in points for j in range(len(places)))
        reads = {"times": form.times, "inputs": Place("state", source)}
        at_t = Place("work", tuple(t for t, _, _ in points))
        at_inputs = Place("work", tuple(x for _, _, places in points for x in places))

        def build(rows: Any, x: Any) -> Any:
            return {"given t": [x["times"][i] for _, i, _ in points], "given inputs": x["inputs"]}

        return [form.once(build, reads, **{"given t": at_t, "given inputs": at_inputs})]

    def middle(self, form: LongForm, what: Sequence[str], time: int) -> Middle:
        slopes, n, work, m = self.step.terms[0].slopes, self.n, form.work, self.step.multipliers
        held = self.step.terms[1].slopes if m else None
        there, zero = dict(slopes.outputs), ("const", 0.0)
        wanted = [*what, "m_q", "f_v"] if "gyro" in what else what
        names = [name for name in ("m_v", "f_q", "m_q", "f_v") if name in wanted and name in there]
        pattern = np.eye(n, dtype=bool)
        for name in names:
            pattern |= np.array([slopes.code[k] != zero for k in slopes.output(name)]).reshape(n, n)
        if held:
            bent, slant = (
                np.array([held.code[k] != zero for k in held.output(x)]).reshape(-1, n) for x in ("f_q", "g_q")
            )
            pattern |= bent & ("f_q" in what)
            pattern = np.block([[pattern, slant.T], [slant, np.eye(m, dtype=bool)]])
        pattern |= pattern.T
        row, column = np.nonzero(np.triu(pattern))
        both = [*zip(row.tolist(), column.tolist(), strict=True), *zip(column.tolist(), row.tolist(), strict=True)]
        N, M = self.padded, -(-m // self.lanes) * self.lanes
        blocks = [(name, N if name in ("q", "v") else size) for name, size in slopes.inputs]
        B = Builder([*blocks, ("multipliers", M)] if held else blocks)
        x, nothing = self._unpadded(B), B.number(0.0)
        at = B.at(slopes.select(*names), x)
        more = B.at(held.select("f_q", "g_q"), x | {"multipliers": x["multipliers"][:m]}) if held else {}

        def entry(name: str, i: int, j: int) -> Value:
            """Of a block of the coordinates, and of G beside m_v."""
            if max(i, j) < n:
                own = at[name][i * n + j] if name in at else nothing
                return own + more["f_q"][i * n + j] if more and name == "f_q" else own
            return more["g_q"][(max(i, j) - n) * n + min(i, j)] if name == "m_v" and min(i, j) < n else nothing

        found = {name: [entry(name, i, j) for i, j in both] for name in ("m_v", "f_q") if name in what}
        if "gyro" in what:
            gyro = [entry("m_q", i, j) - entry("f_v", i, j) for i, j in both]
            if any(x.known != 0 for x in gyro):
                found["gyro"] = gyro
        program = B.finished(**found)
        slot = work.native(compile_program(program, 1))
        given, out = work.block(program.input_size), work.block(program.output_size)
        form.params_at.append((given + program.input_slice("params").start, 1))
        form.middles.append((given + program.input_slice("t").start, time, []))
        if self.channels:
            r, first = len(self.method.table.c), given + program.input_slice("inputs").start
            form.points.append(
                (given + program.input_slice("t").start, r // 2, [first + j for j in range(self.channels)])
            )
        q, v, multipliers = (
            Place("work", (given + program.input_slice(x).start,) if x in dict(program.inputs) else (), form.lanes)
            for x in ("q", "v", "multipliers")
        )
        entries = {x: out + program.output_slice(x).start for x in found}
        e = np.arange(len(row))
        call = [Call(slot, Place("work", (given,)), Place("work", (out,)))]
        return Middle(call, q, v, entries, row, column, e, e + len(row), multipliers)

    def fill(self, form: LongForm, work: FloatArray, params: FloatArray) -> Any:
        for begin, lanes in form.params_at:
            work[begin : begin + len(params) * lanes] = np.repeat(params, lanes)
        (begin,) = form.mass_place.begins
        work[begin : begin + form.count * form.lanes] = 1.0
        if self.diagonal:
            work[begin : begin + self.n] = 1.0 / self._masses(params)

    def marks(self, params: FloatArray) -> FloatArray:
        """The square roots of the masses."""
        return np.asarray(np.sqrt(np.abs(self._masses(params))))

    def _masses(self, params: FloatArray) -> FloatArray:
        """The diagonal of a constant mass."""
        given = {name: np.zeros(size) for name, size in self.mass.program.inputs} | {"params": params}
        found = np.array(self.mass.program(*given.values())["m_v"])
        return found if self.mass.diagonal else found[:: self.n + 1]

    def rescue(self, params: FloatArray) -> Rescue:
        return Rescue(self.system, self.step, params)

    def velocity(self, t: float, q: FloatArray, p: FloatArray, params: FloatArray) -> FloatArray:
        (v,), _ = self.system.velocities(np.array([t]), q[None], p[None], params)
        return np.asarray(v, float)


@lru_cache(maxsize=64)
def written(system: Any, method: Galerkin) -> Written:
    return Written(system, method, step_of(system, method))
