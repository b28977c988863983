"""Rods, chains and linkages in Cartesian coordinates: systems with constraints.

"pendulum-cartesian": L = ½ m |v|² − m g y, x² + y² = l², the smallest constrained system with a closed form:
x = l sin θ, y = −l cos θ, where θ is the motion of "pendulum" with ω² = g/l. The rod pulls with m (g cos θ + l θ'²), so
λ = −m (g cos θ + l θ'²)/(2l). "spherical-pendulum" is the same in space: it goes between two heights, and precesses.

"rotating-hoop": a bead on a hoop that a motor turns about the vertical, x sin Ωt − y cos Ωt = 0. The energy is not
kept, but Jacobi's integral E − Ω J_z is. Beyond Ω² = g/R the bead rests, seen from the hoop, at cos θ = g/(Ω² R).

"chain", "falling-chain": N points on rigid links, |r_i − r_{i−1}|² = l², r_0 = 0. The first hangs from the origin and
is let go straight; the other is folded, one half down and the other up again, and its free end is let go: it falls
faster than a free body.

Uniform bars of mass m between points with the velocities u and w have the kinetic energy m (u² + u·w + w²)/6.

"four-bar-linkage": the crank goes from O = (0, 0) to A, the coupler from A to B, the rocker from B to C = (c, 0). With
a + c < b + d (Grashof, a the shortest) the crank turns around and the rocker rocks.

"n-four-bar": N + 1 bars stand on the ground at (i l, 0), and N more join their upper ends r_i. Twice in a turn all bars
lie in one line: there rows of ∂g/∂q depend on each other, and each loop could go on as a parallelogram or cross over.
The smooth motion stays parallel, r_i = (i l, 0) + l (sin ψ, −cos ψ), and ψ is that of "pendulum" with
ω² = (g/l) ((N + 1)/2 + N)/((N + 1)/3 + N): a closed form.

"slider-crank": the crank goes from the origin to A, the rod from A to the slider at (X, 0), without gravity. One
freedom and a constant energy E = ½ I(θ) θ'²: the time of a turn is ∮ √(I(θ)/2E) dθ.

"andrews-squeezer": seven bodies in the plane in three closed loops, angles q = (β, Θ, γ, Φ, δ, Ω, ε), six constraints,
so one degree of freedom, which moves at some 10³ radians in a second. Each body has a mass, a moment of inertia and a
centre that follows from the angles; a spring pulls at the third body, and the torque `mom`, with the potential −mom β,
turns β: L = Σ_k ½ m_k |v_k|² + ½ I_k ω_k² − ½ c₀ (|D − C| − l₀)² + mom β. Data and reference values at t = 0.03:
F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, 2008; E. Hairer, G. Wanner, Solving
Ordinary Differential Equations II, Springer 1996, VII.7. The printed multipliers have the other sign: M q̈ = f − Gᵀλ
there.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import symbolic
from leastaction.problems.pendulums import swing_motion
from leastaction.problems.problem import Count, Data, ExactMotion, Number, Parts, Positive, catalogued, listed, turning


def weight(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[-1]


def rod(q: Any, l: Any) -> Any:
    return q @ q - l**2


@catalogued(
    "Pendulum in the plane",
    "A point mass on a rigid rod, in Cartesian coordinates: one constraint, and a closed form.",
    "E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, VII.1.1, example 1.1",
)
def pendulum_cartesian(
    m: Positive = 1, g: Positive = "9.81", l: Positive = 1, theta0: Number = "pi/2", w0: Number = 0
) -> Parts:
    """From the angle theta0 off the downward vertical, with the angular velocity w0."""
    sine, cosine = sp.sin(theta0), sp.cos(theta0)
    return Parts(
        lagrangian=weight,
        constraints=rod,
        q0=(l * sine, -l * cosine),
        p0=(m * l * w0 * cosine, m * l * w0 * sine),
        solution=swing_of_the_rod,
    )


def swing_of_the_rod(d: Data) -> ExactMotion:
    """The motion that follows from the angle, which has the mass m l²."""
    m, g, l = (d.params[name] for name in ("m", "g", "l"))
    (x, y), (px, py) = d.q0, d.p0
    data = {"m": m * l**2, "omega": mpmath.sqrt(g / l)}
    angle = swing_motion(Data((mpmath.atan2(x, -y),), (x * py - y * px,), data))

    def at(x: Arithmetic, t: Any) -> Any:
        if mpmath.isfinite(angle.period):  # after a turn the place is the same, though the angle is not
            _, t = x.turns(t, angle.period)
        (theta,), (spin,) = angle.at(x, t)
        sine, cosine, size = x.sin(theta), x.cos(theta), x(l)
        return (size * sine, -size * cosine), (spin / size * cosine, spin / size * sine)

    return ExactMotion(at, angle.period)


@catalogued(
    "Spherical pendulum",
    "A point mass on a rigid rod in space: it swings between two heights and precesses.",
    "E. T. Whittaker, Analytical Dynamics, Cambridge 1937, section 55",
)
def spherical_pendulum(
    m: Positive = 1, g: Positive = "9.81", l: Positive = 1, theta0: Number = "pi/3", u0: Number = 2
) -> Parts:
    """From the angle theta0 off the vertical, with the horizontal speed u0 across it."""
    return Parts(
        lagrangian=weight,
        constraints=rod,
        q0=(l * sp.sin(theta0), 0, -l * sp.cos(theta0)),
        p0=(0, m * u0, 0),
        invariants={"angular-momentum": turning},
    )


def hoop(t: Any, q: Any, R: Any, Omega: Any) -> Any:
    return np.array([q @ q - R**2, q[0] * np.sin(Omega * t) - q[1] * np.cos(Omega * t)])


def jacobi(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return sum(z**2 for z in p) / (2 * c.m) + c.m * c.g * q[2] - c.Omega * turning(x, c, q, p)


@catalogued(
    "Bead on a rotating hoop",
    "A bead on a hoop that a motor turns: two constraints, one of them moves.",
    "J. R. Taylor, Classical Mechanics, University Science Books 2005, examples 7.6 and 7.7",
)
def rotating_hoop(
    m: Positive = 1, g: Positive = "9.81", R: Positive = 1, Omega: Number = 4, theta0: Number = "pi/6", w0: Number = 0
) -> Parts:
    """From the angle theta0 off the lowest point, moving along the hoop with the angular velocity w0."""
    sine, cosine = sp.sin(theta0), sp.cos(theta0)
    return Parts(
        lagrangian=weight,
        constraints=hoop,
        q0=(R * sine, 0, -R * cosine),
        p0=(m * R * w0 * cosine, m * Omega * R * sine, m * R * w0 * sine),
        invariants={"jacobi": jacobi},
    )


def links(q: Any, l: Any) -> Any:
    x, y = q[0::2], q[1::2]
    return [
        (x[i] - x[i - 1]) ** 2 + (y[i] - y[i - 1]) ** 2 - l**2 if i else x[0] ** 2 + y[0] ** 2 - l**2
        for i in range(len(x))
    ]


@catalogued(
    "Chain of rods",
    "Points on rigid links that hang from a pivot: as many constraints as links.",
    "E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, VII.1",
)
def chain(m: Positive = 1, g: Positive = "9.81", l: Positive = 1, count: Count = 5, theta0: Number = "pi/2") -> Parts:
    """A chain of so many links, straight at the angle theta0 off the vertical, at rest."""
    places = [(k * l * sp.sin(theta0), -k * l * sp.cos(theta0)) for k in range(1, int(count) + 1)]
    return _at_rest(places)


@catalogued(
    "Falling chain",
    "A folded chain, one of its ends let go: the tip falls faster than a free body.",
    "W. Tomaszewski, P. Pieranski, J.-C. Geminard, American Journal of Physics 74 (2006) 776–783",
)
def falling_chain(m: Positive = "1/10", g: Positive = "9.81", l: Positive = "1/10", count: Count = 9) -> Parts:
    """A folded chain of 2k + 1 links: k straight down, one across, k up again. This last end is let go."""
    if count % 2 == 0 or count < 3:
        raise ValueError(
            f"count must be odd, at least three: as many links go down as up, and one link goes across; got {count}"
        )
    half = int(count) // 2
    places = [(0, -k * l) for k in range(1, half + 1)]
    places += [(l, -k * l) for k in range(half, -1, -1)]
    return _at_rest(places) | Parts(period=sp.sqrt(2 * half * l / g), period_of="a free fall to the bend")


def _at_rest(places: list[tuple[Any, Any]]) -> Parts:
    q0 = tuple(z for place in places for z in place)
    return Parts(
        lagrangian=lambda q, v, m, g: 0.5 * m * (v @ v) - m * g * q[1::2].sum(),
        constraints=links,
        q0=q0,
        p0=(0,) * len(q0),
    )


def four_bars(q: Any, v: Any, m1: Any, m2: Any, m3: Any, g: Any) -> Any:
    A, B = v[:2], v[2:]
    kinetic = (m1 * (A @ A) + m2 * (A @ A + A @ B + B @ B) + m3 * (B @ B)) / 6
    return kinetic - g * ((m1 + m2) * q[1] + (m2 + m3) * q[3]) / 2


def closed_by_the_ground(q: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    A, B = q[:2], q[2:]
    return np.array([A @ A - a**2, (B - A) @ (B - A) - b**2, (B[0] - c) ** 2 + B[1] ** 2 - d**2])


@catalogued(
    "Four-bar linkage",
    "Crank, coupler and rocker, uniform bars: three constraints leave one freedom.",
    "J. J. Uicker, G. R. Pennock, J. E. Shigley, Theory of Machines and Mechanisms, Oxford 2011, 1.9 and chapter 2",
)
def four_bar_linkage(
    m1: Positive = 1, m2: Positive = 3, m3: Positive = 2, a: Positive = 1, b: Positive = 3, c: Positive = "7/2",
    d: Positive = "5/2", g: Number = "9.81", theta0: Number = "pi/2", w0: Number = 10,
) -> Parts:  # fmt: skip
    """From the crank's angle theta0 with its angular velocity w0, the linkage open upwards."""
    A, vA = a * sp.Matrix([sp.cos(theta0), sp.sin(theta0)]), a * w0 * sp.Matrix([-sp.sin(theta0), sp.cos(theta0)])
    C = sp.Matrix([c, 0])
    far = C - A
    reach = sp.sqrt(far.dot(far))
    along = (reach**2 + b**2 - d**2) / (2 * reach)
    if not b**2 - along**2 > 0:
        raise ValueError(f"the bars do not close: with a crank at {theta0} no bars b = {b} and d = {d} meet")
    across = sp.sqrt(b**2 - along**2)
    B = A + (along * far + across * sp.Matrix([-far[1], far[0]])) / reach
    # The velocity of B: (B − A)·(v_B − v_A) = 0 and (B − C)·v_B = 0, by Cramer's rule.
    r, s = B - A, B - C
    known, det = r.dot(vA), r[0] * s[1] - r[1] * s[0]
    vB = sp.Matrix([known * s[1], -known * s[0]]) / det
    pA, pB = ((m1 + m2) * vA / 3 + m2 * vB / 6), (m2 * vA / 6 + (m2 + m3) * vB / 3)
    return Parts(lagrangian=four_bars, constraints=closed_by_the_ground, q0=(*A, *B), p0=(*pA, *pB))


