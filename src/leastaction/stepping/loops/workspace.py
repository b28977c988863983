"""Named arrays in the blocks of memory that Python hands over."""

from __future__ import annotations

from collections import namedtuple

from leastaction.stepping.layout import DOF, PARAMS, TABLE, WORK
from leastaction.stepping.loops.calls import at, native

Tables = namedtuple("Tables", "c b d l dl slope modes growth")

# out        dz and, behind it, the impulse
# kernel     the kernels' own workspace
# point      input of the point kernels, (t, q, v, params)
# values     their output: L_q, L_v, L_qq, L_qv, L_vv, L_vt; Lqq … Lvt: parts of it
# transposed L_qvᵀ
# A, B, G    ∂R/∂z, the same block after block, and ∂(impulse)/∂z
# modes      Legendre coefficients of the last step's velocity; errors: how well each degree predicted
# v, step, V velocity, its Newton step, L_vv
# stages     Runge–Kutta's
Work = namedtuple(
    "Work",
    "out kernel point values Lqq Lqv Lvv Lvt transposed A B G modes errors last v step V stages pivots size",
)


@native
def tables(I, memory):
    """The method's table."""
    return Tables(
        at(memory, I[TABLE]),
        at(memory, I[TABLE + 1]),
        at(memory, I[TABLE + 2]),
        at(memory, I[TABLE + 3]),
        at(memory, I[TABLE + 4]),
        at(memory, I[TABLE + 5]),
        at(memory, I[TABLE + 6]),
        at(memory, I[TABLE + 7]),
    )


@native
def workspace(I, memory, pivots):
    """The arrays the loops work in; `pivots` holds 32-bit integers, as LAPACK has them."""
    n = I[DOF]
    values = at(memory, I[WORK + 3])
    return Work(
        at(memory, I[WORK]),
        at(memory, I[WORK + 1]),
        at(memory, I[WORK + 2]),
        values,
        at(values, 2 * n),
        at(values, 2 * n + n * n),
        at(values, 2 * n + 2 * n * n),
        at(values, 2 * n + 3 * n * n),
        at(memory, I[WORK + 4]),
        at(memory, I[WORK + 5]),
        at(memory, I[WORK + 6]),
        at(memory, I[WORK + 7]),
        at(memory, I[WORK + 8]),
        at(memory, I[WORK + 9]),
        at(memory, I[WORK + 10]),
        at(memory, I[WORK + 11]),
        at(memory, I[WORK + 12]),
        at(memory, I[WORK + 13]),
        at(memory, I[WORK + 14]),
        at(pivots, 4),
        pivots,
    )


@native
def give_parameters(I, W, params):
    """Put the parameters behind (t, q, v) in the point kernels' input."""
    for j in range(I[PARAMS]):
        W.point[1 + 2 * I[DOF] + j] = params[j]
