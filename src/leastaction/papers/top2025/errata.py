"""Misprints, formulas wrong as read, and remarks, with evidence computed anew each time.

Formulas are checked on the double pendulum, whose mass depends on q, at an ordinary point or along the library's own
steps.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.integrate import integrate
from leastaction.papers.model import Erratum, Options, as_read, misprint, order, remark
from leastaction.papers.top2025 import formulas, tables
from leastaction.papers.top2025.figures import listed
from leastaction.papers.top2025.runs import MIDPOINT, RK4, SIMPSON, problem, run
from leastaction.problems import get

Array = NDArray[Any]

H = 0.1
POINT = (np.array([0.3, -0.7]), np.array([0.35, -0.6]), np.array([0.42, -0.52]))  # q_l, q_m, q
MOMENTA = (np.array([0.11, 0.05]), np.array([0.13, 0.08]))  # p_l, p


def _size(array: Any) -> float:
    return float(np.abs(array).max())


def _slot(i: int) -> Array:
    """∂L_d/∂q_l, ∂q_m or ∂q_r of (6) at POINT, i = 0, 1, 2."""
    s = formulas.double_pendulum()
    return formulas.derivative(
        lambda q: formulas.discrete_lagrangian(s, H, *(q if k == i else POINT[k] for k in range(3))), POINT[i]
    )


@misprint(
    "Equation (8)",
    "∂L_d/∂q_m = ⅓M(q_ℓ)g_ℓ − …, all four coefficients",
    "twice that, ⅔M(q_ℓ)g_ℓ − …, as (11) needs, for which half of it is added to (10)",
)
def half_derivative() -> str:
    ratio = formulas.equation_8(formulas.double_pendulum(), H, *POINT) / _slot(1)
    return (
        f"At a point of no special kind the printed expression is {ratio[0]:.12f} and {ratio[1]:.12f} times ∂L_d/∂q_m."
    )


@as_read(
    "Equations (9), (10), (12), (14)",
    "∂L_d/∂q_ℓ",
    "∂L_d/∂q_r where the momentum on the right is meant",
    "One index, ℓ against r, letters that are easily mistaken; but four times, and appendix B is read with the r.",
)
def right_end() -> str:
    printed = formulas.equation_10(formulas.double_pendulum(), H, *POINT)
    return (
        f"The right hand side of (10) differs from ∂L_d/∂q_r by {_size(printed - _slot(2)):.0e}, from "
        f"∂L_d/∂q_ℓ, as read, by {_size(printed - _slot(0)):.2f}. {_along_a_path()}"
    )


def _along_a_path() -> str:
    """The discrete Euler–Lagrange equations at the middle node of two steps of the library's."""
    s = formulas.double_pendulum()
    path = run("double-pendulum", SIMPSON, H, 2)
    q, mid = path.q, path(path.t[:-1] + H / 2)

    def D(i: int, k: int) -> Array:
        ends = [q[k], mid[k], q[k + 1]]
        return formulas.derivative(
            lambda z: formulas.discrete_lagrangian(s, H, *(z if j == i else ends[j] for j in range(3))), ends[i]
        )

    return (
        f"On two steps of Simpson's integrator the left side of (9) and (12) is {_size(D(0, 0) + D(0, 1)):.2f} as "
        f"read and {_size(D(2, 0) + D(0, 1)):.0e} with ∂L_d/∂q_r in the first term; p₁ differs from "
        f"(14) as read by {_size(path.p[1] - D(0, 0)):.2f} and from ∂L_d/∂q_r by {_size(path.p[1] - D(2, 0)):.0e}."
    )


@misprint("Appendix A, the sum", "weights 2/3, 4/3, 2/3", "weights 1/3, 4/3, 1/3, twice those of (27c)")
def sum_of_momenta() -> str:
    s, true = formulas.double_pendulum(), _slot(2) - _slot(0)
    printed = formulas.momentum_sum(s, H, *POINT, weights=(2 / 3, 4 / 3, 2 / 3))
    right = formulas.momentum_sum(s, H, *POINT, weights=(1 / 3, 4 / 3, 1 / 3))
    return (
        f"∂L_d/∂q_r − ∂L_d/∂q_ℓ = ({true[0]:.4f}, {true[1]:.4f}); as printed ({printed[0]:.4f}, {printed[1]:.4f}); "
        f"with 1/3, 4/3, 1/3 off by {_size(right - true):.0e}."
    )


