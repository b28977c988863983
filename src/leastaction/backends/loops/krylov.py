"""Equations of Newton's iteration of a sum, with the derivatives of every point.

The equations J dz = −R couple all s n unknowns, and no transformation separates them where the points have different
derivatives. But the equations of the shifted chord, with a matrix P that has the derivatives of the middle of the step
for all points, separate into systems of size n, which are factorised. So no system of size s n is factorised:

    P⁻¹J dz = −P⁻¹R

is solved by GMRES (Saad and Schultz, 1986), and J dz is a sweep over the rows with the derivatives of the terms along
dz. P⁻¹J is the unit matrix except for the change of the derivatives within the step, so that few iterations are enough.
A chord shrinks an error by the largest eigenvalue of P⁻¹J − 1, and fails where this is one; GMRES needs no such
condition.
"""

from __future__ import annotations

from leastaction.backends.layout import KRYLOV
from leastaction.backends.loops.coarse import departs
from leastaction.backends.loops.machine import (
    W,
    at,
    div,
    first_of,
    fma,
    load,
    mul,
    native,
    reader,
    splat,
    store,
    sum_of,
)
from leastaction.backends.loops.rows import add_together
from leastaction.backends.loops.shifted_chords import by_sparse
from leastaction.backends.loops.sweep import TERM_SIZE, gather, read_term, scatter_values

read_krylov = reader(KRYLOV)

EXACTLY = 2.0**-20  # what may be left of an equation of Newton's iteration
ALIKE = 2.0**-10  # multipliers are measured by no less than this part of the largest


@native
def solve_along(S, I, D, scale):
    """S.R ← dz with P⁻¹J dz = S.R, about, from S.R = −P⁻¹R: the shortest residual in a growing Krylov space. Returns
    whether J is alike P in that space: no x·P⁻¹J x departs from x·x.
    """
    K, rows = read_krylov(I, D, S.krylov), S.components * S.s
    most, size = K.most, rows * W
    _measure(S, K, scale)
    _scaled(S, K, S.R, K.basis, 1.0, True)
    length = _product(K.basis, K.basis, rows) ** 0.5
    if not length > 0.0 or length - length != 0.0:
        return True
    _times(K.basis, 1.0 / length, rows)
    K.g[0] = length
    count, alike = 0, True
    while count < most:
        _scaled(S, K, at(K.basis, count * size), K.w, 1.0, False)
        push(S, I, D, K.w)
        by_sparse(S, I, D)
        new, column = at(K.basis, (count + 1) * size), at(K.H, count * (most + 1))
        _scaled(S, K, S.R, new, -1.0, True)
        for i in range(count + 1):
            old = at(K.basis, i * size)
            column[i] = _product(old, new, rows)
            _add_times(new, -column[i], old, rows)
        alike = alike and not departs(1.0 / column[count], 0.0)
        column[count + 1] = _product(new, new, rows) ** 0.5
        if column[count + 1] - column[count + 1] != 0.0:
            break
        if column[count + 1] > 0.0:
            _times(new, 1.0 / column[count + 1], rows)
        more = column[count + 1]
        for i in range(count):
            a, b, c, s = column[i], column[i + 1], K.turns[2 * i], K.turns[2 * i + 1]
            column[i], column[i + 1] = c * a + s * b, c * b - s * a
        long = (column[count] ** 2 + more**2) ** 0.5
        if long == 0.0:
            break
        c, s = column[count] / long, more / long
        K.turns[2 * count], K.turns[2 * count + 1] = c, s
        column[count] = long
        K.g[count], K.g[count + 1] = c * K.g[count], -s * K.g[count]
        count += 1
        if abs(K.g[count]) <= EXACTLY * length or more == 0.0:
            break
    for i in range(count - 1, -1, -1):
        for j in range(i + 1, count):
            K.g[i] -= K.H[j * (most + 1) + i] * K.g[j]
        K.g[i] /= K.H[i * (most + 1) + i]
    for e in range(rows):
        store(at(K.w, e * W), splat(0.0))
    for i in range(count):
        _add_times(K.w, K.g[i], at(K.basis, i * size), rows)
    _scaled(S, K, K.w, S.R, 1.0, False)
    return alike


@native
def push(S, I, D, w):
    """S.R ← J w, at the points of the last sweep; S.impulse ← what it changes by."""
    for c in range(S.components * S.s):
        store(at(S.R, c * W), splat(0.0))
    for c in range(S.n):
        store(at(S.impulse, c * W), splat(0.0))
    room = S.components + 1
    for e in range(S.term_count):
        T = read_term(I, D, S.terms + e * TERM_SIZE)
        gather(S, T, w, w, False, at(T.point, 2 * room * W))
        both = 1 if T.outputs > room else 0
        for i in range(T.points):
            point, values = at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W)
            q, v = at(point, W), at(point, W + room * W)
            add_together(S, I, D, T.pushed, point[0], q, v, values, at(values, room * W), both)
        scatter_values(S, T, T.values, T.outputs, w, 0.0)


@native
def _measure(S, K, scale):
    """K.scale ← the scales of the coordinates, and for multipliers their sizes or their changes."""
    for j in range(S.n * W):
        K.scale[j] = scale[j]
    top = 0.0
    for c in range(S.n, S.components):
        for k in range(W):
            own = scale[c * W + k]
            for v in range(S.s):
                own = max(own, abs(S.R[c * S.stride + v * W + k]))
            K.scale[c * W + k] = own
            top = max(top, own)
    for j in range(S.n * W, S.components * W):
        K.scale[j] = max(K.scale[j], ALIKE * top)


@native
def _scaled(S, K, x, y, sign, down):
    """y ← ± x times its scales, or with `down` divided by them."""
    for c in range(S.components):
        by = mul(splat(sign), load(at(K.scale, c * W)))
        for v in range(S.s):
            place = c * S.stride + v * W
            found = load(at(x, place))
            store(at(y, place), div(found, by) if down else mul(found, by))


@native
def _product(x, y, rows):
    total = splat(0.0)
    for e in range(rows):
        total = fma(load(at(x, e * W)), load(at(y, e * W)), total)
    return first_of(sum_of(total))


@native
def _times(x, by, rows):
    for e in range(rows):
        store(at(x, e * W), mul(splat(by), load(at(x, e * W))))


@native
def _add_times(x, by, y, rows):
    for e in range(rows):
        store(at(x, e * W), fma(splat(by), load(at(y, e * W)), load(at(x, e * W))))
