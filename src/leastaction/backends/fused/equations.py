"""The equations of a step written out: every number a value of a Builder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from leastaction.program import Builder, Value, dot
from leastaction.step.form import Step, stencils

READ, GIVEN = ("q", "v", "multipliers"), ("f", "m", "g")
COARSE = 2  # of steps of at most this degree truncation hides what rounding does


@dataclass(frozen=True)
class Equations:
    """Values of a Builder with inputs (t, h, q, p, z, params, inputs): R and the impulse, and their derivatives.

    jacobian        ∂R/∂z, row by row; rows and columns ν n + j, and multipliers behind all increments
    impulse_slope   the same of the impulse
    mass            m_v at the first node, row by row
    """

    B: Builder
    residual: list[Value]
    impulse: list[Value]
    jacobian: list[list[Value]]
    impulse_slope: list[list[Value]]
    mass: list[Value]


def short_dot(row: Sequence[Value], x: Sequence[Value]) -> Value:
    """Σ_k row_k x_k by halves: two short chains of sums wait less than a long one."""
    nothing = row[0].B.number(0.0)
    terms = [a * y for a, y in zip(row, x, strict=True) if a.known != 0 and y.known != 0]
    while len(terms) > 2:
        terms = [sum(terms[k : k + 2], nothing) for k in range(0, len(terms), 2)]
    return sum(terms, nothing)


def equations(step: Step) -> Equations:
    """The equations of a step, swept term by term and point by point."""
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
    # Rows are those of R, and behind them those of the impulse; behind N columns of derivatives are they themselves.
    sums = [[B.number(0.0)] * (N + 1) for _ in range(N + n)]
    mass: list[Value] = []
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
            mass = mass or at.get("m_v", [])
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
    R, impulse = ([row[N] for row in part] for part in (sums[:N], sums[N:]))
    jacobian, slope = ([row[:N] for row in part] for part in (sums[:N], sums[N:]))
    return Equations(B, R, impulse, jacobian, slope, mass)


def _unrounded(
    g: Sequence[Value], g_q: Sequence[Value], q: Sequence[Value], ways: Sequence[Value], rounded: Sequence[Value]
) -> list[Value]:
    """g where the ways lead from q, from g where the sums of both were rounded to.

    Without what rounding took, g is zero wherever between two numbers q + z is: it may stay on the side that it came
    from, and the energy of a mass on a rod drifts. Steps of degrees up to COARSE, whose truncation hides the drift, do
    without: their iterations would not end as early.
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
