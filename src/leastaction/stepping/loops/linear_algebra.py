"""Dense linear systems of the size of a step: LU with partial pivoting, in place.

The matrix is row-major. Small ones are factored by the loops below; from `LAPACK_FROM` unknowns on
LAPACK is faster, which sees the row-major matrix as its transpose and solves with that.
"""

from __future__ import annotations

from leastaction.stepping.layout import GETRF, GETRS, LAPACK_FROM
from leastaction.stepping.loops.calls import at, call_dgetrf, call_dgetrs, native

TRANSPOSE = 84  # the letter T


@native
def factor(I, A, pivots, size, N):
    """A ← L, U of P A with unit lower L. Returns False if a pivot is zero or not finite."""
    if N >= LAPACK_FROM:
        size[0] = N
        call_dgetrf(I[GETRF], size, size, A, size, pivots, at(size, 1))
        return size[1] == 0
    for k in range(N):
        best = k
        for i in range(k + 1, N):
            if abs(A[i * N + k]) > abs(A[best * N + k]):
                best = i
        pivots[k] = best
        if best != k:
            for j in range(N):
                A[k * N + j], A[best * N + j] = A[best * N + j], A[k * N + j]
        if not abs(A[k * N + k]) > 0.0:
            return False
        inverse = 1.0 / A[k * N + k]
        for i in range(k + 1, N):
            ratio = A[i * N + k] * inverse
            A[i * N + k] = ratio
            for j in range(k + 1, N):
                A[i * N + j] -= ratio * A[k * N + j]
    return True


@native
def solve(I, A, pivots, size, x, N):
    """x ← A⁻¹ x with the factors of `factor`."""
    if N >= LAPACK_FROM:
        size[0], size[2], size[3] = N, 1, TRANSPOSE
        call_dgetrs(I[GETRS], at(size, 3), size, at(size, 2), A, size, pivots, x, size, at(size, 1))
        return
    for k in range(N):
        other = pivots[k]
        if other != k:
            x[k], x[other] = x[other], x[k]
    for k in range(N):
        for j in range(k):
            x[k] -= A[k * N + j] * x[j]
    for k in range(N - 1, -1, -1):
        for j in range(k + 1, N):
            x[k] -= A[k * N + j] * x[j]
        x[k] /= A[k * N + k]
