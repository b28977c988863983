"""The classical Runge–Kutta method on a vector field: trajectories in lanes, or one with its derivative."""

from __future__ import annotations

from leastaction.backends.layout import RK4
from leastaction.backends.loops.elimination import dot, factor, solve
from leastaction.backends.loops.legendre import invert
from leastaction.backends.loops.machine import at, call_kernel, native, reader
from leastaction.backends.loops.storing import drive
from leastaction.step.status import GOING_WELL, NOT_FINITE, SINGULAR

read = reader(RK4)


@native
def run(I, D, place, states, Y, counts, stored):
    """The steps of every group; `counts` has a status and the steps done of each lane.

    A group's numbers are (t, h, params, inputs at the stages, y), each of all lanes. The kernel gives the state after a
    step for all lanes; a lane for which it is not finite, as where a sine is out of its range, has its step done alone.
    Without such a kernel the step of one trajectory goes stage by stage.
    """
    S = read(I, D, place)
    size, L, h = S.size, S.lanes, S.step[0]
    before = S.inputs + S.nodes * S.channels
    for group in range(S.groups):
        X, count = at(states, group * (before + size) * L), at(counts, group * L * 2)
        y = at(X, before * L)
        for k in range(S.table_first[0], S.table_first[0] + S.steps[0]):
            for i in range(L):
                X[i] = S.start[0] + k * h
            if S.channels > 0:
                drive(S, X, k, at(S.who, group * L))
            if S.kernel != 0:
                call_kernel(S.kernel, X, Y, S.work)
            for i in range(L):
                if count[2 * i] != GOING_WELL:
                    continue
                if S.kernel == 0:
                    count[2 * i] = _staged(S, k, X, y, Y)
                elif L > 1 and not _finite(Y, size, L, i):
                    for j in range(before + size):
                        S.own[j] = X[j * L + i]
                    call_kernel(S.single, S.own, S.after, S.work)
                    for j in range(size):
                        Y[j * L + i] = S.after[j]
                if count[2 * i] == GOING_WELL and not _finite(Y, size, L, i):
                    count[2 * i] = NOT_FINITE
                if count[2 * i] != GOING_WELL:
                    continue
                for j in range(size):
                    y[j * L + i] = Y[j * L + i]
                count[2 * i + 1] += 1
                if (k + 1) % S.every == 0:
                    own = at(stored, ((group * L + i) * S.rows + (k + 1) // S.every - S.skipped) * size)
                    for j in range(size):
                        own[j] = y[j * L + i]


@native
def _finite(Y, size, L, i):
    """Whether the numbers of lane i are finite."""
    check = 0.0
    for j in range(size):
        check += Y[j * L + i]
    return check - check == 0.0


@native
def _staged(S, k, X, y, Y):
    """Y ← y + Σ b_i k_i, the state after step k: k_i = h f(t + c_i h, y + Σ a_ij k_j). Time is counted in steps, so
    that h is a parameter like the others. Where a step has a kernel, the state itself is that of the kernel.
    """
    n, size, h = S.n, S.size, S.step[0]
    for j in range(S.params):
        S.at[1 + 2 * n + j] = X[2 + j]
    for stage in range(S.nodes):
        _move(S, at(S.a, stage * S.nodes), stage, y, S.argument)
        for j in range(S.channels):
            S.at[1 + 2 * n + S.params + j] = X[2 + S.params + stage * S.channels + j]
        rate = at(S.rates, stage * size)
        if not _field(S, X[0] + S.c[stage] * h, k + S.c[stage], rate):
            return SINGULAR
        for j in range(2 * n if S.outer > 0 else 0):
            rate[size - 2 * n + j] += rate[j] / h
        for j in range(size):
            rate[j] *= h
    _move(S, S.b, S.nodes, y, Y)
    if S.single != 0:
        call_kernel(S.single, X, Y, S.work)
    return GOING_WELL


@native
def _move(S, weights, stages, y, moved):
    """moved ← y + Σ_j weights_j k_j over so many stages; the sum comes first, so that y is rounded once."""
    for j in range(S.size):
        moved[j] = 0.0
    for stage in range(stages):
        for j in range(S.size if weights[stage] != 0.0 else 0):
            moved[j] += weights[stage] * S.rates[stage * S.size + j]
    for j in range(S.size):
        moved[j] += y[j]


@native
def _field(S, t, when, rate):
    """The rate of S.argument, at time t, after `when` steps; False where the mass is singular."""
    n = S.n
    x = at(S.at, 1 + 2 * n + S.params + S.channels)
    S.at[0] = t
    for j in range(n):
        S.at[1 + j] = S.argument[j]
    if S.implicit == 1:
        if not invert(S, at(S.argument, n)):
            return False
        for j in range(n):  # f is known there
            rate[j], rate[n + j] = S.v[j], S.at_values[j]
        if S.directions == 0:
            return True
    for j in range(n):
        S.at[1 + n + j] = S.argument[n + j]
        x[j] = S.v[j] if S.implicit == 1 else 0.0
    if S.implicit == 0 or S.directions > 0:
        call_kernel(S.equation, S.at, S.at_values, S.work)
        for j in range(n * n):
            S.V[j] = S.at_values[n + j]
        if not factor(S.V, S.mass_pivots, n, n):
            return False
    if S.implicit == 0:
        for j in range(n):
            x[j] = S.at_values[j]
        solve(S.V, S.mass_pivots, n, n, x)
    call_kernel(S.field, S.at, S.at_values, S.work)
    for j in range(2 * n):
        rate[j] = S.at_values[j]
    for c in range(S.directions):
        _vary(S, c, when, at(rate, (1 + c) * 2 * n))
    return True


@native
def _vary(S, c, when, rate):
    """How the rate varies with quantity c, by the derivatives behind it in S.at_values."""
    n, by = S.n, at(S.at_values, 2 * S.n)
    given = 2 * n + S.outer
    width = given + n
    d = at(S.turned, c * width)
    for j in range(2 * n):
        d[j] = S.argument[(1 + c) * 2 * n + j]
    if S.outer > 0 and c == S.directions - 1:
        d[given - 1] = when
    for i in range(n):
        S.move[i] = dot(at(by, (2 * n + i) * width), d, 0, given)
    solve(S.V, S.mass_pivots, n, n, S.move)
    for i in range(n):
        d[given + i] = S.move[i]
    for i in range(2 * n):
        rate[i] = dot(at(by, i * width), d, 0, width)
