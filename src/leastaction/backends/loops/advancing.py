"""From a step that is solved to the next: sums with what rounding left over, lengths, the prediction that is chosen.

Of sums, threads share this work: each `…_piece` does it for the coordinates of one cell (`team`).
"""

from __future__ import annotations

from leastaction.backends.layout import RUN
from leastaction.backends.loops.compensated import sum_with_rest
from leastaction.backends.loops.increments import ALIKE, REACHING, gather_tops, put, raise_to, still, top_of
from leastaction.backends.loops.machine import (
    W,
    add,
    at,
    call_kernel,
    div,
    doubles,
    first_of,
    fma,
    larger,
    largest_of,
    load,
    mul,
    native,
    reader,
    size_of,
    splat,
    store,
    sub,
    where,
)
from leastaction.backends.loops.noise import QUIET
from leastaction.backends.loops.strips import read_rows
from leastaction.backends.loops.sweep import lanewise, read_solver, read_term
from leastaction.backends.loops.team import ASSESS, MEASURE, PROPOSE, read_team, share
from leastaction.step.verdict import FORGETTING, GOING, REACH, TINY

read_run = reader(RUN)


@native
def with_carry(a, b, carry):
    """a + b with what rounding left over the last time, and what it leaves over now."""
    total = a + b
    rounded = total - a
    rest = carry + ((a - (total - rounded)) + (b - rounded))
    new = total + rest
    return new, rest - (new - total)


@native
def add_with_carry(x, carry, move, across, alive, lanes):
    """x ← x + move, W numbers or one, with what rounding left over the last time, as `fused.advance` has it."""
    if across == 1:
        if alive[0] != 0.0:
            x[0], carry[0] = with_carry(x[0], move[0], carry[0])
        return
    a, old = load(x), load(carry)
    total, left = sum_with_rest(a, load(move))
    rest = add(old, left)
    new = add(total, rest)
    left = sub(rest, sub(new, total))
    if lanes == 1:
        if alive[0] != 0.0:
            store(carry, left)
            store(x, new)
        return
    on = load(alive)
    store(carry, where(on, left, old))
    store(x, where(on, new, a))


@native
def advance(I, D, A, S, X):
    """From a step that is solved to the next: compensated sums, prediction, lengths, as `fused` has them."""
    L = A.lanes
    for e in range(S.candidates):
        store(at(A.errors, e * W), splat(0.0))
    if S.summed == 1:
        J, cells = read_team(I, D, S.team), read_rows(I, D, read_term(I, D, S.soft).rows).phase[1]
        share(I, D, J, MEASURE, cells, measure_piece)
        gather_tops(S, J, cells, 0)
        gather_tops(S, J, cells, 1)
        share(I, D, J, ASSESS, cells, assess_piece)
        for e in range(cells * S.candidates):
            place = at(A.errors, e % S.candidates * W)
            store(place, larger(load(place), load(at(J.errors, e * W))))
    else:
        _measure(A, S, X, 0, S.n)
        _assess(A, S, X, 0, S.n, A.errors, S.scaled, S.work)
    chosen, started = at(X, A.chosen * L), lanewise(at(X, A.started * L), 0, L)
    for e in range(S.candidates):
        error = load(at(A.errors, e * W))
        put(chosen, e, L, largest_of(error) if L == 1 else error)
    put(chosen, S.candidates, L, started)
    call_kernel(S.choose, chosen, A.choice, S.work)
    if S.summed == 1:
        share(I, D, J, PROPOSE, cells, propose_piece)
    else:
        _propose(A, S, X, 0, S.n, S.scaled, S.work)
    for k in range(L):
        X[A.started * L + k] = 1.0
        X[A.iterations * L + k] = 0.0
        X[A.trouble * L + k] = 0.0


@native
def _measure(A, S, X, first, end):
    """Sums with what rounding left over, and how long the latest steps were, of the coordinates first … end."""
    n, s, L, across, width = S.n, A.s, A.lanes, S.across, S.width
    row = width * W
    z, alive = at(X, A.z * L), at(X, A.alive * L)
    ok = splat(1.0) if L == 1 else load(alive)
    for j in range(first, end):
        move = at(z, j * row + (s - 1) * across)
        add_with_carry(at(X, A.q * L + j * across), at(X, A.carry * L + j * across), move, across, alive, L)
        move, k = at(X, A.impulse * L + j * across), n + j
        add_with_carry(at(X, A.q * L + k * across), at(X, A.carry * L + k * across), move, across, alive, L)
        longest = splat(TINY)
        before = lanewise(at(X, A.length * L), j, across)
        for v in range(width):
            longest = larger(longest, size_of(load(at(z, j * row + v * W))))
        if across == 1:
            longest = largest_of(longest)
        limit = larger(longest, mul(splat(FORGETTING), before))
        put(at(X, A.length * L), j, across, limit)
        floor = lanewise(at(X, A.floor * L), j, across)
        if S.summed == 1:
            floor = larger(floor, mul(splat(QUIET), add(size_of(load(at(X, A.q + j * W))), longest)))
        floor = still(floor, limit)
        put(at(X, A.floor * L), j, across, floor)
        ahead = splat(0.0)
        for v in range(s):
            ahead = fma(splat(S.slope[v]), lanewise(at(z, j * row), v, across), ahead)
        reach = larger(larger(mul(splat(REACH), limit), mul(splat(GOING), size_of(ahead))), floor)
        put(at(X, A.reach * L), j, across, where(ok, reach, lanewise(at(X, A.reach * L), j, across)))


