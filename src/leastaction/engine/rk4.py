"""The classical Runge–Kutta method: nothing is iterated but, where L is not quadratic in v, for velocities.

The stages k_i = f(t + c_i h, y + h Σ_j a_ij k_j) are those of `step.field`, on y = (q, p) or y = (q, v). Where y and
the parameters vary by d, t by (k + c_i) dh and x, the unknowns of a stage, by dx = m_v⁻¹ gap_d d, a stage varies by

    d(h k_i) = h (rate_d d + rate_x dx) + k_i dh .

One text of this, `Stages.moves`, computes with values of a Program, or with NumPy's arrays where the Program would be
too long to compile. Runs give (q, p): y = (q, v) is in the state beside p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.call import Called
from leastaction.engine.form import SINGLE, Blocks, Form, Lying, Values
from leastaction.engine.long_steps import Work
from leastaction.engine.rescue import Solved, Unsolved
from leastaction.engine.sparsity import LONGEST_ONCE, filled
from leastaction.kernel import Native, compile_program, native_lanes
from leastaction.kernel.elimination import Assemble, Factor, Matrix, SolveOne, profile
from leastaction.kernel.script import Call, Once, Operation, Place, Script
from leastaction.methods import RungeKutta4
from leastaction.methods.rk4 import increments
from leastaction.program import Builder, Program
from leastaction.program.elimination import by_rows, solve
from leastaction.step.field import explicit, field, momenta, slopes
from leastaction.step.status import NOT_FINITE, SINGULAR, Failure

Array = NDArray[Any]
Unknowns = Callable[[int, Mapping[str, Any]], Array]

ITERATIONS = 3  # for the velocity of a stage, from that of the stage before
NEAR = 2.0**-26  # the last increment, relative to v: the error is about its square
ROUNDING = 2.0**-50  # … or to the largest velocity, for a coordinate at rest
BOUND = 1e300  # of what is a number


def written(values: Any) -> Array:
    """An array of a Program's values."""
    found: Array = np.array(values, np.object_)
    return found


class Writing:
    """Arithmetic with values of a Builder."""

    def __init__(self, B: Builder) -> None:
        self.B, self.bad = B, B.number(0.0)

    def at(self, program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: written(found) for name, found in self.B.at(program, given).items()}

    def solve(self, matrix: Any, right: Array) -> Array:
        return written(solve(by_rows(matrix.tolist(), len(right)), right.T.tolist())).T

    def finished(self, program: Program) -> Any:
        return program


