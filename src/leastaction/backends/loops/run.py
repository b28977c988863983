"""Many steps of one trajectory or of groups of them: iterate, judge, advance, store.

A group's state X has value i of lane k at X[i · stride + k]; with points side by side there is one trajectory, and a
value lies there `stride` times. A fused step does the arithmetic of all lanes in kernels; elsewhere the solver's loops
do. This module has the loops over groups and steps, and what concerns single lanes: the step that has to be solved
alone, a failure, a step in which an event may lie.
"""

from __future__ import annotations

from leastaction.backends.layout import (
    CONTINUED,
    COUNTS,
    ITERATIONS,
    RUN,
    STATUS,
    STEPS,
)
from leastaction.backends.loops.advancing import advance
from leastaction.backends.loops.ending import ends
from leastaction.backends.loops.explicit import come_back, keep, leap
from leastaction.backends.loops.hops import calm, hop, hops, take_step
from leastaction.backends.loops.increments import DOUBT, ENDED, GOOD, KEEP, LEFT, SOLVED, begin
from leastaction.backends.loops.increments import ITERATIONS as SEEN_ITERATIONS
from leastaction.backends.loops.kernel_chords import any_lane, iterate_softly, write
from leastaction.backends.loops.machine import W, address_of, at, call_kernel, copy, native, reader
from leastaction.backends.loops.mass_chords import chord, set_mass
from leastaction.backends.loops.noise import set_floor, set_noise
from leastaction.backends.loops.poles import leaps_over
from leastaction.backends.loops.solver import alone, velocity_at
from leastaction.backends.loops.storing import drive, store_states
from leastaction.backends.loops.sweep import prepare, read_solver, set_given, set_inputs, set_times, sweep
from leastaction.backends.loops.swift_chords import swift_begin, swift_impulse
from leastaction.backends.loops.tangent_sweep import carry, take_lane
from leastaction.backends.loops.team import read_team
from leastaction.step.poles import LEAPT
from leastaction.step.status import GOING_WELL, NOT_FINITE, SINGULAR
from leastaction.step.verdict import ACCEPTABLE, FAR, NEARBY, TINY

read_run = reader(RUN)


@native
def run(I, D, place, states, Y, counts, stored, scratch, tangent, looks):
    """The steps of every group, from the states; `counts` has a row for each trajectory.

    stored    a block of (rows, width) numbers for each trajectory: those of (q, p) that are kept, then the directions
    tangent   with one trajectory, the directions carried along, (columns, 2n)
    looks     a block of rows (step, what the check reads) for each trajectory: the steps in which an event may lie.
              Where such a step is urgent, or where no room is left, the group halts with the step solved but not done
    """
    A = read_run(I, D, place)
    S, S1 = read_solver(I, D, A.solver), read_solver(I, D, A.alone)
    if S.summed == 1:
        J = read_team(I, D, S.team)
        J.run[0], J.solver[0], J.state[0] = place, A.solver, address_of(states)
    for group in range(A.groups):
        X = at(states, group * A.size * A.stride)
        _run_group(I, D, A, S, S1, X, Y, group, counts, stored, scratch, tangent, looks)


@native
def _all(values, lanes):
    found = 0
    while found < lanes and values[found] != 0.0:
        found += 1
    return found == lanes


