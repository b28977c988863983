"""The mass matrix m_v as the mass chord sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.elimination import factors, square, substitute_rows
from leastaction.backends.fused.nodes import nodes_of
from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lagrange_basis, rounded
from leastaction.numbers.precision import mpmath_digits
from leastaction.program import Builder, Program, Value
from leastaction.step.form import Step
from leastaction.step.pivots import lost_digits
from leastaction.step.rows import Row

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Mass:
    """The Program of m_v at a point, all entries or the diagonal, and what is known of the mass.

    constant    the mass depends on parameters alone
    fixed       the mass depends on nothing
    separable   the mass is constant, neither f nor the velocity of a cyclic coordinate depends on v, and m = M v
    collocated  the mass is not separable, and the velocities at the nodes are unknowns (`nodes`)
    """

    program: Program
    diagonal: bool
    constant: bool
    fixed: bool
    separable: bool
    collocated: bool

    @property
    def size(self) -> int:
        """Numbers of its inverse, or of its factors."""
        return self.program.output_size

    def inverted(self, B: Builder, at: Mapping[str, Sequence[Any]], direct: bool = False) -> list[Value]:
        """The inverse of a diagonal mass at a point, or the factors of a full one; what is not given is not needed.

        Chords of a separable mass have the result from M⁻¹, as `direct` steps do; others only their increments. So
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
        """The same, as a product with the whole of M⁻¹ where there are two coordinates: what is multiplied waits for
        two operations, where elimination waits for four.
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


@dataclass(frozen=True)
class Chords:
    """What chords solve: a step, that of the free coordinates if others are cyclic, and its mass."""

    step: Step
    mass: Mass


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
        separable = not any(at_rest["m"]) and (step.of is None or not node.program.depends("turning", "v"))
        separable = separable and (diagonal or not fixed or eliminated(program))
    collocated = not separable and len(step.terms) == 1 and nodes_of(step.method) is not None
    return Mass(program, diagonal, constant, fixed, separable, collocated)


def eliminated(program: Program) -> bool:
    """Whether a full mass that depends on nothing, by its Program, is eliminated without a loss of digits."""
    B = Builder([])
    M = B.at(program, {name: [0.0] * size for name, size in program.inputs})["m_v"]
    return B.finished(lost=[lost_digits(square(M))])()["lost"] == [0.0]


@lru_cache(maxsize=64)
def inverse_of(method: Galerkin) -> FloatArray:
    """The inverse of Σ_i w_i l_ν′(c_i) l_μ′(c_i), every entry rounded once."""
    table = method.exact_table(40)
    with mpmath_digits(60):
        dl = mpmath.matrix([list(row[1:]) for row in table["dl"]])
        inverse = (dl.T * mpmath.diag(list(table["b"])) * dl) ** -1
        rows = [[(inverse[i, j] + inverse[j, i]) / 2 for j in range(method.s)] for i in range(method.s)]
    return np.array([[float(x) for x in row] for row in rows])


@lru_cache(maxsize=64)
def middle_of(method: Galerkin) -> FloatArray:
    """l_ν(½) and l_ν′(½), ν = 1 … s."""
    values, slopes = lagrange_basis(list(method.exact_table()["d"]), [mpmath.mpf("0.5")])
    return rounded([values[0][1:], slopes[0][1:]])


def in_the_middle(step: Step, rows: Any, t: Value, h: Value, q: Sequence[Value], z: Sequence[Row]) -> dict[str, Row]:
    """t, q and v in the middle of the step that z predicts."""
    at, slope = middle_of(step.method).tolist()
    numbers = [[rows.number(row, v) for v in range(step.s)] for row in z]
    return {
        "t": [t + h * 0.5],
        "q": [a + sum(c * x for c, x in zip(at, row, strict=True)) for a, row in zip(q, numbers, strict=True)],
        "v": [sum(c * x for c, x in zip(slope, row, strict=True)) / h for row in numbers],
    }
