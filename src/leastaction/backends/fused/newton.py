"""One Newton iteration of a whole step as a Program, with a new Jacobian or with the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastaction.backends.fused.elimination import factors, order_of, pivots_of, substitute
from leastaction.backends.fused.equations import Equations, dot, equations
from leastaction.backends.fused.judging import finite, judged
from leastaction.backends.fused.mass import mass_of
from leastaction.backends.fused.work import work
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step
from leastaction.step.kronecker import short_pivots
from leastaction.step.rows import OneByOne, Row, size, total
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
    B = E.B
    right = [B.op("neg", E.residual[i]) for i in order]
    rows = factors(B, [[E.jacobian[i][j] for j in unknowns] for i in order])
    (pattern, constants), (moved, fixed) = _pattern(B, rows), _pattern(B, E.impulse_slope)
    whole = B.build(
        right=right,
        impulse=E.impulse,
        slopes=[E.impulse_slope[i][j] for i, j in moved],
        factors=[rows[i][j] for i, j in pattern],
        short=_short(step, E, order),
    )
    before, first = whole.split(("z", "inputs"), "invariants")
    again = first.select("right", "impulse", *(["short"] if step.linear else []))
    return Iteration(before, first, again, pattern, constants, moved, fixed, unknowns)


def _pattern(B: Builder, rows: Sequence[Sequence[int]]) -> tuple[tuple[Place, ...], dict[Place, float]]:
    """The places of a matrix whose numbers are not known, and the known ones: of sparse couplings most are zero."""
    places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    known = {(i, j): float(x) for i, j in places if (x := B.constant(rows[i][j])) is not None}
    return tuple(place for place in places if place not in known), known


def _filled(
    B: Builder, shape: Place, pattern: Sequence[Place], values: Sequence[int], known: Mapping[Place, float]
) -> list[list[int]]:
    """The matrix of such a pattern."""
    rows = [[B.const(known.get((i, j), 0.0)) for j in range(shape[1])] for i in range(shape[0])]
    for (i, j), value in zip(pattern, values, strict=True):
        rows[i][j] = value
    return rows


def _short(step: Step, E: Equations, order: Sequence[int]) -> list[int]:
    """The pivots of A/h ⊗ L_vv, which ∂R/∂z is at h → 0 (`step.kronecker`), in this order of the equations: L_vv at the
    start of the step, or, where L_vv depends on v, at the first node. None with multipliers.
    """
    B, mass, n, s = E.B, mass_of(step), step.n, step.s
    if not judges_sense(step):
        return []
    inverse_h = B.div(B.const(1.0), B.input("h")[0])
    if mass.program.depends("m_v", "v"):
        entries = E.mass[:: n + 1] if mass.diagonal else E.mass
    else:
        at = {name: _at_start(B, name, size) for name, size in mass.program.inputs}
        entries = B.inline(mass.program, **at)["m_v"]
    if mass.diagonal:
        pivots = entries
    else:
        pivots = pivots_of(B, [entries[j * n : (j + 1) * n] for j in (k % n for k in order[::s])])
    small = short_pivots(step.method).tolist()
    return [B.mul(B.const(a), B.mul(inverse_h, pivot)) for pivot in pivots for a in small]


def _at_start(B: Builder, name: str, size: int) -> list[int]:
    """A mass that depends neither on v nor on inputs may be given any."""
    return B.input(name) if name in ("t", "q", "params") else [B.const(0.0)] * size


def judges_sense(step: Step) -> bool:
    """Whether kernels know the sign that the determinant has at h → 0: not with multipliers."""
    return step.checked and not step.multipliers


def newton(step: Step, one: Iteration, blocks: Blocks, fresh: bool) -> Program:
    """An iteration with a new Jacobian, or with the last one, of the trajectories that want one."""
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    program = one.first if fresh else one.again
    found = B.inline(program, **{name: x[name] for name, _ in program.inputs})
    kept = {name: found[name] for name in ("slopes", "factors")} if fresh else {}
    right, impulse = found["right"], found["impulse"]
    N, n = len(right), step.n
    rows = _filled(B, (N, N), one.pattern, (kept or x)["factors"], one.constants)
    solved = substitute(B, rows, right)
    dz = [k for _, k in sorted(zip(one.unknowns, solved, strict=True))]
    slopes = _filled(B, (n, N), one.moved, (kept or x)["slopes"], one.fixed)
    more = [Value(B, dot(B, slope, dz)) for slope in slopes]
    pushed = [Value(B, k) + change for k, change in zip(impulse, more, strict=True)]
    new = [B.add(z, d) for z, d in zip(x["z"], dz, strict=True)]

    def rows_of(values: Sequence[int]) -> list[Row]:
        return [[Value(B, values[i]) for i in own] for own in coordinates(step)]

    values = {name: B.values(name) for name, _ in blocks}
    unique = values["asked"][0] if "asked" in values else None
    seen = judged(step, OneByOne(), values, rows_of(dz), rows_of(new), fresh=fresh, chords=one.chords, unique=unique)
    ended, keep = seen.found["ended"], seen.found["keep"]
    good = seen.found["good"] & finite(total(pushed))
    if judges_sense(step) and (fresh or step.linear):
        inverse, short = ([Value(B, k) for k in values] for values in ([rows[i][i] for i in range(N)], found["short"]))
        if step.linear:
            good = good & ~_turned(B, inverse + short)
        else:
            long = coarse([a * b for a, b in zip(inverse, short, strict=True)])
            long = long if unique is None else long & ~unique
            ended, good = ended | long, good & ~long
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


def _turned(B: Builder, pivots: Sequence[Value]) -> Value:
    """Whether the determinant has another sign than at h → 0, from the inverses of its pivots and a short step's."""
    sign = Value(B, B.const(1.0))
    for pivot in pivots:
        sign = sign * Value(B, B.const(1.0)).op("copysign", pivot)
    return sign < 0.0


def unique(step: Step, certain: Program, blocks: Blocks) -> Program:
    """Where a step was in doubt, and its iteration has gone on: whether its root is the only one as far as it and the
    latest steps went (`uniqueness`); else there is trouble.
    """
    B = Builder(blocks)
    z, (asked,), (trouble,) = (B.values(name) for name in ("z", "asked", "trouble"))
    way = [a.op("max", size([z[i] for i in own])) for a, own in zip(B.values("length"), coordinates(step), strict=True)]
    given = {name: B.input(name) for name, _ in certain.inputs if name != "way"} | {"way": indices(way, B)}
    alone = Value(B, B.inline(certain, **given)["unique"][0])
    return B.build(trouble=indices([trouble | (asked & ~alone)], B))


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
