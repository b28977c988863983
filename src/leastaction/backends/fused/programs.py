"""The kernels of a whole step, which work in place: inputs are a trajectory's state, outputs parts of it by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from leastaction.backends.fused import chord as mass_chord
from leastaction.backends.fused import collocation, cyclic, explicit, hop, march, rattle, separable, stiff
from leastaction.backends.fused.advance import advance
from leastaction.backends.fused.chord import chord, paired, repeated, restart, tables
from leastaction.backends.fused.collocation import WOVEN, collocated
from leastaction.backends.fused.mass import Chords, Mass, eliminated, mass_of
from leastaction.backends.fused.newton import Iteration, coordinates, iteration, newton, unique
from leastaction.backends.fused.nodes import nodes_of, shift_count
from leastaction.program.ordering import prompt
from leastaction.backends.fused.settling import settling
from leastaction.backends.fused.shifted_systems import SLOPES, moving
from leastaction.backends.fused.uniqueness import one_root
from leastaction.backends.fused.work import TWICE, chord_length, collocation_pays, newton_length, newton_work, work
from leastaction.program import Builder, Program, Value
from leastaction.step.cyclic import reduced
from leastaction.step.form import Step, step_of
from leastaction.step.prediction import Prediction
from leastaction.step.rows import OneByOne, Rows, SideBySide

if TYPE_CHECKING:
    from leastaction.methods import Galerkin
    from leastaction.systems.lagrangian import Lagrangian

Blocks = list[tuple[str, int]]

# Beyond these, whole-step code costs more to compile and to fetch than it saves.
MOST_INSTRUCTIONS = 4000
MOST_CHORD_INSTRUCTIONS = 8000
MOST_TWICE = 4000  # … and so for chords that correct twice, where plain ones may be longer
# Instructions of a chord up to which all of them stand where they can begin, and up to which the first chord of lanes
# finds derivatives of the step's middle: longer ones take longer so, since too many values wait.
MOST_PROMPT = 1600
MOST_HELD = 40  # unknowns of a step with constraints
FEWEST_CHORDS = 7  # where Newton costs less than so many chords, there are no chords: measured in lanes …
FEWEST_COLLOCATED = 4.2  # … and so for chords of collocation, of which fewer are needed
CROWDED = 8  # so many times its count Newton costs beside such chords: one lane that needs it lets all wait
# One trajectory alone is solved by Newton up to this degree, where Newton costs less than so many chords with points
# side by side: Newton is a little slower than these where steps are soft, several times faster where steps are stiff.
MOST_DEGREE = 2
MOST_ALONE = 8
MOST_CHORDS = 40
# What it costs one trajectory to give chords up, in iterations of Newton: where chords are slow, Newton often fails,
# too, and then some hundred iterations follow, of continuation.
NEWTONS = 4


@dataclass(frozen=True)
class StepPrograms:
    """The kernels by name: advance; once, inner, outer, follow, afresh, land, lift, recall and restart of chords; fresh
    and kept of Newton's iteration, and unique where that was in doubt; settle where constraints hold; begin and leap of
    explicit steps, and leap of steps that are explicit except for multipliers.

    `tables` are rows of coefficients that a kernel with points side by side reads. `later` gives kernels that are made
    when they are wanted, with tables of their own (`stiff`).
    """

    kernels: dict[str, Program]
    chords: int = 1  # that cost about as much as to solve a step by Newton
    tables: SideBySide | None = None
    later: Callable[[], dict[str, Program]] | None = None
    later_tables: Callable[[], SideBySide] | None = None
    patience: int = 0  # steps that chords have given up before these are wanted


def step_programs(system: Lagrangian, method: Galerkin, energy: bool = False, soft: bool = True) -> StepPrograms | None:
    """The kernels for trajectories side by side, or for one `alone`: Newton's iteration if it is short enough, and if
    wanted (`soft`) chords where they pay. None if either would be too long.

    With `energy` they also find the range of the energy.
    """
    step = step_of(system, method)
    if step.end is not None and not step.end.linear:
        return None
    own = _soft_step(step) if soft and not step.multipliers else None
    one = _newton(step)
    if one is None and (own is None or chord_length(own.step, own.mass) > MOST_CHORD_INSTRUCTIONS):
        return None
    kernels: dict[str, Program] = {}
    chords, blocks = 1, _state(step, one, None, energy)
    if own is not None:
        whole, collocates = _state(step, one, own, energy), own.mass.collocated
        ratio = float(MOST_CHORDS)
        if one is not None:
            cost = sum(work(newton(step, one, blocks, fresh)) * (1 if fresh else 2) for fresh in (True, False))
            ratio = cost / work(_chord(own, _one_by_one(step, whole, own), 1))
        if ratio >= (FEWEST_COLLOCATED if collocates else FEWEST_CHORDS):
            chords = min(MOST_CHORDS, CROWDED * int(ratio) if collocates else int(ratio))
            blocks = whole
            kernels = _chords(step, own, lambda: _one_by_one(step, blocks, own), chords, one)
    own = own if kernels else None
    rows, B = _one_by_one(step, blocks, own)
    kernels["advance"] = advance(system, step, rows, B, one, own, energy, _linearises(kernels))
    if one is not None:
        kernels |= {"fresh": newton(step, one, blocks, True), "kept": newton(step, one, blocks, False)}
        if (certain := one_root(step)) is not None:
            kernels["unique"] = unique(step, certain, blocks)
    if step.end is not None:
        kernels["settle"] = settling(step, blocks)
    return StepPrograms(kernels, min(chords, MOST_CHORDS))


def _state(step: Step, one: Iteration | None, own: Chords | None, energy: bool) -> Blocks:
    """The state of one of the trajectories side by side."""
    n, N = step.n, step.s * (step.n + step.multipliers)
    blocks = [
        ("t", 1), ("h", 1), ("params", step.params), ("inputs", step.driven), ("alive", 1),
        ("q", n), ("p", n), ("carry", 2 * n),
        *_remembered(step, OneByOne(), own=own),
        ("lowest", int(energy)), ("highest", int(energy)),
        ("z", N), ("impulse", n), ("trouble", 1), ("left", 1),
    ]  # fmt: skip
    if one is not None:
        blocks += [
            ("invariants", one.before.output_size), ("slopes", len(one.moved)), ("factors", len(one.pattern)),
            ("scale", n), ("before", 1), ("doubt", 1), ("fresh", 1), ("kept", 1), ("iterations", 1),
            *([("asked", 1)] if one_root(step) is not None else []),
        ]  # fmt: skip
    return blocks + (_soft(own, OneByOne()) if own is not None else [])


def explicit_programs(system: Lagrangian, method: Galerkin, energy: bool = False) -> StepPrograms | None:
    """The kernels of an explicit step, for trajectories side by side or for one alone.

    None if it is not explicit, or if solving with its mass would be too long, or would lose digits.
    """
    step = step_of(system, method)
    if not step.explicit:
        return None
    n, mass = step.n, mass_of(step)
    if not mass.diagonal and n * n + (0 if mass.fixed else n**3 // 3) > MOST_CHORD_INSTRUCTIONS:
        return None
    if mass.fixed and not mass.diagonal and not eliminated(mass.program):
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


def held_programs(
    system: Lagrangian, method: Galerkin, energy: bool = False, single: bool = False
) -> StepPrograms | None:
    """The kernels of a step that is explicit except for its multipliers, for trajectories side by side or for a
    `single` one.

    None if the step is not of this kind, or if the kernels would be too long.
    """
    step = step_of(system, method)
    if not step.held_explicitly or step.end is None or not step.end.linear or step.n + step.multipliers > MOST_HELD:
        return None
    one, n = rattle.held(step), step.n
    started, *memory = _remembered(step, OneByOne(), step.multipliers)[:3]
    blocks = [
        *hop.written(step, memory), started,
        ("next", 1), ("h", 1), ("params", step.params), ("inputs", step.driven), ("alive", 1),
        ("reach", n), ("floor", n), ("lowest", int(energy)), ("highest", int(energy)), ("trouble", 1), ("left", 1),
        ("scale", n), ("before", 1), ("doubt", 1), ("fresh", 1), ("kept", 1),
        ("iterations", 1),
    ]  # fmt: skip
    kernels: dict[str, Program] = {}
    if single and not energy:
        kernels, fixed = hop.hops(step, one, *_one_by_one(step, blocks, None, single))
        blocks.append(("fixed", fixed))
    kernels |= {name: write(step, one, blocks) for name, write in rattle.KERNELS.items()}
    if max(len(kernel.code) for kernel in kernels.values()) > MOST_CHORD_INSTRUCTIONS:
        return None
    kernels["advance"] = advance(system, step, *_one_by_one(step, blocks, None, single), one, None, energy)
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
    the points of a step side by side; else these chords.
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
    own, _, builder = _side_by_side(step, lanes)
    return work(one.first) + 2 * work(one.again) < MOST_ALONE * work(_chord(own, builder(), 1))


def side_by_side(system: Lagrangian, method: Galerkin, lanes: int) -> StepPrograms | None:
    """The kernels for one trajectory, the points of its step side by side in `lanes` lanes: chords alone.

    None if there are no chords, or if their kernels would be too long.
    """
    step = step_of(system, method)
    if step.multipliers:
        return None
    own, rows, builder = _side_by_side(step, lanes)
    if chord_length(own.step, own.mass, lanes) > MOST_CHORD_INSTRUCTIONS:
        return None
    newtons = newton_work(step, lanes) / work(_chord(own, builder(), 1))
    chords = max(1, min(MOST_CHORDS, int(NEWTONS * newtons)))
    kernels = _chords(step, own, builder, chords, None)
    ahead, B = builder()
    onward = advance(system, step, ahead, B, None, own, False, _linearises(kernels))
    found = {"advance": onward, **kernels}
    if not stiff.stiffens(own, lanes):
        return StepPrograms(found, chords, rows)
    later = partial(stiff.programs, own, list(B.inputs), lanes, chords)
    return StepPrograms(found, chords, rows, later, partial(stiff.rows_of, own, lanes), stiff.patience(own, lanes))


def _side_by_side(step: Step, lanes: int) -> tuple[Chords, SideBySide, Callable[[], tuple[Rows, Builder]]]:
    """What chords solve, the rows of points side by side, and what makes rows and a Builder on a trajectory's state."""
    own = _soft_step(step, lanes)
    found, padded = tables(step), repeated(step)
    if own.mass.collocated and (collocation_tables := nodes_of(step.method)) is not None:
        found |= paired(collocation_tables, lanes)
    if own.mass.separable:
        found, padded = separable.tables(own.step), separable.REPEATED
    found, padded = found | cyclic.tables(own.step), padded | cyclic.REPEATED
    woven = WOVEN if own.mass.collocated else frozenset[str]()
    rows = SideBySide(found, lanes, None, padded, woven=woven)
    if march.marches(own, rows):
        rows = SideBySide(found | march.tables(step), lanes, None, padded | march.REPEATED, woven=woven)
    packed, N = rows.length(step.n), step.n * rows.length(step.s)
    nodes = len(step.method.table.c)
    blocks = [
        ("t", 1), ("h", 1), ("params", step.params), ("inputs", step.channels * rows.length(nodes)),
        ("alive", 1), ("tables", rows.size),
        ("q", packed), ("p", packed), ("carry", 2 * packed),
        *_remembered(step, rows, own=own),
        ("z", N), ("impulse", packed), ("trouble", 1), ("left", 1), *_soft(own, rows),
        *(stiff.blocks(own, rows) if stiff.stiffens(own, lanes) else []),
    ]  # fmt: skip

    def builder() -> tuple[Rows, Builder]:
        B = Builder(blocks)
        return replace(rows, B=B), B

    return own, rows, builder


