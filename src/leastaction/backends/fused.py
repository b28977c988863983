"""A whole step of a small system as Programs, without branches: for one trajectory, or for SIMD lanes of them.

fresh, kept    one Newton iteration, with a new Jacobian or with the last one
advance        the compensated sums q + z^s, p + impulse; the prediction of the next step, and what of it does not
depend
               on z; energy and events at its start

What a trajectory has decided (it has converged, it has failed, it has been stopped) is a number among its state that
selects between the old values and the new, so lanes that still iterate do not change those that are done, and what a
lane computes does not depend on its neighbours.

Exchanges of rows and sines would cost much of the time. So the Jacobian is eliminated without pivoting: there the
matrix is S ⊗ L_vv for small h, with S = Σ_i b_i l_ν′(c_i) l_μ′(c_i) positive definite, so any order does if L_vv is
definite, and one without zeros on the diagonal avoids the worst if it is not. Where that loses digits the iteration
contracts less, and a step in doubt is solved alone, with pivoting. And what depends on the state at the start of the
step alone, as much does at a node c = 0, is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.methods import Galerkin
from leastaction.program import BINARY, UNARY, Builder, Program, Value, indices
from leastaction.step.form import Step, stencils, step_of
from leastaction.step.prediction import Prediction
from leastaction.step.verdict import FADING, FAR, FORGETTING, REACH, TINY, verdict

if TYPE_CHECKING:
    from leastaction.lagrangian import Lagrangian

Blocks = Sequence[tuple[str, int]]

# Beyond this, whole-step code costs more to compile and to fetch than it saves.
MOST_INSTRUCTIONS = 4000
# Newton iterations for the velocity at the end of a step, from the polynomial's, where L is not quadratic in v. The
# energy's error is the square of the velocity's, since ∂(p·v − L)/∂v = 0, so these are plenty.
VELOCITY_ITERATIONS = 3
# What operations cost in lanes, in additions, roughly; of what is not listed, FUNCTION. It decides between kernels, and
# nothing else depends on it.
WORK = {
    **dict.fromkeys(("neg", "sq", "abs", "add", "sub", "mul", "min", "max", "copysign", "select", "if"), 1.0),
    **dict.fromkeys(("lt", "le", "eq", "ne", "and", "or", "not", "sign", "floor", "ceil"), 2.0),
    "div": 8.0,
    "sqrt": 10.0,
}
FUNCTION = 25.0


def work(program: Program) -> float:
    """What a program costs, in additions."""
    return sum(WORK.get(op, FUNCTION if op in UNARY or op in BINARY else 0.0) for op, *_ in program.code)


def length(step: Step) -> int:
    """About how many instructions a whole Newton step has."""
    nodes = sum(len(step.samples(term).tau) * len(term.slopes.code) for term in step.terms)
    return nodes + (step.s * (step.n + step.multipliers)) ** 3


# ------------------------------------------------------------------------------------------- the equations


@dataclass(frozen=True)
class Equations:
    """Values of a Builder with inputs (t, h, q, p, z, params): R and the impulse, and their derivatives.

    jacobian        ∂R/∂z, row by row; rows and columns ν n + j, and multipliers behind all increments
    impulse_slope   the same of the impulse
    by_q            ∂R/∂q, impulse_by_q that of the impulse
    """

    B: Builder
    residual: list[int]
    impulse: list[int]
    jacobian: list[list[int]]
    impulse_slope: list[list[int]]
    by_q: list[list[int]]
    impulse_by_q: list[list[int]]


class _Sums:
    """Sums in the making: entries begin with zero."""

    def __init__(self, B: Builder, rows: int, columns: int) -> None:
        self.B, self.rows = B, [[B.const(0.0)] * columns for _ in range(rows)]

    def add(self, i: int, j: int, coefficient: int, value: int) -> None:
        self.rows[i][j] = self.B.add(self.rows[i][j], self.B.mul(coefficient, value))


def dot(B: Builder, row: Sequence[int], x: Sequence[int]) -> int:
    return B.sum(B.mul(a, y) for a, y in zip(row, x, strict=True))


def equations(step: Step) -> Equations:
    """The equations of a step, swept term by term and point by point."""
    n, s, m = step.n, step.s, step.multipliers
    N = s * (n + m)
    B = Builder([("t", 1), ("h", 1), ("q", n), ("p", n), ("z", N), ("params", step.params)])
    (t,), (h,), q, p, z, params = (B.input(name) for name, _ in B.inputs)
    one = B.const(1.0)
    # Where the ν-th unknown, and the ν-th equation, of component k of a block is.
    sizes = {"q": n, "v": n, "multipliers": m, "f": n, "m": n, "g": m}
    places = {
        block: [
            [(s * n if size is m and block in ("multipliers", "g") else 0) + v * size + k for v in range(s)]
            for k in range(size)
        ]
        for block, size in sizes.items()
    }
    R, I = _Sums(B, N, 1), _Sums(B, n, 1)
    J, G, by_q, I_by_q = _Sums(B, N, N), _Sums(B, n, N), _Sums(B, N, n), _Sums(B, n, n)
    for term in step.terms:
        table = stencils(step.samples(term), Value(B, h))
        for i, (time, weight) in enumerate(zip(indices(table.times, B), indices(table.weights, B), strict=True)):
            gather = {name: indices(rows[i], B) for name, rows in table.gather.items()}
            scatter = {name: indices(rows[i], B) for name, rows in table.scatter.items()}
            read = {"t": [B.add(t, time)], "params": params}
            for block in ("q", "v", "multipliers"):
                base = q if block == "q" else [B.const(0.0)] * sizes[block]
                read[block] = [
                    B.add(base[k], dot(B, gather[block], [z[place] for place in places[block][k]]))
                    for k in range(sizes[block])
                ]
            at = B.inline(term.slopes, **{name: read[name] for name, _ in term.slopes.inputs})
            for out in ("f", "m", "g"):
                if out not in at:
                    continue
                scale = one if out == "g" else weight
                slopes = {
                    block: [B.mul(scale, x) for x in at[f"{out}_{block}"]]
                    for block in ("q", "v", "multipliers")
                    if f"{out}_{block}" in at
                }
                for j in range(sizes[out]):
                    value = B.mul(scale, at[out][j])
                    if out == "f":
                        I.add(j, 0, one, value)
                    for v in range(s):
                        R.add(places[out][j][v], 0, scatter[out][v], value)
                    for column, slope in _columns(B, slopes, gather, places, sizes, s, j):
                        if out == "f":
                            G.add(j, column, one, slope)
                        for v in range(s):
                            J.add(places[out][j][v], column, scatter[out][v], slope)
                    for k in range(n):
                        if "q" in slopes:
                            slope = slopes["q"][j * n + k]
                            if out == "f":
                                I_by_q.add(j, k, one, slope)
                            for v in range(s):
                                by_q.add(places[out][j][v], k, scatter[out][v], slope)
    for j in range(n):
        last = R.rows[places["f"][j][s - 1]]
        last[0] = B.sub(last[0], p[j])
    return Equations(B, [x for (x,) in R.rows], [x for (x,) in I.rows], J.rows, G.rows, by_q.rows, I_by_q.rows)


def _columns(
    B: Builder,
    slopes: dict[str, list[int]],
    gather: dict[str, list[int]],
    places: dict[str, list[list[int]]],
    sizes: dict[str, int],
    s: int,
    j: int,
) -> Iterator[tuple[int, int]]:
    """The derivatives of the j-th number that a term gives at a point by each unknown."""
    n, m = sizes["q"], sizes["multipliers"]
    for v in range(s):
        for k in range(n):
            parts = [B.mul(gather[block][v], slopes[block][j * n + k]) for block in ("q", "v") if block in slopes]
            yield places["q"][k][v], B.sum(parts)
        if "multipliers" in slopes:
            for k in range(m):
                yield places["multipliers"][k][v], B.mul(gather["multipliers"][v], slopes["multipliers"][j * m + k])


# ------------------------------------------------------------------------------------------ linear algebra


def solve(B: Builder, matrix: Sequence[Sequence[int]], rights: Sequence[Sequence[int]]) -> list[list[int]]:
    """Gaussian elimination with partial pivoting, without branches: rows are exchanged by selection.

    One solution for each right-hand side. An entry that is zero by structure stays so, and costs nothing.
    """
    N = len(matrix)
    rows = [[*row, *(right[i] for right in rights)] for i, row in enumerate(matrix)]
    width = N + len(rights)
    for k in range(N):
        for i in range(k + 1, N):
            if B.constant(rows[i][k]) == 0:
                continue
            larger = B.op("lt", B.op("abs", rows[k][k]), B.op("abs", rows[i][k]))
            for j in range(k, width):
                upper, lower = rows[k][j], rows[i][j]
                rows[k][j] = B.select(larger, lower, upper)
                rows[i][j] = B.select(larger, upper, lower)
        inverse = B.div(B.const(1.0), rows[k][k])
        for j in range(k + 1, width):
            rows[k][j] = B.mul(inverse, rows[k][j])
        for i in range(k + 1, N):
            for j in range(k + 1, width):
                rows[i][j] = B.sub(rows[i][j], B.mul(rows[i][k], rows[k][j]))
    solutions = []
    for column in range(N, width):
        x: list[int] = [rows[k][column] for k in range(N)]
        for k in range(N - 1, -1, -1):
            for i in range(k):
                x[i] = B.sub(x[i], B.mul(rows[i][k], x[k]))
        solutions.append(x)
    return solutions


def _order(step: Step) -> list[int]:
    """The equations in an order in which they can be eliminated without pivoting, for small h."""
    n, N = step.n, step.s * (step.n + step.multipliers)
    (node,) = (term for term in step.terms if "m_v" in dict(term.slopes.outputs))
    code = node.slopes.code
    zero = np.array([code[k] == ("const", 0.0) for k in node.slopes.output("m_v")]).reshape(n, n)
    rows = list(range(n))
    if zero.diagonal().any():
        from scipy.optimize import linear_sum_assignment

        rows = [int(row) for row in linear_sum_assignment(zero.T)[1]]
    return [block * n + row for block in range(step.s) for row in rows] + list(range(step.s * n, N))


def _factors(B: Builder, matrix: Sequence[Sequence[int]]) -> list[list[int]]:
    """L and U of matrix = L U, U with a unit diagonal; on the diagonal the inverse of L's."""
    rows = [list(row) for row in matrix]
    N = len(rows)
    for k in range(N):
        rows[k][k] = B.div(B.const(1.0), rows[k][k])
        for j in range(k + 1, N):
            rows[k][j] = B.mul(rows[k][k], rows[k][j])
            for i in range(k + 1, N):
                rows[i][j] = B.sub(rows[i][j], B.mul(rows[i][k], rows[k][j]))
    return rows


