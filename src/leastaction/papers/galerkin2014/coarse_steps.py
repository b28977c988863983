"""Coarse steps of Kepler's problem at which Newton's iteration finds no root: are there any?

A step from (q₀, p₀) asks for q¹, …, qˢ with −∂L_d/∂q⁰ = p₀ and ∂L_d/∂qᵛ = 0 for 0 < ν < s.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.errors import StepFailed, measuring
from leastaction.integrate import integrate
from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lobatto
from leastaction.numbers.arrays import FloatArray
from leastaction.papers.galerkin2014.runs import KEPLER, T_END
from leastaction.problems import get

STARTS = 300  # of the search for roots, at distances of 0.1 to 100 from q₀; the orbit has the size 10


@lru_cache
@measuring()
def last_state(chosen: Galerkin, h: Fraction) -> tuple[FloatArray, FloatArray]:
    """The state before the step at which Newton's iteration finds no root."""
    given = get(KEPLER)
    try:
        integrate(given.system, chosen, given.q0, given.p0, h=h, t_end=T_END[KEPLER], branch="any")
    except StepFailed as failure:
        return failure.path.q[-1], failure.path.p[-1]
    raise ValueError(f"{chosen.name} with h = {h} comes to its end")


def residual(chosen: Galerkin, h: Fraction, q0: FloatArray, p0: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The equations of a step, as a function of the s unknown points in a row."""
    l, dl, b = (np.asarray(x, dtype=float) for x in (chosen.table.l, chosen.table.dl, chosen.table.b))
    k, step = get(KEPLER).params["k"], float(h)

    def equations(unknown: FloatArray) -> FloatArray:
        points = np.concatenate([[q0], unknown.reshape(chosen.s, -1)])
        q, v = l @ points, dl @ points / step
        force = -k * q / np.linalg.norm(q, axis=1, keepdims=True) ** 3
        slopes = dl.T @ (b[:, None] * v) + step * l.T @ (b[:, None] * force)  # ∂L_d/∂qᵛ
        slopes[0] += p0
        return np.asarray(slopes[:-1].ravel())

    return equations


def roots_found(chosen: Galerkin, h: Fraction) -> int:
    """How many roots of the failing step Powell's hybrid method finds from random points."""
    from scipy.optimize import root

    q0, p0 = last_state(chosen, h)
    equations, rng = residual(chosen, h, q0, p0), np.random.default_rng(1)
    found: list[Any] = []
    for _ in range(STARTS):
        size = 10 ** rng.uniform(-1, 2)
        solved = root(equations, (q0 + size * rng.normal(size=(chosen.s, 2))).ravel(), tol=1e-12)
        close = np.abs(equations(solved.x)).max() < 1e-9 * np.abs(p0).max()
        if close and not any(np.allclose(solved.x, other, rtol=1e-5, atol=1e-5) for other in found):
            found.append(solved.x)
    return len(found)


def why_none(chosen: Galerkin, h: Fraction) -> str:
    """What is known of the roots of the failing step, in words."""
    sides = least_side(chosen, h)
    if sides is not None and sides[0] > sides[1]:
        return f"no root exists, since one side of its equation is at least {sides[0]:.1f} and the other {sides[1]:.1f}"
    count = roots_found(chosen, h)
    return f"{count or 'no'} root{'' if count == 1 else 's'} found from {STARTS} other starts"


def least_side(chosen: Galerkin, h: Fraction) -> tuple[float, float] | None:
    """For a step by Simpson's rule: the least value of the left hand side below, and the right hand side.

    With the values inside eliminated, the middle y of the step has to satisfy

        2y/h + βhk y/|y|³ = p₀ + 2q₀/h − (h/6) k q₀/|q₀|³ =: c,    β = 1/3 for s = 1, 1/12 for s ≥ 2,

    so that y points along c, and 2r/h + βhk/r² = |c| for r = |y|. The left hand side is least at r³ = βh²k, and there
    it is 3r/h. Where |c| is less, the step has no root.
    """
    if chosen.rule != lobatto(3):
        return None
    k, step, beta = get(KEPLER).params["k"], float(h), 1 / 3 if chosen.s == 1 else 1 / 12
    q0, p0 = last_state(chosen, h)
    c = p0 + 2 * q0 / step - step / 6 * k * q0 / np.linalg.norm(q0) ** 3
    return 3 / step * float(np.cbrt(beta * step**2 * k)), float(np.linalg.norm(c))
