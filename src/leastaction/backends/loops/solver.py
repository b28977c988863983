"""One step solved: mass chord, Newton, continuation; each ends at the same floor and passes the same verdict."""

from __future__ import annotations

from leastaction.backends.loops.constraints import set_bumps, settle
from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.legendre import invert_alone
from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    call_kernel,
    div,
    first_of,
    fma,
    larger,
    largest_of,
    load,
    mul,
    native,
    size_of,
    splat,
    store,
    sub,
    where,
)
from leastaction.backends.loops.sweep import jacobian, lanewise, set_given, set_products, set_step, set_times, sweep
from leastaction.backends.status import BRANCH_ENDS, GOING_WELL, IN_DOUBT, NOT_CONVERGED, NOT_FINITE, SINGULAR
from leastaction.step.continuation import ARRIVED, FASTEST, FROM_REST, PROLONG, SMALLEST
from leastaction.step.continuation import onward as onward_in_python
from leastaction.step.verdict import ACCEPTABLE, EPS, FAR, NEGLIGIBLE, NOISE, REACH, STILL, TINY

HUGE = 1e300
# A coordinate that others set in motion moves for the first time in a later iteration: to the rate it counts as this.
WOKEN = 0.1
PASSED_ON = 4  # from coordinate to coordinate noise is followed so many times
SHARED = 2.0**-10  # this part of it, in the metric of the mass, constraints pass on to any other
# Where what was SEEN of an iteration, and what the verdict says, are in their arrays.
SIZE, BEFORE, ITERATIONS, SOUND, OFF, TOO_FAR, DOUBT, NEGLIGIBLE_PLACE, ACCEPTABLE_PLACE = range(9)
SOLVED, ENDED, GOOD, DOUBTED, KEEP, LEFT = range(6)

onward = native(onward_in_python)


@native
def put(x, i, lanes, value):
    """Write the i-th number of every trajectory."""
    if lanes == 1:
        x[i] = first_of(value)
    else:
        store(at(x, i * W), value)


@native
def prepare(S, I, D, h, products):
    """The coefficients for the step h, where they are not there yet."""
    if S.h[0] != h:
        set_step(S, I, D, S.terms, h)
        if S.soft != S.terms:
            set_step(S, I, D, S.soft, h)
        for v in range(S.s):
            for c in range(S.width * W):
                m = c if S.lanes == 1 else c // W
                S.T[v * S.width * W + c] = -h * S.inverse[v * S.s + m] if m < S.s else 0.0
        S.h[0] = h
    if products and S.K_h[0] != h:
        set_products(S, I, D, S.terms)
        S.K_h[0] = h


@native
def begin(S, z, scale):
    """Before the first iteration: each component's scale is its prediction's."""
    for c in range(S.components):
        top = splat(TINY)
        for v in range(S.width):
            top = larger(top, size_of(load(at(z, (c * S.width + v) * W))))
        put(scale, c, S.lanes, largest_of(top) if S.lanes == 1 else top)
    for k in range(S.lanes):
        S.seen[BEFORE * S.lanes + k] = 0.0
        S.seen[ITERATIONS * S.lanes + k] = 0.0
        S.seen[DOUBT * S.lanes + k] = 0.0
        S.seen[NEGLIGIBLE_PLACE * S.lanes + k] = NEGLIGIBLE * EPS
        S.seen[ACCEPTABLE_PLACE * S.lanes + k] = ACCEPTABLE


@native
def still(floor, length):
    """The floor of a coordinate that moves little; zero of others."""
    return where(larger(sub(length, mul(splat(STILL), floor)), splat(0.0)), splat(0.0), floor)


