"""The kernels of a whole step, which work in place: inputs are a trajectory's state, outputs parts of it by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leastaction.backends.fused import explicit, separable
from leastaction.backends.fused.advance import advance
from leastaction.backends.fused.chord import chord, repeated, restart, tables
from leastaction.backends.fused.mass import Mass, mass_of
from leastaction.backends.fused.newton import Iteration, coordinates, iteration, newton
from leastaction.backends.fused.settling import settling
from leastaction.backends.fused.work import chord_length, newton_length, newton_work, work
from leastaction.program import Builder, Program, Value
from leastaction.step.form import Step, step_of
from leastaction.step.prediction import Prediction
from leastaction.step.rows import OneByOne, Rows, SideBySide

if TYPE_CHECKING:
    from leastaction.lagrangian import Lagrangian
    from leastaction.methods import Galerkin

Blocks = list[tuple[str, int]]

# Beyond these, whole-step code costs more to compile and to fetch than it saves.
MOST_INSTRUCTIONS = 4000
MOST_CHORD_INSTRUCTIONS = 8000
MOST_HELD = 40  # unknowns of a step with constraints
FEWEST_CHORDS = 7  # where Newton costs less than so many, there are none: measured in lanes
# One trajectory alone is solved by Newton up to this degree, where that costs less than so many chords with points side
# by side: a little slower than these where steps are soft, several times faster where they are stiff.
MOST_DEGREE = 2
MOST_ALONE = 8
MOST_CHORDS = 40


@dataclass(frozen=True)
class StepPrograms:
    """The kernels by name: advance; outer and restart of chords, lift and recall of separable ones; fresh and kept
    of Newton's iteration; settle where constraints hold; begin and leap of explicit steps.

    `tables` are rows of coefficients that a kernel with points side by side reads.
    """

    kernels: dict[str, Program]
    chords: int = 1  # that cost about as much as to solve a step by Newton
    tables: SideBySide | None = None


def step_programs(system: Lagrangian, method: Galerkin, energy: bool = False, soft: bool = True) -> StepPrograms | None:
    """The kernels for trajectories side by side, or for one `alone`: Newton's iteration if it is short enough, and if
    wanted (`soft`) chords where they pay. None if either would be too long.

    Wanted may be the range of the energy.
    """
    step = step_of(system, method)
    if step.end is not None and not step.end.linear:
        return None
    mass = mass_of(step) if soft and not step.multipliers else None
    one = _newton(step)
    if one is None and (mass is None or chord_length(step, mass) > MOST_CHORD_INSTRUCTIONS):
        return None
    kernels: dict[str, Program] = {}
    chords, blocks = 1, _state(step, one, None, energy)
    if mass is not None:
        whole = _state(step, one, mass, energy)
        chords = MOST_CHORDS
        if one is not None:
            cost = sum(work(newton(step, one, blocks, fresh)) * (1 if fresh else 2) for fresh in (True, False))
            chords = int(cost / work(_chord(step, mass, _one_by_one(step, whole, mass), 1)))
        if chords >= FEWEST_CHORDS:
            blocks = whole
            kernels = _chords(step, mass, lambda: _one_by_one(step, blocks, mass), min(chords, MOST_CHORDS), one)
    mass = mass if kernels else None
    rows, B = _one_by_one(step, blocks, mass)
    kernels["advance"] = advance(system, step, rows, B, one, mass, energy)
    if one is not None:
        kernels |= {"fresh": newton(step, one, blocks, True), "kept": newton(step, one, blocks, False)}
    if step.end is not None:
        kernels["settle"] = settling(step, blocks)
    return StepPrograms(kernels, min(chords, MOST_CHORDS))


def _state(step: Step, one: Iteration | None, mass: Mass | None, energy: bool) -> Blocks:
    """The state of one of the trajectories side by side."""
    n, N = step.n, step.s * (step.n + step.multipliers)
    blocks = [
        ("t", 1), ("h", 1), ("params", step.params), ("inputs", step.driven), ("alive", 1),
        ("q", n), ("p", n), ("carry", 2 * n),
        *_remembered(step, OneByOne(), mass),
        ("lowest", int(energy)), ("highest", int(energy)),
        ("z", N), ("impulse", n), ("trouble", 1), ("left", 1),
    ]  # fmt: skip
    if one is not None:
        blocks += [
            ("invariants", one.before.output_size), ("slopes", n * N), ("factors", len(one.pattern)),
            ("scale", n), ("before", 1), ("doubt", 1), ("fresh", 1), ("kept", 1), ("iterations", 1),
        ]  # fmt: skip
    return blocks + (_soft(step, OneByOne(), mass) if mass is not None else [])


def explicit_programs(system: Lagrangian, method: Galerkin, energy: bool = False) -> StepPrograms | None:
    """The kernels of an explicit step, for trajectories side by side or for one alone.

    None if it is not explicit, or if solving with its mass would be too long.
    """
    step = step_of(system, method)
    if not step.explicit:
        return None
    n, mass = step.n, mass_of(step)
    if not mass.diagonal and n * n + (0 if mass.fixed else n**3 // 3) > MOST_CHORD_INSTRUCTIONS:
        return None
    blocks = [
        ("t", 1), ("h", 1), ("params", step.params), ("inputs", step.driven), ("alive", 1),
        ("q", n), ("p", n), ("carry", 2 * n), *explicit.blocks(step, mass),
        ("length", n), ("reach", n), ("floor", n),
        ("lowest", int(energy)), ("highest", int(energy)),
        ("z", n), ("impulse", n), ("trouble", 1), ("left", 1),
    ]  # fmt: skip
    kernels = {"leap": explicit.leap(step, mass, *_one_by_one(step, blocks, None))}
    first = explicit.begin(step, mass, *_one_by_one(step, blocks, None))
    if first is not None:
        kernels["begin"] = first
    kernels["advance"] = advance(system, step, *_one_by_one(step, blocks, None), None, None, energy)
    return StepPrograms(kernels)


def _newton(step: Step) -> Iteration | None:
    """Newton's iteration, if it is short enough. With multipliers most of the matrix is zero: its length is counted."""
    if not step.multipliers:
        return iteration(step) if newton_length(step) <= MOST_INSTRUCTIONS else None
    if step.s * (step.n + step.multipliers) > MOST_HELD:
        return None
    one = iteration(step)
    return one if len(one.first.code) <= MOST_CHORD_INSTRUCTIONS else None