def bars_in_a_row(q: Any, v: Any, m: Any, g: Any) -> Any:
    r, w = q.reshape(-1, 2), v.reshape(-1, 2)
    kinetic = m * (w**2).sum() / 6
    height = m * r[:, 1].sum() / 2
    for i in range(len(r) - 1):
        kinetic = kinetic + m * (w[i] @ w[i] + w[i] @ w[i + 1] + w[i + 1] @ w[i + 1]) / 6
        height = height + m * (r[i][1] + r[i + 1][1]) / 2
    return kinetic - g * height


def parallelograms(q: Any, l: Any) -> Any:
    r = q.reshape(-1, 2)
    standing = [(r[i][0] - i * l) ** 2 + r[i][1] ** 2 - l**2 for i in range(len(r))]
    return standing + [(r[i + 1] - r[i]) @ (r[i + 1] - r[i]) - l**2 for i in range(len(r) - 1)]


@catalogued(
    "N four-bar loops",
    "Parallelograms in a row that pass through singular configurations: a benchmark.",
    "M. González, D. Dopico, U. Lugrís, J. Cuadrado, Multibody System Dynamics 16 (2006) 179–190",
)
def n_four_bar(m: Positive = 1, g: Positive = "9.81", l: Positive = 1, u0: Number = 1, count: Count = 1) -> Parts:
    """With so many loops, upright, the upper ends moving with the speed u0."""
    ends = [sp.Rational(1, 3) + sp.Rational(joined, 2) for joined in [1, *[2] * int(count - 1), 1]]
    return Parts(
        lagrangian=bars_in_a_row,
        constraints=parallelograms,
        q0=tuple(x for i in range(int(count) + 1) for x in (i * l, l)),
        p0=tuple(x for part in ends for x in (m * part * u0, 0)),
        solution=parallel_motion,
    )