@native
def move(S, z, scale, reach, floor, replace, active):
    """z ← z + S.R, or S.R itself with `replace`, of the trajectories that are active; what the verdict needs of it."""
    lanes, width = S.lanes, S.width
    size, off, far, total = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    on = splat(1.0) if lanes == 1 else load(active)
    for c in range(S.components):
        moved, before = splat(0.0), lanewise(scale, c, lanes)
        top = before
        for v in range(width):
            place = (c * width + v) * W
            old, x = load(at(z, place)), load(at(S.R, place))
            d, new = (sub(x, old), x) if replace == 1 else (x, add(old, x))
            moved, top, total = larger(moved, size_of(d)), larger(top, size_of(new)), add(total, d)
            store(at(z, place), where(on, new, old))
        if lanes == 1:
            moved, top = largest_of(moved), largest_of(top)
        if c < S.n:
            beyond = larger(sub(moved, still(lanewise(floor, c, lanes), top)), splat(0.0))
            ratio = div(beyond, top)
            if lanes == 1 and S.seen[ITERATIONS] > 0.0 and first_of(before) <= TINY:
                ratio = splat(min(first_of(ratio), WOKEN * S.seen[BEFORE]))
            size = larger(size, ratio)
            limit = lanewise(reach, c, lanes)
            off, far = larger(off, sub(moved, limit)), larger(far, sub(top, mul(splat(FAR), limit)))
        put(scale, c, lanes, where(on, top, before))
    spoilt = where(sub(total, total), splat(1.0), splat(0.0))
    if lanes == 1:
        spoilt = largest_of(spoilt)
    put(S.seen, SIZE, lanes, size)
    put(S.seen, SOUND, lanes, sub(splat(1.0), spoilt))
    put(S.seen, OFF, lanes, off)
    put(S.seen, TOO_FAR, lanes, far)


@native
def judge(S, kernel):
    """S.found ← the verdict; what was seen becomes what was seen before."""
    lanes = S.lanes
    call_kernel(kernel, S.seen, S.found, S.work)
    for k in range(lanes):
        S.seen[BEFORE * lanes + k] = S.seen[SIZE * lanes + k]
        S.seen[ITERATIONS * lanes + k] += 1.0
        S.seen[DOUBT * lanes + k] = S.found[DOUBTED * lanes + k]


# -------------------------------------------------------------------------------------------- mass chord


@native
def set_mass(S, t, q, z, params, h):
    """S.M ← the factors of L_vv in the middle of the step that z predicts; the inverse where L_vv is diagonal.

    False where it is singular.
    """
    n, s, lanes, row = S.n, S.s, S.lanes, S.stride
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
        return factor(S.M, S.mass_pivots, n, n)
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
def _by_mass(S):
    """S.R ← M⁻¹ S.R, row by row."""
    n, lanes, width = S.n, S.lanes, S.width
    if S.diagonal == 1:
        for c in range(n):
            inverse = lanewise(S.M, c, lanes)
            for v in range(width):
                place = at(S.R, (c * width + v) * W)
                store(place, mul(inverse, load(place)))
        return
    if lanes == 1:
        for k in range(n):
            other = S.mass_pivots[k]
            if other != k:
                for v in range(width):
                    a, b = at(S.R, (k * width + v) * W), at(S.R, (other * width + v) * W)
                    x, y = load(a), load(b)
                    store(a, y)
                    store(b, x)
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
def chord(S, I, D, q, p, z, scale, reach, floor, active):
    """One iteration dz = −(S⁻¹ ⊗ M⁻¹) h R, with S = Σ_i w_i l_ν′ l_μ′: gradients only, no Jacobian.

    It contracts by O(h²) for a constant mass and by O(h) otherwise. Where f does not depend on v and m = M v with a
    constant M, the part of R with m is S ⊗ M z/h itself, and z ← −(S⁻¹ ⊗ M⁻¹) h (R without it): velocities are not
    needed. With one symmetric matrix for S⁻¹ that is the step of a discrete Lagrangian, too, whatever its rounding.
    """
    lanes, s, width = S.lanes, S.s, S.width
    sweep(S, I, D, S.soft, False, q, p, z)
    _by_mass(S)
    for c in range(S.n):
        row = at(S.R, c * width * W)
        for v in range(width):
            total = splat(0.0)
            for m in range(s):
                total = fma(load(at(S.T, (m * width + v) * W)), lanewise(row, m, lanes), total)
            store(at(S.b, v * W), total)
        for v in range(width):
            store(at(row, v * W), load(at(S.b, v * W)))
    move(S, z, scale, reach, floor, S.separable, active)
    judge(S, S.judge_soft)