def _substitute(B: Builder, rows: Sequence[Sequence[int]], right: Sequence[int]) -> list[int]:
    """The solution for one right-hand side."""
    x = list(right)
    for k in range(len(x)):
        for i in range(k):
            x[k] = B.sub(x[k], B.mul(rows[k][i], x[i]))
        x[k] = B.mul(rows[k][k], x[k])
    for k in range(len(x) - 1, -1, -1):
        for i in range(k):
            x[i] = B.sub(x[i], B.mul(rows[i][k], x[k]))
    return x


# ----------------------------------------------------------------------------------------- the iteration


@dataclass(frozen=True)
class Iteration:
    """The equations of a step, taken apart for the kernels.

    before    (t, h, q, p, params) ↦ invariants: what does not depend on z
    first     the same and (z, invariants) ↦ what one iteration needs, the right-hand side −R and the impulse; and what
              is kept for the next ones, the impulse's derivatives by z and the factors of the Jacobian
    again     the same, but for what is kept
    pattern   where the factors are in their matrix; its other entries are the `constants`
    """

    before: Program
    first: Program
    again: Program
    pattern: tuple[tuple[int, int], ...]
    constants: dict[tuple[int, int], float]

    @property
    def chords(self) -> int:
        """How many iterations that keep the Jacobian cost about as much as a fresh one."""
        return int(work(self.first) / work(self.again))


