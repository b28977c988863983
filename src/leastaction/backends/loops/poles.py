"""Whether a step leaps over a pole of its cyclic coordinates (`step.poles`)."""

from __future__ import annotations

from leastaction.backends.loops.machine import call_kernel, native
from leastaction.step.poles import BARRIER, NARROW, SAMPLES, STEEP

GOLDEN = 0.6180339887498949


@native
def leaps_over(S, h, unresolved):
    """Whether the step S.z from S.t, S.q, S.p, of length h, passes a place between its nodes, or between its start and
    the first of them, where the energy of the cyclic motion would be too much for it. A step whose nodes do not resolve
    this energy counts, too, if `unresolved` ones are not wanted.
    """
    if S.barrier == 0:
        return False
    n, s, energy = S.n, S.s, 0.0
    S.at[0] = S.t[0]
    for j in range(n):
        energy += abs(S.p[j] * S.z[j * S.stride + s - 1] / h)
        S.at[1 + n + j] = S.p[j]
        S.b[j], S.b[n + j] = 0.0, 0.0
    for j in range(S.params):
        S.at[1 + 2 * n + j] = S.values[j]
    before = _energy(S, 0.0)
    for i in range(s):
        for j in range(n):
            S.b[j] += S.b[n + j]
            S.b[n + j] = -S.b[j]
            for m in range(s):
                S.b[n + j] += S.at_nodes[i * s + m] * S.z[j * S.stride + m]
        end = _energy(S, 1.0)
        most = BARRIER * max(energy, before, end)
        if unresolved and _differ(before, end) and BARRIER * max(before, end) > energy:
            return True
        for k in range(SAMPLES):
            after = _energy(S, (k + 1) / SAMPLES)
            if _differ(before, after):
                low, high = max(0.0, (k - 1) / SAMPLES), min(1.0, (k + 2) / SAMPLES)
                if _near_the_largest(S, low, high, most) > most:
                    return True
            before = after
    return False


@native
def _differ(a, b):
    """Whether a pole may be near two places with these U."""
    return not (STEEP * a >= b and STEEP * b >= a)


@native
def _energy(S, part):
    """U at a part of the way S.b."""
    for j in range(S.n):
        S.at[1 + j] = S.q[j] + (S.b[j] + part * S.b[S.n + j])
    call_kernel(S.barrier, S.at, S.argument, S.work)
    return abs(S.argument[0])


@native
def _near_the_largest(S, low, high, most):
    """U near its largest value between two parts of the way, or a value above `most`: by golden sections, as the lesser
    U of two places. These are never nearer to each other than 0.145 NARROW, so one of them is at least 0.07 NARROW away
    from a pole: no place that meets a pole by chance decides.
    """
    x, y = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    left, right = _energy(S, x), _energy(S, y)
    while high - low > NARROW and min(left, right) <= most:
        if left > right:
            high, y, right = y, x, left
            x = high - GOLDEN * (high - low)
            left = _energy(S, x)
        else:
            low, x, left = x, y, right
            y = low + GOLDEN * (high - low)
            right = _energy(S, y)
    return min(left, right)
