"""The mass chord: increments by the mass in the middle of the step, gradients only, no Jacobian."""

from __future__ import annotations

from leastaction.backends.loops.definite import eliminate, solve_rows
from leastaction.backends.loops.elimination import factor, negative
from leastaction.backends.loops.increments import DOUBT, ENDED, GOOD, ITERATIONS, KEEP, LEFT, begin, judge, move, widen
from leastaction.backends.loops.machine import W, at, call_kernel, div, fma, load, mul, native, splat, store, sub
from leastaction.backends.loops.noise import see_rounding
from leastaction.backends.loops.summed import by_summed_mass, set_summed_mass
from leastaction.backends.loops.sweep import four, lanewise, store_four, sweep
from leastaction.backends.loops.swift_chords import swift_begin, swift_chord, swift_impulse


@native
def set_mass(S, I, D, t, q, z, params, h):
    """The factors of L_vv in the middle of the step that z predicts, of one trajectory in S.F, of several in S.M; the
    inverse, in S.M, where L_vv is diagonal. False where L_vv is singular.
    """
    n, s, lanes, row = S.n, S.s, S.lanes, S.stride
    if S.summed == 1:
        return set_summed_mass(S, I, D, t, q, z, h)
    for k in range(lanes):
        S.at[k] = t[k] + 0.5 * h
        for j in range(n):
            moved, speed = 0.0, 0.0
            for v in range(s):
                x = z[(j * row + v) * lanes + k]
                moved += S.middle[v] * x
                speed += S.middle[s + v] * x
            S.at[(1 + j) * lanes + k] = q[j * lanes + k] + moved
            S.at[(1 + n + j) * lanes + k] = speed / h
        for j in range(S.params):
            S.at[(1 + 2 * n + j) * lanes + k] = params[j * lanes + k]
    call_kernel(S.mass, S.at, S.M, S.work)
    if S.diagonal == 1:
        for j in range(n * lanes):
            S.M[j] = 1.0 / S.M[j]
        return True
    if lanes == 1:
        return _factor_one(S)
    for k in range(n):
        above = load(at(S.M, (k * n + k) * W))
        for i in range(k + 1, n):
            ratio = div(load(at(S.M, (i * n + k) * W)), above)
            store(at(S.M, (i * n + k) * W), ratio)
            for j in range(k + 1, n):
                place = at(S.M, (i * n + j) * W)
                store(place, sub(load(place), mul(ratio, load(at(S.M, (k * n + j) * W)))))
    return True


@native
def _factor_one(S):
    """S.F ← the factors of S.M: with exchanges where it is not positive definite. False where it is singular."""
    n, lead = S.n, S.mass_lead
    S.exchanged[0] = 0
    if eliminate(S.M, n, S.F, lead, S.mass_inverses, S.b):
        for k in range(n):
            S.mass_pivots[k] = k
        return True
    S.exchanged[0] = 1
    for j in range(n):
        for k in range(n):
            S.F[j * lead + k] = S.M[j * n + k]
    if not factor(S.F, S.mass_pivots, n, lead):
        return False
    for k in range(n):
        S.mass_inverses[k] = 1.0 / S.F[k * lead + k]
    return True


@native
def negative_mass(S, I, D, q, z):
    """Whether the determinant of L_vv in the middle of one trajectory's step is negative."""
    n, found = S.n, False
    if not set_mass(S, I, D, S.t, q, z, S.values, S.h[0]):
        return False
    if S.diagonal == 0:
        return negative(S.F, S.mass_pivots, n, S.mass_lead)
    for j in range(n):
        if S.M[j] < 0.0:
            found = not found
    return found


@native
def _by_mass(S, I, D):
    """S.R ← M⁻¹ S.R, row by row."""
    n, lanes, width = S.n, S.lanes, S.width
    if S.summed == 1 and not (S.diagonal == 1 and S.constant == 1):
        by_summed_mass(S, I, D)
        return
    if S.diagonal == 1:
        for c in range(n):
            inverse = lanewise(S.M, c, S.across)
            for v in range(width):
                place = at(S.R, (c * width + v) * W)
                store(place, mul(inverse, load(place)))
        return
    if lanes == 1:
        if S.exchanged[0] == 1:
            _exchange(S)
        solve_rows(S.F, n, S.mass_lead, S.mass_inverses, S.R, width)
        return
    for k in range(n):
        for v in range(width):
            place = at(S.R, (k * width + v) * W)
            x = load(place)
            for i in range(k):
                x = sub(x, mul(lanewise(S.M, k * n + i, lanes), load(at(S.R, (i * width + v) * W))))
            store(place, x)
    for k in range(n - 1, -1, -1):
        for v in range(width):
            place = at(S.R, (k * width + v) * W)
            x = load(place)
            for i in range(k + 1, n):
                x = sub(x, mul(lanewise(S.M, k * n + i, lanes), load(at(S.R, (i * width + v) * W))))
            store(place, div(x, lanewise(S.M, k * n + k, lanes)))


