"""Newton's iteration for the lanes: one kernel with a fresh Jacobian, and a short one that keeps it.

Each lane decides for itself, by numbers among its state, what it wants next: a fresh Jacobian, another
iteration with the last one (a chord), or nothing more. A kernel changes the lanes that want it and no others, so what
a lane computes does not depend on its neighbours. With d_k the size of the k-th increment and θ = d_k/d_{k−1},

    done        if what would come next is negligible, or d_k is small and shrinks no more (θ > ½);
    in doubt    if d_1 is longer than thrice the last two steps, or θ > ¼ at any k (for a chord 1.5 θ at k = 2, θ/2
                later), as in `stepping.loops.newton`;
    chord       from the third iteration on, if as many of them as cost a fresh Jacobian will end it. After two fresh
                ones a chord gains θ², after a chord θ. Where a fresh one costs more than DEAR chords the second is one.

Lanes would spend much of their time on exchanges of rows and on sines. So the equations are put in order beforehand
and eliminated without pivoting (where that loses digits the iteration contracts less, and a lane in doubt has its
step solved alone, with pivoting); and what depends on the state at the start of the step alone, as much does at a
node c = 0, is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leastaction.discrete import dot, equations
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Galerkin, Table
from leastaction.program import BINARY, UNARY, Builder, Program
from leastaction.stepping import layout

Blocks = Sequence[tuple[str, int]]


# What operations cost in lanes, in additions, roughly; of what is not listed, FUNCTION. It decides between kernels, and
# nothing else depends on it.
WORK = {
    **dict.fromkeys(("neg", "sq", "abs", "add", "sub", "mul", "min", "max", "copysign", "select", "if"), 1.0),
    **dict.fromkeys(("lt", "le", "eq", "ne", "and", "or", "not", "sign", "floor", "ceil"), 2.0),
    "div": 8.0,
    "sqrt": 10.0,
}
FUNCTION = 25.0
DEAR = 3  # chords


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
        return int(_work(self.first) / _work(self.again))


def _work(program: Program) -> float:
    """What a program costs, in additions."""
    return sum(WORK.get(op, FUNCTION if op in UNARY or op in BINARY else 0.0) for op, *_ in program.code)


def iteration(system: Lagrangian, method: Galerkin) -> Iteration:
    """The equations of a method on a system, for the lanes."""
    point = system.point.select("Lq", "Lv", "Lqq", "Lqv", "Lvv")
    E = equations(point, method.table, system.n)
    B, order = E.B, _order(point, method.table, system.n)
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


def fresh_program(one: Iteration, blocks: Blocks) -> Program:
    """An iteration with a new Jacobian, of the lanes that want one."""
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    step = B.inline(one.first, **{name: x[name] for name, _ in one.first.inputs})
    kept = {name: step[name] for name in ("slopes", "factors")}
    return B.build(**kept, **_judged(B, x, _increment(B, one, step, kept), "fresh", one.chords))


def chord_program(one: Iteration, blocks: Blocks) -> Program:
    """An iteration with the last Jacobian, of the lanes that want one."""
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    step = B.inline(one.again, **{name: x[name] for name, _ in one.again.inputs})
    return B.build(**_judged(B, x, _increment(B, one, step, x), "chord", one.chords))


def _order(point: Program, table: Table, n: int) -> list[int]:
    """The equations in an order in which they can be eliminated without pivoting, for small h.

    There the Jacobian is S ⊗ L_vv with S = Σ_i b_i l_ν′(c_i) l_m′(c_i). Its factors are those of S times those of
    L_vv, so blocks come in the order that pivoting finds for S. Within a block any order does if L_vv is
    definite, and one without zeros on the diagonal avoids the worst if it is not.
    """
    s = len(table.d) - 1
    S = np.einsum("i,iv,im->vm", table.b, table.equations[1][:, :s], table.dl[:, 1:])
    blocks = list(range(s))
    for k in range(s):
        largest = k + int(np.argmax(np.abs(S[k:, k])))
        S[[k, largest]] = S[[largest, k]]
        blocks[k], blocks[largest] = blocks[largest], blocks[k]
        S[k + 1 :] -= np.outer(S[k + 1 :, k] / S[k, k], S[k])
    zero = np.array([point.code[k] == ("const", 0.0) for k in point.output("Lvv")]).reshape(n, n)
    rows = list(range(n))
    if zero.diagonal().any():
        from scipy.optimize import linear_sum_assignment

        rows = [int(row) for row in linear_sum_assignment(zero.T)[1]]
    return [block * n + row for block in blocks for row in rows]


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


@dataclass(frozen=True)
class _Increment:
    dz: list[int]
    impulse: list[int]  # after the increment, to first order


def _increment(B: Builder, one: Iteration, step: dict[str, list[int]], kept: dict[str, list[int]]) -> _Increment:
    right, impulse = step["right"], step["impulse"]
    N, n = len(right), len(impulse)
    rows = [[B.const(one.constants.get((i, j), 0.0)) for j in range(N)] for i in range(N)]
    for (i, j), factor in zip(one.pattern, kept["factors"], strict=True):
        rows[i][j] = factor
    dz = _substitute(B, rows, right)
    change = [dot(B, kept["slopes"][j * N : (j + 1) * N], dz) for j in range(n)]
    return _Increment(dz, [B.add(a, b) for a, b in zip(impulse, change, strict=True)])


def _judged(B: Builder, x: dict[str, list[int]], found: _Increment, wanted: str, chords: int) -> dict[str, list[int]]:
    """The state after an increment of the lanes that wanted it, and what they want next."""
    (active,), (before,), (iterations,), (reach,) = (x[name] for name in (wanted, "before", "iterations", "reach"))

    def finite(values: Sequence[int]) -> int:
        total = B.sum(values)
        return B.op("eq", B.sub(total, total), B.const(0.0))

    def both(a: int, b: int) -> int:
        return B.op("and", a, b)

    def either(a: int, b: int) -> int:
        return B.op("or", a, b)

    def no(a: int) -> int:
        return B.op("not", a)

    new = [B.add(z, dz) for z, dz in zip(x["z"], found.dz, strict=True)]
    size = largest(B, found.dz)
    scale = largest(B, new, x["scale"][0])
    iteration = B.add(iterations, B.const(1.0))
    first, second = B.op("eq", iterations, B.const(0.0)), B.op("eq", iterations, B.const(1.0))
    rate = B.div(size, before)
    gain = rate  # of a chord that follows
    if wanted == "fresh" and chords <= DEAR:
        gain = B.select(second, B.op("sq", rate), rate)
    negligible = B.scale(layout.NEGLIGIBLE, scale)
    small = B.op("le", size, B.scale(layout.ACCEPTABLE, scale))
    following = B.mul(size, gain)
    stalled = both(small, B.op("lt", B.const(0.5), rate))
    later = both(no(first), either(B.op("le", following, negligible), stalled))
    sound = finite(found.dz)
    solved = both(sound, either(B.op("le", size, negligible), later))
    ended = either(solved, either(no(sound), B.op("le", B.const(float(layout.MOST_ITERATIONS)), iteration)))
    off = both(first, B.op("lt", reach, size))
    at_once, at_last = (1.0, 1.0) if wanted == "fresh" else (layout.OF_A_CHORD, layout.OF_A_LATER_CHORD)
    most = B.select(second, *(B.const(layout.ON_THE_BRANCH / part) for part in (at_once, at_last)))
    contracts = either(small, B.op("le", rate, most))
    doubt = either(x["doubt"][0], either(off, both(no(first), no(contracts))))
    far = B.op("lt", B.scale(2.0, reach), scale)
    good = both(solved, both(finite(found.impulse), no(either(doubt, far))))
    left = following
    for _ in range(chords):
        left = B.mul(left, gain)
    chord = B.op("le", left, negligible)
    if wanted == "fresh":
        chord = both(no(first), chord) if chords <= DEAR else B.const(1.0)

    def where_active(name: str, values: Sequence[int]) -> list[int]:
        return [B.select(active, after, old) for after, old in zip(values, x[name], strict=True)]

    after = {
        "z": new,
        "impulse": found.impulse,
        "scale": [scale],
        "before": [size],
        "doubt": [doubt],
        "fresh": [both(no(ended), no(chord))],
        "chord": [both(no(ended), chord)],
        "iterations": [iteration],
        "trouble": [both(ended, no(good))],
    }
    return {name: where_active(name, values) for name, values in after.items()}


def largest(B: Builder, values: Sequence[int], start: int | None = None) -> int:
    """The largest absolute value, or `start` if that is larger."""
    found = B.const(0.0) if start is None else start
    for value in values:
        found = B.op("max", found, B.op("abs", value))
    return found
