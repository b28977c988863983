"""A single step of any length by the kernels of whole steps, with points side by side.

What kernels read of h are tables, each with one power of h as a factor. So the tables at h = 1 give those at any h, and
the same bits as Python would. The step is a first step: it marches, and is taken if the march missed it by next to
nothing (`fused.march`).
"""

from __future__ import annotations

from leastaction.backends.loops.advancing import read_run
from leastaction.backends.loops.kernel_chords import land, march, write
from leastaction.backends.loops.machine import doubles, native


@native
def by_kernels(S, I, D, start, h):
    """Whether kernels solve the step of length h from (t, q, p), so that S.z and S.impulse are those of it."""
    A = read_run(I, D, S.kernels)
    X, T, n = A.aside, A.stride, S.coordinates
    _set_tables(A, X, h)
    write(A, X, A.t, 0, start[0])
    write(A, X, A.h, 0, h)
    for j in range(A.param_count):
        write(A, X, A.params + j, 0, S.values[j])
    for j in range(n):
        X[A.q * T + j], X[A.p * T + j] = start[1 + j], start[1 + n + j]
    write(A, X, A.soft_iterations, 0, 0.0)
    write(A, X, A.failed, 0, 1.0)
    march(A, I, D, X, X, A.aside_work, A.who, A.uncounted)
    if X[A.outer_wanted * T] == 0.0:
        return False
    land(A, I, D, X, X, A.aside_work)
    if X[A.failed * T] != 0.0:
        return False
    for j in range(n):
        S.impulse[j] = X[A.impulse * T + j]
        for v in range(S.s):
            S.z[j * S.stride + v] = X[A.z * T + j * A.z_coordinate + v * A.z_control]
    return True


@native
def _set_tables(A, X, h):
    """The tables in a state ← those at step h."""
    T, unit = A.stride, doubles(A.unit_tables)
    for k in range(A.table_rows):
        if A.powers[k] != 0:
            factor = h if A.powers[k] > 0 else 1.0 / h
            for i in range(k * T, (k + 1) * T):
                X[A.tables * T + i] = unit[i] * factor
