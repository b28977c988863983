"""One step's equations, solved: Newton to the achievable floor, and continuation in h when that fails.

The unknowns are the increments z of `leastaction.discrete`, held in the kernel's input array
x = (t, h, q, p, z, params).
"""

from __future__ import annotations

from leastaction.stepping.layout import (
    ACCEPTABLE,
    ASTRAY,
    BRANCH_ENDS,
    DEGREE,
    DOF,
    FASTEST,
    FUSED,
    GOING_WELL,
    GRADIENT,
    HESSIAN,
    MOST_ITERATIONS,
    NEGLIGIBLE,
    NEWTON,
    NODES,
    NOT_CONVERGED,
    NOT_FINITE,
    OF_A_CHORD,
    OF_A_LATER_CHORD,
    ON_THE_BRANCH,
    REACH,
    SINGULAR,
    SLOWEST,
    TINY,
)
from leastaction.stepping.loops.calls import at, call_kernel, native
from leastaction.stepping.loops.legendre import velocity
from leastaction.stepping.loops.linear_algebra import factor, solve

# A chord iteration is worth going on with while it gains this much each time.
CHORD_RATE = 0.1
HUGE = 1e300


@native
def length(I, x):
    """The largest increment in x, at any control point."""
    longest = 0.0
    for j in range(I[DOF] * I[DEGREE]):
        longest = max(longest, abs(x[2 + 2 * I[DOF] + j]))
    return longest


@native
def solve_step(I, T, W, x, reach):
    """Newton from the prediction in x. Returns (status, iterations, what is left, contraction).

    What is left is the increment that would come next, relative to the step. The contraction is the largest ratio
    of an increment to the one before, which tells whether the root belongs to the prediction; it is
    ASTRAY if already the first is longer than `reach`, or the root lies farther away than twice that.
    """
    scale, reach = max(length(I, x), TINY), max(reach, TINY)
    if I[FUSED] == 1:
        status, iterations, left, contraction, scale = _newton(I, W, x, scale, reach)
    else:
        status, iterations, left, contraction, scale = _chord(I, T, W, x, scale, reach)
    if scale > 2.0 * reach:
        contraction = ASTRAY
    return status, iterations, left, contraction


@native
def _move(W, z, N, scale):
    """z ← z + dz. Returns the size of dz, the largest size of z so far, and a number that is finite if all are."""
    size, total = 0.0, 0.0
    for j in range(N):
        dz = W.out[j]
        new = z[j] + dz
        z[j] = new
        total += dz
        size = max(size, abs(dz))
        scale = max(scale, abs(new))
    return size, scale, total - total


@native
def _newton(I, W, x, scale, reach):
    """Full Newton by the fused kernel, which leaves the impulse in W.out behind the increment."""
    N, z = I[DOF] * I[DEGREE], at(x, 2 + 2 * I[DOF])
    before, contraction, following = 0.0, 0.0, 0.0
    for iteration in range(1, MOST_ITERATIONS + 1):
        call_kernel(I[NEWTON], x, W.out, W.kernel)
        size, scale, finite = _move(W, z, N, scale)
        if finite != 0.0:
            return NOT_FINITE, iteration, size, contraction, scale
        if iteration == 1 and size > reach:
            contraction = ASTRAY
        if size <= NEGLIGIBLE * scale:
            return GOING_WELL, iteration, 0.0, contraction, scale
        if iteration > 1:
            rate = size / before
            if size > ACCEPTABLE * scale:
                contraction = max(contraction, rate)
            # Quadratic convergence, d_{k+1} ≈ C d_k², with C from the last two increments.
            following = size * rate * rate
            if following <= NEGLIGIBLE * scale or (rate > 0.5 and size <= ACCEPTABLE * scale):
                return GOING_WELL, iteration, following / scale, contraction, scale
        before = size
    return NOT_CONVERGED, MOST_ITERATIONS, before / scale, contraction, scale


@native
def _chord(I, T, W, x, scale, reach):
    """Newton by loops over the nodes, keeping the Jacobian while the iteration contracts well."""
    n, N, z = I[DOF], I[DOF] * I[DEGREE], at(x, 2 + 2 * I[DOF])
    before, contraction = 0.0, 0.0
    fresh = True  # whether this iteration evaluates the Jacobian
    for iteration in range(1, MOST_ITERATIONS + 1):
        residual(I, T, W, x, fresh)
        if fresh and not factor(I, W.A, W.pivots, W.size, N):
            return SINGULAR, iteration, before, contraction, scale
        for j in range(N):
            W.out[j] = -W.out[j]
        solve(I, W.A, W.pivots, W.size, W.out, N)
        size, scale, finite = _move(W, z, N, scale)
        if finite != 0.0:
            return NOT_FINITE, iteration, size, contraction, scale
        if iteration == 1 and size > reach:
            contraction = ASTRAY
        following = 0.0
        done = size <= NEGLIGIBLE * scale
        if iteration > 1 and not done:
            rate = size / before
            if size > ACCEPTABLE * scale:
                contraction = max(contraction, (OF_A_CHORD if iteration == 2 else OF_A_LATER_CHORD) * rate)
            following = size * rate
            # Linear convergence at the rate seen, or the floor.
            done = (rate < 0.5 and following <= NEGLIGIBLE * scale) or (rate > 0.5 and size <= ACCEPTABLE * scale)
            fresh = rate > CHORD_RATE
        else:
            fresh = False
        if done:
            for i in range(n):
                for j in range(N):
                    W.out[N + i] += W.G[i * N + j] * W.out[j]
            return GOING_WELL, iteration, following / scale, contraction, scale
        before = size
    return NOT_CONVERGED, MOST_ITERATIONS, before / scale, contraction, scale


