"""One step solved: mass chord, shifted chord, Newton, continuation; each ends at the same floor and passes the same
verdict."""

from __future__ import annotations

from leastaction.backends.loops.constrained_sums import settle_sum
from leastaction.backends.loops.constraints import settle
from leastaction.backends.loops.elimination import factor, solve
from leastaction.backends.loops.increments import REACHING, begin, level, missed, nearby
from leastaction.backends.loops.iterations import NEWTON, SHIFTED, increments, stiffly, turned
from leastaction.backends.loops.legendre import invert_alone
from leastaction.backends.loops.machine import at, call_kernel, copy, native
from leastaction.backends.loops.mass_chords import chords
from leastaction.backends.loops.noise import held_floor, quiet_floor, set_floor, set_noise
from leastaction.backends.loops.poles import leaps_over
from leastaction.backends.loops.summed import summed_noise, summed_velocity
from leastaction.backends.loops.sweep import prepare, set_given, set_times
from leastaction.step.continuation import ARRIVED, FASTEST, FROM_REST, HALVES, PARTS, PROLONG, SMALLEST
from leastaction.step.continuation import again as again_in_python
from leastaction.step.continuation import onward as onward_in_python
from leastaction.step.continuation import trusted as trusted_in_python
from leastaction.step.status import BRANCH_ENDS, COARSE, GOING_WELL, IN_DOUBT, NOT_CONVERGED, SINGULAR
from leastaction.step.verdict import REACH, TINY

HUGE = 1e300

onward, again, trusted = native(onward_in_python), native(again_in_python), native(trusted_in_python)