@lru_cache(maxsize=1)
def _end_of_a_second() -> Array:
    """q of the double pendulum at t = 1, to round-off."""
    data = problem("double-pendulum")
    return integrate(data.system, "P6N6Q12Gau", data.q0, data.p0, h=0.01, steps=100).q[-1]


@misprint(
    "Appendix A, (27c) and F_q",
    "h/12 and h/6 (h²/12 and h²/6)",
    "h/24 and h/12 (h²/24 and h²/12), as in ∂F_q/∂q and as half of the sum",
)
def scheme_27c() -> str:
    data, s = problem("double-pendulum"), formulas.double_pendulum()
    steps = (25, 50, 100)
    errors: dict[bool, list[float]] = {}
    off = 0.0
    for printed in (True, False):
        errors[printed] = []
        for n in steps:
            scheme = formulas.PrintedScheme(s, 1 / n, 1 / 12, 1 / 6) if printed else formulas.PrintedScheme(s, 1 / n)
            q, p = data.q0, data.p0
            for _ in range(n):
                q, p, _ = scheme.step(q, p)
            errors[printed].append(_size(q - _end_of_a_second()))
            if not printed:
                off = max(off, _size(q - run("double-pendulum", SIMPSON, 1 / n, n).q[-1]))
    slopes = {k: [math.log2(a / b) for a, b in pairwise(e)] for k, e in errors.items()}
    return (
        f"Stepped over one second with h = 1/25, 1/50, 1/100, the printed (27) has the orders {listed(slopes[True])} "
        f"(error of q {errors[True][-1]:.1e} at the last); with h/24 and h/12, {listed(slopes[False])} "
        f"({errors[False][-1]:.1e}), and it is the library's Simpson to {off:.0e}."
    )


@as_read("Appendix A, ∂F_q/∂p", "−½ δ", "−(h/2) δ", "One letter; F_q has (h/2)p, and appendix B is read with the h.")
def newton_factor() -> str:
    s, data = formulas.double_pendulum(), problem("double-pendulum")
    scheme = formulas.PrintedScheme(s, H)
    x = np.concatenate([POINT[1], MOMENTA[1], POINT[2]])
    block = formulas.derivative(lambda z: scheme.residual(POINT[0], MOMENTA[0], z), x)[4:, 2:4]
    *_, good = scheme.step(data.q0, data.p0)
    *_, bad = scheme.step(data.q0, data.p0, scale_of_p=1 / H)
    count = f"{bad} iterations" if bad < 60 else "more than 60 iterations"
    return (
        f"With h = {H:g} the derivative of F_q is {block[0, 0]:.4f} δ. Newton's first step of the double pendulum "
        f"takes {good} iterations with −(h/2)δ, {count} with −½δ."
    )


@misprint(
    "Appendix A, Jacobian",
    "h ∂_δM_γβ(q_m) g_m^β in ∂F_qm/∂q; ∂_δM_αδ g^β in ∂F_q/∂q_m and ∂F_q/∂q, whose free indices do not fit",
    "h ∂_δM_γβ(q) g^β; ∂_γM_αδ g^α",
)
def jacobian() -> str:
    s = formulas.double_pendulum()
    x = np.concatenate([POINT[1], MOMENTA[1], POINT[2]])
    J = formulas.derivative(lambda z: formulas.PrintedScheme(s, H).residual(POINT[0], MOMENTA[0], z), x)
    true = {"∂F_qm/∂q": J[:2, 4:], "∂F_q/∂q_m": J[4:, :2], "∂F_q/∂q": J[4:, 4:]}
    printed, right = (formulas.jacobian_blocks(s, H, *POINT, printed=choice) for choice in (True, False))
    wrong = ", ".join(f"{name} {_size(printed[name] - true[name]) / _size(true[name]):.1e}" for name in true)
    return (
        f"Relative distance from the derivatives of F: {wrong}; with the indices put right at most "
        f"{max(_size(right[name] - true[name]) / _size(true[name]) for name in true):.0e}."
    )


def _midpoint_step() -> tuple[Array, Array, Array, Array]:
    path = run("double-pendulum", MIDPOINT, H, 2)
    return path.q[1], path.p[1], path.q[2], path.p[2]