@native
def chords(S, I, D, h):
    """Chords of one trajectory from S.t, S.q, S.p and the prediction S.z. Whether they do; else S.z is as before."""
    S.iterations[0] = 0
    if S.has_chord == 0:
        return False
    total = S.components * S.stride
    for i in range(total):
        S.start[i] = S.z[i]
    if set_mass(S, S.t, S.q, S.z, S.values, h):
        begin(S, S.z, S.scale)
        going = True
        while going:
            chord(S, I, D, S.q, S.p, S.z, S.scale, S.reach, S.floor, S.seen)
            going = S.found[ENDED] == 0.0 and S.found[KEEP] != 0.0 and S.seen[DOUBT] == 0.0
        S.iterations[0] = int(S.seen[ITERATIONS])
        S.left[0] = S.found[LEFT]
        moved = 0.0
        for j in range(S.n):
            moved += S.impulse[j]
        if S.found[GOOD] != 0.0 and moved - moved == 0.0:
            return True
    for i in range(total):
        S.z[i] = S.start[i]
    return False


# ------------------------------------------------------------------------------------------------ Newton


@native
def newton(S, I, D, q, p, z, scale, reach):
    """Newton's iteration of one trajectory from z, keeping the Jacobian where that is cheaper. Returns the status."""
    N, s, n, lead, row = S.unknowns, S.s, S.n, S.lead, S.stride
    prepare(S, I, D, S.h[0], True)
    begin(S, z, scale)
    fresh = True
    while True:
        sweep(S, I, D, S.terms, fresh, q, p, z)
        if fresh:
            jacobian(S, I, D, S.terms)
            if not factor(S.J, S.pivots, N, lead):
                S.iterations[0] = int(S.seen[ITERATIONS]) + 1
                S.left[0] = S.seen[BEFORE]
                return SINGULAR
        for c in range(S.components):
            for v in range(s):
                S.b[c * s + v] = -S.R[c * row + v]
        solve(S.J, S.pivots, N, lead, S.b)
        for c in range(S.components):
            for v in range(s):
                S.R[c * row + v] = S.b[c * s + v]
            for v in range(s, row):
                S.R[c * row + v] = 0.0
        move(S, z, scale, reach, S.floor, 0, S.seen)
        judge(S, S.judge_fresh if fresh else S.judge_kept)
        if S.found[ENDED] != 0.0:
            break
        fresh = S.found[KEEP] == 0.0
    S.iterations[0] = int(S.seen[ITERATIONS])
    S.left[0] = S.found[LEFT]
    if S.seen[SOUND] == 0.0:
        S.left[0] = S.seen[SIZE]
        return NOT_FINITE
    if S.found[SOLVED] == 0.0:
        S.left[0] = S.seen[SIZE]
        return NOT_CONVERGED
    total = 0.0
    for j in range(n):
        for i in range(N):
            S.impulse[j] += S.G[j * lead + i] * S.b[i]
        total += S.impulse[j]
    if total - total != 0.0:  # the end of the step need not enter its equations
        return NOT_FINITE
    return GOING_WELL if S.found[GOOD] != 0.0 else IN_DOUBT


# ------------------------------------------------------------------------------------------ continuation


