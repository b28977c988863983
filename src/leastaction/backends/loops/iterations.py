"""Newton's iteration and shifted chords: one loop, whose increments come from one of four kinds of equations.

              Newton's, with the derivatives of every point      shifted, with those of the middle for all points
one system    a dense Jacobian, kept while that is cheaper       along the pattern of X (`shifted_chords`)
a sum         GMRES, with what stands to the right (`krylov`)    sparse factors (`shifted_chords`)
"""

from __future__ import annotations

from leastaction.backends.loops.coarse import coarse_jacobian
from leastaction.backends.loops.elimination import dot, factor, negative, solve
from leastaction.backends.loops.increments import (
    BEFORE,
    DOUBT,
    ENDED,
    ITERATIONS,
    KEEP,
    OFF,
    SOUND,
    begin,
    concluded,
    judge,
    move,
    nearby,
    renew,
    sound,
    widen,
)
from leastaction.backends.loops.krylov import solve_along
from leastaction.backends.loops.machine import at, copy, native
from leastaction.backends.loops.mass_chords import negative_mass, set_mass
from leastaction.backends.loops.shifted_chords import (
    by_pattern,
    by_sparse,
    set_pattern,
    set_sparse,
    turned_pattern,
    turned_sparse,
)
from leastaction.backends.loops.sweep import jacobian, lay_out, prepare, push_on, sweep
from leastaction.step.status import COARSE, GOING_WELL, IN_DOUBT, NOT_CONVERGED, SINGULAR
from leastaction.step.verdict import MOST_ITERATIONS

NEWTON, SHIFTED = range(2)


@native
def stiffly(S, I, D, q, p, z, scale, reach, short, told):
    """Solve a step for which mass chords fail: by shifted chords, if there are any; if there are none, or if they fail
    too, by Newton's iteration, if there is one; `short` and `told` as in `iterated`. Returns the status.
    """
    spent, status = 0, NOT_CONVERGED
    S.iterations[0] = 0
    S.left[0] = 1.0
    copy(z, S.start, S.components * S.stride)
    if S.stiff == 1:
        status = iterated(S, I, D, q, p, z, scale, reach, SHIFTED, short and S.summed == 1, told)
    if status in (GOING_WELL, COARSE) or (S.summed == 1 and S.krylov < 0):
        return status
    spent = S.iterations[0]
    copy(S.start, z, S.components * S.stride)
    status = iterated(S, I, D, q, p, z, scale, reach, NEWTON, False, told)
    S.iterations[0] += spent
    return status


@native
def iterated(S, I, D, q, p, z, scale, reach, kind, short, told):
    """Iterations of a kind from z. Returns the status; where shifted chords would take more than Newton's iteration it
    is NOT_CONVERGED. With `told` coarse steps are told by their pivots, and not solved.

    With `short`, used where a step can be made as short as necessary, increments may grow as long as all of them
    together are small (NEARBY): the matrices of a sum do not tell how the velocity of one coordinate drives another
    one, so the other one follows an iteration later. The verdict then begins anew.
    """
    dense = kind == NEWTON and S.summed == 0
    if dense:
        prepare(S, I, D, S.h[0], True)
    begin(S, z, scale)
    widen(S, scale)
    spent = 0.0  # iterations before the verdict began anew
    wanted, fresh = True, True  # derivatives: whether new ones are wanted, and whether the last iteration had such
    finding = S.multipliers > 0 and not dense  # the first iteration finds the multipliers, which are not predicted
    while True:
        fresh = wanted
        status = increments(S, I, D, q, p, z, scale, kind, fresh, not finding, told)
        if status != GOING_WELL:
            S.iterations[0] = int(S.seen[ITERATIONS]) + 1
            S.left[0] = S.seen[BEFORE]
            return status
        wanted = kind == NEWTON and not dense
        move(S, z, scale, reach, S.floor, 0, S.seen)
        if finding and S.seen[SOUND] != 0.0:
            finding = False
            S.seen[DOUBT] = 1.0 if S.checked == 1 and S.seen[OFF] != 0.0 else 0.0
            continue
        judge(S, S.judge_shifted if kind == SHIFTED else S.judge_fresh if fresh else S.judge_kept)
        if short and S.seen[DOUBT] != 0.0 and spent + S.seen[ITERATIONS] < MOST_ITERATIONS and nearby(S, z, scale):
            spent += S.seen[ITERATIONS]
            renew(S)
            continue
        if S.found[ENDED] != 0.0 or (S.seen[DOUBT] != 0.0 and not dense):
            break
        if S.found[KEEP] == 0.0:
            if kind == SHIFTED and S.summed == 0:
                break
            wanted = True
    status = concluded(S)
    S.iterations[0] += int(spent)
    if status == GOING_WELL and spent > 0.0 and not nearby(S, z, scale):
        status = IN_DOUBT
    if status != GOING_WELL:
        return status
    if dense:
        for j in range(S.n):
            S.impulse[j] = dot(at(S.G, j * S.lead), S.b, 0, S.unknowns)
        push_on(S, I, D, S.terms, fresh)
    else:
        sweep(S, I, D, S.terms, False, q, p, z)  # the impulse at the last z: see `mass_chords.chords`
    S.turned[0] = turned(S, I, D, q, z, kind)
    return sound(S)


