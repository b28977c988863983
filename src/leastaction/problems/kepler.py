"""Kepler problem.

    L = ½ v·v + k/|q|,    H = ½ p·p − k/|q|

Bound orbits are ellipses of semi-major axis a = −k/(2H) and eccentricity e about the origin, with period
T = 2π √(a³/k). With b = a√(1 − e²), the unit vectors P to the pericentre and Q across it in the direction of motion,
and the eccentric anomaly E of Kepler's equation,

    E − e sin E = M₀ + 2πt/T,    q = a(cos E − e) P + b sin E Q,    p = 2π/T · (b cos E Q − a sin E P)/(1 − e cos E)

Conserved: energy, angular momentum q × p, and the Laplace–Runge–Lenz vector p × (q × p) − k q/|q| = k e P.

Sources: S. Ober-Blöbaum, N. Saake, Construction and analysis of higher order Galerkin variational integrators, 2014,
section 5.2, eq. (5.3), whose data are "kepler-galerkin"; H. Goldstein, Classical Mechanics, chapter 3. The start of
"kepler" is the usual one of numerical experiments: at the pericentre, a = k = 1, e = 0.6.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import symbolic_vector
from leastaction.problems.problem import Data, ExactMotion, Number, Parts, Positive, catalogued

DESCRIPTION = "A particle attracted by a fixed centre with the force k/r²; a bound orbit is an ellipse."
SOURCE = "Ober-Blöbaum and Saake 2014, section 5.2, eq. (5.3)"


def lagrangian(q: Any, v: Any, k: Any) -> Any:
    return 0.5 * np.sum(v**2) + k / np.sqrt(np.sum(q**2))


@catalogued("Kepler problem", DESCRIPTION, SOURCE)
def kepler(eccentricity: Number = "0.6", k: Positive = 1, a: Positive = 1, q0: Any = None, p0: Any = None) -> Parts:
    """Motion in the plane, from the pericentre (a(1 − e), 0); or from any q0, p0 of a bound orbit."""
    return _kepler(2, k, a, eccentricity, sp.Integer(0), q0, p0)


@catalogued("Kepler problem in space", DESCRIPTION, SOURCE)
def kepler_3d(
    eccentricity: Number = "0.6",
    k: Positive = 1,
    a: Positive = 1,
    inclination: Number = "pi/6",
    q0: Any = None,
    p0: Any = None,
) -> Parts:
    """Motion in space, its plane inclined to the (x, y) plane about the x axis; or from any q0, p0 of a bound orbit."""
    return _kepler(3, k, a, eccentricity, inclination, q0, p0)


@catalogued("Kepler problem, data of the Galerkin paper", DESCRIPTION, SOURCE)
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
    planar = {"angular-momentum": lambda x, c, q, p: _cross(q, p)[2]}
    spatial = {f"angular-momentum-{axis}": _component(_cross, i) for i, axis in enumerate("xyz")}
    return Parts(
        lagrangian=lagrangian,
        q0=q0,
        p0=p0,
        params={"k": k},
        settings=settings,
        invariants={
            "energy": energy,
            **(planar if n == 2 else spatial),
            **{f"laplace-runge-lenz-{axis}": _lenz_component(i) for i, axis in enumerate("xyz"[:n])},
        },
        solution=solution,
    )


def _check_bound(k: Any, q0: Any, p0: Any) -> None:
    if not any(q0):
        raise ValueError("q0 must not be the centre of attraction")
    if _dot(p0, p0) / 2 - k / sp.sqrt(_dot(q0, q0)) >= 0:
        raise ValueError(f"q0 = {q0}, p0 = {p0} is not a bound orbit: ½p² − k/r ≥ 0. Take a smaller momentum")
    if not any(sp.simplify(x) for x in _cross(q0, p0)):
        raise ValueError(f"q0 = {q0} and p0 = {p0} are parallel: the orbit falls into the centre")


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return _dot(p, p) / 2 - c.k / x.sqrt(_dot(q, q))


def lenz(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    """p × (q × p) − k q/|q| = (p·p − k/|q|) q − (q·p) p, the vector towards the pericentre."""
    along, across = _dot(p, p) - c.k / x.sqrt(_dot(q, q)), _dot(q, p)
    return tuple(along * qi - across * pi for qi, pi in zip(q, p, strict=True))


def _component(vector: Any, i: int) -> Any:
    return lambda x, c, q, p: vector(q, p)[i]


def _lenz_component(i: int) -> Any:
    return lambda x, c, q, p: lenz(x, c, q, p)[i]


def _dot(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _cross(a: Any, b: Any) -> Any:
    a1, a2, a3 = (*a, 0)[:3]
    b1, b2, b3 = (*b, 0)[:3]
    return a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1


def solution(d: Data) -> ExactMotion:
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