def parallel_motion(d: Data) -> ExactMotion:
    """The motion that follows from the angle ψ, which is π at the start."""
    m, g, l = (d.params[name] for name in ("m", "g", "l"))
    size = len(d.q0) // 2
    ends = [mpmath.mpf(1) / 3 + mpmath.mpf(joined) / 2 for joined in [1, *[2] * (size - 2), 1]]
    loops = size - 1
    inertia, weight = mpmath.mpf(size) / 3 + loops, mpmath.mpf(size) / 2 + loops
    speed = d.p0[0] / (m * ends[0])
    data = {"m": inertia * m * l**2, "omega": mpmath.sqrt(g * weight / (l * inertia))}
    angle = swing_motion(Data((mpmath.pi,), (-data["m"] * speed / l,), data))

    def at(x: Arithmetic, t: Any) -> Any:
        if mpmath.isfinite(angle.period):
            _, t = x.turns(t, angle.period)
        (psi,), (spin,) = angle.at(x, t)
        sine, cosine, pace = x(l) * x.sin(psi), x(l) * x.cos(psi), spin / x(data["m"])
        places = [(x(i * l) + sine, -cosine) for i in range(size)]
        momenta = [(x(m * part) * pace * cosine, x(m * part) * pace * sine) for part in ends]
        return tuple(z for place in places for z in place), tuple(z for push in momenta for z in push)

    return ExactMotion(at, angle.period)