@misprint("Appendix B, F", "second row −(h/2)(p + p_j)", "M(q_m)(q − q_j) − (h/2)(p + p_j), as in (28b)")
def midpoint_row() -> str:
    s = formulas.double_pendulum()
    left, p_left, right, p = _midpoint_step()
    printed, whole = (formulas.midpoint_second_row(s, H, left, p_left, right, p, M) for M in (False, True))
    return (
        f"As printed F_q does not depend on q at all, and after a step of the midpoint method it is "
        f"{_size(printed):.1e}, not zero; with M(q_m)(q − q_j) it is {_size(whole):.0e}."
    )


@as_read(
    "Appendix B, momenta",
    "p_{j+1} = −∂L_d/∂q_r",
    "p_{j+1} = +∂L_d/∂q_r",
    "One sign; the sentence before defines the momentum without it.",
)
def midpoint_sign() -> str:
    s = formulas.double_pendulum()
    left, _, right, p = _midpoint_step()
    slope = formulas.derivative(lambda z: formulas.midpoint_lagrangian(s, H, left, z), right)
    return f"After a step p = ({p[0]:.4f}, {p[1]:.4f}) and ∂L_d/∂q_r = ({slope[0]:.4f}, {slope[1]:.4f})."


def _energy_errors(method: str, mesh: int, lengths: tuple[int, ...]) -> dict[int, float]:
    return tables.errors("double-pendulum", method, mesh, lengths)["energy"]


@as_read(
    "Section 3.2, link lengths", "ℓ = g/ω₀", "ℓ = g/ω₀²", "One exponent, in one place; the numbers of Table 2 have it."
)
def rod_length() -> str:
    data = problem("double-pendulum")
    long = get("double-pendulum", l1="9.81/(2*pi)", l2="9.81/(2*pi)")
    wrong = []
    for mesh in tables.PENDULUM_MESHES:
        path = integrate(long.system, "simpson", long.q0, long.p0, h=1 / mesh, steps=mesh)
        energy = path.energy()
        wrong.append(_size(energy / energy[0] - 1))
    right = [_energy_errors(SIMPSON, mesh, (1,))[1] for mesh in tables.PENDULUM_MESHES]
    return (
        f"Simpson's energy errors over 1 s are {', '.join(f'{e:.2e}' for e in right)} with ℓ = g/ω₀² = "
        f"{data.params['l1']:.4f} m, as in Table 2 ({', '.join(tables.TABLE_2[1, SIMPSON][:3])}), but "
        f"{', '.join(f'{e:.2e}' for e in wrong)} with ℓ = g/ω₀ = {long.params['l1']:.4f} m."
    )


@misprint(
    "Table 2, T = 10³, RK4",
    "7.28·10⁻⁵, 2.11·10⁻⁶, 6.25·10⁻⁸, the errors of T = 1 again",
    "7.42·10⁻², 3.22·10⁻³, 1.03·10⁻⁴, which have the order printed in the row",
)
def copied_row() -> str:
    found = tuple(_energy_errors(RK4, mesh, (1, 10, 100, 1000))[1000] for mesh in tables.PENDULUM_MESHES)
    printed = tuple(float(e) for e in tables.TABLE_2[1000, RK4][:3])
    same = "are" if tables.TABLE_2[1000, RK4][:3] == tables.TABLE_2[1, RK4][:3] else "are not"
    return (
        f"Computed: {', '.join(f'{e:.2e}' for e in found)}, of order {order(found):.2f}, the one printed "
        f"({tables.TABLE_2[1000, RK4][3]}). The errors printed {same} those printed for T = 1 s; their order would be "
        f"{order(printed):.2f}."
    )


