"""The mass chord of a whole step as Programs: gradients only, no Jacobian.

    dz = −(S⁻¹ ⊗ M⁻¹) h R,    S = Σ_i w_i l_ν′(c_i) l_μ′(c_i),  M = L_vv in the middle of the step

It contracts by O(h²) for a constant mass and by O(h) otherwise. Where the mass is constant and forces do not depend on
velocities there is a shorter chord (`separable`).

Trajectories lie side by side, or the points of one trajectory's step do (`step.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.cyclic import all_of, seen
from leastaction.backends.fused.judging import Seen, chosen, finite, judged
from leastaction.backends.fused.mass import FloatArray, Mass, inverse_of
from leastaction.backends.fused.nodes import Nodes, nodes_of
from leastaction.program import Builder, Program, Value
from leastaction.step import prediction
from leastaction.step.form import Samples, Stencils, Step, stencils
from leastaction.step.rows import Row, Rows, Table, apply, combine, numbers, total

# What the state holds for a chord, beside what it holds for Newton's iteration.
OWN = {"scale": "soft_scale", "before": "soft_before", "doubt": "soft_doubt", "iterations": "soft_iterations"}


def tables(step: Step) -> dict[str, Table]:
    """The tables of a step, by name."""
    table, inverse, nodes = step.method.table, inverse_of(step.method), nodes_of(step.method)
    found: dict[str, Table] = {
        **prediction.tables(table.modes, table.growth),
        "solve": lambda h: inverse * -h,
        "end": np.eye(step.s)[:, -1:],
        **stencil_tables(step),
    }
    if len(step.terms) == 1:
        ahead, faster = (basis[:, 1:] @ table.growth for basis in (table.l, table.dl))
        found["ahead"] = ahead
        if nodes is not None:
            found |= {"faster": lambda h: faster * (1 / h), **_collocation(nodes)}
    return found


# What the tables of a term are made of, by name.
STENCILS: dict[str, Callable[[Stencils], NDArray[Any]]] = {
    "times": lambda of: of.times[:, None],
    "weights": lambda of: of.weights[:, None],
    "q": lambda of: of.gather["q"],
    "v": lambda of: of.gather["v"],
    "f": lambda of: of.scatter["f"].T,
    "m": lambda of: of.scatter["m"].T,
}


def stencil_tables(step: Step) -> dict[str, Table]:
    """Of each term of a step: times, weights, gather and scatter."""

    def table(samples: Samples, name: str, h: Any) -> NDArray[Any]:
        return STENCILS[name](stencils(samples, h))

    of = [step.samples(term) for term in step.terms]
    return {f"{name} {e}": partial(table, samples, name) for e, samples in enumerate(of) for name in STENCILS}


def paired(nodes: Nodes, lanes: int) -> dict[str, Table]:
    """Tables for shifted systems with real parts in one half of a vector and imaginary ones in the other; none where
    half a vector does not hold all of them.
    """
    half, S = lanes // 2, nodes.shift.shape[1]
    if half < S:
        return {}

    def both(re: FloatArray, im: FloatArray) -> FloatArray:
        found = np.zeros((lanes, re.shape[1]))
        found[:S], found[half : half + S] = re, im
        return found

    ones = np.ones((S, 1))
    out, led = (both(*(part.T for part in table)).T for table in (nodes.out, nodes.led))
    return {
        **{
            f"shift {part}": partial(np.multiply, both(shift[:, None], shift[:, None]))
            for part, shift in zip(("re", "im"), nodes.shift, strict=True)
        },
        "led": partial(np.multiply, led),
        "into": both(*nodes.into),
        "out": out,
        "signs": both(-ones, ones),
    }


def _collocation(nodes: Nodes) -> dict[str, Table]:
    found: dict[str, Table] = {"places": nodes.places, "lift": nodes.lift}
    for part, shift, into, out, led in zip(("re", "im"), nodes.shift, nodes.into, nodes.out, nodes.led, strict=True):
        found |= {f"shift {part}": partial(np.multiply, shift[:, None]), f"led {part}": partial(np.multiply, led)}
        found |= {f"into {part}": into, f"out {part}": out}
    return found


def repeated(step: Step) -> frozenset[str]:
    """The tables by which points are found: lanes without a point repeat the last point."""
    shifted = {f"{name}{part}" for name in ("out", "led") for part in ("", " re", " im")}
    own = {f"{name} {e}" for e in range(len(step.terms)) for name in ("times", "weights", "q", "v")}
    return frozenset({"ahead", "faster", "places"} | shifted | own)


# --------------------------------------------------------------------------------------------- iterations


def read(step: Step, rows: Rows, B: Builder) -> dict[str, list[Value]]:
    """The state of a trajectory, block by block, with q and p number by number; p as a row is the momentum."""
    x = B.blocks()
    x |= {"momentum": x["p"], **{name: numbers(rows, x[name], all_of(step)) for name in ("q", "p")}}
    return x | seen(step, rows, x)


def forces(step: Step, B: Builder, x: dict[str, list[Value]], rows: Rows, Z: Sequence[Row]) -> list[Row]:
    """f at the points q + Z, a row for each coordinate, of a system whose f does not depend on v."""
    (times,) = rows.columns("times 0")
    given = []
    for g, time in enumerate(times):
        q = [a + row[g] for a, row in zip(x["q"], Z, strict=True)]
        given.append(force_at(step, B, x, x["t"][0] + time, q, driving(step, rows, x, g)))
    return [[f[j] for f in given] for j in range(step.n)]


def force_at(
    step: Step, B: Builder, x: dict[str, list[Value]], t: Value, q: Sequence[Any], inputs: Sequence[Value]
) -> list[Value]:
    """f at one point, or at the points in one vector."""
    return B.at(step.terms[0].ordered.select("f"), resting(step, x, t, q, inputs))["f"]


def resting(
    step: Step, x: dict[str, list[Value]], t: Value, q: Sequence[Any], inputs: Sequence[Value]
) -> dict[str, Sequence[Any]]:
    """What a Program reads at a point if nothing in it depends on v."""
    return {"t": [t], "q": q, "v": [0.0] * step.n, "params": x["params"], "inputs": inputs}


def driving(step: Step, rows: Rows, x: dict[str, list[Value]], g: int) -> list[Value]:
    """The inputs at the g-th point, or at the points in the g-th vector: inputs lie node by node, or row by row."""
    count, values = step.channels, x["inputs"]
    if not count:
        return []
    return values[g :: len(values) // count] if rows.side_by_side else values[g * count : (g + 1) * count]


def by_forces(
    step: Step, mass: Mass, rows: Rows, x: dict[str, list[Any]], inverse: Sequence[Value], f: Sequence[Row]
) -> tuple[list[Row], Row]:
    """−(S⁻¹ ⊗ M⁻¹) h (R without momenta), and the impulse, from the forces at the points."""
    (weights,), (end,) = rows.columns("weights 0"), rows.columns("end")
    scatter, solve = rows.columns("f 0"), rows.columns("solve")
    R, impulse = [], []
    for own, p in zip(f, x["p"], strict=True):
        row = [a * w for a, w in zip(own, weights, strict=True)]
        numbers = [rows.number(row, i) for i in range(len(scatter))]
        impulse.append(total(numbers))
        R.append(_minus(combine(scatter, numbers), end, p))
    return [apply(rows, solve, row) for row in mass.solve(inverse, R)], impulse


def chord(step: Step, mass: Mass, rows: Rows, B: Builder, chords: int) -> Program:
    """z from z, of the trajectories that want it: f may depend on v, M on q and v, and there may be several terms."""
    x = read(step, rows, B)
    z = unknowns(step, rows, x["z"])
    R, _ = equations(step, rows, B, x, z)
    solve = rows.columns("solve")
    moves = [apply(rows, solve, row) for row in mass.solve(inverse(mass, B, x), R)]
    new = [[a + b for a, b in zip(old, move, strict=True)] for old, move in zip(z, moves, strict=True)]
    seen = judged(step, rows, own(x), moves, new, fresh=False, chords=chords, rate=x["rate"][0], again=True)
    going = ~seen.found["ended"] & seen.found["keep"] & ~seen.found["doubt"]
    good = seen.found["good"] & ~going
    after = {"z": flat(step, rows, new), "rate": [rate_of(x, seen)], "inner": [going], "outer": [good]}
    return wanted_by("inner", B, x, rows, after | seen_of_chord(seen, ~going & ~good))


def ended(step: Step, rows: Rows, B: Builder) -> Program:
    """The impulse from z, of the trajectories whose step is solved: from the forces at the last z, since those from
    which z came are off by the last increment, and the energy would drift.
    """
    x = read(step, rows, B)
    _, impulse = equations(step, rows, B, x, unknowns(step, rows, x["z"]))
    sound = finite(total(impulse))
    after = {"impulse": rows.packed(impulse), "outer": [sound * 0.0], "failed": [sound.where(x["failed"][0], 2.0)]}
    return wanted_by("outer", B, x, rows, after)


def equations(step: Step, rows: Rows, B: Builder, x: dict[str, list[Value]], z: Sequence[Row]) -> tuple[list[Row], Row]:
    """R in rows, and the impulse."""
    n, width = step.n, rows.length(step.s)
    R: list[Row] = [[0.0] * width for _ in range(n)]
    impulse: Row = [0.0] * n
    for e, term in enumerate(step.terms):
        (times,), (weights,) = rows.columns(f"times {e}"), rows.columns(f"weights {e}")
        gather = {block: rows.columns(f"{block} {e}") for block in ("q", "v")}
        q = [[a + y for y in apply(rows, gather["q"], row)] for a, row in zip(x["q"], z, strict=True)]
        v = [apply(rows, gather["v"], row) for row in z]
        given: list[dict[str, list[Value]]] = []
        for g, time in enumerate(times):
            read = {"t": [x["t"][0] + time], "q": [y[g] for y in q], "v": [y[g] for y in v], "params": x["params"]}
            read["inputs"] = driving(step, rows, x, g)
            given.append(B.at(term.ordered, read))
        for block in ("f", "m"):
            if block not in given[0]:
                continue
            scatter = rows.columns(f"{block} {e}")
            for j in range(n):
                row = [at[block][j] * w for at, w in zip(given, weights, strict=True)]
                numbers = [rows.number(row, i) for i in range(len(scatter))]
                if block == "f":
                    impulse[j] = impulse[j] + total(numbers)
                R[j] = [a + b for a, b in zip(R[j], combine(scatter, numbers), strict=True)]
    (end,) = rows.columns("end")
    return [_minus(row, end, p) for row, p in zip(R, x["p"], strict=True)], impulse


def restart(step: Step, rows: Rows, B: Builder) -> Program:
    """z ← the prediction, of the trajectories for which chords failed."""
    x = read(step, rows, B)
    return B.finished(**chosen(x["failed"][0], {"z": x["start"]}, x))


# ------------------------------------------------------------------------------------------------- details


def lifted(step: Step, rows: Rows, V: Sequence[Row]) -> list[Any]:
    """z from the velocities at the nodes."""
    (weights,), lift = rows.columns("weights 0"), rows.columns("lift")
    weighed = [[a * w for a, w in zip(row, weights, strict=True)] for row in V]
    return flat(step, rows, [apply(rows, lift, row) for row in weighed])


def unknowns(step: Step, rows: Rows, z: Sequence[Any]) -> list[Row]:
    """The row of each coordinate among the unknowns, of the cyclic ones, too."""
    n, s = all_of(step), step.s
    if rows.side_by_side:
        return split(z, n)
    return [[z[v * n + j] for v in range(s)] for j in range(n)]


def flat(step: Step, rows: Rows, z: Sequence[Row]) -> list[Any]:
    """The unknowns from the rows of the coordinates."""
    if rows.side_by_side:
        return [y for row in z for y in row]
    return [row[v] for v in range(step.s) for row in z]


def by_coordinate(step: Step, values: Sequence[Any]) -> list[Row]:
    """Rows that lie one after the other."""
    return split(values, step.n)


def split(values: Sequence[Any], n: int) -> list[Row]:
    """So many rows that lie one after the other."""
    width = len(values) // n
    return [list(values[j * width : (j + 1) * width]) for j in range(n)]


def inverse(mass: Mass, B: Builder, x: dict[str, list[Value]]) -> list[Value]:
    """M⁻¹, or what is needed to solve with M."""
    return mass.inverted(B, {}) if mass.fixed else x["mass"]


def own(x: dict[str, list[Value]]) -> dict[str, list[Value]]:
    return x | {name: x[own] for name, own in OWN.items()}


def farther(x: dict[str, list[Value]]) -> dict[str, list[Value]]:
    """How far a step may reach: also as far as another prediction led (`march`)."""
    return {"reach": [a.op("max", b) for a, b in zip(x["reach"], x["led"], strict=True)]} if "led" in x else {}


def rate_of(x: dict[str, list[Value]], seen: Seen) -> Value:
    """The rate by which increments shrink; one before the rate is known."""
    return (x["soft_iterations"][0] < 1).where(1.0, seen.after["before"][0] / x["soft_before"][0])


def seen_of_chord(seen: Seen, failed: Value) -> dict[str, list[Any]]:
    """What any chord changes: what was seen, and whether chords failed: 1 in doubt, 2 not solved in reasonable time.

    After the latter the next steps begin with Newton. Doubt is seen early, and where predictions are wild, Newton has
    no better ones.
    """
    after = {OWN.get(name, name): values for name, values in seen.after.items()}
    return after | {"failed": [failed.op("if", (seen.found["solved"] | seen.found["doubt"]).where(1.0, 2.0))]}


def wanted_by(flag: str, B: Builder, x: dict[str, list[Value]], rows: Rows, after: dict[str, list[Any]]) -> Program:
    """The program of what the trajectories change that want it; one trajectory always does."""
    return B.finished(**(after if rows.side_by_side else chosen(x[flag][0], after, x)))


def differences(new: Sequence[Row], old: Sequence[Row]) -> list[Row]:
    return [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(new, old, strict=True)]


def sums(*parts: Sequence[Row]) -> list[Row]:
    """Sums of rows, of each coordinate's own."""
    return [[total(numbers) for numbers in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)]


def _minus(row: Row, end: Row, p: Value) -> Row:
    """A row without p in its last place."""
    return [a - c * p if isinstance(c, Value) or c != 0 else a for a, c in zip(row, end, strict=True)]
