"""A step of the classical Runge–Kutta method as one Program, for one trajectory or for many side by side."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from leastaction.backends.field import explicit, field
from leastaction.backends.fused.elimination import solve
from leastaction.backends.fused.programs import MOST_INSTRUCTIONS
from leastaction.methods import RungeKutta4
from leastaction.methods.rk4 import after
from leastaction.program import Builder, Program, Value, indices

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian


@lru_cache(maxsize=64)
def rk4_program(system: Lagrangian, method: RungeKutta4) -> Program | None:
    """(t, h, params, inputs at the stages, y) ↦ y⁺; None where the momenta are not linear in v, or the Program would be
    too long.
    """
    n, stages, C = system.n, len(method.c), system.channels
    if stages * len(system.node.code) > MOST_INSTRUCTIONS or not explicit(system, method.form):
        return None
    equation, rate = (field(system, method.form).select(*names) for names in (("gap", "mass"), ("rate",)))
    params = dict(equation.inputs)["params"]
    B = Builder([("t", 1), ("h", 1), ("params", params), ("inputs", stages * C), ("y", 2 * n)])
    h, (t,), values, inputs = Value(B, B.input("h")[0]), *(B.input(name) for name in ("t", "params", "inputs"))

    def slope(i: int, y: list[Value]) -> list[Value]:
        at = indices(y, B)
        given = {"t": [B.add(t, (method.c[i] * h).k)], "q": at[:n], "z": at[n:], "params": values}
        given |= {"inputs": inputs[i * C : (i + 1) * C]} if C else {}
        found = B.inline(equation, x=[B.const(0.0)] * n, **given)
        (x,) = solve(B, [found["mass"][j * n : (j + 1) * n] for j in range(n)], [found["gap"]])
        return [Value(B, k) for k in B.inline(rate, x=x, **given)["rate"]]

    return B.build(y=indices(after(method.weights(lambda a: a * h), B.values("y"), slope) or [], B))