def iteration(step: Step) -> Iteration:
    """The equations of a step, for the kernels."""
    E, order = equations(step), _order(step)
    B = E.B
    right = [B.op("neg", E.residual[i]) for i in order]
    rows = _factors(B, [E.jacobian[i] for i in order])
    places = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    constants = {(i, j): float(x) for i, j in places if (x := B.constant(rows[i][j])) is not None}
    pattern = tuple(place for place in places if place not in constants)
    whole = B.build(
        right=right,
        impulse=E.impulse,
        slopes=[x for row in E.impulse_slope for x in row],
        factors=[rows[i][j] for i, j in pattern],
    )
    before, first = whole.split("z", "invariants")
    return Iteration(before, first, first.select("right", "impulse"), pattern, constants)


def _iterate(step: Step, one: Iteration, blocks: Blocks, fresh: bool) -> Program:
    """An iteration with a new Jacobian, or with the last one, of the trajectories that want one."""
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    program = one.first if fresh else one.again
    found = B.inline(program, **{name: x[name] for name, _ in program.inputs})
    kept = {name: found[name] for name in ("slopes", "factors")} if fresh else {}
    right, impulse = found["right"], found["impulse"]
    N, n = len(right), step.n
    rows = [[B.const(one.constants.get((i, j), 0.0)) for j in range(N)] for i in range(N)]
    for (i, j), factor in zip(one.pattern, (kept or x)["factors"], strict=True):
        rows[i][j] = factor
    dz = _substitute(B, rows, right)
    slopes = (kept or x)["slopes"]
    impulse = [B.add(impulse[j], dot(B, slopes[j * N : (j + 1) * N], dz)) for j in range(n)]
    return B.build(**kept, **_judged(step, B, x, dz, impulse, fresh, one.chords))