def crank_and_slider(q: Any, v: Any, m1: Any, m2: Any, m3: Any) -> Any:
    A, V = v[:2], v[2]
    return (m1 * (A @ A) + m2 * (A @ A + A[0] * V + V**2)) / 6 + 0.5 * m3 * V**2


def on_the_rail(q: Any, a: Any, b: Any) -> Any:
    x, y, X = q[0], q[1], q[2]
    return np.array([x**2 + y**2 - a**2, (X - x) ** 2 + y**2 - b**2])


@catalogued(
    "Slider-crank",
    "A crank, a rod and a slider, uniform bars: the time of a turn is a quadrature.",
    "J. J. Uicker, G. R. Pennock, J. E. Shigley, Theory of Machines and Mechanisms, Oxford 2011, section 1.9",
)
def slider_crank(
    m1: Positive = 1, m2: Positive = 2, m3: Positive = 3, a: Positive = 1, b: Positive = 3, theta0: Number = "pi/3",
    w0: Number = 5,
) -> Parts:  # fmt: skip
    """From the crank's angle theta0 with its angular velocity w0; the rod is longer than the crank."""
    if not b > a:
        raise ValueError(f"the rod b must be longer than the crank a, so that it can turn; got b = {b}, a = {a}")
    x, y = a * sp.cos(theta0), a * sp.sin(theta0)
    u, w = -w0 * y, w0 * x
    X = x + sp.sqrt(b**2 - y**2)
    V = u - y * w / (X - x)
    return Parts(
        lagrangian=crank_and_slider,
        constraints=on_the_rail,
        q0=(x, y, X),
        p0=((m1 + m2) * u / 3 + m2 * V / 6, (m1 + m2) * w / 3, m2 * u / 6 + (m2 / 3 + m3) * V),
    )


SQUEEZER_MASSES = (".04325", ".00365", ".02373", ".00706", ".07050", ".00706", ".05498")
INERTIAS = ("2.194e-6", "4.410e-7", "5.255e-6", "5.667e-7", "1.169e-5", "5.667e-7", "1.912e-5")
SQUEEZER = {
    "xa": "-.06934", "ya": "-.00227", "xb": "-.03635", "yb": ".03273", "xc": ".014", "yc": ".072",
    "d": "28e-3", "da": "115e-4", "e": "2e-2", "ea": "1421e-5", "rr": "7e-3", "ra": "92e-5",
    "ss": "35e-3", "sa": "1874e-5", "sb": "1043e-5", "sc": "18e-3", "sd": "2e-2", "ta": "2308e-5", "tb": "916e-5",
    "u": "4e-2", "ua": "1228e-5", "ub": "449e-5", "zf": "2e-2", "zt": "4e-2", "fa": "1421e-5",
}  # fmt: skip
SQUEEZER_START = listed("squeezer: start")
# q and q̇ at t = 0.03, as printed: computed there by PSIDE with tolerances of 10⁻¹⁴.
PLACES_AT_THE_END, SPEEDS_AT_THE_END = (
    tuple(map(float, listed(f"squeezer: {what} at t = 0.03"))) for what in ("places", "speeds")
)


