"""The shifted systems of `shifted_systems`, eliminated along the pattern of their entries.

Where few coordinates depend on each other, as neighbours that springs couple, X = M − (h λ)² f_q is nearly empty. So
X = L U is kept in place of its inverse, U with a unit diagonal and the inverses of L's diagonal on it: an elimination
of n neighbours, and a solution, take O(n) operations. Real and imaginary parts are rows, a number for each shift λ.

There is no pivoting. With M and −f_q positive definite no pivot vanishes, however stiff the system is: x*Xx lies
between the directions of 1 and of −λ², which are not opposite. Errors of X cost iterations, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.backends.fused.elimination import slopes_of
from leastaction.backends.fused.shifted_systems import Complex, complex_inverse, complex_product, minus, slopes_at
from leastaction.program import Builder, Value
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, combine
from leastaction.step.verdict import COARSE

Place = tuple[int, int]


@lru_cache(maxsize=64)
def places_of(step: Step) -> tuple[Place, ...]:
    """Where L and U may have entries, row by row."""
    filled = slopes_of(step) | np.eye(step.n, dtype=bool)
    for k in range(step.n):
        filled[k + 1 :, k + 1 :] |= np.outer(filled[k + 1 :, k], filled[k, k + 1 :])
    return tuple((int(i), int(j)) for i, j in np.argwhere(filled))


def size_of(step: Step, rows: Rows) -> int:
    """How many values hold the factors of all shifts."""
    return 2 * len(places_of(step)) * rows.length(_shifts(step))


def _shifts(step: Step) -> int:
    return (step.s + 1) // 2


def factored(step: Step, rows: Rows, B: Builder, at: Mapping[str, Sequence[Any]]) -> list[Value]:
    """L and U of every shift from what the node reads in the middle of the step: rows, real and imaginary ones."""
    n, places = step.n, places_of(step)
    f_q, _, _, M = slopes_at(step, B, at)
    found: dict[Place, tuple[Row, Row]] = {place: ([], []) for place in places}
    for a, b in zip(rows.columns("shift re")[0], rows.columns("shift im")[0], strict=True):
        real, imaginary = a * a - b * b, 2.0 * (a * b)
        X: dict[Place, Complex] = {
            (i, j): (M[i * n + j] - real * f_q[i * n + j], -(imaginary * f_q[i * n + j])) for i, j in places
        }
        _eliminate(X, n)
        for place, (re, im) in X.items():
            found[place][0].append(re)
            found[place][1].append(im)
    return [value for parts in found.values() for row in parts for value in row]


def _eliminate(X: dict[Place, Complex], n: int) -> None:
    """X ← its factors, in place."""
    below, right = _neighbours(X, n)
    for k in range(n):
        inverse = X[k, k] = complex_inverse(*X[k, k])
        for j in right[k]:
            X[k, j] = complex_product(inverse, X[k, j])
            for i in below[k]:
                X[i, j] = minus(X[i, j], complex_product(X[i, k], X[k, j]))


def _neighbours(places: Mapping[Place, Any], n: int) -> tuple[list[list[int]], list[list[int]]]:
    """Of each k, the rows below it with an entry in column k, and the columns behind it with one in row k."""
    below: list[list[int]] = [[] for _ in range(n)]
    right: list[list[int]] = [[] for _ in range(n)]
    for i, j in places:
        if i > j:
            below[j].append(i)
        elif j > i:
            right[i].append(j)
    return below, right


def upright(step: Step, rows: Rows, F: Sequence[Value]) -> Value:
    """Whether all pivots of a real λ are positive, as those of a short step: where they are not, det ∂R/∂z may have
    turned (`step.verdict`). The determinants of a conjugate pair have a positive product anyhow.
    """
    width = rows.length(_shifts(step))
    (imaginary,) = rows.columns("shift im")
    pivots = [2 * e * width for e, (i, j) in enumerate(places_of(step)) if i == j]
    turned = [imaginary[v].op("eq", 0.0) & ~(F[place + v] > 0.0) for place in pivots for v in range(width)]
    return ~rows.largest(turned)


def departing(step: Step, rows: Rows, F: Sequence[Value], M: Sequence[Value]) -> Value:
    """Whether a pivot differs so much from that of a short step, of M alone, that a root near the prediction may be any
    of several (`step.verdict`).
    """
    n, places, width = step.n, places_of(step), rows.length(_shifts(step))
    short: dict[Place, Complex] = {(i, j): (M[i * n + j], M[i * n + j] * 0.0) for i, j in places}
    _eliminate(short, n)
    pivots = [(2 * e * width, short[i, j][0]) for e, (i, j) in enumerate(places) if i == j]  # inverses, on both sides
    ratios = [(F[e + v] / own - 1.0, F[e + width + v] / own) for e, own in pivots for v in range(width)]
    return rows.largest([~(re * re + im * im <= COARSE**2) for re, im in ratios])


def solved(step: Step, rows: Rows, F: Sequence[Value], r: Sequence[Row], name: str) -> list[Row]:
    """dV from what the momenta at the nodes miss, a row for each coordinate, by the table named."""
    n, places, width = step.n, places_of(step), rows.length(_shifts(step))
    into, out = ([rows.columns(f"{table} {part}") for part in ("re", "im")] for table in ("into", name))
    y: list[list[Row]] = []
    for row in r:
        numbers = [rows.number(row, i) for i in range(len(into[0]))]
        y.append([combine(table, numbers) for table in into])
    for v in range(width):
        X = {place: (F[(2 * e) * width + v], F[(2 * e + 1) * width + v]) for e, place in enumerate(places)}
        below, right = _neighbours(X, n)
        x: list[Complex] = [(re[v], im[v]) for re, im in y]
        for k in range(n):
            x[k] = complex_product(X[k, k], x[k])
            for i in below[k]:
                x[i] = minus(x[i], complex_product(X[i, k], x[k]))
        for k in range(n - 1, -1, -1):
            for j in right[k]:
                x[k] = minus(x[k], complex_product(X[k, j], x[j]))
        for own, (re, im) in zip(y, x, strict=True):
            own[0][v], own[1][v] = re, im
    moves: list[Row] = []
    for own in y:
        parts = [
            combine(table, [rows.number(row, i) for i in range(len(table))])
            for table, row in zip(out, own, strict=True)
        ]
        moves.append([a + b for a, b in zip(*parts, strict=True)])
    return moves
