"""The equations of a Step at one h, swept as products of flint matrices.

What the Programs read is linear in state and unknowns, R and the impulse are linear in what the Programs give, and the
derivatives of R by the unknowns are linear in their slopes (`step.form`). With the coefficients in matrices, made once
for each h, flint does all sums of a step at its own speed:

    reading     (q; z¹ … z^s) ↦ q_i, v_i at all points of all terms
    scatter     f_i, m_i ↦ R_1 … R_s without p, and the impulse; g_i ↦ the equations that go with multipliers
    jacobian    slopes such as f_q, m_v ↦ blocks (ν, μ) of ∂R/∂z, and blocks μ of that of the impulse
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import flint

from leastaction.backends.flint.evaluate import function
from leastaction.backends.flint.sizes import ROUGH, lengths
from leastaction.numbers.conversion import Balls, ball_array, identity
from leastaction.step.form import Samples, Stencils, Step, Term, stencils
from leastaction.step.kronecker import short_pivots

READ = ("q", "v", "multipliers")
GIVEN = ("f", "m", "g")
# Blocks are of one of two sizes: that of the coordinates, or that of the multipliers.
KIND = {"q": 0, "v": 0, "f": 0, "m": 0, "multipliers": 1, "g": 1}


class Sampled:
    """A term with its parameters put in: its points, and its Programs on flint numbers.

    values    what is read at a point, block after block of `inputs` ↦ the blocks `gives`
    linear    the same and behind it the slopes, in the order of `slopes`; those that are zero are left out
    """

    def __init__(self, step: Step, term: Term, params: Balls, digits: int) -> None:
        exact = step.samples(term, digits)
        self.samples = Samples(*(ball_array(x) for x in (exact.tau, exact.w, exact.l, exact.dl)))
        self.r = len(self.samples.tau)
        self.inputs = [name for name, _ in term.program.inputs if name != "params"]
        self.gives = [name for name in GIVEN if name in dict(term.program.outputs)]
        pairs = [(out, block) for out in self.gives for block in READ]
        self.slopes = [pair for pair in pairs if _varies(term, "_".join(pair))]
        names = [*self.gives, *("_".join(pair) for pair in self.slopes)]
        self.values = function(term.program, [k for name in self.gives for k in term.program.output(name)], params)
        self.linear = function(term.slopes, [k for name in names for k in term.slopes.output(name)], params)


def _varies(term: Term, name: str) -> bool:
    """Whether there is such a slope, and not all of it is zero."""
    known = name in dict(term.slopes.outputs)
    return known and any(term.slopes.code[k] != ("const", 0.0) for k in term.slopes.output(name))


@dataclass(frozen=True, eq=False)
class Node:
    """What a term read at a point and what it gave there, by name: numbers, and slopes f_q, f_v, … row by row."""

    term: int
    i: int
    read: dict[str, Balls]
    gave: dict[str, Balls]
    slopes: dict[tuple[str, str], Balls]


class Linearised(NamedTuple):
    """The equations at one z: R, the impulse; ∂R/∂z, its entries row by row, and its inverse, None where singular or
    not asked for; ∂(impulse)/∂z; what they are made of.
    """

    residual: Balls
    impulse: Balls
    jacobian: Any
    entries: Balls
    inverse: Any
    slope: Any
    points: list[list[Balls]]
    values: list[list[Balls]]

    @property
    def negative(self) -> bool:
        """Whether the determinant of ∂R/∂z is negative."""
        return bool(self.jacobian.mid().det() < 0)


class Layout:
    """The terms of a step, and where their numbers go; the same for every h.

    places    where the unknowns of each coordinate, and behind them of each multiplier, are in z
    pools     for each term and each point, the places of the numbers that it reads: behind the times lie q and v at all
              points, term by term, then the multipliers, and the inputs at the nodes
    given     these inputs, node by node: those of the step that is worked on
    forces    how many of the blocks that each term gives go to R_1 … R_s
    short     the pivots of A (`step.kronecker`)
    """

    def __init__(self, step: Step, params: Balls, digits: int) -> None:
        n, s, m = step.n, step.s, step.multipliers
        self.terms = [Sampled(step, term, params, digits) for term in step.terms]
        self.n, self.s, self.N = n, s, s * (n + m)
        self.checked, self.branching, self.short = step.checked, step.branching, short_pivots(step.method).tolist()
        self.sizes, self.channels = (n, m), step.channels
        self.given: Balls = []
        self.places = [range(j, s * n, n) for j in range(n)] + [range(s * n + a, self.N, m) for a in range(m)]
        self.pools = self._where_read()
        self.forces = [sum(out != "g" for out in term.gives) for term in self.terms]
        pairs = {(KIND[out], KIND[block]) for term in self.terms for out, block in term.slopes}
        self.orders = {pair: self._row_by_row(*pair) for pair in pairs}
        self.runs = [self._runs(term) for term in self.terms]
        self.identity = identity(self.N)

    def _where_read(self) -> list[list[list[int]]]:
        n, m = self.sizes
        size = {"t": 1, "q": n, "v": n, "multipliers": m, "inputs": self.channels}
        total, before, found = sum(term.r for term in self.terms), 0, []
        for term in self.terms:
            start = total + 2 * before * n
            first = {"t": before, "q": start, "v": start + term.r * n, "multipliers": total * (1 + 2 * n) + before * m}
            first["inputs"] = total * (1 + 2 * n + m)
            blocks = [(first[name], size[name]) for name in term.inputs]
            found.append(
                [[place + i * width + k for place, width in blocks for k in range(width)] for i in range(term.r)]
            )
            before += term.r
        return found

    def _row_by_row(self, out: int, block: int) -> list[int]:
        """Where the entries of a matrix with rows (ν, j) and columns (μ, k) are in the product, (ν, μ) by (j, k)."""
        a, b, s = self.sizes[out], self.sizes[block], self.s
        rows = ((v, j) for v in range(s if out else s + 1) for j in range(a))  # behind R_1 … R_s is the impulse
        return [((v * s + m) * a + j) * b + k for v, j in rows for m in range(s) for k in range(b)]

    def _runs(self, term: Sampled) -> list[tuple[tuple[int, int], int, int]]:
        """Where a term's slopes are among its values: runs of one kind."""
        runs: list[tuple[tuple[int, int], int, int]] = []
        start = sum(self.sizes[KIND[out]] for out in term.gives)
        for out, block in term.slopes:
            pair = KIND[out], KIND[block]
            end = start + self.sizes[pair[0]] * self.sizes[pair[1]]
            if runs and runs[-1][0] == pair:
                runs[-1] = pair, runs[-1][1], end
            else:
                runs.append((pair, start, end))
            start = end
        return runs


