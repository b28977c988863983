"""The equations of a step written out: every number a value of a Builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leastaction.program import Builder, Value, indices
from leastaction.step.form import Step, stencils


@dataclass(frozen=True)
class Equations:
    """Values of a Builder with inputs (t, h, q, p, z, params, inputs): R and the impulse, and their derivatives.

    jacobian        ∂R/∂z, row by row; rows and columns ν n + j, and multipliers behind all increments
    impulse_slope   the same of the impulse
    by_q            ∂R/∂q, impulse_by_q that of the impulse
    mass            m_v at the first node, row by row
    """

    B: Builder
    residual: list[int]
    impulse: list[int]
    jacobian: list[list[int]]
    impulse_slope: list[list[int]]
    by_q: list[list[int]]
    impulse_by_q: list[list[int]]
    mass: list[int]


class _Sums:
    """Sums in the making: entries begin with zero."""

    def __init__(self, B: Builder, rows: int, columns: int) -> None:
        self.B, self.rows = B, [[B.const(0.0)] * columns for _ in range(rows)]

    def add(self, i: int, j: int, coefficient: int, value: int) -> None:
        self.rows[i][j] = self.B.add(self.rows[i][j], self.B.mul(coefficient, value))


def dot(B: Builder, row: Sequence[int], x: Sequence[int]) -> int:
    return B.sum(B.mul(a, y) for a, y in zip(row, x, strict=True))


def short_dot(B: Builder, row: Sequence[int], x: Sequence[int]) -> int:
    """The same by halves: two short chains of sums wait less than a long one."""
    terms = [B.mul(a, y) for a, y in zip(row, x, strict=True) if B.constant(a) != 0 and B.constant(y) != 0]
    while len(terms) > 2:
        terms = [B.sum(terms[k : k + 2]) for k in range(0, len(terms), 2)]
    return B.sum(terms)


def equations(step: Step) -> Equations:
    """The equations of a step, swept term by term and point by point."""
    n, s, m = step.n, step.s, step.multipliers
    N = s * (n + m)
    B = Builder([("t", 1), ("h", 1), ("q", n), ("p", n), ("z", N), ("params", step.params), ("inputs", step.driven)])
    (t,), (h,), q, p, z, params, inputs = (B.input(name) for name, _ in B.inputs)
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
    mass: list[int] = []
    for term in step.terms:
        table = stencils(step.samples(term), Value(B, h))
        for i, (time, weight) in enumerate(zip(indices(table.times, B), indices(table.weights, B), strict=True)):
            gather = {name: indices(rows[i], B) for name, rows in table.gather.items()}
            scatter = {name: indices(rows[i], B) for name, rows in table.scatter.items()}
            own = inputs[i * step.channels : (i + 1) * step.channels]
            read = {"t": [B.add(t, time)], "params": params, "inputs": own}
            for block in ("q", "v", "multipliers"):
                base = q if block == "q" else [B.const(0.0)] * sizes[block]
                read[block] = [
                    B.add(base[k], dot(B, gather[block], [z[place] for place in places[block][k]]))
                    for k in range(sizes[block])
                ]
            at = B.inline(term.slopes, **{name: read[name] for name, _ in term.slopes.inputs})
            mass = mass or at.get("m_v", [])
            if "g_q" in at:
                ways = [dot(B, gather["q"], [z[place] for place in own]) for own in places["q"]]
                at["g"] = _unrounded(B, at["g"], at["g_q"], q, ways, read["q"])
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
                            if B.constant(slope) == 0:
                                continue
                            if out == "f":
                                I_by_q.add(j, k, one, slope)
                            for v in range(s):
                                by_q.add(places[out][j][v], k, scatter[out][v], slope)
    for j in range(n):
        last = R.rows[places["f"][j][s - 1]]
        last[0] = B.sub(last[0], p[j])
    return Equations(B, [x for (x,) in R.rows], [x for (x,) in I.rows], J.rows, G.rows, by_q.rows, I_by_q.rows, mass)


def _unrounded(
    B: Builder, g: Sequence[int], g_q: Sequence[int], q: Sequence[int], ways: Sequence[int], rounded: Sequence[int]
) -> list[int]:
    """g where the ways lead from q, from g where the sums of both were rounded to.

    Without what rounding took, g is zero wherever between two numbers q + z is: it may stay on the side that it came
    from, and the energy of a mass on a rod drifts.
    """
    lost, n = [B.add(B.sub(a, sum_), way) for a, way, sum_ in zip(q, ways, rounded, strict=True)], len(q)
    return [B.add(value, dot(B, g_q[i * n : (i + 1) * n], lost)) for i, value in enumerate(g)]


def _columns(
    B: Builder,
    slopes: dict[str, list[int]],
    gather: dict[str, list[int]],
    places: dict[str, list[list[int]]],
    sizes: dict[str, int],
    s: int,
    j: int,
) -> Iterator[tuple[int, int]]:
    """The derivatives of the j-th number that a term gives at a point by the unknowns on which it depends."""
    n, m = sizes["q"], sizes["multipliers"]
    for v in range(s):
        for k in range(n):
            own = [(block, slopes[block][j * n + k]) for block in ("q", "v") if block in slopes]
            if any(B.constant(slope) != 0 for _, slope in own):
                yield places["q"][k][v], B.sum(B.mul(gather[block][v], slope) for block, slope in own)
        if "multipliers" in slopes:
            for k in range(m):
                yield places["multipliers"][k][v], B.mul(gather["multipliers"][v], slopes["multipliers"][j * m + k])
