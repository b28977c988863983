"""The paper's formulas (6)–(14), appendix A and appendix B, as printed and as they should be, on the double pendulum.

They are written out in NumPy from M(q), V(q) and their derivatives, without the library's own tracing. All functions
take complex numbers, so that `derivative` is exact to round-off (the complex step).

    g_l = (−3q_l + 4q_m − q)/h,    g_m = (q − q_l)/h,    g = (q_l − 4q_m + 3q)/h
    L_d = (h/2) Σ b M(q_i) g_i g_i − h Σ b V(q_i),    b = 1/6, 2/3, 1/6                        (6)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.papers.top2025.runs import problem

Array = NDArray[Any]

_STEP = 1e-30


def derivative(f: Callable[[Array], Any], x: Array) -> Array:
    """∂f_i/∂x_j by complex steps: no difference is taken, so no digits cancel."""
    columns = [np.imag(f(x + 1j * _STEP * e)) / _STEP for e in np.eye(len(x))]
    return np.stack(columns, axis=-1)


@dataclass(frozen=True)
class PendulumTerms:
    """M, V and derivatives of the double pendulum; DM[γ, α, β] = ∂_γ M_αβ, DDM[γ, δ, α, β] = ∂_γ ∂_δ M_αβ."""

    a: float  # (m₁ + m₂) l₁²
    b: float  # m₂ l₁ l₂
    c: float  # m₂ l₂²
    u: float  # (m₁ + m₂) g l₁
    w: float  # m₂ g l₂

    def M(self, q: Array) -> Array:
        off = self.b * np.cos(q[0] - q[1])
        return np.array([[self.a, off], [off, self.c]])

    def DM(self, q: Array) -> Array:
        slope = -self.b * np.sin(q[0] - q[1]) * np.array([[0, 1], [1, 0]])
        return np.stack([slope, -slope])

    def DDM(self, q: Array) -> Array:
        bend = -self.b * np.cos(q[0] - q[1]) * np.array([[0, 1], [1, 0]])
        return np.stack([np.stack([bend, -bend]), np.stack([-bend, bend])])

    def V(self, q: Array) -> Any:
        return -self.u * np.cos(q[0]) - self.w * np.cos(q[1])

    def DV(self, q: Array) -> Array:
        return np.array([self.u * np.sin(q[0]), self.w * np.sin(q[1])])

    def K(self, q: Array) -> Array:
        return np.diag([self.u * np.cos(q[0]), self.w * np.cos(q[1])])


def double_pendulum() -> PendulumTerms:
    """With the data of Table 1."""
    p = problem("double-pendulum").params
    m = p["m1"] + p["m2"]
    return PendulumTerms(
        m * p["l1"] ** 2,
        p["m2"] * p["l1"] * p["l2"],
        p["m2"] * p["l2"] ** 2,
        m * p["g"] * p["l1"],
        p["m2"] * p["g"] * p["l2"],
    )


def velocities(h: float, left: Array, mid: Array, right: Array) -> tuple[Array, Array, Array]:
    """g_l, g_m, g."""
    return (-3 * left + 4 * mid - right) / h, (right - left) / h, (left - 4 * mid + 3 * right) / h


def discrete_lagrangian(s: PendulumTerms, h: float, left: Array, mid: Array, right: Array) -> Any:
    """L_d, equation (6)."""
    total = 0.0
    for b, q, g in zip((1 / 6, 2 / 3, 1 / 6), (left, mid, right), velocities(h, left, mid, right), strict=True):
        total = total + h * b * (g @ s.M(q) @ g / 2 - s.V(q))
    return total


def equation_8(s: PendulumTerms, h: float, left: Array, mid: Array, right: Array) -> Array:
    """∂L_d/∂q_m as printed."""
    gl, gm, g = velocities(h, left, mid, right)
    inner = s.DM(mid) @ gm @ gm
    return s.M(left) @ gl / 3 - s.M(right) @ g / 3 + h / 6 * inner - h / 3 * s.DV(mid)


def equation_10(s: PendulumTerms, h: float, left: Array, mid: Array, right: Array) -> Array:
    """The right hand side of (10)."""
    gl, gm, g = velocities(h, left, mid, right)
    return (
        -s.M(left) @ gl / 6
        + 2 / 3 * s.M(mid) @ gm
        + s.M(right) @ g / 2
        + h / 12 * s.DM(right) @ g @ g
        - h / 6 * s.DV(right)
    )


def momentum_sum(
    s: PendulumTerms, h: float, left: Array, mid: Array, right: Array, weights: tuple[float, float, float]
) -> Array:
    """p_{j+1} + p_j of appendix A, with these weights of M g."""
    gl, gm, g = velocities(h, left, mid, right)
    a, b, c = weights
    return (
        a * s.M(left) @ gl
        + b * s.M(mid) @ gm
        + c * s.M(right) @ g
        - h / 12 * s.DM(left) @ gl @ gl
        + h / 12 * s.DM(right) @ g @ g
        + h / 6 * s.DV(left)
        - h / 6 * s.DV(right)
    )


@dataclass(frozen=True)
class PrintedScheme:
    """Appendix A: F = (F_qm, F_p, F_q) of x = (q_m, p, q); the coefficients of ∂M and ∂V in F_q are h² times these."""

    s: PendulumTerms
    h: float
    mass: float = 1 / 24  # printed 1/12
    force: float = 1 / 12  # printed 1/6

    def residual(self, left: Array, p_left: Array, x: Array) -> Array:
        s, h = self.s, self.h
        mid, p, right = np.split(x, 3)
        gl, gm, g = velocities(h, left, mid, right)
        inner, start, end = s.DM(mid) @ gm @ gm, s.DM(left) @ gl @ gl, s.DM(right) @ g @ g
        F_qm = h * s.M(right) @ g - h * s.M(left) @ gl + h**2 * s.DV(mid) - h**2 / 2 * inner
        F_p = (
            h * (p - p_left)
            + h**2 * (s.DV(left) / 6 + 2 / 3 * s.DV(mid) + s.DV(right) / 6)
            - h**2 / 2 * (start / 6 + 2 / 3 * inner + end / 6)
        )
        F_q = (
            h * (s.M(left) @ gl / 6 + 2 / 3 * s.M(mid) @ gm + s.M(right) @ g / 6)
            - h / 2 * (p + p_left)
            + h**2 * self.mass * (end - start)
            + h**2 * self.force * (s.DV(left) - s.DV(right))
        )
        return np.concatenate([F_qm, F_p, F_q])

    def step(self, left: Array, p_left: Array, scale_of_p: float = 1.0, most: int = 60) -> tuple[Array, Array, int]:
        """q, p and the number of Newton's iterations from (q_j, p_j, q_j); ∂F_q/∂p is multiplied by `scale_of_p`."""
        x, n = np.concatenate([left, p_left, left]), len(left)
        iterations, change = 0, np.array([np.inf])
        while iterations < most and np.abs(change).max() > 1e-13:
            J = derivative(lambda z: self.residual(left, p_left, z), x)
            J[2 * n :, n : 2 * n] *= scale_of_p
            change = np.linalg.solve(J, self.residual(left, p_left, x))
            x = x - change
            iterations += 1
        return x[2 * n :], x[n : 2 * n], iterations


