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
from leastaction.backends.loops.sparse import assemble, read_sparse
from leastaction.backends.loops.sparse import factor as factor_sparse
from leastaction.backends.loops.sparse import solve as solve_sparse
from leastaction.backends.loops.sweep import (
    add_up,
    jacobian,
    lanewise,
    read_term,
    set_given,
    set_products,
    set_step,
    set_times,
    sweep,
)
from leastaction.backends.status import BRANCH_ENDS, GOING_WELL, IN_DOUBT, NOT_CONVERGED, NOT_FINITE, SINGULAR
from leastaction.step.continuation import ARRIVED, FASTEST, FROM_REST, PROLONG, SMALLEST
from leastaction.step.continuation import onward as onward_in_python
from leastaction.step.verdict import ACCEPTABLE, EPS, FAR, NEGLIGIBLE, NOISE, REACH, STILL, TINY

HUGE = 1e300
# A coordinate that others set in motion moves for the first time in a later iteration: to the rate it counts as this.
WOKEN = 0.1
# Of coordinates that are alike in a sum, one may be at rest when the others come to it, as where a wave arrives. The
# part of the largest steps among them that its increments are compared with, and the part that it may reach at once.
ALIKE = 2.0**-10
REACHING = 0.25
PROBE = 2.0**-20  # of a step: to measure what rounding does to forces …
MEASURED = 8.0  # … and by how much it may be more elsewhere
QUIET = 8.0 * EPS  # of a coordinate: what rounding may do to the increments of a step much shorter than itself
MOST_INVERSIONS = 50
PASSED_ON = 4  # from coordinate to coordinate noise is followed so many times
SHARED = 2.0**-10  # this part of it, in the metric of the mass, constraints pass on to any other
# Where what was SEEN of an iteration, and what the verdict says, are in their arrays.
SIZE, BEFORE, ITERATIONS, SOUND, OFF, TOO_FAR, DOUBT, NEGLIGIBLE_PLACE, ACCEPTABLE_PLACE = range(9)
SOLVED, ENDED, GOOD, DOUBTED, KEEP, LEFT = range(6)

# When the force at a point is evaluated: once, since its place is known; in every iteration; or at the end.
FIXED, MOVING, LAST = range(3)

onward = native(onward_in_python)


@native
def put(x, i, across, value):
    """Write the i-th number of every trajectory, or the i-th vector of coordinates."""
    if across == 1:
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
                m = c if S.across == 1 else c // W
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
        put(scale, c, S.across, largest_of(top) if S.across == 1 else top)
    if S.summed == 1:
        level(S, scale, ALIKE)
    for k in range(S.lanes):
        S.seen[BEFORE * S.lanes + k] = 0.0
        S.seen[ITERATIONS * S.lanes + k] = 0.0
        S.seen[DOUBT * S.lanes + k] = 0.0
        S.seen[NEGLIGIBLE_PLACE * S.lanes + k] = NEGLIGIBLE * EPS
        S.seen[ACCEPTABLE_PLACE * S.lanes + k] = ACCEPTABLE


@native
def level(S, x, part):
    """Coordinates of one kind are alike: none is measured by less than a part of the largest x among them."""
    if S.kinds == 1:
        top = splat(0.0)
        for c in range(S.n):
            top = larger(top, load(at(x, c * W)))
        least = mul(splat(part), largest_of(top))
        for c in range(S.n):
            store(at(x, c * W), larger(load(at(x, c * W)), least))
        return
    for e in range(S.kinds):
        S.unit[e] = 0.0
    for j in range(S.n * W):
        S.unit[S.kind[j]] = max(S.unit[S.kind[j]], x[j])
    for j in range(S.n * W):
        x[j] = max(x[j], part * S.unit[S.kind[j]])


@native
def still(floor, length):
    """The floor of a coordinate that moves little; zero of others."""
    return where(larger(sub(length, mul(splat(STILL), floor)), splat(0.0)), splat(0.0), floor)


@native
def move(S, z, scale, reach, floor, replace, active):
    """z ← z + S.R, or S.R itself with `replace`, of the trajectories that are active; what the verdict needs of it."""
    on = splat(1.0) if S.lanes == 1 else load(active)
    size, off, far, total = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for c in range(S.components):
        row = at(S.R, c * S.width * W)
        ratio, beyond, away, added = move_one(S, c, row, z, scale, reach, floor, replace, on)
        size, off, far, total = larger(size, ratio), larger(off, beyond), larger(far, away), add(total, added)
    see(S, size, off, far, total)


