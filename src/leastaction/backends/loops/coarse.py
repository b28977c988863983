"""Whether a step is so coarse that a root near its prediction may be any of several: from pivots (`step.verdict`).

Newton's iteration exchanges rows when it eliminates, and the pivots of such an elimination cannot be compared with
others. So its matrix is eliminated once more, before, with the exchanges of the mass alone: those of a short step need
no others. Shifted chords exchange none. Where the mass is not constant, it is that in the middle of the step.
"""

from __future__ import annotations

from leastaction.backends.loops.elimination import take_from
from leastaction.backends.loops.machine import W, at, native
from leastaction.backends.loops.patterns import PAIR
from leastaction.backends.loops.sparse import factor as factor_sparse
from leastaction.step.verdict import departs as departs_in_python

departs = native(departs_in_python)


@native
def coarse_jacobian(S):
    """Whether a pivot of the Jacobian S.J departs from that of A/h ⊗ M; the mass is set. S.J is spent."""
    s, inverse_h = S.s, 1.0 / S.h[0]
    if S.diagonal == 0:
        for k in range(S.n):
            for v in range(s):
                _exchange(S.J, k * s + v, S.mass_pivots[k] * s + v, S.unknowns, S.lead)
    for k in range(S.unknowns):
        short = S.short[k % s] * inverse_h * _mass_pivot(S, k // s)
        if departs(short / S.J[k * S.lead + k], 0.0):
            return True
        _eliminate(S.J, k, S.unknowns, S.lead)
    return False


@native
def coarse_pattern(S, P):
    """The same of the matrices X of shifted chords, from the inverses of their pivots beside the pivots of M."""
    for e in range(P.count):
        for k in range(S.n):
            own = at(P.X, (e // W * P.entries + P.diagonal[k]) * PAIR + e % W)
            if departs(P.short[k] * own[0], P.short[k] * own[W]):
                return True
    return False


@native
def coarse_sparse(S, P):
    """The same of a sum, from the pivots of all its M + h²γK beside those of M."""
    if S.constant == 0 and not factor_sparse(P, P.shifts, 0.0, 0.0):
        return True
    mass = at(P.pivot, P.shifts * 2 * P.n)
    for e in range(P.shifts):
        own = at(P.pivot, e * 2 * P.n)
        for k in range(P.n):
            if departs(own[k] / mass[k], own[P.n + k] / mass[k]):
                return True
    return False


@native
def _mass_pivot(S, j):
    return 1.0 / S.M[j] if S.diagonal == 1 else S.F[j * S.mass_lead + j]


@native
def _exchange(A, i, k, N, lead):
    """Exchange two rows."""
    if i != k:
        for j in range(N):
            A[i * lead + j], A[k * lead + j] = A[k * lead + j], A[i * lead + j]


@native
def _eliminate(A, k, N, lead):
    """Take row k from those below it."""
    above, inverse = at(A, k * lead), 1.0 / A[k * lead + k]
    for i in range(k + 1, N):
        row = at(A, i * lead)
        if row[k] != 0.0:
            take_from(row, above, row[k] * inverse, k + 1, N)