@native
def go_on(S, h, z):
    """z ← the motion with the velocity S.v."""
    s, across = S.s, S.across
    for c in range(S.n):
        for m in range(S.stride // across):
            for k in range(across):
                move = S.d[m + 1] * h * S.v[c * across + k] if m < s else 0.0
                z[c * S.stride + m * across + k] = move


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
    n, row, across = S.n, S.stride, S.across
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
        set_noise(S)
    for i in range(S.components * row):
        S.z[i] = 0.0
    stand(S)
    fraction, growth, action, before, sign = SMALLEST, FASTEST, FROM_REST, 0.0, 0
    while True:
        small = h if fraction == 1.0 else fraction * h
        if noisy == 1:
            set_floor(S, small)
        else:
            quiet_floor(S, small)
        if action == FROM_REST:
            go_on(S, small, S.z)
            for j in range(n * across):
                S.reach[j] = HUGE  # the first step is so small that its contraction alone can judge it
        else:
            grown = fraction / S.reached[0]
            prolong(S, grown, S.z)
            factor = again(fraction, S.reached[0], before)
            for i in range(n * row):
                S.z[i] += factor * S.miss[i]
            for c in range(n):
                for k in range(across):
                    j = c * across + k
                    S.reach[j] = max(REACH * S.way[j] * grown, abs(S.v[j] * small), S.floor[j], TINY)
                    if S.reach[j] == TINY and S.summed == 0:
                        S.reach[j] = HUGE  # it has not moved yet: others set it in motion
            if S.summed == 1:
                level(S, S.reach, REACHING)
        copy(S.z, S.start, S.components * row)
        prepare(S, I, D, small, False)
        set_times(S, I, D, S.soft, S.t)
        status = GOING_WELL
        if not chords(S, I, D, small, False):
            total += S.iterations[0]
            set_times(S, I, D, S.terms, S.t)
            status = stiffly(S, I, D, S.q, S.p, S.z, S.scale, S.reach, action == PROLONG, False)
        total += S.iterations[0]
        S.iterations[0] = total
        if status == GOING_WELL and leaps_over(S, small, False):
            status = IN_DOUBT
        if status == GOING_WELL and action == PROLONG and S.checked == 1:
            off = missed(S, S.z, S.scale, False)
            if not trusted(off, S.turned[0] != sign, fraction / S.reached[0] - 1.0):
                status = IN_DOUBT
        if status == GOING_WELL:
            before, sign = S.reached[0], S.turned[0]
        tried, begun = action, fraction
        action, fraction, S.reached[0], growth = onward(status == GOING_WELL, fraction, S.reached[0], growth)
        if action == ARRIVED:
            return GOING_WELL
        if action in (PROLONG, FROM_REST):
            if status == GOING_WELL:
                if tried == FROM_REST:
                    go_on(S, small, S.miss)
                else:
                    prolong(S, begun / before, S.miss)
                for i in range(n * row):
                    S.miss[i] = S.z[i] - S.miss[i]
                copy(S.z, S.last, S.components * row)
                lengthen(S, S.way, 1.0)
            continue
        prepare(S, I, D, h, False)
        return BRANCH_ENDS if S.reached[0] > 0.0 or status == IN_DOUBT else status


@native
def stand(S):
    """S.way ← nothing: no coordinate has moved yet."""
    for j in range(S.n * S.across):
        S.way[j] = 0.0


@native
def lengthen(S, way, times):
    """The way of each coordinate is at least so many times the longest part of the step S.z."""
    for j in range(S.n * S.across):
        for m in range(S.s):
            way[j] = max(way[j], times * abs(S.z[j // S.across * S.stride + m * S.across + j % S.across]))


@native
def prolong(S, grown, z):
    """z^m ← the polynomial of S.last at grown · d_m, by Lagrange's formula (d_0 = 0 carries the value 0).

    Multipliers stay.
    """
    s, row, d, across = S.s, S.stride, S.d, S.across
    copy(at(S.last, S.n * row), at(z, S.n * row), (S.components - S.n) * row)
    for m in range(1, s + 1):
        x = grown * d[m]
        for c in range(S.n):
            for k in range(across):
                z[c * row + (m - 1) * across + k] = 0.0
        for v in range(1, s + 1):
            weight = 1.0
            for i in range(s + 1):
                if i != v:
                    weight *= (x - d[i]) / (d[v] - d[i])
            for c in range(S.n):
                for k in range(across):
                    place = c * row + k
                    z[place + (m - 1) * across] += weight * S.last[place + (v - 1) * across]


@native
def uniform(S, I, D, h):
    """S.z ← z of the uniform motion from S.t, S.q, S.p; returns whether there is a velocity."""
    if not velocity_at(S, I, D):
        return False
    go_on(S, h, S.z)
    quiet_floor(S, h)
    for j in range(S.n * S.across):
        S.reach[j] = max(REACH * abs(h * S.v[j]), TINY)
    if S.summed == 1:
        level(S, S.reach, REACHING)
    for j in range(S.n * S.stride, S.components * S.stride):
        S.z[j] = 0.0
    return True


@native
def accelerated(S, I, D, h):
    """S.z ← z of the motion with the velocity and the acceleration at S.t, S.q, S.p, without the change of momenta by
    time alone; returns whether velocity and acceleration exist.
    """
    n, s, row, values = S.n, S.s, S.stride, S.at_values
    if not velocity_at(S, I, D):
        return False
    m_q, m_v = at(values, 2 * n + 2 * n * n), at(values, 2 * n + 3 * n * n)
    for j in range(n):
        S.move[j] = values[j]
        for k in range(n):
            S.move[j] -= m_q[j * n + k] * S.v[k]
            S.V[j * n + k] = m_v[j * n + k]
    if not factor(S.V, S.mass_pivots, n, n):
        return False
    solve(S.V, S.mass_pivots, n, n, S.move)
    for j in range(n):
        longest = TINY
        for m in range(row):
            tau = S.d[m + 1] * h if m < s else 0.0
            S.z[j * row + m] = tau * (S.v[j] + 0.5 * tau * S.move[j])
            longest = max(longest, abs(S.z[j * row + m]))
        S.reach[j] = longest
    quiet_floor(S, h)
    return True


@native
def at_once(S, I, D, h):
    """A first step by mass chords from the accelerated motion. Returns whether they contract, so that the step is short
    for any frequency, and whether that motion misses the step, and PARTS of it, by so little (NEARBY), in every
    coordinate, that no other root is as near.
    """
    total, found = 0, S.checked == 1 and S.has_chord == 1 and S.summed == 0
    for part in PARTS:
        if found:
            small = h if part == 1.0 else part * h
            prepare(S, I, D, small, False)
            set_times(S, I, D, S.soft, S.t)
            S.iterations[0] = 0
            found = accelerated(S, I, D, small) and chords(S, I, D, small, True) and nearby(S, S.z, S.scale)
            found = found and not leaps_over(S, small, False)
            total += S.iterations[0]
    S.iterations[0] = total
    return found


@native
def linearised(S, I, D, h, part):
    """S.z, S.start ← the step of the equations linearised about the uniform motion from S.t, S.q, S.p (see
    `step.prediction`), by one shifted chord or one iteration of Newton. h is a part of the step that S.reach is for.

    Returns whether there is such a step: not where it goes too far, nor where its determinant has turned.
    """
    n, row, across = S.n, S.stride, S.across
    if (S.summed == 1 and S.stiff == 0) or S.multipliers > 0 or not velocity_at(S, I, D):
        return False
    go_on(S, h, S.z)
    prepare(S, I, D, h, S.stiff == 0)
    set_given(S, I, D, S.terms, S.t, S.values)
    begin(S, S.z, S.scale)
    kind = SHIFTED if S.stiff == 1 and S.krylov < 0 else NEWTON
    if increments(S, I, D, S.q, S.p, S.z, S.scale, kind, True, True, False) != GOING_WELL:
        return False
    if turned(S, I, D, S.q, S.z, kind) == 1:
        return False
    for j in range(n * across):
        for m in range(S.s):
            place = j // across * row + m * across + j % across
            if not abs(S.R[place]) <= part * S.reach[j]:
                return False
            S.z[place] += S.R[place]
        S.way[j] = part * S.reach[j] / REACH  # a coordinate that turns back may have next to no step
    copy(S.z, S.start, n * row)
    return True


@native
def linearly(S, I, D, h):
    """The step from the `linearised` one. Returns whether that misses the step, and PARTS of it, by so little (NEARBY)
    that no other root is as near, and whether no determinant has turned; S.iterations ← those spent.
    """
    total, found = 0, True
    for part in PARTS:
        if found:
            small = h if part == 1.0 else part * h
            S.iterations[0] = 0
            found = linearised(S, I, D, small, part)
            if found:
                prepare(S, I, D, small, True)
                status = stiffly(S, I, D, S.q, S.p, S.z, S.scale, S.reach, False, False)
                found = status == GOING_WELL and S.turned[0] == 0 and nearby(S, S.z, S.scale)
                found = found and not leaps_over(S, small, False)
            total += S.iterations[0]
    S.iterations[0] = total
    return found


@native
def has_one_root(S, h, found):
    """Whether the step from S.t, S.q has one root as far as the latest steps went, and as S.z, if it is `found`
    (`fused.uniqueness`).
    """
    n, way = S.n, at(S.at, 2 + S.n)
    S.at[0], S.at[1] = S.t[0], h
    for j in range(n):
        S.at[2 + j], way[j] = S.q[j], S.length[j]
    if found:
        lengthen(S, way, 1.0)
    for j in range(S.params):
        S.at[2 + 2 * n + j] = S.values[j]
    call_kernel(S.one_root, S.at, S.argument, S.work)
    return S.argument[0] != 0.0


@native
def singly(S, I, D, h, wild):
    """The step from the prediction S.z, or where that is `wild` from the uniform motion, slowed down so that it goes no
    farther than the latest steps: where h ω is large, h v leads many times as far. Returns whether the step is found,
    and known to be the only one; S.iterations ← those spent.
    """
    S.iterations[0] = 0
    if not has_one_root(S, h, False):
        return False
    if wild:
        if not velocity_at(S, I, D):
            return False
        for j in range(S.n):
            S.v[j] *= min(1.0, S.length[j] / max(abs(h * S.v[j]), TINY))
        go_on(S, h, S.z)
    return solved_anyhow(S, I, D, h) and has_one_root(S, h, True)


@native
def solved_anyhow(S, I, D, h):
    """Whether some root is found from S.z, which will be asked if it is the only one."""
    prepare(S, I, D, h, True)
    set_given(S, I, D, S.terms, S.t, S.values)
    S.unique[0] = 1
    status = stiffly(S, I, D, S.q, S.p, S.z, S.scale, S.reach, False, False)
    S.unique[0] = 0
    return status == GOING_WELL and S.turned[0] == 0


@native
def by_halves(S, I, D, h):
    """The step and its HALVES, each from rest, so that a first iteration finds the step of the equations linearised
    there. Returns whether all are found, and known to be the only ones as far as any of them went: a step without
    latest ones, or that leads elsewhere, tells by them how far the branch from h → 0 has gone. S.iterations ← those
    spent.
    """
    total, found = 0, True
    for j in range(S.n):
        S.length[j] = 0.0
    for half in range(-1, HALVES + 1):
        if found:
            small = h * 0.5 ** (HALVES - half if half >= 0 else 0)
            for i in range(S.components * S.stride):
                S.z[i] = S.last[i] if half == HALVES else 0.0
            S.iterations[0] = 0
            found = solved_anyhow(S, I, D, small)
            total += S.iterations[0]
            lengthen(S, S.length, 1.0)
            if half == -1:
                found = found and has_one_root(S, h, False)
                copy(S.z, S.last, S.components * S.stride)
    S.iterations[0] = total
    return found and has_one_root(S, h, False)


@native
def within_reach(S, z):
    """Whether no coordinate of z is farther away than a first increment may lead."""
    near = True
    for c in range(S.n):
        for m in range(S.s):
            for k in range(S.across):
                place = c * S.stride + m * S.across + k
                near = near and abs(z[place]) <= S.reach[c * S.across + k]
    return near


@native
def alone(S, I, D, h, predicted, later, told):
    """The step from S.t, S.q, S.p by Newton, from the prediction S.z if there is one; where there is none, or it is
    wild, or the step is too coarse for it, from the `linearised` step; a first step `at_once`; `by_halves` where one
    root can be shown; else by continuation.
    `later` tells that the step is not the first one, so that other iterations have failed before; a later step that is
    `hasty` fails instead of being continued. Where any root is good enough, Newton is tried from the uniform motion,
    too. With `told` coarse steps are told by their pivots. Single steps of a sum, first ones that are predicted, are
    continued only where they have all derivatives: where they lack some, these are tried before.

    Returns the status, the iterations spent, and whether continuation was needed.
    """
    spent = 0
    stand(S)
    if S.summed == 1 and S.multipliers > 0:
        held_floor(S)
    asked = later and S.one_root != 0
    wild = later and S.checked == 1 and not (predicted and within_reach(S, S.z))
    if wild or asked:
        found = False
        copy(S.z, S.last, S.components * S.stride)
        if asked:
            found = singly(S, I, D, h, wild)
            spent += S.iterations[0]
        if wild and not found:
            found = linearly(S, I, D, h)
            spent += S.iterations[0]
        if found:
            return ended(S, I, D, h), spent, False
        stand(S)
        copy(S.last, S.z, S.components * S.stride)
    for guess in range(2):
        if guess == 0:
            ready = predicted
        else:
            ready = S.checked == 0 and (later or not predicted) and uniform(S, I, D, h)
        if ready:
            prepare(S, I, D, h, True)
            set_given(S, I, D, S.terms, S.t, S.values)
            status = stiffly(S, I, D, S.q, S.p, S.z, S.scale, S.reach, False, told)
            spent += S.iterations[0]
            sure = S.checked == 0 or S.multipliers > 0 or S.turned[0] == 0
            if status == GOING_WELL and sure and not leaps_over(S, h, False):
                return ended(S, I, D, h), spent, False
            if status == COARSE and not wild:
                found = linearly(S, I, D, h)
                spent += S.iterations[0]
                if found:
                    return ended(S, I, D, h), spent, False
                stand(S)
    if predicted and not later and S.summed == 1 and S.explicit == 0 and S.krylov < 0:
        return NOT_CONVERGED, spent, False
    prepare(S, I, D, h, False)
    set_given(S, I, D, S.terms, S.t, S.values)
    if S.soft != S.terms:
        set_given(S, I, D, S.soft, S.t, S.values)
    if not later and not predicted:
        if at_once(S, I, D, h):
            return ended(S, I, D, h), S.iterations[0], False
        spent += S.iterations[0]
    if later and S.hasty[0] == 1:
        return NOT_CONVERGED, spent, False
    if S.one_root != 0:
        found = by_halves(S, I, D, h)
        spent += S.iterations[0]
        if found:
            return ended(S, I, D, h), spent, False
        prepare(S, I, D, h, False)
    status, noisy = BRANCH_ENDS, 0
    while status != GOING_WELL and noisy < 2:
        status = continue_from_rest(S, I, D, h, noisy)
        spent += S.iterations[0]
        noisy += 1
    if later and status == GOING_WELL:  # noise may be the reason why other iterations failed
        set_floor(S, h)
    if status == GOING_WELL:
        status = ended(S, I, D, h)
    return status, spent, True


@native
def ended(S, I, D, h):
    """The status of a step whose equations are solved, after the equations of the End where there are constraints."""
    if S.multipliers == 0:
        return GOING_WELL
    held = settle_sum(S, I, D, h) if S.summed == 1 else settle(S, S.end, h)
    return GOING_WELL if held else SINGULAR
