"""From a step that is solved to the next step: compensated sums, the prediction, the part of the next step that does
not depend on z, and the energy at its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leastaction.backends.fused import explicit, separable
from leastaction.backends.fused.chord import by_coordinate, flat, unknowns
from leastaction.backends.fused.collocation import at_points, linearised, steadily
from leastaction.backends.fused.cyclic import all_of, free_of, nothing, seen, whole
from leastaction.backends.fused.elimination import solve, square
from leastaction.backends.fused.mass import Chords, Mass, in_the_middle
from leastaction.backends.fused.newton import Iteration, begun
from leastaction.backends.fused.rattle import Held
from leastaction.program import Builder, Program, Value, dot
from leastaction.step.form import Step
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.rows import OneByOne, Row, Rows, numbers, size
from leastaction.step.verdict import FORGETTING, GOING, REACH, STILL, TINY

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

# Newton iterations for the velocity at the end of a step, from the polynomial's velocity, where L is not quadratic in
# v. The energy's error is the square of the velocity's, since ∂(p·v − L)/∂v = 0, so these are more than enough.
VELOCITY_ITERATIONS = 3


def advance(
    system: Lagrangian,
    step: Step,
    rows: Rows,
    B: Builder,
    one: Iteration | Held | None,
    soft: Chords | None,
    energy: bool,
    linearises: bool = True,
) -> Program:
    """From a step that is solved to the next step; t is already the time at its end. The next step begins with chords
    where there are any, else with Newton; without both it is explicit. What chords of collocation take from the middle
    of the next step is found here, unless the first chord finds it (`linearises`).
    """
    x = B.blocks()
    n, s = step.n, step.s

    def where_ok(values: Sequence[Any], name: str) -> list[Any]:
        return _alive(rows, x, values, name)

    z, packed = unknowns(step, rows, x["z"]), len(x["q"])
    move = x["move"] if "move" in x else rows.packed([rows.number(row, s - 1) for row in z])
    state, carry = summed(x, [*move, *x["impulse"]])
    q, p = where_ok(state[:packed], "q"), where_ok(state[packed:], "p")

    outputs: dict[str, list[Any]] = {"q": q, "p": p, "carry": where_ok(carry, "carry"), "trouble": [0.0]}
    x |= {"momentum": p}
    q, p = numbers(rows, q, n), numbers(rows, p, n)
    if one is None and soft is None:
        outputs |= explicit.handed(step, x)
    elif isinstance(one, Held):
        held = foreseen(step, rows, x, z)
        held |= {"floor": _floors(x, held["length"]), "enough": x["iterations"]}
        outputs |= {name: where_ok(values, name) for name, values in held.items()} | {"left": [0.0], "fresh": [0.0]}
    elif soft is not None and soft.mass.separable:
        outputs |= _separately(soft, rows, B, one, x | {"q": q, "p": p}, z)
    else:
        outputs |= _prepared(step, rows, B, one, soft, x | {"q": q, "p": p}, z, linearises)
    if "asked" in x:
        outputs["asked"] = [0.0]
    if energy:
        E = _energy(B, system, step, x | {"q": q, "p": p}, z)
        outputs["lowest"] = where_ok([x["lowest"][0].op("min", E)], "lowest")
        outputs["highest"] = where_ok([x["highest"][0].op("max", E)], "highest")
    return B.finished(**outputs)


def summed(x: dict[str, list[Any]], increments: Sequence[Any]) -> tuple[Row, Row]:
    """(q, p) and increments, added by Knuth's two-sum: what rounding leaves over is carried to the next step. What was
    carried is added to that, and not to the increment, whose last place may be larger (`step.form` says why).
    """
    state, carry = [], []
    for a, b, c in zip([*x["q"], *x["p"]], increments, x["carry"], strict=True):
        total = a + b
        rounded = total - a
        rest = c + ((a - (total - rounded)) + (b - rounded))
        new = total + rest
        state.append(new)
        carry.append(rest - (new - total))
    return state, carry


def _prepared(
    step: Step,
    rows: Rows,
    B: Builder,
    one: Iteration | None,
    soft: Chords | None,
    x: dict[str, list[Any]],
    z: list[Row],
    linearises: bool,
) -> dict[str, list[Any]]:
    """What the iteration of the next step begins with; x has q and p at its start, z is that of the last step."""
    n, s, own = step.n, step.s, step if soft is None else soft.step
    (ok,) = x["alive"]

    def where_ok(values: Sequence[Any], name: str) -> list[Any]:
        return _alive(rows, x, values, name)

    longest = _lately(x["length"], rows.packed([size(row) for row in z]))
    units = free_of(own, numbers(rows, [1 / a for a in longest], n))
    ahead, memory, choice, remembered = _remembered(own, rows, x, free_of(own, z), units)
    limits = _limits(x, longest, rows.packed([abs(_velocity(step, rows, row)) for row in z]))
    outputs: dict[str, list[Any]] = {
        **{name: where_ok(values, name) for name, values in remembered.items()},
        **limits,
        "reach": where_ok(limits["reach"], "reach"),
        "left": [0.0],
    }
    if soft is None or not soft.mass.collocated:
        predicted = flat(step, rows, [ahead.propose(kept, choice) for kept in memory])
        outputs["z"] = where_ok(predicted + x["z"][n * rows.length(s) :], "z")
    if one is not None:
        if "z" in outputs:  # else Newton's iteration is begun where chords fail (`chord.restart`)
            outputs |= begun(step, B, one, x, outputs["z"])
        outputs |= {"fresh": [ok if soft is None else 0.0], "kept": [0.0], "iterations": [0.0]}
    if soft is not None:
        outputs |= _soft(own, rows, B, soft.mass, x | seen(own, rows, x), outputs.get("z"), memory, choice, linearises)
        outputs |= {"rate": [1.0], "soft_before": [0.0], "soft_doubt": [0.0], "soft_iterations": [0.0], "failed": [0.0]}
        outputs["inner"] = [ok]
        for name in ("points", "speeds"):
            if name in outputs:
                outputs[name] = where_ok(outputs[name], name)
    return outputs


def _separately(
    soft: Chords, rows: Rows, B: Builder, one: Iteration | None, x: dict[str, list[Any]], z: list[Row]
) -> dict[str, list[Any]]:
    """The same, of separable chords."""
    (ok,), (step, mass) = x["alive"], (soft.step, soft.mass)
    longest = _lately(x["length"], x["top"])
    memory, choice, remembered = by_coordinate(step, x["kicks"]), ok, {"started": [1.0], "memory": x["kicks"]}
    if step.s <= WHOLE:
        units = free_of(step, numbers(rows, [1 / a for a in longest], all_of(step)))
        _, memory, choice, remembered = _remembered(step, rows, x, free_of(step, z), units)
        remembered["choice"] = [choice]
    own = x | seen(step, rows, x)
    drift = whole(step, rows, separable.drift(step, mass, rows, B, own, own["momentum"]), nothing(step, rows, B))
    limits = _limits(x, longest, drift)
    begun = separable.begun(step, mass, rows, B, own | limits | seen(step, rows, x | limits), memory, choice)
    changed = remembered | limits | begun
    if "led" in x:
        changed["led"] = [0.0] * rows.length(step.n)
    outputs = {name: _alive(rows, x, values, name) for name, values in changed.items()}
    if one is not None:
        outputs |= B.at(one.before, x)
        outputs |= {"before": [0.0], "doubt": [0.0], "fresh": [0.0], "kept": [0.0], "iterations": [0.0]}
    outputs |= {name: [0.0] for name in ("left", "soft_before", "soft_doubt", "soft_iterations", "failed")}
    if rows.side_by_side:
        outputs["again"] = [0.0]
    return outputs | {"rate": [1.0], "outer": [ok]}


def _alive(rows: Rows, x: dict[str, list[Any]], values: Sequence[Any], name: str) -> list[Any]:
    """New values of the trajectories that are alive; a single trajectory is alive."""
    if rows.single:
        return list(values)
    return [x["alive"][0].where(new, old) for new, old in zip(values, x[name], strict=True)]


def _lately(before: Row, now: Row) -> Row:
    """The largest of the latest steps of each coordinate, where older steps count less."""
    return [(a * FORGETTING).op("max", TINY).op("max", b) for a, b in zip(before, now, strict=True)]


def _limits(x: dict[str, list[Any]], longest: Row, far: Row) -> dict[str, list[Any]]:
    """How far the next step may reach; `far` is a row of h times the velocities."""
    reach = [(a * REACH).op("max", abs(b) * GOING) for a, b in zip(longest, far, strict=True)]
    floor = _floors(x, longest)
    return {
        "length": longest,
        "reach": [a.op("max", b) for a, b in zip(reach, floor, strict=True)],
        "floor": floor,
    }


def _floors(x: dict[str, list[Any]], longest: Row) -> Row:
    """The floors of coordinates that all but rest."""
    return [(b <= a * STILL).op("if", a) for a, b in zip(x["floor"], longest, strict=True)]


def foreseen(step: Step, rows: Rows, x: dict[str, list[Any]], z: list[Row]) -> dict[str, list[Any]]:
    """What the next step begins with, if it is explicit except for multipliers: only these are predicted."""
    n = step.n
    multipliers = [[a] for a in x["z"][n:]]
    strength = _lately(x["strength"], rows.packed([size(row) for row in multipliers]))
    units = numbers(rows, [1 / a for a in strength], len(multipliers))
    ahead, memory, choice, remembered = _remembered(step, rows, x, multipliers, units)
    predicted = [y for row in memory for y in ahead.propose(row, choice)]
    longest = _lately(x["length"], rows.packed([size(row) for row in z]))
    return {**remembered, "length": longest, "strength": strength, "z": x["z"][:n] + predicted}


def _remembered(
    step: Step, rows: Rows, x: dict[str, list[Any]], z: Sequence[Row], units: Sequence[Value]
) -> tuple[Prediction, list[Row], Value, dict[str, list[Any]]]:
    """What a prediction remembers of each coordinate, its choice, and the new contents of its blocks; `units` are one
    over the coordinates' lengths.
    """
    ahead = Prediction(step.s, rows)
    (started,), memory = x["started"], x["memory"]
    after: list[Row] = []
    errors: Row = []
    for j, (row, unit) in enumerate(zip(z, units, strict=True)):
        old = memory[j * ahead.memory : (j + 1) * ahead.memory]
        kept, off = ahead.assess(row, unit, started, old)
        after.append(kept)
        errors = off if j == 0 else [a.op("max", b) for a, b in zip(errors, off, strict=True)]
    choice, lately = ahead.choose(errors, started, x["record"])
    blocks = {"started": [1.0], "memory": [y for kept in after for y in kept], "record": lately}
    return ahead, after, choice, blocks


def _velocity(step: Step, rows: Rows, z: Row) -> Any:
    """h times the velocity with which a step ends."""
    slope = step.method.table.slope.tolist()
    return sum(slope[v + 1] * rows.number(z, v) for v in range(step.s))


def _soft(
    step: Step,
    rows: Rows,
    B: Builder,
    mass: Mass,
    x: dict[str, list[Any]],
    start: list[Any] | None,
    memory: Sequence[Row],
    choice: Value,
    linearises: bool,
) -> dict[str, list[Any]]:
    """What the chords of the next step begin with."""
    outputs: dict[str, list[Any]] = {}
    if not mass.collocated and not mass.fixed:
        assert start is not None
        at = in_the_middle(step, rows, x["t"][0], x["h"][0], x["q"], unknowns(step, rows, start))
        at |= {"params": x["params"]}
        outputs["mass"] = mass.inverted(B, at)
    if not mass.collocated:
        assert start is not None
        outputs["start"], begun = start, unknowns(step, rows, start)
    else:
        places = at_points(step, rows, memory, choice, "ahead", "q 0")
        speeds = at_points(step, rows, memory, choice, "faster", "v 0")
        begun, speeds = steadily(step, rows, x["p"], places, speeds)
        outputs |= {"points": [y for row in begun for y in row], "speeds": [y for row in speeds for y in row]}
        outputs["choice"] = [choice]
        if linearises:
            outputs["shifts"] = linearised(step, rows, B, x, speeds)
        if "led" in x:
            outputs["led"] = [0.0] * rows.length(step.n)
    outputs["soft_scale"] = [a.op("max", TINY) for a in rows.packed([size(row) for row in begun])]
    return outputs


def _energy(B: Builder, system: Lagrangian, step: Step, x: dict[str, list[Any]], z: Sequence[Row]) -> Value:
    """E = p·v − L with L_v(t, q, v) = p, v from the polynomial's velocity by Newton; x has q and p."""
    first = system.hessian.select("Lv", "Lvv")
    v = [_velocity(step, OneByOne(), row) / x["h"][0] for row in z]
    for _ in range(VELOCITY_ITERATIONS if first.depends("Lvv", "v") else 1):
        at = B.at(first, x | {"v": v})
        (dv,) = solve(square(at["Lvv"]), [[a - b for a, b in zip(x["p"], at["Lv"], strict=True)]])
        v = [a + b for a, b in zip(v, dv, strict=True)]
    return dot(x["p"], v) - B.at(system.program, x | {"v": v})["L"][0]