def _soft_step(step: Step, lanes: int = 1) -> Chords:
    """What chords solve: the step of the free coordinates where others are cyclic, and where its mass is separable or
    chords of collocation pay.

    A system that is separable without its cyclic coordinates is stiffer than it looks, as a top that stands upright:
    so trajectories side by side, which do not `march` then, are solved by chords of collocation.
    """
    plain = Chords(step, _mass(step, lanes))
    if plain.mass.separable or nodes_of(step.method) is None:
        return plain
    free = reduced(step)
    found = Chords(free, _mass(free, lanes))
    rows = OneByOne() if lanes == 1 else SideBySide({}, lanes)
    if free.of is not None and found.mass.separable and not march.marches(found, rows):
        found = Chords(free, replace(found.mass, separable=False, collocated=True))
    return found if found.mass.separable or found.mass.collocated else plain


def _mass(step: Step, lanes: int = 1) -> Mass:
    """The mass as chords see it, `lanes` points at once: chords of collocation only where they pay."""
    mass = mass_of(step)
    if mass.collocated and (not collocation_pays(step) or chord_length(step, mass, lanes) > MOST_CHORD_INSTRUCTIONS):
        return replace(mass, collocated=False)
    return mass


def _one_by_one(step: Step, blocks: Blocks, own: Chords | None, single: bool = False) -> tuple[Rows, Builder]:
    B = Builder(blocks)
    found = separable.tables(own.step) if own is not None and own.mass.separable else tables(step)
    found |= {} if own is None else cyclic.tables(own.step) | march.tables(own.step)
    return OneByOne(found, Value(B, B.input("h")[0]), single), B


