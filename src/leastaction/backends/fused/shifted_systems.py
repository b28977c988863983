"""The equations of a step, linearised, with the derivatives of its middle for all nodes (`nodes`).

The velocities at the nodes miss their equations by g_i = M_i⁻¹ (P_i − m_i), and with derivatives that are the same at
all nodes the velocities are to move by

    dV = (1 − h N b ⊗ M⁻¹ (f_v − m_q) − (h N b)² ⊗ M⁻¹ f_q)⁻¹ g .

With the eigenvalues λ of N b and g = T y, dV = T x this separates into systems of the size of the mechanics,

    x = E y,      E = (M − h λ (f_v − m_q) − (h λ)² f_q)⁻¹ M,

where complex systems come in pairs. E is written down once in a step, by elimination without pivoting: for small h, E
is near one. With points side by side, real and imaginary parts lie in the two halves of one vector where these hold
them. Errors of E cost iterations, and nothing else. So a coordinate of a mass so great that it does not move, as
the energy of a motion with a pace (`systems.pace`), is left out: its x is y.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leastaction.program import Builder, Value
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, SideBySide, apply, combine, total

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


def moving(step: Step) -> tuple[int, ...]:
    """The coordinates that may move."""
    return tuple(j for j in range(step.n) if j not in step.terms[0].still)


def masses_of_still(step: Step) -> dict[int, float]:
    """The coordinates that never move, with their masses."""
    slopes, n = step.terms[0].slopes, step.n
    entries = slopes.output("m_v")
    return {j: float(slopes.code[entries[j * n + j]][1]) for j in step.terms[0].still}


def inverses(step: Step, rows: Rows, B: Builder, at: Mapping[str, Sequence[Any]]) -> list[Value]:
    """E for every shift from what the node reads in the middle of the step: rows, those of entry (j, k) at 2 (m j + k),
    real and imaginary, where m coordinates move.
    """
    n, own = step.n, moving(step)
    m = len(own)
    f_q, f_v, m_q, M = slopes_at(step, B, at)
    reals, imaginaries = (rows.columns(name)[0] for name in ("shift re", "shift im"))
    E: list[Row] = [[] for _ in range(2 * m * m)]
    signs = rows.columns("signs")[0] if _half(rows) else [1.0] * len(reals)
    for a, b, sign in zip(reals, imaginaries, signs, strict=True):
        square = a * a - b * b, 2.0 * (a * b)
        matrix = [
            [
                Complex(
                    M[i] - a * (f_v[i] - m_q[i]) - square[0] * f_q[i], -(b * (f_v[i] - m_q[i])) - square[1] * f_q[i]
                )
                for i in (j * n + k for k in own)
            ]
            for j in own
        ]
        solved = _solved(matrix, [[Complex(M[j * n + k], 0.0) for k in own] for j in own])
        for j in range(m):
            for k in range(m):
                E[2 * (j * m + k)].append(solved[j][k].re)
                E[2 * (j * m + k) + 1].append(solved[j][k].im * sign)
    return [value for row in E for value in row]


def slopes_at(step: Step, B: Builder, at: Mapping[str, Sequence[Any]]) -> list[list[Value]]:
    """f_q, f_v, m_q and m_v at a point, or at the points in a vector, each row by row."""
    zero, slopes = [B.number(0.0)] * step.n**2, step.terms[0].slopes
    found = B.at(slopes.select(*(name for name in SLOPES if name in dict(slopes.outputs))), at)
    return [found.get(name, zero) for name in SLOPES]


def _half(rows: Rows) -> int:
    """The lanes of half a vector, if the real parts of shifted systems lie in one half and the imaginary ones in the
    other (`chord.paired`); else zero.
    """
    return rows.lanes // 2 if isinstance(rows, SideBySide) and "signs" in rows.tables else 0


def _by_pairs(
    step: Step, rows: Rows, half: int, E: Sequence[Value], g: Sequence[Row], names: Sequence[str]
) -> list[list[Row]]:
    """`shifted`, where parts lie so: with x the parts of y exchanged, E y = Re E · y ∓ Im E · x."""
    own = moving(step)
    moves, m = [list(g) for _ in names], len(own)
    y = [rows.product("into", g[j])[0] for j in own]
    exchanged = [a.op(f"swap{half}") for a in y]
    for j, coordinate in enumerate(own):
        parts = [E[2 * (j * m + k)] * y[k] for k in range(m)] + [
            E[2 * (j * m + k) + 1] * exchanged[k] for k in range(m)
        ]
        for found, name in zip(moves, names, strict=True):
            found[coordinate] = rows.product(name, [total(parts)])
    return moves


def shifted(step: Step, rows: Rows, E: Sequence[Value], g: Sequence[Row], *names: str) -> list[list[Row]]:
    """From g, by each of the tables named: `out` gives dV, and `led` gives dZ; of each a row for each coordinate."""
    half = _half(rows)
    if half:
        return _by_pairs(step, rows, half, E, g, names)
    own, moves = moving(step), [list(g) for _ in names]
    y, m = separated(rows, [g[j] for j in own]), len(own)
    width = len(y[0])
    for j, coordinate in enumerate(own):
        x = []
        for v in range(width):
            entries = [Complex(E[2 * (j * m + k) * width + v], E[(2 * (j * m + k) + 1) * width + v]) for k in range(m)]
            first, *more = (entry * own[v] for entry, own in zip(entries, y, strict=True))
            x.append(sum(more, first))
        for found, name in zip(moves, names, strict=True):
            found[coordinate] = joined(rows, name, x)
    return moves


def separated(rows: Rows, g: Sequence[Row]) -> list[list[Complex]]:
    """T⁻¹ g of every shift, a row for each coordinate."""
    into = [rows.columns(f"into {part}") for part in ("re", "im")]
    numbers = [[rows.number(row, i) for i in range(len(into[0]))] for row in g]
    return [[*map(Complex, *(combine(table, own) for table in into))] for own in numbers]


def joined(rows: Rows, name: str, x: Sequence[Complex]) -> Row:
    """From solutions of every shift to what the table named gives, of one coordinate."""
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