@native
def residual(I, T, W, x, jacobian):
    """W.out ← R and the impulse; with `jacobian` also W.A ← ∂R/∂z and W.G ← ∂(impulse)/∂z.

    The numbers h b_i and l_ν′(c_i)/h are rounded alike wherever they occur, and p comes last: see
    `leastaction.discrete`.
    """
    n, s = I[DOF], I[DEGREE]
    N, h = n * s, x[1]
    inverse_h = 1.0 / h
    z = 2 + 2 * n
    for j in range(N + n):
        W.out[j] = 0.0
    if jacobian:
        for j in range(N * N):
            W.B[j] = 0.0
        for j in range(n * N):
            W.G[j] = 0.0
    for i in range(I[NODES]):
        b = h * T.b[i]
        W.point[0] = x[0] + T.c[i] * h
        for j in range(n):
            moved, speed = 0.0, 0.0
            for m in range(s):
                moved += T.l[i * (s + 1) + m + 1] * x[z + m * n + j]
                speed += (T.dl[i * (s + 1) + m + 1] * inverse_h) * x[z + m * n + j]
            W.point[1 + j] = x[2 + j] + moved
            W.point[1 + n + j] = speed
        call_kernel(I[HESSIAN] if jacobian else I[GRADIENT], W.point, W.values, W.kernel)
        for j in range(n):
            force, momentum = b * W.values[j], b * W.values[n + j]
            W.out[N + j] += force
            for v in range(s):
                W.out[v * n + j] += T.l[i * (s + 1) + v] * force + (T.dl[i * (s + 1) + v] * inverse_h) * momentum
        if jacobian:
            _add_jacobian(n, s, inverse_h, b, at(T.l, i * (s + 1)), at(T.dl, i * (s + 1)), W)
    for j in range(n):
        W.out[j] += x[2 + n + j]
    if jacobian:
        _lay_out(n, s, W.B, W.A)


@native
def _add_jacobian(n, s, inverse_h, b, l, dl, W):
    """Add one node to ∂(impulse)/∂z and to the n × n blocks W.B of ∂R/∂z, block after block."""
    for j in range(n):
        for k in range(n):
            W.transposed[j * n + k] = W.Lqv[k * n + j]
    for m in range(s):
        along, across = b * l[m + 1], b * dl[m + 1] * inverse_h
        for j in range(n):
            row = at(W.G, (j * s + m) * n)
            for k in range(n):
                row[k] += along * W.Lqq[j * n + k] + across * W.Lqv[j * n + k]
        for v in range(s):
            slope = dl[v] * inverse_h
            qq, qv, vq, vv = l[v] * along, l[v] * across, slope * along, slope * across
            block = at(W.B, (v * s + m) * n * n)
            for e in range(n * n):
                block[e] += qq * W.Lqq[e] + qv * W.Lqv[e] + vq * W.transposed[e] + vv * W.Lvv[e]


@native
def _lay_out(n, s, B, A):
    """The matrix A of the blocks B."""
    for v in range(s):
        for m in range(s):
            for j in range(n):
                for k in range(n):
                    A[((v * n + j) * s + m) * n + k] = B[((v * s + m) * n + j) * n + k]


@native
def continue_from_rest(I, T, W, R, x):
    """The root at step h that is connected with the solution at h → 0, by continuation in h.

    From a small fraction of h, where the velocity alone predicts the step, the polynomial solved at
    one step is prolonged to predict the next larger one. The growth is cut when Newton does not contract
    at once or leads astray, and comes back slowly; where it would have to be less than SLOWEST the branch is
    taken to end.
    """
    n, s, h = I[DOF], I[DEGREE], x[1]
    N, z = n * s, at(x, 2 + 2 * n)
    R[REACH] = 0.0
    if not velocity(I, W, x):
        return SINGULAR, 0, 1.0
    fraction, growth, total = 1.0 / 64.0, FASTEST, 0
    speed, longest, expected = 0.0, 0.0, 0.0
    for j in range(n):
        speed = max(speed, abs(W.v[j]))
    for m in range(s):
        for j in range(n):
            z[m * n + j] = fraction * T.d[m + 1] * h * W.v[j]
    while True:
        x[1] = fraction * h
        # The first is small enough to be judged by its contraction alone.
        reach = max(3.0 * expected, speed * abs(x[1])) if R[REACH] > 0.0 else HUGE
        status, iterations, left, contraction = solve_step(I, T, W, x, reach)
        x[1] = h
        total += iterations
        if status == GOING_WELL and contraction <= ON_THE_BRANCH:
            R[REACH] = fraction
            if fraction == 1.0:
                return GOING_WELL, total, left
            longest = length(I, x)
            for j in range(N):
                W.last[j] = z[j]
            growth = min(1.5 * growth, FASTEST)
        elif R[REACH] > 0.0:
            fraction = R[REACH]
            growth *= 0.25
            if growth < SLOWEST:
                return BRANCH_ENDS, total, left
        else:
            # Not even the smallest step was solved: start from a smaller one.
            fraction /= 8.0
            if fraction < 1e-6:
                return (BRANCH_ENDS if status == GOING_WELL else status), total, left
            for m in range(s):
                for j in range(n):
                    z[m * n + j] = fraction * T.d[m + 1] * h * W.v[j]
            continue
        larger = min(1.0, fraction * (1.0 + growth))
        _prolong(T.d, n, s, W.last, larger / fraction, z)
        expected = longest * larger / fraction
        fraction = larger


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
