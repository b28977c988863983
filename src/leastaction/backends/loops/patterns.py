"""Systems of the size of the mechanics, X = L U along the pattern of their entries, W shifts side by side.

Every entry is two vectors, real and imaginary parts, with a number for each shift. Row i of X becomes that of L and U
together, one row k < i after the other taken from it,

    L_ik = X_ik / U_kk,        X_ij ← X_ij − L_ik U_kj,    j > k,

and on the diagonal stands 1/U_ii. Where few coordinates depend on each other, n of them take O(n) operations. There is
no pivoting (`fused.patterns` says why); a pivot that is zero or no number is told.
"""

from __future__ import annotations

from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    div,
    fma,
    larger,
    load,
    mul,
    native,
    size_of,
    splat,
    store,
    sub,
)

PAIR = 2 * W  # numbers of an entry


@native
def load_pair(x, e):
    """Real and imaginary part of an entry."""
    return load(at(x, e * PAIR)), load(at(x, e * PAIR + W))


@native
def store_pair(x, e, real, imaginary):
    """Write an entry."""
    store(at(x, e * PAIR), real)
    store(at(x, e * PAIR + W), imaginary)


@native
def product(a, b, c, d):
    """(a + ib) (c + id)."""
    return sub(mul(a, c), mul(b, d)), fma(a, d, mul(b, c))


@native
def without_product(x, y, a, b, c, d):
    """x + iy − (a + ib) (c + id)."""
    return fma(b, d, sub(x, mul(a, c))), sub(sub(y, mul(a, d)), mul(b, c))


@native
def inverse_of(a, b):
    """1/(a + ib); the square of a number may be beyond all floats."""
    size = larger(size_of(a), size_of(b))
    a, b = div(a, size), div(b, size)
    square = mul(fma(a, a, mul(b, b)), size)
    return div(a, square), div(sub(splat(0.0), b), square)


@native
def eliminate_rows(P, n, X):
    """X ← its factors. Returns a vector of zeros, or of what is no number where a pivot is zero or no number."""
    broken = splat(0.0)
    for i in range(n):
        own = P.diagonal[i]
        for e in range(P.begin[i], own):
            k, place = P.column[e], e
            a, b = load_pair(X, e)
            c, d = load_pair(X, P.diagonal[k])
            a, b = product(a, b, c, d)
            store_pair(X, e, a, b)
            for u in range(P.diagonal[k] + 1, P.begin[k + 1]):
                while P.column[place] != P.column[u]:
                    place += 1
                x, y = load_pair(X, place)
                c, d = load_pair(X, u)
                x, y = without_product(x, y, a, b, c, d)
                store_pair(X, place, x, y)
        a, b = load_pair(X, own)
        a, b = inverse_of(a, b)
        store_pair(X, own, a, b)
        broken = fma(splat(0.0), add(a, b), broken)
    return broken


@native
def solve_pattern(P, n, X, x):
    """x ← X⁻¹ x with the factors of `eliminate_rows`."""
    for i in range(n):
        a, b = load_pair(x, i)
        for e in range(P.begin[i], P.diagonal[i]):
            c, d = load_pair(X, e)
            u, v = load_pair(x, P.column[e])
            a, b = without_product(a, b, c, d, u, v)
        store_pair(x, i, a, b)
    for i in range(n - 1, -1, -1):
        a, b = load_pair(x, i)
        for e in range(P.diagonal[i] + 1, P.begin[i + 1]):
            c, d = load_pair(X, e)
            u, v = load_pair(x, P.column[e])
            a, b = without_product(a, b, c, d, u, v)
        c, d = load_pair(X, P.diagonal[i])
        a, b = product(a, b, c, d)
        store_pair(x, i, a, b)
