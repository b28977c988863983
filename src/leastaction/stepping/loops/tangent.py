"""The derivative of a run with respect to where it began, to the parameters and to h, carried along step by step.

With z the increments of a step, R(z; q, p, w) = 0 its equations and q⁺ = q + z^s, p⁺ = p + I(z; q, w) (see
`leastaction.discrete`), a direction (dq, dp, dw) is carried to

    dz = −(∂R/∂z)⁻¹ (R_q dq + R_p dp + R_w dw),    dq⁺ = dq + dz^s,    dp⁺ = dp + I_q dq + I_z dz + I_w dw,

from the second derivatives of L at the solution, exactly: one evaluation, one factorisation.
"""

from __future__ import annotations

from collections import namedtuple

from leastaction.stepping.layout import (
    DEGREE,
    DOF,
    EVERY,
    FIRST,
    GOING_WELL,
    LAST,
    NODES,
    RUN,
    SENSITIVITY,
    SENSITIVITY_EXTRA,
    SENSITIVITY_FUSED,
    SENSITIVITY_VALUES,
    SINGULAR,
    STATUS,
    STEPS,
    STORED,
)
from leastaction.stepping.loops.calls import at, call_kernel, call_run, native
from leastaction.stepping.loops.linear_algebra import factor, solve
from leastaction.stepping.loops.workspace import tables, workspace

# before     the state the step began with
# values     the kernel's output: L_q, L_v, L_qq, L_qv, L_vv, L_vt, and with extra columns L_qt, L_qw, L_vw
# A, Rq, Rx  ∂R/∂z, ∂R/∂q (N, n), and ∂R/∂w, a row per parameter and one for h
# G, Iq, Ix  the same of the impulse
Space = namedtuple("Space", "before values A Rq Rx G Iq Ix z kernel")


@native
def run(I, R, table, x, carry, stored, memory, pivots, J, scratch, D, tangents):
    """Do I[STEPS] steps as galerkin.run does, and carry the columns of D (each of length 2n) along.

    D has 2n columns for the state and J[SENSITIVITY_EXTRA] more: none, or one for each parameter and one for h.
    """
    T = tables(I, table)
    W = workspace(I, memory, pivots)
    n, extra = I[DOF], J[SENSITIVITY_EXTRA]
    size = 2 * n * (2 * n + extra)
    S = _space(I, J, scratch)
    first, steps = I[FIRST], I[STEPS]
    for k in range(first, first + steps):
        for j in range(2 * n):
            S.before[j] = x[2 + j]
        I[FIRST], I[STEPS] = k, 1
        row = I[STORED]
        call_run(J[RUN], I, R, table, x, carry, stored, memory, pivots)
        if I[STATUS] != GOING_WELL:
            break
        if J[SENSITIVITY_FUSED] == 1:
            _carry_by_kernel(J, S, x, D, n)
        else:
            _linearise(I, J, T, W, S, x, k)
            if not factor(I, S.A, W.pivots, W.size, n * I[DEGREE]):
                I[STATUS] = SINGULAR
                break
            for c in range(2 * n + extra):
                _carry(I, W, S, at(D, c * 2 * n), c - 2 * n)
        if (k + 1) % I[EVERY] == 0 or k + 1 == I[LAST]:
            for j in range(size):
                tangents[row * size + j] = D[j]
    I[FIRST], I[STEPS] = first, steps


@native
def _space(I, J, scratch):
    n, s, extra = I[DOF], I[DEGREE], J[SENSITIVITY_EXTRA]
    N = n * s
    before = scratch
    values = at(before, 2 * n)
    A = at(values, J[SENSITIVITY_VALUES])
    Rq = at(A, N * N)
    Rx = at(Rq, N * n)
    G = at(Rx, N * extra)
    Iq = at(G, n * N)
    Ix = at(Iq, n * n)
    z = at(Ix, n * extra)
    return Space(before, values, A, Rq, Rx, G, Iq, Ix, z, at(z, N))


@native
def _carry_by_kernel(J, S, x, D, n):
    """The columns of D by Φ' from one kernel, at the state the step began with."""
    for j in range(2 * n):
        S.before[j], x[2 + j] = x[2 + j], S.before[j]
    call_kernel(J[SENSITIVITY], x, S.values, S.kernel)
    for j in range(2 * n):
        x[2 + j] = S.before[j]
    for c in range(2 * n):
        d = at(D, c * 2 * n)
        for i in range(2 * n):
            total = 0.0
            for k in range(2 * n):
                total += S.values[i * 2 * n + k] * d[k]
            S.before[i] = total
        for i in range(2 * n):
            d[i] = S.before[i]


