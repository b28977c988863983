"""The equations of a collocation step, linearised, with the derivatives of its middle for all nodes (`collocation`).

With derivatives that are the same at all nodes, what momenta at the nodes miss, r = M g, is removed by

    dV = (1 − h N b ⊗ M⁻¹ (f_v − m_q) − (h N b)² ⊗ M⁻¹ f_q)⁻¹ g .

With the eigenvalues λ of N b and g = T y, dV = T x this separates into systems of the size of the mechanics,

    X x = M y,      X = M − h λ (f_v − m_q) − (h λ)² f_q,

where complex systems come in pairs. There is no pivoting: for small h, X is near M. With M and −f_q positive definite
no pivot vanishes, however stiff the system is: x*Xx lies between the directions of 1 and of −λ², which are not
opposite. Errors of X cost iterations, and nothing else.

Up to DENSE coordinates E = X⁻¹M is written down once in a step, and g is M⁻¹ times what momenta miss, every node with
its own M. A coordinate of a mass so great that it does not move, as the energy of a motion with a pace
(`systems.pace`), is left out: its x is y. Larger systems keep X = L U along the pattern of their entries: n neighbours
take O(n) operations.

Real and imaginary parts are rows with a number for each λ. With points side by side they lie in the two halves of one
vector where these hold them (`Collocation.paired`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.engine.collocation import collocation
from leastaction.engine.sparsity import filled, slopes_of
from leastaction.program import Builder, Value
from leastaction.program.elimination import factors, square, substitute
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, SideBySide, apply, combine, total

DENSE = 4  # coordinates up to which whole matrices pay, and Newton's iteration: longer code saves less than it costs
SLOPES = ("f_q", "f_v", "m_q", "m_v")


@dataclass(frozen=True)
class Complex:
    """A complex number, or one in every lane."""

    re: Any
    im: Any

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __rtruediv__(self, one: float) -> Complex:
        """One over the number in any unit: the square of 10²⁰⁰ is beyond float64, and E would be zero, as if nothing
        were left to solve.
        """
        unit = one / (abs(self.re) + abs(self.im))
        a, b = self.re * unit, self.im * unit
        size = unit / (a * a + b * b)
        return Complex(a * size, -(b * size))

    @property
    def known(self) -> Any:
        """Zero where both parts are known to be zero."""
        return 0 if all(part.known == 0 for part in (self.re, self.im)) else None


def slopes_at(step: Step, B: Builder, at: Mapping[str, Sequence[Any]]) -> list[list[Value]]:
    """f_q, f_v, m_q and m_v at a point, or at the points in a vector, each row by row."""
    zero, slopes = [B.number(0.0)] * step.n**2, step.terms[0].slopes
    found = B.at(slopes.select(*(name for name in SLOPES if name in dict(slopes.outputs))), at)
    return [found.get(name, zero) for name in SLOPES]


def size_of(step: Step, rows: Rows) -> int:
    """How many values hold what all systems are solved with."""
    shifts = 1 if _half(rows) else rows.length(collocation(step.method).shift.shape[1])
    return 2 * shifts * (len(moving(step)) ** 2 if step.n <= DENSE else len(_places(step)))


def eliminated(step: Step, rows: Rows, B: Builder, at: Mapping[str, Sequence[Any]]) -> list[Value]:
    """E, or L and U, of every λ from what the node reads in the middle of the step: rows, real and imaginary ones of
    each entry.
    """
    f_q, f_v, m_q, M = slopes_at(step, B, at)
    reals, imaginaries = (rows.columns(name)[0] for name in ("shift re", "shift im"))
    signs = rows.columns("signs")[0] if _half(rows) else [1.0] * len(reals)
    n, own = step.n, moving(step)
    found: list[list[Complex]] = []
    for a, b, sign in zip(reals, imaginaries, signs, strict=True):
        re, im = a * a - b * b, 2.0 * (a * b)
        X = [
            Complex(m - a * (v - y) - re * s, -(b * (v - y)) - im * s)
            for m, s, v, y in zip(M, f_q, f_v, m_q, strict=True)
        ]
        if n > DENSE:
            F = factors(square(X))
            found.append([F[i][j] for i, j in _places(step)])
        else:
            E = _solved(
                [[X[j * n + k] for k in own] for j in own], [[Complex(M[j * n + k], 0.0) for k in own] for j in own]
            )
            found.append([Complex(x.re, x.im * sign) for row in E for x in row])
    return [getattr(x, part) for entry in zip(*found, strict=True) for part in ("re", "im") for x in entry]


def solved(step: Step, rows: Rows, E: Sequence[Value], g: Sequence[Row], *names: str) -> list[list[Row]]:
    """From g, or from what momenta miss, by each of the tables named: `out` gives dV, and `led` gives dZ; of each a row
    for each coordinate.
    """
    own = moving(step) if step.n <= DENSE else tuple(range(step.n))
    m, half, moves = len(own), _half(rows), [list(g) for _ in names]
    if half:  # with x the parts of y exchanged, E y = Re E · y ∓ Im E · x
        y = [rows.product("into", g[j])[0] for j in own]
        exchanged = [a.op(f"swap{half}") for a in y]
        for j, coordinate in enumerate(own):
            e = E[2 * j * m : 2 * (j + 1) * m]
            parts = [a * b for a, b in zip(e[::2], y, strict=True)]
            parts += [a * b for a, b in zip(e[1::2], exchanged, strict=True)]
            for found, name in zip(moves, names, strict=True):
                found[coordinate] = rows.product(name, [total(parts)])
        return moves
    rights = list(zip(*_separated(rows, [g[j] for j in own]), strict=True))
    by_shift = [_solution(step, E, len(rights), v, right) for v, right in enumerate(rights)]
    for coordinate, x in zip(own, zip(*by_shift, strict=True), strict=True):
        for found, name in zip(moves, names, strict=True):
            found[coordinate] = _joined(rows, name, x)
    return moves


def _solution(step: Step, E: Sequence[Value], width: int, v: int, right: Sequence[Complex]) -> list[Complex]:
    """x of the systems in the v-th of so many vectors."""
    entries = [Complex(E[2 * e * width + v], E[(2 * e + 1) * width + v]) for e in range(len(E) // (2 * width))]
    if step.n > DENSE:
        nothing = Complex(*[E[0].B.number(0.0)] * 2)
        F = [[nothing] * step.n for _ in range(step.n)]
        for (i, j), entry in zip(_places(step), entries, strict=True):
            F[i][j] = entry
        return substitute(F, right)
    x = []
    for row in square(entries):
        first, *more = (a * b for a, b in zip(row, right, strict=True))
        x.append(sum(more, first))
    return x


def moving(step: Step) -> tuple[int, ...]:
    """The coordinates that may move."""
    return tuple(j for j in range(step.n) if j not in step.terms[0].still)


@lru_cache(maxsize=64)
def _places(step: Step) -> tuple[tuple[int, int], ...]:
    """Where L and U may have entries, row by row."""
    pattern, _ = filled(slopes_of(step) | np.eye(step.n, dtype=bool))
    return tuple((int(i), int(j)) for i, j in np.argwhere(pattern))


def _half(rows: Rows) -> int:
    """The lanes of half a vector, if the real parts lie in one half and the imaginary ones in the other; else zero."""
    return rows.lanes // 2 if isinstance(rows, SideBySide) and "signs" in rows.tables else 0


def _separated(rows: Rows, g: Sequence[Row]) -> list[list[Complex]]:
    """T⁻¹ g of every λ, a row for each coordinate."""
    into = [rows.columns(f"into {part}") for part in ("re", "im")]
    numbers = [[rows.number(row, i) for i in range(len(into[0]))] for row in g]
    return [[*map(Complex, *(combine(table, own) for table in into))] for own in numbers]


def _joined(rows: Rows, name: str, x: Sequence[Complex]) -> Row:
    """From solutions of every λ to what the table named gives, of one coordinate."""
    parts = [
        apply(rows, rows.columns(f"{name} {part}"), row)
        for part, row in (("re", [a.re for a in x]), ("im", [a.im for a in x]))
    ]
    return [a + b for a, b in zip(*parts, strict=True)]


def _solved(matrix: list[list[Complex]], right: list[list[Complex]]) -> list[list[Complex]]:
    """Gauss' and Jordan's elimination of complex numbers without pivoting."""
    n = len(matrix)
    lines = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for k in range(n):
        inverse = 1.0 / lines[k][k]
        lines[k][k + 1 :] = [inverse * x for x in lines[k][k + 1 :]]
        for i in range(n):
            if i != k:
                factor, behind = lines[i][k], zip(lines[i][k + 1 :], lines[k][k + 1 :], strict=True)
                lines[i][k + 1 :] = [x - factor * y for x, y in behind]
    return [line[n:] for line in lines]
