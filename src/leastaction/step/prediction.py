"""Where the iteration of the next step begins: the last step's polynomial, prolonged and corrected.

With modes the Legendre coefficients of the last step's velocity, growth · modes is its polynomial over the next step.
Extrapolation magnifies a mode of degree j by about 5.8^j, so for s > WHOLE the polynomial is cut: to the degree with
the least error, which is the larger of two, what that degree would have missed of the end of the step just solved, and
the first mode that it leaves out, at the end of the next. Up to WHOLE it is taken whole and misses step k by e_k =
z_k − (prediction). That varies slowly from step to step, so it is itself extrapolated by backward differences:
e_{k+1} ≈ e_k + ∇e_k + ∇²e_k. The number of differences to add, none to three, is the one that has predicted best
lately: by the largest error, where older errors count half as much with every step. Steps so coarse that even the best
was far off are predicted by the polynomial alone: there the differences lead to other roots.

Errors are counted in lengths of the latest steps, coordinate by coordinate, so that units do not matter. A prediction
has three stages, of which the first and the last know one coordinate alone:

    assess     z of the step just solved, memory ↦ memory, and how far each candidate would have been off
    choose     the largest errors over all coordinates, record ↦ the candidate to take, record
    propose    memory, choice ↦ z of the next step

They are written on Values of a Builder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.program import Value
from leastaction.step.rows import Row, Rows, Table, apply, size

TINY = 1e-280  # no scale is zero: smaller increments are no motion, and have no digits left to compare
WHOLE = 3  # up to this degree the last polynomial is extrapolated whole
DIFFERENCES = 3  # of what the last predictions missed
NEAR = 1 / 16  # in lengths of the latest steps: a prediction that misses by so little was near any root there is


@dataclass(frozen=True, eq=False)
class Prediction:
    """The prediction of a member of degree s, in rows with these tables.

    modes     h q̇(τ) = Σ_j w_j P_j(2τ − 1) from the increments: w = modes · z
    growth    the increments of the next step from w: growth · w
    ends      the end of the next step from the first modes alone, from the first two, …: ends · w
    parts     what each mode gives to that end: a column
    """

    s: int
    rows: Rows

    @property
    def memory(self) -> int:
        """Values remembered of each coordinate: the modes, or what was prolonged and what was missed."""
        return self.rows.length(self.s) * (1 if self.s > WHOLE else 1 + DIFFERENCES)

    @property
    def candidates(self) -> int:
        """Errors of one coordinate: two for each degree, or one for each number of differences."""
        return 2 * self.s if self.s > WHOLE else DIFFERENCES + 1

    @property
    def record(self) -> int:
        """Numbers remembered of all coordinates together: how far candidates were off lately."""
        return 0 if self.s > WHOLE else self.candidates

    def assess(self, z: Row, unit: Value, started: Value, memory: Row) -> tuple[Row, Row]:
        """What to remember, and the error of each candidate, of one coordinate; `unit` is one over its length."""
        s, rows = self.s, self.rows
        modes = apply(rows, rows.columns("modes"), z)
        if s > WHOLE:
            ends, end = apply(rows, rows.columns("ends"), memory), rows.number(z, s - 1)
            (parts,) = rows.columns("parts")
            missed = [abs(a - end) * unit for a in ends]
            return modes, missed + [abs(a * b) * unit for a, b in zip(parts, modes, strict=True)]
        errors = []
        w = len(z)
        miss = [started.op("if", a - b) for a, b in zip(z, memory[:w], strict=True)]
        differences: Row = []
        for k in range(DIFFERENCES + 1):
            errors.append(size(miss) * unit)
            if k < DIFFERENCES:
                differences += miss
                miss = [a - b for a, b in zip(miss, memory[(k + 1) * w : (k + 2) * w], strict=True)]
        return apply(rows, rows.columns("growth"), modes) + differences, errors

    def choose(self, errors: Row, started: Value, record: Sequence[Value]) -> tuple[Value, Row]:
        """The degree to cut to, or how many differences to add; and what to remember of the errors."""
        rows = self.rows
        if self.s > WHOLE:
            half = len(errors) // 2
            missed = [rows.number(errors[:half], i) for i in range(self.s)]
            parts = [rows.number(errors[half:], i) for i in range(self.s)]
            omitted = [*parts[1:], parts[-1] * (parts[-1] / (parts[-2] + TINY))]
            lately = [a.op("max", b) for a, b in zip(missed, omitted, strict=True)]
        else:
            lately = [rows.largest([error]).op("max", b * 0.5) for error, b in zip(errors, record, strict=True)]
        best, least = started * 0.0, lately[0]
        for i, error in enumerate(lately[1:], 1):
            better = error < least
            best, least = better.where(float(i), best), better.where(error, least)
        if self.s > WHOLE:
            return started.where(best + 1.0, float(self.s)), []
        return (least <= NEAR).op("if", best), lately

    def propose(self, memory: Row, choice: Value) -> Row:
        """z of one coordinate."""
        s, rows = self.s, self.rows
        if s > WHOLE:
            return apply(rows, self.cut("growth", choice), memory)
        w = rows.length(s)
        z = list(memory[:w])
        for k in range(DIFFERENCES):
            wanted = choice > float(k)
            z = [a + wanted.op("if", b) for a, b in zip(z, memory[(k + 1) * w : (k + 2) * w], strict=True)]
        return z

    def cut(self, table: str, choice: Value) -> list[Row]:
        """A table of columns for the modes, with the columns beyond the chosen degree set to zero."""
        cut = [choice > float(i) for i in range(self.s)]
        return [
            [wanted.op("if", c) for c in column] for wanted, column in zip(cut, self.rows.columns(table), strict=True)
        ]


def tables(modes: NDArray[Any], growth: NDArray[Any]) -> dict[str, Table]:
    """The tables of a prediction, which do not depend on h."""
    ends = np.tril(np.tile(growth[-1], (len(growth), 1)))
    return {"modes": modes, "growth": growth, "ends": ends, "parts": growth[-1][:, None]}