def _judged(
    step: Step, B: Builder, x: dict[str, list[int]], dz: list[int], impulse: list[int], fresh: bool, chords: int
) -> dict[str, list[int]]:
    """The state after an increment of those that wanted it, and what they want next."""

    def finite(values: Sequence[int]) -> Value:
        total = B.sum(values)
        return Value(B, B.op("eq", B.sub(total, total), B.const(0.0)))

    new = [B.add(z, d) for z, d in zip(x["z"], dz, strict=True)]
    size: Any = None
    off = far = Value(B, B.const(0.0))
    scale = []
    for c, own in enumerate(components(step)):
        moved = largest(B, [dz[i] for i in own])
        scale.append(largest(B, [new[i] for i in own], x["scale"][c]))
        beyond = (Value(B, moved) - Value(B, x["floor"][c])).op("max", 0.0) if c < step.n else Value(B, moved)
        ratio = beyond / Value(B, scale[c])
        size = ratio if size is None else size.op("max", ratio)
        if c < step.n:
            reach = Value(B, x["reach"][c])
            off = off | (reach < Value(B, moved)) if c else reach < Value(B, moved)
            far = far | (reach * FAR < Value(B, scale[c])) if c else reach * FAR < Value(B, scale[c])
    seen = {name: Value(B, x[name][0]) for name in ("before", "iterations", "doubt")}
    seen |= {"size": size, "sound": finite([*dz, size.k]), "off": off, "far": far}
    found = verdict(seen, fresh=fresh, chords=chords)
    good = found["good"] & finite(impulse)
    active = Value(B, x["fresh" if fresh else "kept"][0])

    def where_active(name: str, values: Sequence[int]) -> list[int]:
        return [B.select(active.k, after, old) for after, old in zip(values, x[name], strict=True)]

    after = {
        "z": new,
        "impulse": impulse,
        "scale": scale,
        "before": [size.k],
        "doubt": [found["doubt"].k],
        "fresh": [(~found["ended"] & ~found["keep"]).k],
        "kept": [(~found["ended"] & found["keep"]).k],
        "iterations": [(seen["iterations"] + 1.0).k],
        "trouble": [(found["ended"] & ~good).k],
        "left": [found["left"].k],
    }
    return {name: where_active(name, values) for name, values in after.items()}


def components(step: Step) -> list[list[int]]:
    """Where the unknowns of each coordinate, and of each multiplier, are in z."""
    n, s, m = step.n, step.s, step.multipliers
    return [[v * n + j for v in range(s)] for j in range(n)] + [[s * n + v * m + a for v in range(s)] for a in range(m)]


