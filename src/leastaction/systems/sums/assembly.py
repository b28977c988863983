"""Assembly: what a sum over rows of tables gives at one point, of all terms together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.sum_cells import Cells, cells_of
from leastaction.engine.sum_jobs import ZERO, Blocks, Evaluation, Strips, padded
from leastaction.kernel import Write, native_lanes
from leastaction.program import Builder, Program, dot
from leastaction.step.constraints import geometry, rate
from leastaction.step.form import Summand
from leastaction.trace import derivatives, jacobian

FloatArray = NDArray[np.float64]
Constraint = tuple[Summand, Program]  # whose coordinates and parameters, and (t, q, params) ↦ g
MOST_ITERATIONS = 50
EPS = 2.0**-52
SETTLED = 1e-9  # an increment of a velocity so small, relative to it, is rounding if it shrinks no more
ROUGH = 64 * EPS  # of what momenta move a velocity by: what their rounding does


class Assembly:
    """What is summed over the rows of all terms, at one point at a time."""

    def __init__(self, n: int, summands: Sequence[Summand], constraints: Sequence[Constraint] = ()) -> None:
        self.n, self.summands = n, tuple(summands)
        self._constraints = tuple(constraints)
        self.m = sum(len(summand.rows) * g.output_size for summand, g in constraints)
        # Multipliers are further coordinates, behind the last vector of the others.
        self.size = padded(n) + self.m if self.m else n

    @cached_property
    def held(self) -> list[Summand]:
        """The constraints as summands λ·g of coordinates and multipliers: what they give is Gᵀλ, and g."""
        found, begin = [], padded(self.n)
        for summand, g in self._constraints:
            R, j = len(summand.rows), g.output_size
            multipliers = begin + np.arange(R * j).reshape(R, j)
            begin += R * j
            found.append(held_summand(summand, g, np.concatenate([summand.rows, multipliers], axis=1)))
        return found

    def of_rows(self, make: Callable[[Program], Program], held: bool = False) -> list[Strips]:
        """The sum over rows of m numbers that a Program makes of constraints, where g is, or, without `held`, one
        after the other.
        """
        found, begin = [], padded(self.n) if held else 0
        programs = [make(g) for _, g in self._constraints]
        for (summand, _), program in zip(self._constraints, programs, strict=True):
            (R, k), count = summand.rows.shape, program.output_size
            places = begin + np.arange(R * count).reshape(R, count)
            begin += R * count
            writes = [Write("f", k + i) for i in range(count)]
            found.append(Strips.of(summand, program, writes, places))
        return found

    def at(self, params: FloatArray) -> At:
        """The Assembly with these parameters."""
        return At(self, params)

    @cached_property
    def cells(self) -> Cells:
        """Which rows are added together."""
        tables = [summand.rows for summand in (*self.summands, *self.held)]
        return cells_of(self.size, tables, native_lanes(), whole=self.m > 0)

    @cached_property
    def gradient(self) -> Evaluation:
        return Evaluation(self.size, self._gradient("f", "m"), (self.size, self.size))

    def _gradient(self, *blocks: str) -> list[Strips]:
        return self._strips(self.summands, self.cells.of[: len(self.summands)], *blocks)

    @cached_property
    def reactions(self) -> list[Strips]:
        """The sum of what constraints give: Gᵀλ, and g."""
        return self._strips(self.held, self.cells.of[len(self.summands) :], "f")

    @cached_property
    def reacting(self) -> Evaluation:
        return Evaluation(self.size, self.reactions, (self.size, self.size))

    def _strips(self, summands: Sequence[Summand], cells: Sequence[NDArray[np.int64]], *blocks: str) -> list[Strips]:
        """The strips of f, m or both, of these terms, their rows in these cells."""
        found = []
        for summand, own in zip(summands, cells, strict=True):
            values = summand.values
            writes = {Write(block, c): k for block in blocks for c, k in enumerate(values.output(block))}
            found += Strips.adding(summand, values, writes, None, own)
        return found

    @cached_property
    def forces(self) -> list[Strips]:
        """The sum of f alone."""
        return self._gradient("f")

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """Of each coordinate its kind, (n,): those of one kind have one unit.

        Coordinates that one column of a term names are of one kind; so are those of two columns with the same mass
        ∂m/∂v.
        """
        columns = [summand.rows[:, c] for summand in self.summands for c in range(summand.rows.shape[1])]
        group = list(range(len(columns)))

        def root(a: int) -> int:
            while group[a] != a:
                a = group[a]
            return a

        begin = 0
        for summand in self.summands:
            k, masses = summand.rows.shape[1], summand.node.output("m_v")
            first: dict[int, int] = {}
            for c in range(k):
                if summand.node.code[masses[c * k + c]] != ZERO:
                    group[root(begin + c)] = root(begin + first.setdefault(masses[c * k + c], c))
            begin += k
        owner = np.full(self.n, -1)
        for k, column in enumerate(columns):
            for other in np.flatnonzero(np.bincount(owner[column] + 1)[1:]).tolist():
                group[root(other)] = root(k)
            owner[column] = k
        names = {a: i for i, a in enumerate(sorted({root(a) for a in range(len(columns))}))}
        kinds = np.array([names[root(a)] for a in range(len(columns))])
        return np.where(owner >= 0, kinds[owner], 0)

    @cached_property
    def momenta(self) -> Evaluation:
        return Evaluation(self.size, self._gradient("m"), (1, self.size))

    @cached_property
    def mass(self) -> Blocks:
        """∂m/∂v."""
        return Blocks(self.n, self.summands, "m_v")

    @cached_property
    def matrices(self) -> Blocks:
        """∂m/∂v and ∂f/∂q; with constraints G and Gᵀ beside the first, and λ·∂²g/∂q² in the second."""
        return Blocks(self.n, self.summands, "m_v", "f_q", held=self.held, size=self.size)

    @cached_property
    def separable(self) -> bool:
        """Whether the mass is constant, f does not depend on v, and m = M v."""
        if not self.mass.constant:
            return False
        for summand in self.summands:
            node = summand.node
            if any(node.code[k] != ZERO for block in ("f_v", "m_q", "m_t") for k in node.output(block)):
                return False
            sizes = dict(node.inputs)
            params = np.linspace(0.7, 1.3, sizes["params"])
            at_rest = node.select("m")([0.3], [0.3] * sizes["q"], [0.0] * sizes["v"], params)
            if any(at_rest["m"]):
                return False
        return True

    @cached_property
    def _right(self) -> Evaluation:
        """f − m_q v − m_t, which is M a."""
        return Evaluation(self.n, self._rows(_right_side), (self.n, 1))

    @cached_property
    def _geometry(self) -> Evaluation:
        """All of `_geometry`, row by row."""
        rows = self.of_rows(_geometry)
        total = sum(len(one.rows) * _geometry(g).output_size for one, g in self._constraints)
        return Evaluation(self.size, rows, (total, 1))

    @cached_property
    def _external(self) -> Evaluation:
        """F."""
        return Evaluation(self.n, self._rows(lambda summand: summand.force), (self.n, 1))

    def _rows(self, make: Callable[[Summand], Program | None]) -> list[Strips]:
        """The sum of a Program with a number for each coordinate of a row."""
        found = []
        for summand in self.summands:
            program = make(summand)
            if program is not None:
                found += Strips.adding(summand, program, {Write("f", c): k for c, k in enumerate(program.results)})
        return found

    @cached_property
    def _parts_of_L(self) -> list[Evaluation]:
        """L of every row, for each term."""
        found = []
        for summand in self.summands:
            R, k = summand.rows.shape
            strips = Strips.of(summand, summand.L, [Write("f", k)], np.arange(R)[:, None])
            found.append(Evaluation(self.n, [strips], (R, 1)))
        return found


@dataclass(frozen=True, eq=False)
class At:
    """An Assembly with parameters."""

    sums: Assembly
    params: FloatArray

    def momentum(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        return self.sums.momenta(t, q, v, self.params)[1][: self.sums.n]

    def external(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        return self.sums._external(t, q, v, self.params)[0]

    def parts_of_L(self, t: float, q: FloatArray, v: FloatArray) -> list[FloatArray]:
        """L of every row, for each term."""
        return [part(t, q, v, self.params)[0] for part in self.sums._parts_of_L]

    def without_mass(self, t: float, q: FloatArray, v: FloatArray) -> int | None:
        """The first coordinate whose momentum does not depend on its velocity, if there is one."""
        mass = self.sums.mass
        entries = mass.entries("m_v", t, q, v, self.params)
        none = np.flatnonzero(entries[mass.row == mass.column] == 0)
        return int(none[0]) if len(none) else None

    def velocity(self, t: float, q: FloatArray, p: FloatArray) -> FloatArray | None:
        """v with m(t, q, v) = p, by Newton's iteration; None where there is none.

        Each coordinate is judged on its own scale, the largest |v_j| so far: the iteration ends where no increment is
        more than rounding, or where small ones shrink no more. An increment that leads to no number is halved. Where
        increments do not shrink, the part of them that comes from rounding of p and M v does not count.
        """
        v = move = noise = np.zeros(self.sums.n)
        longest, before = v, np.inf
        for _ in range(MOST_ITERATIONS):
            m = self.momentum(t, q, v)
            if not np.isfinite(m).all():
                move = 0.5 * move
                v = v - move
                continue
            found = self._solved(t, q, v, p - m)
            if found is None or self.sums.separable:
                return found
            v, move = v + found, found
            longest = np.maximum(longest, np.abs(v))
            beyond = np.maximum(np.abs(move) - noise, 0.0)
            size = float(np.max(beyond[beyond > 0] / longest[beyond > 0], initial=0.0))
            if size <= 4 * EPS or (size <= SETTLED and size > 0.5 * before):
                return v
            if size > 0.5 * before:
                noise = self._noise(t, q, v, p)
            before = size
        return None

    def _noise(self, t: float, q: FloatArray, v: FloatArray, p: FloatArray) -> FloatArray:
        """What rounding of p and of M v does to each velocity: M⁻¹ (|p| + |M| |v|), once with these signs and once with
        others, since terms may cancel.
        """
        M = self.sums.mass.matrix("m_v", t, q, v, self.params)
        size = np.abs(p) + (abs(M) * np.abs(v) if self.sums.mass.diagonal else abs(M) @ np.abs(v))
        others = 1 - 2 * (np.arange(len(p)) * 7919 // 13 % 2)
        found = [self._solved(t, q, v, size * signs) for signs in (1, others)]
        return ROUGH * np.max([np.abs(x) for x in found if x is not None], axis=0, initial=0.0)

    def motion(self, t: float, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """a and λ: M a − Gᵀλ = f − m_q v − m_t, and g̈ = G a + bend = 0; None where a and λ do not exist."""
        right = self.sums._right(t, q, v, self.params)[0]
        if not self.sums.m:
            a = self._solved(t, q, v, right)
            return None if a is None else (a, np.zeros(0))
        here = self.constraints(t, q, v)
        return self._held(t, q, v, here.G, right, -here.bend)

    def constraints(self, t: float, q: FloatArray, v: FloatArray) -> Held:
        """The constraints at a point."""
        from scipy.sparse import csr_array

        sums, found = self.sums, self.sums._geometry(t, q, v, self.params)[0]
        parts: dict[str, list[FloatArray]] = {}
        rows, columns, begin, row = [], [], 0, 0
        for summand, g in sums._constraints:
            (R, k), j = summand.rows.shape, g.output_size
            program = _geometry(g)
            block = found[begin : begin + R * program.output_size].reshape(R, -1)
            begin += block.size
            for name, _ in program.outputs:
                parts.setdefault(name, []).append(block[:, program.output_slice(name)].ravel())
            rows.append(np.repeat(row + np.arange(R * j), k))
            columns.append(np.repeat(summand.rows[:, None, :], j, axis=1).ravel())
            row += R * j
        x = {name: np.concatenate(arrays) for name, arrays in parts.items()}
        places = (np.concatenate(rows), np.concatenate(columns))
        shape = (sums.m, sums.n)
        G, slopes = csr_array((x["G"], places), shape=shape), csr_array((x["c_q"], places), shape=shape)
        g_size = abs(G) @ np.abs(q) + np.abs(x["g_t"] * t)
        c_size = abs(G) @ np.abs(v) + abs(slopes) @ np.abs(q) + np.abs(x["g_t"])
        return Held(x["g"], x["c"], x["bend"], G, g_size, c_size)

    def lifted(self, t: float, q: FloatArray, v: FloatArray, off: FloatArray) -> FloatArray | None:
        """The shortest change of the state, in the metric of M, that takes this much off g, or off ġ."""
        found = self._held(t, q, v, self.constraints(t, q, v).G, np.zeros(self.sums.n), -off)
        return None if found is None else found[0]

    def freely(self, t: float, q: FloatArray, v: FloatArray, x: FloatArray) -> FloatArray | None:
        """x − Gᵀy with G M⁻¹(x − Gᵀy) = 0, refined once; None where constraints depend on each other."""
        G, below, d = self.constraints(t, q, v).G, np.zeros(self.sums.m), x
        for _ in range(2):
            found = self._held(t, q, v, G, d, below)
            if found is None:
                return None
            d = d + G.T @ found[1]
        return d

    def nearest(self, t: float, q0: FloatArray, v0: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The nearest state on the constraints; None where none is found."""
        q, before = q0, np.inf
        for _ in range(MOST_ITERATIONS):
            here = self.constraints(t, q, v0)
            change = self.lifted(t, q, v0, here.g - here.G @ (q - q0))
            if change is None:
                return None
            step = q0 + change - q
            q, size = q + step, float(np.abs(step).max())
            if size <= 4 * np.finfo(float).eps * np.abs(q).max() or (size >= before and size < 1e-10 * np.abs(q).max()):
                change = self.lifted(t, q, v0, self.constraints(t, q, v0).c)
                return None if change is None else (q, v0 + change)
            before = size
        return None

    def _held(
        self, t: float, q: FloatArray, v: FloatArray, G: Any, right: FloatArray, below: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """x and y with M x − Gᵀy = right, G x = below; None where constraints depend on each other."""
        from scipy.sparse import block_array, diags_array
        from scipy.sparse.linalg import splu

        M = self.sums.mass.matrix("m_v", t, q, v, self.params)
        M = diags_array(M) if self.sums.mass.diagonal else M
        try:
            found = splu(block_array([[M, -G.T], [G, None]]).tocsc()).solve(np.concatenate([right, below]))
        except RuntimeError:
            return None
        return found[: self.sums.n], found[self.sums.n :]

    def _solved(self, t: float, q: FloatArray, v: FloatArray, right: FloatArray) -> FloatArray | None:
        """M⁻¹ times a vector; None where M is singular."""
        M = self.sums.mass.matrix("m_v", t, q, v, self.params)
        if self.sums.mass.diagonal:
            return right / M if (M != 0).all() else None
        from scipy.sparse.linalg import splu

        try:
            return np.asarray(splu(M).solve(right))
        except RuntimeError:
            return None


@dataclass(frozen=True, eq=False)
class Held:
    """Constraints at a point: g, c = ġ, what g̈ is without acceleration, G, sparse; and what g and ġ are summed from."""

    g: FloatArray
    c: FloatArray
    bend: FloatArray
    G: Any
    g_size: FloatArray
    c_size: FloatArray


@lru_cache(maxsize=64)
def _geometry(g: Program) -> Program:
    """(t, q, v, params) ↦ g, c, G, bend of the constraints of a row, and c_q and g_t."""
    slopes = jacobian(rate(g), "q")
    found = geometry(g)
    B = Builder(found.inputs)
    given = B.blocks()
    still = given | {"v": [0.0] * len(given["v"])}
    return B.finished(**B.at(found, given), c_q=B.at(slopes, given)["c_q"], g_t=B.at(slopes, still)["c"])


def held_summand(summand: Summand, g: Program, rows: NDArray[np.int64]) -> Summand:
    """The constraints g of a summand as a summand λ·g of the coordinates and the multipliers of a row."""
    k, j = summand.rows.shape[1], g.output_size
    size = dict(g.inputs)["params"]
    B = Builder([("t", 1), ("q", k + j), ("v", k + j), ("params", size)])
    q = B.values("q")
    product = B.finished(L=[dot(q[k:], B.at(g, B.blocks() | {"q": q[:k]})["g"])])
    at = B.at(derivatives(product, True), B.blocks())
    node = B.finished(f=at["Lq"], m=[0.0] * (k + j), f_q=at["Lqq"])
    return Summand(product, node.select("f", "m"), node, None, rows, summand.first, summand.pitch)


def _right_side(summand: Summand) -> Program:
    """f − m_q v − m_t of a row."""
    node = summand.node
    k = dict(node.inputs)["q"]
    B = Builder(node.inputs)
    at, v = B.at(node, B.blocks()), B.values("v")
    moved = [dot(at["m_q"][j * k : (j + 1) * k], v) + at["m_t"][j] for j in range(k)]
    return B.finished(f=[a - b for a, b in zip(at["f"], moved, strict=True)])
