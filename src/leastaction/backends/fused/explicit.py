"""Steps that their equations give at once, as Programs: nothing is iterated, nothing is judged.

Where s = 1, the nodes are ends of the step, f does not depend on v and m = M v + a(t) with a constant M
(`Step.explicit`), the equations of `step.form` are, with w₀, w₁ the weights h b_i of the ends,

    z = h M⁻¹ (p + w₀ f(t, q) − Σ_i b_i a(t_i)),      q⁺ = q + z,      p⁺ = p + w₀ f(t, q) + w₁ f(t + h, q⁺).

The force at the end is taken at the compensated sum q⁺: it is also the force at the start of the next step and is
handed on, so that a step needs one force. Inputs may differ there, so with inputs no force is handed on.

begin     what the first step begins with: its force, and M⁻¹
leap      z, the impulse, and the force at the end
handed    what the next step begins with

A result that is no number is a trouble: the loops solve such a step alone, and tell how far it goes.
"""

from __future__ import annotations

from typing import Any

from leastaction.backends.fused.chord import by_forces, driving, flat, force_at, inverse
from leastaction.backends.fused.judging import finite
from leastaction.backends.fused.mass import Mass
from leastaction.program import Builder, Program, Value
from leastaction.step.form import Step
from leastaction.step.rows import Rows, total

Values = dict[str, list[Value]]


def hands_on(step: Step) -> bool:
    """Whether the force at the end of a step is that at the start of the next."""
    return len(step.method.table.c) == 2 and not step.channels


def blocks(step: Step, mass: Mass) -> list[tuple[str, int]]:
    """What a state has for such steps: what they begin with, whether it is there, and the force at the end."""
    force = step.n if hands_on(step) else 0
    return [("force", force), ("mass", 0 if mass.fixed else mass.size), ("started", 1), ("late", force)]


def begin(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program | None:
    """Force and M⁻¹ of the trajectories that do not have them; None where there is nothing to begin with."""
    x = B.blocks()
    (started,) = x["started"]
    found: dict[str, list[Any]] = {}
    if hands_on(step):
        found["force"] = force_at(step, B, x, x["t"][0], x["q"], [])
    if not mass.fixed:
        found["mass"] = mass.inverted(B, {"params": x["params"]}, direct=True)
    if not found:
        return None
    kept = {name: [started.where(a, b) for a, b in zip(x[name], new, strict=True)] for name, new in found.items()}
    return B.finished(started=[1.0], **kept)


def leap(step: Step, mass: Mass, rows: Rows, B: Builder) -> Program:
    """The state at the start of a step ↦ z, impulse, late; trouble where they are no numbers."""
    x = B.blocks()
    n, (times,) = step.n, rows.columns("times 0")
    ends = {float(c): i for i, c in enumerate(step.method.table.c)}
    f: list[list[Any]] = [[0.0] * n for _ in times]  # what is not known yet has the coefficient zero in the equations
    if 0.0 in ends:
        i = ends[0.0]
        at_start = force_at(step, B, x, x["t"][0] + times[i], x["q"], driving(step, rows, x, i))
        f[i] = x["force"] if hands_on(step) else at_start
    moving = x if mass.separable else x | {"p": _without_drift(step, rows, B, x)}
    solve = inverse(mass, B, x)
    z, _ = by_forces(step, mass, rows, moving, solve, _by_coordinate(f))
    after: dict[str, list[Any]] = {}
    if 1.0 in ends:
        i = ends[1.0]
        moves = [rows.number(row, 0) for row in z]
        q = [a + (b + c) for a, b, c in zip(x["q"], moves, x["carry"][:n], strict=True)]
        f[i] = force_at(step, B, x, x["t"][0] + times[i], q, driving(step, rows, x, i))
        if hands_on(step):
            after["late"] = f[i]
    _, impulse = by_forces(step, mass, rows, moving, solve, _by_coordinate(f))
    moved = flat(step, rows, z)
    sound = finite(total(impulse) + total(moved))
    after |= {"z": moved, "impulse": impulse, "trouble": [x["alive"][0] & ~sound]}
    return B.finished(**after)


def handed(step: Step, x: Values) -> dict[str, list[Any]]:
    """From a step that is done: the force with which the next one begins, where it is known."""
    if not hands_on(step):
        return {"started": [1.0]}
    return {"force": x["late"], "started": [finite(total(x["late"]))]}


def _by_coordinate(f: list[list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*f, strict=True)]


def _without_drift(step: Step, rows: Rows, B: Builder, x: Values) -> list[Any]:
    """p − Σ_i b_i a(t_i), a being the momentum at rest."""
    momentum = step.terms[0].program.select("m")
    (times,), (weights,), scatter = rows.columns("times 0"), rows.columns("weights 0"), rows.columns("m 0")
    p: list[Any] = list(x["p"])
    for i, (time, weight) in enumerate(zip(times, weights, strict=True)):
        at = {"t": [x["t"][0] + time], "q": x["q"], "v": [0.0] * step.n, "params": x["params"]}
        at["inputs"] = driving(step, rows, x, i)
        p = [a - weight * scatter[i][0] * b for a, b in zip(p, B.at(momentum, at)["m"], strict=True)]
    return p
