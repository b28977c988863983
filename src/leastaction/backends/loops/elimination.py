"""Dense linear systems: LU with partial pivoting, in place, rows in vectors; without a library, and so without a
library's threads.

Each row is measured by its largest entry when it is compared with others. Without that the units of the coordinates
choose the pivots: twenty links with units from 2⁻⁶⁰ to 2⁶⁰ had a mass whose factors were 10¹⁵ times too large.
"""

from __future__ import annotations

from leastaction.backends.loops.machine import (
    W,
    add,
    address_of,
    at,
    doubles,
    first_of,
    fma,
    larger,
    largest_of,
    load,
    native,
    size_of,
    splat,
    store,
    sum_of,
)


@native
def factor(A, pivots, N, lead):
    """A ← L, U of P A, unit lower L, row-major with rows of length `lead`. False if a pivot is zero or not finite."""
    units = doubles(address_of(pivots))  # 1/(largest entry) of rows that are no pivots yet, kept where pivots will be
    for i in range(N):
        largest = largest_entry(at(A, i * lead), N)
        units[i] = 1.0 / largest if largest > 0.0 else 0.0
    for k in range(N):
        best, longest = k, abs(A[k * lead + k]) * units[k]
        for i in range(k + 1, N):
            length = abs(A[i * lead + k]) * units[i]
            if length > longest:
                best, longest = i, length
        units[best] = units[k]
        pivots[k] = best
        if best != k:
            for j in range(N):
                A[k * lead + j], A[best * lead + j] = A[best * lead + j], A[k * lead + j]
        if not abs(A[k * lead + k]) > 0.0:
            return False
        inverse = 1.0 / A[k * lead + k]
        if inverse - inverse != 0.0:
            return False
        above = at(A, k * lead)
        for i in range(k + 1, N):
            row = at(A, i * lead)
            if row[k] != 0.0:  # it is zero in most rows of a sparse matrix, as with constraints or in chains
                row[k] *= inverse
                take_from(row, above, row[k], k + 1, N)
    return True


@native
def largest_entry(x, N):
    """The largest |x_j|, j = 0 … N; a NaN may pass unseen, and is seen where its row is a pivot."""
    j, found = 0, splat(0.0)
    while j + W <= N:
        found = larger(found, size_of(load(at(x, j))))
        j += W
    largest = first_of(largest_of(found)) if j > 0 else 0.0
    while j < N:
        largest = max(largest, abs(x[j]))
        j += 1
    return largest


@native
def sizes(x, y, begin, end):
    """Σ |x_j| y_j, j = begin … end."""
    j, found, total = begin, splat(0.0), 0.0
    while j + W <= end:
        found = fma(size_of(load(at(x, j))), load(at(y, j)), found)
        j += W
    while j < end:
        total += abs(x[j]) * y[j]
        j += 1
    return total + first_of(sum_of(found))


@native
def negative(A, pivots, N, lead):
    """Whether the determinant of a matrix is negative, from its factors."""
    found = False
    for k in range(N):
        if (A[k * lead + k] < 0.0) != (pivots[k] != k):
            found = not found
    return found


@native
def take_from(x, y, a, begin, end):
    """x[begin … end] −= a y."""
    j = begin
    factor = splat(-a)
    while j + W <= end:
        store(at(x, j), fma(factor, load(at(y, j)), load(at(x, j))))
        j += W
    while j < end:
        x[j] -= a * y[j]
        j += 1


@native
def solve(A, pivots, N, lead, x):
    """x ← A⁻¹ x with the factors of `factor`."""
    for k in range(N):
        other = pivots[k]
        if other != k:
            x[k], x[other] = x[other], x[k]
    for k in range(N):
        x[k] -= dot(at(A, k * lead), x, 0, k)
    for k in range(N - 1, -1, -1):
        x[k] = (x[k] - dot(at(A, k * lead), x, k + 1, N)) / A[k * lead + k]


@native
def dot(x, y, begin, end):
    """Σ x_j y_j, j = begin … end. One long chain of sums would wait for each of them: there are two of vectors."""
    j, one, other = begin, splat(0.0), splat(0.0)
    while j + 2 * W <= end:
        one = fma(load(at(x, j)), load(at(y, j)), one)
        other = fma(load(at(x, j + W)), load(at(y, j + W)), other)
        j += 2 * W
    if j + W <= end:
        one = fma(load(at(x, j)), load(at(y, j)), one)
        j += W
    total = first_of(sum_of(add(one, other))) if j > begin else 0.0
    while j < end:
        total += x[j] * y[j]
        j += 1
    return total
