"""A step of the classical Runge–Kutta method as one Program, for one trajectory or for many side by side."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from leastaction.backends.field import explicit, field
from leastaction.backends.fused.elimination import solve, square
from leastaction.backends.fused.programs import MOST_INSTRUCTIONS
from leastaction.methods import RungeKutta4
from leastaction.methods.rk4 import after
from leastaction.program import Builder, Program, Value

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
    (t,), (h,), values, inputs, y = B.blocks().values()

    def slope(i: int, y: list[Value]) -> list[Value]:
        given = {
            "t": [t + method.c[i] * h],
            "q": y[:n],
            "z": y[n:],
            "params": values,
            "inputs": inputs[i * C : (i + 1) * C],
        }
        found = B.at(equation, given | {"x": [0.0] * n})
        (x,) = solve(square(found["mass"]), [found["gap"]])
        return B.at(rate, given | {"x": x})["rate"]

    return B.finished(y=after(method.weights(lambda a: a * h), y, slope) or [])
