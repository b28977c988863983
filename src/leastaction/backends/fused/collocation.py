"""The chord of collocation as Programs: every node has its own mass, and other derivatives are those of the step's
middle.

An iteration goes once through the equations by velocities at the nodes (`nodes`), with M_i = m_v(q + Z_i, V_i),

    P_i = p + Σ_j N_ij w_j f(q + Z_j, V_j),      g_i = M_i⁻¹ (P_i − m(q + Z_i, V_i)),
    V ← V + dV,                                  Z_i ← Σ_j N_ij w_j V_j,

where dV follows from g with the derivatives of the middle of the step (`shifts`). The iteration contracts by O(h) times
the change of these derivatives during a step, while the mass chord contracts by the change of the mass: some five to
seven iterations where the mass chord takes ten to twenty.

Trajectories lie side by side, or the points of one trajectory's step do (`step.rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leastaction.backends.fused.chord import (
    by_coordinate,
    differences,
    driving,
    flat,
    own,
    rate_of,
    read,
    seen_of_chord,
    wanted_by,
)
from leastaction.backends.fused.judging import finite, judged
from leastaction.backends.fused.mass import Mass
from leastaction.backends.fused.nodes import nodes_of, summed
from leastaction.backends.fused.shifts import inverses, shifted
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, apply, total


def collocated(step: Step, mass: Mass, rows: Rows, B: Builder, chords: int) -> Program:
    """Z and V from Z and V, of the trajectories that want it."""
    x = read(step, rows, B)
    (weights,) = rows.columns("weights 0")
    Z, V = (by_coordinate(step, x[name]) for name in ("points", "speeds"))
    nodes = _nodes(step, rows, x)
    f, m = _given(B, step.terms[0].ordered, nodes, "f", "m")
    missing = []
    for p, force, momentum in zip(x["p"], f, m, strict=True):
        row = _reached(step, rows, _weighed(force, weights))
        missing.append([a + p - b for a, b in zip(row, momentum, strict=True)])
    solved = [mass.solve(mass.values(B, at), [[row[g]] for row in missing]) for g, at in enumerate(nodes)]
    moves = shifted(step, rows, x["shifts"], [[at[j][0] for at in solved] for j in range(step.n)])
    speeds = [[a + b for a, b in zip(old, move, strict=True)] for old, move in zip(V, moves, strict=True)]
    places = [_reached(step, rows, _weighed(row, weights)) for row in speeds]
    moved = differences(places, Z)
    seen = judged(step, rows, own(x), moved, places, fresh=False, chords=chords, rate=x["rate"][0], again=True)
    going = ~seen.found["ended"] & seen.found["keep"] & ~seen.found["doubt"]
    good = seen.found["good"] & ~going
    after = {
        "points": [y for row in places for y in row],
        "speeds": [y for row in speeds for y in row],
        "rate": [rate_of(x, seen)],
        "inner": [going],
        "outer": [good],
    }
    return wanted_by("inner", B, x, rows, after | seen_of_chord(seen, ~going & ~good))


def ended(step: Step, rows: Rows, B: Builder) -> Program:
    """z and the impulse from V, of the trajectories whose step is solved.

    The forces are those at the last V, not those from which the last V came: the latter are off by the last increment,
    and the energy would drift by that, however well the next increments would shrink.
    """
    x = read(step, rows, B)
    (weights,), lift = rows.columns("weights 0"), rows.columns("lift")
    z = [apply(rows, lift, _weighed(row, weights)) for row in by_coordinate(step, x["speeds"])]
    (f,) = _given(B, step.terms[0].ordered, _nodes(step, rows, x), "f")
    weighed = [_weighed(row, weights) for row in f]
    impulse = [total([rows.number(row, i) for i in range(step.s)]) for row in weighed]
    sound = finite(total(impulse))
    after = {
        "z": flat(step, rows, z),
        "impulse": rows.packed(impulse),
        "outer": [sound * 0.0],
        "failed": [sound.where(x["failed"][0], 2.0)],
    }
    return wanted_by("outer", B, x, rows, after)


def _nodes(step: Step, rows: Rows, x: dict[str, list[Value]]) -> list[dict[str, list[Value]]]:
    """What the Program reads at each node, or at the nodes in each vector."""
    (times,) = rows.columns("times 0")
    Z, V = (by_coordinate(step, x[name]) for name in ("points", "speeds"))
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
    program = program.select(*blocks)
    found = [B.inline(program, **{name: indices(at[name], B) for name, _ in program.inputs}) for at in read]
    return [[[Value(B, at[block][j]) for at in found] for j in range(len(found[0][block]))] for block in blocks]


def linearised(step: Step, rows: Rows, B: Builder, x: dict[str, list[Any]], V: Sequence[Row]) -> list[Value]:
    """What `shifted` needs, from the predicted velocities at the nodes: derivatives in the middle of the step.

    Inputs there are those of the last step, the only ones that are known.
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
    return inverses(step, rows, B, at)


def _dot(row: Sequence[float], values: Sequence[Any]) -> Any:
    return total([a * b for a, b in zip(row, values, strict=True)])


def _reached(step: Step, rows: Rows, x: Row) -> Row:
    """Σ_j N_ij x_j for every node i."""
    if rows.side_by_side:
        return apply(rows, rows.columns("places"), x)
    nodes = nodes_of(step.method)
    assert nodes is not None
    return summed(nodes, x)


def _weighed(row: Row, weights: Row) -> Row:
    return [a * w for a, w in zip(row, weights, strict=True)]
