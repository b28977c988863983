"""Formulas of the text that are wrong as read, each by one mark, with computed evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.analysis import tangent
from leastaction.integrate import integrate
from leastaction.papers.model import Kind, erratum
from leastaction.papers.pendulum2023.results import problem


def force(q: Any) -> Any:
    """V' = m ω² sin q, m = 1."""
    return problem().params["omega"] ** 2 * np.sin(q)


def stiffness(q: Any) -> Any:
    """V'' = m ω² cos q, m = 1."""
    return problem().params["omega"] ** 2 * np.cos(q)


def simpson_lagrangian(q_l: Any, q_m: Any, q_r: Any, h: float) -> Any:
    """L_S of (13) to (15)."""
    g_l, g_m, g_r = (-3 * q_l + 4 * q_m - q_r) / h, (q_r - q_l) / h, (q_l - 4 * q_m + 3 * q_r) / h
    V = [problem().params["omega"] ** 2 * (1 - np.cos(q)) for q in (q_l, q_m, q_r)]
    return h / 12 * (g_l**2 + 4 * g_m**2 + g_r**2) - h / 6 * (V[0] + 4 * V[1] + V[2])


def newmark_derivative(h: float, curvature: Any) -> Any:
    """A⁻¹B of (10) for the first step, in the order (p, q), with this function as V''."""
    path = integrate(problem().system, "newmark", problem().q0, problem().p0, h=h, steps=1)
    c = curvature(path.q.mean())
    A, B = np.array([[1, h / 2 * c], [-h / 2, 1]]), np.array([[1, -h / 2 * c], [h / 2, 1]])
    return np.linalg.solve(A, B)


@erratum(
    Kind.AS_READ,
    "section 3, between (9) and (10), definition of V″_{j+1/2}",
    "V″_{j+1/2} = ∂V/∂q at q_{j+1/2}",
    "V″_{j+1/2} = ∂²V/∂q² at q_{j+1/2}",
    "Two exponents 2 are missing, of one symbol; section 4 has both in the definition of V″_j.",
)
def second_derivative() -> str:
    """(10) with V'' as read, and with the second derivative, against the step's exact derivative."""
    h = 0.1
    exact = tangent(problem().system, "newmark", problem().q0, problem().p0, h).state[::-1, ::-1]  # (p, q)
    printed, right = (np.abs(newmark_derivative(h, c) - exact).max() for c in (force, stiffness))
    return (
        f"For the first step with h = {h:g} s, A⁻¹B differs from the exact derivative of Newmark's step by "
        f"{printed:.2f} with ∂V/∂q, by {right:.0e} with ∂²V/∂q². The area is preserved either way, since "
        "det A = det B whatever V″ is."
    )


def middle_derivatives(q_l: float = 1.5, q_m: float = 1.45, q_r: float = 1.3, h: float = 0.1) -> tuple[float, ...]:
    """∂L_S/∂q_m: exact (complex step), by the first expression as read, and by the same with the other sign."""
    exact = np.imag(simpson_lagrangian(q_l, q_m + 1e-30j, q_r, h)) / 1e-30
    g_l, g_r = (-3 * q_l + 4 * q_m - q_r) / h, (q_l - 4 * q_m + 3 * q_r) / h
    return (float(exact), *(float(h / 6 * 4 / h * (g_l + s * g_r) - 2 / 3 * h * force(q_m)) for s in (1, -1)))


@erratum(
    Kind.AS_READ,
    "section 4, between (16) and (17), first expression of ∂L_S/∂q_m",
    "(mh/6) (g_l 4/h + g_r 4/h) − (2/3) h V′_m",
    "(mh/6) (g_l 4/h − g_r 4/h) − (2/3) h V′_m, since ∂g_r/∂q_m = −4/h",
    "One sign; the line above it has ∂g_r/∂q_m = −4/h, and the expressions after it are right.",
)
def middle_sign() -> str:
    exact, printed, right = middle_derivatives()
    return (
        f"At q_l = 1.5, q_m = 1.45, q_r = 1.3, with h = 0.1 s, ∂L_S/∂q_m = {exact:.6f}; the expression as read gives "
        f"{printed:.6f}, with the minus sign {right:.6f}. The expressions that follow it are right."
    )


def discrete_actions(steps: int) -> Any:
    """L_S of each step of Simpson's scheme over half a period."""
    h = problem().period / 2 / steps
    path = integrate(problem().system, "simpson", problem().q0, problem().p0, h=h, steps=steps)
    return simpson_lagrangian(path.q[:-1, 0], path(path.t[:-1] + h / 2)[:, 0], path.q[1:, 0], h)


def exact_action() -> float:
    """∫ L dt = ∫ (p²/m − H) dt over half a period, the period of p²: the trapezoidal rule leaves only round-off."""
    t = np.linspace(0, problem().period / 2, 101)
    _, p = problem().exact(t)
    energy = problem().params["omega"] ** 2 * (1 - np.cos(problem().q0[0]))
    return float(np.trapezoid(p[:, 0] ** 2 - energy, t))


@erratum(
    Kind.AS_READ,
    "sections 3 and 4, the sums S_d and Σ_d over steps",
    "from j = 1 to N − 1",
    "from j = 0: N steps from q₀ to q_N",
    "One digit, in two sums. The quadratic paper, by the same two authors and a third, has the same sums in both "
    "versions of its text: that speaks for the print.",
)
def action_sum() -> str:
    text = "; ".join(
        f"N = {n}: {found.sum():.6f} from j = 0, {found[1:].sum():.6f} from j = 1"
        for n, found in ((n, discrete_actions(n)) for n in (10, 100))
    )
    return f"The action of the exact motion over half a period is {exact_action():.6f}. Simpson's sums, {text}."


@erratum(
    Kind.AS_READ,
    "section 4, below (18), second line of p_r",
    "(m/6) [… + (1/h)(q_r − q_l) + …]",
    "(m/6) [… + (4/h)(q_r − q_l) + …]",
    "One digit; the lines before and after it need the 4.",
)
def right_momentum() -> str:
    """The coefficients of q_l, q_m, q_r in 6h p_r/m + …, from the line before, as read and with 4/h."""
    g_l, g_m, g_r = np.array([-3, 4, -1]), np.array([-1, 0, 1]), np.array([1, -4, 3])
    read, right = (-g_l + k * g_m + 3 * g_r for k in (1, 4))
    h, q = 0.1, np.array([1.5, 1.45, 1.3])
    exact = np.imag(simpson_lagrangian(q[0], q[1], q[2] + 1e-30j, h)) / 1e-30 + h / 6 * force(q[2])
    values = [float(c @ q) / (6 * h) for c in (read, right)]
    return (
        f"The bracket is {_listed(read)} times (q_l, q_m, q_r)/h as read, {_listed(right)} with 4/h; the third line "
        f"has 2, −16, 14. At q_l = 1.5, q_m = 1.45, q_r = 1.3 with h = 0.1 s, ∂L_S/∂q_r + (h/6)V′_r = {exact:.6f}; the "
        f"second line is {values[0]:.6f} as read, {values[1]:.6f} with 4/h."
    )


def _listed(coefficients: Any) -> str:
    return ", ".join(str(int(c)).replace("-", "−") for c in coefficients)


ERRATA = [second_derivative, middle_sign, right_momentum, action_sum]
