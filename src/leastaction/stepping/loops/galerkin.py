"""The one stepper of the Galerkin family: predict, solve, update, store."""

from __future__ import annotations

from leastaction.stepping.layout import (
    CONTINUED,
    DEGREE,
    DOF,
    DONE,
    EVERY,
    FIRST,
    FLOOR,
    GOING_WELL,
    ITERATIONS,
    LAST,
    LENGTH,
    MOST,
    NOT_FINITE,
    ON_THE_BRANCH,
    PREDICTOR,
    RESIDUAL,
    SINGULAR,
    SPENT,
    START,
    STARTED,
    STATUS,
    STEP,
    STEPS,
    STORED,
    WHOLE_POLYNOMIAL,
)
from leastaction.stepping.loops.calls import at, native
from leastaction.stepping.loops.legendre import invert_alone
from leastaction.stepping.loops.newton import continue_from_rest, length, solve_step
from leastaction.stepping.loops.workspace import give_parameters, tables, workspace


@native
def run(I, R, table, x, carry, stored, memory, pivots):
    """Do I[STEPS] steps from the state in x; stop early, state intact, at a step that cannot be solved.

    x = (t, h, q, p, z, params) is the kernel's input and the state; `carry` holds what the
    compensated sums have still to add to q and p. Rows of `stored` are (q, p).
    """
    T = tables(I, table)
    W = workspace(I, memory, pivots)
    n, s = I[DOF], I[DEGREE]
    N, z = n * s, 2 + 2 * n
    give_parameters(I, W, at(x, z + N))
    h = R[STEP]
    for k in range(I[FIRST], I[FIRST] + I[STEPS]):
        x[0] = R[START] + k * h
        x[1] = h
        if I[STARTED] == 0:
            status, iterations, left = continue_from_rest(I, T, W, R, x)
        else:
            # The last two steps: at a turning point the last one alone may be next to nothing.
            last = length(I, x)
            reach = 3.0 * max(last, R[LENGTH])
            R[LENGTH] = last
            _predict(I, T, W, x)
            status, iterations, left, contraction = solve_step(I, T, W, x, reach)
            if status != GOING_WELL or contraction > ON_THE_BRANCH:
                status, more, left = continue_from_rest(I, T, W, R, x)
                iterations += more
                I[CONTINUED] += 1
        impulse = 0.0
        for j in range(n):
            impulse += W.out[N + j]
        if status == GOING_WELL and impulse - impulse != 0.0:  # the end of the step need not enter its equations
            status = NOT_FINITE
        I[ITERATIONS] += iterations
        I[MOST] = max(I[MOST], iterations)
        I[STATUS] = status
        if status != GOING_WELL:
            R[RESIDUAL] = left
            R[SPENT] = iterations
            return
        R[FLOOR] = max(R[FLOOR], left)
        if I[STARTED] == 1 and s > WHOLE_POLYNOMIAL:
            _choose_degree(I, T, W, x)
        I[STARTED] = 1
        for j in range(n):
            _add(x, 2 + j, x[z + N - n + j], carry, j)
            _add(x, 2 + n + j, W.out[N + j], carry, n + j)
        I[DONE] += 1
        if (k + 1) % I[EVERY] == 0 or k + 1 == I[LAST]:
            for j in range(2 * n):
                stored[I[STORED] * 2 * n + j] = x[2 + j]
            I[STORED] += 1


@native
def _add(x, place, increment, carry, j):
    """x + increment, exactly: what rounding leaves over is carried to the next step (Knuth's two-sum)."""
    a, b = x[place], increment + carry[j]
    total = a + b
    rounded = total - a
    carry[j] = (a - (total - rounded)) + (b - rounded)
    x[place] = total


@native
def _predict(I, T, W, x):
    """z ← the last step's polynomial, cut to I[PREDICTOR] velocity modes and prolonged over this step.

    Extrapolation magnifies a mode of degree j by about 5.8^j, so for large s a lower degree
    predicts better than the whole polynomial, unless h is small.
    """
    n, s, degree = I[DOF], I[DEGREE], I[PREDICTOR]
    z = 2 + 2 * n
    for i in range(s):
        for j in range(n):
            mode = 0.0
            for v in range(s):
                mode += T.modes[i * s + v] * x[z + v * n + j]
            W.modes[i * n + j] = mode
    for m in range(s):
        for j in range(n):
            moved = 0.0
            for i in range(degree):
                moved += T.growth[m * s + i] * W.modes[i * n + j]
            x[z + m * n + j] = moved


@native
def _choose_degree(I, T, W, x):
    """I[PREDICTOR] ← the degree that would have predicted the step just solved best."""
    n, s = I[DOF], I[DEGREE]
    z = 2 + 2 * n
    for i in range(s):
        W.errors[i] = 0.0
    for m in range(s):
        for j in range(n):
            moved = 0.0
            for i in range(s):
                moved += T.growth[m * s + i] * W.modes[i * n + j]
                W.errors[i] = max(W.errors[i], abs(moved - x[z + m * n + j]))
    best = 0
    for i in range(1, s):
        if W.errors[i] < W.errors[best]:
            best = i
    I[PREDICTOR] = best + 1


@native
def polynomials(I, R, table, x, starts, z_out, memory, pivots):
    """The increments z of I[STEPS] separate steps, each from a row (t, q, p) of `starts`."""
    T = tables(I, table)
    W = workspace(I, memory, pivots)
    n, s = I[DOF], I[DEGREE]
    N, z = n * s, 2 + 2 * n
    give_parameters(I, W, at(x, z + N))
    for k in range(I[STEPS]):
        row = at(starts, k * (1 + 2 * n))
        x[0] = row[0]
        x[1] = R[STEP]
        for j in range(2 * n):
            x[2 + j] = row[1 + j]
        W.point[0] = x[0]
        for j in range(n):
            W.point[1 + j] = x[2 + j]
        if not invert_alone(I, W, at(x, 2 + n)):
            I[STATUS] = SINGULAR
            return
        for m in range(s):
            for j in range(n):
                x[z + m * n + j] = T.d[m + 1] * x[1] * W.v[j]
        status, _, _, contraction = solve_step(I, T, W, x, 3.0 * length(I, x))
        if status != GOING_WELL or contraction > ON_THE_BRANCH:
            status, _, _ = continue_from_rest(I, T, W, R, x)
        I[STATUS] = status
        if status != GOING_WELL:
            return
        for j in range(N):
            z_out[k * N + j] = x[z + j]
        I[DONE] += 1
