"""One step's equations, solved: Newton to the achievable floor, and continuation in h when that fails.

The unknowns are the increments z of `leastaction.discrete`, held in the kernel's input array
x = (t, h, q, p, z, params).
"""

from __future__ import annotations

from leastaction.stepping.layout import (
    BRANCH_ENDS,
    DEGREE,
    DOF,
    FUSED,
    GOING_WELL,
    GRADIENT,
    HESSIAN,
    NEWTON,
    NODES,
    NOT_CONVERGED,
    NOT_FINITE,
    REACH,
    SINGULAR,
)
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.legendre import velocity
from leastaction.stepping.loops.linear_algebra import factor, solve

EPS = 2.220446049250313e-16
MOST_ITERATIONS = 50
# An increment is at the floor when the next one would change nothing …
NEGLIGIBLE = 1e-3 * EPS
# … or when it has stopped shrinking and is this small; the floor actually reached is reported.
ACCEPTABLE = 1e-7
# A chord iteration is worth going on with while it gains this much each time.
CHORD_RATE = 0.1


@native
def solve_step(I, T, W, x):
    """Newton from the prediction in x. Returns (status, iterations, last increment relative to z)."""
    if I[FUSED] == 1:
        return _newton(I, W, x)
    return _chord(I, T, W, x)


@native
def _newton(I, W, x):
    """Full Newton by the fused kernel; leaves the impulse in W.out behind the increment."""
    n, N = I[DOF], I[DOF] * I[DEGREE]
    z = 2 + 2 * n
    before = 0.0
    ratio = 0.0
    for iteration in range(1, MOST_ITERATIONS + 1):
        call_kernel(I[NEWTON], x, W.out, W.kernel)
        size, scale, total = 0.0, 0.0, 0.0
        for j in range(N):
            dz = W.out[j]
            new = x[z + j] + dz
            x[z + j] = new
            total += dz
            size = max(size, abs(dz))
            scale = max(scale, abs(new))
        if total - total != 0.0:  # infinite or not a number
            return NOT_FINITE, iteration, size
        ratio = size / scale if scale > 0.0 else 0.0
        if size <= NEGLIGIBLE * scale:
            return GOING_WELL, iteration, ratio
        # Quadratic convergence, d_{k+1} ≈ C d_k², with C from the last two increments.
        if iteration > 1 and (
            size * (size / before) * (size / before) <= NEGLIGIBLE * scale
            or (size > 0.5 * before and size <= ACCEPTABLE * scale)
        ):
            return GOING_WELL, iteration, ratio
        before = size
    return NOT_CONVERGED, MOST_ITERATIONS, ratio


@native
def _chord(I, T, W, x):
    """Newton by loops over the nodes, keeping the Jacobian while the iteration contracts well."""
    n, N = I[DOF], I[DOF] * I[DEGREE]
    z = 2 + 2 * n
    before = 0.0
    ratio = 0.0
    fresh = True  # whether this iteration evaluates the Jacobian
    for iteration in range(1, MOST_ITERATIONS + 1):
        residual(I, T, W, x, fresh)
        if fresh and not factor(I, W.A, W.pivots, W.size, N):
            return SINGULAR, iteration, ratio
        for j in range(N):
            W.out[j] = -W.out[j]
        solve(I, W.A, W.pivots, W.size, W.out, N)
        size, scale, total = 0.0, 0.0, 0.0
        for j in range(N):
            new = x[z + j] + W.out[j]
            x[z + j] = new
            total += W.out[j]
            size = max(size, abs(W.out[j]))
            scale = max(scale, abs(new))
        if total - total != 0.0:  # infinite or not a number
            return NOT_FINITE, iteration, size
        ratio = size / scale if scale > 0.0 else 0.0
        done = size <= NEGLIGIBLE * scale
        if iteration > 1:
            # Linear convergence at the rate seen, or at the floor.
            rate = size / before
            done = done or (not fresh and rate < 0.5 and size * rate <= NEGLIGIBLE * scale)
            done = done or (rate > 0.5 and size <= ACCEPTABLE * scale)
            fresh = rate > CHORD_RATE
        else:
            fresh = False
        if done:
            for i in range(n):
                for j in range(N):
                    W.out[N + i] += W.G[i * N + j] * W.out[j]
            return GOING_WELL, iteration, ratio
        before = size
    return NOT_CONVERGED, MOST_ITERATIONS, ratio