class Scripting(Writing):
    """The same where one Program would be too long: Programs are called, and a script has the values between them.

    The mass is eliminated without pivoting, and `bad` where it is not definite.
    """

    def __init__(self, B: Builder, form: RK4) -> None:
        super().__init__(B)
        self.how, self.work, self.natives, self.operations = form.how, form.work, form.natives, list[Operation]()
        self.places = {
            name: Place("state", tuple(range(place.start, place.stop))) for name, place in form.places.items()
        }

    def _values(self, begin: int, size: int) -> Array:
        """Numbers of the work as values."""
        name = f"work {begin}"
        self.places[name] = Place("work", tuple(range(begin, begin + size)))
        self.B.inputs += ((name, size),)
        return written(self.B.values(name))

    def _write(self, begin: int, values: Any) -> None:
        place = Place("work", tuple(range(begin, begin + len(values))))
        self.operations.append(Once(self.B.finished(x=list(values)), self.places, {"x": place}))

    def at(self, program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
        work, key = self.work, program.digest
        if key not in self.natives:
            native = compile_program(program)
            self.natives[key] = work.slot(2), native, work.block(key, native.work)
        to, found = (work.block("", size) for size in (program.input_size, program.output_size))
        self._write(to, [x for name, _ in program.inputs for x in given[name]])
        self.operations.append(Call(self.natives[key][0], Place("work", (to,)), Place("work", (found,))))
        begins = {name: found + program.output_slice(name).start for name, _ in program.outputs}
        return {name: begins[name] if name == "mass" else self._values(begins[name], size)
                for name, size in program.outputs}  # fmt: skip

    @cached_property
    def mass(self) -> tuple[Matrix, int, int]:
        """The memory of its elimination, the slot of where its entries lie, and how many these are."""
        n, work, there = self.how.n, self.work, self.how.massive
        row, column = np.nonzero(np.triu(there | there.T | np.eye(n, dtype=bool)))
        found = profile(np.arange(n), np.append(row, column), np.append(column, row), native_lanes())
        places = np.stack([found.places(row, column), row * n + column, column * n + row], axis=1)
        F, ratios = work.block("", found.size + 8), work.block("", n + 8)
        return Matrix(work.keep(found.tables()), n, F, found.size, 0, 0, ratios, 0), work.keep(places.copy()), len(row)

    def solve(self, matrix: Any, right: Array) -> Array:
        (A, entries, count), n, work = self.mass, len(right), self.work
        A = replace(A, inverse=work.block("", n))
        W = native_lanes()
        x, broken = work.block("", n + 3 * W) + W, work.block("", 1)
        self._write(x, right[:, 0])
        self.operations += [Assemble(A, entries, count, (((matrix, None),),)), Factor(A, 1, Place("work", (broken,))),
                            SolveOne(A, 1, x, 0)]  # fmt: skip
        inverse = self._values(A.inverse, n)
        least = inverse[0] * inverse[0]
        for a in inverse[1:]:
            least = least.op("min", a * inverse[0])
        self.bad = self.bad | ~(least > 0.0)
        return self._values(x, n)[:, None]

    def finished(self, program: Program) -> Any:
        writes = {name: self.places[name] for name, _ in program.outputs}
        return Script([*self.operations, Once(program, self.places, writes)], native_lanes())


class Calling:
    """Arithmetic with numbers."""

    def __init__(self) -> None:
        self.called: dict[str, Called] = {}

    def at(self, program: Program, given: Mapping[str, Any]) -> dict[str, Array]:
        if program.digest not in self.called:
            self.called[program.digest] = Called(program)
        return self.called[program.digest](given)

    def solve(self, matrix: Array, right: Array) -> Array:
        try:
            return np.linalg.solve(matrix.reshape(len(right), -1), right)
        except np.linalg.LinAlgError:
            return np.full(right.shape, np.nan)


class Stages:
    """The method's steps on a system, and how many of its parameters and h derivatives vary."""

    multipliers, s = 0, 1

    def __init__(self, system: Any, method: RungeKutta4, varied: int) -> None:
        self.system, self.method, self.varied = system, method, varied
        self.n, self.channels, self.count = system.n, system.channels, len(method.c)
        self.params = dict(system.node.inputs)["params"]
        self.lagrange, self.implicit = method.form == "lagrange", not explicit(system, method.form)
        self.field, self.equation = (
            field(system, method.form).select(*names) for names in (("rate",), ("gap", "mass"))
        )
        self.c, self.weights = method.nodes.tolist(), method.weights(float)
        self.outer = ("params", "t") if varied > 2 * self.n else ()

    @property
    def step(self) -> Stages:
        return self

    @cached_property
    def massive(self) -> NDArray[np.bool_]:
        """Which entries of the mass are not all zero."""
        code, mass = self.equation.code, self.equation.output("mass")
        return np.array([code[k] != ("const", 0.0) for k in mass]).reshape(self.n, self.n)

    @cached_property
    def length(self) -> int:
        """About how many instructions a step has."""
        solved = (ITERATIONS if self.implicit else 1) * (len(self.equation.code) + 4 * filled(self.massive)[1])
        return self.count * (solved + len(self.field.code))

    @cached_property
    def varied_length(self) -> int:
        """About how many instructions the derivative of a step has."""
        n, code = self.n, self.slopes.code
        by = np.array([code[k][0] != "const" for k in self.slopes.output("by")]).reshape(3 * n, -1)
        full = int(by[: 2 * n].sum() + by[2 * n :, :-n].sum())
        return self.length + self.count * (len(self.slopes.code) + 2 * self.varied * full)

    @cached_property
    def slopes(self) -> Program:
        return slopes(self.system, self.method.form, self.outer)

    def solved(self, on: Any, given: Mapping[str, Any]) -> Array:
        """The unknowns of an equation that is linear in them."""
        found = on.at(self.equation, {**given, "x": [0.0] * self.n})
        return np.asarray(on.solve(found["mass"], found["gap"][:, None])[:, 0])

    def moves(
        self, on: Any, x: Mapping[str, Any], Y: Array, time: Callable[[Any], Any], unknowns: Unknowns | None = None
    ) -> Array:
        """y⁺ − y, and in further columns how it varies; `x` has h, params, t in steps and `driven`, inputs by stage."""
        n, h = self.n, x["h"]
        unknowns = unknowns or (lambda i, given: self.solved(on, given))

        def slope(i: int, moved: list[Array]) -> list[Array]:
            (Y,) = moved
            c = self.c[i]
            given = {"t": [time(h * c)], "q": Y[:n, 0], "z": Y[n:, 0], "params": x["params"], "inputs": x["driven"](i)}
            given["x"] = unknowns(i, given)
            if Y.shape[1] == 1:
                return [on.at(self.field, given)["rate"][:, None]]
            found, mass = on.at(self.slopes, given), on.at(self.equation, given)["mass"]
            d = self._turned(Y[:, 1:], x["t"] + c)
            by = found["by"].reshape(3 * n, -1)
            change = by[: 2 * n] @ np.concatenate([d, on.solve(mass, by[2 * n :, : len(d)] @ d)])
            if self.outer:
                change[:, -1] = change[:, -1] + found["rate"] / h
            return [np.column_stack([found["rate"], change])]

        moves = increments([[(j, h * a) for j, a in row] for row in self.weights], [Y], slope)
        assert moves is not None
        return moves[0]

    def varying(
        self, on: Any, x: Mapping[str, Any], Y: Array, D: Array, time: Callable[[Any], Any], unknowns: Unknowns | None
    ) -> Array:
        """The directions D, columns of (dq, dp), after a step from y."""
        n = self.n
        if self.lagrange:
            by, still = self._momenta(on, x, Y, time(0.0)), D.copy()
            still[n:] = 0.0
            D = np.concatenate([D[:n], on.solve(by[:, n : 2 * n].ravel(), D[n:] - by @ self._turned(still, x["t"]))])
        moved = self.moves(on, x, np.column_stack([Y, D]), time, unknowns)
        D = D + moved[:, 1:]
        if self.lagrange:
            by = self._momenta(on, x, Y + moved[:, 0], time(x["h"]))
            D = np.concatenate([D[:n], by @ self._turned(D, x["t"] + 1.0)])
        return D

    def _momenta(self, on: Any, x: Mapping[str, Any], y: Array, t: Any) -> Array:
        n, program = self.n, momenta(self.system, "q", "v", *self.outer).select("by")
        found = on.at(program, {"t": [t], "q": y[:n], "v": y[n:], "params": x["params"]})
        return np.asarray(found["by"].reshape(n, -1))

    def _turned(self, D: Array, when: Any) -> Array:
        """How much y, parameters and t = t₀ + when · h vary in each direction."""
        if not self.outer:
            return D
        further = np.eye(self.params + 1, self.varied, 2 * self.n).astype(D.dtype)
        further[-1, -1] = when
        return np.concatenate([D, further])

    def rescue(self, params: Array) -> Calls:
        return Calls(self, params)


class Calls:
    """Steps of one trajectory in NumPy."""

    def __init__(self, how: Stages, params: Array) -> None:
        self.how, self.params, self.on = how, params, Calling()

    def _begun(
        self, t: float, q: Array, p: Array, h: float, inputs: Array, step: float
    ) -> tuple[Array, dict[str, Any], Callable[[float], float], Unknowns | None, list[Array]]:
        found: list[Array] = []

        def velocity(t: float, q: Array, p: Array) -> Array:
            v, there = self.how.system.velocities(np.array([t]), q[None], p[None], self.params[None])
            if not there[0]:
                raise Unsolved(Failure(SINGULAR))
            found.append(v[0])
            return found[-1]

        def unknowns(i: int, given: Mapping[str, Any]) -> Array:
            return velocity(given["t"][0], given["q"], given["z"])

        y = np.concatenate([q, velocity(t, q, p) if self.how.lagrange else p])
        x = {
            "h": h,
            "t": step,
            "params": self.params,
            "driven": lambda i: inputs[i % len(inputs)] if len(inputs) else (),
        }
        return y, x, lambda share: t + share, unknowns if self.how.implicit else None, found

    def solve(self, t: float, q: Array, p: Array, h: float, inputs: Array) -> Solved:
        y, x, time, unknowns, found = self._begun(t, q, p, h, inputs, 0.0)
        moves = self.how.moves(self.on, x, y[:, None], time, unknowns)[:, 0]
        if not np.isfinite(moves).all():
            raise Unsolved(Failure(NOT_FINITE))
        n = self.how.n
        return Solved(np.concatenate([moves[:n], *(found if self.how.implicit else [])]), moves[n:], 0, False)

    def carried(
        self, D: Array, t: float, h: float, period: float, q: Array, p: Array, z: Array, inputs: Array, begun: float
    ) -> Array:
        """The directions D, by rows, after a step from (q, p)."""
        y, x, time, unknowns, _ = self._begun(t, q, p, h, inputs, begun)
        return self.how.varying(self.on, x, y, D.T, time, unknowns).T


class RK4(Form):
    """The classical Runge–Kutta method, or another explicit one of the same kind."""

    watches = continues = False

    def __init__(self, how: Stages, width: int, lifts: bool) -> None:
        self.how, self.lanes, self.width, self.side = how, width, width, False
        self.step: Any = how
        self.n, self.varied, self.short = how.n, how.varied, how.length <= LONGEST_ONCE
        self.varies = how.varied > 0 and how.varied_length <= LONGEST_ONCE
        self.lifts, self.watch, self.energy_of = lifts, None, None
        self.rows: Any = Lying({})
        self.blocks = self._blocks()
        self.names = {name for name, _ in self.blocks}
        self.work, self.natives = Work(1), dict[str, tuple[int, Native, int]]()

    def _blocks(self) -> Blocks:
        n, how = self.n, self.how
        found = [("q", n), ("p", n), ("carry", 0), ("directions", self.room)]
        if how.lagrange or how.implicit:
            found.append(("v", n))
        stages = how.count * n if how.implicit else 0
        found += [("params", how.params), ("inputs", how.channels * how.count), *((name, 1) for name in SINGLE)]
        return [*found, ("z", n + stages), ("impulse", n), ("earlier", self.room), ("tables", 0)]

    def opened(self) -> tuple[Builder, Any, Values]:
        B = Builder(self.blocks)
        return B, self.rows, B.blocks()

    def lift(self) -> Program:
        """Nothing: `z` and `impulse` are in the state."""
        return Builder(self.blocks).finished()

    def begin(self) -> Program | None:
        return None

    def _read(self, x: Values) -> dict[str, Any]:
        """What `Stages` reads of a state."""
        return {"h": x["h"][0], "t": x["t"][0], "params": x["params"], "driven": lambda i: self.driving(x, i)}

    def _y(self, x: Values) -> Array:
        return written([*x["q"], *x["v" if self.how.lagrange else "p"]])

    def _on(self, B: Builder) -> Writing:
        return Writing(B) if self.short else Scripting(B, self)

    def _first(self, hard: bool) -> Any:
        B, _, x = self.opened()
        n, how, on = self.n, self.how, self._on(B)
        found: list[Array] = []

        def unknowns(i: int, given: Mapping[str, Any]) -> Array:
            v = found[-1] if found else written(x["v"])
            for _ in range(ITERATIONS):
                at = on.at(how.equation, {**given, "x": v})
                dv = on.solve(at["mass"], at["gap"][:, None])[:, 0]
                v = v + dv
            most = B.number(0.0)
            for a in v:
                most = most.op("max", abs(a))
            for a, b, c in zip(dv, v, x["v"], strict=True):
                on.bad = on.bad | ~(abs(a) <= NEAR * abs(b).op("max", abs(c)) + ROUNDING * most)
            found.append(v)
            return v

        moves = how.moves(on, self._read(x), self._y(x)[:, None], lambda share: self.time(x, share),
                          unknowns if how.implicit else None)[:, 0].tolist()  # fmt: skip
        whole = sum((abs(a) for a in moves[1:]), abs(moves[0]))
        velocities = [a for v in found for a in v]
        after = {"z": [*moves[:n], *velocities], "impulse": moves[n:], "going": [0.0],
                 "failed": [on.bad | ~(whole < BOUND)]}  # fmt: skip
        return on.finished(self.iterated(B, x, after, True, hard))

    def pieces(self) -> dict[str, Any]:
        return {"first": self._first(False), "land": self._land()}

    def hard_pieces(self) -> dict[str, Program]:
        """Where angles are beyond what a vector's sine takes."""
        return {"hard": self._first(True)} if self.width > 1 and self.short else {}

    def _land(self) -> Any:
        B, _, x = self.opened()
        n, how, on, end = self.n, self.how, self._on(B), "v" if self.how.lagrange else "p"
        out = {"q": [a + b for a, b in zip(x["q"], x["z"], strict=False)],
               end: [a + b for a, b in zip(x[end], x["impulse"], strict=True)],
               "t": [x["t"][0] + 1.0], "started": [1.0], "going": [0.0], "failed": [0.0]}  # fmt: skip
        if how.implicit:
            out["v"] = x["z"][-n:]
        if how.lagrange:
            at = {"t": [self.time(x, x["h"][0])], "q": out["q"], "v": out["v"], "params": x["params"]}
            out["p"] = on.at(momenta(how.system).select("Lv"), at)["Lv"]
            if self.lifts:
                out["impulse"] = [a - b for a, b in zip(out["p"], x["p"], strict=True)]
        return on.finished(self.closed(B, x, out))

    def vary(self) -> Program:
        B, _, x = self.opened()
        n, how = self.n, self.how
        D = written(x["directions"]).reshape(how.varied, 2 * n).T
        solved = [written(x["z"][k : k + n]) for k in range(n, len(x["z"]), n)]
        after = how.varying(Writing(B), self._read(x), self._y(x), D, lambda share: self.time(x, share),
                            (lambda i, given: solved[i]) if how.implicit else None)  # fmt: skip
        return B.finished(directions=after.T.ravel(), earlier=x["directions"])

    def scratch(self, size: int, old: Array, params: Array) -> Array:
        found = super().scratch(max(size, self.work.end), old, params)
        if found is not old:
            slots = found.view(np.int64)
            for slot, table in self.work.kept.items():
                slots[slot] = table.ctypes.data
            for slot, native, room in self.natives.values():
                slots[slot : slot + 2] = native.address, found.ctypes.data + 8 * room
        return found

    def carrying(self, params: Array) -> Calls:
        return self.how.rescue(params)

    def put(self, x: Mapping[str, Array], lane: int, z: Array, impulse: Array, h: float) -> None:
        x["z"][:, lane], x["impulse"][:, lane] = z, impulse


def formed(
    system: Any, method: RungeKutta4, width: int, energy: bool, varied: int, lifts: bool
) -> tuple[Stages, RK4] | None:
    """The form of so many trajectories side by side; None where none is of use."""
    how = Stages(system.expanded(), method, varied)
    return None if width > 1 and (energy or how.length > LONGEST_ONCE) else (how, RK4(how, width, lifts))