def largest(B: Builder, values: Sequence[int], start: int | None = None) -> int:
    """The largest absolute value, or `start` if that is larger."""
    found = B.op("abs", values[0]) if start is None else B.op("max", start, B.op("abs", values[0]))
    for value in values[1:]:
        found = B.op("max", found, B.op("abs", value))
    return found


# -------------------------------------------------------------------------------------------- the kernels


@dataclass(frozen=True)
class StepPrograms:
    """The three kernels, which work in place: their inputs are a trajectory's state, their outputs parts of it by name.

    Beside the state `advance` gives, where there are events, `crossed` and what the step began with.
    """

    fresh: Program
    kept: Program
    advance: Program


def step_programs(
    system: Lagrangian, method: Galerkin, event: Program | None = None, energy: bool = False
) -> StepPrograms:
    """The kernels of a method on a system, with event functions g(t, q, p) and the range of the energy if wanted."""
    step = step_of(system, method)
    one, ahead = iteration(step), prediction(step)
    n, N, events = step.n, len(one.first.output("right")), event.output_size if event else 0
    blocks = [
        ("t", 1), ("h", 1), ("params", step.params), ("alive", 1), ("directions", events),
        ("invariants", one.before.output_size), ("slopes", n * N), ("factors", len(one.pattern)),
        ("q", n), ("p", n), ("carry", 2 * n),
        ("started", 1), ("memory", n * ahead.memory), ("record", ahead.record),
        ("g", events), ("lowest", int(energy)), ("highest", int(energy)), ("length", n), ("reach", n), ("floor", n),
        ("z", N), ("impulse", n), ("scale", n + step.multipliers), ("before", 1), ("doubt", 1),
        ("fresh", 1), ("kept", 1), ("iterations", 1), ("trouble", 1), ("left", 1),
    ]  # fmt: skip
    return StepPrograms(
        _iterate(step, one, blocks, True),
        _iterate(step, one, blocks, False),
        _advance(system, step, one, blocks, event, energy),
    )


def _advance(
    system: Lagrangian, step: Step, one: Iteration, blocks: Blocks, event: Program | None, energy: bool
) -> Program:
    """From a step that is solved to the next; t is already that of its end."""
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    n, s = step.n, step.s
    zero, z = B.const(0.0), x["z"]
    (ok,) = x["alive"]

    def where_ok(values: Sequence[int], name: str) -> list[int]:
        return [B.select(ok, new, old) for new, old in zip(values, x[name], strict=True)]

    state, carry = [], []
    for a, increment, c in zip([*x["q"], *x["p"]], [*z[(s - 1) * n : s * n], *x["impulse"]], x["carry"], strict=True):
        # Knuth's two-sum: what rounding leaves over is carried to the next step.
        b = B.add(increment, c)
        total = B.add(a, b)
        rounded = B.sub(total, a)
        carry.append(B.add(B.sub(a, B.sub(total, rounded)), B.sub(b, rounded)))
        state.append(total)
    q, p = where_ok(state[:n], "q"), where_ok(state[n:], "p")
    (t,) = x["t"]
    inputs = {**x, "q": q, "p": p}

    tiny = B.const(TINY)
    fading = [B.op("max", tiny, B.scale(FORGETTING, a)) for a in x["length"]]
    longest = [largest(B, [z[i] for i in own], a) for own, a in zip(components(step)[:n], fading, strict=True)]
    start, predicted = _predicted(step, B, z, [Value(B, a) for a in longest])
    outputs: dict[str, list[int]] = {
        "q": q,
        "p": p,
        "carry": where_ok(carry, "carry"),
        **{name: where_ok(values, name) for name, values in predicted.items()},
        **B.inline(one.before, **{name: inputs[name] for name, _ in one.before.inputs}),
    }
    if event is not None:
        g = B.inline(event, t=[t], q=q, p=p, params=x["params"])["g"]
        crossed = zero
        for old, new, direction in zip(x["g"], g, x["directions"], strict=True):
            crossed = B.add(crossed, _crossing(B, old, new, direction))
        outputs["g"] = where_ok(g, "g")
        outputs["crossed"] = [B.op("if", ok, crossed)]
        outputs["began"] = [*x["g"], *x["q"], *x["p"], *z]
    if energy:
        E = _energy(B, system, step, t, q, p, z, x["h"][0], x["params"])
        outputs["lowest"] = where_ok([B.op("min", x["lowest"][0], E)], "lowest")
        outputs["highest"] = where_ok([B.op("max", x["highest"][0], E)], "highest")
    start = where_ok(start, "z")
    floor = [B.scale(FADING, a) for a in x["floor"]]
    outputs |= {
        "length": longest,
        "reach": where_ok([B.op("max", B.scale(REACH, a), b) for a, b in zip(longest, floor, strict=True)], "reach"),
        "floor": floor,
        "z": start,
        "impulse": x["impulse"],
        "scale": [largest(B, [start[i] for i in own], tiny) for own in components(step)],
        "before": [zero],
        "doubt": [zero],
        "fresh": [ok],
        "kept": [zero],
        "iterations": [zero],
        "trouble": [zero],
        "left": [zero],
    }
    return B.build(**outputs)