def _chord(own: Chords, builder: tuple[Rows, Builder], chords: int) -> Program:
    """A plain chord: what others cost is compared with it."""
    taken = separable.outer if own.mass.separable else collocated if own.mass.collocated else chord
    return taken(own.step, own.mass, *builder, chords)


def _chords(
    whole: Step, own: Chords, builder: Callable[[], tuple[Rows, Builder]], chords: int, one: Iteration | None
) -> dict[str, Program]:
    step, mass = own.step, own.mass
    found: dict[str, Program] = {}
    if march.marches(own, builder()[0]):
        found |= {"march": march.march(step, mass, *builder()), "resume": march.resume(step, mass, *builder())}
    if mass.separable:
        if builder()[0].side_by_side:
            found["follow"] = separable.outer(step, mass, *builder(), chords, known=True)
            if "march" not in found:
                found["afresh"] = separable.afresh(step, mass, *builder())
        return found | {
            "outer": separable.outer(step, mass, *builder(), chords),
            "restart": separable.restart(step, mass, *builder(), coordinates(whole) if one is not None else []),
            "land": separable.land(step, mass, *builder()),
            "lift": separable.lift(step, mass, *builder()),
            "recall": separable.recall(step, mass, *builder()),
        }
    if mass.collocated:
        found |= {"restart": collocation.restart(whole, step, *builder(), one)}
        last = collocation.ended(step, *builder())
        plain, better = (collocated(step, mass, *builder(), chords, twice) for twice in (False, True))
        if _varied(step) and len(better.code) <= MOST_TWICE and work(better) <= TWICE * work(plain):
            first = collocated(step, mass, *builder(), chords, first=True)
            once = first if builder()[0].side_by_side or len(first.code) <= MOST_PROMPT else plain
            return found | {"once": _prompt(once), "inner": _prompt(better), "outer": last}
        return found | {"inner": plain, "outer": last}
    found = {"restart": restart(step, *builder())}
    return found | {"inner": chord(step, mass, *builder(), chords), "outer": mass_chord.ended(step, *builder())}


