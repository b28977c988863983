"""Chords of stiff separable steps of one trajectory: where chords of forces alone (`separable`) do not contract.

They are the chords of `collocation`, by velocities at the nodes, with the derivatives of the middle of the step. The
mass is constant and forces do not depend on velocities, so the shifted systems are eliminated along their pattern
(`patterns`), and nothing is left for the nodes but what changes the forces' derivatives during the step: a stiff spring
that is linear costs no iteration.

They begin from the prediction, if that is within reach, else from the uniform motion, slowed down so that it goes no
farther than the latest steps: where h ω is large, h v leads many times as far. Where the prediction was out of reach,
or pivots tell that the step is too coarse for it, or a chord is in doubt (`step.verdict`), the root must be the only
one in a box around it (`uniqueness`). They do not begin again. What they do not solve, the loops do.

These kernels are made when some steps have needed them (`patience`), as the state counts: a motion that is never stiff
does not wait for them, nor does a short run of many coordinates. The loops solve such steps until then.

stiffen      Z and V to begin with, and the factors of the shifted systems
stiff        a chord
stiffened    z and the impulse from V
"""

from __future__ import annotations

import numpy as np

from leastaction.backends.fused import collocation
from leastaction.backends.fused.chord import read, repeated, tables, unknowns
from leastaction.backends.fused.mass import Chords
from leastaction.backends.fused.nodes import collocates
from leastaction.backends.fused.patterns import departing, factored, places_of, size_of, upright
from leastaction.backends.fused.separable import by_mass
from leastaction.backends.fused.shifted_systems import slopes_at
from leastaction.backends.fused.uniqueness import one_root
from leastaction.program import Builder, Program
from leastaction.step.rows import SideBySide, apply, numbers, size
from leastaction.step.verdict import TINY

FEWEST, PART = 8, 256  # steps given up before kernels are made: at least so many, one for so many instructions
MOST_INSTRUCTIONS = 24000  # of a chord, or of what it begins with
TABLES = "stiff tables"  # the block of the state that holds what these kernels read of the method …
READ = ("times 0", "weights 0", "v 0", "places", "lift")  # … and the tables in it
READ_SHIFTS = tuple(f"{name} {part}" for name in ("shift", "into", "out") for part in ("re", "im"))

Blocks = list[tuple[str, int]]


def stiffens(own: Chords, lanes: int) -> bool:
    """Whether there are such chords, and whether they are short enough."""
    step = own.step
    if not own.mass.separable or step.of is not None or step.terms[0].still or not collocates(step.method):
        return False
    return max(_lengths(own, lanes)) <= MOST_INSTRUCTIONS


def _lengths(own: Chords, lanes: int) -> tuple[float, float]:
    """About how many instructions a chord has, and what it begins with."""
    step, term = own.step, own.step.terms[0]
    n, s, entries = step.n, step.s, len(places_of(step))
    nodes, shifts = -(-s // lanes), -(-((s + 1) // 2) // lanes)
    tables = 2 * n * s * (3 * nodes + 2 * shifts)
    chord = tables + 8 * entries * shifts + len(term.program.code) * nodes
    return chord, 4 * n * s * nodes + len(term.slopes.code) + 8 * shifts * _products(own)


def _products(own: Chords) -> int:
    """Multiplications of an elimination along the pattern."""
    n = own.step.n
    below, right = np.zeros(n, int), np.zeros(n, int)
    for i, j in places_of(own.step):
        below[j] += i > j
        right[i] += j > i
    return int(n + (right * (1 + below)).sum())


def patience(own: Chords, lanes: int) -> int:
    """How many steps chords have given up before these kernels are made."""
    return max(FEWEST, int(sum(_lengths(own, lanes))) // PART)


def rows_of(own: Chords, lanes: int, B: Builder | None = None) -> SideBySide:
    """The rows of these kernels, with tables of their own."""
    found = tables(own.step)
    return SideBySide({name: found[name] for name in READ + READ_SHIFTS}, lanes, B, repeated(own.step), TABLES)


def _size(own: Chords, rows: SideBySide) -> int:
    """Vectors of these tables, which need not be known for that: they take a while."""
    s, S = own.step.s, (own.step.s + 1) // 2
    return rows.length(s) * (2 + 3 * s + 2 * S) + rows.length(S) * (2 + 2 * s)


def blocks(own: Chords, rows: SideBySide) -> Blocks:
    """What a state has for them, beside the blocks of separable chords."""
    step = own.step
    return [
        ("given_up", 1), ("speeds", step.n * rows.length(step.s)), ("shifts", size_of(step, rows)),
        ("soft_scale", rows.length(step.n)), ("asked", 1), ("inner", 1), (TABLES, _size(own, rows)),
    ]  # fmt: skip


def programs(own: Chords, state: Blocks, lanes: int, chords: int) -> dict[str, Program]:
    """The kernels, on such a state."""

    def builder() -> tuple[SideBySide, Builder]:
        B = Builder(state)
        rows = rows_of(own, lanes, B)
        assert rows.size == dict(state)[TABLES]
        return rows, B

    return {
        "stiffen": _stiffen(own, *builder()),
        "stiff": collocation.collocated(own.step, own.mass, *builder(), chords, stiff=True),
        "stiffened": collocation.ended(own.step, *builder(), stiff=True),
    }


def _stiffen(own: Chords, rows: SideBySide, B: Builder) -> Program:
    """What chords begin with, from the prediction z; they are wanted where that may be trusted, or the root asked."""
    step, mass, h = own.step, own.mass, B.values("h")[0]
    x = read(step, rows, B)
    z = unknowns(step, rows, x["z"])
    far = rows.packed([size(row) for row in z])
    near = ~rows.largest([~(a <= b) for a, b in zip(far, x["reach"], strict=True)])
    u, velocities = by_mass(step, mass, rows, B, x, x["momentum"]), rows.columns("v 0")
    slow = [(a / abs(b * h)).op("min", 1.0) * b for a, b in zip(x["length"], u, strict=True)]
    V = [
        [near.where(a, speed) for a in apply(rows, velocities, row)]
        for row, speed in zip(z, numbers(rows, slow, step.n), strict=True)
    ]
    Z = collocation.places_of(step, rows, V)
    factors = collocation.linearised(step, rows, B, x, V, factored)
    trusted = near
    if step.branching:
        nothing = near * 0.0
        anywhere = {"t": x["t"], "q": x["q"], "v": [nothing] * step.n, "params": x["params"]}
        anywhere["inputs"] = [nothing] * step.channels
        trusted = near & ~departing(step, rows, factors, slopes_at(step, B, anywhere)[3])
    wanted = upright(step, rows, factors)
    if one_root(step) is None:
        wanted = wanted & trusted
    after = {
        "points": [a for row in Z for a in row],
        "speeds": [a for row in V for a in row],
        "shifts": factors,
        "soft_scale": [a.op("max", TINY) for a in rows.packed([size(row) for row in Z])],
        "asked": [~trusted],
        "inner": [wanted],
        "rate": [1.0],
        **{name: [0.0] for name in ("outer", "soft_before", "soft_doubt", "soft_iterations")},
    }
    return B.finished(**after)