def prediction(step: Step) -> Prediction:
    """The prediction with the method's table in float64."""
    table = step.method.table
    return Prediction(table.modes.tolist(), table.growth.tolist())


def _predicted(step: Step, B: Builder, z: list[int], longest: list[Value]) -> tuple[list[int], dict[str, list[int]]]:
    """z of the next step, and the new contents of what a prediction remembers."""
    n, s, ahead = step.n, step.s, prediction(step)
    (started,), memory, record = (B.values(name) for name in ("started", "memory", "record"))
    after: list[list[Any]] = []
    errors: list[Value] = []
    for j, unit in enumerate(longest):
        own = [Value(B, z[v * n + j]) for v in range(s)]
        kept, off = ahead.assess(own, 1 / unit, started, memory[j * ahead.memory : (j + 1) * ahead.memory])
        after.append(kept)
        errors = off if j == 0 else [a.op("max", b) for a, b in zip(errors, off, strict=True)]
    choice, lately = ahead.choose(errors, started, record)
    columns = [ahead.propose(kept, choice) for kept in after]
    start = indices((columns[j][v] for v in range(s) for j in range(n)), B) + z[s * n :]
    remembered = {"started": [B.const(1.0)], "memory": indices((y for kept in after for y in kept), B)}
    return start, remembered | {"record": indices(lately, B)}


def _energy(
    B: Builder,
    system: Lagrangian,
    step: Step,
    t: int,
    q: Sequence[int],
    p: Sequence[int],
    z: Sequence[int],
    h: int,
    params: Sequence[int],
) -> int:
    """E = p·v − L with L_v(t, q, v) = p, v from the polynomial's velocity by Newton."""
    n, slope = step.n, step.method.table.slope
    first = system.hessian.select("Lv", "Lvv")
    v = [B.div(B.sum(B.scale(slope[m + 1], z[m * n + j]) for m in range(step.s)), h) for j in range(n)]
    for _ in range(VELOCITY_ITERATIONS if first.depends("Lvv", "v") else 1):
        at = B.inline(first, t=[t], q=q, v=v, params=params)
        rows = [at["Lvv"][j * n : (j + 1) * n] for j in range(n)]
        (dv,) = solve(B, rows, [[B.sub(a, b) for a, b in zip(p, at["Lv"], strict=True)]])
        v = [B.add(a, b) for a, b in zip(v, dv, strict=True)]
    L = B.inline(system.program, t=[t], q=q, v=v, params=params)["L"][0]
    return B.sub(B.sum(B.mul(a, b) for a, b in zip(p, v, strict=True)), L)


def _crossing(B: Builder, old: int, new: int, direction: int) -> int:
    """1 if g went through zero in the direction wanted: up (+1), down (−1), or either (0)."""
    zero = B.const(0.0)
    up = B.op("and", B.op("lt", old, zero), B.op("le", zero, new))
    down = B.op("and", B.op("lt", zero, old), B.op("le", new, zero))
    up, down = B.op("and", up, B.op("le", zero, direction)), B.op("and", down, B.op("le", direction, zero))
    return B.op("or", up, down)
