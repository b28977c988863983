"""Elimination of a symmetric matrix along its profile, as operations of a script.

A = L U without pivoting, real or complex, with Lᵀ = D⁻¹U and D the pivots. Row i has entries from its first column to
its last one, without gaps; `first` grows from row to row, so that elimination fills nothing else. A row lies in memory
with W zeros before it and 2W behind it, so that whole vectors may be read and written; `base` is where its column 0
would be. Right-hand sides are eliminated with sums along rows alone, L row by row upwards and U row by row downwards.

    Assemble     the matrix from sums of entries
    Factor       U, and L below; the inverses of the pivots
    SolveLanes   W right-hand sides, side by side
    SolveOne     one, real or complex
    Permuted     rows of numbers in another order

Complex numbers lie in two halves: real parts, and at a distance of `half` imaginary ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.driver import _Code
from leastaction.kernel.script import Place
from leastaction.kernel.vector_math import Library

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Profile:
    """Where the rows of a matrix lie.

    order   the coordinate that is eliminated k-th
    first, last, base   of each row, in this order
    size    numbers of the matrix; `room`: numbers before the first row
    """

    order: IntArray
    first: IntArray
    last: IntArray
    base: IntArray
    size: int

    @property
    def n(self) -> int:
        return len(self.order)

    @property
    def plain(self) -> bool:
        """Whether coordinates are eliminated as they stand."""
        return bool((self.order == np.arange(self.n)).all())

    def places(self, row: IntArray, column: IntArray) -> IntArray:
        """Where entries of the upper triangle lie; −1 of the others."""
        place = np.empty(self.n, np.int64)
        place[self.order] = np.arange(self.n)
        i, j = place[row], place[column]
        return np.where(i <= j, self.base[i] + j, -1)

    def tables(self) -> IntArray:
        """base, first and last, row by row."""
        return np.ascontiguousarray(np.stack([self.base, self.first, self.last], axis=1))


def profile(order: IntArray, row: IntArray, column: IntArray, lanes: int) -> Profile:
    """The profile of a symmetric pattern in an order of elimination."""
    n = len(order)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    first = np.arange(n)
    np.minimum.at(first, place[row], place[column])
    first = np.minimum.accumulate(first[::-1])[::-1]
    last = np.searchsorted(first, np.arange(n), side="right") - 1
    width = lanes + last - first + 1 + 2 * lanes
    begin = np.cumsum(width) - width
    return Profile(order.astype(np.int64), first, last, begin + lanes - first, int(width.sum()))


class _Writer:
    """Loops over a matrix in IR; numbers have one part, or a real and an imaginary one."""

    def __init__(self, c: _Code, W: int, matrix: Matrix, parts: int) -> None:
        self.c, self.W, self.parts = c, W, parts
        self.kind = f"<{W} x double>"
        self.table = c.get(c.at("%work", matrix.slot), "ptr")
        self.F, self.inverse = (c.at("%work", begin) for begin in (matrix.F, matrix.inverse))
        self.ratios, self.half, self.n = c.at("%work", matrix.ratios), matrix.half, matrix.n
        self.pad = matrix.pad

    def of_row(self, i: str, what: int) -> str:
        return self.c.get(self.c.at(self.table, self.c.add(self.c.mul(i, 3), what)))

    def row(self, i: str) -> str:
        """The address of column 0 of a row."""
        return self.c.at(self.F, self.of_row(i, 0))

    def load(self, pointer: str, half: int, W: int = 1) -> list[str]:
        kind = self.kind if W > 1 else "double"
        return [self.c.get(self.c.at(pointer, k * half) if k else pointer, kind) for k in range(self.parts)]

    def store(self, pointer: str, half: int, x: Sequence[str], W: int = 1) -> None:
        kind = self.kind if W > 1 else "double"
        for k, one in enumerate(x):
            self.c.put(self.c.at(pointer, k * half) if k else pointer, one, kind)

    def splat(self, x: Sequence[str]) -> list[str]:
        return [self.c.splat(one, self.W) for one in x]

    def op(self, name: str, a: str, b: str, kind: str) -> str:
        return self.c.op(f"{name} {kind} {a}, {b}")

    def fma(self, a: str, b: str, total: str, kind: str, minus: bool = False) -> str:
        suffix = "f64" if kind == "double" else f"v{self.W}f64"
        self.c.declared.add(f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})")
        a = self.c.op(f"fneg {kind} {a}") if minus else a
        return self.c.op(f"call {kind} @llvm.fma.{suffix}({kind} {a}, {kind} {b}, {kind} {total})")

    def times(self, a: Sequence[str], b: Sequence[str]) -> list[str]:
        """A product of two numbers."""
        if self.parts == 1:
            return [self.op("fmul", a[0], b[0], "double")]
        re = self.fma(a[1], b[1], self.op("fmul", a[0], b[0], "double"), "double", minus=True)
        return [re, self.fma(a[0], b[1], self.op("fmul", a[1], b[0], "double"), "double")]

    def less(self, total: Sequence[str], a: Sequence[str], b: Sequence[str], vectors: bool) -> list[str]:
        """total − a b."""
        kind = self.kind if vectors else "double"
        if self.parts == 1:
            return [self.fma(a[0], b[0], total[0], kind, minus=True)]
        re = self.fma(a[1], b[1], self.fma(a[0], b[0], total[0], kind, minus=True), kind)
        return [re, self.fma(a[1], b[0], self.fma(a[0], b[1], total[1], kind, minus=True), kind, minus=True)]


@dataclass(frozen=True)
class Matrix:
    """A matrix in the work.

    slot      where the address of the profile's tables is
    F, size   its numbers: real parts, and imaginary ones `half` behind
    inverse   of its pivots, n numbers and n more; ratios: room for a row
    """

    slot: int
    n: int
    F: int
    size: int
    half: int
    inverse: int
    ratios: int
    pad: int


@dataclass(frozen=True)
class Assemble:
    """A matrix ← sums of entries, Σ_t c_t (X_t[a] + X_t[b])/2 at the places that a table lists.

    slot, count   the address of the table, rows (place, a, b), and how many rows
    parts         of each part of the numbers: pairs of where entries begin, and their coefficient, None for one
    """

    matrix: Matrix
    slot: int
    count: int
    parts: tuple[tuple[tuple[int, Place | None], ...], ...]

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        c.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        F = c.at("%work", self.matrix.F)
        size = 8 * (self.matrix.size + (self.matrix.half if len(self.parts) > 1 else 0))
        c.do(f"call void @llvm.memset.p0.i64(ptr align 8 {F}, i8 0, i64 {size}, i1 false)")
        table = c.get(c.at("%work", self.slot), "ptr")
        given = [
            [(c.at("%work", X), None if at is None else c.get(c.at(f"%{at.array}", at.begins[0]), "double"))
             for X, at in part] for part in self.parts
        ]  # fmt: skip
        with c.each(self.count) as e:
            row = c.at(table, c.mul(e, 3))
            place, a, b = (c.get(c.at(row, k)) for k in range(3))
            for k, part in enumerate(given):
                total = None
                for X, factor in part:
                    both = [c.get(c.at(X, i), "double") for i in (a, b)]
                    x = c.op(f"fmul double 0.5, {c.op(f'fadd double {both[0]}, {both[1]}')}")
                    x = x if factor is None else c.op(f"fmul double {x}, {factor}")
                    total = x if total is None else c.op(f"fadd double {total}, {x}")
                c.put(c.at(F, c.add(place, k * self.matrix.half)), total or "0.0", "double")
        return []


@dataclass(frozen=True)
class Factor:
    """The factors of a matrix; `broken` ← 1 where a pivot is zero or no number."""

    matrix: Matrix
    parts: int
    broken: Place

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        w = _Writer(c, lanes, self.matrix, self.parts)
        W, n, half = lanes, self.matrix.n, self.matrix.half
        bad = c.variable("0.0", "double")
        with c.each(n) as i:
            own, first, last = w.row(i), w.of_row(i, 1), w.of_row(i, 2)
            with c.between(first, i) as k:
                x = w.load(c.at(w.row(k), i), half)
                w.store(c.at(w.ratios, k), self.matrix.pad, w.times(x, w.load(c.at(w.inverse, k), n)))
            end = c.add(last, 1)
            with c.between(i, end, 2 * W) as column:
                above = w.of_row(column, 1)
                begin = c.op(f"select i1 {c.op(f'icmp sgt i64 {above}, {first}')}, i64 {above}, i64 {first}")
                at = [c.at(own, c.add(column, v * W)) for v in (0, 1)]
                totals = [[c.variable(x, w.kind) for x in w.load(place, half, W)] for place in at]
                with c.between(begin, i) as k:
                    ratio = w.splat(w.load(c.at(w.ratios, k), self.matrix.pad))
                    other = w.row(k)
                    for v, total in enumerate(totals):
                        x = w.load(c.at(other, c.add(column, v * W)), half, W)
                        new = w.less([c.get(t, w.kind) for t in total], ratio, x, True)
                        for t, y in zip(total, new, strict=True):
                            c.put(t, y, w.kind)
                for place, total in zip(at, totals, strict=True):
                    w.store(place, half, [c.get(t, w.kind) for t in total], W)
            pivot = w.load(c.at(own, i), half)
            w.store(c.at(w.inverse, i), n, self._inverse(w, pivot, bad))
            with c.between(first, i) as k:
                w.store(c.at(own, k), half, w.load(c.at(w.ratios, k), self.matrix.pad))
        c.put(c.at(f"%{self.broken.array}", self.broken.begins[0]), c.get(bad, "double"), "double")
        return []

    def _inverse(self, w: _Writer, pivot: Sequence[str], bad: str) -> list[str]:
        c = w.c
        if self.parts == 1:
            found = [w.op("fdiv", "1.0", pivot[0], "double")]
        else:  # the square of a pivot may be beyond all floats
            c.declared.add("declare double @llvm.fabs.f64(double)")
            sizes = [c.op(f"call double @llvm.fabs.f64(double {x})") for x in pivot]
            one = w.op("fdiv", "1.0", c.larger(sizes[0], sizes[1], 1), "double")
            a, b = (w.op("fmul", x, one, "double") for x in pivot)
            square = w.fma(b, b, w.op("fmul", a, a, "double"), "double")
            scale = w.op("fdiv", one, square, "double")
            found = [w.op("fmul", a, scale, "double"), c.op(f"fneg double {w.op('fmul', b, scale, 'double')}")]
        for x in found:
            odd = c.op(f"fcmp une double {w.op('fsub', x, x, 'double')}, 0.0")
            with c.when(odd):
                c.put(bad, "1.0", "double")
        return found


@dataclass(frozen=True)
class SolveLanes:
    """x ← A⁻¹ x for real factors: of each coordinate so many vectors, of a right-hand side in every lane."""

    matrix: Matrix
    x: int
    vectors: int

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        w, n = _Writer(c, lanes, self.matrix, 1), self.matrix.n
        pitch = self.vectors * lanes
        for v in range(self.vectors):
            x = c.at("%work", self.x + v * lanes)

            def at(j: str, x: str = x) -> str:
                return c.at(x, c.mul(j, pitch))

            with c.each(n) as k:
                own = c.get(at(k), w.kind)
                y = w.op("fmul", own, c.splat(c.get(c.at(w.inverse, k), "double"), lanes), w.kind)
                c.put(at(k), y, w.kind)
                row, end = w.row(k), c.add(w.of_row(k, 2), 1)
                with c.between(c.add(k, 1), end) as j:
                    u = w.splat([c.get(c.at(row, j), "double")])
                    c.put(at(j), w.less([c.get(at(j), w.kind)], u, [y], True)[0], w.kind)
            with c.each(n) as down:
                k = c.op(f"sub i64 {n - 1}, {down}")
                y, row = c.get(at(k), w.kind), w.row(k)
                with c.between(w.of_row(k, 1), k) as i:
                    u = w.splat([c.get(c.at(row, i), "double")])
                    c.put(at(i), w.less([c.get(at(i), w.kind)], u, [y], True)[0], w.kind)
        return []


@dataclass(frozen=True)
class SolveOne:
    """x ← A⁻¹ x, one right-hand side; imaginary parts `pitch` behind real ones, W numbers of room before and behind."""

    matrix: Matrix
    parts: int
    x: int
    pitch: int

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        w, n, half, W = _Writer(c, lanes, self.matrix, self.parts), self.matrix.n, self.matrix.half, lanes
        x = c.at("%work", self.x)
        with c.each(n) as k:
            y = w.times(w.load(c.at(x, k), self.pitch), w.load(c.at(w.inverse, k), n))
            w.store(c.at(x, k), self.pitch, y)
            row, end, Y = w.row(k), c.add(w.of_row(k, 2), 1), w.splat(y)
            with c.between(c.add(k, 1), end, W) as j:
                u, here = w.load(c.at(row, j), half, W), c.at(x, j)
                w.store(here, self.pitch, w.less(w.load(here, self.pitch, W), u, Y, True), W)
        with c.each(n) as down:
            k = c.op(f"sub i64 {n - 1}, {down}")
            row, first, Y = w.row(k), w.of_row(k, 1), w.splat(w.load(c.at(x, k), self.pitch))
            steps = c.op(f"sdiv i64 {c.add(c.op(f'sub i64 {k}, {first}'), W - 1)}, {W}")
            with c.each(steps) as s:
                i = c.op(f"sub i64 {c.op(f'sub i64 {k}, {W}')}, {c.mul(s, W)}")
                l, here = w.load(c.at(row, i), half, W), c.at(x, i)
                w.store(here, self.pitch, w.less(w.load(here, self.pitch, W), l, Y, True), W)
        return []


@dataclass(frozen=True)
class Permuted:
    """Row k of `to` ← row index[k] of `source`, or the other way round; rows of so many numbers.

    The address of the indices is in a slot.
    """

    slot: int
    n: int
    to: int
    source: int
    width: int = 1
    back: bool = False

    def write(self, c: _Code, name: str, lanes: int, library: Library) -> list[str]:
        index = c.get(c.at("%work", self.slot), "ptr")
        to, source = c.at("%work", self.to), c.at("%work", self.source)
        kind = "double" if self.width == 1 else f"<{lanes} x double>"
        with c.each(self.n) as k:
            j = c.get(c.at(index, k))
            a, b = (j, k) if self.back else (k, j)
            for v in range(0, self.width, 1 if self.width == 1 else lanes):
                x = c.get(c.at(source, c.add(c.mul(b, self.width), v)), kind)
                c.put(c.at(to, c.add(c.mul(a, self.width), v)), x, kind)
        return []
