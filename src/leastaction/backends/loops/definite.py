"""A dense mass: eliminated row by row, without exchanges where it is positive definite; and solutions with it.

Of a positive definite matrix all pivots are positive, and no exchange of rows makes its elimination more accurate,
whatever the units of the coordinates are (Cholesky's). Each row of U is summed in vectors and stored once,

    U_ij = A_ij − Σ_{k<i} l_ik U_kj,    l_ik = U_ki / U_kk    (A is symmetric).

Two vectors of a row with two sums each, and four rows of a solution at a time: a single sum would wait for itself.
"""

from __future__ import annotations

from leastaction.backends.loops.machine import W, add, at, fma, load, mul, native, splat, store


@native
def eliminate(A, n, F, lead, inverses, ratios):
    """F ← L, U of A = L U, unit lower L, (n, lead), and the inverses of the pivots; A is (n, n) with 2W numbers behind
    it. False if A is not positive definite.
    """
    for i in range(n):
        for k in range(i):
            ratios[k] = F[k * lead + i] * inverses[k]
        row, first = at(F, i * lead), i // (2 * W) * 2 * W
        for c in range(first, lead, 2 * W):
            place = at(A, i * n + c)
            x, y, u, v = load(place), load(at(place, W)), splat(0.0), splat(0.0)
            above, k = at(F, c), 0
            while k + 2 <= i:
                a, b, below = splat(-ratios[k]), splat(-ratios[k + 1]), at(above, lead)
                x, y = fma(a, load(above), x), fma(a, load(at(above, W)), y)
                u, v = fma(b, load(below), u), fma(b, load(at(below, W)), v)
                above = at(below, lead)
                k += 2
            if k < i:
                a = splat(-ratios[k])
                x, y = fma(a, load(above), x), fma(a, load(at(above, W)), y)
            store(at(row, c), add(x, u))
            store(at(row, c + W), add(y, v))
        inverses[i] = 1.0 / row[i]
        if not (row[i] > 0.0 and inverses[i] - inverses[i] == 0.0):
            return False
        for k in range(0, first, W):
            store(at(row, k), load(at(ratios, k)))
        for k in range(first, i):
            row[k] = ratios[k]
    return True


@native
def solve_rows(F, n, lead, inverses, x, width):
    """x ← (L U)⁻¹ x; x has a row of so many vectors for each coordinate."""
    for v in range(width):
        y, pitch = at(x, v * W), width * W
        k = 0
        while k + 4 <= n:
            _forward(F, lead, y, pitch, k)
            k += 4
        for k in range(n // 4 * 4, n):
            store(at(y, k * pitch), _less(at(F, k * lead), y, pitch, 0, k, load(at(y, k * pitch))))
        k = n - 4
        while k >= 0:
            _backward(F, n, lead, inverses, y, pitch, k)
            k -= 4
        for k in range(n % 4 - 1, -1, -1):
            one = _less(at(F, k * lead), y, pitch, k + 1, n, load(at(y, k * pitch)))
            store(at(y, k * pitch), mul(one, splat(inverses[k])))


@native
def _less(row, y, pitch, begin, end, total):
    """total − Σ row_i y_i, i = begin … end."""
    for i in range(begin, end):
        total = fma(splat(-row[i]), load(at(y, i * pitch)), total)
    return total


@native
def _forward(F, lead, y, pitch, k):
    """y ← L⁻¹ y in the rows k … k + 3; those above are done."""
    A, B, C, D = at(F, k * lead), at(F, (k + 1) * lead), at(F, (k + 2) * lead), at(F, (k + 3) * lead)
    own = at(y, k * pitch)
    a, b, c, d = load(own), load(at(own, pitch)), load(at(own, 2 * pitch)), load(at(own, 3 * pitch))
    for i in range(k):
        known = load(at(y, i * pitch))
        a, b = fma(splat(-A[i]), known, a), fma(splat(-B[i]), known, b)
        c, d = fma(splat(-C[i]), known, c), fma(splat(-D[i]), known, d)
    b = fma(splat(-B[k]), a, b)
    c = fma(splat(-C[k + 1]), b, fma(splat(-C[k]), a, c))
    d = fma(splat(-D[k + 2]), c, fma(splat(-D[k + 1]), b, fma(splat(-D[k]), a, d)))
    store(own, a)
    store(at(own, pitch), b)
    store(at(own, 2 * pitch), c)
    store(at(own, 3 * pitch), d)


@native
def _backward(F, n, lead, inverses, y, pitch, k):
    """y ← U⁻¹ y in the rows k … k + 3; those below are done."""
    A, B, C, D = at(F, k * lead), at(F, (k + 1) * lead), at(F, (k + 2) * lead), at(F, (k + 3) * lead)
    own = at(y, k * pitch)
    a, b, c, d = load(own), load(at(own, pitch)), load(at(own, 2 * pitch)), load(at(own, 3 * pitch))
    for i in range(k + 4, n):
        known = load(at(y, i * pitch))
        a, b = fma(splat(-A[i]), known, a), fma(splat(-B[i]), known, b)
        c, d = fma(splat(-C[i]), known, c), fma(splat(-D[i]), known, d)
    d = mul(d, splat(inverses[k + 3]))
    c = mul(fma(splat(-C[k + 3]), d, c), splat(inverses[k + 2]))
    b = mul(fma(splat(-B[k + 2]), c, fma(splat(-B[k + 3]), d, b)), splat(inverses[k + 1]))
    a = fma(splat(-A[k + 1]), b, fma(splat(-A[k + 2]), c, fma(splat(-A[k + 3]), d, a)))
    store(own, mul(a, splat(inverses[k])))
    store(at(own, pitch), b)
    store(at(own, 2 * pitch), c)
    store(at(own, 3 * pitch), d)
