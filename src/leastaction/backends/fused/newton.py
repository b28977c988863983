"""One Newton iteration of a whole step as a Program, with a new Jacobian or with the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastaction.backends.fused.elimination import factors, order_of, substitute
from leastaction.backends.fused.equations import dot, equations
from leastaction.backends.fused.judging import finite, judged
from leastaction.backends.fused.work import work
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step
from leastaction.step.rows import OneByOne, Row, size
from leastaction.step.verdict import TINY

Blocks = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Iteration:
    """The equations of a step, taken apart for the kernels.

    before    (t, h, q, p, params) ↦ invariants: what depends neither on z nor on inputs, which the next step may not
              have yet
    first     the same and (z, invariants) ↦ what one iteration needs, the right-hand side −R and the impulse; and what
              is kept for the next ones, the impulse's derivatives by z and the factors of the Jacobian
    again     the same, without what is kept
    pattern   where the factors are in their matrix; its other entries are the `constants`
    unknowns  the order of the unknowns in that matrix
    """

    before: Program
    first: Program
    again: Program
    pattern: tuple[tuple[int, int], ...]
    constants: dict[tuple[int, int], float]
    unknowns: list[int]

    @property
    def chords(self) -> int:
        """How many iterations that keep the Jacobian cost about as much as a fresh one."""
        return int(work(self.first) / work(self.again))


def iteration(step: Step) -> Iteration:
    """The equations of a step, for the kernels."""
    E, (order, unknowns) = equations(step), order_of(step)
    B = E.B
    right = [B.op("neg", E.residual[i]) for i in order]
    rows = factors(B, [[E.jacobian[i][j] for j in unknowns] for i in order])
    places = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    constants = {(i, j): float(x) for i, j in places if (x := B.constant(rows[i][j])) is not None}
    pattern = tuple(place for place in places if place not in constants)
    whole = B.build(
        right=right,
        impulse=E.impulse,
        slopes=[x for row in E.impulse_slope for x in row],
        factors=[rows[i][j] for i, j in pattern],
    )
    before, first = whole.split(("z", "inputs"), "invariants")
    return Iteration(before, first, first.select("right", "impulse"), pattern, constants, unknowns)


def newton(step: Step, one: Iteration, blocks: Blocks, fresh: bool) -> Program:
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
    solved = substitute(B, rows, right)
    dz = [k for _, k in sorted(zip(one.unknowns, solved, strict=True))]
    slopes = (kept or x)["slopes"]
    impulse = [B.add(impulse[j], dot(B, slopes[j * N : (j + 1) * N], dz)) for j in range(n)]
    new = [B.add(z, d) for z, d in zip(x["z"], dz, strict=True)]

    def rows_of(values: Sequence[int]) -> list[Row]:
        return [[Value(B, values[i]) for i in own] for own in coordinates(step)]

    values = {name: B.values(name) for name, _ in blocks}
    seen = judged(step, OneByOne(), values, rows_of(dz), rows_of(new), fresh=fresh, chords=one.chords)
    ended, keep = seen.found["ended"], seen.found["keep"]
    good = seen.found["good"] & finite(Value(B, B.sum(impulse)))
    after: dict[str, list[Any]] = {
        "z": [Value(B, k) for k in new],
        "impulse": [Value(B, k) for k in impulse],
        **seen.after,
        "fresh": [~ended & ~keep],
        "kept": [~ended & keep],
        "trouble": [ended & ~good],
    }
    active = x["fresh" if fresh else "kept"][0]
    chosen = {
        name: [B.select(active, k, old) for k, old in zip(indices(values, B), x[name], strict=True)]
        for name, values in after.items()
    }
    return B.build(**kept, **chosen)


def begun(
    step: Step, B: Builder, one: Iteration, x: Mapping[str, Sequence[Any]], z: Sequence[Any]
) -> dict[str, list[Any]]:
    """What the iteration begins with, from where the step begins and the prediction z."""
    found = B.inline(one.before, **{name: indices(x[name], B) for name, _ in one.before.inputs})
    return {
        **{name: [Value(B, k) for k in values] for name, values in found.items()},
        "scale": [size([z[i] for i in own]).op("max", TINY) for own in coordinates(step)],
        "before": [0.0],
        "doubt": [0.0],
    }


def coordinates(step: Step) -> list[list[int]]:
    """Where the unknowns of each coordinate are in z. Multipliers, behind them, enter linearly: they are not judged."""
    return [[v * step.n + j for v in range(step.s)] for j in range(step.n)]
