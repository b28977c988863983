"""Gather, evaluate, scatter: the equations of a step, and their derivatives, from the tables of its terms.

See `step.form` for the equations, and `backends.layout` for the lanes and the rows.
"""

from __future__ import annotations

from leastaction.backends.layout import SOLVER, TERM
from leastaction.backends.loops.compensated import product_with_rest, sum_with_rest
from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    call_kernel,
    first_of,
    fma,
    load,
    mul,
    native,
    reader,
    splat,
    store,
    sub,
)
from leastaction.backends.loops.rows import add_together

TERM_SIZE = len(TERM.fields)

read_term = reader(TERM)
read_solver = reader(SOLVER)


@native
def lanewise(x, i, across):
    """The i-th number of W trajectories, or W coordinates from the i-th vector of them, as a vector; the i-th number W
    times where the points of one trajectory's step lie side by side.
    """
    if across == 1:
        return splat(x[i])
    return load(at(x, i * W))


@native
def four(columns, pitch, count, x, apart, a, b, c, d):
    """Four totals and, added to them, Σ_m x_m times column m of four rows x; columns are `pitch` numbers apart, rows
    `apart`. One sum would wait for itself with every product, four of them do not.
    """
    second, third, last = at(x, apart), at(x, 2 * apart), at(x, 3 * apart)
    for m in range(count):
        column = load(at(columns, m * pitch))
        a, b = fma(column, splat(x[m]), a), fma(column, splat(second[m]), b)
        c, d = fma(column, splat(third[m]), c), fma(column, splat(last[m]), d)
    return a, b, c, d


@native
def load_four(x, apart):
    """Four vectors that lie `apart`."""
    return load(x), load(at(x, apart)), load(at(x, 2 * apart)), load(at(x, 3 * apart))


@native
def store_four(x, apart, a, b, c, d):
    """Write four vectors that lie `apart`."""
    store(x, a)
    store(at(x, apart), b)
    store(at(x, 2 * apart), c)
    store(at(x, 3 * apart), d)


@native
def set_step(S, I, D, first, h):
    """The coefficients of all terms, from the first on, for the step h."""
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        S.argument[0] = h
        call_kernel(T.coefficients, S.argument, T.raw, S.work)
        r, s = T.points, S.s
        for a in range(3):
            gather, scatter = at(T.raw, 2 * r + a * r * s), at(T.raw, 2 * r + (3 + a) * r * s)
            for v in range(s):
                for c in range(T.groups * W):
                    i = min(c, r - 1) if S.across == 1 else c // W
                    T.A[(a * s + v) * T.groups * W + c] = gather[i * s + v]
            for i in range(r):
                for c in range(S.width * W):
                    v = c if S.across == 1 else c // W
                    T.E[(a * r + i) * S.width * W + c] = scatter[i * s + v] if v < s else 0.0
        for c in range(S.width * W):
            v = c if S.across == 1 else c // W
            T.beyond[c] = _beyond(T, s, v) if v < s else 0.0


@native
def _beyond(T, s, v):
    """κ_ν = Σ_i h w_i l_ν′(τ_i)/h − δ_νs of the rounded numbers: a few roundings, which the sum must not add to."""
    r = T.points
    momenta = at(T.raw, 2 * r + 4 * r * s)
    total, rest = splat(-1.0 if v == s - 1 else 0.0), splat(0.0)
    for i in range(r):
        product, below = product_with_rest(splat(T.raw[r + i]), splat(momenta[i * s + v]))
        total, left = sum_with_rest(total, product)
        rest = add(rest, add(below, left))
    return first_of(add(total, rest))


@native
def set_products(S, I, D, first):
    """Products of scatter's and gather's coefficients, and behind them gather's alone, for the impulse of a force."""
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        r, s = T.points, S.s
        for pair in range(T.pairs):
            out, into = T.pair[2 * pair], T.pair[2 * pair + 1]
            gather, scatter = at(T.raw, 2 * r + into * r * s), at(T.raw, 2 * r + (3 + out) * r * s)
            for i in range(r):
                K = at(T.K, (pair * r + i) * S.square * W)
                for m in range(s):
                    for v in range(s):
                        K[v * s + m] = scatter[i * s + v] * gather[i * s + m]
                    K[s * s + m] = gather[i * s + m] if out == 0 else 0.0


@native
def set_given(S, I, D, first, t, params):
    """The times of the points, the parameters and behind them the inputs, where the kernels read them.

    `t` has `lanes` numbers.
    """
    set_times(S, I, D, first, t)
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        for g in range(T.groups if T.params >= 0 else 0):
            for j in range(S.params):
                values = at(T.point, (g * T.inputs + T.params + j) * W)
                for k in range(W):
                    values[k] = params[j * S.lanes + (0 if S.lanes == 1 else k)]
    set_inputs(S, I, D, first, params)


@native
def set_inputs(S, I, D, first, params):
    """The inputs at the points alone, from behind the parameters."""
    if S.channels == 0:
        return
    inputs = at(params, S.params * S.lanes)
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        if T.driven >= 0:
            for g in range(T.groups):
                for k in range(W):
                    i = min(g * W + k, T.points - 1) if S.across == 1 else g
                    for j in range(S.channels):
                        value = inputs[(i * S.channels + j) * S.lanes + (0 if S.lanes == 1 else k)]
                        T.point[(g * T.inputs + T.driven + j) * W + k] = value


