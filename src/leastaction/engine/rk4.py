"""The classical Runge–Kutta method: nothing is iterated but, where L is not quadratic in v, for velocities.

The stages k_i = f(t + c_i h, y + h Σ_j a_ij k_j) are those of `step.field`, on y = (q, p) or y = (q, v). Where y and
the parameters vary by d, t by (k + c_i) dh and x, the unknowns of a stage, by dx = m_v⁻¹ gap_d d, a stage varies by

    d(h k_i) = h (rate_d d + rate_x dx) + k_i dh .

One text of this, `RK4.moves`, computes with values of a Program; where that would be too long, with what Programs that
are called leave in the work of a script; or with numbers. Runs give (q, p): y = (q, v) is in the state beside p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.call import Called
from leastaction.engine.form import SINGLE, Blocks, Form
from leastaction.engine.long_form import Work
from leastaction.engine.rescue import Solved, Unsolved
from leastaction.engine.sparsity import LONGEST_ONCE, filled
from leastaction.kernel import compile_program, native_lanes
from leastaction.kernel.elimination import Assemble, Factor, Matrix, SolveOne, profile
from leastaction.kernel.script import Call, Once, Operation, Place, Script
from leastaction.methods import RungeKutta4
from leastaction.methods.rk4 import increments
from leastaction.program import Builder, Program
from leastaction.program.elimination import by_rows, solve
from leastaction.step.field import explicit, field, momenta, slopes
from leastaction.step.rows import OneByOne
from leastaction.step.status import NOT_FINITE, SINGULAR, Failure

Array = NDArray[Any]

ITERATIONS = 3  # for the velocity of a stage, from that of the stage before
NEAR = 2.0**-26  # the last increment, relative to v: the error is about its square
ROUNDING = 2.0**-50  # … or to the largest velocity, for a coordinate at rest
BOUND = 1e300  # of what is a number


def written(values: Any) -> Array:
    """An array of a Program's values."""
    return np.array(values, np.object_)


class Writing:
    """A step in values of a Program; of one that is `known` the velocities are in the block z."""

    def __init__(self, form: RK4, known: bool = False) -> None:
        self.form, self.known, self.found = form, known, list[Array]()
        self.B = Builder(form.blocks)
        x = self.B.blocks()
        self.x, self.h, self.t, self.params = x, x["h"][0], x["t"][0], x["params"]
        self.y = written([*x["q"], *x["v" if form.lagrange else "p"]])
        self.time, self.driven = partial(form.time, x), partial(form.driving, x)
        self.bad = self.B.number(0.0)

    def at(self, program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: written(found) for name, found in self.B.at(program, given).items()}

    def eliminate(self, matrix: Any, right: Array) -> Array:
        return written(solve(by_rows(matrix.tolist(), len(right)), right.T.tolist())).T

    def velocity(self, i: int, given: Mapping[str, Any]) -> Array:
        """By Newton's iteration; `bad` where its last increment is not small."""
        if self.known:
            return np.split(written(self.x["z"]), len(self.form.c) + 1)[i + 1]
        most, v = self.B.number(0.0), self.found[-1] if self.found else written(self.x["v"])
        for _ in range(ITERATIONS):
            dv = self.form.correction(self, given, v)
            v = v + dv
        for a in v:
            most = most.op("max", abs(a))
        for a, b, c in zip(dv, v, self.x["v"], strict=True):
            self.bad = self.bad | ~(abs(a) <= NEAR * abs(b).op("max", abs(c)) + ROUNDING * most)
        self.found.append(v)
        return v

    def finished(self, program: Program) -> Any:
        return program


