"""An iteration's increments: added to the unknowns, measured, and judged by the one verdict."""

from __future__ import annotations

from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    call_kernel,
    div,
    first_of,
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
from leastaction.backends.loops.sweep import lanewise
from leastaction.step.status import GOING_WELL, IN_DOUBT, NOT_CONVERGED, NOT_FINITE
from leastaction.step.verdict import ACCEPTABLE, EPS, FAR, NEARBY, NEGLIGIBLE, STILL, TINY, WAKING, WOKEN

# Among coordinates that are alike in a sum, one may be at rest until the others move it, as where a wave arrives. Its
# increments are compared with the first part of the largest steps among them; it may reach the second part at once.
ALIKE = 2.0**-10
REACHING = 0.25
# Where what was SEEN of an iteration, and what the verdict says, are in their arrays.
SIZE, BEFORE, ITERATIONS, SOUND, OFF, TOO_FAR, DOUBT, HIDDEN, UNIQUE, NOISY, NOISY_BEFORE = range(11)
NEGLIGIBLE_PLACE, ACCEPTABLE_PLACE, RATE = range(11, 14)
SOLVED, ENDED, GOOD, DOUBTED, KEEP, LEFT, COUNTED = range(7)


@native
def put(x, i, across, value):
    """Write the i-th number of every trajectory, or the i-th vector of coordinates."""
    if across == 1:
        x[i] = first_of(value)
    else:
        store(at(x, i * W), value)


@native
def begin(S, z, scale):
    """Before the first iteration: each component's scale is its prediction's."""
    for c in range(S.components):
        measure_one(S, c, z, scale)
    if S.summed == 1:
        level(S, scale, ALIKE)
    renew(S)


@native
def widen(S, scale):
    """In continuation a coordinate is measured by its longest step on the way, too."""
    for j in range(S.n * S.across):
        scale[j] = max(scale[j], S.way[j])


@native
def measure_one(S, c, z, scale):
    """The scale of one component ← the largest of its unknowns."""
    top = splat(TINY)
    for v in range(S.width):
        top = larger(top, size_of(load(at(z, (c * S.width + v) * W))))
    put(scale, c, S.across, largest_of(top) if S.across == 1 else top)


@native
def renew(S):
    """Nothing was seen yet of an iteration."""
    for k in range(S.lanes):
        S.seen[BEFORE * S.lanes + k] = 0.0
        S.seen[ITERATIONS * S.lanes + k] = 0.0
        S.seen[DOUBT * S.lanes + k] = 0.0
        S.seen[HIDDEN * S.lanes + k] = 0.0
        S.seen[UNIQUE * S.lanes + k] = float(S.unique[0])
        S.seen[NOISY * S.lanes + k] = 0.0
        S.seen[NOISY_BEFORE * S.lanes + k] = 0.0
        S.seen[NEGLIGIBLE_PLACE * S.lanes + k] = NEGLIGIBLE * EPS
        S.seen[ACCEPTABLE_PLACE * S.lanes + k] = ACCEPTABLE
        S.seen[RATE * S.lanes + k] = 1.0


@native
def level(S, x, part):
    """Coordinates of one kind are alike: none is measured by less than a part of the largest x among them."""
    for k in range(max(W, S.kinds)):
        S.unit[k] = 0.0
    top_of(S, x, 0, S.n, S.unit)
    if S.kinds == 1:
        S.unit[0] = first_of(largest_of(load(S.unit)))
    raise_to(S, x, 0, S.n, part, S.unit)


@native
def top_of(S, x, first, end, top):
    """The largest x of each kind among the vectors first … end, or `top`, if it is larger; with one kind only, in each
    of W lanes.
    """
    if S.kinds == 1:
        found = load(top)
        for c in range(first, end):
            found = larger(found, load(at(x, c * W)))
        store(top, found)
        return
    for j in range(first * W, end * W):
        top[S.kind[j]] = max(top[S.kind[j]], x[j])


@native
def gather_tops(S, J, cells, which):
    """The units of all kinds ← the largest of what the cells found, for the first or the second time."""
    room = max(W, S.kinds)
    unit = at(S.unit, which * room)
    for k in range(S.kinds):
        unit[k] = 0.0
    for cell in range(cells):
        top = at(J.tops, (2 * cell + which) * room)
        if S.kinds == 1:
            unit[0] = max(unit[0], first_of(largest_of(load(top))))
        else:
            for k in range(S.kinds):
                unit[k] = max(unit[k], top[k])


@native
def raise_to(S, x, first, end, part, unit):
    """x of the vectors first … end is at least a part of its kind's unit."""
    if S.kinds == 1:
        least = splat(part * unit[0])
        for c in range(first, end):
            store(at(x, c * W), larger(load(at(x, c * W)), least))
        return
    for j in range(first * W, end * W):
        x[j] = max(x[j], part * unit[S.kind[j]])