def jacobian_blocks(
    s: PendulumTerms, h: float, left: Array, mid: Array, right: Array, printed: bool
) -> dict[str, Array]:
    """∂F_qm/∂q, ∂F_q/∂q_m and ∂F_q/∂q of appendix A, as printed or with the slips removed.

    The printed ∂_δ M_αδ g^β has free indices α, β, δ where γ, δ are wanted; read as ∂_δ M_γα g^α it makes sense.
    """
    gl, gm, g = velocities(h, left, mid, right)

    def by_row(q: Array, v: Array) -> Array:  # ∂_γ M_αδ v^α
        return np.einsum("cad,a->cd", s.DM(q), v)

    def by_column(q: Array, v: Array) -> Array:  # ∂_δ M_γβ v^β
        return np.einsum("dcb,b->cd", s.DM(q), v)

    slip = by_column if printed else by_row
    at, v = (mid, gm) if printed else (right, g)
    bend = np.einsum("dcab,a,b->cd", s.DDM(right), g, g)
    return {
        "∂F_qm/∂q": s.M(left) + 3 * s.M(right) - h * by_row(mid, gm) + h * by_column(at, v),
        "∂F_q/∂q_m": 2 / 3 * (s.M(left) - s.M(right))
        + 2 * h / 3 * by_column(mid, gm)
        - h / 3 * slip(left, gl)
        - h / 3 * slip(right, g),
        "∂F_q/∂q": -s.M(left) / 6
        + 2 / 3 * s.M(mid)
        + s.M(right) / 2
        + h**2 / 24 * bend
        - h**2 / 12 * s.K(right)
        + h / 6 * by_column(right, g)
        + h / 12 * by_row(left, gl)
        + h / 4 * slip(right, g),
    }


def midpoint_lagrangian(s: PendulumTerms, h: float, left: Array, right: Array) -> Any:
    """L_d of appendix B."""
    mid, g = (left + right) / 2, (right - left) / h
    return h * (g @ s.M(mid) @ g / 2 - s.V(mid))


def midpoint_second_row(
    s: PendulumTerms, h: float, left: Array, p_left: Array, right: Array, p: Array, M: bool
) -> Array:
    """F_q of appendix B, (28b) times h, with the term of M or, as printed, without."""
    row = -h / 2 * (p + p_left)
    return s.M((left + right) / 2) @ (right - left) + row if M else row
