"""Steps that are explicit except for their multipliers, as Programs: Störmer and Verlet's with constraints, RATTLE.

Where the equations of motion R = 0 are linear in z and λ (`Step.held_explicitly`), with matrices K = ∂R/∂z and P =
∂R/∂λ that no unknown enters, they are solved exactly, and g = 0 is left, m equations for λ by Newton's iteration:

    z = b + A λ,      b = −K⁻¹ R(0, 0),   A = −K⁻¹ P,          g(t + h, q + b + A λ) = 0,
    G A dλ = −g,      G = ∂g/∂q at q + z.

So only multipliers are predicted. That is better than a prediction of z: b is known, and a coordinate that turns back,
as coordinates of points on rods do all the time, has very short steps, from which the next ones cannot be predicted.

leap      the step: two iterations from the prediction, the verdict on both, and the End
fresh     one more iteration, of the trajectories that want it
settle    the End of those that went on

The End begins with μ = h β λ, which differs from the reaction at the end of the step only by the change of the reaction
in h. The ġ that is left is so small that one solution for the rest leaves only rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leastaction.backends.fused.elimination import by_rows, factors, order_of, square, substitute
from leastaction.backends.fused.equations import equations, short_dot
from leastaction.backends.fused.judging import Seen, chosen, judged
from leastaction.backends.fused.settling import settled
from leastaction.program import Builder, Program, Value, dot
from leastaction.step.form import Step
from leastaction.step.rows import OneByOne
from leastaction.step.verdict import GOING, REACH, TINY

AT_FIRST = 2  # iterations of `leap`
Values = dict[str, list[Any]]


@dataclass(frozen=True)
class Held:
    """The equations of a step, taken apart for the kernels.

    motion    (t, h, q, p, params, inputs) ↦ b, and A row by row
    held      (t, h, q, z, params) ↦ g, and G row by row
    impulse   (t, h, q, z, params, inputs) ↦ impulse
    """

    motion: Program
    held: Program
    impulse: Program


def held(step: Step) -> Held:
    """The equations of a step, for the kernels."""
    E, n, N = equations(step), step.n, step.n + step.multipliers
    rows, columns = order_of(step)
    whole = E.B.finished(
        R=[E.residual[i] for i in rows[:n]],
        K=[E.jacobian[i][j] for i in rows[:n] for j in columns[:n]],
        P=[E.jacobian[i][j] for i in rows[:n] for j in range(n, N)],
        g=E.residual[n:],
        G=[x for row in E.jacobian[n:] for x in row[:n]],
        impulse=E.impulse,
    )
    B = Builder([block for block in whole.inputs if block[0] != "z"])
    at = B.at(whole, B.blocks() | {"z": [0.0] * N})
    lower = factors(square(at["K"]))

    def solved(right: Sequence[Value]) -> list[Value]:
        x = substitute(lower, [-y for y in right])
        return [x[columns.index(j)] for j in range(n)]

    A = [solved(at["P"][k :: step.multipliers]) for k in range(step.multipliers)]
    motion = B.finished(b=solved(at["R"]), A=[column[j] for j in range(n) for column in A])
    return Held(motion, whole.select("g", "G"), whole.select("impulse"))


def leap(step: Step, one: Held, blocks: Sequence[tuple[str, int]]) -> Program:
    """The state at the start of a step, with multipliers predicted ↦ z, impulse, and what is wanted next."""
    B = Builder(blocks)
    x = B.blocks()
    found = iterated(step, one, B, x, AT_FIRST)
    impulse, sound = impulse_of(step, one, B, x, found.z)
    # The verdicts, on one scale: that of z as it was predicted and as it was found.
    lengths = [abs(a).op("max", TINY) for a in found.predicted]
    reach = within_reach(x, lengths)
    seen = Seen({}, {name: [B.number(0.0)] for name in ("before", "iterations", "doubt")})
    for k, move in enumerate(found.moves, 1):
        begun = x | seen.after | {"scale": lengths, "reach": reach}
        seen = _judged(step, begun, move, found.z, final=k == AT_FIRST)
    after = _after(seen, found.z) | {"impulse": impulse, "reach": reach}
    (alive,), (before,), (trouble,) = x["alive"], x["trouble"], after["trouble"]
    after["trouble"] = [before | (alive & (trouble | ~sound))]
    after["fresh"] = [alive & ~before & after["fresh"][0]]
    return B.finished(**after)


@dataclass(frozen=True)
class Iterated:
    """What some iterations did to a prediction: the z predicted, all unknowns found, each iteration's increments."""

    predicted: list[Value]
    z: list[Value]  # and the multipliers
    moves: list[list[Value]]  # of z
    pushes: list[list[Value]]  # of the multipliers