@as_read(
    "Tables 4 and 5, first column, and section 4.2.2",
    "h = 0.05, in all three places",
    "h = 0.02",
    "One digit; but the reading would have had to mistake it alike in three places.",
)
def mislabelled_column() -> str:
    at = {
        mesh: tables.errors("lagrange-top", SIMPSON, mesh, (1,))["nutation"][1] for mesh in (20, tables.TOP_MESHES[0])
    }
    cells = [cell for table in (tables.TOP_NUTATION, tables.TOP_ENERGY) for cell in table.cells(Options())]
    first = [cell.agrees for cell in cells if cell.column == tables.TOP_COLUMNS[0]]
    orders = [cell.agrees for cell in cells if cell.column == "order"]
    return (
        f"Simpson's nutation error over one period is {at[20]:.2e} with h = 0.05 and {at[50]:.2e} with h = 0.02; "
        f"printed {tables.TABLE_4[1, SIMPSON][0]}. At h = 0.02, {sum(first)} of the {len(first)} errors of that column "
        f"agree, and {sum(orders)} of the {len(orders)} printed orders are ½ log₂(e₁/e₃), as for a step halved twice."
    )


@as_read("Equation (20)", "(2Ic + p_ψ²)/(6Im)", "(2Ic + p_ψ²)/(6I²m)", "One exponent.")
def shift() -> str:
    """(20) at t = 0, where ℘(ω₃) = e₃, the least of the roots of 4z³ − g₂z − g₃."""
    data = problem("lagrange-top")
    c = data.params
    p_phi, _, p_psi = data.p0
    I, m, x0 = c["I"], c["m"] * c["g"] * c["l"] / c["I"], math.cos(data.q0[1])
    energy = (p_phi - p_psi * x0) ** 2 / (2 * I * (1 - x0**2)) + I * m * x0
    # x'² = f(x), x = cos θ; x = 2z/m + shift turns f into the cubic of ℘
    f = np.array([2 * m, -2 * energy / I - (p_psi / I) ** 2, -2 * m + 2 * p_phi * p_psi / I**2, 0.0])
    f[3] = 2 * energy / I - (p_phi / I) ** 2
    right = (2 * I * energy + p_psi**2) / (6 * I**2 * m)
    printed = (2 * I * energy + p_psi**2) / (6 * I * m)
    e3 = (min(np.roots(f).real) - right) * m / 2
    return (
        f"At t = 0 (20) as read gives cos θ = {2 / m * e3 + printed:.4f}, with 6I²m it gives "
        f"{2 / m * e3 + right:.12f}; cos θ₀ = {x0:g}."
    )


@as_read("Equation (24)", "A = (2π)²/t̄", "A = (2π)²/t̄²", "One exponent; with t̄ = 1 the number 4π² is right either way.")
def frequency() -> str:
    """The same motion, twice as slow: t̄ = 2, all angular velocities halved."""
    name = "lagrange-top-cusps-reduced"
    t = np.linspace(0, 1, 101)
    fast = problem(name).exact(t)[0]
    slow = {A: get(name, A=A, spin="pi").exact(2 * t)[0] for A in ("4*pi**2/2", "4*pi**2/4")}
    printed, right = (_size(q - fast) for q in slow.values())
    return (
        f"With t̄ = 2 s and the spin halved the motion should be the same, half as fast. With A = (2π)²/t̄ the "
        f"nutation is off by {printed:.2f} rad, with (2π)²/t̄² by {right:.0e}. (For t̄ = 1 s both give 4π²; the "
        f"nutation takes {problem(name).period:.4f} s, so t̄ is not its period.)"
    )


@as_read(
    "Section 4.3, before (22)",
    "equation (18c)",
    "equation (18b)",
    "One letter; the list above (21) has (18c) where it is right.",
)
def which_equation() -> str:
    data = problem("lagrange-top-cusps")
    q, p = data.exact(0.3)
    v = data.system.velocity(q, p)
    printed = data.reduced.rhs(np.array([q[0], q[1], v[1]]))[2]
    a = data.system.acceleration(q, v)[1]
    return (
        f"At t = 0.3 s on the motion of Table 6, (22) gives {printed:.10f} and (18b) {a:.10f} rad/s²; (18c) has no θ̈."
    )


@misprint(
    "Figure 6, caption",
    "θ the precession, φ the nutation",
    "θ the nutation, φ the precession, as everywhere else in the text",
)
def named_angles() -> str:
    data = problem("lagrange-top")
    q, _ = data.exact(np.linspace(0, 10 * data.period, 4001))
    return (
        f"Over ten periods of the motion of Table 3 θ swings between {q[:, 1].min():.3f} and {q[:, 1].max():.3f} rad, "
        f"while φ advances, by {np.diff(q[:, 0]).min():.4f} rad or more per 1/400 of a period, to "
        f"{q[-1, 0]:.1f} rad: θ is the nutation, φ the precession."
    )


