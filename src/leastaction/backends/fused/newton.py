"""One Newton iteration of a whole step as a Program, with a new Jacobian or with the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastaction.backends.fused.elimination import factors, order_of, pivots_of, square, substitute
from leastaction.backends.fused.equations import Equations, equations
from leastaction.backends.fused.judging import chosen, finite, judged
from leastaction.backends.fused.mass import mass_of
from leastaction.backends.fused.work import work
from leastaction.program import Builder, Program, Value, dot
from leastaction.step.form import Step
from leastaction.step.kronecker import short_pivots
from leastaction.step.rows import OneByOne, size, total
from leastaction.step.verdict import TINY, coarse

Blocks = Sequence[tuple[str, int]]
Place = tuple[int, int]  # row and column


@dataclass(frozen=True)
class Iteration:
    """The equations of a step, taken apart for the kernels.

    before    (t, h, q, p, params) ↦ invariants: what depends neither on z nor on inputs, which the next step may not
              have yet
    first     the same and (z, invariants) ↦ what one iteration needs, the right-hand side −R and the impulse; and what
              is kept for the next ones, the impulse's derivatives by z and the factors of the Jacobian
    again     the same, without what is kept
    pattern   where the factors are in their matrix; its other entries are the `constants`
    moved     where the impulse's derivatives are in theirs, (n, N); its other entries are `fixed`
    unknowns  the order of the unknowns in the matrix of the factors

    The first one also has `short`, the pivots of the Jacobian of a short step; so has `again` where these alone tell
    whether the determinant has turned, of a step that is linear.
    """

    before: Program
    first: Program
    again: Program
    pattern: tuple[Place, ...]
    constants: dict[Place, float]
    moved: tuple[Place, ...]
    fixed: dict[Place, float]
    unknowns: list[int]

    @property
    def chords(self) -> int:
        """How many iterations that keep the Jacobian cost about as much as a fresh one."""
        return int(work(self.first) / work(self.again))


def iteration(step: Step) -> Iteration:
    """The equations of a step, for the kernels."""
    E, (order, unknowns) = equations(step), order_of(step)
    right = [-E.residual[i] for i in order]
    rows = factors([[E.jacobian[i][j] for j in unknowns] for i in order])
    (pattern, constants), (moved, fixed) = _pattern(rows), _pattern(E.impulse_slope)
    whole = E.B.finished(
        right=right,
        impulse=E.impulse,
        slopes=[E.impulse_slope[i][j] for i, j in moved],
        factors=[rows[i][j] for i, j in pattern],
        short=_short(step, E, order),
    )
    before, first = whole.split(("z", "inputs"), "invariants")
    again = first.select("right", "impulse", *(["short"] if step.linear else []))
    return Iteration(before, first, again, pattern, constants, moved, fixed, unknowns)


def _pattern(rows: Sequence[Sequence[Value]]) -> tuple[tuple[Place, ...], dict[Place, float]]:
    """The places of a matrix whose numbers are not known, and the known ones: of sparse couplings most are zero."""
    places = {(i, j): value.known for i, row in enumerate(rows) for j, value in enumerate(row)}
    known = {place: float(x) for place, x in places.items() if x is not None}
    return tuple(place for place in places if place not in known), known


def _filled(
    B: Builder, shape: Place, pattern: Sequence[Place], values: Sequence[Value], known: Mapping[Place, float]
) -> list[list[Value]]:
    """The matrix of such a pattern."""
    rows = [[B.number(known.get((i, j), 0.0)) for j in range(shape[1])] for i in range(shape[0])]
    for (i, j), value in zip(pattern, values, strict=True):
        rows[i][j] = value
    return rows


def _short(step: Step, E: Equations, order: Sequence[int]) -> list[Value]:
    """The pivots of A/h ⊗ L_vv, which ∂R/∂z is at h → 0 (`step.kronecker`), in this order of the equations: L_vv at the
    start of the step, or, where L_vv depends on v, at the first node. None with multipliers.
    """
    B, mass, n, s = E.B, mass_of(step), step.n, step.s
    if not judges_sense(step):
        return []
    inverse_h = 1.0 / B.values("h")[0]
    if mass.program.depends("m_v", "v"):
        entries = E.mass[:: n + 1] if mass.diagonal else E.mass
    else:  # a mass that depends neither on v nor on inputs may be given any
        x = {name: B.values(name) for name in ("t", "q", "params")}
        entries = B.at(mass.program, {name: x.get(name, [0.0] * size) for name, size in mass.program.inputs})["m_v"]
    if mass.diagonal:
        pivots = entries
    else:
        pivots = pivots_of([square(entries)[k % n] for k in order[::s]])
    return [a * (inverse_h * pivot) for pivot in pivots for a in short_pivots(step.method).tolist()]


def judges_sense(step: Step) -> bool:
    """Whether kernels know the sign that the determinant has at h → 0: not with multipliers."""
    return step.checked and not step.multipliers


def newton(step: Step, one: Iteration, blocks: Blocks, fresh: bool) -> Program:
    """An iteration with a new Jacobian, or with the last one, of the trajectories that want one."""
    B = Builder(blocks)
    x, n = B.blocks(), step.n
    found = B.at(one.first if fresh else one.again, x)
    kept = {name: found[name] for name in ("slopes", "factors")} if fresh else {}
    right, impulse = found["right"], found["impulse"]
    N = len(right)
    rows = _filled(B, (N, N), one.pattern, (kept or x)["factors"], one.constants)
    solved = substitute(rows, right)
    dz = [solved[one.unknowns.index(i)] for i in range(N)]
    slopes = _filled(B, (n, N), one.moved, (kept or x)["slopes"], one.fixed)
    more = [dot(slope, dz) for slope in slopes]
    pushed = [a + b for a, b in zip(impulse, more, strict=True)]
    new = [a + b for a, b in zip(x["z"], dz, strict=True)]
    moves, places = ([[values[i] for i in own] for own in coordinates(step)] for values in (dz, new))
    unique = x["asked"][0] if "asked" in x else None
    seen = judged(step, OneByOne(), x, moves, places, fresh=fresh, chords=one.chords, unique=unique)
    ended, keep = seen.found["ended"], seen.found["keep"]
    good = seen.found["good"] & finite(total(pushed))
    if judges_sense(step) and (fresh or step.linear):
        inverse, short = [rows[i][i] for i in range(N)], found["short"]
        if step.linear:
            good = good & ~_turned(B, inverse + short)
        else:
            long = coarse([a * b for a, b in zip(inverse, short, strict=True)])
            long = long if unique is None else long & ~unique
            ended, good = ended | long, good & ~long
    after: dict[str, list[Any]] = {
        "z": new,
        "impulse": pushed,
        **seen.after,
        "fresh": [~ended & ~keep],
        "kept": [~ended & keep],
        "trouble": [ended & ~good],
    }
    if not step.multipliers:  # else the End changes the impulse, and ġ = 0 holds of p alone
        # What the sum with the last change loses of it belongs to the state, too (`step.form` says why).
        after["carry"] = x["carry"][:n] + [
            old + (ended & good).op("if", change - (now - before))
            for old, change, now, before in zip(x["carry"][n:], more, pushed, impulse, strict=True)
        ]
    return B.finished(**kept, **chosen(x["fresh" if fresh else "kept"][0], after, x))


def _turned(B: Builder, pivots: Sequence[Value]) -> Value:
    """Whether the determinant has another sign than at h → 0, from the inverses of its pivots and a short step's."""
    sign = B.number(1.0)
    for pivot in pivots:
        sign = sign * B.number(1.0).op("copysign", pivot)
    return sign < 0.0