@native
def residual(I, T, W, x, jacobian):
    """W.out ← R and the impulse; with `jacobian` also W.A ← ∂R/∂z and W.G ← ∂(impulse)/∂z."""
    n, s = I[DOF], I[DEGREE]
    N, h = n * s, x[1]
    z = 2 + 2 * n
    for j in range(N + n):
        W.out[j] = x[2 + n + j] if j < n else 0.0
    if jacobian:
        for j in range(N * N):
            W.A[j] = 0.0
        for j in range(n * N):
            W.G[j] = 0.0
    for i in range(I[NODES]):
        b = T.b[i]
        W.point[0] = x[0] + T.c[i] * h
        for j in range(n):
            moved, speed = 0.0, 0.0
            for m in range(s):
                moved += T.l[i * (s + 1) + m + 1] * x[z + m * n + j]
                speed += T.dl[i * (s + 1) + m + 1] * x[z + m * n + j]
            W.point[1 + j] = x[2 + j] + moved
            W.point[1 + n + j] = speed / h
        call_kernel(I[HESSIAN] if jacobian else I[GRADIENT], W.point, W.values, W.kernel)
        for j in range(n):
            force, momentum = h * b * W.values[j], b * W.values[n + j]
            W.out[N + j] += force
            for v in range(s):
                W.out[v * n + j] += T.l[i * (s + 1) + v] * force + T.dl[i * (s + 1) + v] * momentum
        if jacobian:
            _add_jacobian(n, s, h, b, at(T.l, i * (s + 1)), at(T.dl, i * (s + 1)), W)


@native
def _add_jacobian(n, s, h, b, l, dl, W):
    """Add one node to ∂R/∂z and to ∂(impulse)/∂z."""
    for j in range(n):
        for k in range(n):
            W.transposed[j * n + k] = W.Lqv[k * n + j]
    for m in range(s):
        for j in range(n):
            row = at(W.G, j * s * n + m * n)
            qq, qv = h * b * l[m + 1], b * dl[m + 1]
            for k in range(n):
                row[k] += qq * W.Lqq[j * n + k] + qv * W.Lqv[j * n + k]
        for v in range(s):
            qq, qv = h * b * l[v] * l[m + 1], b * l[v] * dl[m + 1]
            vq, vv = b * dl[v] * l[m + 1], b * dl[v] * dl[m + 1] / h
            for j in range(n):
                row = at(W.A, (v * n + j) * s * n + m * n)
                for k in range(n):
                    row[k] += (
                        qq * W.Lqq[j * n + k]
                        + qv * W.Lqv[j * n + k]
                        + vq * W.transposed[j * n + k]
                        + vv * W.Lvv[j * n + k]
                    )


@native
def continue_from_rest(I, T, W, R, x):
    """The root at step h that is connected with the solution at h → 0, by continuation in h.

    From a small fraction of h, where the velocity alone predicts the step, the polynomial solved
    at one step is prolonged to predict the next larger one; the growth is cut when a prediction
    misses by more than the step's own size, and the branch is taken to end when it has to be cut below 2 %.
    """
    n, s = I[DOF], I[DEGREE]
    z = 2 + 2 * n
    h = x[1]
    total = 0
    if not velocity(I, W, x):
        return SINGULAR, total, 1.0
    fraction = 1.0 / 64.0
    for m in range(s):
        for j in range(n):
            x[z + m * n + j] = fraction * T.d[m + 1] * h * W.v[j]
    growth = 2.0
    R[REACH] = 0.0
    solved = False
    while True:
        for j in range(n * s):
            W.predicted[j] = x[z + j]
        x[1] = fraction * h
        status, iterations, ratio = solve_step(I, T, W, x)
        total += iterations
        if status == GOING_WELL and not strayed(W.predicted, at(x, z), n * s):
            R[REACH] = fraction
            if fraction == 1.0:
                x[1] = h
                return GOING_WELL, total, ratio
            solved = True
            for j in range(n * s):
                W.last[j] = x[z + j]
        elif solved:
            growth = 1.0 + 0.5 * (growth - 1.0)
            fraction = R[REACH]
            if growth < 1.02:
                x[1] = h
                return BRANCH_ENDS, total, ratio
        else:
            x[1] = h
            return status if status != GOING_WELL else BRANCH_ENDS, total, ratio
        larger = min(1.0, fraction * growth)
        _prolong(T.d, n, s, W.last, larger / fraction, at(x, z))
        fraction = larger


@native
def strayed(predicted, z, N):
    """Whether the root lies farther from its prediction than either of them is long."""
    distance, scale = 0.0, 0.0
    for j in range(N):
        distance = max(distance, abs(z[j] - predicted[j]))
        scale = max(scale, max(abs(z[j]), abs(predicted[j])))
    return distance > scale


@native
def _prolong(d, n, s, last, factor, z):
    """z^m ← the polynomial of `last` at factor · d_m, by Lagrange's formula (d_0 = 0 carries the value 0)."""
    for m in range(1, s + 1):
        at = factor * d[m]
        for j in range(n):
            z[(m - 1) * n + j] = 0.0
        for v in range(1, s + 1):
            weight = 1.0
            for i in range(s + 1):
                if i != v:
                    weight *= (at - d[i]) / (d[v] - d[i])
            for j in range(n):
                z[(m - 1) * n + j] += weight * last[(v - 1) * n + j]