@native
def move_one(S, c, row, z, scale, reach, floor, replace, on):
    """One component of `move`, whose increments are in `row`: its size, how far off and how far away, and their sum."""
    across, width = S.across, S.width
    moved, before, total = splat(0.0), lanewise(scale, c, across), splat(0.0)
    top = before
    for v in range(width):
        place = (c * width + v) * W
        old, x = load(at(z, place)), load(at(row, v * W))
        d, new = (sub(x, old), x) if replace == 1 else (x, add(old, x))
        moved, top, total = larger(moved, size_of(d)), larger(top, size_of(new)), add(total, d)
        store(at(z, place), where(on, new, old))
    if across == 1:
        moved, top = largest_of(moved), largest_of(top)
    put(scale, c, across, where(on, top, before))
    if c >= S.n:
        return splat(0.0), splat(0.0), splat(0.0), total
    beyond = larger(sub(moved, still(lanewise(floor, c, across), top)), splat(0.0))
    ratio = div(beyond, top)
    if across == 1 and S.seen[ITERATIONS] > 0.0 and first_of(before) <= TINY:
        ratio = splat(min(first_of(ratio), WOKEN * S.seen[BEFORE]))
    limit = lanewise(reach, c, across)
    return ratio, sub(moved, limit), sub(top, mul(splat(FAR), limit)), total


@native
def see(S, size, off, far, total):
    """Tell the verdict what was seen of an iteration."""
    spoilt = where(sub(total, total), splat(1.0), splat(0.0))
    if S.lanes == 1:
        spoilt, size, off, far = largest_of(spoilt), largest_of(size), largest_of(off), largest_of(far)
    put(S.seen, SIZE, S.lanes, size)
    put(S.seen, SOUND, S.lanes, sub(splat(1.0), spoilt))
    put(S.seen, OFF, S.lanes, off)
    put(S.seen, TOO_FAR, S.lanes, far)


@native
def judge(S, kernel):
    """S.found ← the verdict; what was seen becomes what was seen before."""
    lanes = S.lanes
    call_kernel(kernel, S.seen, S.found, S.work)
    for k in range(lanes):
        S.seen[BEFORE * lanes + k] = S.seen[SIZE * lanes + k]
        S.seen[ITERATIONS * lanes + k] += 1.0
        S.seen[DOUBT * lanes + k] = S.found[DOUBTED * lanes + k]


# --------------------------------------------------------------------------------- sums over rows of tables


@native
def in_the_middle(S, P, q, z, h):
    """Where the motion that z predicts is at half a step."""
    s, row = S.s, S.stride
    for c in range(S.n):
        moved, speed = splat(0.0), splat(0.0)
        for v in range(s):
            x = load(at(z, c * row + v * W))
            moved = fma(splat(S.middle[v]), x, moved)
            speed = fma(splat(S.middle[s + v]), x, speed)
        store(at(P.middle_q, c * W), add(load(at(q, c * W)), moved))
        store(at(P.middle_v, c * W), div(speed, splat(h)))


@native
def set_summed_mass(S, I, D, t, q, z, h):
    """The factors of a mass that depends on the motion, in the middle of the step; others are there from the start."""
    if S.constant == 1:
        return True
    P = read_sparse(I, D, S.sparse)
    in_the_middle(S, P, q, z, h)
    assemble(I, D, P, P.masses, P.mass_parts, t[0] + 0.5 * h, P.middle_q, P.middle_v, P.M)
    return factor_sparse(P, P.shifts, 0.0, 0.0)


