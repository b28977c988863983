"""The chord of collocation as Programs: every node has its own mass, and other derivatives are those of the step's
middle.

An iteration goes once through the equations by velocities at the nodes (`nodes`), with M_i = m_v(q + Z_i, V_i),

    P_i = p + Σ_j N_ij w_j f(q + Z_j, V_j),      g_i = M_i⁻¹ (P_i − m(q + Z_i, V_i)),
    V ← V + dV,                                  Z_i ← Σ_j N_ij w_j V_j,

where dV = C g follows from g with the derivatives of the middle of the step (`shifted_systems`). The iteration
contracts by O(h) times the change of these derivatives during a step, while the mass chord contracts by the change of
the mass: some five to seven iterations where the mass chord takes ten to twenty.

After the first iteration the velocities are good enough for derivatives at every node to be worth their price. With dZ
= N w dV these derivatives tell what dV leaves of g, and C corrects that, too:

    dV = dV₁ + C (g − dV₁ − M_i⁻¹ (m_q dZ₁ − N w (f_q dZ₁ + f_v dV₁))),      dV₁ = C g .

Sines are not computed again for that, so an iteration costs half as much more, and contracts by the square: three to
five iterations in place of five to nine. From a bad prediction the plain chord is as good, so the first iteration is
plain.

p − m comes first, since it is all but exact, and the impulse is added to it (`step.form` says why).

Trajectories lie side by side, or the points of one trajectory's step do (`step.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leastaction.backends.fused.chord import (
    by_coordinate,
    differences,
    driving,
    farther,
    lifted,
    own,
    rate_of,
    read,
    seen_of_chord,
    sums,
    wanted_by,
)
from leastaction.backends.fused.cyclic import leaping, lost, nothing, turning, whole, with_cyclic
from leastaction.backends.fused.judging import chosen, finite, judged
from leastaction.backends.fused.mass import Mass
from leastaction.backends.fused.newton import Iteration, begun
from leastaction.backends.fused.nodes import nodes_of, summed
from leastaction.backends.fused.patterns import solved
from leastaction.backends.fused.shifted_systems import inverses, masses_of_still, moving, shifted, slopes_at
from leastaction.backends.fused.uniqueness import one_root
from leastaction.program import Builder, Program, Value
from leastaction.step.form import Step
from leastaction.step.poles import LEAPT
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.rows import Row, Rows, apply, numbers, size, total
from leastaction.step.verdict import ACCEPTABLE

WOVEN = frozenset({"places", "into", "out", "led"})
COUNTED = ("soft_before", "soft_doubt", "soft_iterations")  # what is zero before the first chord of a step


def collocated(
    step: Step,
    mass: Mass,
    rows: Rows,
    B: Builder,
    chords: int,
    twice: bool = False,
    first: bool = False,
    stiff: bool = False,
) -> Program:
    """Z and V from Z and V, of the trajectories that want it; `twice` corrects dV by derivatives at nodes; `stiff`
    chords (`stiff`) do not begin again, and go on in doubt where the root can be asked if it is the only one.

    A chord that is always the `first` of a step also writes down what `shifted` needs. For one trajectory both wait for
    results most of the time, so that it costs less to do them together; in lanes it saves sines beyond all bounds,
    which a kernel that goes on to the next step has, and the verdict knows that nothing came before.
    """
    x = read(step, rows, B)
    (weights,), movers = rows.columns("weights 0"), moving(step)
    Z, V = _unknowns(step, rows, x)
    if first:
        x |= {"shifts": linearised(step, rows, B, x, V), **{name: [B.number(0.0)] for name in COUNTED}}
    nodes = _nodes(step, rows, x, Z, V)
    f, m = _given(B, step.terms[0].ordered, nodes, "f", "m")
    missing = [[B.number(0.0)] * len(row) for row in V]
    for j in movers:
        row = _reached(step, rows, _weighed(f[j], weights))
        missing[j] = [a + (x["p"][j] - b) for a, b in zip(row, m[j], strict=True)]
    masses = [] if stiff else [mass.inverted(B, at) for at in nodes]
    gaps = missing if stiff else _by_mass(rows, mass, masses, missing)
    if stiff:
        moves = solved(step, rows, x["shifts"], missing, "out")
    elif twice:
        moves, ways = _moves(step, rows, x["shifts"], gaps)
        changes = _by_mass(rows, mass, masses, _changes(step, rows, B, nodes, moves, ways))
        left = [[a - b - c for a, b, c in zip(*of, strict=True)] for of in zip(gaps, moves, changes, strict=True)]
        (second,) = shifted(step, rows, x["shifts"], left, "out")
        moves = sums(moves, second)
    else:
        (moves,) = shifted(step, rows, x["shifts"], gaps, "out")
    speeds = sums(V, moves)
    # Not Z and what moves it: where a first Z led far away, its rounding would stay, and the energy would drift.
    places = [_reached(step, rows, _weighed(row, weights)) if j in movers else Z[j] for j, row in enumerate(speeds)]
    moved = differences(places, Z)
    seen = judged(
        step,
        rows,
        own(x if stiff else x | farther(x)),
        moved,
        places,
        fresh=False,
        chords=chords,
        rate=x["rate"][0],
        again=not stiff,
        twice=twice,
    )
    asked = stiff and one_root(step) is not None
    going = ~seen.found["ended"] & seen.found["keep"]
    going = going if asked else going & ~seen.found["doubt"]
    good = seen.found["solved" if asked else "good"] & ~going
    after = {
        "points": [y for row in places for y in row],
        "speeds": [y for row in speeds for y in row],
        "rate": [rate_of(x, seen)],
        "inner": [going],
        "outer": [good],
        **({"shifts": x["shifts"]} if first else {}),
        **({"asked": [x["asked"][0] | (good & ~seen.found["good"])]} if asked else {}),
    }
    return wanted_by("inner", B, x, rows, after | seen_of_chord(seen, ~going & ~good))


def _by_mass(rows: Rows, mass: Mass, masses: Sequence[Sequence[Value]], given: Sequence[Row]) -> list[Row]:
    """M_i⁻¹ times what is given at the nodes, a row for each coordinate."""
    solve = mass.multiply if rows.side_by_side else mass.solve
    solved = [solve(M, [[row[g]] for row in given]) for g, M in enumerate(masses)]
    return [[at[j][0] for at in solved] for j in range(len(given))]


def _moves(step: Step, rows: Rows, E: Sequence[Value], gaps: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """dV, and dZ = N w dV. With points side by side a table gives dZ at the same time as dV: what a chord waits for are
    products with tables, one after the other. With trajectories side by side `summed` takes half as many products.
    """
    if rows.side_by_side:
        moves, ways = shifted(step, rows, E, gaps, "out", "led")
        return moves, ways
    (moves,) = shifted(step, rows, E, gaps, "out")
    return moves, places_of(step, rows, moves)


def _changes(
    step: Step,
    rows: Rows,
    B: Builder,
    nodes: Sequence[dict[str, list[Value]]],
    moves: Sequence[Row],
    ways: Sequence[Row],
) -> list[Row]:
    """m_q dZ − N w (f_q dZ + f_v dV) at every node, where dV are the moves and dZ the ways: a row for each
    coordinate.
    """
    n, (weights,), movers = step.n, rows.columns("weights 0"), moving(step)
    momenta: list[Row] = [[] for _ in range(n)]
    forces: list[Row] = [[] for _ in range(n)]
    for g, at in enumerate(nodes):
        f_q, f_v, m_q, _ = slopes_at(step, B, at)
        dZ, dV = [ways[k][g] for k in movers], [moves[k][g] for k in movers]
        for j in movers:
            own = [j * n + k for k in movers]
            momenta[j].append(along([m_q[i] for i in own], dZ))
            forces[j].append(along([f_q[i] for i in own], dZ) + along([f_v[i] for i in own], dV))
    changes = [[B.number(0.0)] * len(row) for row in moves]
    for j in movers:
        reached = _reached(step, rows, _weighed(forces[j], weights))
        changes[j] = [a - b for a, b in zip(momenta[j], reached, strict=True)]
    return changes


def steadily(step: Step, rows: Rows, p: Sequence[Value], Z: list[Row], V: list[Row]) -> tuple[list[Row], list[Row]]:
    """Z and V, with those of coordinates that no force moves (`shifts.moving`): V = p/M, and Z = τ V."""
    (times,) = rows.columns("times 0")
    for j, mass in masses_of_still(step).items():
        V[j] = [p[j] * (1.0 / mass)] * len(V[j])
        Z[j] = [speed * time for speed, time in zip(V[j], times, strict=True)]
    return Z, V


def _unknowns(step: Step, rows: Rows, x: dict[str, list[Value]]) -> tuple[list[Row], list[Row]]:
    """Z and V, a row for each coordinate."""
    return steadily(step, rows, x["p"], *(by_coordinate(step, x[name]) for name in ("points", "speeds")))


def ended(step: Step, rows: Rows, B: Builder, stiff: bool = False) -> Program:
    """z and the impulse from V, of the trajectories whose step is solved; of `stiff` ones where the root is asked, if
    it is the only one as far as it and the latest steps went (`uniqueness`); where it is not, z stays the prediction.

    The forces are those at the last V, not those from which the last V came: the latter are off by the last increment,
    and the energy would drift by that, however well the next increments would shrink.
    """
    x = read(step, rows, B)
    (weights,) = rows.columns("weights 0")
    Z, V = _unknowns(step, rows, x)
    nodes = _nodes(step, rows, x, Z, V)
    (f,) = _given(B, step.terms[0].ordered, nodes, "f")
    weighed = [_weighed(row, weights) for row in f]
    impulse = [total([rows.number(row, i) for i in range(step.s)]) for row in weighed]
    turned = turning(step, B, nodes)
    sound = finite(total(impulse))
    if turned:
        every = total([a for row in (*turned, lost(step, B, nodes)) for a in row])
        sound &= ~rows.largest([(every - every).op("ne", 0.0)])
    certain = one_root(step) if stiff else None
    if certain is not None:
        way = [a.op("max", b) for a, b in zip(x["length"], rows.packed([size(row) for row in Z]), strict=True)]
        given = x | {"way": numbers(rows, way, step.n)}
        sound &= ~x["asked"][0] | B.at(certain, given)["unique"][0]
    over = leaping(step, rows, B, nodes, Z)
    well = x["failed"][0] if over is None else over.where(LEAPT, x["failed"][0])
    z = lifted(step, rows, with_cyclic(step, V, turned))
    after = {
        "z": [sound.where(new, old) for new, old in zip(z, x["z"], strict=True)] if stiff else z,
        "impulse": whole(step, rows, rows.packed(impulse), nothing(step, rows, B)),
        "outer": [sound * 0.0],
        "failed": [sound.where(well, 2.0)],
    }
    return wanted_by("outer", B, x, rows, after)


def restart(step: Step, own: Step, rows: Rows, B: Builder, one: Iteration | None) -> Program:
    """z ← the prediction, of the trajectories for which chords of the `own` step failed; and what Newton's iteration of
    the whole step begins with, where the kernel that goes on to the next step left that out.

    Chords may come all but to their end without doubt, and stand still there, above the floor: where rounding is more
    than a floor knows. Then Newton's iteration begins where they stand.
    """
    x = read(own, rows, B)
    memory, (choice,) = by_coordinate(own, x["memory"]), x["choice"]
    standing = x["failed"][0].op("eq", 2.0) & (x["soft_before"][0] <= ACCEPTABLE)
    ahead = (by_coordinate(own, x["speeds"]), at_points(own, rows, memory, choice, "faster", "v 0"))
    V = [[standing.where(a, b) for a, b in zip(*of, strict=True)] for of in zip(*ahead, strict=True)]
    turned = turning(own, B, _nodes(own, rows, x, places_of(own, rows, V), V)) if own.of is not None else []
    z = lifted(own, rows, with_cyclic(own, V, turned))
    after = chosen(x["failed"][0], {"z": z}, x)
    after |= {} if one is None else begun(step, B, one, read(step, rows, B), after["z"])
    return B.finished(**after)


def at_points(step: Step, rows: Rows, memory: Sequence[Row], choice: Value, cut: str, gather: str) -> list[Row]:
    """Places or velocities at the points of the next step, by a table of modes or of the predicted increments."""
    ahead = Prediction(step.s, rows)
    if step.s > WHOLE:
        table = ahead.cut(cut, choice)
        return [apply(rows, table, row) for row in memory]
    columns = rows.columns(gather)
    return [apply(rows, columns, ahead.propose(row, choice)) for row in memory]


def _nodes(
    step: Step, rows: Rows, x: dict[str, list[Value]], Z: Sequence[Row], V: Sequence[Row]
) -> list[dict[str, list[Value]]]:
    """What the Program reads at each node, or at the nodes in each vector."""
    (times,) = rows.columns("times 0")
    return [
        {
            "t": [x["t"][0] + time],
            "q": [a + row[g] for a, row in zip(x["q"], Z, strict=True)],
            "v": [row[g] for row in V],
            "params": x["params"],
            "inputs": driving(step, rows, x, g),
        }
        for g, time in enumerate(times)
    ]


def _given(B: Builder, program: Program, read: Sequence[dict[str, list[Value]]], *blocks: str) -> list[list[Row]]:
    """What the Program gives: of each block a row for each coordinate."""
    found = [B.at(program.select(*blocks), at) for at in read]
    return [[list(row) for row in zip(*(at[block] for at in found), strict=True)] for block in blocks]


def linearised(
    step: Step,
    rows: Rows,
    B: Builder,
    x: dict[str, list[Any]],
    V: Sequence[Row],
    written: Callable[..., list[Value]] | None = None,
) -> list[Value]:
    """What `shifted` needs, or what else is `written`, from the predicted velocities at the nodes: derivatives in the
    middle of the step.

    Inputs there are those that are known: of the last step, if this one has not begun.
    """
    nodes, (h,) = nodes_of(step.method), x["h"]
    assert nodes is not None
    numbers = [[rows.number(row, i) for i in range(step.s)] for row in V]
    place, speed = ([_dot(table, row) for row in numbers] for table in nodes.middle.tolist())
    known = [driving(step, rows, x, g) for g in range(rows.length(step.s))]
    inputs = [rows.number([at[u] for at in known], step.s // 2) for u in range(step.channels)]
    at = {
        "t": [x["t"][0] + h * 0.5],
        "q": [a + h * b for a, b in zip(x["q"], place, strict=True)],
        "v": speed,
        "params": x["params"],
        "inputs": inputs,
    }
    return (written or inverses)(step, rows, B, at)


def along(row: Sequence[Value], values: Sequence[Value]) -> Value:
    """Σ_k row_k values_k. Entries of a derivative often differ by their sign alone, as where an angle between two
    coordinates is read: such entries are multiplied once, and of such rows one is summed.
    """
    B, signed = row[0].B, [_signed(entry) for entry in row]
    turned = signed[0][0]
    parts: dict[int, Value] = {}
    for (negative, base), value in zip(signed, values, strict=True):
        before = parts.get(base)
        if before is None:
            parts[base] = -value if negative != turned else value
        else:
            parts[base] = before - value if negative != turned else before + value
    found: Value = total([Value(B, base) * value for base, value in parts.items()])
    return -found if turned else found


def _signed(entry: Value) -> tuple[bool, int]:
    """Whether an entry is written as the negative of another one, and that other one, or itself."""
    op, *arguments = entry.B.code[entry.k]
    return (True, arguments[0]) if op == "neg" else (False, entry.k)


def _dot(row: Sequence[Any], values: Sequence[Any]) -> Any:
    return total([a * b for a, b in zip(row, values, strict=True)])


def places_of(step: Step, rows: Rows, V: Sequence[Row]) -> list[Row]:
    """Z_i = Σ_j N_ij w_j V_j, a row for each coordinate."""
    (weights,) = rows.columns("weights 0")
    return [_reached(step, rows, _weighed(row, weights)) for row in V]


def _reached(step: Step, rows: Rows, x: Row) -> Row:
    """Σ_j N_ij x_j for every node i."""
    if rows.side_by_side:
        return rows.product("places", x)
    nodes = nodes_of(step.method)
    assert nodes is not None
    return summed(nodes, x)


def _weighed(row: Row, weights: Row) -> Row:
    return [a * w for a, w in zip(row, weights, strict=True)]