def _linearises(kernels: dict[str, Program]) -> bool:
    """Whether the kernel that goes on to the next step finds what chords take from its middle: else the first chord
    does.
    """
    return "once" not in kernels or "shifts" not in dict(kernels["once"].outputs)


def _prompt(program: Program) -> Program:
    """The same program, its instructions where they can begin, if not too many values have to wait then."""
    return prompt(program) if len(program.code) <= MOST_PROMPT else program


def _varied(step: Step) -> bool:
    """Whether derivatives change during a step: else those of its middle are those of every node."""
    slopes = step.terms[0].slopes
    changing = [name for name, _ in slopes.inputs if name != "params"]
    return any(slopes.depends(name, *changing) for name in SLOPES if name in dict(slopes.outputs))


def _remembered(step: Step, rows: Rows, predicted: int | None = None, own: Chords | None = None) -> Blocks:
    """What a prediction remembers, of all coordinates of chords or of so many numbers, and the lengths of steps."""
    ahead, packed, free = Prediction(step.s, rows), rows.length(step.n), step.n if own is None else own.step.n
    memory = [("memory", (free if predicted is None else predicted) * ahead.memory), ("record", ahead.record)]
    if own is not None and own.mass.separable:
        memory = separable.memory(own.step, rows)
    return [("started", 1), *memory, ("length", packed), ("reach", packed), ("floor", packed)]


def _soft(chords: Chords, rows: Rows) -> Blocks:
    """What belongs to chords."""
    step, mass = chords.step, chords.mass
    n, N = step.n, step.n * rows.length(step.s)
    own = [("mass", 0 if mass.fixed else mass.size), ("start", N), ("soft_scale", rows.length(n)), ("inner", 1)]
    if mass.separable:
        own = separable.blocks(step, mass, rows)
    if mass.collocated:
        points = n * rows.length(len(step.samples(step.terms[0]).tau))
        shifts = 2 * len(moving(step)) ** 2 * rows.length(shift_count(step.method))
        own = [("points", points), ("speeds", points), ("shifts", shifts), ("choice", 1), ("inner", 1)]
        own += [("mass", 0), ("soft_scale", rows.length(n))]
    own += march.blocks(step, rows) if march.marches(chords, rows) else []
    return [
        *own, ("rate", 1), ("soft_before", 1), ("soft_doubt", 1), ("soft_iterations", 1), ("outer", 1), ("failed", 1),
        ("rest", 1),
    ]  # fmt: skip