@native
def _linearise(I, J, T, W, S, x, k):
    """Fill S with the derivatives of the equations of step k at its solution."""
    n, s, extra = I[DOF], I[DEGREE], J[SENSITIVITY_EXTRA]
    N, h, z = n * s, x[1], at(x, 2 + 2 * n)
    for j in range(N * N + N * n + N * extra + n * N + n * n + n * extra):
        S.A[j] = 0.0
    for i in range(I[NODES]):
        b, l, dl = T.b[i], at(T.l, i * (s + 1)), at(T.dl, i * (s + 1))
        W.point[0] = x[0] + T.c[i] * h
        for j in range(n):
            moved, speed = 0.0, 0.0
            for m in range(s):
                moved += l[m + 1] * z[m * n + j]
                speed += dl[m + 1] * z[m * n + j]
            W.point[1 + j] = S.before[j] + moved
            W.point[1 + n + j] = speed / h
        call_kernel(J[SENSITIVITY], W.point, S.values, S.kernel)
        _add_node(n, s, h, b, l, dl, S)
        if extra > 0:
            _add_extra(n, s, extra - 1, h, b, k + T.c[i], l, dl, at(W.point, 1 + n), S)


@native
def _add_node(n, s, h, b, l, dl, S):
    """One node's part of ∂R/∂z, ∂R/∂q and of the same of the impulse; column m = 0 stands for q itself."""
    N = n * s
    Lqq, Lqv, Lvv = at(S.values, 2 * n), at(S.values, 2 * n + n * n), at(S.values, 2 * n + 2 * n * n)
    for j in range(n):
        for k in range(n):
            qq, qv = h * b * Lqq[j * n + k], b * Lqv[j * n + k]
            vq, vv = b * Lqv[k * n + j], b * Lvv[j * n + k] / h
            S.Iq[j * n + k] += qq
            for v in range(s):
                S.Rq[(v * n + j) * n + k] += l[v] * qq + dl[v] * vq
            for m in range(s):
                d_Lq, d_Lv = l[m + 1] * qq + dl[m + 1] * qv, l[m + 1] * vq + dl[m + 1] * vv
                column = m * n + k
                S.G[j * N + column] += d_Lq
                for v in range(s):
                    S.A[(v * n + j) * N + column] += l[v] * d_Lq + dl[v] * d_Lv


@native
def _add_extra(n, s, params, h, b, when, l, dl, velocity, S):
    """The same with respect to the parameters and, last, to h, on which the node's time t₀ + when · h depends too."""
    N = n * s
    Lqv, Lvv = at(S.values, 2 * n + n * n), at(S.values, 2 * n + 2 * n * n)
    Lvt = at(S.values, 2 * n + 3 * n * n)
    Lqt, Lqw, Lvw = at(Lvt, n), at(Lvt, 2 * n), at(Lvt, 2 * n + n * params)
    for j in range(n):
        for e in range(params + 1):
            if e < params:
                d_Lq, d_Lv = h * b * Lqw[j * params + e], b * Lvw[j * params + e]
            else:
                d_Lq, d_Lv = b * (S.values[j] + h * when * Lqt[j]), b * when * Lvt[j]
                for k in range(n):
                    d_Lq -= b * Lqv[j * n + k] * velocity[k]
                    d_Lv -= b * Lvv[j * n + k] * velocity[k] / h
            S.Ix[e * n + j] += d_Lq
            for v in range(s):
                S.Rx[e * N + v * n + j] += l[v] * d_Lq + dl[v] * d_Lv


@native
def _carry(I, W, S, d, e):
    """d = (dq, dp) ← (dq⁺, dp⁺); e ≥ 0 names the parameter that this column varies."""
    n, s = I[DOF], I[DEGREE]
    N = n * s
    for i in range(N):
        total = d[n + i] if i < n else 0.0
        for k in range(n):
            total += S.Rq[i * n + k] * d[k]
        if e >= 0:
            total += S.Rx[e * N + i]
        S.z[i] = -total
    solve(I, S.A, W.pivots, W.size, S.z, N)
    for j in range(n):
        total = S.Ix[e * n + j] if e >= 0 else 0.0
        for k in range(n):
            total += S.Iq[j * n + k] * d[k]
        for i in range(N):
            total += S.G[j * N + i] * S.z[i]
        d[n + j] += total
    for j in range(n):
        d[j] += S.z[N - n + j]