@native
def continue_from_rest(S, I, D, h, noisy):
    """The root at step h that is connected with the solution at h → 0; see `step.continuation`. Returns the status.

    With `noisy` rounding may move coordinates: increments below their floors do not count.

    The step begins with S.t, S.q, S.p; its unknowns and impulse are left in S.z and S.impulse.
    """
    n, s, row = S.n, S.s, S.stride
    total = 0
    S.reached[0] = 0.0
    S.iterations[0] = 0
    S.left[0] = 1.0
    S.at[0] = S.t[0]
    for j in range(n):
        S.at[1 + j] = S.q[j]
    for j in range(S.params):
        S.at[1 + 2 * n + j] = S.values[j]
    if not invert_alone(S, S.p):
        return SINGULAR
    _set_noise(S)
    for i in range(S.components * row):
        S.z[i] = 0.0
    fraction, growth, action = SMALLEST, FASTEST, FROM_REST
    while True:
        small = h if fraction == 1.0 else fraction * h
        if noisy == 1:
            _set_floor(S, abs(small))
        else:
            for j in range(n):
                S.floor[j] = 0.0
        if action == FROM_REST:
            for j in range(n):
                for m in range(s):
                    S.z[j * row + m] = S.d[m + 1] * small * S.v[j]
                S.reach[j] = HUGE  # the first is small enough to be judged by its contraction alone
        else:
            grown = fraction / S.reached[0]
            _prolong(S, grown)
            for j in range(n):
                longest = 0.0
                for m in range(s):
                    longest = max(longest, abs(S.last[j * row + m]))
                S.reach[j] = max(REACH * longest * grown, abs(S.v[j] * small), S.floor[j], TINY)
        prepare(S, I, D, small, False)
        set_times(S, I, D, S.soft, S.t)
        status = GOING_WELL
        if not chords(S, I, D, small):
            total += S.iterations[0]
            set_times(S, I, D, S.terms, S.t)
            status = newton(S, I, D, S.q, S.p, S.z, S.scale, S.reach)
        total += S.iterations[0]
        S.iterations[0] = total
        action, fraction, S.reached[0], growth = onward(status == GOING_WELL, fraction, S.reached[0], growth)
        if action == ARRIVED:
            return GOING_WELL
        if action in (PROLONG, FROM_REST):
            if status == GOING_WELL:
                for i in range(S.components * row):
                    S.last[i] = S.z[i]
            continue
        prepare(S, I, D, h, False)
        return BRANCH_ENDS if S.reached[0] > 0.0 or status == IN_DOUBT else status


@native
def _set_noise(S):
    """S.noise ← what g of `step.verdict` is made of, for a derivative each power of h, at the start of the step."""
    n = S.n
    values = S.at_values
    f_q, f_v = at(values, 2 * n), at(values, 2 * n + n * n)
    m_q, m_v = at(values, 2 * n + 2 * n * n), at(values, 2 * n + 3 * n * n)
    for j in range(n):
        for k in range(n):
            S.V[j * n + k] = m_v[j * n + k]
    for j in range(3 * n + 2 * n * n):
        S.noise[j] = 0.0
    if S.multipliers > 0:
        set_bumps(S, at(S.noise, 2 * n))
    if not factor(S.V, S.mass_pivots, n, n):
        return
    slow, fast = at(S.noise, 3 * n), at(S.noise, 3 * n + n * n)
    for k in range(n):
        momentum, force = abs(S.p[k]), abs(values[k])
        for i in range(n):
            momentum += abs(m_q[k * n + i] * S.q[i]) + abs(m_v[k * n + i] * S.v[i])
            force += abs(f_q[k * n + i] * S.q[i]) + abs(f_v[k * n + i] * S.v[i])
            S.move[i] = 1.0 if i == k else 0.0
        solve(S.V, S.mass_pivots, n, n, S.move)
        for j in range(n):
            inverse = abs(S.move[j])
            S.noise[j] += inverse * momentum
            S.noise[n + j] += inverse * force
            for i in range(n):
                slow[j * n + i] += inverse * (abs(m_q[k * n + i]) + abs(f_v[k * n + i]))
                fast[j * n + i] += inverse * abs(f_q[k * n + i])


