"""External forces: Lagrange and d'Alembert's summand of the force f = ∂L/∂q + F.

F(t, q, v, params) has a component for each coordinate; its virtual work is F · δq. A Rayleigh function D(t, q, v,
params) stands for F = −∂D/∂v: D = ½ v·Cv gives viscous friction, whose power is F · v = −2D.

F and D may read inputs, F(t, q, v, params, inputs): numbers that a run brings for each node of each step (`inputs`).
L and constraints may not read inputs u. If L depended on u, momenta and energy would have two values at the end of a
step, where u may jump; instead of a potential U(q, u), give the force −∂U/∂q. Constraints g(t, q, u) = 0 would need u̇,
in G v + g_t + g_u u̇ = 0.

Everything that steps a system reads f, m and their derivatives from the Programs written here; no other place of the
library knows that there is a force.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from leastaction.errors import TraceError
from leastaction.program import Builder, Program
from leastaction.trace import jacobian
from leastaction.trace.function import named

SLOPES = {"F_q": "f_q", "F_v": "f_v", "F_t": "f_t", "F_params": "f_w"}
DRIVEN = ("F", "D")  # the functions that may read inputs


UNDRIVEN = {
    "L": (
        "the Lagrangian",
        "write what it does as force=, the gradient of a potential among it. Momenta and energy would have two values "
        "where an input jumps",
    ),
    "g": (
        "the constraints",
        "a support that moves is a function of time, g(t, q). Its rate is needed, too, and an input has none",
    ),
}


def total_force(force: Program | None, dissipation: Program | None) -> Program | None:
    """The Program of F − ∂D/∂v, from the Programs (t, q, v, params) ↦ F and ↦ D; None if there is neither."""
    if dissipation is None:
        return force
    slope = jacobian(dissipation, "v")
    B = Builder(slope.inputs)
    at = {name: B.input(name) for name, _ in B.inputs}
    friction = [B.op("neg", x) for x in B.inline(slope, **at)["D_v"]]
    if force is None:
        return B.build(F=friction)
    return B.build(F=[B.add(a, b) for a, b in zip(B.inline(force, **at)["F"], friction, strict=True)])


def with_force(program: Program, force: Program | None) -> Program:
    """A Program of f = ∂L/∂q and some of its derivatives f_q, f_v, f_t and f_w, with F added to f and to each."""
    if force is None:
        return program
    blocks = dict(program.outputs)
    by = [name.removeprefix("F_") for name, block in SLOPES.items() if block in blocks]
    B = Builder(force.inputs)
    reads = {name: B.input(name) for name, _ in B.inputs}
    outputs = B.inline(program, **{name: reads[name] for name, _ in program.inputs})
    push = B.inline(jacobian(force, *by), **reads)
    for name, block in ({"F": "f"} | SLOPES).items():
        if block in blocks:
            outputs[block] = [B.add(a, b) for a, b in zip(outputs[block], push[name], strict=True)]
    return B.build(**outputs)


def taken(functions: Mapping[str, Callable[..., Any]], names: Collection[str]) -> dict[str, Collection[str]]:
    """The parameters that each function takes: those it names, or all; some function must take each parameter."""
    found = {role: named(fn, names) for role, fn in functions.items()}
    idle = [name for name in names if not any(name in takes for takes in found.values())]
    if idle:
        raise TraceError(
            f"none of the functions {', '.join(functions)} takes {', '.join(map(repr, idle))} of params. A function "
            "gets the parameters that it names as its arguments: add the argument, or leave the parameter out"
        )
    return found


def check_inputs(functions: Mapping[str, Callable[..., Any]], params: Collection[str], inputs: Collection[str]) -> None:
    """Refuse inputs that no force takes, inputs that L or constraints take, and names that parameters have."""
    shared = [name for name in inputs if name in params]
    if shared:
        raise TraceError(f"{shared[0]!r} is in params and in inputs; it is one of them")
    for name in inputs:
        for role, (what, instead) in UNDRIVEN.items():
            if role in functions and _names(functions[role], name):
                raise TraceError(f"{what} cannot take the input {name!r}: {instead}")
        if not any(role in DRIVEN and name in named(fn, inputs) for role, fn in functions.items()):
            raise TraceError(
                f"no force takes the input {name!r}: give force=F, a function F(q, v, {name}) or F(t, q, v, {name}) "
                "that names it among its arguments"
            )


def _names(fn: Callable[..., Any], name: str) -> bool:
    """Whether a function has an argument of exactly this name; **kwargs does not count."""
    try:
        return name in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False


def with_inputs(program: Program, names: Sequence[str], inputs: Sequence[str], role: str) -> Program:
    """A Program whose parameters have these names; parameters that are inputs move to a separate block."""
    if not inputs:
        return program
    first = program.input_slice("params").start
    used = {names[args[0] - first] for op, *args in program.code if op == "input" and args[0] >= first}
    if role not in DRIVEN and (wrong := [name for name in inputs if name in used]):
        what, instead = UNDRIVEN[role]
        raise TraceError(f"{what} cannot take the input {wrong[0]!r}: {instead}")
    own = [name for name in names if name not in inputs]
    blocks = [*program.inputs[:-1], ("params", len(own))]
    B = Builder([*blocks, ("inputs", len(inputs))] if role in DRIVEN else blocks)
    values = dict(zip(own, B.input("params"), strict=True))
    if role in DRIVEN:
        values |= dict(zip(inputs, B.input("inputs"), strict=True))
    nothing = B.const(0.0)
    at = {name: B.input(name) for name, _ in program.inputs[:-1]}
    return B.build(**B.inline(program, **at, params=[values.get(name, nothing) for name in names]))
