"""Chords of whole steps by kernels (`fused`), of one trajectory or of lanes of them: until no lane wants another."""

from __future__ import annotations

from leastaction.backends.layout import COUNTS, ITERATIONS
from leastaction.backends.loops.machine import W, any_of, at, call_kernel, load, native
from leastaction.backends.loops.poles import leaps_over
from leastaction.backends.loops.sweep import read_solver
from leastaction.backends.loops.tangent_sweep import take_lane
from leastaction.step.poles import LEAPT
from leastaction.step.verdict import FOLLOWED


@native
def any_lane(values, lanes):
    """Whether a number of one of the lanes is not zero: a whole vector is asked at once, without a branch for each
    lane, which nobody could foresee.
    """
    if lanes == W:
        return any_of(load(values))
    found = 0
    while found < lanes and values[found] == 0.0:
        found += 1
    return found < lanes


@native
def write(A, X, place, i, value):
    """Set a value of lane i."""
    if A.lanes == A.stride:
        X[place * A.stride + i] = value
    else:
        for k in range(A.stride):
            X[place * A.stride + k] = value


@native
def iterate_softly(A, I, D, X, Y, scratch, who, counts):
    """Chords until no lane wants another; lanes where chords fail try them from another prediction, then go on with
    chords of stiff steps or with Newton, and for a while begin with these.
    """
    L, T = A.lanes, A.stride
    alive, rest, failed = at(X, A.alive * T), at(X, A.rest * T), at(X, A.failed * T)
    inner, outer = at(X, A.inner_wanted * T), at(X, A.outer_wanted * T)
    if any_lane(rest, L):
        for i in range(L):
            if alive[i] != 0.0 and rest[i] > 0.0:
                rest[i] -= 1.0
                outer[i] = 0.0
                if A.inner != 0:
                    inner[i] = 0.0
                write(A, X, A.failed, i, 1.0)
    if A.once != 0 and any_lane(inner, L):
        call_kernel(A.once, X, Y, scratch)
    if A.inner != 0:
        while any_lane(inner, L):
            call_kernel(A.inner, X, Y, scratch)
        if A.march != 0 and any_lane(failed, L):
            march(A, I, D, X, Y, scratch, who, counts)
    if any_lane(outer, L):
        land(A, I, D, X, Y, scratch)
        if A.march != 0 and A.inner == 0 and failed[0] != 0.0:
            march(A, I, D, X, Y, scratch, who, counts)
        if A.afresh != 0 and failed[0] != 0.0:
            counts[who[0] * COUNTS + ITERATIONS] += int(X[A.soft_iterations * T])
            call_kernel(A.afresh, X, Y, scratch)
            land(A, I, D, X, Y, scratch)
    if any_lane(failed, L):
        give_up(A, X, Y, scratch, who, counts)


@native
def give_up(A, X, Y, scratch, who, counts):
    """Lanes where chords failed go on with chords of stiff steps or with Newton; those that leapt over a pole alone."""
    T, again = A.stride, False
    alive, rest, failed, started = at(X, A.alive * T), at(X, A.rest * T), at(X, A.failed * T), at(X, A.started * T)
    for i in range(A.lanes):
        if alive[i] != 0.0 and failed[i] != 0.0:
            again = True
            X[A.left * T + i] = 0.0
            if started[i] == 0.0:
                write(A, X, A.failed, i, 1.0)
            if failed[i] == 2.0:
                rest[i] = A.resting
            if A.fresh != 0 and started[i] != 0.0 and failed[i] != LEAPT:
                X[A.fresh_wanted * T + i] = 1.0
            else:
                X[A.trouble * T + i] = 1.0
    if again:
        call_kernel(A.restart, X, Y, scratch)
        if A.stiff != 0 and X[A.trouble * T] != 0.0 and started[0] != 0.0:
            iterate_stiffly(A, X, Y, scratch, who, counts)