@native
def set_times(S, I, D, first, t):
    """The times of the points alone."""
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        if T.time >= 0:
            for g in range(T.groups):
                for k in range(W):
                    i = min(g * W + k, T.points - 1) if S.across == 1 else g
                    T.point[(g * T.inputs + T.time) * W + k] = t[0 if S.lanes == 1 else k] + T.raw[i]


@native
def sweep(S, I, D, first, slopes, q, p, z):
    """S.R ← the equations, S.impulse ← the impulse at z; with `slopes` derivatives stand behind the terms' values.

    Momenta come as m − p, which is all but exact, and what remains of p is κ p, next to nothing (`step.form` says why):

        R_ν = Σ_i h w_i ( (l_ν(τ_i) − δ_νs) f_i + l_ν′(τ_i)/h (m_i − p) ) + κ_ν p .
    """
    across, s, row, balanced = S.across, S.s, S.width * W, 0.0
    for c in range(S.components * S.width):
        store(at(S.R, c * W), splat(0.0))
    for c in range(S.n * across):
        S.impulse[c] = 0.0
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        gather(S, T, q, z, True, T.point)
        outputs, kernel = (T.slope_outputs, T.slopes) if slopes else (T.outputs, T.kernel)
        for g in range(T.groups):
            point, values = at(T.point, g * T.inputs * W), at(T.values, g * outputs * W)
            if S.summed == 0:
                call_kernel(kernel, point, values, S.work)
            else:
                add_up(S, T, I, D, point, values)
        scatter_values(S, T, T.values, outputs, p, 1.0)
        if has_momenta(T):
            balanced += 1.0
    if balanced != 1.0:  # p comes last
        for c in range(S.n):
            end = at(S.R, c * row + (s - 1) * across)
            for k in range(across):
                end[k] += (balanced - 1.0) * p[c * across + k]


@native
def has_momenta(T):
    """Whether a term gives m."""
    found = False
    for w in range(T.scatters):
        found = found or T.scatter[4 * w + 2] == 1
    return found


@native
def add_up(S, T, I, D, point, values):
    """The values at a point ← the sums over all rows; each array has one vector more, for rows that a last vector
    lacks.
    """
    room = (S.components + 1) * W
    q, v = at(point, W), at(point, W + room)
    add_together(S, I, D, T.rows, point[0], q, v, values, at(values, room), 1 if T.outputs > S.components + 1 else 0)


@native
def gather(S, T, q, z, based, points):
    """points ← what is read of z and, where positions are `based` on it, of the state."""
    across, s, groups = S.across, S.s, T.groups
    for w in range(T.gathers):
        first, begin, a = T.gather[5 * w], T.gather[5 * w + 1], T.gather[5 * w + 2]
        whole = based and T.gather[5 * w + 3] == 1
        count, done = T.gather[5 * w + 4], 0
        while across == 1 and done + 4 <= count:
            row, begun = at(z, (begin + done) * S.width * W), at(q, begin + done)
            for g in range(groups):
                column, none = at(T.A, a * s * groups * W + g * W), splat(0.0)
                x, y, u, v = four(column, groups * W, s, row, S.width * W, none, none, none, none)
                if whole:
                    x, y = add(splat(begun[0]), x), add(splat(begun[1]), y)
                    u, v = add(splat(begun[2]), u), add(splat(begun[3]), v)
                store_four(at(points, (g * T.inputs + first + done) * W), W, x, y, u, v)
            done += 4
        for e in range(done, count):
            place, c = first + e, begin + e
            row = at(z, c * S.width * W)
            for g in range(groups):
                total = splat(0.0)
                column = at(T.A, a * s * groups * W + g * W)
                for v in range(s):
                    total = fma(load(at(column, v * groups * W)), lanewise(row, v, across), total)
                if whole:
                    total = add(lanewise(q, c, across), total)
                store(at(points, (g * T.inputs + place) * W), total)


