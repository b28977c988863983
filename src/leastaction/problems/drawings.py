"""How the problems of the catalogue are shown: drawings, names, units.

A drawing takes a state q and the parameters it names, and gives points, or points and links; a link is (i, j) for a rod
or (i, j, "spring"), (i, j, "thread"); a disc is (its centre, the end of a half axis, the end of the other, "disc"). The
drawing is written for one state and works on arrays of states as well.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from leastaction.numbers.formulas import DOUBLES, by_components
from leastaction.results.looks import Look

RIM = 16  # half the points of a hoop


def pendulum(q: Any) -> Any:
    return [(0, 0), (np.sin(q[0]), -np.cos(q[0]))]


def double_pendulum(q: Any, l1: Any, l2: Any) -> Any:
    x, y = l1 * np.sin(q[0]), -l1 * np.cos(q[0])
    return [(0, 0), (x, y), (x + l2 * np.sin(q[1]), y - l2 * np.cos(q[1]))]


def spring(q: Any) -> Any:
    """A mass on a spring, between a wall and free space; at rest in the middle."""
    return [(-3, 0), (q[0], 0)], [(0, 1, "spring")]


def planet(q: Any) -> Any:
    """A particle and, at the origin, what attracts it."""
    return [(0, 0), (q[0], q[1])], []


def henon_heiles(q: Any) -> Any:
    """The star, and the triangle that bounds it for H = 1/6."""
    a = math.sqrt(3) / 2
    return [(0, 1), (-a, -0.5), (a, -0.5), (q[0], q[1])], [(0, 1, "thread"), (1, 2, "thread"), (2, 0, "thread")]


def top(q: Any) -> Any:
    """The axis from the fixed point, and a disc on it, whose mark shows the spin."""
    phi, theta, psi = q[0], q[1], q[2]
    axis = np.sin(theta) * np.sin(phi), -np.sin(theta) * np.cos(phi), np.cos(theta)
    # e₁ along the line of nodes, e₂ = axis × e₁
    first = np.cos(phi), np.sin(phi), 0 * phi
    second = -np.cos(theta) * np.sin(phi), np.cos(theta) * np.cos(phi), np.sin(theta)
    c, s = 0.36 * np.cos(psi), 0.36 * np.sin(psi)
    hub = tuple(0.62 * a for a in axis)
    ends = [tuple(h + x * e + y * f for h, e, f in zip(hub, first, second, strict=True)) for x, y in ((c, s), (-s, c))]
    return [(0, 0, 0), axis, hub, *ends], [(0, 1), (2, 3, 4, "disc")]


def bodies(dimensions: int) -> Any:
    """Bodies, one after the other."""
    return lambda q: (
        [tuple(q[dimensions * i + k] for k in range(dimensions)) for i in range(len(q) // dimensions)],
        [],
    )


def hoop(t: Any, q: Any, R: Any, Omega: Any) -> Any:
    """The hoop, and the bead on it."""
    c, s = np.cos(Omega * t), np.sin(Omega * t)
    turns = [2 * math.pi * k / (2 * RIM) for k in range(2 * RIM)]
    ring = [(R * math.sin(a) * c, R * math.sin(a) * s, -R * math.cos(a) + 0 * c) for a in turns]
    links = [(1 + k, 1 + (k + 1) % len(ring), "thread") for k in range(len(ring))]
    return [(q[0], q[1], q[2]), *ring], links


def loops(q: Any, l: Any) -> Any:
    size = len(q) // 2
    ground, ends = [(i * l, 0) for i in range(size)], [(q[2 * i], q[2 * i + 1]) for i in range(size)]
    links = [(i, size + i) for i in range(size)] + [(size + i, size + i + 1) for i in range(size - 1)]
    return ground + ends, links


def chain(q: Any) -> Any:
    return [(0, 0), *((q[2 * i], q[2 * i + 1]) for i in range(len(q) // 2))]


def squeezer(
    q: Any, xa: Any, ya: Any, xb: Any, yb: Any, xc: Any, yc: Any, d: Any, e: Any, rr: Any, sc: Any, sd: Any, u: Any,
    zt: Any,
) -> Any:  # fmt: skip
    """The drive, the point where three arms meet, and the spring."""
    beta, theta, gamma, delta, epsilon = (q[k] for k in (0, 1, 2, 4, 6))
    pin = rr * np.cos(beta), rr * np.sin(beta)
    meet = pin[0] - d * np.cos(beta + theta), pin[1] - d * np.sin(beta + theta)
    link = xa + zt * np.cos(delta), ya + zt * np.sin(delta)
    arm = xa + u * np.sin(epsilon), ya - u * np.cos(epsilon)
    held = xb + sd * np.cos(gamma) + sc * np.sin(gamma), yb + sd * np.sin(gamma) - sc * np.cos(gamma)
    points = [(0, 0), pin, meet, (xb, yb), (xa, ya), link, arm, held, (xc, yc)]
    links: list[Any] = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 2), (4, 6), (6, 2), (3, 7), (7, 8, "spring")]
    return points, links


def cart(q: Any, l: Any) -> Any:
    """The cart on its rail, and the pole."""
    w, d = 0.4 * l, 0.15 * l
    box = [(q[0] - w, -d), (q[0] + w, -d), (q[0] + w, d), (q[0] - w, d)]
    pole = [(q[0], 0), (q[0] + 2 * l * np.sin(q[1]), 2 * l * np.cos(q[1]))]
    links: list[Any] = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (6, 7, "thread")]
    return [*box, *pole, (-4 * l, -d), (4 * l, -d)], links


_SI: dict[str, Any] = {"t": "s", "q": "m", "p": "kg m/s", "energy": "J"}
_SI_ANGLES: dict[str, Any] = {"t": "s", "q": "rad", "p": "kg m²/s", "energy": "J"}


def _look(draw: Any, names: str, momenta: str = "", **more: Any) -> Look:
    """A look with these names of coordinates and momenta, which are p and the coordinate's where none are given."""
    own = tuple(names.split())
    return Look(draw=draw, names=own, momenta=tuple(momenta.split()) or tuple(f"p{name}" for name in own), **more)


