"""The vector field of a system as one Program, on (q, p) or on (q, v).

Both forms have n unknowns x that a linear equation with the mass m_v = L_vv, or Newton's iteration with it, finds:

    Hamilton, y = (q, p)    ẏ = (x, f(t, q, x)),    p − m(t, q, x) = 0
    Lagrange, y = (q, v)    ẏ = (v, x),             f − m_q v − m_t − m_v x = 0

`field` gives the rate ẏ, the left side of the equation as `gap`, and the mass: x + m_v⁻¹ gap is the solution where the
gap is linear in x, as it is for accelerations, and for momenta where L is quadratic in v. `slopes` gives how both vary:
where y, parameters and t vary by d, x varies by dx = m_v⁻¹ gap_d d, and the rate by rate_d d + rate_x dx.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from leastaction.methods import Form
from leastaction.program import Builder, Program, dot
from leastaction.trace import jacobian

if TYPE_CHECKING:
    from leastaction.systems.mechanics import Mechanics


@lru_cache(maxsize=64)
def field(system: Mechanics, form: Form) -> Program:
    """(t, q, z, params, inputs, x) ↦ rate, gap, mass; z is p or v, and there are inputs where the system has some."""
    n, node = system.n, system.node
    B = Builder([*(("z" if name == "v" else name, size) for name, size in node.inputs), ("x", n)])
    z, x = B.values("z"), B.values("x")
    if form == "hamilton":
        at = B.at(node.select("f", "m", "m_v"), B.blocks() | {"v": x})
        gap = [p - m for p, m in zip(z, at["m"], strict=True)]
        return B.finished(rate=x + at["f"], gap=gap, mass=at["m_v"])
    at = B.at(node, B.blocks() | {"v": z})
    moved = [dot(at["m_q"][j * n : (j + 1) * n] + at["m_v"][j * n : (j + 1) * n], z + x) for j in range(n)]
    gap = [at["f"][j] - (moved[j] + at["m_t"][j]) for j in range(n)]
    return B.finished(rate=z + x, gap=gap, mass=at["m_v"])


@lru_cache(maxsize=64)
def explicit(system: Mechanics, form: Form) -> bool:
    """Whether the gap is linear in x, so that one solution with the mass, from x = 0, finds x."""
    return not field(system, form).depends("mass", "x")


@lru_cache(maxsize=64)
def slopes(system: Mechanics, form: Form, outer: tuple[str, ...]) -> Program:
    """(t, q, z, params, inputs, x) ↦ rate, and `by`: the derivatives of (rate, gap) by q, z, what is `outer`, and x."""
    whole, by = field(system, form).select("rate", "gap"), ("q", "z", *outer, "x")
    return _with_matrix(jacobian(whole, *by), whole, by).select("rate", "by")


@lru_cache(maxsize=64)
def momenta(system: Mechanics, *by: str) -> Program:
    """(t, q, v, params) ↦ p = ∂L/∂v, and `by`: its derivatives by these blocks."""
    whole = system.gradient.select("Lv")
    return _with_matrix(jacobian(whole, *by), whole, by)


def _with_matrix(slopes: Program, program: Program, blocks: Sequence[str]) -> Program:
    """The outputs of a program and `by`, the matrix of their derivatives by these blocks of inputs."""
    sizes = dict(program.inputs)
    parts = [
        (slopes.output(f"{name}_{block}"), sizes[block], j)
        for name, size in program.outputs
        for j in range(size)
        for block in blocks
    ]
    by = [k for entries, width, j in parts for k in entries[j * width : (j + 1) * width]]
    return slopes.with_outputs(**{name: slopes.output(name) for name, _ in program.outputs}, by=by)
