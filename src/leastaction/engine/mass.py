"""The mass matrix M = m_v of a step's system: what is known of it, its inverse, and what is solved with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.program import Builder, Program, Value
from leastaction.program.elimination import factors, lost_digits, square, substitute_rows
from leastaction.step.form import Step
from leastaction.step.rows import Row


@dataclass(frozen=True)
class Mass:
    """The Program of m_v at a point, all entries or the diagonal, and what is known of the mass.

    constant    the mass depends on parameters alone
    fixed       the mass depends on nothing
    separable   the mass is constant, f does not depend on v, and m = M v
    """

    program: Program
    diagonal: bool
    constant: bool
    fixed: bool
    separable: bool

    @property
    def size(self) -> int:
        """Numbers of its inverse, or of its factors."""
        return self.program.output_size

    def inverted(self, B: Builder, at: Mapping[str, Sequence[Any]], direct: bool = False) -> list[Value]:
        """The inverse of a diagonal mass at a point, or the factors of a full one; what is not given is not needed.

        Steps of a separable mass, and `direct` ones, have their result from M⁻¹; others only their increments. So
        where the factors have lost digits, one of them is no number, and the step is solved otherwise.
        """
        entries = B.at(self.program, {name: at.get(name, [0.0] * size) for name, size in self.program.inputs})["m_v"]
        if self.diagonal:
            return [1.0 / entry for entry in entries]
        matrix = square(entries)
        first, *rest = [x for row in factors(matrix) for x in row]
        if (self.separable or direct) and not self.fixed:
            first = first + lost_digits(matrix)
        return [first, *rest]

    def solve(self, inverse: Sequence[Value], right: Sequence[Row]) -> list[Row]:
        """M⁻¹ times rows, one for each coordinate."""
        if self.diagonal:
            return [[a * y for y in row] for a, row in zip(inverse, right, strict=True)]
        return substitute_rows(square(inverse), right)

    def multiply(self, inverse: Sequence[Value], right: Sequence[Row]) -> list[Row]:
        """The same, as a product with the whole of M⁻¹ where there are two coordinates: a product waits for two
        operations, substitution for four.
        """
        if self.diagonal or len(right) != 2:
            return self.solve(inverse, right)
        first, upper, lower, last = inverse
        below = last * (lower * first)
        rows = (first + upper * below, upper * last), (below, last)
        a, b = right
        return [
            [rows[0][0] * x - rows[0][1] * y for x, y in zip(a, b, strict=True)],
            [rows[1][1] * y - rows[1][0] * x for x, y in zip(a, b, strict=True)],
        ]


@lru_cache(maxsize=64)
def mass_of(step: Step) -> Mass:
    """The mass of a step's system."""
    (node,) = (term for term in step.terms if "m_v" in dict(term.slopes.outputs))
    slopes, n = node.slopes, step.n
    entries = slopes.output("m_v")
    diagonal = all(slopes.code[entries[j * n + k]] == ("const", 0.0) for j in range(n) for k in range(n) if j != k)
    program = slopes.with_outputs(m_v=[entries[j * n + j] for j in range(n)] if diagonal else entries)
    constant = not slopes.depends("m_v", "t", "q", "v")
    fixed = constant and not slopes.depends("m_v", "params")
    zero = [all(slopes.code[k] == ("const", 0.0) for k in slopes.output(block)) for block in ("f_v", "m_q")]
    separable = constant and all(zero) and len(step.terms) == 1 and not slopes.depends("m", "t", "q")
    if separable:  # m = M v without a constant of its own
        at = {"v": np.zeros(n), "params": np.linspace(0.7, 1.3, step.params)}
        at_rest = slopes.select("m")(*(at.get(name, np.full(size, 0.3)) for name, size in slopes.inputs))
        separable = not any(at_rest["m"]) and (diagonal or not fixed or _keeps_digits(program))
    return Mass(program, diagonal, constant, fixed, separable)


def _keeps_digits(program: Program) -> bool:
    """Whether a full mass that depends on nothing, by its Program, is eliminated without a loss of digits."""
    B = Builder([])
    M = B.at(program, {name: [0.0] * size for name, size in program.inputs})["m_v"]
    return B.finished(lost=[lost_digits(square(M))])()["lost"] == [0.0]
