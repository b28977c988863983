"""The equations of a Step at one h, as products of flint matrices; and those of its End, with constraints.

What the Programs read is linear in state and unknowns, R and the impulse I are linear in what they give, and the
derivatives of R are linear in their slopes (`step.form`). With the coefficients in matrices, made once for each h,
flint does all sums of a step:

    reading     (q; z¹ … z^s) ↦ q_i, v_i at all points of all terms
    sums        f_i, m_i ↦ R_1 … R_s without p, and I; g_i ↦ the equations that go with multipliers
    slopes      f_q, m_v, … ↦ the derivatives of all these by z and, where they are wanted, by q

The numbers are balls. That of R is as wide as rounding may have moved it, which is what `newton` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flint

from leastaction.flint.evaluate import function
from leastaction.flint.mechanics import solve
from leastaction.numbers.conversion import Balls, ball_array, identity
from leastaction.numbers.rounding import GUARD_BITS
from leastaction.program import Program
from leastaction.step.form import End, Samples, Step, Term, stencils

GIVEN = ("f", "m", "g")
KIND = {"q": 0, "v": 0, "f": 0, "m": 0, "multipliers": 1, "g": 1}  # of the size of the coordinates, or multipliers


class Sampled:
    """A term with its parameters put in: its points, and its Programs on flint numbers.

    values    what is read at a point, block after block of `inputs` ↦ the blocks `gives`
    linear    the same and behind it the slopes, such as f_q; those that are zero are left out
    place     where each of these blocks begins and ends
    """

    def __init__(self, step: Step, term: Term, params: Balls, digits: int) -> None:
        exact, known = step.samples(term, digits), dict(term.slopes.outputs)
        self.samples = Samples(*(ball_array(x) for x in (exact.tau, exact.w, exact.l, exact.dl)))
        self.r = len(self.samples.tau)
        self.inputs = [(name, size) for name, size in term.program.inputs if name != "params"]
        self.gives = [name for name in GIVEN if name in dict(term.program.outputs)]
        code = term.slopes.code
        self.slopes = [
            (out, block)
            for out in self.gives
            for block in ("q", "v", "multipliers")
            if (name := f"{out}_{block}") in known and any(code[k] != ("const", 0.0) for k in term.slopes.output(name))
        ]
        names = [*self.gives, *(f"{out}_{block}" for out, block in self.slopes)]
        self.linear = function(term.slopes, [k for name in names for k in term.slopes.output(name)], params)
        self.place: dict[str, tuple[int, int]] = {}
        end = 0
        for name in names:
            begin, end = end, end + known[name]
            self.place[name] = begin, end


class Layout:
    """The terms of a step, and where their numbers go: the same for every h.

    places    where the unknowns of each coordinate, and behind them of each multiplier, are in z
    pools     for each term and each point, the places of the numbers that it reads: behind the times lie q and v at all
              points, term by term, then the multipliers, and the inputs at the nodes
    given     these inputs, node by node: those of the step that is worked on
    """

    def __init__(self, step: Step, params: Balls, digits: int) -> None:
        n, s, m = step.n, step.s, step.multipliers
        self.n, self.s, self.N, self.sizes = n, s, s * (n + m), (n, m)
        self.terms = [Sampled(step, term, params, digits) for term in step.terms]
        self.given: Balls = []
        self.places = [range(j, s * n, n) for j in range(n)] + [range(s * n + a, self.N, m) for a in range(m)]
        total, before = sum(term.r for term in self.terms), 0
        self.pools: list[list[list[int]]] = []
        for term in self.terms:
            start = total + 2 * before * n
            first = {"t": before, "q": start, "v": start + term.r * n, "multipliers": total * (1 + 2 * n) + before * m}
            first["inputs"] = total * (1 + 2 * n + m)
            blocks = [(first[name], size) for name, size in term.inputs]
            own = [[place + i * size + k for place, size in blocks for k in range(size)] for i in range(term.r)]
            self.pools.append(own)
            before += term.r

    def order(self, out: int, block: int, width: int) -> list[int]:
        """Where the slopes of one kind by another, (ν, μ) by (j, k), stand in a matrix with rows of this width."""
        a, b, extra = self.sizes[out], self.sizes[block], width > self.N
        points = [(v, mu) for v in range(self.s + 1 - out) for mu in range(self.s + (extra and not block))]
        blocks = [(j, k) for j in range(a) for k in range(b)]
        return [self._at(out, v, j) * width + self._at(block, mu, k) for v, mu in points for j, k in blocks]

    def _at(self, kind: int, v: int, j: int) -> int:
        """The place of number j of control point v among unknowns or equations; q and the impulse stand behind them."""
        if kind:
            return self.s * self.n + v * self.sizes[1] + j
        return (v * self.n if v < self.s else self.N) + j


class Linearised(NamedTuple):
    """The equations at one z: R and I; ∂R/∂z and ∂I/∂z, (N, N) and (n, N), and by q where wanted; what they read and
    gave.
    """

    residual: Balls
    impulse: Balls
    jacobian: Any
    slope: Any
    by_q: tuple[Any, Any] | None
    points: list[list[Balls]]
    values: list[list[Balls]]


class Sum:
    """Σ c x over blocks x of what the terms give at their points: a list c of coefficients for each block."""

    def __init__(self, parts: list[tuple[int, int, tuple[int, int], Balls]]) -> None:
        self._matrix = _matrix([c for *_, c in parts]).transpose()
        self._parts: list[list[int]] = []
        for j, i, (begin, end), _ in parts:
            last = self._parts[-1] if self._parts else []
            if last[:2] == [j, i] and last[3] == begin:
                last[3] = end
            else:
                self._parts.append([j, i, begin, end])

    def __call__(self, values: Sequence[Sequence[Balls]], size: int, columns: int = 1) -> Balls:
        """The entries of the sum, where the numbers of a block of this size are rows of so many columns."""
        x: Balls = []
        for j, i, begin, end in self._parts:
            x += values[j][i][begin * columns : end * columns]
        width = size * columns
        return list((self._matrix * flint.arb_mat(len(x) // width, width, x)).entries())


class Equations:
    """The equations of a step at h, with derivatives by z and, if `by_q`, by q at fixed z."""

    def __init__(self, layout: Layout, h: Any, by_q: bool = False) -> None:
        self.layout, self.h, self._width, self._bits = layout, h, layout.N + by_q * layout.n, flint.ctx.prec
        tables = [stencils(term.samples, h) for term in layout.terms]
        self._times = [x.mid() for table in tables for x in table.times]
        self._reading = _matrix(
            [[flint.arb(int(name == "q")), *row] for table in tables for name in "qv" for row in table.gather[name]]
        )
        self._multipliers = _matrix([row for table in tables for row in table.gather["multipliers"].tolist()])
        sums: dict[int, list[Any]] = {}
        slopes: dict[tuple[int, int], list[Any]] = {}
        for j, (term, table) in enumerate(zip(layout.terms, tables, strict=True)):
            for i in range(term.r):
                given = {out: _scatter(table, out, i) for out in term.gives}
                for out, c in given.items():
                    sums.setdefault(KIND[out], []).append((j, i, term.place[out], c))
                for out, block in term.slopes:
                    read = table.gather[block][i].tolist() + [flint.arb(int(block == "q"))] * (by_q and not KIND[block])
                    c = [a * b for a in given[out] for b in read]
                    slopes.setdefault((KIND[out], KIND[block]), []).append((j, i, term.place[f"{out}_{block}"], c))
        self._sums = {kind: Sum(parts) for kind, parts in sums.items()}
        self._slopes = {pair: (Sum(parts), layout.order(*pair, self._width)) for pair, parts in slopes.items()}

    def linearised(self, t: Any, q: Balls, p: Balls, z: Balls) -> Linearised:
        layout, width = self.layout, self._width
        (n, m), s, N = layout.sizes, layout.s, layout.N
        working, flint.ctx.prec = flint.ctx.prec, self._bits  # t may be 10³⁰
        pool = [t + time for time in self._times]
        flint.ctx.prec = working
        pool += (self._reading * flint.arb_mat(s + 1, n, q + z[: s * n])).entries()
        if m:
            pool += (self._multipliers * flint.arb_mat(s, m, z[s * n :])).entries()
        pool += layout.given
        points = [[[pool[k] for k in places] for places in own] for own in layout.pools]
        values = [[term.linear(*point) for point in at] for term, at in zip(layout.terms, points, strict=True)]
        residual, impulse = self.sums(values)
        for j in range(n):
            residual[(s - 1) * n + j] -= p[j]
        entries = [flint.arb(0)] * ((N + n) * width)
        for (out, block), (total, order) in self._slopes.items():
            for place, x in zip(order, total(values, layout.sizes[out] * layout.sizes[block]), strict=True):
                entries[place] = x
        if width == N:
            jacobian, slope = flint.arb_mat(N, N, entries[: N * N]), flint.arb_mat(n, N, entries[N * N :])
            return Linearised(residual, impulse, jacobian, slope, None, points, values)
        whole, within, behind = flint.arb_mat(N + n, width, entries), slice(N), slice(N, None)
        by_q = part(whole, within, behind), part(whole, behind, behind)
        jacobian, slope = part(whole, within, within), part(whole, behind, within)
        return Linearised(residual, impulse, jacobian, slope, by_q, points, values)

    def sums(self, values: Sequence[Sequence[Balls]], columns: int = 1) -> tuple[Balls, Balls]:
        """What the values of the terms, point by point, add to the equations without p, and to the impulse; with
        several columns each value is a row of so many numbers.
        """
        n, m = self.layout.sizes
        rows = self._sums[0](values, n, columns)
        end = self.layout.s * n * columns
        return rows[:end] + (self._sums[1](values, m, columns) if m else []), rows[end:]


def part(A: Any, rows: slice = slice(None), columns: slice = slice(None)) -> Any:
    """These rows and columns of a matrix."""
    return flint.arb_mat([row[columns] for row in A.tolist()[rows]])


def _scatter(table: Any, out: str, i: int) -> Balls:
    """The part of a number given at point i in the equations ν = 1 … s and, except for g, in the impulse."""
    row = table.scatter[out][i].tolist()
    if out == "g":
        return list(row)
    weight = table.weights[i]
    return [weight * x for x in row] + [weight if out == "f" else flint.arb(0)]


def _matrix(rows: Any) -> Any:
    return flint.arb_mat([list(row) for row in rows]).mid()


class Settled(NamedTuple):
    """The end of a step on the constraints: Gᵀμ, by which the momentum changes, v, and μ."""

    push: Balls
    v: Balls
    mu: Balls


class Ending:
    """The equations of an End with their parameters put in: n coordinates, m multipliers."""

    def __init__(self, end: End, n: int, m: int, params: Balls, bits: int) -> None:
        self.n, self.m, self._bits = n, m, bits
        self._values = _by_name(end.program, params)
        self._slopes = _by_name(end.slopes, params)

    def settle(self, t: Any, q: Balls, p: Balls, v: Balls) -> Settled | None:
        """e(v, μ) = p, c(v) = 0 by Newton, from the guess v, until the increment of v is below the last digit.

        None where it is not solved, or where a last digit decides whether the constraints depend on each other: with
        D_i = Σ_j G_ij²/m_jj the number i of D (G M⁻¹Gᵀ)⁻¹ is one over the square of the sine between row i and others.
        """
        n, m, digit, mu = self.n, self.m, flint.arb((1, GUARD_BITS - self._bits)), [flint.arb(0)] * self.m
        for _ in range(self._bits):
            at = self._values(t, *q, *v, *mu)
            inverse = solve(self._saddle(at), identity(n + m))
            if inverse is None:
                return None
            for i in range(m):
                pairs = zip(at["c_v"][i * n : (i + 1) * n], at["e_v"][:: n + 1], strict=True)
                D = sum((x * x / abs(mass) for x, mass in pairs if not mass.is_zero()), flint.arb(0))
                if not abs(D * inverse[n + i, n + i]) * digit < 1:
                    return None
            right = [a - b for a, b in zip(p, at["e"], strict=True)] + [-x for x in at["c"]]
            step = (inverse * flint.arb_mat(n + m, 1, right)).entries()
            v = [(a + b).mid() for a, b in zip(v, step, strict=False)]
            mu = [(a + b).mid() for a, b in zip(mu, step[n:], strict=True)]
            if all(a.abs_lower() <= abs(b) * digit for a, b in zip(step, v, strict=False)):
                push = flint.arb_mat(m, n, at["c_v"]).transpose() * flint.arb_mat(m, 1, mu)
                return Settled(list(push.mid().entries()), v, mu)
        return None

    def _saddle(self, at: dict[str, Balls]) -> Any:
        """(e_v, −c_vᵀ; c_v, 0)."""
        n, m, mass, G = self.n, self.m, at["e_v"], at["c_v"]
        rows = [mass[j * n : (j + 1) * n] + [-x for x in G[j::n]] for j in range(n)]
        return flint.arb_mat(rows + [G[i * n : (i + 1) * n] + [flint.arb(0)] * m for i in range(m)])

    def carried(self, t: Any, q: Balls, settled: Settled, D: Any, when: Any, P: int) -> Any:
        """(dq⁺, dp⁻) in the columns of D ↦ (dq⁺, dp⁺). With P ≥ 0 the last P + 1 columns vary the parameters and h.

        h changes the time, dt⁺ = `when` dh. With (e_v, −Gᵀ; G, 0) (dv, dμ) = (dp⁻, 0) − (e, c)_q dq⁺ − (e, c)_t dt⁺
        − (e, c)_w dw the result is dp⁺ = m_q dq⁺ + m_v dv + m_t dt⁺ + m_w dw.
        """
        n, m, C, at = self.n, self.m, D.ncols(), self._slopes(t, *q, *settled.v, *settled.mu)
        dq, none = part(D, slice(n)), [flint.arb(0)] * (C - P - 1)

        def along(name: str, size: int) -> Any:
            change = flint.arb_mat(size, n, at[f"{name}_q"]) * dq
            if P < 0:
                return change
            by_t, by_w = at[f"{name}_t"], at[f"{name}_w"]
            return change + flint.arb_mat([[*none, *by_w[j * P : (j + 1) * P], by_t[j] * when] for j in range(size)])

        right = (part(D, slice(n, None)) - along("e", n)).tolist() + (-along("c", m)).tolist()
        dp = along("m", n) + flint.arb_mat(n, n, at["e_v"]) * part(
            solve(self._saddle(at), flint.arb_mat(right)), slice(n)
        )
        return flint.arb_mat(dq.tolist() + dp.tolist()).mid()


def _by_name(program: Program, params: Balls) -> Callable[..., dict[str, Balls]]:
    """A program as a function that gives its blocks by name."""
    f = function(program, program.results, params)

    def blocks(*given: Any) -> dict[str, Balls]:
        values = f(*given)
        return {name: values[program.output_slice(name)] for name, _ in program.outputs}

    return blocks
