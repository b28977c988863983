"""Misprints and remarks, with evidence computed anew each time, on the double pendulum of Table 1 with h = 0.1 t̄.

Every entry stands in both versions of the text, the authors' and the journal's, so that no entry is a fault of the
reading; the numbers of equations are those of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.analysis.stability import stability
from leastaction.linear import simpson_first, simpson_second
from leastaction.papers.model import Erratum, misprint, remark
from leastaction.papers.quadratic2024 import tables

Array = NDArray[Any]

H = 0.1
BOTH = "Both versions of the text have it."
O, I = np.zeros((2, 2)), np.eye(2)
J = np.block([[O, -I], [I, O]])


def _size(array: Any) -> float:
    return float(np.abs(array).max())


def _misprint(place: str, says: str, should: str) -> Callable[[Callable[[], str]], Erratum]:
    return misprint(place, says, should, BOTH)


def _remark(place: str, says: str, should: str) -> Callable[[Callable[[], str]], Erratum]:
    return remark(place, says, should, BOTH)


def discrete_actions(mesh: int) -> Array:
    """L_h of the single steps of Simpson's scheme over one t̄, from the unnumbered formula below (16)."""
    M, K, h = tables.system().M, tables.system().K, 1 / mesh
    path = tables.run("Simpson", h, mesh)
    l, m, r = path.q[:-1], path(path.t[:-1] + h / 2), path.q[1:]
    g_l, g_m, g_r = (-3 * l + 4 * m - r) / h, (r - l) / h, (l - 4 * m + 3 * r) / h

    def quadrature(A: Array, left: Array, middle: Array, right: Array) -> Array:
        values = [((x @ A) * x).sum(axis=1) / 2 for x in (left, middle, right)]
        return np.asarray(h * (values[0] + 4 * values[1] + values[2]) / 6)

    return quadrature(M, g_l, g_m, g_r) - quadrature(K, l, m, r)


@_misprint("(4) and (16)", "the sum over steps from j = 1 to N − 1", "from j = 0: N steps from q₀ to q_N")
def action_sum() -> str:
    q, p = tables.exact(1.0)
    action = float(q @ p - tables.Q0 @ tables.P0) / 2  # ∫ L dt = ½ [q·p] along a motion of a quadratic Lagrangian
    parts = [(mesh, discrete_actions(mesh)) for mesh in (10, 100)]
    text = "; ".join(
        f"N = {mesh}: {steps.sum():.6f} from j = 0, {steps[1:].sum():.6f} from j = 1" for mesh, steps in parts
    )
    return f"The action of the exact motion over one t̄ is ½[q·p] = {action:.6f}. Simpson's sums, {text}."


@_misprint("(27)", "A_σ (q_{j+½}, η_{j+1}) = B_σ η_{j+1}", "B_σ η_j on the right, as in (29)")
def first_variant() -> str:
    scheme = simpson_first(tables.system().M, tables.system().K, H)
    path = tables.run("Simpson", H, 1)
    eta = [np.concatenate([path.p[j], path.q[j]]) for j in (0, 1)]
    left = scheme.A @ np.concatenate([path(H / 2), eta[1]])
    return (
        "On the first step of Simpson's scheme A_σ (q_½, η₁) differs from B_σ η₁ by "
        f"{_size(left - scheme.B @ eta[1]):.2f} and from B_σ η₀ by {_size(left - scheme.B @ eta[0]):.0e}."
    )


@_misprint(
    "Proof of Proposition 1, second line",
    "A⁻ᵀJA⁻¹ = S = (0, Z⁻¹; −Z⁻¹, 0)",
    "(0, −Z⁻¹; Z⁻¹, 0); the lines after it are right",
)
def proposition_1() -> str:
    scheme = simpson_second(tables.system().M, tables.system().K, H)
    A, B = np.linalg.inv(scheme.A), scheme.B
    middle = A.T @ J @ A
    printed = np.block([[O, scheme.xi], [-scheme.xi, O]])
    return (
        f"For Simpson's scheme A⁻ᵀJA⁻¹ differs from the printed matrix by {_size(middle - printed):.2f}, from its "
        f"negative by {_size(middle + printed):.0e}; with the printed one BᵀSB is −J, not J: BᵀSB + J is "
        f"{_size(B.T @ printed @ B + J):.0e}."
    )


@_misprint(
    "Below (38)",
    "|ψ|²/m ≤ ψᵀMψ ≤ |ψ|²/μ and |ψ|²/k ≤ ψᵀKψ ≤ |ψ|²/κ",
    "M⁻¹ and K⁻¹ in place of M and K, as (39) needs; φ and ψ are any vectors, not eigenvectors",
)
def inverses() -> str:
    words = []
    for name, A in (("M", tables.system().M), ("K", tables.system().K)):
        low, high = np.linalg.eigvalsh(A)[[0, -1]]
        words.append(
            f"{name}'s eigenvalues are {low:.4f} and {high:.4f}, and the bounds printed for ψᵀ{name}ψ/|ψ|² are "
            f"{1 / high:.2f} and {1 / low:.2f}, the eigenvalues of {name}⁻¹"
        )
    return "; ".join(words) + "."


