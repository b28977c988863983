"""Chords where f does not depend on v and m = M v with a constant M, as Programs: they need forces alone.

With the forces f_i at the points c_i of a step, the kicks w_i = h b_i f_i and the increments Z_i of these points, the
equations of `step.form` are

    Z_i = h M⁻¹ (Σ_j H_ij w_j + c_i p),     H_ij = c_i − T_ij,     T = l S⁻¹ lᵀ,     S = Σ_i b_i l_ν′(c_i) l_μ′(c_i),
    z^ν = h M⁻¹ (Σ_j (d_ν − (S⁻¹ lᵀ)_νj) w_j + d_ν p),             q⁺ = q + z^s,     p⁺ = p + Σ_j w_j ;

z^s has the coefficients 1 − c_j. An iteration takes Z to w and w to Z: one product with a table. It contracts by O(h²).

The step ends with the kicks at the last Z. Those from which the last Z came are off by the last increment, always on
the side of the prediction: p⁺ was off by up to 10⁻³ ε, and the energy drifted by up to 4·10⁻⁴ ε a step. So an iteration
may end sooner (`step.verdict`), which pays for the forces.

`places` says how h c_i and h T_ij are rounded, so that the step is symplectic. p comes last (`step.form` says why).

h is not multiplied with sums that end with p. Such a sum is a multiple of the last place of p, and where 1/h is a round
number, the last digits of h times that number are few: with 1/h = 10 they are those of multiples of one fifth. Their
rounding is no chance, but a function of the sum, and the energy drifted by some 10⁻⁴ ε a step. So u = M⁻¹p is
multiplied with h c_i and h − h c_i, which have many digits.

What sums of q and p have left over (`advance.summed`) belongs to the state: points are q + (Z_i + left over), and the
momentum's part goes with the kicks of z^s. Without it all points of a step are off to one side by up to half the last
place of q, and the energy walks half as far again.

The prediction. Up to degree WHOLE it is that of `step.prediction`. Beyond, the polynomial through the last forces is
prolonged, of degree MODES − 1 at most, since each mode, and with it its rounding, is magnified by 5.8 more than the one
before: on Kepler's problem, the outer solar system and the Pleiades, with s = 4 … 16 and steps from coarse to fine,
iterations begin as near as with the best degree for each step, and the forces are already known.

The verdict. Increments are measured in lengths of the predicted step, coordinate by coordinate, which `units` holds.
Only the largest first increment is asked whether it reaches too far, as if it were that of the tightest coordinate. How
far the root is, and whether all numbers are finite, is checked once, when z is found.

Landing early. Most iterations are two: the first one tells how far the prediction was off, the second one by how much
increments shrink. Kicks tell that, too: where increments of places are rounding, those of kicks, which are a small part
of p, still have digits. So where increments shrank lately by so much that the result would follow from the kicks after
one iteration, the trajectory lands there, and what the kicks have moved by,

    Σ_j |h − h c_j| max |M⁻¹ (w_j − w_j before)|,

tells whether that was right (`step.verdict.landed`). If not, the iteration goes on from these kicks as if nothing had
happened. Trajectories in lanes do not land early: their neighbours would wait.

Once more. Where bodies meet, a prediction may be wild, or a good one may lead farther than the latest steps allow. One
trajectory whose chords fail is then iterated once more, from the motion itself (`march`), or, where forces are so long
that this would take long to compile, from the uniform motion, which no prediction leads astray. Then it is judged by
its contraction as from any prediction, and how far the root lies is not asked.

outer      an iteration, of the trajectories that want one
follow     an iteration whose kicks are known, from a landing that was too early
afresh     Z ← the uniform motion, for one trajectory whose chords failed
land       the last kicks; z^s and the impulse from them
lift       all of z from the last kicks, where somebody reads it
recall     what Newton's iteration did not leave: the kicks, and M⁻¹ for the steps to come
restart    z ← the prediction, of the trajectories for which chords failed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leastaction.backends.fused.chord import (
    by_coordinate,
    driving,
    farther,
    flat,
    force_at,
    inverse,
    read,
    resting,
    stencil_tables,
    unknowns,
    wanted_by,
)
from leastaction.backends.fused.cyclic import (
    Nodes,
    all_of,
    free_of,
    leaping,
    lost,
    nothing,
    turning,
    whole,
    with_cyclic,
)
from leastaction.backends.fused.judging import chosen, finite
from leastaction.backends.fused.mass import Mass
from leastaction.backends.fused.nodes import nodes_of
from leastaction.backends.fused.places import coefficients, folded, halves, pushes, shares, spread, sums
from leastaction.program import Builder, Program, Value
from leastaction.step import prediction
from leastaction.step.form import Step
from leastaction.step.poles import LEAPT
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.rows import Row, Rows, Table, apply, numbers, size, total
from leastaction.step.verdict import (
    EPS,
    FAR,
    NEARBY,
    NEGLIGIBLE,
    NOISE,
    ROUNDING,
    STILL,
    TINY,
    UNSEEN,
    landed,
    verdict,
)

Values = dict[str, list[Any]]


def tables(step: Step) -> dict[str, Table]:
    """The tables of a step, by name: functions of h."""
    known = coefficients(step.method)
    c, T, d, controls, ahead = known
    stencils = stencil_tables(step)
    found: dict[str, Table] = {
        **{name: stencils[name] for name in ("times 0", "weights 0", "q 0")},
        "c": lambda h: shares(c, h)[0],
        "left over": lambda h: shares(c, h)[1],
        "places": lambda h: pushes(c, T, h),
        "d": lambda h: shares(d, h)[0],
        "controls": controls,
    }
    if step.of is not None:
        nodes = nodes_of(step.method)
        assert nodes is not None
        found["lift"] = nodes.lift
    if step.s <= WHOLE:
        return found | prediction.tables(step.method.table.modes, step.method.table.growth)
    return found | {"places ahead": known.places @ ahead, "controls ahead": controls @ ahead}


REPEATED = frozenset(
    {"times 0", "q 0", "c", "places", "places ahead"}
)  # not weights: lanes without a point do not push


def blocks(step: Step, mass: Mass, rows: Rows) -> list[tuple[str, int]]:
    """What a state has for such chords: Z and w, z^s and the length of z; M⁻¹; and what the verdict measures by."""
    n, every, many = step.n, all_of(step), step.n * rows.length(len(step.method.table.c))
    return [
        ("points", many), ("kicks", many), ("move", rows.length(every)), ("top", rows.length(every)),
        ("mass", 0 if mass.fixed else rows.length(n) if mass.diagonal else mass.size),
        ("units", rows.length(n)), ("tight", 1), ("choice", int(step.s <= WHOLE)),
        *((name, int(rows.side_by_side)) for name in ("early", "shrunk", "again")),
    ]  # fmt: skip


def memory(step: Step, rows: Rows) -> list[tuple[str, int]]:
    """What the prediction remembers: of low degrees what `step.prediction` does, else the last kicks."""
    if step.s <= WHOLE:
        ahead = Prediction(step.s, rows)
        return [("memory", step.n * ahead.memory), ("record", ahead.record)]
    return [("memory", step.n * rows.length(len(step.method.table.c)))]


# --------------------------------------------------------------------------------------------- the kernels


def outer(step: Step, mass: Mass, rows: Rows, B: Builder, chords: int, known: bool = False) -> Program:
    """Z from Z, of the trajectories that want it; the kicks may be known.

    early     whether to land after this iteration, which is the first one
    shrunk    by how much increments shrank lately; where rounding hides that, half as much as before: landings tell
    """
    x = _read(step, rows, B)
    Z = by_coordinate(step, x["points"])
    w = by_coordinate(step, x["kicks"]) if known else kicks(step, rows, B, x, Z)
    new = placed(step, rows, mass, B, x, w)
    sizes = [
        abs(a - b) * unit
        for own, old, unit in zip(new, Z, numbers(rows, x["units"], step.n), strict=True)
        for a, b in zip(own, old, strict=True)
        if isinstance(a, Value)
    ]
    largest = rows.largest(sizes)
    (before,), (iterations,), (rate,) = x["soft_before"], x["soft_iterations"], x["rate"]
    seen = {
        "size": largest,
        "before": before,
        "iterations": iterations,
        "sound": finite(largest),
        "off": largest * x["tight"][0] > 1.0,
        "far": largest * 0.0,
        "doubt": x["soft_doubt"][0],
    }
    found = verdict(seen, fresh=False, chords=chords, checked=step.checked, known=rate, again=True, finished=True)
    going = ~found["ended"] & found["keep"] & ~found["doubt"]
    failed = ~going & ~(found["solved"] & ~found["doubt"])
    early = found["solved"] | found["doubt"] if "led" in x else found["solved"]  # the next steps begin with chords, too
    after = {
        "points": _joined(new),
        "kicks": _joined(w),
        "rate": [(iterations < 1).where(1.0, largest / before)],
        "outer": [going],
        "failed": [failed.op("if", early.where(1.0, 2.0))],
        "soft_before": [largest],
        "soft_doubt": [found["doubt"]],
        "soft_iterations": [iterations + found["counts"]],
        "left": [found["left"]],
    }
    if rows.side_by_side:
        (shrunk,), first, now = x["shrunk"], iterations < 1, largest / before
        hidden = largest <= NEGLIGIBLE * EPS * ROUNDING
        after["early"] = [going & first & (largest * shrunk * shrunk <= NEGLIGIBLE * EPS * UNSEEN)]
        after["shrunk"] = [first.where(shrunk, hidden.where(now.op("min", shrunk * 0.5), now))]
    return wanted_by("outer", B, x, rows, after)


def land(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """The kicks at the last Z, z^s and the impulse; a root that is too far away, or no number, is refused."""
    x = _read(step, rows, B)
    x |= farther(x)
    Z, (left,) = by_coordinate(step, x["points"]), rows.columns("left over")
    w = kicks(step, rows, B, x, Z)
    impulse = rows.sums(w)
    late = rows.sums([[a * share for a, share in zip(row, left, strict=True)] for row in w])
    (h,), u = x["h"], by_mass(step, mass, rows, B, x, x["momentum"])
    late = [a + h * b for a, b in zip(late, x["lost p"], strict=True)]
    move = _whole_ways(step, rows, h, u, by_mass(step, mass, rows, B, x, late))
    top = [abs(a).op("max", b) for a, b in zip(move, rows.packed([size(row) for row in Z]), strict=True)]
    places = _places(step, rows, x, Z)
    turned, over = turns(step, rows, B, places), leaping(step, rows, B, places, Z)
    ways = rows.sums(turned) if turned else []
    (failed,), every = x["failed"], total([*impulse, *move, *ways, *lost(step, B, places)])
    unsound = rows.largest([(every - every).op("ne", 0.0)])
    far = rows.largest([reach * FAR < a for reach, a in zip(x["reach"], top, strict=True)]) if step.checked else 0.0
    wrong = _refused(unsound, over, far)
    lengths = rows.sums([[abs(a) for a in row] for row in turned]) if turned else []
    after = {
        "kicks": _joined(w),
        "move": whole(step, rows, move, ways),
        "impulse": whole(step, rows, impulse, nothing(step, rows, B)),
        "top": whole(step, rows, top, lengths),
    }
    if rows.side_by_side:
        (early,), (before,), (iterations,) = x["early"], x["soft_before"], x["soft_iterations"]
        moved = _moved(step, rows, mass, B, x, w)
        going = early & ~(finite(moved) & landed(moved, before))
        wrong = going.where(0.0, _refused(unsound, over, x["again"][0].where(0.0, far)))
        after |= {
            "outer": [going],
            "early": [0.0],
            "shrunk": [early.where(moved / before, x["shrunk"][0])],
            "soft_iterations": [going.where(iterations, iterations + early)],
            "left": [early.where(moved * (moved / before), x["left"][0])],
        }
    after["failed"] = [failed.where(failed, wrong)]
    return B.finished(**after)


def _refused(unsound: Value, over: Value | None, far: Any) -> Any:
    """What `failed` is where a step is no number, leaps over a pole or leads too far, else zero."""
    return unsound.where(2.0, far if over is None else over.where(LEAPT, far))


def afresh(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """Z of the uniform motion, to be iterated from."""
    x = _read(step, rows, B)
    (own,), u = rows.columns("c"), numbers(rows, by_mass(step, mass, rows, B, x, x["momentum"]), step.n)
    after: Values = {"points": [share * b for b in u for share in own], "rate": [1.0], "outer": [1.0], "again": [1.0]}
    after |= {name: [0.0] for name in ("soft_before", "soft_doubt", "soft_iterations", "failed")}
    return B.finished(**after)


def lift(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """z from the kicks."""
    x = _read(step, rows, B)
    z = reached(step, rows, mass, B, x, "controls", "d", by_coordinate(step, x["kicks"]))
    turned = _lifted(step, rows, turns(step, rows, B, _places(step, rows, x, by_coordinate(step, x["points"]))))
    return B.finished(z=flat(step, rows, with_cyclic(step, z, turned)))


def recall(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """The kicks and the length of a step that was solved otherwise, and M⁻¹."""
    x = _read(step, rows, B)
    z, gather = unknowns(step, rows, x["z"]), rows.columns("q 0")
    after: Values = {
        "move": rows.packed([rows.number(row, step.s - 1) for row in z]),
        "kicks": _joined(kicks(step, rows, B, x, [apply(rows, gather, row) for row in free_of(step, z)])),
        "top": rows.packed([size(row) for row in z]),
    }
    if not mass.fixed:
        own = mass.inverted(B, {"params": x["params"]})
        after["mass"] = rows.packed(own) if mass.diagonal else own
    return wanted_by("failed", B, x, rows, after)


def restart(step: Step, mass: Mass, rows: Rows, B: Builder, coordinates: Sequence[Sequence[int]]) -> Program:
    """z ← the prediction, of the trajectories for which chords failed; and its lengths, for Newton's iteration where
    this is a kernel, too: then the places of each coordinate in z are given.

    Chords that began from the motion itself (`march`) and came near a root, but contract badly, leave z there.
    """
    x = _read(step, rows, B)
    memory, gather = by_coordinate(step, x["memory"]), rows.columns("q 0")
    if step.s > WHOLE:
        z = reached(step, rows, mass, B, x, "controls ahead", "d", memory)
    else:
        z = _proposed(step, rows, memory, x["choice"][0])
    if "led" in x:
        standing = (rows.largest(x["led"]) > 0.0) & (x["soft_before"][0] <= NEARBY)
        here = reached(step, rows, mass, B, x, "controls", "d", by_coordinate(step, x["kicks"]))
        z = [[standing.where(a, b) for a, b in zip(*of, strict=True)] for of in zip(here, z, strict=True)]
    turned = _lifted(step, rows, turns(step, rows, B, _places(step, rows, x, [apply(rows, gather, row) for row in z])))
    after = {"z": flat(step, rows, with_cyclic(step, z, turned))}
    if coordinates:
        after["scale"] = [size([after["z"][i] for i in own]).op("max", TINY) for own in coordinates]
    return B.finished(**chosen(x["failed"][0], after, x))


def begun(step: Step, mass: Mass, rows: Rows, B: Builder, x: Values, memory: Sequence[Row], choice: Value) -> Values:
    """What the chords of the next step begin with, from what the prediction remembers; x has p and reach of its
    start.
    """
    if step.s > WHOLE:
        Z = reached(step, rows, mass, B, x, "places ahead", "c", memory)
    else:
        gather = rows.columns("q 0")
        Z = [apply(rows, gather, row) for row in _proposed(step, rows, memory, choice)]
    return {"points": _joined(Z), **measured(rows, x, Z)}


def measured(rows: Rows, x: Values, Z: Sequence[Row]) -> Values:
    """What the verdict measures by, from the predicted Z.

    units      one over the length of each coordinate's step, at most its reach; for a coordinate whose motion is noise
               (`step.verdict`) one over what it is summed from, compared with which noise is small
    tight      of the coordinate that may reach least: the length of its step, in parts of its reach
    """
    tops = [
        a.op("max", TINY).op("min", b) for a, b in zip(rows.packed([size(row) for row in Z]), x["reach"], strict=True)
    ]
    noisy = [(top <= a * STILL).op("if", a) for a, top in zip(x["floor"], tops, strict=True)]
    units = [1 / top.op("max", a * (1 / NOISE)) for a, top in zip(noisy, tops, strict=True)]
    return {
        "units": units,
        "tight": [rows.largest([top / reach for top, reach in zip(tops, x["reach"], strict=True)])],
    }


# ------------------------------------------------------------------------------------------------- details


def _read(step: Step, rows: Rows, B: Builder) -> Values:
    """The state of a trajectory, and what q and p have lost by rounding, number by number and as a row."""
    lost, every = B.values("carry"), all_of(step)
    places, momenta = lost[: rows.length(every)], lost[rows.length(every) :]
    if step.of is not None:
        momenta = rows.packed(free_of(step, numbers(rows, momenta, every)))
    return read(step, rows, B) | {"lost q": free_of(step, numbers(rows, places, every)), "lost p": momenta}


def _points(x: Values, Z: Sequence[Row], g: int) -> list[Any]:
    """q + Z_i of the i-th point, or of the points in the i-th vector."""
    return [a + (row[g] + lost) for a, row, lost in zip(x["q"], Z, x["lost q"], strict=True)]


def kicks(step: Step, rows: Rows, B: Builder, x: Values, Z: Sequence[Row]) -> list[Row]:
    """h b_i f(q + Z_i), a row for each coordinate."""
    (times,), (weights,) = rows.columns("times 0"), rows.columns("weights 0")
    given = []
    for g, (time, weight) in enumerate(zip(times, weights, strict=True)):
        f = force_at(step, B, x, x["t"][0] + time, _points(x, Z, g), driving(step, rows, x, g))
        given.append([a * weight for a in f])
    return [[w[j] for w in given] for j in range(step.n)]


def _places(step: Step, rows: Rows, x: Values, Z: Sequence[Row]) -> list[dict[str, Sequence[Any]]]:
    """What a Program that does not depend on v reads at the points q + Z_i."""
    (times,) = rows.columns("times 0")
    return [
        resting(step, x, x["t"][0] + time, _points(x, Z, g), driving(step, rows, x, g)) for g, time in enumerate(times)
    ]


def turns(step: Step, rows: Rows, B: Builder, nodes: Nodes) -> list[Row]:
    """h b_i v_c at the nodes, a row for each cyclic coordinate c (`step.cyclic`)."""
    (weights,) = rows.columns("weights 0")
    found = turning(step, B, nodes)
    return [[a * w for a, w in zip(row, weights, strict=True)] for row in found]


def placed(step: Step, rows: Rows, mass: Mass, B: Builder, x: Values, w: Sequence[Row]) -> list[Row]:
    """Z from the kicks, by the rounding rule of `places`, a row for each coordinate."""
    u = _velocities(step, rows, mass, B, x)
    if rows.side_by_side:
        pushed = _by_mass(step, rows, mass, B, x, [apply(rows, rows.columns("places"), row) for row in w])
        return _shared(rows, "c", pushed, u)
    (h,), (own,), (left,), table = x["h"], rows.columns("c"), rows.columns("left over"), folded(step.method)
    alpha = [
        0.0 if c == 0.5 else (a - b) * 0.25 for c, a, b in zip(coefficients(step.method).c, own, left, strict=True)
    ]
    found = [sums(table, alpha, h, row) for row in w]
    even, odd = (_by_h(step, rows, mass, B, x, [getattr(each, name) for each in found]) for name in ("even", "odd"))
    others = _by_mass(step, rows, mass, B, x, [[each.turn, each.lean, *each.last] for each in found])
    pushed = [
        spread(table, alpha, a, b, turn, lean, last)
        for a, b, (turn, lean, *last) in zip(even, odd, others, strict=True)
    ]
    if table.end == len(own):
        return _shared(rows, "c", pushed, u)
    ends = _whole_ways(step, rows, h, u, [row[-1] for row in pushed])
    return [[*row[:-1], end] for row, end in zip(_shared(rows, "c", pushed, u), ends, strict=True)]


def _whole_ways(step: Step, rows: Rows, h: Value, u: Row, pushed: Row) -> Row:
    """h u, as products with numbers of many digits (`places`), and what kicks move the end of the step by."""
    k = halves(step.method)
    if k is None:
        return [h * a + b for a, b in zip(u, pushed, strict=True)]
    shares = [rows.number(rows.columns(name)[0], k) for name in ("left over", "c")]
    return [shares[0] * a + (shares[1] * a + b) for a, b in zip(u, pushed, strict=True)]


def reached(
    step: Step, rows: Rows, mass: Mass, B: Builder, x: Values, table: str, shares: str, w: Sequence[Row]
) -> list[Row]:
    """h M⁻¹ times a table times the kicks, and shares of u = M⁻¹p, a row for each coordinate."""
    columns = rows.columns(table)
    pushed = _by_h(step, rows, mass, B, x, [apply(rows, columns, row) for row in w])
    return _shared(rows, shares, pushed, _velocities(step, rows, mass, B, x))


def _shared(rows: Rows, shares: str, pushed: Sequence[Row], u: Sequence[Value]) -> list[Row]:
    """Rows, and shares of u: a point at the start stays there."""
    (own,) = rows.columns(shares)
    there = [isinstance(share, Value) or share != 0 for share in own]
    return [
        [a + share * b if moves else 0.0 for a, share, moves in zip(row, own, there, strict=True)]
        for row, b in zip(pushed, u, strict=True)
    ]


def _by_h(step: Step, rows: Rows, mass: Mass, B: Builder, x: Values, pushed: Sequence[Row]) -> list[Row]:
    """h M⁻¹ times rows, one for each coordinate."""
    (h,) = x["h"]
    if not mass.diagonal:
        return [[a * h for a in row] for row in mass.solve(inverse(mass, B, x), pushed)]
    own = inverse(mass, B, x)
    return mass.solve(_one_by_one(step, rows, mass, [a * h for a in own]), pushed)


def _by_mass(step: Step, rows: Rows, mass: Mass, B: Builder, x: Values, pushed: Sequence[Row]) -> list[Row]:
    """M⁻¹ times rows, one for each coordinate."""
    return mass.solve(_one_by_one(step, rows, mass, inverse(mass, B, x)), pushed)


def _velocities(step: Step, rows: Rows, mass: Mass, B: Builder, x: Values) -> list[Value]:
    """u = M⁻¹p, number by number."""
    if mass.diagonal and not mass.fixed:
        return numbers(rows, by_mass(step, mass, rows, B, x, x["momentum"]), step.n)
    return [row[0] for row in mass.solve(inverse(mass, B, x), [[p] for p in x["p"]])]


def _one_by_one(step: Step, rows: Rows, mass: Mass, own: list[Value]) -> list[Value]:
    """The inverse of a diagonal mass number by number, which may lie in rows; or the factors of a full one."""
    return numbers(rows, own, step.n) if mass.diagonal and not mass.fixed else own


def _moved(step: Step, rows: Rows, mass: Mass, B: Builder, x: Values, w: Sequence[Row]) -> Value:
    """How far kicks that have changed move the end of the step, at most, in units of the coordinates."""
    old, (left,) = by_coordinate(step, x["kicks"]), rows.columns("left over")
    change = [[a - b for a, b in zip(new, own, strict=True)] for new, own in zip(w, old, strict=True)]
    if mass.diagonal:
        units = by_mass(step, mass, rows, B, x, x["units"])
    else:
        units, change = x["units"], mass.solve(inverse(mass, B, x), change)
    parts = [[abs(a) * unit for a in row] for row, unit in zip(change, numbers(rows, units, step.n), strict=True)]
    largest = [size(column) * abs(share) for column, share in zip(zip(*parts, strict=True), left, strict=True)]
    return rows.number(rows.sums([largest]), 0)


def drift(step: Step, mass: Mass, rows: Rows, B: Builder, x: Values, momentum: Row) -> Row:
    """h M⁻¹ times a row that has a number for each coordinate."""
    return [x["h"][0] * a for a in by_mass(step, mass, rows, B, x, momentum)]


def by_mass(step: Step, mass: Mass, rows: Rows, B: Builder, x: Values, momentum: Row) -> Row:
    """M⁻¹ times a row that has a number for each coordinate."""
    if mass.diagonal:
        own = rows.packed(mass.inverted(B, {})) if mass.fixed else x["mass"]
        return [a * b for a, b in zip(own, momentum, strict=True)]
    solved = mass.solve(inverse(mass, B, x), [[a] for a in numbers(rows, momentum, step.n)])
    return rows.packed([row[0] for row in solved])


def _lifted(step: Step, rows: Rows, turned: Sequence[Row]) -> list[Row]:
    """z of the cyclic coordinates from h b_i v_c."""
    return [apply(rows, rows.columns("lift"), row) for row in turned]


def _proposed(step: Step, rows: Rows, memory: Sequence[Row], choice: Value) -> list[Row]:
    ahead = Prediction(step.s, rows)
    return [ahead.propose(row, choice) for row in memory]


def _joined(rows: Sequence[Row]) -> list[Any]:
    return [value for row in rows for value in row]
