"""Sparse symmetric systems without pivoting: L D Lᵀ of M + h²γK, real or complex, on one pattern for all γ.

The factorisation goes row by row up the elimination tree (Davis, *Direct Methods for Sparse Linear Systems*, ch. 4; the
loop is that of QDLDL). Narrow bands and chains need no other code: their tree is a path. Where γ is complex, real and
imaginary parts lie in two halves of an array.
"""

from __future__ import annotations

from leastaction.backends.layout import SPARSE
from leastaction.backends.loops.machine import native, reader
from leastaction.backends.loops.strips import add_rows

read_sparse = reader(SPARSE)


@native
def analyse(n, up, ui, parent, counts, mark):
    """The elimination tree of an upper triangle, by columns, and the entries of each column of L."""
    for k in range(n):
        mark[k] = -1
        parent[k] = -1
        counts[k] = 0
    for k in range(n):
        mark[k] = k
        for e in range(up[k], up[k + 1]):
            i = ui[e]
            while i < k and mark[i] != k:
                if parent[i] == -1:
                    parent[i] = k
                counts[i] += 1
                mark[i] = k
                i = parent[i]


@native
def assemble(I, D, P, rows, t, q, v, values):
    """The entries of a matrix that is a sum over rows, at a point."""
    for e in range(P.entries):
        values[e] = 0.0
    add_rows(I, D, rows, t, q, v, values, values)


@native
def begin(I, D, place, q, v):
    """The factors of a mass that is constant; where it is singular, those of a step will be, too."""
    P = read_sparse(I, D, place)
    assemble(I, D, P, P.masses, 0.0, q, v, P.M)
    factor(P, P.shifts, 0.0, 0.0)


@native
def factor(P, slot, real, imaginary):
    """Factors of M + (real + i imaginary) K into a slot. False where a pivot is zero or no number."""
    n, N, F = P.n, P.upper, P.fill
    both = imaginary != 0.0
    for e in range(N):
        a, b = P.first[e], P.second[e]
        K = 0.5 * (P.K[a] + P.K[b])
        P.A[e] = 0.5 * (P.M[a] + P.M[b]) + real * K
        P.A[N + e] = imaginary * K
    L, Li = P.L, P.li
    begin, pivots = slot * 2 * F, slot * 2 * n
    for k in range(n):
        P.mark[k] = -1
        P.next[k] = P.lp[k]
        P.y[k] = 0.0
        P.y[n + k] = 0.0
    for k in range(n):
        dr, di = 0.0, 0.0
        top = n  # the pattern of row k of L is stacked from here on, in the order in which to eliminate
        P.mark[k] = k
        for e in range(P.up[k], P.up[k + 1]):
            i = P.ui[e]
            if i == k:
                dr, di = P.A[e], P.A[N + e]
                continue
            P.y[i], P.y[n + i] = P.A[e], P.A[N + e]
            length = 0
            while P.mark[i] != k:
                P.path[length] = i
                length += 1
                P.mark[i] = k
                i = P.parent[i]
            while length > 0:
                length -= 1
                top -= 1
                P.stack[top] = P.path[length]
        for o in range(top, n):
            c = P.stack[o]
            yr, yi = P.y[c], P.y[n + c]
            P.y[c], P.y[n + c] = 0.0, 0.0
            end = P.next[c]
            for j in range(P.lp[c], end):
                i = Li[j]
                lr = L[begin + j]
                P.y[i] -= lr * yr
                if both:
                    lj = L[begin + F + j]
                    P.y[i] += lj * yi
                    P.y[n + i] -= lr * yi + lj * yr
            pr, pi = P.pivot[pivots + c], P.pivot[pivots + n + c]
            lr, lj = yr * pr, 0.0
            if both:
                lr, lj = yr * pr - yi * pi, yr * pi + yi * pr
            dr -= yr * lr - yi * lj
            di -= yr * lj + yi * lr
            Li[end] = k
            L[begin + end] = lr
            L[begin + F + end] = lj
            P.next[c] = end + 1
        size = max(abs(dr), abs(di))  # the square of a pivot may be beyond all floats
        if not size > 0.0 or dr - dr != 0.0 or di - di != 0.0:
            return False
        dr, di = dr / size, di / size
        inverse = 1.0 / (dr * dr + di * di) / size
        P.pivot[pivots + k], P.pivot[pivots + n + k] = dr * inverse, -di * inverse
    return True


@native
def negative(P, slot):
    """Whether the determinant of a real matrix is negative, from its factors."""
    found = False
    for k in range(P.n):
        if P.pivot[slot * 2 * P.n + k] < 0.0:
            found = not found
    return found


@native
def solve(P, slot, both):
    """P.x ← A⁻¹ P.x with the factors of a slot, in the order of elimination."""
    n, F, L, Li, x = P.n, P.fill, P.L, P.li, P.x
    begin, pivots = slot * 2 * F, slot * 2 * n
    for c in range(n):
        xr, xi = x[c], x[n + c]
        for j in range(P.lp[c], P.lp[c + 1]):
            i, lr = Li[j], L[begin + j]
            x[i] -= lr * xr
            if both:
                lj = L[begin + F + j]
                x[i] += lj * xi
                x[n + i] -= lr * xi + lj * xr
    for c in range(n - 1, -1, -1):
        pr, pi = P.pivot[pivots + c], P.pivot[pivots + n + c]
        xr, xi = x[c] * pr, 0.0
        if both:
            xr, xi = x[c] * pr - x[n + c] * pi, x[c] * pi + x[n + c] * pr
        for j in range(P.lp[c], P.lp[c + 1]):
            i, lr = Li[j], L[begin + j]
            xr -= lr * x[i]
            if both:
                lj = L[begin + F + j]
                xr += lj * x[n + i]
                xi -= lr * x[n + i] + lj * x[i]
        x[c], x[n + c] = xr, xi