@native
def by_summed_mass(S, I, D):
    """S.R ← M⁻¹ S.R with a sparse M."""
    P = read_sparse(I, D, S.sparse)
    for v in range(S.s):
        for k in range(P.n):
            j = P.order[k]
            P.x[k] = S.R[j // W * S.stride + v * W + j % W]
        solve_sparse(P, P.shifts, False)
        for k in range(P.n):
            j = P.order[k]
            S.R[j // W * S.stride + v * W + j % W] = P.x[k]


@native
def summed_velocity(S, I, D):
    """S.v with m(t, q, v) = p at S.t, S.q, S.p, by Newton's iteration; whether there is one."""
    if S.separable == 1 and S.sparse < 0:
        for j in range(S.n * W):
            S.v[j] = S.M[j] * S.p[j]
        return True
    P, T = read_sparse(I, D, S.sparse), read_term(I, D, S.terms)
    room = (S.n + 1) * W
    for j in range(S.n * W):
        S.v[j] = 0.0
    before = HUGE
    for _ in range(MOST_INVERSIONS):
        for c in range(S.n):
            store(at(T.point, W + c * W), load(at(S.q, c * W)))
            store(at(T.point, W + room + c * W), load(at(S.v, c * W)))
        T.point[0] = S.t[0]
        add_up(S, T, I, D, T.point, T.values)
        miss, size = 0.0, 0.0
        for k in range(P.n):
            j = P.order[k]
            P.x[k] = S.p[j] - T.values[room + j]
            miss, size = max(miss, abs(P.x[k])), max(size, abs(S.p[j]))
        if miss - miss != 0.0:
            return False
        if miss <= 4.0 * EPS * size or miss >= before:
            return miss <= 1e-10 * size
        if S.constant == 0:
            assemble(I, D, P, P.masses, P.mass_parts, S.t[0], S.q, S.v, P.M)
            if not factor_sparse(P, P.shifts, 0.0, 0.0):
                return False
        solve_sparse(P, P.shifts, False)
        for k in range(P.n):
            S.v[P.order[k]] += P.x[k]
        before = miss
    return False


@native
def summed_noise(S, I, D, h):
    """S.noise ← what rounding does to each force at the start of a step: f(q + δ) − 2 f(q) + f(q − δ), where δ is so
    small a part of the step that nothing else is left, up or down from one coordinate to the next.
    """
    T, room = read_term(I, D, S.terms), (S.n + 1) * W
    T.point[0] = S.t[0]
    for j in range(S.n * W):
        S.last[j] = 0.0
    _force_at(S, T, I, D, room, 0.0)
    for j in range(S.n * W):
        S.noise[j] = -2.0 * T.values[j]
        S.scale[j] = max(abs(h * S.v[j]) + abs(h * h * S.M[j] * T.values[j]), TINY)
    level(S, S.scale, REACHING)
    for j in range(S.n * W):
        S.last[j] = PROBE * S.scale[j] * (1.0 if (j * 7919 // 13) % 2 == 0 else -1.0)
    for side in range(2):
        _force_at(S, T, I, D, room, 1.0 - 2.0 * side)
        for j in range(S.n * W):
            S.noise[j] += T.values[j]


@native
def _force_at(S, T, I, D, room, side):
    """The forces at S.q + side · S.last, with the velocity S.v."""
    for c in range(S.n):
        here = fma(splat(side), load(at(S.last, c * W)), load(at(S.q, c * W)))
        store(at(T.point, W + c * W), here)
        store(at(T.point, W + room + c * W), load(at(S.v, c * W)))
    add_up(S, T, I, D, T.point, T.values)


@native
def set_shifts(S, I, D, P, q, z, h):
    """The factors of every M + h²γK, K and M in the middle of the step that z predicts."""
    in_the_middle(S, P, q, z, h)
    t = S.t[0] + 0.5 * h
    assemble(I, D, P, P.stiffness, P.stiffness_parts, t, P.middle_q, P.middle_v, P.K)
    if S.constant == 0:
        assemble(I, D, P, P.masses, P.mass_parts, t, P.middle_q, P.middle_v, P.M)
    regular = True
    for e in range(P.shifts):
        regular = regular and factor_sparse(P, e, h * h * P.gamma[2 * e], h * h * P.gamma[2 * e + 1])
    return regular


@native
def by_shifts(S, P, h):
    """S.R ← −(S⊗M/h + h B⊗K)⁻¹ S.R: as many systems of size n as there are shifts.

    With S⁻¹B = V Γ V⁻¹ the increments are V w, (M + h²γ_j K) w_j = −h (V⁻¹ S⁻¹ R)_j; of a pair of conjugate γ one is
    solved for.
    """
    s, n = S.s, P.n
    for j in range(S.n * S.stride):
        P.dz[j] = 0.0
    for e in range(P.shifts):
        both = P.gamma[2 * e + 1] != 0.0
        for k in range(n):
            j = P.order[k]
            place, real, imaginary = j // W * S.stride + j % W, 0.0, 0.0
            for v in range(s):
                real += P.into[2 * (e * s + v)] * S.R[place + v * W]
                imaginary += P.into[2 * (e * s + v) + 1] * S.R[place + v * W]
            P.x[k], P.x[n + k] = -h * real, -h * imaginary
        solve_sparse(P, e, both)
        for k in range(n):
            j = P.order[k]
            place, real, imaginary = j // W * S.stride + j % W, P.x[k], P.x[n + k]
            for v in range(s):
                into = 2 * (v * P.shifts + e)
                P.dz[place + v * W] += P.out[into] * real - P.out[into + 1] * imaginary
    for j in range(S.n * S.stride):
        S.R[j] = P.dz[j]


@native
def shifted(S, I, D, q, p, z, scale, reach):
    """Newton's iteration with K and M of the middle of the step for all its points: the shifted chord. The status."""
    S.iterations[0] = 0
    S.left[0] = 1.0
    if S.stiff == 0:
        return NOT_CONVERGED
    P, h, s = read_sparse(I, D, S.sparse), S.h[0], S.s
    begin(S, z, scale)
    fresh = 0
    while True:
        if fresh == 0:
            if not set_shifts(S, I, D, P, q, z, h):
                S.iterations[0] = int(S.seen[ITERATIONS]) + 1
                return SINGULAR
            fresh = 1
        sweep(S, I, D, S.terms, False, q, p, z)
        by_shifts(S, P, h)
        move(S, z, scale, reach, S.floor, 0, S.seen)
        judge(S, S.judge_kept)
        if S.found[ENDED] != 0.0 or S.seen[DOUBT] != 0.0:
            break
        if S.found[KEEP] == 0.0:
            fresh = 0
    S.iterations[0] = int(S.seen[ITERATIONS])
    S.left[0] = S.found[LEFT]
    if S.seen[SOUND] == 0.0:
        S.left[0] = S.seen[SIZE]
        return NOT_FINITE
    if S.found[SOLVED] == 0.0:
        S.left[0] = S.seen[SIZE]
        return NOT_CONVERGED
    for e in range(P.entries):  # the impulse belongs to z before its last increment
        i, j, total = P.row[e], P.column[e], 0.0
        for v in range(s):
            total += P.mean[v] * S.R[j // W * S.stride + v * W + j % W]
        S.impulse[i] += h * P.K[e] * total
    total = 0.0
    for j in range(S.n * W):
        total += S.impulse[j]
    if total - total != 0.0:
        return NOT_FINITE
    return GOING_WELL if S.found[GOOD] != 0.0 else IN_DOUBT


# -------------------------------------------------------------------------------------------- mass chord


@native
def set_mass(S, I, D, t, q, z, params, h):
    """S.M ← the factors of L_vv in the middle of the step that z predicts; the inverse where L_vv is diagonal.

    False where it is singular.
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
    across, s, width = S.across, S.s, S.width
    if S.swift == 1:
        swift_chord(S, I, D, q, p, z, scale, reach, floor)
        judge(S, S.judge_soft)
        return
    sweep(S, I, D, S.soft, False, q, p, z)
    _by_mass(S, I, D)
    for c in range(S.n):
        row = at(S.R, c * width * W)
        for v in range(width):
            total = splat(0.0)
            for m in range(s):
                total = fma(load(at(S.T, (m * width + v) * W)), lanewise(row, m, across), total)
            store(at(S.b, v * W), total)
        for v in range(width):
            store(at(row, v * W), load(at(S.b, v * W)))
    move(S, z, scale, reach, floor, S.separable, active)
    judge(S, S.judge_soft)


# A chord of a sum whose mass is constant and diagonal, and whose forces do not depend on velocities, is one sweep over
# the coordinates and one over the rows for each point that matters. A point whose place does not depend on z, as that
# at the start, is evaluated once; one whose force enters the impulse alone, as that at the end, when z is known.


@native
def swift_begin(S, I, D, q, z):
    """The forces at fixed points, and the places of those that move."""
    T = read_term(I, D, S.soft)
    for i in range(T.points):
        if T.role[i] != LAST:
            _place(S, T, i, q, z)
            if T.role[i] == FIXED:
                add_up(S, T, I, D, at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W))


@native
def _place(S, T, i, q, z):
    """Where the coordinates are at point i; its force makes room."""
    point = at(T.point, (i * T.inputs + 1) * W)
    for c in range(S.n):
        store(at(point, c * W), _at_point(S, T, i, load(at(q, c * W)), at(z, c * S.stride)))


@native
def _at_point(S, T, i, q, row):
    total = splat(0.0)
    for v in range(S.s):
        total = fma(load(at(T.A, (v * T.groups + i) * W)), load(at(row, v * W)), total)
    return add(q, total)


@native
def swift_chord(S, I, D, q, p, z, scale, reach, floor):
    """`chord`, for such sums."""
    T = read_term(I, D, S.soft)
    s, r = S.s, T.points
    for i in range(r):
        if T.role[i] == MOVING:
            add_up(S, T, I, D, at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W))
    size, off, far, total = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for c in range(S.n):
        for v in range(s):
            store(at(S.b, v * W), splat(0.0))
        inverse = load(at(S.M, c * W))
        for m in range(s):
            R = splat(0.0)
            for i in range(r):
                if T.role[i] != LAST:
                    f = mul(splat(T.raw[r + i]), load(at(T.values, (i * T.outputs + c) * W)))
                    R = fma(load(at(T.E, (i * s + m) * W)), f, R)
            if m == s - 1:
                R = sub(R, load(at(p, c * W)))
            R = mul(inverse, R)
            for v in range(s):
                place = at(S.b, v * W)
                store(place, fma(load(at(S.T, (m * s + v) * W)), R, load(place)))
        ratio, beyond, away, added = move_one(S, c, S.b, z, scale, reach, floor, 1, splat(1.0))
        size, off, far, total = larger(size, ratio), larger(off, beyond), larger(far, away), add(total, added)
        for i in range(r):
            if T.role[i] == MOVING:
                here = _at_point(S, T, i, load(at(q, c * W)), at(z, c * S.stride))
                store(at(T.point, (i * T.inputs + 1 + c) * W), here)
    see(S, size, off, far, total)


@native
def swift_impulse(S, I, D, q, z):
    """S.impulse, z being known: the forces at the last points are those of z, others those that z came from."""
    T = read_term(I, D, S.soft)
    r = T.points
    for i in range(r):
        if T.role[i] == LAST:
            _place(S, T, i, q, z)
            add_up(S, T, I, D, at(T.point, i * T.inputs * W), at(T.values, i * T.outputs * W))
    for c in range(S.n):
        total = splat(0.0)
        for i in range(r):
            total = fma(splat(T.raw[r + i]), load(at(T.values, (i * T.outputs + c) * W)), total)
        store(at(S.impulse, c * W), total)


@native
def chords(S, I, D, h):
    """Chords of one trajectory from S.t, S.q, S.p and the prediction S.z. Whether they do; else S.z is as before."""
    S.iterations[0] = 0
    if S.has_chord == 0:
        return False
    total = S.components * S.stride
    for i in range(total):
        S.start[i] = S.z[i]
    if set_mass(S, I, D, S.t, S.q, S.z, S.values, h):
        begin(S, S.z, S.scale)
        if S.swift == 1:
            swift_begin(S, I, D, S.q, S.z)
        going = True
        while going:
            chord(S, I, D, S.q, S.p, S.z, S.scale, S.reach, S.floor, S.seen)
            going = S.found[ENDED] == 0.0 and S.found[KEEP] != 0.0 and S.seen[DOUBT] == 0.0
        S.iterations[0] = int(S.seen[ITERATIONS])
        S.left[0] = S.found[LEFT]
        if S.swift == 1 and S.found[GOOD] != 0.0:
            swift_impulse(S, I, D, S.q, S.z)
        moved = 0.0
        for j in range(S.n * S.across):
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
    if S.summed == 1:
        return shifted(S, I, D, q, p, z, scale, reach)
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
def go_on(S, h):
    """S.z ← the motion with the velocity S.v."""
    s, across = S.s, S.across
    for c in range(S.n):
        for m in range(S.stride // across):
            for k in range(across):
                move = S.d[m + 1] * h * S.v[c * across + k] if m < s else 0.0
                S.z[c * S.stride + m * across + k] = move


@native
def velocity_at(S, I, D):
    """S.v ← the velocity at S.t, S.q, S.p; whether there is one."""
    n = S.n
    if S.summed == 1:
        return summed_velocity(S, I, D)
    S.at[0] = S.t[0]
    for j in range(n):
        S.at[1 + j] = S.q[j]
    for j in range(S.params + S.channels):
        S.at[1 + 2 * n + j] = S.values[j]
    return invert_alone(S, S.p)


@native
def continue_from_rest(S, I, D, h, noisy):
    """The root at step h that is connected with the solution at h → 0; see `step.continuation`. Returns the status.

    With `noisy` rounding may move coordinates: increments below their floors do not count.

    The step begins with S.t, S.q, S.p; its unknowns and impulse are left in S.z and S.impulse.
    """
    n, s, row, across = S.n, S.s, S.stride, S.across
    total = 0
    S.reached[0] = 0.0
    S.iterations[0] = 0
    S.left[0] = 1.0
    if not velocity_at(S, I, D):
        return SINGULAR
    if S.summed == 1:
        if noisy == 1:
            summed_noise(S, I, D, h)
    else:
        _set_noise(S)
    for i in range(S.components * row):
        S.z[i] = 0.0
    fraction, growth, action = SMALLEST, FASTEST, FROM_REST
    while True:
        small = h if fraction == 1.0 else fraction * h
        if noisy == 1:
            _set_floor(S, abs(small))
        else:
            quiet_floor(S, small)
        if action == FROM_REST:
            go_on(S, small)
            for j in range(n * across):
                S.reach[j] = HUGE  # the first is small enough to be judged by its contraction alone
        else:
            grown = fraction / S.reached[0]
            _prolong(S, grown)
            for c in range(n):
                for k in range(across):
                    j, longest = c * across + k, 0.0
                    for m in range(s):
                        longest = max(longest, abs(S.last[c * row + m * across + k]))
                    S.reach[j] = max(REACH * longest * grown, abs(S.v[j] * small), S.floor[j], TINY)
            if S.summed == 1:
                level(S, S.reach, REACHING)
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
def quiet_floor(S, h):
    """S.floor ← none; in sums what rounding of a coordinate alone may do, which is next to nothing."""
    for j in range(S.n * S.across):
        S.floor[j] = QUIET * (abs(S.q[j]) + abs(h * S.v[j])) if S.summed == 1 else 0.0


@native
def _set_floor(S, h):
    """S.floor ← NOISE g for a step of this length."""
    n = S.n
    if S.summed == 1:
        for j in range(n * W):
            S.floor[j] = 4.0 * QUIET * (abs(S.q[j]) + abs(h * S.v[j])) + MEASURED * h * h * S.M[j] * abs(S.noise[j])
        level(S, S.floor, 1.0)
        return
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
    s, row, d, across = S.s, S.stride, S.d, S.across
    for c in range(S.n, S.components):
        for m in range(s):
            S.z[c * row + m] = S.last[c * row + m]
    for m in range(1, s + 1):
        x = grown * d[m]
        for c in range(S.n):
            for k in range(across):
                S.z[c * row + (m - 1) * across + k] = 0.0
        for v in range(1, s + 1):
            weight = 1.0
            for i in range(s + 1):
                if i != v:
                    weight *= (x - d[i]) / (d[v] - d[i])
            for c in range(S.n):
                for k in range(across):
                    place = c * row + k
                    S.z[place + (m - 1) * across] += weight * S.last[place + (v - 1) * across]


@native
def uniform(S, I, D, h):
    """S.z ← that of the uniform motion from S.t, S.q, S.p; whether there is a velocity."""
    if not velocity_at(S, I, D):
        return False
    go_on(S, h)
    quiet_floor(S, h)
    for j in range(S.n * S.across):
        S.reach[j] = max(REACH * abs(h * S.v[j]), TINY)
    if S.summed == 1:
        level(S, S.reach, REACHING)
    for j in range(S.n * S.stride, S.components * S.stride):
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
        if (guess == 0 and predicted) or (
            guess == 1 and S.checked == 0 and (later or not predicted) and uniform(S, I, D, h)
        ):
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