@native
def iterate_stiffly(A, X, Y, scratch, who, counts):
    """Chords of a stiff step of one trajectory (`fused.stiff`), from the prediction. A step that they solve is as one
    that was solved alone; the next ones begin with them. How near the chords before them came is what counts of a step
    that they do not solve: they may have found a root that is not the only one.
    """
    T = A.stride
    inner, outer, failed = at(X, A.inner_wanted * T), at(X, A.outer_wanted * T), X[A.failed * T]
    before = X[A.soft_before * T]
    counts[who[0] * COUNTS + ITERATIONS] += int(X[A.soft_iterations * T])
    call_kernel(A.stiffen, X, Y, scratch)
    while inner[0] != 0.0:
        call_kernel(A.stiff, X, Y, scratch)
    if outer[0] != 0.0:
        call_kernel(A.stiffened, X, Y, scratch)
        if X[A.failed * T] == 0.0:
            X[A.trouble * T] = 0.0
            X[A.rest * T] = A.firm
    write(A, X, A.failed, 0, failed)
    write(A, X, A.soft_before, 0, before)


@native
def march(A, I, D, X, Y, scratch, who, counts):
    """Chords once more, of the lanes where they failed, from the motion followed from node to node (`fused.march`)."""
    L, T = A.lanes, A.stride
    alive, rest, failed = at(X, A.alive * T), at(X, A.rest * T), at(X, A.failed * T)
    inner, started, first = at(X, A.inner_wanted * T), at(X, A.started * T), at(X, A.soft_before * T)
    wanted = False
    for i in range(L):
        if alive[i] != 0.0 and failed[i] != 0.0 and (A.inner == 0 or rest[i] == 0.0):
            wanted = True
            counts[who[i] * COUNTS + ITERATIONS] += int(X[A.soft_iterations * T + i])
            write(A, X, A.marching, i, A.s + 2.0)
    if not wanted:
        return
    for _ in range(A.s + 1):
        call_kernel(A.march, X, Y, scratch)
    call_kernel(A.resume, X, Y, scratch)
    if A.inner == 0:
        land(A, I, D, X, Y, scratch)
        return
    call_kernel(A.inner, X, Y, scratch)
    for i in range(L):
        if alive[i] != 0.0 and started[i] == 0.0 and not first[i] <= FOLLOWED:
            inner[i] = 0.0
            X[A.outer_wanted * T + i] = 0.0
            write(A, X, A.failed, i, 1.0)
    while any_lane(inner, L):
        call_kernel(A.inner, X, Y, scratch)


@native
def land(A, I, D, X, Y, scratch):
    """The outer kernel until no lane wants it; then the end of the step, if that is another kernel. One trajectory may
    land early; if that was too early, it goes on.
    """
    outer, landed = at(X, A.outer_wanted * A.stride), A.land == 0
    while any_lane(outer, A.lanes):
        call_kernel(A.outer, X, Y, scratch)
        if A.follow != 0 and X[A.early * A.stride] != 0.0:
            call_kernel(A.land, X, Y, scratch)
            landed = outer[0] == 0.0
            if not landed:
                call_kernel(A.follow, X, Y, scratch)
    if not landed:
        call_kernel(A.land, X, Y, scratch)
    if A.land != 0 and A.lifted == 1:
        call_kernel(A.lift, X, Y, scratch)
    if any_lane(at(X, A.failed * A.stride), A.lanes):
        look_for_poles(A, I, D, X, Y, scratch)


@native
def look_for_poles(A, I, D, X, Y, scratch):
    """Lanes that may have leapt over a pole have not failed if they have not (`poles`). The solver's record is read
    here: to hand it on would cost every step.
    """
    T, failed, asked = A.stride, at(X, A.failed * A.stride), False
    for i in range(A.lanes):
        if X[A.alive * T + i] != 0.0 and failed[i] == LEAPT:
            if A.land != 0 and A.lifted == 0 and not asked:
                call_kernel(A.lift, X, Y, scratch)
                asked = True
            S = read_solver(I, D, A.alone)
            take_lane(A, S, X, i)
            if not leaps_over(S, X[A.h * T + i], True):
                write(A, X, A.failed, i, 0.0)