@native
def scatter_values(S, T, values, outputs, p, share):
    """Add a term's values to the equations and to the impulse; of momenta a share of p is subtracted."""
    across, r, width = S.across, T.points, S.width
    add_forces(S, T, values, outputs)
    for w in range(T.scatters):
        first, begin, b = T.scatter[4 * w], T.scatter[4 * w + 1], T.scatter[4 * w + 2]
        count, done = T.scatter[4 * w + 3], 0
        while across == 1 and done + 4 <= count:
            for e in range(4):
                weigh_values(S, T, values, outputs, p, share, b, first + done + e, begin + done + e, e)
            for v in range(width):
                rows, columns = at(S.R, ((begin + done) * width + v) * W), at(T.E, (b * r * width + v) * W)
                x, y, u, t = load_four(rows, width * W)
                x, y, u, t = four(columns, width * W, r, S.scaled, T.groups * W, x, y, u, t)
                if b == 1:
                    beyond, base = load(at(T.beyond, v * W)), at(p, begin + done)
                    x, y = fma(beyond, splat(share * base[0]), x), fma(beyond, splat(share * base[1]), y)
                    u, t = fma(beyond, splat(share * base[2]), u), fma(beyond, splat(share * base[3]), t)
                store_four(rows, width * W, x, y, u, t)
            done += 4
        for e in range(done, count):
            value, c = first + e, begin + e
            base = weigh_values(S, T, values, outputs, p, share, b, value, c, 0)
            for v in range(width):
                place = at(S.R, (c * width + v) * W)
                total = load(place)
                column = at(T.E, (b * r * width + v) * W)
                for i in range(r):
                    total = fma(load(at(column, i * width * W)), lanewise(S.scaled, i, across), total)
                if b == 1:  # here the sum is next to nothing: before, what it rounds of κ p would be no chance
                    total = fma(load(at(T.beyond, v * W)), base, total)
                store(place, total)


@native
def weigh_values(S, T, values, outputs, p, share, b, value, c, place):
    """S.scaled, at a place, ← weights times a value of component c at all points, without a share of p where it is a
    momentum. Returns that share.
    """
    across, room = S.across, place * T.groups * W
    base = mul(splat(share), lanewise(p, c, across)) if b == 1 else splat(0.0)
    for g in range(T.groups):
        weight = splat(1.0)
        if b < 2:
            weight = load(at(T.raw, T.points + g * W)) if across == 1 else splat(T.raw[T.points + g])
        here = load(at(values, (g * outputs + value) * W))
        store(at(S.scaled, room + g * W), mul(weight, sub(here, base)))
    return base


@native
def add_forces(S, T, values, outputs):
    """Add a term's forces to the impulse."""
    across, r = S.across, T.points
    for w in range(T.scatters):
        first, begin = T.scatter[4 * w], T.scatter[4 * w + 1]
        if T.scatter[4 * w + 2] == 0:
            for e in range(T.scatter[4 * w + 3]):
                value, c = first + e, begin + e
                if across == 1:
                    total = S.impulse[c]
                    for i in range(r):
                        total += T.raw[r + i] * values[((i // W) * outputs + value) * W + i % W]
                    S.impulse[c] = total
                else:
                    pushed = load(at(S.impulse, c * W))
                    for i in range(r):
                        here = load(at(values, (i * outputs + value) * W))
                        pushed = fma(splat(T.raw[r + i]), here, pushed)
                    store(at(S.impulse, c * W), pushed)


@native
def push_on(S, I, D, first, slopes):
    """S.impulse ← the impulse of the last sweep and, to begin with, what the last increments have added to it, which is
    in S.impulse: it is less than the last place of the impulse, and would be lost behind the sum.
    """
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        add_forces(S, T, T.values, T.slope_outputs if slopes else T.outputs)


@native
def jacobian(S, I, D, first):
    """S.J ← ∂R/∂z and S.G ← ∂(impulse)/∂z, of one trajectory, from the derivatives that `sweep` left."""
    square, components = S.square, S.components
    for e in range(components * components * square):
        store(at(S.B, e * W), splat(0.0))
    for e in range(S.term_count):
        T = read_term(I, D, first + e * TERM_SIZE)
        r = T.points
        for w in range(T.entries):
            value, row, column, pair = T.entry[4 * w], T.entry[4 * w + 1], T.entry[4 * w + 2], T.entry[4 * w + 3]
            for i in range(r):
                weight = T.raw[r + i] if T.pair[2 * pair] < 2 else 1.0
                S.scaled[i] = weight * T.values[((i // W) * T.slope_outputs + value) * W + i % W]
            block = at(S.B, (row * components + column) * square * W)
            K = at(T.K, pair * r * square * W)
            for v in range(square):
                total = load(at(block, v * W))
                for i in range(r):
                    total = fma(load(at(K, (i * square + v) * W)), splat(S.scaled[i]), total)
                store(at(block, v * W), total)
    lay_out(S)


@native
def lay_out(S):
    """S.J and S.G ← their blocks."""
    s, square, components = S.s, S.square, S.components
    for row in range(components):
        for column in range(components):
            block = at(S.B, (row * components + column) * square * W)
            for v in range(s):
                line = at(S.J, (row * s + v) * S.lead + column * s)
                for m in range(s):
                    line[m] = block[v * s + m]
            if row < S.n:
                line = at(S.G, row * S.lead + column * s)
                for m in range(s):
                    line[m] = block[s * s + m]


@native
def prepare(S, I, D, h, products):
    """The coefficients for the step h, where they are not set yet."""
    if S.h[0] != h:
        set_step(S, I, D, S.terms, h)
        if S.soft != S.terms:
            set_step(S, I, D, S.soft, h)
        for v in range(S.s):
            for c in range(S.width * W):
                m = c if S.across == 1 else c // W
                S.T[v * S.width * W + c] = -h * S.inverse[v * S.s + m] if m < S.s else 0.0
        S.h[0] = h
    if products and S.K_h[0] != h:
        set_products(S, I, D, S.terms)
        S.K_h[0] = h