@native
def _exchange(S):
    """The rows of S.R in the order of the mass's pivots."""
    width = S.width
    for k in range(S.n):
        other = S.mass_pivots[k]
        if other != k:
            for v in range(width):
                a, b = at(S.R, (k * width + v) * W), at(S.R, (other * width + v) * W)
                x, y = load(a), load(b)
                store(a, y)
                store(b, x)


@native
def _by_table(S):
    """S.R ← −h S⁻¹ S.R, row by row."""
    s, width, done = S.s, S.width, 0
    while S.across == 1 and done + 4 <= S.n:
        rows, pitch, none = at(S.R, done * width * W), width * W, splat(0.0)
        for v in range(width):
            x, y, u, t = four(at(S.T, v * W), pitch, s, rows, pitch, none, none, none, none)
            store_four(at(S.b, v * W), pitch, x, y, u, t)
        for v in range(4 * width):
            store(at(rows, v * W), load(at(S.b, v * W)))
        done += 4
    for c in range(done, S.n):
        row = at(S.R, c * width * W)
        for v in range(width):
            total = splat(0.0)
            for m in range(s):
                total = fma(load(at(S.T, (m * width + v) * W)), lanewise(row, m, S.across), total)
            store(at(S.b, v * W), total)
        for v in range(width):
            store(at(row, v * W), load(at(S.b, v * W)))


@native
def chord(S, I, D, q, p, z, scale, reach, floor, active):
    """One iteration dz = −(S⁻¹ ⊗ M⁻¹) h R, with S = Σ_i w_i l_ν′ l_μ′: gradients only, no Jacobian.

    It contracts by O(h²) for a constant mass and by O(h) otherwise. Where f does not depend on v and m = M v with a
    constant M, the part of R with m is S ⊗ M z/h itself, and z ← −(S⁻¹ ⊗ M⁻¹) h (R without it): velocities are not
    needed. With one symmetric matrix for S⁻¹ that is the step of a discrete Lagrangian, too, whatever its rounding.
    """
    if S.swift == 1:
        swift_chord(S, I, D, q, p, z, scale, reach, floor)
        judge(S, S.judge_soft)
        return
    sweep(S, I, D, S.soft, False, q, p, z)
    if S.separable == 0 and S.diagonal == 0 and S.summed == 0:
        _by_table(S)
        see_rounding(S, scale)
        _by_mass(S, I, D)
    else:
        _by_mass(S, I, D)
        _by_table(S)
    move(S, z, scale, reach, floor, S.separable, active)
    judge(S, S.judge_soft)


@native
def chords(S, I, D, h, patient):
    """Chords of one trajectory from S.t, S.q, S.p and the prediction S.z; if `patient`, also where Newton would cost
    less. Returns whether they solve the step; else S.z is as before.

    The impulse is that of the forces at the last z: those from which z came are off by the last increment, and the
    energy would drift. Only where z follows from forces alone (`chord`) do these belong to it.
    """
    S.iterations[0] = 0
    S.turned[0] = 0  # where these chords contract
    if S.has_chord == 0:
        return False
    total = S.components * S.stride
    for i in range(total):
        S.start[i] = S.z[i]
    if set_mass(S, I, D, S.t, S.q, S.z, S.values, h):
        if S.swift == 1:
            swift_begin(S, I, D, S.q, S.z, S.scale)
        else:
            begin(S, S.z, S.scale)
        widen(S, S.scale)
        going = True
        while going:
            chord(S, I, D, S.q, S.p, S.z, S.scale, S.reach, S.floor, S.seen)
            going = S.found[ENDED] == 0.0 and (patient or S.found[KEEP] != 0.0) and S.seen[DOUBT] == 0.0
        S.iterations[0] = int(S.seen[ITERATIONS])
        S.left[0] = S.found[LEFT]
        if S.swift == 1 and S.found[GOOD] != 0.0:
            swift_impulse(S, I, D, S.q, S.z, S.impulse)
        elif S.separable == 0 and S.found[GOOD] != 0.0:
            sweep(S, I, D, S.soft, False, S.q, S.p, S.z)
        moved = 0.0
        for j in range(S.n * S.across):
            moved += S.impulse[j]
        if S.found[GOOD] != 0.0 and moved - moved == 0.0:
            return True
    for i in range(total):
        S.z[i] = S.start[i]
    return False