def seven_bodies(q: Any, v: Any, **c: Any) -> Any:
    beta, theta, gamma, phi, delta, omega, epsilon = q
    turning = [v[0], v[0] + v[1], v[2], v[3] + v[4], v[4], v[5] + v[6], v[6]]
    drive, rod, plate, left, link, right, arm = turning
    # The parts (along, across, angle, rate) of each centre: along (cos, sin) of the angle and across (−sin, cos).
    centres = [
        [(c["ra"], 0, beta, drive)],
        [(c["rr"], 0, beta, drive), (-c["da"], 0, beta + theta, rod)],
        [(c["sb"], -c["sa"], gamma, plate)],
        [(c["zt"], 0, delta, link), (0, c["ea"] - c["e"], phi + delta, left)],
        [(c["ta"], c["tb"], delta, link)],
        [(0, -c["u"], epsilon, arm), (c["zf"] - c["fa"], 0, omega + epsilon, right)],
        [(-c["ub"], -c["ua"], epsilon, arm)],
    ]
    kinetic = 0
    for k, (parts, rate) in enumerate(zip(centres, turning, strict=True), 1):
        x = sum(-w * (along * np.sin(a) + across * np.cos(a)) for along, across, a, w in parts)
        y = sum(w * (along * np.cos(a) - across * np.sin(a)) for along, across, a, w in parts)
        kinetic = kinetic + 0.5 * c[f"m{k}"] * (x**2 + y**2) + 0.5 * c[f"I{k}"] * rate**2
    x = c["sd"] * np.cos(gamma) + c["sc"] * np.sin(gamma) + c["xb"] - c["xc"]
    y = c["sd"] * np.sin(gamma) - c["sc"] * np.cos(gamma) + c["yb"] - c["yc"]
    return kinetic - 0.5 * c["c0"] * (np.sqrt(x**2 + y**2) - c["l0"]) ** 2 + c["mom"] * beta


def loops(
    q: Any, xa: Any, ya: Any, xb: Any, yb: Any, d: Any, e: Any, rr: Any, ss: Any, u: Any, zf: Any, zt: Any
) -> Any:
    """The three ways from the drive to the point where the bodies meet."""
    beta, theta, gamma, phi, delta, omega, epsilon = q
    x, y = rr * np.cos(beta) - d * np.cos(beta + theta), rr * np.sin(beta) - d * np.sin(beta + theta)
    return np.array(
        [
            x - ss * np.sin(gamma) - xb,
            y + ss * np.cos(gamma) - yb,
            x - e * np.sin(phi + delta) - zt * np.cos(delta) - xa,
            y + e * np.cos(phi + delta) - zt * np.sin(delta) - ya,
            x - zf * np.cos(omega + epsilon) - u * np.sin(epsilon) - xa,
            y - zf * np.sin(omega + epsilon) + u * np.cos(epsilon) - ya,
        ]
    )


@catalogued(
    "Andrews' squeezing mechanism",
    "Seven bodies in three closed loops, driven by a torque: a reference problem for constraints.",
    "Mazzia and Magherini, Test Set for IVP Solvers; Hairer and Wanner II, VII.7",
)
def andrews_squeezer(mom: Number = "33e-3") -> Parts:
    """At rest, driven by the torque mom."""
    return Parts(
        lagrangian=seven_bodies,
        constraints=loops,
        q0=SQUEEZER_START,
        p0=(0,) * 7,
        params={
            **{f"m{k}": x for k, x in enumerate(SQUEEZER_MASSES, 1)},
            **{f"I{k}": x for k, x in enumerate(INERTIAS, 1)},
            "c0": 4530,
            "l0": "7785e-5",
            "mom": mom,
            **SQUEEZER,
        },
        period="3/100",
        period_of="the time of the reference",
        moving_reference=("3/100", PLACES_AT_THE_END, SPEEDS_AT_THE_END) if mom == symbolic("33e-3") else None,
    )