def alone(system: Lagrangian, method: Galerkin, lanes: int) -> StepPrograms | None:
    """The kernels for one trajectory: Newton's iteration, if it is short enough and costs less than a few chords with
    the points of a step side by side; else these.
    """
    step = step_of(system, method)
    if 2 * max(len(step.samples(term).tau) for term in step.terms) <= lanes:
        lanes //= 2  # half a vector holds all points
    if step.multipliers or _shortly(step, lanes):
        return step_programs(system, method, soft=False)
    return side_by_side(system, method, lanes)


def _shortly(step: Step, lanes: int) -> bool:
    """Whether Newton's iteration as a kernel costs little beside chords with points side by side."""
    one = _newton(step) if step.s <= MOST_DEGREE else None
    if one is None:
        return False
    mass, _, builder = _side_by_side(step, lanes)
    return work(one.first) + 2 * work(one.again) < MOST_ALONE * work(_chord(step, mass, builder(), 1))


def side_by_side(system: Lagrangian, method: Galerkin, lanes: int) -> StepPrograms | None:
    """The kernels for one trajectory, the points of its step side by side in `lanes` lanes: chords alone.

    None if there are none, or if they would be too long.
    """
    step = step_of(system, method)
    if step.multipliers:
        return None
    mass, rows, builder = _side_by_side(step, lanes)
    if chord_length(step, mass, lanes) > MOST_CHORD_INSTRUCTIONS:
        return None
    newtons = newton_work(step, lanes) / work(_chord(step, mass, builder(), 1))
    ahead, B = builder()
    onward = advance(system, step, ahead, B, None, mass, False)
    chords = max(1, min(MOST_CHORDS, int(2 * newtons)))
    return StepPrograms({"advance": onward, **_chords(step, mass, builder, chords, None)}, chords, rows)


def _side_by_side(step: Step, lanes: int) -> tuple[Mass, SideBySide, Callable[[], tuple[Rows, Builder]]]:
    """The mass, the rows of points side by side, and what builds on the state of a trajectory with these."""
    mass = mass_of(step)
    rows = SideBySide(tables(step), lanes, None, repeated(step))
    if mass.separable:
        rows = SideBySide(separable.tables(step), lanes, None, separable.REPEATED)
    n, N = step.n, step.n * rows.length(step.s)
    nodes = len(step.method.table.c)
    blocks = [
        ("t", 1), ("h", 1), ("params", step.params), ("inputs", step.channels * rows.length(nodes)),
        ("alive", 1), ("tables", rows.size),
        ("q", n), ("p", n), ("carry", 2 * n),
        *_remembered(step, rows, mass),
        ("z", N), ("impulse", n), ("trouble", 1), ("left", 1), *_soft(step, rows, mass),
    ]  # fmt: skip

    def builder() -> tuple[Rows, Builder]:
        B = Builder(blocks)
        return SideBySide(rows.tables, lanes, B, rows.repeated), B

    return mass, rows, builder


def _one_by_one(step: Step, blocks: Blocks, mass: Mass | None) -> tuple[Rows, Builder]:
    B = Builder(blocks)
    own = separable.tables(step) if mass is not None and mass.separable else tables(step)
    return OneByOne(own, Value(B, B.input("h")[0])), B


def _chord(step: Step, mass: Mass, builder: tuple[Rows, Builder], chords: int) -> Program:
    """An iteration."""
    return (separable.outer if mass.separable else chord)(step, mass, *builder, chords)


def _chords(
    step: Step, mass: Mass, builder: Callable[[], tuple[Rows, Builder]], chords: int, one: Iteration | None
) -> dict[str, Program]:
    found = {"outer": _chord(step, mass, builder(), chords)}
    if not mass.separable:
        return found | {"restart": restart(step, builder()[1])}
    return found | {
        "restart": separable.restart(step, mass, *builder(), coordinates(step) if one is not None else []),
        "lift": separable.lift(step, mass, *builder()),
        "recall": separable.recall(step, mass, *builder()),
    }


def _remembered(step: Step, rows: Rows, mass: Mass | None) -> Blocks:
    """What a prediction remembers, and the lengths of steps."""
    packed = rows.length(step.n)
    if mass is not None and mass.separable:
        memory = separable.memory(step, rows)
    else:
        ahead = Prediction(step.s, rows)
        memory = [("memory", step.n * ahead.memory), ("record", ahead.record)]
    return [("started", 1), *memory, ("length", packed), ("reach", packed), ("floor", packed)]


def _soft(step: Step, rows: Rows, mass: Mass) -> Blocks:
    """What belongs to chords."""
    n, N = step.n, step.n * rows.length(step.s)
    own = [("mass", 0 if mass.fixed else mass.size), ("start", N), ("soft_scale", rows.length(n))]
    return [
        *(separable.blocks(step, mass, rows) if mass.separable else own), ("rate", 1), ("soft_before", 1),
        ("soft_doubt", 1), ("soft_iterations", 1), ("outer", 1), ("failed", 1), ("rest", 1),
    ]  # fmt: skip
