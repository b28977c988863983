"""Steps of one trajectory by hops (`fused.hop`): each reads a state and writes the next one elsewhere."""

from __future__ import annotations

from leastaction.backends.layout import COUNTS, HOP, ITERATIONS, STEPS
from leastaction.backends.loops.machine import at, call_kernel, copy, native
from leastaction.backends.loops.storing import drive, store_states


@native
def calm(A, X):
    """Whether hops may be tried: not before a first step, nor where a coordinate has a floor."""
    quiet = X[A.started] != 0.0
    for j in range(A.n):
        quiet = quiet and X[A.floor + j] == 0.0
    return quiet


@native
def hop(A, X, Y, scratch, k, who):
    """Whether a hop surely solves step k of one trajectory: then Y is the state after it."""
    copy(X, Y, A.size)
    if A.channels > 0:
        drive(A, X, k, who)
    X[A.next] = A.start[0] + (k + 1) * A.period[0]
    if X[A.enough] < HOP + 0.5:
        call_kernel(A.hop, X, Y, scratch)
        if Y[A.unsure] == 0.0:
            return True
    if X[A.enough] > HOP + 1.5:
        return False
    call_kernel(A.far_hop, X, Y, scratch)
    return Y[A.unsure] == 0.0


@native
def take_step(A, S, X, Y):
    """The step that a hop has solved, from the state after it to the one before. From there the kernel `advance` leads
    to the state after it, too: if the run halts here.
    """
    for j in range(A.n):
        X[A.z + j], X[A.impulse + j] = Y[A.z + j], Y[A.impulse + j]
    for j in range(S.multipliers):
        X[A.z + A.n + j] = Y[A.found + j]
    X[A.iterations] = Y[A.enough]


@native
def hops(A, X, Y, scratch, k, end, who, counts, stored, tangent):
    """Steps k, k + 1, … of one trajectory by hops, to `end` or to the first that is not surely solved, which is
    returned. The state goes from X to Y and back; what hops do not write is the same in both.
    """
    here, there, first, every = X, Y, k, A.every
    due, count = (k // every + 1) * every, at(counts, who[0] * COUNTS)
    hop, far_hop, driven, start, period = A.hop, A.far_hop, A.channels > 0, A.start[0], A.period[0]
    time, enough, unsure, least, farther, sure = A.next, A.enough, A.unsure, HOP + 0.5, 0, True
    copy(X, Y, A.size)
    while sure and k < end:
        stop = min(end, due)
        while k < stop:
            if driven:
                drive(A, here, k, who)
            here[time] = start + (k + 1) * period
            sure = here[enough] < least
            if sure:
                call_kernel(hop, here, there, scratch)
                sure = there[unsure] == 0.0
            if not sure:
                sure = here[enough] < least + 1.0
                if sure:
                    call_kernel(far_hop, here, there, scratch)
                    sure = there[unsure] == 0.0
                    if sure:
                        farther += int(there[enough]) - HOP
                if not sure:
                    break
            here, there = there, here
            k += 1
        if k == due:
            due += every
            store_states(A, here, k, who, counts, stored, tangent)
    if k > first:
        count[STEPS] += k - first
        count[ITERATIONS] += HOP * (k - first) + farther
        A.most[0] = max(A.most[0], HOP + (farther > 0))
    if (k - first) % 2 == 1:
        copy(Y, X, A.unsure + 1)
    return k
