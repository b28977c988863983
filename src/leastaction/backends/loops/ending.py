"""The end of a run at a given time, where nothing else is looked for: inside the last step, which is solved for its
length.
"""

from __future__ import annotations

from leastaction.backends.layout import COUNTS, STATUS
from leastaction.backends.loops.advancing import with_carry
from leastaction.backends.loops.kernel_chords import write
from leastaction.backends.loops.machine import at, call_kernel, native
from leastaction.backends.loops.polynomials import crossing
from leastaction.backends.loops.tangent_sweep import take_lane
from leastaction.step.status import NOT_CONVERGED, STOPPED


@native
def ends(I, D, A, S, X, k, group, counts, looks):
    """Whether the run of one trajectory ends in step k, which is solved but not done. If so, looks ← a row of k, the
    start (t, q, p), the part of the step that is done, and (t, q, p) after it.

    The function of the end grows all along, or falls (A.direction < 0). It is asked in the state after the step, with
    what rounding left over before, bit for bit: without that a step might end just before the end of the run, by its
    own last bit, and the next one begin behind it, and the run would have no end.
    """
    n, T, lane, h = A.n, A.stride, A.who[group], A.step[0]
    start, look, x, f = A.end_start, A.end_look, A.end_places, A.end_values
    last = A.z * T + (A.s - 1) * A.z_control
    for j in range(A.param_count):
        look[1 + 2 * n + j] = X[(A.params + j) * T]
    look[0] = X[A.t * T] + h
    for j in range(n):
        q, p, own = A.q * T + j * A.coordinate, A.p * T + j * A.coordinate, (A.carry - A.q) * T
        look[1 + j], _ = with_carry(X[q], X[last + j * A.z_coordinate], X[q + own])
        look[1 + n + j], _ = with_carry(X[p], X[A.impulse * T + j * A.coordinate], X[p + own])
    call_kernel(A.ending, look, A.end_found, A.end_work)
    x[1], f[1] = 1.0, A.end_found[0]
    if not A.direction * f[1] >= 0.0:
        return False
    take_lane(A, S, X, 0)
    start[0] = S.t[0]
    for j in range(n):
        start[1 + j], start[1 + n + j] = S.q[j], S.p[j]
    for j in range(1 + 2 * n):
        look[j] = start[j]
    call_kernel(A.ending, look, A.end_found, A.end_work)
    x[0], f[0] = 0.0, A.end_found[0]
    row = at(looks, (lane * A.looks + A.looked[lane]) * (1 + A.look_size))
    state = at(row, 4 + 2 * n)
    crossing(S, I, D, A.ending, start, h, x, f, state, 0, look, A.end_found, A.end_work)
    row[0], row[2 + 2 * n], row[3 + 2 * n] = k, x[0], start[0] + x[0] * h
    status = STOPPED
    for j in range(1 + 2 * n):
        row[1 + j] = start[j]
    for j in range(2 * n):
        if state[j] != state[j]:
            status = NOT_CONVERGED
    A.looked[lane] += 1
    counts[lane * COUNTS + STATUS] = status
    write(A, X, A.alive, 0, 0.0)
    return True
