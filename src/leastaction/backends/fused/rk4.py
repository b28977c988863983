"""A step of the classical Runge–Kutta method as one Program, for many trajectories side by side.

    k_i = Y(t + c_i h, y + a_i h k_{i−1}),  a_i = c_i;      y⁺ = y + h Σ b_i k_i

With the force f = L_q + F: on (q, p), Y = (v, f), where v solves L_v(t, q, v) = p; where L is quadratic in v, as it
mostly is in mechanics, this equation is linear, L_vv v = p − L_v(t, q, 0). On (q, v), Y = (v, a), where a solves
L_vv a = f − L_vq v − L_vt.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from leastaction.backends.fused.elimination import solve
from leastaction.backends.fused.programs import MOST_INSTRUCTIONS
from leastaction.methods import RungeKutta4
from leastaction.program import Builder, Program

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian


@lru_cache(maxsize=64)
def rk4_program(system: Lagrangian, method: RungeKutta4) -> Program | None:
    """(t, h, params, inputs at the stages, y) ↦ Σ b_i k_i; None where the momenta are not linear in v, or the Program
    would be too long.
    """
    n, node = system.n, system.node
    hamilton = method.form == "hamilton"
    stages = len(method.c)
    if (hamilton and node.depends("m_v", "v")) or stages * len(node.code) > MOST_INSTRUCTIONS:
        return None
    channels = system.channels
    driven = stages * channels
    B = Builder([("t", 1), ("h", 1), ("params", dict(node.inputs)["params"]), ("inputs", driven), ("y", 2 * n)])
    (t,), (h,), params, inputs, y = (B.input(name) for name, _ in B.inputs)
    force, momentum = node.select("f"), node.select("m", "m_v")
    zero, rate, total = [B.const(0.0)] * n, [B.const(0.0)] * (2 * n), [B.const(0.0)] * (2 * n)
    for i, (c, b) in enumerate(zip(method.c, method.b, strict=True)):
        step = B.mul(B.const(c), h)
        at = [B.add(x, B.mul(step, k)) for x, k in zip(y, rate, strict=True)]
        given = {"t": [B.add(t, step)], "q": at[:n], "params": params}
        if channels:
            given["inputs"] = inputs[i * channels : (i + 1) * channels]
        if hamilton:
            rest = B.inline(momentum, v=zero, **given)
            right = [B.sub(p, m) for p, m in zip(at[n:], rest["m"], strict=True)]
            (v,) = solve(B, [rest["m_v"][j * n : (j + 1) * n] for j in range(n)], [right])
            rate = v + B.inline(force, v=v, **given)["f"]
        else:
            v = at[n:]
            found = B.inline(node, v=v, **given)
            moved = [B.sum(B.mul(found["m_q"][j * n + k], v[k]) for k in range(n)) for j in range(n)]
            right = [B.sub(found["f"][j], B.add(moved[j], found["m_t"][j])) for j in range(n)]
            (a,) = solve(B, [found["m_v"][j * n : (j + 1) * n] for j in range(n)], [right])
            rate = v + a
        total = [B.add(x, B.mul(B.const(b), k)) for x, k in zip(total, rate, strict=True)]
    return B.build(rate=total)