def unique(step: Step, certain: Program, blocks: Blocks) -> Program:
    """Where a step was in doubt, and its iteration has gone on: whether its root is the only one as far as it and the
    latest steps went (`uniqueness`); else there is trouble.
    """
    B = Builder(blocks)
    x = B.blocks()
    lengths = [size([x["z"][i] for i in own]) for own in coordinates(step)]
    way = [a.op("max", b) for a, b in zip(x["length"], lengths, strict=True)]
    (alone,) = B.at(certain, x | {"way": way})["unique"]
    return B.finished(trouble=[x["trouble"][0] | (x["asked"][0] & ~alone)])


def begun(
    step: Step, B: Builder, one: Iteration, x: Mapping[str, Sequence[Any]], z: Sequence[Any]
) -> dict[str, list[Any]]:
    """What the iteration begins with, from where the step begins and the prediction z."""
    return {
        **B.at(one.before, x),
        "scale": [size([z[i] for i in own]).op("max", TINY) for own in coordinates(step)],
        "before": [0.0],
        "doubt": [0.0],
    }


def coordinates(step: Step) -> list[list[int]]:
    """Where the unknowns of each coordinate are in z. Multipliers, behind them, enter linearly: they are not judged."""
    return [[v * step.n + j for v in range(step.s)] for j in range(step.n)]