@_misprint(
    "Below (40)",
    "k/μ is the largest eigenvalue of M⁻¹K, k/μ = ω²_max",
    "k/μ ≥ ω²_max; 0 < ω_max h < 2√2 is another condition than (40), weaker and still sufficient",
)
def largest_frequency() -> str:
    bound = np.linalg.eigvalsh(tables.system().K)[-1] / np.linalg.eigvalsh(tables.system().M)[0]
    omega = tables.frequencies()[0]
    limit = float(stability("simpson")[0].upper)
    M, K = tables.system().M, tables.system().K

    def radius(h: float) -> float:
        return float(np.abs(np.linalg.eigvals(simpson_second(M, K, h).Phi)).max())

    edge = limit / omega
    return (
        f"k/μ = {bound / tables.OMEGA_0**2:.4f} ω₀², but ω²_max = {omega**2 / tables.OMEGA_0**2:.4f} ω₀²: (40) allows "
        f"h < {math.sqrt(8 / bound):.4f} t̄, while ω_max h < 2√2 allows h < {edge:.4f} t̄. The latter is sharp: the "
        f"spectral radius of Φ_s is {radius(0.999 * edge):.10f} at h a thousandth below it and "
        f"{radius(1.001 * edge):.2f} a thousandth above."
    )


@_misprint("Proof of Proposition 7", "p_{j+1} + X q_{j+1} = p_j − Y q_j", "Y for X on the left")
def proposition_7() -> str:
    scheme = simpson_second(tables.system().M, tables.system().K, H)
    path = tables.run("Simpson", H, 1)
    (q, q_next), (p, p_next) = path.q, path.p
    right = p - scheme.Y @ q
    return (
        "On the first step of Simpson's scheme p₁ + X q₁ differs from p₀ − Y q₀ by "
        f"{_size(p_next + scheme.X @ q_next - right):.2f}, and p₁ + Y q₁ by "
        f"{_size(p_next + scheme.Y @ q_next - right):.0e}."
    )


@_misprint("Matrix above (50)", "μ_r (g − ω_i² μ_r l) in the lower right", "μ_r (g − ω_i² l)")
def modal_matrix() -> str:
    """With μ_r = 1, Table 1's ratio, the stray factor cannot be seen; here μ_r = 2."""
    mu = 2.0
    M, K = tables.system(m2=mu).M, tables.system(m2=mu).K
    words = []
    for i, omega in enumerate(tables.frequencies(mu)):
        x = np.array([1.0, (-1) ** (i + 1) * math.sqrt((1 + mu) / mu)])  # (50)
        right = (K - omega**2 * M) / np.abs(K).max()
        printed = right.copy()
        printed[1, 1] = mu * (1 - omega**2 / tables.OMEGA_0**2 * mu) / (1 + mu)
        words.append(
            f"at ω_{i + 1} the printed matrix has determinant {np.linalg.det(printed):.2f}, and times x_{i + 1} "
            f"of (50) it is {_size(printed @ x):.2f}, not 0; without the factor {_size(np.linalg.det(right)):.0e} and "
            f"{_size(right @ x):.0e}"
        )
    return f"μ_r = {mu:g}, in units of (m₁ + m₂)gl: " + "; ".join(words) + "."


@_misprint("Section 6, unit of time", "t̄ = 1/ω₀", "t̄ = 2π/ω₀")
def unit_of_time() -> str:
    lengths = (1, 10)
    agree = [
        sum(cell.agrees for cell in tables.cells_of(lengths, unit))
        for unit in (1 / tables.OMEGA_0, 2 * math.pi / tables.OMEGA_0)
    ]
    first = tables.errors("Simpson", 1, 10, 1 / tables.OMEGA_0)["q"]
    return (
        f"Of the 48 numbers printed for 1 t̄ and 10 t̄, {agree[0]} come out with t̄ = 1/ω₀ and {agree[1]} with 2π/ω₀; "
        f"the first of Simpson's, {tables.TABLE_2[1, 'q', 'Simpson'][0]} for q, would be {first:.1e}."
    )


@_misprint("Table 2, 10 t̄, Newmark, p, 400 meshes", "7.82e-1", "7.82e-2")
def exponent() -> str:
    first, _, last, order = tables.TABLE_2[10, "p", "Newmark"]
    found = tables.errors("Newmark", 10, 40)["p"]
    orders = [math.log2(float(first) / (float(last) * factor)) / 2 for factor in (1, 0.1)]
    return (
        f"Computed {found:.3e}; ½ log₂(e₁/e₃) is {orders[0]:.2f} with {last} and {orders[1]:.2f} with a tenth of it; "
        f"{order} is printed."
    )


def _rk4_at_ten(variable: str) -> str:
    printed, e = (
        tables.TABLE_2[10, variable, "RK4"],
        [tables.errors("RK4", 10, mesh)[variable] for mesh in tables.MESHES],
    )
    return (
        f"printed {printed[2]}, order {printed[3]}; computed {e[2]:.2e}, order {math.log2(e[0] / e[2]) / 2:.2f} "
        f"({variable})"
    )