@native
def positive(x):
    """x where it is positive, else zero."""
    return larger(x, splat(0.0))


@native
def still(floor, length):
    """The floor of a coordinate that moves little; zero for the others."""
    return where(positive(sub(length, mul(splat(STILL), floor))), splat(0.0), floor)


@native
def move(S, z, scale, reach, floor, replace, active):
    """z ← z + S.R, or S.R itself with `replace`, of the trajectories that are active; what the verdict needs of it."""
    on = splat(1.0) if S.lanes == 1 else load(active)
    size, off, far, total, noisy = splat(0.0), splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for c in range(S.components):
        row = at(S.R, c * S.width * W)
        ratio, beyond, away, added, part = move_one(S, c, row, z, scale, reach, floor, replace, on)
        size, off, far, total = larger(size, ratio), larger(off, beyond), larger(far, away), add(total, added)
        noisy = larger(noisy, part)
    see(S, size, off, far, total)
    if S.summed == 0 and S.multipliers == 0:  # the floors of constraints know no h: nothing shrinks below them
        put(S.seen, NOISY, S.lanes, largest_of(noisy) if S.lanes == 1 else noisy)


@native
def move_one(S, c, row, z, scale, reach, floor, replace, on):
    """One component of `move`, whose increments are in `row`. Returns their size, how far the increments and the
    unknowns are beyond their limits, the sum of the increments, and their largest part of the component's noise.
    """
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
        return splat(0.0), splat(0.0), splat(0.0), total, splat(0.0)
    noise = still(lanewise(floor, c, across), top)
    ratio = div(positive(sub(moved, noise)), top)
    if S.seen[ITERATIONS * S.lanes] > 0.0:
        last = splat(S.seen[BEFORE]) if S.lanes == 1 else load(at(S.seen, BEFORE * W))
        awake = positive(sub(mul(splat(WAKING), sub(before, splat(TINY))), top))
        most = where(awake, ratio, mul(splat(WOKEN), last))
        ratio = where(positive(sub(ratio, most)), most, ratio)
    limit = lanewise(reach, c, across)
    part = where(noise, div(moved, noise), splat(0.0))
    return ratio, sub(moved, limit), sub(top, mul(splat(FAR), limit)), total, part


@native
def missed(S, z, scale, alone):
    """What a prediction, kept in S.start, missed of z: the largest part of a coordinate's scale, beyond its noise. In
    continuation, not `alone`, a coordinate that others have just set in motion does not count (WAKING).
    """
    most = splat(0.0)
    for c in range(S.n):
        unit, way = lanewise(scale, c, S.across), lanewise(S.way, c, S.across)
        noise = still(lanewise(S.floor, c, S.across), unit)
        for v in range(S.width):
            place = (c * S.width + v) * W
            far = size_of(sub(load(at(z, place)), load(at(S.start, place))))
            part = div(sub(far, noise), unit)
            most = larger(
                most, part if alone else where(positive(sub(mul(splat(WAKING), way), unit)), part, splat(0.0))
            )
    return first_of(largest_of(most))


@native
def nearby(S, z, scale):
    """Whether a prediction, kept in S.start, missed z by next to nothing (NEARBY), in every coordinate."""
    return missed(S, z, scale, True) <= NEARBY


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
        size = S.found[COUNTED * lanes + k]
        if S.seen[ITERATIONS * lanes + k] > 0.0:
            S.seen[RATE * lanes + k] = size / max(S.seen[BEFORE * lanes + k], TINY)
        S.seen[BEFORE * lanes + k] = size
        S.seen[NOISY_BEFORE * lanes + k] = S.seen[NOISY * lanes + k]
        S.seen[ITERATIONS * lanes + k] += 1.0
        S.seen[DOUBT * lanes + k] = S.found[DOUBTED * lanes + k]


@native
def concluded(S):
    """What the last verdict says of an iteration that has ended: GOING_WELL where the equations are solved."""
    S.iterations[0] = int(S.seen[ITERATIONS])
    S.left[0] = S.found[LEFT]
    if S.found[SOLVED] == 0.0:
        S.left[0] = S.seen[SIZE]
    if S.seen[SOUND] == 0.0:
        S.left[0] = S.seen[SIZE]
        return NOT_FINITE
    return GOING_WELL if S.found[SOLVED] != 0.0 else NOT_CONVERGED


@native
def sound(S):
    """The status of a step whose impulse is known, too: the end of the step need not enter the step's equations."""
    total = 0.0
    for j in range(S.n * S.across):
        total += S.impulse[j]
    if total - total != 0.0:
        return NOT_FINITE
    return GOING_WELL if S.found[GOOD] != 0.0 else IN_DOUBT
