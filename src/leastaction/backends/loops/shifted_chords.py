"""Equations of the shifted chord: Newton's iteration with the derivatives of the middle of a step for all its points.

With constant f_q, f_v, m_q, m_v the derivative of the equations by the unknowns is

    A/h ⊗ m_v + Q ⊗ (m_q − f_v) + h B ⊗ f_q,

A and B as in `step.kronecker`, Q = Σ_i w_i scatter_m[i, ν] gather_q[i, μ]. With A⁻¹B = V γ V⁻¹ and α the diagonal of
V⁻¹A⁻¹Q V it falls apart into systems of size n,

    X_j = m_v + h α_j (m_q − f_v) + h² γ_j f_q,        X_j w_j = −h (V⁻¹A⁻¹R)_j,        dz = V w,

one for each γ_j; of a conjugate pair one is solved. With Gauss' rules of s nodes V⁻¹A⁻¹Q V is diagonal and γ = −α²;
with other rules the diagonal is near enough for the chord to contract, and exact where m_q = f_v. X is eliminated along
its pattern, W shifts side by side (`patterns`), of a sum, where X is symmetric, one shift after the other (`sparse`).
"""

from __future__ import annotations

from leastaction.backends.layout import SHIFTS
from leastaction.backends.loops.coarse import coarse_pattern, coarse_sparse
from leastaction.backends.loops.machine import (
    W,
    add,
    any_of,
    at,
    call_kernel,
    fma,
    mul,
    native,
    reader,
    splat,
    store,
    sub,
)
from leastaction.backends.loops.mass_chords import negative_mass
from leastaction.backends.loops.patterns import PAIR, eliminate_rows, load_pair, solve_pattern, store_pair
from leastaction.backends.loops.sparse import assemble, read_sparse
from leastaction.backends.loops.sparse import factor as factor_sparse
from leastaction.backends.loops.sparse import negative as negative_sparse
from leastaction.backends.loops.sparse import solve as solve_sparse
from leastaction.backends.loops.summed import in_the_middle
from leastaction.step.status import COARSE, GOING_WELL, SINGULAR

read_shifts = reader(SHIFTS)


