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

from leastaction.backends.fused.elimination import factors, order_of, substitute
from leastaction.backends.fused.equations import dot, equations, short_dot
from leastaction.backends.fused.judging import Seen, finite, judged
from leastaction.backends.fused.settling import settled
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step
from leastaction.step.rows import OneByOne
from leastaction.step.verdict import GOING, REACH, TINY

AT_FIRST = 2  # iterations of `leap`
Values = dict[str, list[Value]]


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
    whole = E.B.build(
        R=[E.residual[i] for i in rows[:n]],
        K=[E.jacobian[i][j] for i in rows[:n] for j in columns[:n]],
        P=[E.jacobian[i][j] for i in rows[:n] for j in range(n, N)],
        g=E.residual[n:],
        G=[x for row in E.jacobian[n:] for x in row[:n]],
        impulse=E.impulse,
    )
    B = Builder([block for block in whole.inputs if block[0] != "z"])
    at = B.inline(whole, **{name: B.input(name) for name, _ in B.inputs}, z=[B.const(0.0)] * N)
    lower = factors(B, _rows(at["K"], n))

    def solved(right: Sequence[int]) -> list[int]:
        x = substitute(B, lower, [B.op("neg", y) for y in right])
        return [k for _, k in sorted(zip(columns[:n], x, strict=True))]

    A = [solved(at["P"][k :: step.multipliers]) for k in range(step.multipliers)]
    motion = B.build(b=solved(at["R"]), A=[column[j] for j in range(n) for column in A])
    return Held(motion, whole.select("g", "G"), whole.select("impulse"))


def leap(step: Step, one: Held, blocks: Sequence[tuple[str, int]]) -> Program:
    """The state at the start of a step, with multipliers predicted ↦ z, impulse, and what is wanted next."""
    B = Builder(blocks)
    x = {name: B.values(name) for name, _ in blocks}
    n = step.n
    found = iterated(step, one, B, x, AT_FIRST)
    z, moves = found.z[:n], found.moves
    impulse, independent = impulse_of(step, one, B, x, found.z)
    # The verdicts, on one scale: that of z as it was predicted and as it was found.
    lengths = [abs(Value(B, k)).op("max", TINY) for k in found.predicted]
    reach = within_reach(x, lengths)
    seen = Seen({}, {name: [Value(B, B.const(0.0))] for name in ("before", "iterations", "doubt")})
    for k, move in enumerate(moves, 1):
        begun = x | seen.after | {"scale": lengths, "reach": reach}
        seen = _judged(step, B, begun, move, z, final=k == AT_FIRST)
    after = _after(B, seen, found.z) | {"impulse": [Value(B, k) for k in impulse], "reach": reach}
    (alive,), (before,), (trouble,) = x["alive"], x["trouble"], after["trouble"]
    spoilt = ~(independent & finite(Value(B, B.sum(impulse))))
    after["trouble"] = [before | (alive & (trouble | spoilt))]
    after["fresh"] = [alive & ~before & after["fresh"][0]]
    return B.build(**{name: indices(values, B) for name, values in after.items()})


@dataclass(frozen=True)
class Iterated:
    """What some iterations did to a prediction: the z predicted, all unknowns found, each iteration's increments."""

    predicted: list[int]
    z: list[int]  # and the multipliers
    moves: list[list[int]]  # of z
    pushes: list[list[int]]  # of the multipliers


def iterated(step: Step, one: Held, B: Builder, x: Values, times: int) -> Iterated:
    """Newton's iterations from the multipliers that were predicted; x is the state at the start of a step."""
    b, A = _motion(step, one, B, x)
    multipliers = [a.k for a in x["z"][step.n :]]
    predicted = z = [B.add(a, dot(B, row, multipliers)) for a, row in zip(b, A, strict=True)]
    moves, pushes = [], []
    for _ in range(times):
        g, G = _constraints(step, one, B, x, z)
        pushes.append(_solved(B, G, A, g))
        moves.append([dot(B, row, pushes[-1]) for row in A])
        z, multipliers = _sums(B, z, moves[-1]), _sums(B, multipliers, pushes[-1])
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
    x = {name: B.values(name) for name, _ in blocks}
    _, A = _motion(step, one, B, x)
    n, old = step.n, [a.k for a in x["z"]]
    g, G = _constraints(step, one, B, x, old[:n])
    more = _solved(B, G, A, g)
    dz = [dot(B, row, more) for row in A]
    z = _sums(B, old, dz + more)
    seen = _judged(step, B, x, dz, z[:n])
    (active,) = x["fresh"]
    chosen = {
        name: [active.where(new, old) for new, old in zip(values, x[name], strict=True)]
        for name, values in _after(B, seen, z).items()
    }
    return B.build(**{name: indices(values, B) for name, values in chosen.items()})