@native
def increments(S, I, D, q, p, z, scale, kind, fresh, exactly, told):
    """S.R ← the increments of z, with fresh derivatives or the last ones; of a sum's Newton, if not `exactly`, those of
    the shifted chord. Returns the status: SINGULAR, or with `told` COARSE, where a fresh matrix is.
    """
    if kind == NEWTON and S.summed == 0:
        return by_jacobian(S, I, D, q, p, z, fresh, told)
    if fresh:
        status = set_sparse(S, I, D, q, z, told) if S.summed == 1 else set_pattern(S, I, D, q, z, told)
        if status != GOING_WELL:
            return status
    sweep(S, I, D, S.terms, False, q, p, z)
    if S.summed == 0:
        by_pattern(S, I, D)
        return GOING_WELL
    by_sparse(S, I, D)
    if kind == NEWTON and exactly and not solve_along(S, I, D, scale) and told:
        return COARSE
    return GOING_WELL


@native
def turned(S, I, D, q, z, kind):
    """Whether the determinant of the last matrix has another sign than at h → 0."""
    if S.summed == 1:
        return turned_sparse(S, I, D)
    if kind == SHIFTED:
        return turned_pattern(S, I, D, q, z)
    return turned_jacobian(S, I, D, q, z)


@native
def turned_jacobian(S, I, D, q, z):
    """Whether the determinant of ∂R/∂z, as factored last, has another sign than at h → 0: that of det(L_vv/h)^s."""
    at_first = False
    if S.multipliers == 0 and S.s % 2 == 1:
        at_first = negative_mass(S, I, D, q, z) != (S.n % 2 == 1 and S.h[0] < 0.0)
    return int(negative(S.J, S.pivots, S.unknowns, S.lead) != at_first)


@native
def by_jacobian(S, I, D, q, p, z, fresh, told):
    """S.R and S.b ← −(∂R/∂z)⁻¹ R at z, with a fresh Jacobian or the last one. Returns the status: SINGULAR, or with
    `told` COARSE, where a fresh one is.
    """
    N, s, lead, row = S.unknowns, S.s, S.lead, S.stride
    sweep(S, I, D, S.terms, fresh, q, p, z)
    if fresh:
        jacobian(S, I, D, S.terms)
        if told:
            if not set_mass(S, I, D, S.t, q, z, S.values, S.h[0]) or coarse_jacobian(S):
                return COARSE
            lay_out(S)
        if not factor(S.J, S.pivots, N, lead):
            return SINGULAR
    for c in range(S.components):
        for v in range(s):
            S.b[c * s + v] = -S.R[c * row + v]
    solve(S.J, S.pivots, N, lead, S.b)
    for c in range(S.components):
        for v in range(s):
            S.R[c * row + v] = S.b[c * s + v]
        for v in range(s, row):
            S.R[c * row + v] = 0.0
    return GOING_WELL