@native
def set_pattern(S, I, D, q, z, told):
    """The factors of every X, with the derivatives in the middle of the step that z predicts. Returns the status:
    SINGULAR if an X has no factors, COARSE if pivots tell so, where they are asked.
    """
    P, n, s, h, row = read_shifts(I, D, S.shifts), S.n, S.s, S.h[0], S.stride
    S.at[0] = S.t[0] + 0.5 * h
    for j in range(n):
        moved, speed = 0.0, 0.0
        for v in range(s):
            moved += S.middle[v] * z[j * row + v]
            speed += S.middle[s + v] * z[j * row + v]
        S.at[1 + j], S.at[1 + n + j] = q[j] + moved, speed / h
    for j in range(S.params):
        S.at[1 + 2 * n + j] = S.values[j]
    if S.channels > 0:  # inputs are those of a node in the middle
        inputs = at(S.values, S.params + (S.given - S.params) // S.channels // 2 * S.channels)
        for j in range(S.channels):
            S.at[1 + 2 * n + S.params + j] = inputs[j]
    call_kernel(S.point, S.at, S.at_values, S.work)
    broken = splat(0.0)
    if told:  # X of a short step is the mass alone
        broken = _factor_shifts(S, P, 0, 0.0)
        for k in range(n):
            P.short[k] = 1.0 / P.X[P.diagonal[k] * PAIR]
    for g in range(P.groups):
        broken = add(broken, _factor_shifts(S, P, g, h))
    if any_of(broken):
        return SINGULAR
    return COARSE if told and coarse_pattern(S, P) else GOING_WELL


@native
def _factor_shifts(S, P, g, h):
    """The factors of the g-th vector of X at the step h, from the derivatives in S.at_values; returns as
    `eliminate_rows` does.
    """
    n, X = S.n, at(P.X, g * P.entries * PAIR)
    f_q, f_v = at(S.at_values, 2 * n), at(S.at_values, 2 * n + n * n)
    m_q, m_v = at(S.at_values, 2 * n + 2 * n * n), at(S.at_values, 2 * n + 3 * n * n)
    a, b = load_pair(P.alpha, g)
    c, d = load_pair(P.gamma, g)
    a, b, c, d = mul(splat(h), a), mul(splat(h), b), mul(splat(h * h), c), mul(splat(h * h), d)
    for i in range(n):
        for e in range(P.begin[i], P.begin[i + 1]):
            place = P.order[i] * n + P.order[P.column[e]]
            gyroscopic, stiff = splat(m_q[place] - f_v[place]), splat(f_q[place])
            real = fma(c, stiff, fma(a, gyroscopic, splat(m_v[place])))
            store_pair(X, e, real, fma(d, stiff, mul(b, gyroscopic)))
    return eliminate_rows(P, n, X)


@native
def turned_pattern(S, I, D, q, z):
    """Whether the product of all determinants of X has another sign than at h → 0; that of a complex X is positive."""
    P = read_shifts(I, D, S.shifts)
    found = S.s % 2 == 1 and negative_mass(S, I, D, q, z)
    for e in range(P.count):
        if P.gamma[e // W * PAIR + W + e % W] == 0.0:
            for k in range(S.n):
                if P.X[(e // W * P.entries + P.diagonal[k]) * PAIR + e % W] < 0.0:
                    found = not found
    return int(found)


@native
def by_pattern(S, I, D):
    """S.R ← −(∂R/∂z)⁻¹ S.R, about: as many systems of size n as there are shifts."""
    P, n, s, width = read_shifts(I, D, S.shifts), S.n, S.s, S.width
    by = splat(-S.h[0])
    for g in range(P.groups):
        x = at(P.x, g * n * PAIR)
        for k in range(n):
            row, a, b = at(S.R, P.order[k] * S.stride), splat(0.0), splat(0.0)
            for v in range(s):
                c, d = load_pair(P.into, g * s + v)
                a, b = fma(c, splat(row[v]), a), fma(d, splat(row[v]), b)
            store_pair(x, k, mul(by, a), mul(by, b))
        solve_pattern(P, n, at(P.X, g * P.entries * PAIR), x)
    for k in range(n):
        for v in range(width):
            total = splat(0.0)
            for e in range(P.count):
                x = at(P.x, (e // W * n + k) * PAIR + e % W)
                a, b = load_pair(P.out, v * P.count + e)
                total = sub(fma(a, splat(x[0]), total), mul(b, splat(x[W])))
            store(at(S.R, P.order[k] * S.stride + v * W), total)


@native
def set_sparse(S, I, D, q, z, told):
    """The factors of every M + h²γK, K and M in the middle of the step that z predicts; returns as `set_pattern`."""
    P, h = read_sparse(I, D, S.sparse), S.h[0]
    in_the_middle(S, P, q, z, h)
    t = S.t[0] + 0.5 * h
    assemble(I, D, P, P.stiffness, t, P.middle_q, P.middle_v, P.K)
    if S.constant == 0 or S.multipliers > 0:
        assemble(I, D, P, P.masses, t, P.middle_q, P.middle_v, P.M)
    for e in range(P.shifts):
        if not factor_sparse(P, e, h * h * P.gamma[2 * e], h * h * P.gamma[2 * e + 1]):
            return SINGULAR
    return COARSE if told and coarse_sparse(S, P) else GOING_WELL


@native
def turned_sparse(S, I, D):
    """The same of a sum, by the factors of a real X; these are then those of h = 0."""
    P, found = read_sparse(I, D, S.sparse), False
    for e in range(P.shifts):
        if P.gamma[2 * e + 1] == 0.0 and negative_sparse(P, e):
            found = not found
    if found and S.multipliers == 0:
        for e in range(P.shifts):
            if P.gamma[2 * e + 1] == 0.0 and factor_sparse(P, e, 0.0, 0.0) and negative_sparse(P, e):
                found = not found
    return int(found)


@native
def by_sparse(S, I, D):
    """S.R ← −(A/h ⊗ M + h B ⊗ K)⁻¹ S.R; with constraints, the solution of the step's equations together with g = 0:

    X_j w_j + Gᵀ y_j = −h (V⁻¹A⁻¹R)_j,    G w_j = −(V⁻¹g)_j,    dz = V w,    h² A⁻¹W dλ = V y.
    """
    P, s, h, size = read_sparse(I, D, S.sparse), S.s, S.h[0], S.n * W
    n = P.n
    for j in range(S.components * S.stride):
        P.dz[j] = 0.0
    for e in range(P.shifts):
        both = P.gamma[2 * e + 1] != 0.0
        for k in range(n):
            j = P.order[k]
            place, real, imaginary = j // W * S.stride + j % W, 0.0, 0.0
            into, by = (P.into, -h) if j < size else (P.into_held, -1.0)
            for v in range(s):
                real += into[2 * (e * s + v)] * S.R[place + v * W]
                imaginary += into[2 * (e * s + v) + 1] * S.R[place + v * W]
            P.x[k], P.x[n + k] = by * real, by * imaginary
        solve_sparse(P, e, both)
        for k in range(n):
            j = P.order[k]
            place, real, imaginary = j // W * S.stride + j % W, P.x[k], P.x[n + k]
            out, by = (P.out, 1.0) if j < size else (P.out_held, 1.0 / (h * h))
            for v in range(s):
                at_v = 2 * (v * P.shifts + e)
                P.dz[place + v * W] += by * (out[at_v] * real - out[at_v + 1] * imaginary)
    for j in range(S.components * S.stride):
        S.R[j] = P.dz[j]
