"""Single steps, each from a state of its own and of its own length: for dense output, and for events."""

from __future__ import annotations

from leastaction.backends.loops.increments import REACHING, level
from leastaction.backends.loops.machine import at, call_kernel, copy, native
from leastaction.backends.loops.mass_chords import chords
from leastaction.backends.loops.single_kernels import by_kernels
from leastaction.backends.loops.solver import alone, ended, go_on, lengthen, prolong, stand, uniform, within_reach
from leastaction.backends.loops.sweep import prepare, read_solver, set_times
from leastaction.backends.loops.team import read_team
from leastaction.step.crossing import MOST_VALUES
from leastaction.step.crossing import next_place as next_place_in_python
from leastaction.step.crossing import tolerance as tolerance_in_python
from leastaction.step.status import GOING_WELL
from leastaction.step.verdict import EPS, REACH

NAN = float("nan")
PROLONGED = 2.0  # a step that is at most so many times as long as another one from the same state is predicted by it
next_place, tolerance = native(next_place_in_python), native(tolerance_in_python)


@native
def single(S, I, D, start, h, grown):
    """S.z and S.impulse ← those of the step of length h from (t, q, p); whether it could be solved.

    With `grown`, S.last is the polynomial of another step from there, and h so many times the length of that one. It is
    the prediction where the uniform motion is none.
    """
    S.t[0] = start[0]
    for j in range(S.coordinates):
        S.q[j], S.p[j] = start[1 + j], start[1 + S.coordinates + j]
    if S.kernels >= 0 and by_kernels(S, I, D, start, h):
        return True
    if not uniform(S, I, D, h):
        return False
    if grown > 0.0:
        prolong(S, grown, S.z)
        if not _reach_as_far(S):
            go_on(S, h, S.z)
    if S.summed == 1 and S.has_chord == 1:
        stand(S)
        prepare(S, I, D, h, False)
        set_times(S, I, D, S.soft, S.t)
        if chords(S, I, D, h, False):
            return ended(S, I, D, h) == GOING_WELL
    status, _, _ = alone(S, I, D, h, True, False, S.branching == 1)
    return status == GOING_WELL


@native
def _reach_as_far(S):
    """Whether S.z goes farther than a step may, S.reach, which then grows."""
    farther = not within_reach(S, S.z)
    if farther:
        lengthen(S, S.reach, REACH)
        if S.summed == 1:
            level(S, S.reach, REACHING)
    return farther


@native
def polynomials(I, D, place, count, lengths, starts, params, z, impulses):
    """The increments z, (s, n) each, and the impulses of `count` steps from rows (t, q, p) of `starts`, with a row of
    parameters, and inputs behind them, each.

    Those of a step that cannot be solved stay as they are.
    """
    S = read_solver(I, D, place)
    n, s, across = S.coordinates, S.s, S.across
    if S.summed == 1:
        read_team(I, D, S.team).solver[0] = place
    for k in range(count):
        copy(at(params, k * S.given), S.values, S.given)
        if single(S, I, D, at(starts, k * (1 + 2 * n)), lengths[k], 0.0):
            for j in range(n):
                c, e = j // across, j % across
                for v in range(s):
                    z[(k * s + v) * n + j] = S.z[c * S.stride + v * across + e]
                impulses[k * n + j] = S.impulse[j]


@native
def events(I, D, place, kernel, count, lengths, starts, params, which, z, places, values, states, look, g, work):
    """Where the event function which[k] changes its sign in a step of lengths[k] from (t, q, p) with the increments z,
    (s, n) each, between the first two `places` (of four) with the first two `values`: places[0] ← where, values[0] ←
    what is left of it, states ← (q, p).

    A step that cannot be solved gives NaN.
    """
    S = read_solver(I, D, place)
    n, s, across = S.coordinates, S.s, S.across
    for k in range(count):
        start, h, e = at(starts, k * (1 + 2 * n)), lengths[k], which[k]
        x, f, state = at(places, 4 * k), at(values, 4 * k), at(states, k * 2 * n)
        copy(at(params, k * S.given), S.values, S.given)
        for j in range(S.params):
            look[1 + 2 * n + j] = S.values[j]
        for j in range(n):
            for v in range(s):
                S.z[j // across * S.stride + v * across + j % across] = z[(k * s + v) * n + j]
        for j in range(S.n * S.stride, S.components * S.stride):
            S.z[j] = 0.0  # multipliers are not given: those of another step must not be the prediction
        crossing(S, I, D, kernel, start, h, x, f, state, e, look, g, work)


@native
def crossing(S, I, D, kernel, start, h, x, f, state, e, look, g, work):
    """The same of one step, with the increments S.z; `look`, which the kernel reads, has the parameters in place."""
    x[2], f[2] = x[1], f[1]
    seen, last = 0, 1.0
    while seen < MOST_VALUES and f[0] != 0.0 and f[1] != 0.0 and f[0] == f[0]:
        near = tolerance(x[0] if abs(f[0]) < abs(f[1]) else x[1], EPS)
        if abs(x[1] - x[0]) <= near:
            break
        x[3] = next_place(x[0], x[1], x[2], f[0], f[1], f[2], near)
        f[3] = _value(S, I, D, kernel, start, h, x[3], last, state, e, look, g, work)
        last = x[3] if f[3] == f[3] else 0.0
        if (f[3] > 0.0) == (f[0] > 0.0):
            x[2], f[2] = x[0], f[0]
        else:
            x[2], f[2] = x[1], f[1]
            x[1], f[1] = x[0], f[0]
        x[0], f[0] = x[3], f[3]
        seen += 1
    if abs(f[1]) < abs(f[0]):
        x[0], f[0] = x[1], f[1]
    if seen == 0 or x[0] != last:  # else this state was the last one to be found
        _value(S, I, D, kernel, start, h, x[0], last, state, e, look, g, work)


@native
def _value(S, I, D, kernel, start, h, x, last, state, e, look, g, work):
    """The event function e at the end of a step of length x h, which is `state`; the step before had the length last h,
    and predicts this one unless it was much shorter.
    """
    n, across = S.coordinates, S.across
    for j in range(2 * n):
        state[j] = start[1 + j]
    if x != 0.0:
        copy(S.z, S.last, S.components * S.stride)
        if single(S, I, D, start, x * h, x / last if 0.0 < x < PROLONGED * last else 0.0):
            for j in range(n):
                state[j] += S.z[j // across * S.stride + (S.s - 1) * across + j % across]
                state[n + j] += S.impulse[j]
        else:
            for j in range(2 * n):
                state[j] = NAN
    look[0] = start[0] + x * h
    for j in range(2 * n):
        look[1 + j] = state[j]
    call_kernel(kernel, look, g, work)
    return g[e]
