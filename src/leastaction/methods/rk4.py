"""The classical Runge–Kutta method of order four: the baseline that is not symplectic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Form = Literal["hamilton", "lagrange"]


@dataclass(frozen=True)
class RungeKutta4:
    """RK4 on Hamilton's equations, state (q, p), or on the Euler–Lagrange equations, state (q, v).

        hamilton:  q̇ = v(q, p),  ṗ = ∂L/∂q(q, v)
        lagrange:  q̇ = v,  v̇ = L_vv⁻¹ (L_q − L_vq v − L_vt)

    The two forms differ for a configuration-dependent mass; the papers use both.
    """

    form: Form = "hamilton"

    @property
    def name(self) -> str:
        return "rk4" if self.form == "hamilton" else "rk4-lagrange"

    @property
    def order(self) -> int:
        return 4

    def __repr__(self) -> str:
        return f"rk4(form={self.form!r})"


def rk4(form: Form = "hamilton") -> RungeKutta4:
    """The classical Runge–Kutta method on (q, p) (`form="hamilton"`) or on (q, v) (`form="lagrange"`)."""
    if form not in get_args(Form):
        raise ValueError(f"form must be 'hamilton' or 'lagrange'; got {form!r}")
    return RungeKutta4(form)
