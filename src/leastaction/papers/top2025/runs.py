"""The runs behind the tables and figures: double pendulum, top with loops, top with cusps.

The paper's implicit midpoint method is the variational one of its appendix B,

    L_d = h L(q̄, g),    q̄ = (q_k + q_{k+1})/2,    g = (q_{k+1} − q_k)/h

With p̄ = (p_k + p_{k+1})/2 it says p̄ = ∂L/∂v(q̄, g) and p_{k+1} − p_k = h ∂L/∂q(q̄, g), which is the midpoint rule on
Hamilton's equations: the two are one method, also when the mass depends on q.

The paper's RK4 steps the state (q, p) of the double pendulum and the state (q, q̇) of the top: the printed errors show
it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import measuring
from leastaction.integrate import integrate
from leastaction.numbers.precision import mpmath_digits
from leastaction.problems import get
from leastaction.problems.problem import Problem
from leastaction.results.path import Path

MIDPOINT, RK4, SIMPSON = METHODS = ("Implicit midpoint", "Explicit RK4", "Simpson")
PAPER_DIGITS = 64


@lru_cache(maxsize=4)
def problem(name: str) -> Problem:
    """A problem of the catalogue."""
    return get(name)


def library_name(method: str, name: str) -> str:
    """What the library calls the paper's method on this problem."""
    return {MIDPOINT: "midpoint", SIMPSON: "simpson", RK4: "rk4" if name == "double-pendulum" else "rk4-lagrange"}[
        method
    ]


@measuring()
def run(
    name: str, method: str, h: Any, steps: int, every: int = 1, digits: int | None = None,
    start: tuple[Any, Any] | None = None,
) -> Path:  # fmt: skip
    """One run from the problem's own data, or from q and p, in float64 or with so many digits."""
    data = problem(name)
    q0, p0 = start or (data.exact_q0, data.exact_p0)
    return integrate(
        data.system,
        library_name(method, name),
        q0,
        p0,
        h=h,
        steps=steps,
        params=data.exact_params,
        every=every,
        digits=digits,
    )


def nutation_step(name: str, mesh: int) -> Any:
    """The nutation period divided by `mesh`, to more digits than any run has."""
    with mpmath_digits(2 * PAPER_DIGITS):
        return problem(name).data(2 * PAPER_DIGITS).period / mesh


def energy_error(path: Path) -> NDArray[Any]:
    """e_H = (H − H₀)/H₀ at every stored time."""
    H = path.energy()
    with path.reals.working():
        return np.asarray((H - H[0]) / H[0], float)


def nutation_error(path: Path, name: str) -> NDArray[Any]:
    """e_θ = (θ − θ_ex)/θ_ex at every stored time, θ_ex by the exact solution."""
    exact = problem(name).exact(path.t, digits=path.digits)[0][:, 1]
    with path.reals.working():
        return np.asarray((path.q[:, 1] - exact) / exact, float)