@native
def _set_floor(S, h):
    """S.floor ← NOISE g for a step of this length."""
    n = S.n
    slow, fast = at(S.noise, 3 * n), at(S.noise, 3 * n + n * n)
    for j in range(n):
        S.floor[j] = NOISE * (S.noise[2 * n + j] + h * (S.noise[j] + h * S.noise[n + j]))
    for _ in range(min(n, PASSED_ON)):
        for j in range(n):
            S.move[j] = S.floor[j]
        for j in range(n):
            for k in range(n):
                S.floor[j] += h * (slow[j * n + k] + h * fast[j * n + k]) * S.move[k]
    if S.multipliers > 0:
        mass, top = at(S.at_values, 2 * n + 3 * n * n), 0.0
        for j in range(n):
            top = max(top, S.floor[j] * abs(mass[j * n + j]) ** 0.5)
        for j in range(n):
            if mass[j * n + j] != 0.0:
                S.floor[j] = max(S.floor[j], SHARED * top / abs(mass[j * n + j]) ** 0.5)


@native
def _prolong(S, grown):
    """S.z^m ← the polynomial of S.last at grown · d_m, by Lagrange's formula (d_0 = 0 carries the value 0).

    Multipliers stay.
    """
    s, row, d = S.s, S.stride, S.d
    for c in range(S.n, S.components):
        for m in range(s):
            S.z[c * row + m] = S.last[c * row + m]
    for m in range(1, s + 1):
        x = grown * d[m]
        for c in range(S.n):
            S.z[c * row + m - 1] = 0.0
        for v in range(1, s + 1):
            weight = 1.0
            for i in range(s + 1):
                if i != v:
                    weight *= (x - d[i]) / (d[v] - d[i])
            for c in range(S.n):
                S.z[c * row + m - 1] += weight * S.last[c * row + v - 1]


@native
def uniform(S, h):
    """S.z ← that of the uniform motion from S.t, S.q, S.p; whether there is a velocity."""
    n, s, row = S.n, S.s, S.stride
    S.at[0] = S.t[0]
    for j in range(n):
        S.at[1 + j] = S.q[j]
    for j in range(S.params):
        S.at[1 + 2 * n + j] = S.values[j]
    if not invert_alone(S, S.p):
        return False
    for j in range(n):
        for v in range(row):
            S.z[j * row + v] = S.d[v + 1] * h * S.v[j] if v < s else 0.0
        S.floor[j] = 0.0
        S.reach[j] = max(REACH * abs(h * S.v[j]), TINY)
    for j in range(n * row, S.components * row):
        S.z[j] = 0.0
    return True


@native
def alone(S, I, D, h, predicted, later):
    """The step from S.t, S.q, S.p by Newton, from the prediction S.z if there is one, else by continuation; whether it
    is later than the first, so that others failed before. Where any root will do, Newton is tried from the uniform
    motion, too.

    Returns the status, the iterations spent, and whether continuation was needed.
    """
    spent = 0
    for guess in range(2):
        if (guess == 0 and predicted) or (guess == 1 and S.checked == 0 and (later or not predicted) and uniform(S, h)):
            prepare(S, I, D, h, True)
            set_given(S, I, D, S.terms, S.t, S.values)
            status = newton(S, I, D, S.q, S.p, S.z, S.scale, S.reach)
            spent += S.iterations[0]
            if status == GOING_WELL:
                return _ended(S, h), spent, False
    prepare(S, I, D, h, False)
    set_given(S, I, D, S.terms, S.t, S.values)
    if S.soft != S.terms:
        set_given(S, I, D, S.soft, S.t, S.values)
    status, noisy = BRANCH_ENDS, 0
    while status != GOING_WELL and noisy < 2:
        status = continue_from_rest(S, I, D, h, noisy)
        spent += S.iterations[0]
        noisy += 1
    if later and status == GOING_WELL:  # it may be noise that has misled the others
        _set_floor(S, abs(h))
    if status == GOING_WELL:
        status = _ended(S, h)
    return status, spent, True


@native
def _ended(S, h):
    """The status of a step whose equations are solved, after the End's are where there are constraints."""
    if S.multipliers == 0 or settle(S, S.end, h):
        return GOING_WELL
    return SINGULAR
