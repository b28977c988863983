"""Between the state of a trajectory, which has all coordinates, and chords of the free ones (`step.cyclic`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leastaction.program import Builder, Value
from leastaction.step.form import Step
from leastaction.step.poles import steep
from leastaction.step.rows import Row, Rows, Table, apply, numbers, total
from leastaction.step.verdict import REACH, TINY

Nodes = Sequence[Mapping[str, Sequence[Any]]]  # what a Program reads, node by node

PACKED = ("momentum", "reach", "floor")  # rows with a number for each coordinate


def all_of(step: Step) -> int:
    """How many coordinates there are, with the cyclic ones."""
    return step.n if step.of is None else step.of.n


def free_of(step: Step, values: Sequence[Any]) -> list[Any]:
    """What belongs to the free coordinates, of what belongs to all of them."""
    return list(values) if step.of is None else [values[j] for j in step.of.free]


def seen(step: Step, rows: Rows, x: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The parts of a state that chords read otherwise: q and p number by number, and the rows in PACKED, of the free
    coordinates; and the momenta of the cyclic ones among the parameters.
    """
    if step.of is None:
        return {}
    found = {name: free_of(step, x[name]) for name in ("q", "p")}
    found["params"] = [*x["params"], *(x["p"][j] for j in step.of.cyclic)]
    for name in PACKED:
        if name in x:
            found[name] = rows.packed([rows.number(x[name], j) for j in step.of.free])
    if "reach" in found:  # a lane without a coordinate does not move, and that is not too far
        found["reach"] = [a.op("max", REACH * TINY) for a in found["reach"]]
    return found


def whole(step: Step, rows: Rows, free: Row, cyclic: Row) -> Row:
    """A row with a number for each coordinate, from those of the free and of the cyclic ones."""
    if step.of is None:
        return free
    return rows.packed(step.of.whole(numbers(rows, free, step.n), numbers(rows, cyclic, len(step.of.cyclic))))


def nothing(step: Step, rows: Rows, B: Builder) -> Row:
    """A row of zeros, one for each cyclic coordinate."""
    count = 0 if step.of is None else len(step.of.cyclic)
    return [B.number(0.0)] * rows.length(count)


def _at_nodes(step: Step, B: Builder, name: str, nodes: Nodes) -> list[Row]:
    """What the Program of the free coordinates gives by this name at the nodes: a row for each number."""
    program = step.terms[0].ordered.select(name)
    return [list(own) for own in zip(*(B.at(program, at)[name] for at in nodes), strict=True)]


def turning(step: Step, B: Builder, nodes: Nodes) -> list[Row]:
    """The velocities of the cyclic coordinates: a row for each of them."""
    return [] if step.of is None else _at_nodes(step, B, "turning", nodes)


def tables(step: Step) -> dict[str, Table]:
    """The table that takes a row of nodes to the next ones; after the last node comes the last one."""
    if step.of is None or not dict(step.terms[0].program.outputs)["pivots"]:
        return {}
    return {"following": np.eye(step.s)[[*range(1, step.s), step.s - 1]]}


REPEATED = frozenset({"following"})


def leaping(step: Step, rows: Rows, B: Builder, nodes: Nodes, Z: Sequence[Row]) -> Value | None:
    """Whether the step may leap over a pole (`step.poles`), where there may be one; Z are its ways to the nodes."""
    if not step.checked or not tables(step):
        return None
    columns = rows.columns("following")
    ways = [[b - a for a, b in zip(row, apply(rows, columns, row), strict=True)] for row in Z]
    slopes, over = _at_nodes(step, B, "steepness", nodes), list[Value]()
    for k, pivots in enumerate(_at_nodes(step, B, "pivots", nodes)):
        changes = [
            total([a * b for a, b in zip(*of, strict=True)])
            for of in zip(
                zip(*slopes[k * step.n : (k + 1) * step.n], strict=True), zip(*ways, strict=True), strict=True
            )
        ]
        over += [steep(a, b) for a, b in zip(pivots, changes, strict=True)]
    return rows.largest(over)


def lost(step: Step, B: Builder, nodes: Nodes) -> Row:
    """Zeros, or no numbers at nodes where the elimination of the cyclic velocities loses digits."""
    return [] if step.of is None else _at_nodes(step, B, "lost", nodes)[0]


def with_cyclic(step: Step, free: Sequence[Any], cyclic: Sequence[Any]) -> list[Any]:
    """Something of every coordinate."""
    return list(free) if step.of is None else step.of.whole(free, cyclic)