def iterated(step: Step, one: Held, B: Builder, x: Values, times: int) -> Iterated:
    """Newton's iterations from the multipliers that were predicted; x is the state at the start of a step."""
    found, multipliers = B.at(one.motion, x), x["z"][step.n :]
    A = by_rows(found["A"], step.multipliers)
    predicted = z = [a + dot(row, multipliers) for a, row in zip(found["b"], A, strict=True)]
    moves, pushes = [], []
    for _ in range(times):
        pushes.append(_pushes(step, one, B, x, A, z))
        moves.append([dot(row, pushes[-1]) for row in A])
        z, multipliers = _sums(z, moves[-1]), _sums(multipliers, pushes[-1])
    return Iterated(predicted, z + multipliers, moves, pushes)


def within_reach(x: Values, lengths: Sequence[Value]) -> list[Value]:
    """How far a step may reach, from the latest steps, their floors, and the lengths of the step as predicted."""
    reach = []
    for longest, last, floor, length in zip(x["length"], x["z"], x["floor"], lengths, strict=False):
        reach.append((longest * REACH).op("max", abs(last).op("max", length) * GOING).op("max", floor))
    return reach


def fresh(step: Step, one: Held, blocks: Sequence[tuple[str, int]]) -> Program:
    """One more iteration, of the trajectories that want it."""
    B = Builder(blocks)
    x = B.blocks()
    A = by_rows(B.at(one.motion, x)["A"], step.multipliers)
    more = _pushes(step, one, B, x, A, x["z"][: step.n])
    dz = [dot(row, more) for row in A]
    z = _sums(x["z"], dz + more)
    return B.finished(**chosen(x["fresh"][0], _after(_judged(step, x, dz, z), z), x))


def settle(step: Step, one: Held, blocks: Sequence[tuple[str, int]]) -> Program:
    """The End of the trajectories that went on after `leap`."""
    B = Builder(blocks)
    x = B.blocks()
    found, sound = impulse_of(step, one, B, x, x["z"])
    went_on = x["iterations"][0] > AT_FIRST + 0.5
    return B.finished(**chosen(went_on, {"impulse": found}, x), trouble=[x["trouble"][0] | (went_on & ~sound)])


def impulse_of(step: Step, one: Held, B: Builder, x: Values, z: Sequence[Value]) -> tuple[list[Value], Value]:
    """The impulse of a step that is solved, after which ġ = 0, and whether it can be trusted (`settled`)."""
    weight = float(step.samples(step.terms[1]).w[-1]) * x["h"][0]
    known = [weight * a for a in z[step.n :]]
    return settled(step, B, x, z, B.at(one.impulse, x | {"z": list(z)})["impulse"], known)


def _pushes(
    step: Step, one: Held, B: Builder, x: Values, A: Sequence[Sequence[Value]], z: Sequence[Value]
) -> list[Value]:
    """dλ of G A dλ = −g where z leads."""
    at = B.at(one.held, x | {"z": [*z, *x["z"][step.n :]]})
    S = [[short_dot(row, column) for column in zip(*A, strict=True)] for row in by_rows(at["G"], step.n)]
    return substitute(factors(S, hasty=True), [-y for y in at["g"]])


def _judged(step: Step, x: Values, dz: Sequence[Value], z: Sequence[Value], final: bool = True) -> Seen:
    """The verdict on an iteration; every one has a fresh matrix."""
    moves, new = ([[a] for a in values[: step.n]] for values in (dz, z))
    return judged(step, OneByOne(), x, moves, new, fresh=True, chords=1, final=final)


def _after(seen: Seen, z: Sequence[Value]) -> dict[str, list[Any]]:
    """What any iteration changes: the unknowns, what was seen, and what is wanted."""
    ended = seen.found["ended"]
    return {"z": list(z), **seen.after, "fresh": [~ended], "trouble": [ended & ~seen.found["good"]]}


def _sums(x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    return [a + b for a, b in zip(x, y, strict=True)]


KERNELS = {"leap": leap, "fresh": fresh, "settle": settle}