class Scripting(Writing):
    """The same as a script. The mass is eliminated without pivoting, and `bad` where it is not definite."""

    def __init__(self, form: RK4) -> None:
        super().__init__(form)
        self.work, self.operations = form.work, list[Operation]()
        self.places = {name: Place("state", (*range(own.start, own.stop),)) for name, own in form.places.items()}

    def _values(self, place: Place) -> Array:
        """Numbers of the work as values."""
        name = f"work {place.begins[0]}"
        self.places[name] = place
        self.B.inputs += ((name, len(place.begins)),)
        return written(self.B.values(name))

    def _write(self, to: Place, values: Sequence[Any]) -> None:
        self.operations.append(Once(self.B.finished(x=values), self.places, {"x": to}))

    def at(self, program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a Program gives; of the mass, where it begins."""
        to, found = (self.work.single(size) for size in (program.input_size, program.output_size))
        self._write(to, [a for name, _ in program.inputs for a in given[name]])
        self.operations.append(Call(self.work.native(compile_program(program)), to, found))
        parts = {name: found.begins[program.output_slice(name)] for name, _ in program.outputs}
        return {x: own[0] if x == "mass" else self._values(Place("work", own)) for x, own in parts.items()}

    @cached_property
    def mass(self) -> tuple[Matrix, int, int, Place]:
        """The memory of its elimination, the slot of a table of its entries, how many these are, `broken`."""
        n, work, there = self.form.n, self.work, self.form.massive
        row, column = np.nonzero(np.triu(there | there.T | np.eye(n, dtype=bool)))
        rows = profile(np.arange(n), np.append(row, column), np.append(column, row), native_lanes())
        table = np.stack([rows.places(row, column), row * n + column, column * n + row], axis=1).copy()
        matrix = Matrix(work.keep(rows.tables()), n, work.block(rows.size), rows.size, 0, 0, work.block(n), 0)
        return matrix, work.keep(table), len(row), work.single()

    def eliminate(self, matrix: Any, right: Array) -> Array:
        (A, table, count, broken), n, W = self.mass, len(right), native_lanes()
        pivots, x = self.work.single(n), Place("work", self.work.single(n + 3 * W).begins[W : W + n])
        A = replace(A, inverse=pivots.begins[0])
        self._write(x, right[:, 0].tolist())
        self.operations += [Assemble(A, table, count, (((matrix, None),),)), Factor(A, 1, broken),
                            SolveOne(A, 1, x.begins[0], 0)]  # fmt: skip
        first, *others = self._values(pivots)
        least = reduce(lambda a, b: a.op("min", b * first), others, first * first)
        self.bad = self.bad | ~(least > 0.0)
        return self._values(x)[:, None]

    def finished(self, program: Program) -> Any:
        writes = {name: self.places[name] for name, _ in program.outputs}
        return Script([*self.operations, Once(program, self.places, writes)], native_lanes())


class Calls:
    """Steps of one trajectory in numbers."""

    def __init__(self, form: RK4, params: Array) -> None:
        self.form, self.params, self.called = form, params, dict[str, Called]()

    def _begin(self, t: float, q: Array, p: Array, h: float, inputs: Array, step: float) -> None:
        self.h, self.t, self.found = h, step, list[Array]()
        self.time, self.driven = partial(add, t), lambda i: inputs[i % len(inputs)] if len(inputs) else ()
        start = {"t": [t], "q": q, "z": p}
        self.y = np.concatenate([q, self.velocity(0, start) if self.form.lagrange else p])

    def at(self, program: Program, given: Mapping[str, Any]) -> dict[str, Array]:
        if program.digest not in self.called:
            self.called[program.digest] = Called(program)
        return self.called[program.digest](given)

    def eliminate(self, matrix: Array, right: Array) -> Array:
        try:
            return np.linalg.solve(matrix.reshape(len(right), -1), right)
        except np.linalg.LinAlgError:
            return np.full(right.shape, np.nan)

    def velocity(self, i: int, given: Mapping[str, Any]) -> Array:
        t, q, p = np.array(given["t"]), given["q"][None], given["z"][None]
        (v,), (there,) = self.form.system.velocities(t, q, p, self.params[None])
        if not there:
            raise Unsolved(Failure(SINGULAR))
        self.found.append(v)
        return np.asarray(v)

    @np.errstate(all="ignore")  # what is no number is seen, and failed
    def solve(self, t: float, q: Array, p: Array, h: float, inputs: Array) -> Solved:
        self._begin(t, q, p, h, inputs, 0.0)
        moves, n = self.form.moves(self, self.y[:, None])[:, 0], self.form.n
        if not np.isfinite(moves).all():
            raise Unsolved(Failure(NOT_FINITE))
        return Solved(np.concatenate([moves[:n], *(self.found if self.form.implicit else [])]), moves[n:], 0, False)

    def carried(
        self, D: Array, t: float, h: float, period: float, q: Array, p: Array, z: Array, inputs: Array, begun: float
    ) -> Array:
        """The directions D, by rows, after a step from (q, p)."""
        self._begin(t, q, p, h, inputs, begun)
        return self.form.varying(self, D.T).T


class RK4(Form):
    """The classical Runge–Kutta method, or another explicit one of the same kind, on a system."""

    watches = continues = side = lifts = False  # `z` and `impulse` are in the state, whoever looks at a step
    multipliers, s = 0, 1
    watch = energy_of = None

    def __init__(self, system: Any, method: RungeKutta4, width: int, varied: int, lifts: bool) -> None:
        self.system, self.lanes, self.width, self.varied, self.impulses = system, width, width, varied, lifts
        self.step: Any = self
        self.n, self.channels, self.params = system.n, system.channels, dict(system.node.inputs)["params"]
        self.lagrange, self.implicit = method.form == "lagrange", not explicit(system, method.form)
        self.field, self.equation = (
            field(system, method.form).select(*names) for names in (("rate",), ("gap", "mass"))
        )
        code, mass = self.equation.code, self.equation.output("mass")
        self.massive = np.array([code[k] != ("const", 0.0) for k in mass]).reshape(self.n, self.n)  # not all zero
        self.c, self.weights = method.nodes.tolist(), method.weights(float)
        self.outer = ("params", "t") if varied > 2 * self.n else ()
        self.slopes = slopes(system, method.form, self.outer) if varied else None
        self.short = self._length() <= LONGEST_ONCE
        self.varies = varied > 0 and self._length(self.slopes) <= LONGEST_ONCE
        self.rows: Any = OneByOne()
        self.blocks = self._blocks()
        self.names = {name for name, _ in self.blocks}
        self.work = Work(1)

    def _blocks(self) -> Blocks:
        n, stages = self.n, len(self.c)
        found = [("q", n), ("p", n), ("carry", 0), ("directions", self.room)]
        if self.lagrange or self.implicit:
            found.append(("v", n))
        found += [("params", self.params), ("inputs", self.channels * stages), *((name, 1) for name in SINGLE)]
        return [*found, ("z", n + self.implicit * stages * n), ("impulse", n), ("earlier", self.room), ("tables", 0)]

    def _length(self, slopes: Program | None = None) -> int:
        """About how many instructions a step has, or its derivative."""
        solved = (ITERATIONS if self.implicit else 1) * (len(self.equation.code) + 4 * filled(self.massive)[1])
        count, n = solved + len(self.field.code), self.n
        if slopes is not None:
            by = np.array([slopes.code[k][0] != "const" for k in slopes.output("by")]).reshape(3 * n, -1)
            count += len(slopes.code) + 2 * self.varied * int(by[: 2 * n].sum() + by[2 * n :, :-n].sum())
        return len(self.c) * count

    def correction(self, on: Any, given: Mapping[str, Any], x: Any) -> Array:
        """What is to be added to x, by one solution with the mass."""
        found = on.at(self.equation, {**given, "x": x})
        return np.asarray(on.eliminate(found["mass"], found["gap"][:, None])[:, 0])

    def moves(self, on: Any, Y: Array) -> Array:
        """y⁺ − y, the first column, and in further columns how it varies."""
        n, h = self.n, on.h

        def slope(i: int, moved: list[Array]) -> list[Array]:
            (Y,), c = moved, self.c[i]
            given = {"t": [on.time(h * c)], "q": Y[:n, 0], "z": Y[n:, 0], "params": on.params, "inputs": on.driven(i)}
            given["x"] = on.velocity(i, given) if self.implicit else self.correction(on, given, [0.0] * n)
            if Y.shape[1] == 1:
                return [on.at(self.field, given)["rate"][:, None]]
            found, mass = on.at(self.slopes, given), on.at(self.equation, given)["mass"]
            d = self._turned(Y[:, 1:], on.t + c)
            by = found["by"].reshape(3 * n, -1)
            change = by[: 2 * n] @ np.concatenate([d, on.eliminate(mass, by[2 * n :, : len(d)] @ d)])
            if self.outer:
                change[:, -1] = change[:, -1] + found["rate"] / h
            return [np.column_stack([found["rate"], change])]

        moves = increments([[(j, h * a) for j, a in row] for row in self.weights], [Y], slope)
        assert moves is not None
        return moves[0]

    def varying(self, on: Any, D: Array) -> Array:
        """The directions D, columns of (dq, dp), after a step."""
        n = self.n
        if self.lagrange:
            by, still = self._momenta(on, on.y, on.time(0.0)), D.copy()
            still[n:] = 0.0
            D = np.concatenate([D[:n], on.eliminate(by[:, n : 2 * n].ravel(), D[n:] - by @ self._turned(still, on.t))])
        moved = self.moves(on, np.column_stack([on.y, D]))
        D = D + moved[:, 1:]
        if self.lagrange:
            by = self._momenta(on, on.y + moved[:, 0], on.time(on.h))
            D = np.concatenate([D[:n], by @ self._turned(D, on.t + 1.0)])
        return D

    def _momenta(self, on: Any, y: Array, t: Any) -> Array:
        n, program = self.n, momenta(self.system, "q", "v", *self.outer).select("by")
        found = on.at(program, {"t": [t], "q": y[:n], "v": y[n:], "params": on.params})
        return np.asarray(found["by"].reshape(n, -1))

    def _turned(self, D: Array, when: Any) -> Array:
        """How much y, parameters and t = t₀ + when · h vary in each direction."""
        if not self.outer:
            return D
        further = np.eye(self.params + 1, self.varied, 2 * self.n).astype(D.dtype)
        further[-1, -1] = when
        return np.concatenate([D, further])

    def pieces(self) -> dict[str, Any]:
        return {"first": self._first(False), "land": self._land()}

    def hard_pieces(self) -> dict[str, Program]:
        """Where angles are beyond what a vector's sine takes."""
        return {"hard": self._first(True)} if self.width > 1 else {}

    def _first(self, hard: bool) -> Any:
        on, n = Writing(self) if self.short else Scripting(self), self.n
        moves = self.moves(on, on.y[:, None])[:, 0].tolist()
        whole = sum((abs(a) for a in moves[1:]), abs(moves[0]))
        after = {"z": [*moves[:n], *(a for v in on.found for a in v)], "impulse": moves[n:], "going": [0.0],
                 "failed": [on.bad | ~(whole < BOUND)]}  # fmt: skip
        return on.finished(self.iterated(on.B, on.x, after, True, hard))

    def _land(self) -> Any:
        on, end = Writing(self) if self.short else Scripting(self), "v" if self.lagrange else "p"
        x = on.x
        out = {"q": [a + b for a, b in zip(x["q"], x["z"], strict=False)],
               end: [a + b for a, b in zip(x[end], x["impulse"], strict=True)],
               "t": [x["t"][0] + 1.0], "started": [1.0], "going": [0.0], "failed": [0.0]}  # fmt: skip
        if self.implicit:
            out["v"] = x["z"][-self.n :]
        if self.lagrange:
            at = {"t": [on.time(on.h)], "q": out["q"], "v": out["v"], "params": on.params}
            out["p"] = on.at(momenta(self.system).select("Lv"), at)["Lv"]
            if self.impulses:
                out["impulse"] = [a - b for a, b in zip(out["p"], x["p"], strict=True)]
        return on.finished(self.closed(on.B, x, out))

    def vary(self) -> Program:
        on = Writing(self, known=True)
        D = written(on.x["directions"]).reshape(self.varied, -1).T
        return on.B.finished(directions=self.varying(on, D).T.ravel(), earlier=on.x["directions"])

    def scratch(self, size: int, old: Array, params: Array) -> Array:
        found = super().scratch(max(size, self.work.end), old, params)
        self.work.fill(found)
        return found

    def rescue(self, params: Array) -> Calls:
        return Calls(self, params)

    carrying = rescue

    def put(self, x: Mapping[str, Array], lane: int, z: Array, impulse: Array, h: float) -> None:
        x["z"][:, lane], x["impulse"][:, lane] = z, impulse


def formed(
    system: Any, method: RungeKutta4, width: int, energy: bool, varied: int, lifts: bool
) -> tuple[RK4, RK4] | None:
    """The form of so many trajectories side by side; None where none is of use."""
    form = RK4(system.expanded(), method, width, varied, lifts)
    return None if width > 1 and (energy or not form.short) else (form, form)