@native
def measure_piece(I, D, J, cell):
    """The same of a cell, and the largest of each kind in it."""
    A, S, X = read_run(I, D, J.run[0]), read_solver(I, D, J.solver[0]), doubles(J.state[0])
    R, room = read_rows(I, D, read_term(I, D, S.soft).rows), max(W, S.kinds)
    tops = at(J.tops, 2 * cell * room)
    for k in range(2 * room):
        tops[k] = 0.0
    for e in range(R.own[cell], R.own[cell + 1]):
        first, end = R.owned[4 * e], min(R.owned[4 * e + 1], S.n)
        _measure(A, S, X, first, end)
        top_of(S, at(X, A.length), first, end, tops)
        top_of(S, at(X, A.reach), first, end, at(tops, room))


# A tile is one coordinate of W trajectories, or W coordinates of one.


@native
def _tiles(S, first, end):
    """The tiles of the coordinates first … end; where points lie side by side, all tiles."""
    return (first, end) if S.across > 1 else (0, (S.n + W - 1) // W)


@native
def _assess(A, S, X, first, end, errors, scaled, work):
    """How well predictions would have met the step that is solved, for the coordinates first … end."""
    s, L, across, row = A.s, A.lanes, S.across, S.width * W
    z, tiles = at(X, A.z * L), at(X, A.tiles * L)
    count = s + 2 + S.memory  # numbers of a tile
    for j in range(first, end):
        unit = div(splat(1.0), lanewise(at(X, A.length * L), j, across))
        if across == 1:
            tile, k = at(tiles, (j // W) * count * W), j % W
            for v in range(s):
                tile[v * W + k] = z[j * row + v]
            tile[s * W + k] = first_of(unit)
        else:
            tile = at(tiles, j * count * W)
            for v in range(s):
                store(at(tile, v * W), load(at(z, j * row + v * W)))
            store(at(tile, s * W), unit)
    started = lanewise(at(X, A.started * L), 0, L)
    begin, stop = _tiles(S, first, end)
    for j in range(begin, stop):
        tile = at(tiles, j * count * W)
        store(at(tile, (s + 1) * W), started)
        call_kernel(S.assess, tile, scaled, work)
        for e in range(S.candidates):
            store(at(errors, e * W), larger(load(at(errors, e * W)), load(at(scaled, e * W))))


@native
def assess_piece(I, D, J, cell):
    """The same of a cell, measured by its kinds."""
    A, S, X = read_run(I, D, J.run[0]), read_solver(I, D, J.solver[0]), doubles(J.state[0])
    R, errors = read_rows(I, D, read_term(I, D, S.soft).rows), at(J.errors, cell * S.candidates * W)
    scaled, work = at(J.scaled, cell * J.width), at(J.work, cell * J.scratch)
    for e in range(S.candidates):
        store(at(errors, e * W), splat(0.0))
    for e in range(R.own[cell], R.own[cell + 1]):
        first, end = R.owned[4 * e], min(R.owned[4 * e + 1], S.n)
        raise_to(S, at(X, A.length), first, end, ALIKE, S.unit)
        raise_to(S, at(X, A.reach), first, end, REACHING, at(S.unit, max(W, S.kinds)))
        _assess(A, S, X, first, end, errors, scaled, work)


@native
def _propose(A, S, X, first, end, scaled, work):
    """The prediction that was chosen, of the coordinates first … end."""
    s, L, across, row = A.s, A.lanes, S.across, S.width * W
    z, tiles, count = at(X, A.z * L), at(X, A.tiles * L), A.s + 2 + S.memory
    ok = splat(1.0) if L == 1 else load(at(X, A.alive * L))
    choice = lanewise(A.choice, 0, L)
    begin, stop = _tiles(S, first, end)
    for j in range(begin, stop):
        tile = at(tiles, j * count * W)
        store(at(tile, s * W), choice)
        call_kernel(S.propose, tile, scaled, work)
    for j in range(first, end):
        if across == 1:
            tile, k = at(tiles, (j // W) * count * W), j % W
            for v in range(s):
                z[j * row + v] = tile[v * W + k]
        else:
            tile = at(tiles, j * count * W)
            for v in range(s):
                store(at(z, j * row + v * W), where(ok, load(at(tile, v * W)), load(at(z, j * row + v * W))))


@native
def propose_piece(I, D, J, cell):
    """The same of a cell."""
    A, S, X = read_run(I, D, J.run[0]), read_solver(I, D, J.solver[0]), doubles(J.state[0])
    R, scaled, work = read_rows(I, D, read_term(I, D, S.soft).rows), at(J.scaled, cell * J.width), J.work
    for e in range(R.own[cell], R.own[cell + 1]):
        _propose(A, S, X, R.owned[4 * e], min(R.owned[4 * e + 1], S.n), scaled, at(work, cell * J.scratch))