class Equations(Protocol):
    """Equations that `iteration` solves.

    places   where the unknowns of each coordinate are in z
    short    pivots of these equations at h → 0, of one coordinate with mass one
    """

    layout: Layout
    h: Any
    n: int
    s: int
    N: int
    places: list[range]
    short: list[float]

    def residual(self, t: Any, q: Balls, p: Balls, z: Balls) -> tuple[Balls, Balls]: ...
    def linearised(self, t: Any, q: Balls, p: Balls, z: Balls) -> Linearised: ...
    def noise(self, p: Balls, at: Linearised) -> Balls: ...
    def mass(self, at: Linearised) -> Balls: ...


class Sweep:
    """The equations of a step at h, evaluated."""

    def __init__(self, layout: Layout, h: Any) -> None:
        self.layout, self.h = layout, h
        self.n, self.s, self.N, self.sizes, self.terms = layout.n, layout.s, layout.N, layout.sizes, layout.terms
        self.places, self.short = layout.places[: self.n], layout.short
        self.stencils = [stencils(term.samples, h) for term in layout.terms]
        self._times = [x.mid() for table in self.stencils for x in table.times]
        self._reading = _matrix(_rows_read(self.stencils))
        self._multipliers = _matrix(_rows_multipliers(self.stencils))
        scatter: tuple[list[Balls], list[Balls]] = ([], [])
        jacobian: dict[tuple[int, int], list[Balls]] = {pair: [] for pair in layout.orders}
        for term, table in zip(layout.terms, self.stencils, strict=True):
            for i in range(term.r):
                given = {out: _parts(table, out, i) for out in term.gives}
                for out in term.gives:
                    scatter[KIND[out]].append(given[out])
                for out, block in term.slopes:
                    read = table.gather[block][i].tolist()
                    jacobian[KIND[out], KIND[block]].append([a * b for a in given[out] for b in read])
        self._scatter = [_matrix(columns).transpose() for columns in scatter if columns]
        self._jacobian = {pair: _matrix(columns).transpose() for pair, columns in jacobian.items()}

    def residual(self, t: Any, q: Balls, p: Balls, z: Balls) -> tuple[Balls, Balls]:
        """R and the impulse."""
        points = self._points(t, q, z)
        values = [[term.values(*point) for point in at] for term, at in zip(self.terms, points, strict=True)]
        return self._equations(values, p)

    def linearised(self, t: Any, q: Balls, p: Balls, z: Balls, inverted: bool = True) -> Linearised:
        """R and the impulse, and their derivatives by z."""
        points = self._points(t, q, z)
        values = [[term.linear(*point) for point in at] for term, at in zip(self.terms, points, strict=True)]
        entries, slope = self._derivatives(values)
        jacobian = flint.arb_mat(self.N, self.N, entries)
        inverse = None
        if inverted:
            with suppress(ZeroDivisionError):
                inverse = jacobian.solve(self.layout.identity, algorithm="approx").mid()
        return Linearised(*self._equations(values, p), jacobian, entries, inverse, slope, points, values)

    def by_position(self, at: Linearised) -> tuple[Any, Any]:
        """∂R/∂q and ∂(impulse)/∂q at fixed z: the sweep with a column for each coordinate."""
        n, values = self.n, [[] for _ in self.terms]  # type: tuple[int, list[list[Balls]]]
        for node in self.nodes(at):
            none = [flint.arb(0)] * (n * n)
            values[node.term].append([x for out in node.gave for x in node.slopes.get((out, "q"), none)])
        R, impulse = self.scatter(values, n)
        return flint.arb_mat(self.N, n, R), flint.arb_mat(n, n, impulse)

    def mass(self, at: Linearised) -> Balls:
        """m_v at the first node, row by row."""
        for j, (term, runs) in enumerate(zip(self.terms, self.layout.runs, strict=True)):
            if ("m", "v") in term.slopes:
                before = term.slopes.index(("m", "v"))
                start = runs[0][1] + sum(self.sizes[KIND[a]] * self.sizes[KIND[b]] for a, b in term.slopes[:before])
                return at.values[j][0][start : start + self.n**2]
        return [flint.arb(0)] * self.n**2

    def nodes(self, at: Linearised) -> Iterator[Node]:
        """What was read and given, by name."""
        size = {"t": 1, "inputs": self.layout.channels} | {name: self.sizes[kind] for name, kind in KIND.items()}
        for j, term in enumerate(self.terms):
            for i, (point, values) in enumerate(zip(at.points[j], at.values[j], strict=True)):
                read = _cut(point, {name: size[name] for name in term.inputs})
                gave = _cut(values, {name: size[name] for name in term.gives})
                rest = values[sum(map(len, gave.values())) :]
                yield Node(j, i, read, gave, _cut(rest, {(a, b): size[a] * size[b] for a, b in term.slopes}))

    def scatter(
        self, values: Sequence[Sequence[Balls]], columns: int = 1, absolute: bool = False
    ) -> tuple[Balls, Balls]:
        """What the values of the terms, point by point, add to the equations without p, and to the impulse: N and n
        rows.

        With several columns each value is a row of so many numbers. `absolute`: with absolute values of all
        coefficients.
        """
        n, m = self.n * columns, self.sizes[1] * columns
        forces: Balls = []
        held: Balls = []
        for term, count, at in zip(self.terms, self.layout.forces, values, strict=True):
            end = count * n
            for numbers in at:
                forces += numbers[:end]
                if m and term.gives[-1] == "g":
                    held += numbers[end : end + m]
        coefficients = [_absolute(A) for A in self._scatter] if absolute else self._scatter
        rows = (coefficients[0] * flint.arb_mat(len(forces) // n, n, forces)).entries()
        impulse = rows[self.s * n :]
        del rows[self.s * n :]
        if m:
            rows += (coefficients[1] * flint.arb_mat(len(held) // m, m, held)).entries()
        return rows, impulse

    def noise(self, p: Balls, at: Linearised) -> Balls:
        """For each coordinate the sizes from which its z is summed: rounding changes z by units in their last place."""
        return spread(self, at, self.summed(p, at))

    def summed(self, p: Balls, at: Linearised) -> Balls:
        """The sizes from which R is summed.

        What a Program reads and what it gives is rounded: with |f| + |f_q| |q_i| + |f_v| |v_i| in place of f, likewise
        for m and g, and with absolute values of all coefficients, R bounds the sizes from which it is summed.
        """
        before, flint.ctx.prec = flint.ctx.prec, ROUGH
        values: list[list[Balls]] = [[] for _ in self.terms]
        for node in self.nodes(at):
            total = {out: [abs(x) for x in given] for out, given in node.gave.items()}
            for (out, block), slope in node.slopes.items():
                read = node.read[block]
                for k, a in enumerate(slope):
                    total[out][k // len(read)] += abs(a * read[k % len(read)])
            values[node.term].append([x.mid() for sizes in total.values() for x in sizes])
        rows, _ = self.scatter(values, absolute=True)
        for j in range(self.n):
            rows[(self.s - 1) * self.n + j] += abs(p[j])
        flint.ctx.prec = before
        return rows

    def _points(self, t: Any, q: Balls, z: Balls) -> list[list[Balls]]:
        """What the Program of every term reads at every point, block after block."""
        (n, m), s = self.sizes, self.s
        pool = [t + time for time in self._times]
        pool += (self._reading * flint.arb_mat(s + 1, n, q + z[: s * n])).mid().entries()
        if m:
            pool += (self._multipliers * flint.arb_mat(s, m, z[s * n :])).mid().entries()
        pool += self.layout.given
        return [[[pool[k] for k in places] for places in points] for points in self.layout.pools]

    def _equations(self, values: list[list[Balls]], p: Balls) -> tuple[Balls, Balls]:
        """R and the impulse, from what the terms gave."""
        rows, impulse = self.scatter(values)
        last = (self.s - 1) * self.n
        for j in range(self.n):
            rows[last + j] -= p[j]
        return rows, impulse

    def _derivatives(self, values: list[list[Balls]]) -> tuple[Balls, Any]:
        """∂R/∂z, its entries row by row, and ∂(impulse)/∂z, from the slopes."""
        slopes: dict[tuple[int, int], Balls] = {pair: [] for pair in self._jacobian}
        for runs, at in zip(self.layout.runs, values, strict=True):
            for numbers in at:
                for pair, start, end in runs:
                    slopes[pair] += numbers[start:end]
        blocks = {}
        for pair, numbers in slopes.items():
            size = self.sizes[pair[0]] * self.sizes[pair[1]]
            entries = (self._jacobian[pair] * flint.arb_mat(len(numbers) // size, size, numbers)).entries()
            blocks[pair] = [entries[k] for k in self.layout.orders[pair]]
        n, N, own = self.n, self.N, self.s * self.n
        entries = _joined(blocks, own, N - own) if self.sizes[1] else blocks[0, 0]
        # The rows of the impulse are behind those of R_1 … R_s.
        equations = entries[: own * N] + entries[(own + n) * N :]
        return equations, flint.arb_mat(n, N, entries[own * N : (own + n) * N])


def spread(equations: Equations, at: Linearised, rows: Balls) -> Balls:
    """By how much, at most, R of these sizes moves each coordinate."""
    before, flint.ctx.prec = flint.ctx.prec, ROUGH
    moved = (_absolute(at.inverse) * flint.arb_mat(equations.N, 1, rows)).mid().entries()
    flint.ctx.prec = before
    return lengths(equations.places, moved)


def _rows_read(tables: Sequence[Stencils]) -> list[Balls]:
    """The rows that give, for every term, q_i at all points, then v_i, from (q; z¹ … z^s)."""
    return [
        [flint.arb(int(name == "q")), *row] for table in tables for name in ("q", "v") for row in table.gather[name]
    ]


def _rows_multipliers(tables: Sequence[Stencils]) -> list[Balls]:
    """The rows that give, for every term, the multipliers at all points, from all multipliers."""
    return [row for table in tables for row in table.gather["multipliers"].tolist()]


def _parts(table: Stencils, out: str, i: int) -> Balls:
    """The part of a number given at point i in the equations ν = 1 … s and, except for g, in the impulse."""
    row = table.scatter[out][i].tolist()
    if out == "g":
        return row
    weight = table.weights[i]
    return [weight * x for x in row] + [weight if out == "f" else flint.arb(0)]


def _joined(blocks: dict[tuple[int, int], Balls], own: int, others: int) -> Balls:
    """The entries of a matrix of two by two blocks, row by row; those that are missing are zero."""
    rows: Balls = []
    for out in (0, 1):
        widths = [(blocks.get((out, block)), width) for block, width in enumerate((own, others))]
        for i in range(max(len(entries) // width for entries, width in widths if entries)):
            for entries, width in widths:
                rows += entries[i * width : (i + 1) * width] if entries else [flint.arb(0)] * width
    return rows


def _cut(values: Balls, sizes: dict[Any, int]) -> dict[Any, Balls]:
    """The values, block after block."""
    blocks, start = {}, 0
    for name, size in sizes.items():
        blocks[name] = values[start : start + size]
        start += size
    return blocks


def _matrix(rows: Any) -> Any:
    return flint.arb_mat([list(row) for row in rows]).mid()


def _absolute(A: Any) -> Any:
    return flint.arb_mat(A.nrows(), A.ncols(), [abs(x) for x in A.entries()])