def _points(count: int, axes: str = "xy", marks: str = "₁₂₃₄₅₆₇₈₉") -> str:
    """Names of the coordinates of points, each with its mark."""
    return " ".join(f"{axis}{marks[i]}" for i in range(count) for axis in axes)


_TWO_RODS = _look(double_pendulum, "θ₁ θ₂", "p₁ p₂", angles=(0, 1), units=_SI_ANGLES, trails=(2,))
_TOP = _look(top, "φ θ ψ", "p_φ p_θ p_ψ", angles=(0, 2), units=_SI_ANGLES, trails=(1,))
LOOKS: dict[str, Look] = {
    "andrews-squeezer": _look(
        squeezer, "β Θ γ Φ δ Ω ε", "p_β p_Θ p_γ p_Φ p_δ p_Ω p_ε", trails=(2,), angles=tuple(range(7)), units=_SI_ANGLES
    ),
    "arenstorf": _look(lambda q, mu: ([(-mu, 0), (1 - mu, 0), (q[0], q[1])], []), "x y", trails=(2,)),
    "cart-pole": _look(cart, "x θ", "p p_θ", trails=(5,), angles=(1,), units={"t": "s", "energy": "J"}),
    "chain": _look(chain, _points(5), trails=(5,), units=_SI),
    "charged-particle": _look(lambda q: [(q[0], q[1])], "x y"),
    "damped-driven-pendulum": _look(
        pendulum, "θ", "p", angles=(0,), units={"q": "rad"}, period=lambda w: 2 * math.pi / w["omega"]
    ),
    "double-pendulum": _TWO_RODS,
    "double-pendulum-chaotic": _TWO_RODS,
    "driven-oscillator": _look(spring, "x", "p", period=lambda w: 2 * math.pi / w["nu"]),
    "falling-chain": _look(chain, _points(9), trails=(9,), units=_SI),
    "four-bar-linkage": _look(lambda q, c: [(0, 0), (q[0], q[1]), (q[2], q[3]), (c, 0)], "xA yA xB yB", units=_SI),
    "harmonic-oscillator": _look(spring, "x", "p"),
    "harmonic-oscillator-2d": _look(lambda q: ([(0, 0), (q[0], q[1])], [(0, 1, "spring")]), "x y", trails=(1,)),
    "henon-heiles": _look(henon_heiles, "x y", trails=(3,)),
    "kepler": _look(planet, "x y", trails=(1,)),
    "kepler-3d": _look(lambda q: ([(0, 0, 0), (q[0], q[1], q[2])], []), "x y z", trails=(1,)),
    "kepler-galerkin": _look(planet, "x y", trails=(1,)),
    "lagrange-top": _TOP,
    "lagrange-top-cusps": _TOP,
    "lagrange-top-cusps-reduced": _look(
        lambda q: [(0, 0), (np.sin(q[0]), np.cos(q[0]))], "θ", "p_θ", units={"q": "rad"}
    ),
    "linear-double-pendulum": _TWO_RODS,
    "n-four-bar": _look(loops, _points(2), units=_SI),
    "outer-solar-system": _look(
        bodies(3), _points(6, "xyz", "☉♃♄♅♆♇"), trails=(1, 2, 3, 4, 5), units={"t": "d", "q": "AU"}
    ),
    "pendulum": _look(pendulum, "θ", "p", angles=(0,), units={"q": "rad"}),
    "pendulum-cartesian": _look(lambda q: [(0, 0), (q[0], q[1])], "x y", units=_SI),
    "pleiades": _look(bodies(2), _points(7), trails=tuple(range(7))),
    "quadratic-drag": _look(lambda q: ([(0, 0), (0, -q[0])], [(0, 1, "thread")]), "x", "p", units=_SI),
    "rotating-hoop": _look(hoop, "x y z", trails=(0,), units=_SI),
    "slider-crank": _look(lambda q: [(0, 0), (q[0], q[1]), (q[2], 0)], "x y X", units=_SI),
    "spherical-pendulum": _look(lambda q: [(0, 0, 0), (q[0], q[1], q[2])], "x y z", trails=(1,), units=_SI),
    "van-der-pol": _look(spring, "x", "p"),
    **{
        name: _look(bodies(2), _points(3), trails=(0, 1, 2))
        for name in ("butterfly", "figure-eight", "moth", "pythagorean", "yin-yang")
    },
}


def find(system: Any) -> Look | None:
    """The look of a system of the catalogue: of the same name, with the very same Lagrangian and force."""
    if system.name not in LOOKS:
        return None
    known, found = _known(system.name)
    return found if system.digest == known else None


@cache
def _known(name: str) -> tuple[str, Look]:
    from leastaction.problems import get
    from leastaction.problems.problem import Formula

    problem = get(name)
    kept = {
        name.replace("-", " "): partial(_value, invariant.formula)
        for name, invariant in problem.invariants.items()
        if isinstance(invariant, Formula)
    }
    return problem.system.digest, replace(LOOKS[name], title=problem.title, invariants=kept)


def _value(formula: Any, q: Any, p: Any, params: Any) -> Any:
    c = SimpleNamespace(**{name: DOUBLES(float(value)) for name, value in params.items()})
    return by_components(DOUBLES, lambda *qp: formula(DOUBLES, c, *qp), q, p)
