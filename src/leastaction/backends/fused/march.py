"""Another prediction, where chords fail from the last polynomial, prolonged: the motion itself, from node to node.

Where steps are coarse, the last step says little about the next one. Then Hamilton's equations,

    q̇ = v,      ṗ = f(t, q, v),      m(t, q, v) = p,

are followed by the classical Runge–Kutta method from the start of the step to its first node, from there to the second,
and so on. v comes by one iteration of Newton from the v before; mostly m is linear in v, and v exact. So V at the nodes
is predicted, or Z where chords need forces alone (`separable`), and chords begin again from there (`resume`), judged as
if they had begun again as often as they may (`step.verdict`). The step may reach as far as this motion does, and a
little more (BEYOND).

A stretch between nodes costs about as much as a chord, and so a march as much as s chords: a hundredth of a
continuation in h, for which steps went before.

A first step has no step before it, and is predicted so, too. It is taken only if this motion has missed it by so little
(`step.verdict.FOLLOWED`), at every node, that no other root is as near; else it is found as other first steps are.

march      one stretch, of the trajectories that are on the march
resume     what chords begin with after the last stretch

Trajectories lie side by side, or the nodes of one trajectory's step do (`step.rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastaction.backends.fused.chord import by_coordinate, farther, read, wanted_by
from leastaction.backends.fused.collocation import linearised, places_of
from leastaction.backends.fused.mass import Chords, Mass
from leastaction.backends.fused.separable import measured
from leastaction.methods import RungeKutta4
from leastaction.program import Builder, Program, Value
from leastaction.step.form import Step
from leastaction.step.prediction import WHOLE
from leastaction.step.rows import Rows, Table, numbers, size, total
from leastaction.step.verdict import BEGUN_AGAIN, FAR, NEARBY, PART, TINY

MOST_SEPARABLE = 100  # instructions of forces: those of many bodies would take longer to compile than all other kernels
BEYOND = (1 + NEARBY) / FAR  # of the way of the motion: a root farther away than FAR times that is refused

Values = list[Any]


def marches(own: Chords, rows: Rows) -> bool:
    """Whether steps are predicted so where chords fail: of high degree s with s nodes, without inputs, which are known
    at nodes alone; separable ones of one trajectory only.
    """
    step, mass = own.step, own.mass
    short = mass.separable and rows.side_by_side and len(step.terms[0].program.code) <= MOST_SEPARABLE
    return (mass.collocated or short) and len(step.method.table.c) == step.s > WHOLE and not step.channels


def blocks(step: Step, rows: Rows) -> list[tuple[str, int]]:
    """What a state has for it: q − q_k, p and v where the march stands; stretches to come and one; how far it led."""
    return [("stand", 3 * step.n), ("marching", 1), ("led", rows.length(step.n))]


def tables(step: Step) -> dict[str, Table]:
    """The nodes, and their numbers."""
    return {"nodes": np.array(step.method.table.c)[:, None], "order": np.arange(float(step.s))[:, None]}


REPEATED = frozenset({"nodes", "order"})  # lanes without a node go with the last one


def march(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """From one node to the next: the velocity at the node that it begins with goes to its lane in V."""
    n, s = step.n, step.s
    x = read(step, rows, B)
    (order,), (places,), (h,) = rows.columns("order"), rows.columns("nodes"), x["h"]
    passed = float(s + 2) - x["marching"][0]  # nodes behind the march, the start counted
    here, there = ([(passed - back).op("eq", a) for a in order] for back in (1.0, 0.0))
    begin, end = (
        rows.largest([own.op("if", c) for own, c in zip(which, places, strict=True)]) for which in (here, there)
    )
    length = h * (end.op("max", begin) - begin)
    first = passed < 0.5
    Z, P, guess = (x["stand"][k * n : (k + 1) * n] for k in range(3))
    Z = [first.where(0.0, a) for a in Z]
    P = [first.where(p, a) for p, a in zip(x["p"], P, strict=True)]
    if mass.separable:
        guess = [B.number(0.0)] * n
    else:
        ends = [total(numbers(rows, row, s)) / h for row in by_coordinate(step, x["memory"])]  # of the last polynomial
        guess = [first.where(v, a) for v, a in zip(ends, guess, strict=True)]
    time, y = x["t"][0] + h * begin, [*Z, *P]
    rates: list[Values] = []
    for c in map(float, RungeKutta4.c):  # a stage begins with the rate of the one before it, times c
        stage = [a + length * (c * k) for a, k in zip(y, rates[-1], strict=True)] if rates else y
        rates.append(_rates(step, mass, B, x, time + length * c, stage[:n], stage[n:], guess))
        guess = rates[-1][:n]
    means = [total([float(b) * k for b, k in zip(RungeKutta4.b, of, strict=True)]) for of in zip(*rates, strict=True)]
    name, found = ("points", Z) if mass.separable else ("speeds", rates[0][:n])
    after = {
        name: _put(here, found, by_coordinate(step, x[name])),
        "stand": [*(a + length * k for a, k in zip(y, means, strict=True)), *guess],
        "marching": [x["marching"][0] - 1.0],
    }
    return wanted_by("marching", B, x, rows, after)


def resume(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """Chords begin from Z, or from V and the Z that belong to it: those of the march have errors of their own."""
    x = read(step, rows, B)
    Z = by_coordinate(step, x["points"])
    V = [] if mass.separable else by_coordinate(step, x["speeds"])
    Z = places_of(step, rows, V) if V else Z
    way = [a.op("max", TINY) for a in rows.packed([size(row) for row in Z])]  # what does not move reaches as far, too
    led = [a * BEYOND for a in way]
    if mass.separable:
        own = measured(rows, x | farther(x | {"led": led}), Z) | {"outer": [1.0]}
    else:
        own = {
            "points": [y for row in Z for y in row],
            "shifts": linearised(step, rows, B, x, V),
            "soft_scale": way,
            "inner": [1.0],
            "outer": [0.0],
        }
    after: dict[str, Values] = {
        **own,
        "led": led,
        "soft_iterations": [BEGUN_AGAIN * PART],
        "rate": [1.0],
        **{name: [0.0] for name in ("marching", "failed", "left", "soft_before", "soft_doubt")},
    }
    return wanted_by("marching", B, x, rows, after)


def _rates(
    step: Step, mass: Mass, B: Builder, x: dict[str, Values], t: Any, Z: Values, P: Values, guess: Values
) -> Values:
    """q̇ and ṗ at q + Z with the momenta P, v by one iteration of Newton from a guess."""
    at = {
        "t": [t],
        "q": [a + z for a, z in zip(x["q"], Z, strict=True)],
        "v": guess,
        "params": x["params"],
        "inputs": [],
    }
    momentum, force = (step.terms[0].ordered.select(name) for name in ("m", "f"))
    missing = [[p - m] for p, m in zip(P, B.at(momentum, at)["m"], strict=True)]
    v = [a + own[0] for a, own in zip(guess, mass.solve(mass.inverted(B, at), missing), strict=True)]
    return v + B.at(force, {**at, "v": v})["f"]


def _put(where: Sequence[Value], new: Values, old: Sequence[Values]) -> Values:
    """Rows, one after the other, with a number of each coordinate in the lane of one node."""
    return [lane.where(a, b) for a, row in zip(new, old, strict=True) for lane, b in zip(where, row, strict=True)]
