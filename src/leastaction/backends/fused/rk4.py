"""A step of the classical Runge–Kutta method as one Program, for one trajectory or for many side by side."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from leastaction.backends.field import explicit, field
from leastaction.backends.fused.elimination import solve
from leastaction.backends.fused.programs import MOST_INSTRUCTIONS
from leastaction.methods import RungeKutta4
from leastaction.program import Builder, Program

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
    (t,), (h,), values, inputs, y = (B.input(name) for name, _ in B.inputs)
    rates: list[list[int]] = []

    def moved(weights: tuple[Fraction, ...]) -> list[int]:
        """y + Σ_j weights_j h k_j; the sum comes first, so that y is rounded once."""
        steps = [B.mul(B.const(weight), h) for weight in weights]
        sums = [B.sum(map(B.mul, steps, column)) for column in zip(*rates, strict=True)]
        return [B.add(a, b) for a, b in zip(y, sums, strict=True)] if rates else y

    for i, (c, a) in enumerate(zip(method.c, method.a, strict=True)):
        at = moved(a)
        given = {"t": [B.add(t, B.mul(B.const(c), h))], "q": at[:n], "z": at[n:], "params": values}
        given |= {"inputs": inputs[i * C : (i + 1) * C]} if C else {}
        found = B.inline(equation, x=[B.const(0.0)] * n, **given)
        (x,) = solve(B, [found["mass"][j * n : (j + 1) * n] for j in range(n)], [found["gap"]])
        rates.append(B.inline(rate, x=x, **given)["rate"])
    return B.build(y=moved(method.b))
