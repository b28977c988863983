"""Steps that their equations give at once: degree one, nodes at the ends of the step, a constant diagonal mass.

With w₀, w₁ the weights h b_i of the ends, f the force there (`step.form` with s = 1, l = τ):

    z = h M⁻¹ (p + w₀ f(t, q)),      q⁺ = q + z,      p⁺ = p + w₀ f(t, q) + w₁ f(t + h, q⁺).

The force at the end of a step is that at the start of the next one. Where nobody looks at the state in between, the end
of a step and the start of the next are one sweep over the coordinates, to the same bits.
"""

from __future__ import annotations

from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    first_of,
    fused,
    largest_of,
    load,
    mul,
    native,
    splat,
    store,
    sub,
    where,
)
from leastaction.backends.loops.strips import add_rows
from leastaction.backends.loops.sweep import read_term


@native
def keep(A, S, X):
    """Copy the state, to come back to it where a force turns out to be no number."""
    for j in range(S.n * W):
        S.q[j], S.p[j] = X[A.q + j], X[A.p + j]
        S.start[j], S.last[j] = X[A.carry + j], X[A.carry + S.n * W + j]


@native
def come_back(A, S, X):
    """The state as it was kept."""
    for j in range(S.n * W):
        X[A.q + j], X[A.p + j] = S.q[j], S.p[j]
        X[A.carry + j], X[A.carry + S.n * W + j] = S.start[j], S.last[j]
    S.ahead[0] = 0
    S.known[0] = 0


@native
def leap(S, I, D, A, X, onward):
    """One step; with `onward` the positions after the next one, too. False where a force is no number."""
    T = read_term(I, D, S.soft)
    n, h, r, room = S.n, A.step[0], T.points, (S.n + 1) * W
    t, q = X[A.t], at(X, A.q)
    w0 = T.raw[r + S.early] if S.early >= 0 else 0.0
    w1 = T.raw[r + S.late] if S.late >= 0 else 0.0
    before = at(T.values, S.current[0] * room)
    after = at(T.values, (1 - S.current[0]) * room)
    if S.ahead[0] == 0:
        if S.early >= 0 and S.known[0] == 0:
            for c in range(n + 1):
                store(at(before, c * W), splat(0.0))
            add_rows(I, D, T.parts, T.part_count, t, q, q, before, before)
        _drift(A, S, X, n, h, w0, before, after)
    if S.late >= 0:
        add_rows(I, D, T.parts, T.part_count, t + h, q, q, after, after)
    steady = S.early >= 0 and S.late >= 0 and S.timed == 0
    S.ahead[0] = 1 if onward and steady else 0
    sound = (
        _kick_and_drift(A, S, X, n, h, w0, w1, before, after)
        if S.ahead[0] == 1
        else _kick(A, S, X, n, w0, w1, before, after)
    )
    S.known[0] = 1 if steady else 0
    if steady:
        S.current[0] = 1 - S.current[0]
    return sound


@native
def add_exactly(x, carry, move):
    """x ← x + move, and what rounding leaves over is carried to the next time (Knuth's two-sum)."""
    a = load(x)
    total = add(a, move)
    rounded = sub(total, a)
    store(carry, add(sub(a, sub(total, rounded)), sub(move, rounded)))
    store(x, total)
    return total


@native
def _drift(A, S, X, n, h, w0, before, after):
    """q⁺, and room for the force there."""
    for c in range(n):
        push = fused(splat(w0), load(at(before, c * W)), load(at(X, A.p + c * W)))
        carry = at(X, A.carry + c * W)
        add_exactly(at(X, A.q + c * W), carry, fused(mul(splat(h), load(at(S.M, c * W))), push, load(carry)))
        store(at(after, c * W), splat(0.0))


@native
def _kick(A, S, X, n, w0, w1, before, after):
    """p⁺."""
    total = splat(0.0)
    for c in range(n):
        carry = at(X, A.carry + (n + c) * W)
        move = fused(splat(w1), load(at(after, c * W)), fused(splat(w0), load(at(before, c * W)), load(carry)))
        total = add(total, move)
        add_exactly(at(X, A.p + c * W), carry, move)
    return first_of(largest_of(where(sub(total, total), splat(1.0), splat(0.0)))) == 0.0


@native
def _kick_and_drift(A, S, X, n, h, w0, w1, before, after):
    """p⁺, then q after the next step; the force at the start of this one makes room for that at its end."""
    total = splat(0.0)
    for c in range(n):
        f0, f1 = load(at(before, c * W)), load(at(after, c * W))
        carry = at(X, A.carry + (n + c) * W)
        move = fused(splat(w1), f1, fused(splat(w0), f0, load(carry)))
        total = add(total, move)
        p = add_exactly(at(X, A.p + c * W), carry, move)
        carry = at(X, A.carry + c * W)
        push = fused(splat(w0), f1, p)
        add_exactly(at(X, A.q + c * W), carry, fused(mul(splat(h), load(at(S.M, c * W))), push, load(carry)))
        store(at(before, c * W), splat(0.0))
    return first_of(largest_of(where(sub(total, total), splat(1.0), splat(0.0)))) == 0.0