@remark(
    "Figure 7, caption; Table 3, caption",
    "a motion of the looping class, with loops",
    "textbooks call a motion looping if its precession turns back; here it never does. The path crosses itself in "
    "that it winds around the pole",
)
def not_loops() -> str:
    data = problem("lagrange-top")
    q, p = data.exact(np.linspace(0, data.period, 2001))
    rate = data.system.velocity(q, p)[:, 0]
    return (
        f"φ̇ = (p_φ − p_ψ cos θ)/(I sin²θ) changes its sign only if p_φ/p_ψ is a cosine between the turning points; "
        f"here p_φ/p_ψ = {p[0, 0] / p[0, 2]:.6f}, and φ̇ stays between {rate.min():.2f} and {rate.max():.2f} rad/s."
    )


@remark(
    "Figure 4, caption; section 4.2.2 on energy",
    "RK4's rate exceeds four because errors are high at large steps",
    "it exceeds four at small steps, too, because its energy drifts in proportion to h⁵t",
)
def rate_of_rk4() -> str:
    meshes = [tables.PENDULUM_MESHES[2] * 2**k for k in range(4)]
    e = [_energy_errors(RK4, mesh, (10, 100)) for mesh in meshes]
    slopes = [math.log2(a[10] / b[10]) for a, b in pairwise(e)]
    return (
        f"For the double pendulum over 10 s the orders are {listed(slopes)} from h = 0.01 to {1 / meshes[-1]:g}, "
        f"where the error is {e[-1][10]:.0e}; and over 100 s the error is {e[-1][100] / e[-1][10]:.1f} times that over "
        "10 s: energy drifts in proportion to h⁵t, and the drift outgrows the part in h⁴ that does not add up."
    )


@as_read(
    "Below (20), the constant c",
    "(p_φ − p_ψ cos θ₀)²/(2I sin²θ)",
    "(p_φ − p_ψ cos θ₀)²/(2I sin²θ₀)",
    "One index; the numerator has θ₀, and only with it c is a constant.",
)
def not_constant() -> str:
    """c of (20) with θ in the denominator, along the exact motion."""
    data = problem("lagrange-top")
    c = data.params
    q, p = data.exact(np.linspace(0, data.period, 201))
    I, m, x0 = c["I"], c["m"] * c["g"] * c["l"] / c["I"], math.cos(data.q0[1])
    top = (p[0, 0] - p[0, 2] * x0) ** 2
    read = top / (2 * I * np.sin(q[:, 1]) ** 2) + I * m * x0
    right = top / (2 * I * math.sin(data.q0[1]) ** 2) + I * m * x0
    energy = data.system.energy(q[0], p[0]) - p[0, 2] ** 2 / (2 * c["I3"])
    return (
        f"Along the motion of Table 3, c with sin²θ goes from {read.min():.6f} to {read.max():.6f} J; with sin²θ₀ it "
        f"is {right:.12f} J, the energy without the spin's part p_ψ²/(2I₃), which is {energy:.12f} J."
    )


@as_read(
    "Section 2.3, last sentence",
    "detailed expressions are provided in Appendix B",
    "in Appendix A, as the introduction says",
    "One letter, though a capital in a sentence is seldom misread.",
)
def which_appendix() -> str:
    """Appendix A has the three equations of the scheme, appendix B two, without the middle."""
    s = formulas.double_pendulum()
    simpson = run("double-pendulum", SIMPSON, H, 1)
    x = np.concatenate([simpson(H / 2), simpson.p[1], simpson.q[1]])
    from_a = _size(formulas.PrintedScheme(s, H).residual(simpson.q[0], simpson.p[0], x))
    from_b = _size(formulas.midpoint_second_row(s, H, simpson.q[0], simpson.p[0], simpson.q[1], simpson.p[1], True))
    return (
        f"A step of Simpson's integrator solves the equations of appendix A, put right, to {from_a:.0e}; in those of "
        f"appendix B it leaves {from_b:.0e}: they are the midpoint method's, as the introduction says."
    )


ERRATA = [entry for entry in tuple(globals().values()) if isinstance(entry, Erratum)]
