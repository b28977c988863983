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

from leastaction.backends.fused.elimination import factors, slopes_of, square, substitute
from leastaction.backends.fused.nodes import shift_count
from leastaction.backends.fused.shifted_systems import Complex, joined, separated, slopes_at
from leastaction.program import Builder, Value
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows
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
    return 2 * len(places_of(step)) * rows.length(shift_count(step.method))


def factored(step: Step, rows: Rows, B: Builder, at: Mapping[str, Sequence[Any]]) -> list[Value]:
    """L and U of every shift from what the node reads in the middle of the step: rows, real and imaginary ones."""
    f_q, _, _, M = slopes_at(step, B, at)
    found = []
    for a, b in zip(rows.columns("shift re")[0], rows.columns("shift im")[0], strict=True):
        real, imaginary = a * a - b * b, 2.0 * (a * b)
        entries = [Complex(mass - real * slope, -(imaginary * slope)) for mass, slope in zip(M, f_q, strict=True)]
        found.append(factors(square(entries)))
    return [getattr(F[i][j], part) for i, j in places_of(step) for part in ("re", "im") for F in found]


def upright(step: Step, rows: Rows, F: Sequence[Value]) -> Value:
    """Whether all pivots of a real λ are positive, as those of a short step: where they are not, det ∂R/∂z may have
    turned (`step.verdict`). The determinants of a conjugate pair have a positive product anyhow.
    """
    (imaginary,) = rows.columns("shift im")
    found = [(zero.op("eq", 0.0), factors) for zero, factors in zip(imaginary, _read(step, rows, F), strict=True)]
    return ~rows.largest([real & ~(factors[j][j].re > 0.0) for j in range(step.n) for real, factors in found])


def departing(step: Step, rows: Rows, F: Sequence[Value], M: Sequence[Value]) -> Value:
    """Whether a pivot differs so much from that of a short step, of M alone, that a root near the prediction may be any
    of several (`step.verdict`).
    """
    short = factors(square(M))  # inverses on the diagonals, on both sides
    ratios = [
        (own[j][j].re / short[j][j] - 1.0, own[j][j].im / short[j][j])
        for j in range(step.n)
        for own in _read(step, rows, F)
    ]
    return rows.largest([~(re * re + im * im <= COARSE**2) for re, im in ratios])


def _read(step: Step, rows: Rows, F: Sequence[Value]) -> list[list[list[Complex]]]:
    """The factors of the shifts in each vector."""
    width, nothing = rows.length(shift_count(step.method)), F[0].B.number(0.0)
    found = [[[Complex(nothing, nothing)] * step.n for _ in range(step.n)] for _ in range(width)]
    for e, (i, j) in enumerate(places_of(step)):
        for v, matrix in enumerate(found):
            matrix[i][j] = Complex(F[2 * e * width + v], F[(2 * e + 1) * width + v])
    return found


def solved(step: Step, rows: Rows, F: Sequence[Value], r: Sequence[Row], name: str) -> list[Row]:
    """dV from what the momenta at the nodes miss, a row for each coordinate, by the table named."""
    y = zip(*separated(rows, r), strict=True)
    x = [substitute(own, right) for own, right in zip(_read(step, rows, F), y, strict=True)]
    return [joined(rows, name, row) for row in zip(*x, strict=True)]
