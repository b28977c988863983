"""One Newton iteration of a whole step as a Program, with a new Jacobian or with the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.elimination import factors, order_of, substitute
from leastaction.backends.fused.equations import dot, equations
from leastaction.backends.fused.judging import finite, judged
from leastaction.backends.fused.mass import mass_of
from leastaction.backends.fused.work import work
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step
from leastaction.step.kronecker import kronecker_of
from leastaction.step.rows import OneByOne, Row, size, total
from leastaction.step.verdict import TINY, coarse

Blocks = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Iteration:
    """The equations of a step, taken apart for the kernels.

    before    (t, h, q, p, params) ↦ invariants: what depends neither on z nor on inputs, which the next step may not
              have yet
    first     the same and (z, invariants) ↦ what one iteration needs, the right-hand side −R and the impulse; and what
              is kept for the next ones, the impulse's derivatives by z and the factors of the Jacobian
    again     the same, without what is kept; both have `short`, the pivots of the Jacobian of a short step
    pattern   where the factors are in their matrix; its other entries are the `constants`
    unknowns  the order of the unknowns in that matrix
    exchanged whether the orders of equations and unknowns differ by an odd number of exchanges
    linear    whether the Jacobian does not depend on z: then there is one root
    """

    before: Program
    first: Program
    again: Program
    pattern: tuple[tuple[int, int], ...]
    constants: dict[tuple[int, int], float]
    unknowns: list[int]
    exchanged: bool
    linear: bool

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
        short=_short(step, B, order),
    )
    before, first = whole.split(("z", "inputs"), "invariants")
    again = first.select("right", "impulse", "short")
    exchanged = float(np.linalg.det(np.eye(len(order))[order][:, unknowns])) < 0
    linear = not whole.depends("factors", "z")
    return Iteration(before, first, again, pattern, constants, unknowns, exchanged, linear)


def _short(step: Step, B: Builder, order: Sequence[int]) -> list[int]:
    """The pivots of A/h ⊗ L_vv, which ∂R/∂z is at h → 0 (`step.kronecker`), in this order of the equations: L_vv at the
    start of the step. None with multipliers, nor of a mass that depends on v.
    """
    mass, n, s = mass_of(step), step.n, step.s
    if not judges_sense(step) or mass.program.depends("m_v", "v"):
        return []
    inverse_h = B.div(B.const(1.0), B.input("h")[0])
    entries = B.inline(mass.program, **{name: _at_start(B, name, size) for name, size in mass.program.inputs})["m_v"]
    if mass.diagonal:
        pivots = entries
    else:
        rows = factors(B, [entries[j * n : (j + 1) * n] for j in (k % n for k in order[::s])])
        pivots = [B.div(B.const(1.0), rows[j][j]) for j in range(n)]
    small = _pivots(kronecker_of(step.method).A)
    return [B.mul(B.const(a), B.mul(inverse_h, pivot)) for pivot in pivots for a in small]


def _pivots(A: NDArray[np.float64]) -> list[float]:
    """The pivots of a definite matrix: ratios of its leading minors."""
    minors = [1.0] + [float(np.linalg.det(A[:k, :k])) for k in range(1, len(A) + 1)]
    return [b / a for a, b in pairwise(minors)]


def _at_start(B: Builder, name: str, size: int) -> list[int]:
    """A mass that depends neither on v nor on inputs may be given any."""
    return B.input(name) if name in ("t", "q", "params") else [B.const(0.0)] * size


def judges_sense(step: Step) -> bool:
    """Whether kernels know the sign that the determinant has at h → 0: not with multipliers, nor of a mass of v."""
    return step.checked and not step.multipliers and (step.s % 2 == 0 or not mass_of(step).program.depends("m_v", "v"))


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
    more = [Value(B, dot(B, slopes[j * N : (j + 1) * N], dz)) for j in range(n)]
    pushed = [Value(B, k) + change for k, change in zip(impulse, more, strict=True)]
    new = [B.add(z, d) for z, d in zip(x["z"], dz, strict=True)]

    def rows_of(values: Sequence[int]) -> list[Row]:
        return [[Value(B, values[i]) for i in own] for own in coordinates(step)]

    values = {name: B.values(name) for name, _ in blocks}
    seen = judged(step, OneByOne(), values, rows_of(dz), rows_of(new), fresh=fresh, chords=one.chords)
    ended, keep = seen.found["ended"], seen.found["keep"]
    good = seen.found["good"] & finite(total(pushed))
    if judges_sense(step):
        inverse = [Value(B, rows[i][i]) for i in range(N)]
        if found["short"] and not one.linear:
            long = coarse([a * Value(B, b) for a, b in zip(inverse, found["short"], strict=True)])
            ended, good = ended | long, good & ~long
        else:
            good = good & ~_turned(B, one, inverse + [Value(B, k) for k in found["short"]])
    after: dict[str, list[Any]] = {
        "z": [Value(B, k) for k in new],
        "impulse": pushed,
        **seen.after,
        "fresh": [~ended & ~keep],
        "kept": [~ended & keep],
        "trouble": [ended & ~good],
    }
    if not step.multipliers:  # else the End changes the impulse, and ġ = 0 holds of p alone
        # What the sum with the last change loses of it belongs to the state, too (`step.form` says why).
        after["carry"] = values["carry"][:n] + [
            old + (ended & good).op("if", change - (now - Value(B, k)))
            for old, change, now, k in zip(values["carry"][n:], more, pushed, impulse, strict=True)
        ]
    active = x["fresh" if fresh else "kept"][0]
    chosen = {
        name: [B.select(active, k, old) for k, old in zip(indices(values, B), x[name], strict=True)]
        for name, values in after.items()
    }
    return B.build(**kept, **chosen)


def _turned(B: Builder, one: Iteration, pivots: Sequence[Value]) -> Value:
    """Whether the determinant has another sign than at h → 0, from the inverses of its pivots and those of a short
    step; without these it is positive at h → 0.
    """
    exchanged = one.exchanged and len(pivots) == len(one.unknowns)
    sign = Value(B, B.const(-1.0 if exchanged else 1.0))
    for pivot in pivots:
        sign = sign * Value(B, B.const(1.0)).op("copysign", pivot)
    return sign < 0.0


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
