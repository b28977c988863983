"""A step of `rattle` and all that comes after it as one kernel, for one trajectory: where it is surely solved.

A hop reads a state and writes the next state elsewhere. Where its verdict is not sure, the state that it read is as it
was, and the kernels of `rattle` take the step. In one kernel nothing but the state goes through memory, and what
depends on h and the parameters alone is computed once (`fixed`).

The short verdict. The unknowns of the iteration are multipliers, so increments are measured in parts of these: δ_k =
max_i |dλ_i| / strength_i, with the strength of a multiplier its largest value lately. What follows after the last one
is δ_k (δ_k/δ_{k−1})², which must be negligible, and δ_k must be small (`step.verdict`). Then a hop is sure

    if the prediction was near, δ_1 ≤ 1/16: a root with such a contraction is the only one far around;
    else, in a far hop, if increments shrink as fast as the theorem of `step.verdict` promises, and reach as far as it
    allows.

hop       a step with two iterations
far_hop   the same with three
begin     what depends on h and the parameters alone
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from leastaction.backends.fused.advance import foreseen, summed
from leastaction.program.ordering import prompt
from leastaction.backends.fused.rattle import Held, Iterated, Values, impulse_of, iterated, within_reach
from leastaction.backends.layout import HOP
from leastaction.program import Builder, Program
from leastaction.step.form import Step
from leastaction.step.rows import OneByOne, Rows
from leastaction.step.verdict import ACCEPTABLE, EPS, FAR, NEARBY, NEGLIGIBLE, ON_THE_BRANCH, TINY

Blocks = Sequence[tuple[str, int]]
ITERATIONS = {"hop": HOP, "far_hop": HOP + 1}


def written(step: Step, memory: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The blocks that a hop writes, with which a state begins."""
    n, m = step.n, step.multipliers
    return [
        ("t", 1), ("q", n), ("p", n), ("carry", 2 * n), *memory, ("length", n), ("strength", m),
        ("z", n + m), ("found", m), ("impulse", n), ("enough", 1), ("unsure", 1),
    ]  # fmt: skip


def hops(step: Step, one: Held, rows: Rows, B: Builder) -> tuple[dict[str, Program], int]:
    """The kernels, and how many numbers are `fixed`, the block that stands last in a state."""
    x = B.blocks()
    outputs = {
        f"{kernel} {name}": values
        for kernel, times in ITERATIONS.items()
        for name, values in _hop(step, one, rows, B, x, times).items()
    }
    moving = tuple(name for name, _ in B.inputs if name not in ("h", "params"))
    fixed, whole = B.finished(**outputs).split(moving, "fixed")
    kernels = {
        kernel: prompt(whole.select(*(name for name in outputs if name.startswith(f"{kernel} "))))
        for kernel in ITERATIONS
    }
    first = Builder(whole.inputs)
    return {"begin": first.finished(**first.at(fixed, first.blocks())), **kernels}, fixed.output_size


def _hop(step: Step, one: Held, rows: Rows, B: Builder, x: Values, times: int) -> dict[str, list[Any]]:
    """What is written, in the order of `written`."""
    n, found = step.n, iterated(step, one, B, x, times)
    z, (impulse, sound) = found.z, impulse_of(step, one, B, x, found.z)
    state, carry = summed(x, [*z[:n], *impulse])
    after = {"t": x["next"], "q": state[:n], "p": state[n:], "carry": carry}
    after |= foreseen(step, rows, x | {"z": z, "started": [B.number(1.0)]}, [[a] for a in z[:n]])
    soon, sure = _sure(x, found, after["strength"])
    after |= {
        "found": z[n:],
        "impulse": impulse,
        "enough": [soon.where(float(HOP), float(times))],
        "unsure": [~(sure & sound)],
    }
    memory = [(name, 0) for name in ("memory", "record")]
    return {name: after[name] for name, _ in written(step, memory)}


def _sure(x: Values, found: Iterated, strength: Sequence[Any]) -> list[Any]:
    """Whether the step was surely solved by the first two iterations, and whether it is by all."""
    units, largest = [1 / a for a in strength], OneByOne().largest
    sizes = [largest([abs(a * unit) for a, unit in zip(push, units, strict=True)]) for push in found.pushes]
    near = sizes[0] <= NEARBY
    ended = [
        (now <= ACCEPTABLE) & (now * now * now <= before * before * (NEGLIGIBLE * EPS))
        for before, now in pairwise(sizes)
    ]
    if len(ended) == 1:
        return [near & ended[0]] * 2
    lengths = [abs(a).op("max", TINY) for a in found.predicted]
    on_the_way = sizes[1] <= sizes[0] * ON_THE_BRANCH
    for reach, move, end in zip(within_reach(x, lengths), found.moves[0], found.z, strict=False):
        on_the_way &= (abs(move) <= reach) & (abs(end) <= reach * FAR)
    return [near & ended[0], (near | on_the_way) & (ended[0] | ended[1])]