def settle(step: Step, one: Held, blocks: Sequence[tuple[str, int]]) -> Program:
    """The End of the trajectories that went on after `leap`."""
    B = Builder(blocks)
    x = {name: B.values(name) for name, _ in blocks}
    found, independent = impulse_of(step, one, B, x, [a.k for a in x["z"]])
    went_on = x["iterations"][0] > AT_FIRST + 0.5
    spoilt = ~(independent & finite(Value(B, B.sum(found))))
    chosen = [went_on.where(Value(B, new), old) for new, old in zip(found, x["impulse"], strict=True)]
    return B.build(impulse=indices(chosen, B), trouble=[(x["trouble"][0] | (went_on & spoilt)).k])


def _motion(step: Step, one: Held, B: Builder, x: Values) -> tuple[list[int], list[list[int]]]:
    """b, and the rows of A."""
    found = B.inline(one.motion, **{name: indices(x[name], B) for name, _ in one.motion.inputs})
    return found["b"], _rows(found["A"], step.multipliers)


def _constraints(step: Step, one: Held, B: Builder, x: Values, z: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """g, and the rows of G, where z leads."""
    at = {name: indices(x[name], B) for name, _ in one.held.inputs}
    found = B.inline(one.held, **at | {"z": [*z, *at["z"][step.n :]]})
    return found["g"], _rows(found["G"], step.n)


def impulse_of(step: Step, one: Held, B: Builder, x: Values, z: Sequence[int]) -> tuple[list[int], Value]:
    """The impulse of a step that is solved, after which ġ = 0, and whether constraints are independent there."""
    at = {name: indices(x[name], B) for name, _ in one.impulse.inputs}
    weight = float(step.samples(step.terms[1]).w[-1]) * x["h"][0]
    known = [B.mul(weight.k, k) for k in z[step.n :]]
    return settled(step, B, x, z, B.inline(one.impulse, **at | {"z": list(z)})["impulse"], known)


def _judged(
    step: Step, B: Builder, x: dict[str, list[Any]], dz: Sequence[int], z: Sequence[int], final: bool = True
) -> Seen:
    """The verdict on an iteration; every one has a fresh matrix."""
    moves, new = ([[Value(B, k)] for k in values] for values in (dz, z))
    return judged(step, OneByOne(), x, moves, new, fresh=True, chords=1, final=final)


def _after(B: Builder, seen: Seen, z: Sequence[int]) -> dict[str, list[Any]]:
    """What any iteration changes: the unknowns, what was seen, and what is wanted."""
    ended = seen.found["ended"]
    return {
        "z": [Value(B, k) for k in z],
        **seen.after,
        "fresh": [~ended],
        "trouble": [ended & ~seen.found["good"]],
    }


def _solved(B: Builder, G: Sequence[Sequence[int]], A: Sequence[Sequence[int]], g: Sequence[int]) -> list[int]:
    """dλ of G A dλ = −g."""
    S = [[short_dot(B, row, column) for column in zip(*A, strict=True)] for row in G]
    return substitute(B, factors(B, S, hasty=True), [B.op("neg", y) for y in g])


def _sums(B: Builder, x: Sequence[int], y: Sequence[int]) -> list[int]:
    return [B.add(a, b) for a, b in zip(x, y, strict=True)]


def _rows(matrix: Sequence[int], width: int) -> list[list[int]]:
    return [list(matrix[k : k + width]) for k in range(0, len(matrix), width)]


KERNELS = {"leap": leap, "fresh": fresh, "settle": settle}
