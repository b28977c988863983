"""External forces: Lagrange and d'Alembert's summand of the force f = ∂L/∂q + F.

F(t, q, v, params) has a component for each coordinate; its virtual work is F · δq. A Rayleigh function D(t, q, v,
params) stands for F = −∂D/∂v: with D = ½ v·Cv that is viscous friction, and D's power is F · v = −2D.

Everything that steps a system reads f, m and their derivatives from the Programs written here; no other place of the
library knows that there is a force.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from leastaction.errors import TraceError
from leastaction.program import Builder, Program
from leastaction.trace import derivatives, jacobian

SLOPES = {"F_q": "f_q", "F_v": "f_v", "F_t": "f_t", "F_params": "f_w"}


def total_force(force: Program | None, dissipation: Program | None) -> Program | None:
    """The Program of F − ∂D/∂v, from those of F and of D, each (t, q, v, params) ↦ F or D; None if there is neither."""
    if dissipation is None:
        return force
    slope = derivatives(dissipation.with_outputs(L=dissipation.output("D")), second=False)
    B = Builder(slope.inputs)
    at = {name: B.input(name) for name, _ in B.inputs}
    friction = [B.op("neg", x) for x in B.inline(slope, **at)["Lv"]]
    if force is None:
        return B.build(F=friction)
    return B.build(F=[B.add(a, b) for a, b in zip(B.inline(force, **at)["F"], friction, strict=True)])


def with_force(program: Program, force: Program | None) -> Program:
    """A Program that gives f = ∂L/∂q, with whichever of its derivatives f_q, f_v, f_t and f_w: F is added to each."""
    if force is None:
        return program
    blocks = dict(program.outputs)
    by = [name.removeprefix("F_") for name, block in SLOPES.items() if block in blocks]
    B = Builder(program.inputs)
    inputs = {name: B.input(name) for name, _ in B.inputs}
    outputs, push = B.inline(program, **inputs), B.inline(jacobian(force, *by), **inputs)
    for name, block in ({"F": "f"} | SLOPES).items():
        if block in blocks:
            outputs[block] = [B.add(a, b) for a, b in zip(outputs[block], push[name], strict=True)]
    return B.build(**outputs)


def taken(functions: Mapping[str, Callable[..., Any]], names: Collection[str]) -> dict[str, Collection[str]]:
    """Which of the parameters each function takes: those it names, or all; every parameter must be some function's."""
    found = {role: _named(fn, names) for role, fn in functions.items()}
    idle = [name for name in names if not any(name in takes for takes in found.values())]
    if idle:
        raise TraceError(
            f"none of the functions {', '.join(functions)} takes {', '.join(map(repr, idle))} of params. A function "
            "gets the parameters that it names as its arguments"
        )
    return found


def _named(fn: Callable[..., Any], names: Collection[str]) -> Collection[str]:
    try:
        arguments = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return names
    if any(a.kind is a.VAR_KEYWORD for a in arguments.values()):
        return names
    return [
        name for name in names if name in arguments and arguments[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
