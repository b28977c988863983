"""The derivative of a run by where it began, by the parameters and by h, carried along step by step.

With R(z; q, p, w, h) = 0 the equations of a step, q⁺ = q + z^s and p⁺ = p + I(z; q, w, h) (see `step.form`), a
direction (dq, dp, dw, dh) is carried to

    dz = −(∂R/∂z)⁻¹ (R_q dq + R_p dp + R_w dw + R_h dh),    dq⁺ = dq + dz^s,    dp⁺ = dp + dI .

R and I along a direction are the same sweep as R and I: what the Programs read changes by what is gathered, what they
give changes by their derivatives, and these changes are scattered. h itself changes the nodes' times, t₀ + (k + c_i) h,
the velocities, by −v_i/h, and the weights h w_i; in l_ν′/h · h w_i the last two changes cancel.

Where there are constraints dp⁺ is what the step's own equations give, dp⁻, carried through the End (`constraints`).
"""

from __future__ import annotations

from leastaction.backends.loops.constraints import linearise, settle_along
from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.machine import W, add, at, fma, load, native, splat, store
from leastaction.backends.loops.sweep import (
    TERM_SIZE,
    gather,
    jacobian,
    prepare,
    read_term,
    scatter_values,
    set_given,
    set_products,
    set_step,
    sweep,
)


@native
def take_lane(A, S, X, i):
    """Copy the step of lane i to the solver for one trajectory: where the step begins, and z."""
    T, row = A.stride, S.stride
    S.t[0] = X[A.t * T + i]
    if S.summed == 1:
        for j in range(S.n * W):
            S.q[j], S.p[j], S.reach[j], S.floor[j] = X[A.q + j], X[A.p + j], X[A.reach + j], X[A.floor + j]
        for j in range(S.components * row):
            S.z[j] = X[A.z + j]
        return
    for j in range(A.n):
        S.q[j] = X[A.q * T + j * A.coordinate + i]
        S.p[j] = X[A.p * T + j * A.coordinate + i]
        S.reach[j] = X[A.reach * T + j * A.coordinate + i]
        S.floor[j] = X[A.floor * T + j * A.coordinate + i]
        S.length[j] = X[A.length * T + j * A.coordinate + i]
        for v in range(A.s):
            S.z[j * row + v] = X[A.z * T + j * A.z_coordinate + v * A.z_control + i]
    for j in range(S.multipliers):
        for v in range(A.s):
            place = A.z * T + A.held + j * A.held_multiplier + v * A.held_control + i
            S.z[(A.n + j) * row + v] = X[place]
    for j in range(S.components):
        for v in range(A.s, row):
            S.z[j * row + v] = 0.0
    for j in range(A.param_count):
        S.values[j] = X[(A.params + j) * T + i]
    for j in range(A.channels):
        for k in range(A.nodes):
            S.values[A.param_count + k * A.channels + j] = X[input_place(A, k, j, i)]


@native
def input_place(A, k, j, i):
    """Where in the state the j-th number of the inputs at the k-th node is, of lane i."""
    if A.vectors > 0:
        return (A.inputs + j * A.vectors + k // A.stride) * A.stride + k % A.stride
    return (A.inputs + k * A.channels + j) * A.stride + i


@native
def carry(I, D, A, S, X, k, tangent):
    """The directions from the start of step k to its end, where z solves it; False where ∂R/∂z is singular."""
    n, s, N, row, h = A.n, A.s, S.unknowns, S.stride, A.step[0]
    take_lane(A, S, X, 0)
    prepare(S, I, D, h, True)
    if A.sensitive != S.terms and A.sensitive_h[0] != h:
        set_step(S, I, D, A.sensitive, h)
        set_products(S, I, D, A.sensitive)
        A.sensitive_h[0] = h
    set_given(S, I, D, A.sensitive, S.t, S.values)
    sweep(S, I, D, A.sensitive, True, S.q, S.p, S.z)
    jacobian(S, I, D, A.sensitive)
    if not factor(S.J, S.pivots, N, S.lead):
        return False
    if A.end_slopes != 0 and not linearise(S, A.end_slopes, h):
        return False
    for c in range(A.columns):
        d = at(tangent, c * 2 * n)
        for i in range(S.components * row):
            S.last[i] = 0.0
        _along(I, D, A, S, d, c - 2 * n, k + A.offset[0], A.period[0])
        for j in range(n):
            S.R[j * row + s - 1] -= d[n + j]
        for j in range(S.components):
            for v in range(s):
                S.b[j * s + v] = -S.R[j * row + v]
        solve(S.J, S.pivots, N, S.lead, S.b)
        for j in range(S.components):
            for v in range(s):
                S.last[j * row + v] = S.b[j * s + v]
        _along(I, D, A, S, d, c - 2 * n, k + A.offset[0], A.period[0])
        for j in range(n):
            d[j] += S.last[j * row + s - 1]
            d[n + j] += S.impulse[j]
        if A.end_slopes != 0:
            settle_along(S, d, c - 2 * n, k + A.offset[0] + h / A.period[0])
    return True


@native
def _along(I, D, A, S, d, e, k, h):
    """S.R, S.impulse ← R and I along dq = d, dz = S.last; e ≥ 0 names the parameter, or behind them h, that varies.

    k and h are in units of whole steps: k may lie inside a whole step.
    """
    for c in range(S.components * S.width):
        store(at(S.R, c * W), splat(0.0))
    for c in range(S.n):
        S.impulse[c] = 0.0
    n, P = S.n, S.params
    for number in range(S.term_count):
        T = read_term(I, D, A.sensitive + number * TERM_SIZE)
        groups, outputs = T.groups, T.slope_outputs
        inputs = at(A.push, groups * outputs * W)
        for g in range(groups * outputs):
            store(at(A.push, g * W), splat(0.0))
        gather(S, T, d, S.last, True, inputs)
        for w in range(T.gathers if e == P and e >= 0 else 0):
            if T.gather[5 * w + 2] == 1:  # velocities
                for o in range(T.gather[5 * w + 4] * groups):
                    place = ((o % groups) * T.inputs + T.gather[5 * w] + o // groups) * W
                    store(at(inputs, place), fma(splat(-1.0 / h), load(at(T.point, place)), load(at(inputs, place))))
        for w in range(T.entries):
            value, row, column, pair = T.entry[4 * w], T.entry[4 * w + 1], T.entry[4 * w + 2], T.entry[4 * w + 3]
            out = n + row if T.pair[2 * pair] == 1 else row  # f, then m, or f, then g
            place = T.reads[T.pair[2 * pair + 1] * S.components + column]
            for g in range(groups):
                total = load(at(A.push, (g * outputs + out) * W))
                slope = load(at(T.values, (g * outputs + value) * W))
                store(
                    at(A.push, (g * outputs + out) * W), fma(slope, load(at(inputs, (g * T.inputs + place) * W)), total)
                )
        if e >= 0:
            for g in range(groups):
                for j in range(T.outputs):
                    change = at(A.push, (g * outputs + j) * W)
                    values = at(T.values, g * outputs * W)
                    if e < P:
                        store(change, add(load(change), load(at(values, (T.by_params + j * P + e) * W))))
                    else:
                        for m in range(W):
                            i = min(g * W + m, T.points - 1)
                            when = k + T.raw[i] / h
                            change[m] += when * values[(T.by_time + j) * W + m]
                            if j < n:
                                change[m] += values[j * W + m] / h
        scatter_values(S, T, A.push, outputs, S.p, 0.0)