@_misprint(
    "Table 2, 10 t̄, RK4, p, 400 meshes, and its order",
    "1.37e-2; 1.29",
    "less than the error over 100 t̄; see the evidence",
)
def spoiled() -> str:
    longer = tables.errors("RK4", 100, 40)["p"]
    return (
        f"{_rk4_at_ten('p')}. Over 100 t̄ {tables.TABLE_2[100, 'p', 'RK4'][2]} is printed for p and {longer:.2e} "
        "computed: less than what is printed here, though the maximum over a longer run cannot be smaller."
    )


@_remark("Table 2, 10 t̄, RK4, q, 400 meshes, and its order", "1.57e-2; 2.09", "not reproduced; the cause is not known")
def not_reproduced() -> str:
    return (
        f"{_rk4_at_ten('q')}. The order printed follows from the errors printed, and nothing else in the paper "
        f"contradicts this cell; but the two cells to the left, for 100 and 200 meshes, come out as printed "
        f"({', '.join(tables.TABLE_2[10, 'q', 'RK4'][:2])}), and no setting tried gives this one."
    )


@_misprint("Table 2, 1000 t̄, Newmark, q, order", "0.01", "−0.01")
def sign_of_order() -> str:
    e = [tables.errors("Newmark", 1000, mesh)["q"] for mesh in tables.MESHES]
    listed = ", ".join(f"{x:.4f}" for x in e)
    first, _, last, order = tables.TABLE_2[1000, "q", "Newmark"]
    own = math.log2(float(first) / float(last)) / 2
    return (
        f"From the printed errors {first} and {last}, ½ log₂(e₁/e₃) = {own:.3f}, not {order}. The errors with 10, 20 "
        f"and 40 steps per t̄ are {listed}: {math.log2(e[0] / e[2]) / 2:.3f}."
    )


@_remark(
    "Table 2, RK4, five cells that end in one or two zeros",
    "8.00e-4, 3.40e-3, 2.00e-4, 9.90e-3, 6.40e-3",
    "a style of rounding: cut after four decimals, so that the zeros are no digits",
)
def padded() -> str:
    words = []
    for T, variable, i in ((1, "p", 1), (1, "q", 1), (1, "q", 2), (10, "p", 1), (100, "p", 2)):
        e = tables.errors("RK4", T, tables.MESHES[i])[variable]
        cut = math.floor(e * 1e4) / 1e4
        words.append(f"{tables.TABLE_2[T, variable, 'RK4'][i]} for {e:.3e}, which is {cut:.4f} to four decimals")
    return "; ".join(words) + "."


@_remark(
    "Caption of Table 2",
    "Newmark's and RK4's convergence decays with the length of the run, Simpson's is preserved",
    "so it is with these steps and lengths, but for Simpson at 1000 t̄; all three keep their order where errors "
    "are small against the motion",
)
def decaying_orders() -> str:
    fine = {"Newmark": (500, 1000), "RK4": (80, 160), "Simpson": (80, 160)}
    words = []
    for method in tables.METHODS:
        e = [tables.errors(method, 1000, mesh)["q"] for mesh in fine[method]]
        words.append(
            f"{method} {math.log2(e[0] / e[1]):.2f} between {fine[method][0]} and {fine[method][1]} steps per t̄ "
            f"(printed {tables.TABLE_2[1000, 'q', method][3]} between 10 and 40)"
        )
    size = float(np.linalg.norm(tables.exact(np.linspace(0, 10, 2001))[0], axis=1).max())
    return (
        f"Orders of q over 1000 t̄: {'; '.join(words)}. With the printed steps the errors are as large as the motion, "
        f"|q| ≤ {size:.2f}: Newmark's {tables.errors('Newmark', 1000, 10)['q']:.2f}, Simpson's "
        f"{tables.errors('Simpson', 1000, 10)['q']:.2f}."
    )


@_remark(
    "Section 6.4, superconvergence",
    "order 4, two above the interpolation's degree, is closely related to the mesh's uniformity",
    "the scheme needs no uniform mesh for it: each step alone is of that order",
)
def uneven_steps() -> str:
    """Simpson's scheme with steps 0.6 h and 1.4 h by turns."""
    M, K = tables.system().M, tables.system().K
    p, q = tables.exact(1.0)[::-1]
    e = []
    for n in (40, 80, 160):
        pair = simpson_second(M, K, 1.4 / n).Phi @ simpson_second(M, K, 0.6 / n).Phi
        eta = np.linalg.matrix_power(pair, n // 2) @ np.concatenate([tables.P0, tables.Q0])
        e.append(float(np.linalg.norm(eta - np.concatenate([p, q]))))
    orders = [math.log2(a / b) for a, b in pairwise(e)]
    return (
        f"With steps 0.6 h and 1.4 h by turns the errors at t̄ with 40, 80 and 160 steps are {e[0]:.1e}, {e[1]:.1e} "
        f"and {e[2]:.1e}: orders {orders[0]:.2f} and {orders[1]:.2f}."
    )


ERRATA = [entry for entry in tuple(globals().values()) if isinstance(entry, Erratum)]
