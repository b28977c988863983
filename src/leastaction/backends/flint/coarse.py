"""Whether a step is so coarse that a root near its prediction may be any of several: from pivots (`step.verdict`).

Pivots need few digits, but their exponents have no limit here. Ratios of pivots do not depend on units, and in units in
which the mass is about one they are floats. Rows are exchanged as the mass wants it, and not otherwise: then pivots can
be compared.
"""

from __future__ import annotations

import flint

from leastaction.backends.flint.sizes import ROUGH, largest
from leastaction.backends.flint.sweep import Equations, Linearised
from leastaction.numbers.conversion import Balls
from leastaction.step.verdict import departs

Matrix = list[list[float]]


def is_coarse(sweep: Equations, at: Linearised) -> bool:
    """Whether a pivot of h ∂R/∂z departs from that of A ⊗ L_vv, with L_vv at the first node."""
    n, s, N, mass, entries = sweep.n, sweep.s, sweep.N, sweep.mass(at), at.entries
    before, flint.ctx.prec = flint.ctx.prec, ROUGH
    units = [_unit(mass[j * n : (j + 1) * n], j) for j in range(n)]
    M = [[float(mass[j * n + k] * units[j] * units[k]) for k in range(n)] for j in range(n)]
    across = [unit * sweep.h for unit in units]
    # Coordinate by coordinate: so the pivots of A ⊗ L_vv are products.
    places = [(v * n + j, j) for j in range(n) for v in range(s)]
    J = [[float(entries[i * N + m] * units[j] * across[k]) for m, k in places] for i, j in places]
    flint.ctx.prec = before
    order, pivots = _exchanged(M)
    J = [J[j * s + v] for j in order for v in range(s)]
    return _departs(J, [pivot * a for pivot in pivots for a in sweep.short])


def _unit(row: Balls, j: int) -> flint.arb:
    """One over the root of the diagonal entry of a row; of the largest one, if that is zero."""
    size = largest(row) if row[j].is_zero() else abs(row[j])
    return 1 / size.sqrt() if size > 0 else flint.arb(1)


def _exchanged(M: Matrix) -> tuple[list[int], list[float]]:
    """The order of the rows of a mass in which its pivots are large, and these pivots. M is spent."""
    order, pivots = list(range(len(M))), []
    for k in range(len(M)):
        best = max(range(k, len(M)), key=lambda i: abs(M[i][k]))
        M[k], M[best], order[k], order[best] = M[best], M[k], order[best], order[k]
        pivots.append(M[k][k])
        if M[k][k] != 0.0:
            _eliminate(M, k)
    return order, pivots


def _departs(A: Matrix, short: list[float]) -> bool:
    """Whether a pivot of A, eliminated in place, departs from that of a short step."""
    for k, wanted in enumerate(short):
        if A[k][k] == 0.0 or departs(wanted / A[k][k], 0.0):
            return True
        _eliminate(A, k)
    return False


def _eliminate(A: Matrix, k: int) -> None:
    """Take row k from those below it."""
    above = A[k]
    for i in range(k + 1, len(A)):
        if A[i][k] != 0.0:
            factor = A[i][k] / above[k]
            A[i] = [a - factor * b for a, b in zip(A[i], above, strict=True)]
