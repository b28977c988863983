"""The equations of a step written out, with their derivatives: what one Newton iteration needs, as Programs.

R and the impulse are sums over the points of all terms (`step.form`). ∂R/∂z is eliminated without pivoting
(`program.elimination`) in an order without zeros on the diagonal of L_vv (`sparsity`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from leastaction.engine.sparsity import order_of
from leastaction.program import Builder, Program, Value, dot
from leastaction.program.elimination import factors
from leastaction.step.form import Step, stencils

READ, GIVEN = ("q", "v", "multipliers"), ("f", "m", "g")
COARSE = 2  # of steps of at most this degree truncation hides what the rounding of g does

Place = tuple[int, int]  # row and column


@dataclass(frozen=True)
class Iteration:
    """The equations of a step, taken apart.

    before    (t, h, q, p, params) ↦ invariants: what depends neither on z nor on inputs
    first     the same and (z, inputs, invariants) ↦ the right-hand side −R, the impulse, its derivatives by z
              (`slopes`), and the `factors` of the Jacobian
    pattern   where the factors are in their matrix; its other entries are the `constants`
    moved     where the impulse's derivatives are in theirs, (n, N); its other entries are `fixed`
    unknowns  the order of the unknowns in the matrix of the factors
    """

    before: Program
    first: Program
    pattern: tuple[Place, ...]
    constants: dict[Place, float]
    moved: tuple[Place, ...]
    fixed: dict[Place, float]
    unknowns: list[int]


def iteration(step: Step) -> Iteration:
    """The equations of a step: unknowns ν n + j, and multipliers behind all increments; equations likewise."""
    (order, unknowns), (B, residual, impulse) = order_of(step), _summed(step)
    N = len(residual)
    right = [-residual[i][N] for i in order]
    rows = factors([[residual[i][j] for j in unknowns] for i in order])
    impulse_slope = [row[:N] for row in impulse]
    (pattern, constants), (moved, fixed) = _pattern(rows), _pattern(impulse_slope)
    whole = B.finished(
        right=right,
        impulse=[row[N] for row in impulse],
        slopes=[impulse_slope[i][j] for i, j in moved],
        factors=[rows[i][j] for i, j in pattern],
    )
    before, first = whole.split(("z", "inputs"), "invariants")
    return Iteration(before, first, pattern, constants, moved, fixed, unknowns)


def _pattern(rows: Sequence[Sequence[Value]]) -> tuple[tuple[Place, ...], dict[Place, float]]:
    """The places of a matrix whose numbers are not known, and the known ones: of sparse couplings most are zero."""
    places = {(i, j): value.known for i, row in enumerate(rows) for j, value in enumerate(row)}
    known = {place: float(x) for place, x in places.items() if x is not None}
    return tuple(place for place in places if place not in known), known


def filled(
    B: Builder, shape: Place, pattern: Sequence[Place], values: Sequence[Value], known: Mapping[Place, float]
) -> list[list[Value]]:
    """The matrix of such a pattern."""
    rows = [[B.number(known.get((i, j), 0.0)) for j in range(shape[1])] for i in range(shape[0])]
    for (i, j), value in zip(pattern, values, strict=True):
        rows[i][j] = value
    return rows


def _summed(step: Step) -> tuple[Builder, list[list[Value]], list[list[Value]]]:
    """A Builder with inputs (t, h, q, p, z, params, inputs); the rows of R and of the impulse: N derivatives by the
    unknowns, and behind them the number itself.
    """
    n, s, m = step.n, step.s, step.multipliers
    N = s * (n + m)
    B = Builder([("t", 1), ("h", 1), ("q", n), ("p", n), ("z", N), ("params", step.params), ("inputs", step.driven)])
    (t,), (h,), q, p, z, params, inputs = B.blocks().values()
    sizes = {"q": n, "v": n, "multipliers": m, "f": n, "m": n, "g": m}
    # Where the ν-th unknown, and the ν-th equation, of component k of a block is.
    places = {
        block: [[s * n * (block in ("multipliers", "g")) + v * size + k for v in range(s)] for k in range(size)]
        for block, size in sizes.items()
    }
    sums = [[B.number(0.0)] * (N + 1) for _ in range(N + n)]
    for term in step.terms:
        table = stencils(step.samples(term), h)
        for i, (time, weight) in enumerate(zip(table.times, table.weights, strict=True)):
            gather, scatter = (
                {name: rows[i].tolist() for name, rows in of.items()} for of in (table.gather, table.scatter)
            )
            read = {"t": [t + time], "params": params, "inputs": inputs[i * step.channels : (i + 1) * step.channels]}
            for block in READ:
                begin = q if block == "q" else [0.0] * sizes[block]
                moved = (dot(gather[block], [z[place] for place in own]) for own in places[block])
                read[block] = [a + b for a, b in zip(begin, moved, strict=True)]
            at = B.at(term.slopes, read)
            if "g_q" in at and s > COARSE:
                ways = [dot(gather["q"], [z[place] for place in own]) for own in places["q"]]
                at["g"] = _unrounded(at["g"], at["g_q"], q, ways, read["q"])
            for out in GIVEN:
                if out not in at:
                    continue
                scale = 1.0 if out == "g" else weight
                slopes = {block: [scale * x for x in at[f"{out}_{block}"]] for block in READ if f"{out}_{block}" in at}
                for j, value in enumerate(at[out]):
                    # The impulse, and the equations, in which this number counts.
                    rows = [(N + j, 1.0)] if out == "f" else []
                    rows += zip(places[out][j], scatter[out], strict=True)
                    for column, number in chain([(N, scale * value)], _columns(slopes, gather, places, sizes, s, j)):
                        for row, coefficient in rows:
                            sums[row][column] = sums[row][column] + coefficient * number
    for own, momentum in zip(places["f"], p, strict=True):
        last = sums[own[s - 1]]
        last[N] = last[N] - momentum
    return B, sums[:N], sums[N:]


def _unrounded(
    g: Sequence[Value], g_q: Sequence[Value], q: Sequence[Value], ways: Sequence[Value], rounded: Sequence[Value]
) -> list[Value]:
    """g where the ways lead from q, from g where the sums of both were rounded to.

    Without what rounding took, g is zero wherever between two numbers q + z is: it may stay on the side that it came
    from, and the energy of a mass on a rod drifts. Steps of degrees up to COARSE do without: their iterations would not
    end as early.
    """
    lost, n = [(a - whole) + way for a, way, whole in zip(q, ways, rounded, strict=True)], len(q)
    return [value + dot(g_q[i * n : (i + 1) * n], lost) for i, value in enumerate(g)]


def _columns(
    slopes: Mapping[str, Sequence[Value]],
    gather: Mapping[str, Sequence[Any]],
    places: Mapping[str, Sequence[Sequence[int]]],
    sizes: Mapping[str, int],
    s: int,
    j: int,
) -> Iterator[tuple[int, Value]]:
    """The derivatives of the j-th number that a term gives at a point by the unknowns on which it depends."""
    for v in range(s):
        for blocks in (("q", "v"), ("multipliers",)):
            for k in range(sizes[blocks[0]]):
                own = [(gather[block][v], slopes[block][j * sizes[block] + k]) for block in blocks if block in slopes]
                if any(slope.known != 0 for _, slope in own):
                    yield places[blocks[0]][k][v], sum(a * slope for a, slope in own)
