"""Bodies that attract each other: Kepler's problem, three bodies, stars, planets, and a satellite of earth and moon.

Kepler's problem, L = ½ v·v + k/|q|, H = ½ p·p − k/|q|. Bound orbits are ellipses of semi-major axis a = −k/(2H) and
eccentricity e about the origin, with period T = 2π √(a³/k). With b = a√(1 − e²), the unit vectors P to the pericentre
and Q across it in the direction of motion, and the eccentric anomaly E of Kepler's equation,

    E − e sin E = M₀ + 2πt/T,    q = a(cos E − e) P + b sin E Q,    p = 2π/T · (b cos E Q − a sin E P)/(1 − e cos E)

Conserved: energy, angular momentum q × p, and the Laplace–Runge–Lenz vector p × (q × p) − k q/|q| = k e P. Sources:
S. Ober-Blöbaum, N. Saake, Construction and analysis of higher order Galerkin variational integrators, 2014, section
5.2, eq. (5.3), whose data are "kepler-galerkin"; H. Goldstein, Classical Mechanics, chapter 3. The start of "kepler" is
the usual one of numerical experiments: at the pericentre, a = k = 1, e = 0.6.

N point masses, in 2 or 3 dimensions, with the coordinates body after body, q = (x_1, y_1, z_1, x_2, …):

    L = ½ Σ_i m_i v_i·v_i + G Σ_{i<j} m_i m_j/|q_i − q_j|

Conserved: energy, momentum Σ p_i, angular momentum Σ q_i × p_i. No solution is known in closed form.

"figure-eight": three equal masses chase each other along one curve (C. Moore, 1993; A. Chenciner, R. Montgomery, Annals
of Mathematics 152, 2000, 881–901, with the data of C. Simó, whose start is symmetric). The other periodic orbits
begin in a row, at (−1, 0), (1, 0) and (0, 0), with the velocities (a, b), (a, b) and (−2a, −2b): M. Šuvakov,
V. Dmitrašinović, Physical Review Letters 110, 2013, 114301, who give five digits of a, b and T. Here these numbers were
refined with 34 and more digits, in steps of a pace; in the tests the orbits close to 10⁻¹⁰ in float64.

"pythagorean": the masses 3, 4 and 5 at rest at the corners of a triangle with these sides, each mass opposite to the
side of its own number (C. Burrau, 1913; V. Szebehely, C. F. Peters, Astronomical Journal 72, 1967, 876–883). After many
close passes the mass 3 is thrown out, and the others are left as a double star. The reference state is the library's
own, where P20N20Q40Gau and P24N24Q48Gau agree, with a pace and 68 digits: to 4·10⁻¹⁹. The places at t = 10, 20, … 70
are from `benchmarks/accuracy.py --only pythagorean`, with the digits in which P16N16Q32Gau agrees for two steps, with
60 digits.

"pleiades": seven stars, which pass at distances far below 1 within the usual interval 0 ≤ t ≤ 3 (E. Hairer,
S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, second edition, 1993, section II.10). The
reference, at t = 3, is printed in F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers, 2008, problem
PLEI.

"outer-solar-system": lengths are astronomical units, times days, masses those of the Sun, whose own is a little more
than 1: it includes the inner planets. The planets start on 5 September 1994, 0h00, where they stand and move relative
to the Sun.

"arenstorf": in the frame that turns with earth and moon, in units of their distance, their mass and the time of a
radian, with the moon's mass μ, the earth at (−μ, 0) and the moon at (1 − μ, 0),

    L = ½ v·v + x v_y − y v_x + ½ q·q + (1 − μ)/r₁ + μ/r₂,

p = v + (−y, x), and H = ½ v·v − ½ q·q − (1 − μ)/r₁ − μ/r₂ is conserved. The satellite begins 0.0063 from the moon's
centre and has passed near the earth three times when it closes after T = 17.07. The orbit is unstable: an error at the
start has grown by some 10⁵ after one period (Hairer, Nørsett, Wanner 1993, section II.0, eq. (0.1)).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import symbolic, symbolic_vector
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, Vector, catalogued, listed

BOUND = "A particle attracted by a fixed centre with the force k/r²; a bound orbit is an ellipse."
KEPLER = "Ober-Blöbaum and Saake 2014, section 5.2, eq. (5.3)"


@catalogued("Kepler problem", BOUND, KEPLER)
def kepler(eccentricity: Number = "0.6", k: Positive = 1, a: Positive = 1, q0: Any = None, p0: Any = None) -> Parts:
    """Motion in the plane, from the pericentre (a(1 − e), 0); or from any q0, p0 of a bound orbit."""
    return _kepler(2, k, a, eccentricity, sp.Integer(0), q0, p0)


@catalogued("Kepler problem in space", BOUND, KEPLER)
def kepler_3d(
    eccentricity: Number = "0.6", k: Positive = 1, a: Positive = 1, inclination: Number = "pi/6", q0: Any = None,
    p0: Any = None,
) -> Parts:  # fmt: skip
    """Motion in space, its plane inclined to the (x, y) plane about the x axis; or from any q0, p0 of a bound orbit."""
    return _kepler(3, k, a, eccentricity, inclination, q0, p0)


@catalogued("Kepler problem, data of the Galerkin paper", BOUND, KEPLER)
def kepler_galerkin(k: Positive = "1016.895192894334", q0: Any = (5, 0), p0: Any = (0, 17)) -> Parts:
    """The data of Ober-Blöbaum and Saake 2014, section 5.2: period 5 to 12 digits."""
    return _kepler(2, k, None, None, None, q0, p0)


def _kepler(n: int, k: Any, a: Any, e: Any, i: Any, q0: Any, p0: Any) -> Parts:
    if (q0 is None) != (p0 is None):
        raise ValueError("q0 and p0 belong together: give both, or neither and the orbit by eccentricity and a")
    settings = {"k": k}
    if q0 is None:
        if not 0 <= e < 1:
            raise ValueError(f"eccentricity must be in [0, 1), a bound orbit without collision; got {e}")
        speed = sp.sqrt(k / a * (1 + e) / (1 - e))
        q0, p0 = (a * (1 - e), 0, 0), (0, speed * sp.cos(i), speed * sp.sin(i))
        settings |= {"a": a, "eccentricity": e} | ({"inclination": i} if n == 3 else {})
        q0, p0 = (symbolic_vector(z[:n], n, "") for z in (q0, p0))
    else:
        q0, p0 = symbolic_vector(q0, n, "q0"), symbolic_vector(p0, n, "p0")
        settings |= {"q0": q0, "p0": p0}
        _check_bound(k, q0, p0)
    around = {f"-{axis}": i for i, axis in enumerate("xyz")} if n == 3 else {"": 2}
    return Parts(
        lagrangian=lambda q, v, k: 0.5 * np.sum(v**2) + k / np.sqrt(np.sum(q**2)),
        q0=q0,
        p0=p0,
        params={"k": k},
        settings=settings,
        invariants={
            **{f"angular-momentum{axis}": lambda *at, i=i: _cross(*at[2:])[i] for axis, i in around.items()},
            **{f"laplace-runge-lenz-{axis}": lambda *at, i=i: lenz(*at)[i] for i, axis in enumerate("xyz"[:n])},
        },
        solution=kepler_motion,
    )


def _check_bound(k: Any, q0: Any, p0: Any) -> None:
    if not any(q0):
        raise ValueError("q0 must not be the centre of attraction")
    if _dot(p0, p0) / 2 - k / sp.sqrt(_dot(q0, q0)) >= 0:
        raise ValueError(f"q0 = {q0}, p0 = {p0} is not a bound orbit: ½p² − k/r ≥ 0. Take a smaller momentum")
    if not any(sp.simplify(x) for x in _cross(q0, p0)):
        raise ValueError(f"q0 = {q0} and p0 = {p0} are parallel: the orbit falls into the centre")


def lenz(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    """p × (q × p) − k q/|q| = (p·p − k/|q|) q − (q·p) p, the vector towards the pericentre."""
    along, across = _dot(p, p) - c.k / x.sqrt(_dot(q, q)), _dot(q, p)
    return tuple(along * qi - across * pi for qi, pi in zip(q, p, strict=True))


def _dot(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _cross(a: Any, b: Any) -> Any:
    a1, a2, a3 = (*a, 0)[:3]
    b1, b2, b3 = (*b, 0)[:3]
    return a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1


def kepler_motion(d: Data) -> ExactMotion:
    k, n = d.params["k"], len(d.q0)
    q0, p0 = (*d.q0, mpmath.mpf(0))[:3], (*d.p0, mpmath.mpf(0))[:3]
    r0 = mpmath.sqrt(_dot(q0, q0))
    a = 1 / (2 / r0 - _dot(p0, p0) / k)
    period = 2 * mpmath.pi * mpmath.sqrt(a**3 / k)
    lenz0 = tuple((_dot(p0, p0) / k - 1 / r0) * qi - _dot(q0, p0) / k * pi for qi, pi in zip(q0, p0, strict=True))
    e = mpmath.sqrt(_dot(lenz0, lenz0))
    # On a circle every direction is as good as the pericentre's.
    P = tuple(x / e for x in lenz0) if e else tuple(x / r0 for x in q0)
    momentum = _cross(q0, p0)
    Q = tuple(x / mpmath.sqrt(_dot(momentum, momentum)) for x in _cross(momentum, P))
    b = a * mpmath.sqrt((1 - e) * (1 + e))
    E0 = mpmath.atan2(_dot(q0, Q) / b, _dot(q0, P) / a + e)
    t0 = (E0 - e * mpmath.sin(E0)) * period / (2 * mpmath.pi)  # time since the pericentre
    rate = 2 * mpmath.pi / period

    def at(x: Arithmetic, t: Any) -> Any:
        _, r = x.turns(t, period)
        _, r = x.turns(r + x(t0), period)
        E = eccentric_anomaly(x, x(rate) * r, e)
        s, c, half = x.sin(E), x.cos(E), x.sin(E / 2)
        far = x(1 - e) + x(2 * e) * half**2  # 1 − e cos E = |q|/a, without cancellation
        along, across = x(a) * (x(1 - e) - 2 * half**2), x(b) * s
        along_p, across_p = x(-a * rate) * s / far, x(b * rate) * c / far
        q = tuple(along * x(P[i]) + across * x(Q[i]) for i in range(n))
        p = tuple(along_p * x(P[i]) + across_p * x(Q[i]) for i in range(n))
        return q, p

    return ExactMotion(at, period)


def eccentric_anomaly(x: Arithmetic, M: Any, e: Any) -> Any:
    """E with E − e sin E = M, |M| ≤ π, by Newton.

    f(E) = E − e sin E − M is convex on [0, π] and f(π) ≥ 0, so from E = π the iteration falls to the root and cannot
    miss it. M < 0 follows by symmetry.
    """
    m = np.abs(M)
    E = m * 0 + x(mpmath.pi)
    last = False
    while not last:
        step = (x(1 - e) * E + x(e) * (E - x.sin(E)) - m) / (x(1 - e) + x(2 * e) * x.sin(E / 2) ** 2)
        last = bool(np.max(np.abs(step), initial=0) < x.eps**0.625)  # convergence is quadratic: the next is the last
        E = E - step
    return np.where(M < 0, -E, E)


PLANES = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}  # axis → the coordinates that turn about it


def attraction(q: Any, v: Any, G: Any, masses: Sequence[Any], dimensions: int) -> Any:
    """The Lagrangian, for NumPy arrays q and v of len(masses)·dimensions coordinates."""
    places, speeds = ([z[dimensions * i : dimensions * (i + 1)] for i in range(len(masses))] for z in (q, v))
    kinetic = sum(m * np.sum(speed**2) for m, speed in zip(masses, speeds, strict=True))
    return 0.5 * kinetic + G * sum(
        masses[i] * masses[j] / np.sqrt(np.sum((places[i] - places[j]) ** 2))
        for i, j in combinations(range(len(masses)), 2)
    )


def invariants(dimensions: int) -> dict[str, Any]:
    """Momenta and angular momenta as Problem takes them."""

    def bodies(z: Any) -> list[Any]:
        return [z[i : i + dimensions] for i in range(0, len(z), dimensions)]

    def momentum(axis: int) -> Any:
        return lambda x, c, q, p: sum(p[axis::dimensions])

    def angular_momentum(a: int, b: int) -> Any:
        return lambda x, c, q, p: sum(Q[a] * P[b] - Q[b] * P[a] for Q, P in zip(bodies(q), bodies(p), strict=True))

    found = {f"momentum-{axis}": momentum(k) for k, axis in enumerate("xyz"[:dimensions])}
    if dimensions == 2:
        return found | {"angular-momentum": angular_momentum(0, 1)}
    return found | {f"angular-momentum-{axis}": angular_momentum(*plane) for axis, plane in PLANES.items()}


EQUAL, PYTHAGOREAN = (1, 1, 1), (3, 4, 5)
# Of the figure eight: places of the first body, velocity of the third, which is at the centre, and the period.
EIGHT = ("0.97000435669734", "-0.24308753153583", "-0.93240737144104", "-0.86473146092102", "6.32591398292621")


@catalogued("Figure eight", "Three equal masses chase each other along one curve.", "Chenciner and Montgomery 2000")
def figure_eight() -> Parts:
    """Three equal masses on one curve like an 8."""
    x, y, vx, vy, period = (symbolic(number) for number in EIGHT)
    return _closed((x, y, -x, -y, 0, 0), (-vx / 2, -vy / 2, -vx / 2, -vy / 2, vx, vy), period)


ROW = "Three equal masses from a row, on the periodic orbit called {}."
ROWS = "Šuvakov and Dmitrašinović 2013"


@catalogued("Butterfly", ROW.format("butterfly"), ROWS)
def butterfly() -> Parts:
    """The orbit I.A.1 of Šuvakov and Dmitrašinović."""
    return _in_a_row("butterfly")


@catalogued("Moth", ROW.format("moth"), ROWS)
def moth() -> Parts:
    """The orbit I.B.1 of Šuvakov and Dmitrašinović."""
    return _in_a_row("moth")


@catalogued("Yin-yang", ROW.format("yin-yang"), ROWS)
def yin_yang() -> Parts:
    """The orbit II.C.2a of Šuvakov and Dmitrašinović."""
    return _in_a_row("yin-yang")


@catalogued(
    "Pythagorean problem",
    "Masses 3, 4 and 5 fall from rest, pass closely many times, and one is thrown out.",
    "Szebehely and Peters 1967",
)
def pythagorean() -> Parts:
    """Masses 3, 4, 5 at rest at the corners of a triangle with these sides."""
    after = listed("pythagorean: q and p at t = 3, after the first close pass")
    return Parts(
        lagrangian=lambda q, v: attraction(q, v, 1, PYTHAGOREAN, 2),
        q0=(1, 3, -2, -1, 1, -1),
        p0=(0,) * 6,
        invariants=invariants(2),
        period=1,
        period_of="about the time in which the bodies fall towards each other; the motion has none",
        reference=(3, after[:6], after[6:]),
        places=tuple((t, _with_the_third(t)) for t in range(10, 80, 10)),
    )


def _with_the_third(t: int) -> tuple[Any, ...]:
    """The places of the masses 3, 4 and 5 at this time; the mass 5 is where the centre of mass stays at rest."""
    q = tuple(map(symbolic, listed(f"pythagorean: q of the masses 3 and 4 at t = {t}")))
    return (*q, *(-(3 * q[k] + 4 * q[k + 2]) / 5 for k in range(2)))


def _in_a_row(name: str) -> Parts:
    a, b, period = map(symbolic, listed(f"{name}: a, b and T"))
    return _closed((-1, 0, 1, 0, 0, 0), (a, b, a, b, -2 * a, -2 * b), period)


def _closed(q0: Any, p0: Any, period: Any) -> Parts:
    orbit = {"q0": q0, "p0": p0, "period": period, "reference": (period, q0, p0)}
    return Parts(lagrangian=lambda q, v: attraction(q, v, 1, EQUAL, 2), invariants=invariants(2), **orbit)


STAR_MASSES = tuple(range(1, 8))
STAR_PLACES = (3, 3, 3, -3, -1, 2, -3, 0, 2, 0, -2, -4, 2, 4)
STAR_SPEEDS = (0, 0, 0, 0, 0, 0, 0, "-5/4", 0, 1, "7/4", 0, "-3/2", 0)


@catalogued(
    "Pleiades",
    "Seven stars in the plane that attract each other and nearly collide.",
    "Hairer, Nørsett and Wanner 1993, section II.10",
)
def pleiades(q0: Vector = STAR_PLACES, v0: Vector = STAR_SPEEDS) -> Parts:
    """From the places q0 with the velocities v0, each of 14 numbers, star after star."""
    usual = all(x == symbolic(y) for x, y in zip(q0 + v0, STAR_PLACES + STAR_SPEEDS, strict=True))
    x, y, vx, vy = np.reshape(
        [symbolic(number) for number in listed("pleiades: x, y and their velocities at t = 3")], (4, 7)
    )
    place = tuple(z for pair in zip(x, y, strict=True) for z in pair)
    push = tuple(m * z for m, *pair in zip(STAR_MASSES, vx, vy, strict=True) for z in pair)
    return Parts(
        lagrangian=lambda q, v: attraction(q, v, 1, STAR_MASSES, 2),
        p0=tuple(STAR_MASSES[k // 2] * v for k, v in enumerate(v0)),
        invariants=invariants(2),
        period="3/20",
        reference=(3, place, push) if usual else None,
        period_of="a twentieth of the usual interval, about the time in which stars pass; the motion has none",
    )


PLANET_MASSES = {
    "sun": "1.00000597682",
    "jupiter": "0.000954786104043",
    "saturn": "0.000285583733151",
    "uranus": "0.0000437273164546",
    "neptune": "0.0000517759138449",
    "pluto": "1/130000000",
}
PLANET_PLACES, PLANET_SPEEDS = (listed(f"outer solar system: {what}") for what in ("places", "speeds"))


def sun_and_planets(
    q: Any, v: Any, G: Any, sun: Any, jupiter: Any, saturn: Any, uranus: Any, neptune: Any, pluto: Any
) -> Any:
    return attraction(q, v, G, (sun, jupiter, saturn, uranus, neptune, pluto), 3)


@catalogued(
    "Outer solar system",
    "The Sun and the five planets from Jupiter to Pluto, in astronomical units and days.",
    "E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, second edition, 2006, I.2.4, Table 2.2",
)
def outer_solar_system(
    G: Positive = "2.95912208286e-4", sun: Positive = PLANET_MASSES["sun"],
    jupiter: Positive = PLANET_MASSES["jupiter"], saturn: Positive = PLANET_MASSES["saturn"],
    uranus: Positive = PLANET_MASSES["uranus"], neptune: Positive = PLANET_MASSES["neptune"],
    pluto: Positive = PLANET_MASSES["pluto"], q0: Vector = PLANET_PLACES, v0: Vector = PLANET_SPEEDS,
) -> Parts:  # fmt: skip
    """From the places q0 with the velocities v0, each of 18 numbers, body after body."""
    masses = (sun, jupiter, saturn, uranus, neptune, pluto)
    return Parts(
        lagrangian=sun_and_planets,
        p0=tuple(m * v0[3 * i + k] for i, m in enumerate(masses) for k in range(3)),
        invariants=invariants(3),
        period=_period(G * (sun + jupiter), q0, v0),
        period_of="the ellipse that Jupiter would follow if there were no other planets; the motion has none",
    )


def _period(mu: Any, q0: tuple[Any, ...], v0: tuple[Any, ...]) -> Any:
    """2π √(a³/μ) with 1/a = 2/r − v²/μ, of Jupiter about the Sun, μ = G (m_sun + m_jupiter); None if unbound."""
    r, v2 = sp.sqrt(sum((q0[3 + k] - q0[k]) ** 2 for k in range(3))), sum((v0[3 + k] - v0[k]) ** 2 for k in range(3))
    inverse = 2 / r - v2 / mu
    return 2 * sp.pi / sp.sqrt(mu * inverse**3) if inverse > 0 else None


ARENSTORF_PLACE = ("0.994", 0)
ARENSTORF_SPEED = (0, "-2.00158510637908252240537862224")
ARENSTORF_PERIOD = "17.0652165601579625588917206249"


def earth_and_moon(q: Any, v: Any, mu: Any) -> Any:
    earth, moon = (q[0] + mu) ** 2 + q[1] ** 2, (q[0] - (1 - mu)) ** 2 + q[1] ** 2
    turning = q[0] * v[1] - q[1] * v[0] + 0.5 * np.sum(q**2)
    return 0.5 * np.sum(v**2) + turning + (1 - mu) / np.sqrt(earth) + mu / np.sqrt(moon)


@catalogued(
    "Arenstorf's orbit",
    "A satellite that loops between earth and moon, close to the moon, and closes.",
    "Hairer, Nørsett and Wanner 1993, section II.0",
)
def arenstorf(
    mu: Positive = "0.012277471", q0: Vector = ARENSTORF_PLACE, v0: Vector = ARENSTORF_SPEED,
    period: Number = ARENSTORF_PERIOD,
) -> Parts:  # fmt: skip
    """From q0 with the velocity v0 in the turning frame. Another start has another period, or none: give it too."""
    p0 = (v0[0] - q0[1], v0[1] + q0[0])
    return Parts(lagrangian=earth_and_moon, p0=p0, period=period, reference=(period, q0, p0))