@native
def _run_group(I, D, A, S, S1, X, Y, group, counts, stored, scratch, tangent, looks):
    L, T, h, every = A.lanes, A.stride, A.step[0], A.every
    begin, period, check, settle = A.start[0], A.period[0], A.check, A.settle
    who = at(A.who, group * L)
    alive, trouble, started = at(X, A.alive * T), at(X, A.trouble * T), at(X, A.started * T)
    first, end = A.end[0], A.end[0]
    for i in range(L):
        if alive[i] != 0.0:
            first = min(first, counts[who[i] * COUNTS + STEPS])
    if A.halted[group] == 2:
        end = first + 1
    if A.fused == 0:
        prepare(S, I, D, h, False)
        set_given(S, I, D, S.soft, at(X, A.t * T), at(X, A.params * T))
        if S.constant == 1:
            set_mass(S, I, D, at(X, A.t * T), at(X, A.q * T), at(X, A.z * T), at(X, A.params * T), h)
    explicit, quick, k = S.explicit == 1 and check == 0, True, first
    hopping = A.hop != 0
    plainly = hopping and check == 0 and A.columns == 0
    due = (first // every + 1) * every  # steps after which a state is stored next
    if explicit:
        keep(S, I, D)
        S.ahead[0] = 0
        S.known[0] = 0
    while k < end:
        if not any_lane(alive, L):
            return
        hopped = False
        if plainly and not (k == first and A.halted[group] != 0) and calm(A, X):
            done = hops(A, X, Y, scratch, k, end, who, counts, stored, tangent)
            if done > k:
                k, due = done, (done // every + 1) * every
                continue
        if explicit:
            if not quick:
                keep(S, I, D)
            if not leap(S, I, D, A, X, quick and k + 1 < end and k + 1 != due):
                come_back(S, I, D)
                if quick:  # once more, more slowly, to the last step that can be done
                    counts[who[0] * COUNTS + STEPS] -= k - first
                    X[A.t] = begin + first * period
                    quick, k, due = False, first, (first // every + 1) * every
                    continue
                counts[who[0] * COUNTS + STATUS] = NOT_FINITE
                X[A.alive] = 0.0
                return
        elif k == first and A.halted[group] != 0:
            A.halted[group] = 0
        elif hopping and not plainly and calm(A, X) and hop(A, X, Y, scratch, k, who):
            hopped = True
            take_step(A, S1, X, Y)
            if A.ending != 0:
                if ends(I, D, A, S1, X, k, group, counts, looks):
                    return
            elif check != 0 and _halts(A, X, k, group, looks, scratch):
                A.halted[group] = 1
                return
        else:
            if A.channels > 0:
                drive(A, X, k, who)
            if k == first and (A.leap == 0 or A.fresh != 0):
                # A first step has no step before it to be predicted from: it marches, or the lane finds it alone.
                for i in range(L):
                    if started[i] == 0.0 and alive[i] != 0.0:
                        if A.march != 0 and A.inner != 0:
                            write(A, X, A.failed, i, 1.0)
                        else:
                            trouble[i] = 1.0
            if A.leap != 0:
                if A.begin != 0 and not _all(started, L):
                    call_kernel(A.begin, X, Y, scratch)
                call_kernel(A.leap, X, Y, scratch)
                if A.fresh != 0 and any_lane(at(X, A.fresh_wanted * L), L):
                    _iterate_fused(A, X, Y, scratch)
                    call_kernel(settle, X, Y, scratch)
            elif A.fused == 1:
                if A.outer != 0:
                    iterate_softly(A, I, D, X, Y, scratch, who, counts)
                if A.fresh != 0:
                    _iterate_fused(A, X, Y, scratch)
                    if A.outer != 0 and S1.barrier != 0 and any_lane(at(X, A.failed * T), L):
                        _look_for_poles(A, S1, X)
                    if A.unique != 0 and any_lane(trouble, L) and _insist(A, X):
                        _iterate_fused(A, X, Y, scratch)
                        call_kernel(A.unique, X, Y, scratch)
                if settle != 0:
                    call_kernel(settle, X, Y, scratch)
            else:
                _iterate(I, D, A, S, X)
            if any_lane(trouble, L):
                for i in range(L):
                    if trouble[i] != 0.0:
                        _alone(I, D, A, S1, X, i, at(counts, who[i] * COUNTS))
                        if A.recall != 0:
                            write(A, X, A.failed, i, 1.0)
                        if A.patience > 0 and started[i] != 0.0:
                            write(A, X, A.given_up, i, X[A.given_up * T + i] + 1.0)
                if not any_lane(alive, L):
                    return  # time, prediction and lengths stay as they were before the step
            if A.recall != 0 and any_lane(at(X, A.failed * T), L):
                call_kernel(A.recall, X, Y, scratch)
            if A.ending != 0:
                if ends(I, D, A, S1, X, k, group, counts, looks):
                    return
            elif check != 0 and _halts(A, X, k, group, looks, scratch):
                A.halted[group] = 1
                return
        _count(A, X, who, counts)
        if A.columns > 0 and alive[0] != 0.0 and not carry(I, D, A, S1, X, k, tangent):
            write(A, X, A.alive, 0, 0.0)
            counts[who[0] * COUNTS + STEPS] -= 1
            counts[who[0] * COUNTS + STATUS] = SINGULAR
        for i in range(T):
            X[A.t * T + i] = begin + (k + 1) * period
        if explicit:
            X[A.started] = 1.0
        elif hopped:
            copy(Y, X, A.unsure + 1)
        elif A.fused == 1:
            if any_lane(alive, L):
                call_kernel(A.advance, X, Y, scratch)
        else:
            advance(I, D, A, S, X)
        k += 1
        if k == due:
            due += every
            store_states(A, X, k, who, counts, stored, tangent)
        if A.patience > 0 and A.stiff == 0 and X[A.given_up * T] >= A.patience:
            return  # until there are kernels for such steps


@native
def _count(A, X, who, counts):
    """Count a step of the lanes that are alive, the iterations it took, and what these left undone."""
    T, kernels, most, undone = A.stride, A.fused == 1, A.most[0], A.undone[0]
    chords, newton = A.outer != 0, not kernels or A.fresh != 0
    for i in range(A.lanes):
        if X[A.alive * T + i] != 0.0:
            count, spent = at(counts, who[i] * COUNTS), 0
            if newton:
                spent += int(X[A.iterations * T + i])
            if chords:
                spent += int(X[A.soft_iterations * T + i])
            count[STEPS] += 1
            count[ITERATIONS] += spent
            most = max(most, spent)
            if kernels:
                undone = max(undone, X[A.left * T + i])
    A.most[0], A.undone[0] = most, undone


@native
def _halts(A, X, k, group, looks, scratch):
    """Whether a group is to halt with step k solved but not done, since an event may lie in the step."""
    call_kernel(A.check, X, A.doubt, scratch)
    return _suspect(A.doubt, at(X, A.alive * A.stride), A.lanes) and _look(A, X, k, group, looks)


@native
def _suspect(doubt, alive, lanes):
    """Whether an event may lie in the step of a lane that is alive."""
    found = 0
    while found < lanes and (doubt[found] == 0.0 or alive[found] == 0.0):
        found += 1
    return found < lanes


@native
def _look(A, X, k, group, looks):
    """Write down step k of the lanes in which an event may lie. Whether the group is to halt, with the step solved but
    not done.
    """
    n, L, T, doubt = A.n, A.lanes, A.stride, A.doubt
    halt = False
    for i in range(L):
        if X[A.alive * T + i] != 0.0 and doubt[i] != 0.0:
            lane = A.who[group * L + i]
            own = at(looks, (lane * A.looks + A.looked[lane]) * (1 + A.look_size))
            own[0] = k
            for j in range(A.look_size):
                own[1 + j] = X[A.look_sources[j] * L + i]
            for j in range(n):  # in the state they are those of this step by now
                own[1 + A.look_last + j] = doubt[(2 + j) * L + i]
            A.looked[lane] += 1
            halt = halt or doubt[L + i] != 0.0 or A.looked[lane] == A.looks
    return halt


@native
def _iterate_fused(A, X, Y, scratch):
    """Kernels until no lane wants another iteration."""
    L = A.lanes
    fresh, kept = at(X, A.fresh_wanted * L), at(X, A.kept_wanted * L)
    while True:
        newton, keeping = any_lane(fresh, L), any_lane(kept, L)
        if not (newton or keeping):
            return
        if newton and keeping:
            # Lanes that keep their Jacobian get it back.
            memory = at(X, A.jacobian * L)
            for j in range(A.jacobian_size):
                for i in range(L):
                    Y[(j + 1) * L + i] = memory[j * L + i]
            for i in range(L):
                Y[i] = kept[i]
            call_kernel(A.fresh, X, Y, scratch)
            for i in range(L):
                if Y[i] != 0.0:
                    for j in range(A.jacobian_size):
                        memory[j * L + i] = Y[(j + 1) * L + i]
        elif newton:
            call_kernel(A.fresh, X, Y, scratch)
        if keeping:
            call_kernel(A.kept, X, Y, scratch)


@native
def _look_for_poles(A, S, X):
    """Lanes whose chords failed, and for which Newton's iteration has led over a pole, are in trouble (`poles`)."""
    T = A.stride
    for i in range(A.lanes):
        if X[A.alive * T + i] != 0.0 and X[A.failed * T + i] != 0.0 and X[A.trouble * T + i] == 0.0:
            take_lane(A, S, X, i)
            if leaps_over(S, A.step[0], False):
                X[A.failed * T + i], X[A.trouble * T + i] = LEAPT, 1.0


@native
def _insist(A, X):
    """Let Newton's iteration go on where a later step is in doubt, from rest where it has led too far: its root will be
    asked if it is the only one. Whether there is such a lane.
    """
    n, L = A.n, A.lanes
    found = False
    for i in range(L):
        if X[A.trouble * L + i] != 0.0 and X[A.started * L + i] != 0.0:
            found, near = True, True
            X[A.trouble * L + i], X[A.asked * L + i], X[A.fresh_wanted * L + i] = 0.0, 1.0, 1.0
            for j in range(n):
                near = near and X[A.scale * L + j * A.coordinate + i] <= FAR * X[A.reach * L + j * A.coordinate + i]
            for j in range(0 if near else n):
                X[A.scale * L + j * A.coordinate + i] = TINY
                for v in range(A.s):
                    X[A.z * L + j * A.z_coordinate + v * A.z_control + i] = 0.0
    return found


@native
def _iterate(I, D, A, S, X):
    """Mass chords; lanes for which chords fail are in trouble, and begin with Newton for a while."""
    L, n = A.lanes, S.n * S.across // A.lanes
    alive, trouble, rest = at(X, A.alive * L), at(X, A.trouble * L), at(X, A.rest * L)
    iterations, impulse = at(X, A.iterations * L), at(X, A.impulse * L)
    t, q, p, z = at(X, A.t * L), at(X, A.q * L), at(X, A.p * L), at(X, A.z * L)
    wanted = False
    for i in range(L):
        A.active[i] = 0.0
        if alive[i] != 0.0:
            if X[A.started * L + i] == 0.0:
                continue
            if S.has_chord == 1 and rest[i] == 0.0:
                A.active[i] = 1.0
                wanted = True
            else:
                rest[i] = max(rest[i] - 1.0, 0.0)
                trouble[i] = 1.0
    if not wanted:
        return
    set_times(S, I, D, S.soft, t)
    set_inputs(S, I, D, S.soft, at(X, A.params * L))
    if S.constant == 0 and not set_mass(S, I, D, t, q, z, at(X, A.params * L), A.step[0]):
        for i in range(L):
            if A.active[i] != 0.0:
                trouble[i] = 1.0
        return
    if S.swift == 1:
        swift_begin(S, I, D, q, z, at(X, A.scale))
    else:
        begin(S, z, at(X, A.scale * L))
        copy(z, S.start, S.components * S.stride * L)
    while wanted:
        chord(S, I, D, q, p, z, at(X, A.scale * L), at(X, A.reach * L), at(X, A.floor * L), A.active)
        wanted = False
        for i in range(L):
            if A.active[i] != 0.0:
                good, ended = S.found[GOOD * L + i] != 0.0, S.found[ENDED * L + i] != 0.0
                total = 0.0
                if S.swift == 1:
                    if ended and good and not swift_impulse(S, I, D, q, z, impulse):
                        good = False
                else:
                    for j in range(n):
                        impulse[j * L + i] = S.impulse[j * L + i]
                        total += S.impulse[j * L + i]
                if ended or S.found[KEEP * L + i] == 0.0 or S.seen[DOUBT * L + i] != 0.0:
                    A.active[i] = 0.0
                    iterations[i] = S.seen[SEEN_ITERATIONS * L + i]
                    if not good or total - total != 0.0:
                        trouble[i] = 1.0
                        rest[i] = 0.0 if S.found[SOLVED * L + i] != 0.0 else A.resting
                        for j in range(S.components * S.stride):
                            z[j * L + i] = S.start[j * L + i]
                    else:
                        A.undone[0] = max(A.undone[0], S.found[LEFT * L + i])
                else:
                    wanted = True
    if S.separable == 1:
        return
    sweep(S, I, D, S.soft, False, q, p, z)  # the impulse at the last z: see `chords`
    for i in range(L):
        if alive[i] != 0.0 and trouble[i] == 0.0:
            total = 0.0
            for j in range(n):
                impulse[j * L + i] = S.impulse[j * L + i]
                total += S.impulse[j * L + i]
            if total - total != 0.0:
                trouble[i] = 1.0


@native
def _alone(I, D, A, S, X, i, count):
    """Solve lane i's step alone; a lane where that fails is alive no more.

    Where chords stood still above the floor, rounding may be the reason: then what rounding does is found, as it is
    after continuation. Where they did not come near a root, it is not asked: it takes n solutions with the mass. Where
    chords leapt over a pole of cyclic coordinates (`step.poles`), the prediction may lead there again, and is not
    used. Where chords in kernels came NEARBY before they failed, pivots are not asked: a top near its pole would be
    continued, at two and a half times the time.
    """
    n, s, T, h = A.n, A.s, A.stride, A.step[0]
    take_lane(A, S, X, i)
    later = X[A.started * T + i] != 0.0
    predicted = A.fresh == 0 and A.leap == 0 and later
    if A.outer != 0 and X[A.failed * T + i] == LEAPT:
        predicted = False
    told = S.branching == 1 and not (A.outer != 0 and 0.0 < X[A.soft_before * T + i] <= NEARBY)
    status, spent, continued = alone(S, I, D, h, predicted, later, told)
    if continued and later:
        count[CONTINUED] += 1
    count[ITERATIONS] += spent
    A.most[0] = max(A.most[0], spent)
    X[A.trouble * T + i] = 0.0
    if status != GOING_WELL:
        write(A, X, A.alive, i, 0.0)
        count[STATUS] = status
        A.failure[0], A.failure[1], A.failure[2] = S.left[0], S.reached[0], float(spent)
        return
    A.undone[0] = max(A.undone[0], S.left[0])
    stood = A.outer != 0 and X[A.failed * T + i] == 2.0 and X[A.soft_before * T + i] <= ACCEPTABLE
    if stood and not continued and velocity_at(S, I, D):
        set_noise(S)
        set_floor(S, h)
    if S.summed == 1:
        for j in range(S.n * W):
            X[A.impulse + j], X[A.floor + j] = S.impulse[j], S.floor[j]
        for j in range(S.components * S.stride):
            X[A.z + j] = S.z[j]
        return
    for j in range(n):
        X[A.impulse * T + j * A.coordinate + i] = S.impulse[j]
        X[A.floor * T + j * A.coordinate + i] = S.floor[j]
        for v in range(s):
            X[A.z * T + j * A.z_coordinate + v * A.z_control + i] = S.z[j * S.stride + v]
    for j in range(S.multipliers):
        for v in range(s):
            place = A.z * T + A.held + j * A.held_multiplier + v * A.held_control + i
            X[place] = S.z[(n + j) * S.stride + v]
