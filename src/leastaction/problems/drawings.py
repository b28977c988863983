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


def particle(q: Any) -> Any:
    return [(q[0], q[1])]


def falling(q: Any) -> Any:
    """A body below the place where q = 0."""
    return [(0, 0), (0, -q[0])], [(0, 1, "thread")]


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


def stars(q: Any) -> Any:
    return [(q[2 * i], q[2 * i + 1]) for i in range(7)], []


def bodies(q: Any) -> Any:
    """Three bodies in the plane."""
    return [(q[2 * i], q[2 * i + 1]) for i in range(3)], []


def satellite(q: Any, mu: Any) -> Any:
    """The earth, the moon, and what moves between them."""
    return [(-mu, 0), (1 - mu, 0), (q[0], q[1])], []


def planets(q: Any) -> Any:
    """The Sun and five planets."""
    return [(q[3 * i], q[3 * i + 1], q[3 * i + 2]) for i in range(6)], []


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


def slider(q: Any) -> Any:
    return [(0, 0), (q[0], q[1]), (q[2], 0)]


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


def nutation(q: Any) -> Any:
    return [(0, 0), (np.sin(q[0]), np.cos(q[0]))]


_TWO: dict[str, Any] = {"names": ("θ₁", "θ₂"), "momenta": ("p₁", "p₂"), "angles": (0, 1)}
_SI_ANGLES: dict[str, Any] = {"t": "s", "q": "rad", "p": "kg m²/s", "energy": "J"}
_PLANE: dict[str, Any] = {"names": ("x", "y"), "momenta": ("px", "py")}
_SPACE: dict[str, Any] = {"names": ("x", "y", "z"), "momenta": ("px", "py", "pz")}
_EULER: dict[str, Any] = {"names": ("φ", "θ", "ψ"), "momenta": ("p_φ", "p_θ", "p_ψ"), "angles": (0, 2)}


def _bodies(count: int, axes: str, marks: str) -> dict[str, Any]:
    """Names of the coordinates of several bodies, each with its mark."""
    names = tuple(f"{axis}{marks[i]}" for i in range(count) for axis in axes)
    return {"names": names, "momenta": tuple(f"p{name}" for name in names)}


_SI: dict[str, Any] = {"t": "s", "q": "m", "p": "kg m/s", "energy": "J"}
_SMALL = "₀₁₂₃₄₅₆₇₈₉"


def _points(count: int) -> dict[str, Any]:
    """Names of the coordinates of points in the plane, numbered from one."""
    marks = ["".join(_SMALL[int(digit)] for digit in str(k)) for k in range(1, count + 1)]
    names = tuple(f"{axis}{mark}" for mark in marks for axis in "xy")
    return {"names": names, "momenta": tuple(f"p{name}" for name in names)}


LOOKS: dict[str, Look] = {
    "andrews-squeezer": Look(
        draw=squeezer,
        trails=(2,),
        names=("β", "Θ", "γ", "Φ", "δ", "Ω", "ε"),
        momenta=tuple(f"p_{name}" for name in "βΘγΦδΩε"),
        angles=tuple(range(7)),
        units=_SI_ANGLES,
    ),
    "cart-pole": Look(
        draw=cart, trails=(5,), names=("x", "θ"), momenta=("p", "p_θ"), angles=(1,), units={"t": "s", "energy": "J"}
    ),
    "chain": Look(draw=chain, trails=(5,), units=_SI, **_points(5)),
    "falling-chain": Look(draw=chain, trails=(9,), units=_SI, **_points(9)),
    "four-bar-linkage": Look(
        draw=lambda q, c: [(0, 0), (q[0], q[1]), (q[2], q[3]), (c, 0)],
        units=_SI,
        names=("xA", "yA", "xB", "yB"),
        momenta=("pxA", "pyA", "pxB", "pyB"),
    ),
    "n-four-bar": Look(draw=loops, units=_SI, **_points(2)),
    "pendulum-cartesian": Look(draw=lambda q: [(0, 0), (q[0], q[1])], units=_SI, **_PLANE),
    "rotating-hoop": Look(draw=hoop, trails=(0,), units=_SI, **_SPACE),
    "slider-crank": Look(draw=slider, units=_SI, names=("x", "y", "X"), momenta=("px", "py", "pX")),
    "spherical-pendulum": Look(draw=lambda q: [(0, 0, 0), (q[0], q[1], q[2])], trails=(1,), units=_SI, **_SPACE),
    "charged-particle": Look(draw=particle, **_PLANE),
    "damped-driven-pendulum": Look(
        draw=pendulum,
        names=("θ",),
        momenta=("p",),
        angles=(0,),
        units={"q": "rad"},
        period=lambda w: 2 * math.pi / w["omega"],
    ),
    "double-pendulum": Look(draw=double_pendulum, units=_SI_ANGLES, trails=(2,), **_TWO),
    "double-pendulum-chaotic": Look(draw=double_pendulum, units=_SI_ANGLES, trails=(2,), **_TWO),
    "driven-oscillator": Look(draw=spring, names=("x",), momenta=("p",), period=lambda w: 2 * math.pi / w["nu"]),
    "harmonic-oscillator": Look(draw=spring, names=("x",), momenta=("p",)),
    "harmonic-oscillator-2d": Look(draw=lambda q: ([(0, 0), (q[0], q[1])], [(0, 1, "spring")]), trails=(1,), **_PLANE),
    "henon-heiles": Look(draw=henon_heiles, trails=(3,), **_PLANE),
    "kepler": Look(draw=planet, trails=(1,), **_PLANE),
    "kepler-3d": Look(draw=lambda q: ([(0, 0, 0), (q[0], q[1], q[2])], []), trails=(1,), **_SPACE),
    "kepler-galerkin": Look(draw=planet, trails=(1,), **_PLANE),
    "lagrange-top": Look(draw=top, units=_SI_ANGLES, trails=(1,), **_EULER),
    "lagrange-top-cusps": Look(draw=top, units=_SI_ANGLES, trails=(1,), **_EULER),
    "lagrange-top-cusps-reduced": Look(draw=nutation, names=("θ",), momenta=("p_θ",), units={"q": "rad"}),
    "linear-double-pendulum": Look(draw=double_pendulum, units=_SI_ANGLES, trails=(2,), **_TWO),
    "outer-solar-system": Look(
        draw=planets, trails=(1, 2, 3, 4, 5), units={"t": "d", "q": "AU"}, **_bodies(6, "xyz", "☉♃♄♅♆♇")
    ),
    "arenstorf": Look(draw=satellite, trails=(2,), **_PLANE),
    **{
        name: Look(draw=bodies, trails=(0, 1, 2), **_bodies(3, "xy", "₁₂₃"))
        for name in ("butterfly", "figure-eight", "moth", "pythagorean", "yin-yang")
    },
    "pleiades": Look(draw=stars, trails=tuple(range(7)), **_bodies(7, "xy", "₁₂₃₄₅₆₇")),
    "quadratic-drag": Look(
        draw=falling, names=("x",), momenta=("p",), units={"t": "s", "q": "m", "p": "kg m/s", "energy": "J"}
    ),
    "van-der-pol": Look(draw=spring, names=("x",), momenta=("p",)),
    "pendulum": Look(draw=pendulum, names=("θ",), momenta=("p",), angles=(0,), units={"q": "rad"}),
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

    problem = get(name)
    kept = {
        name.replace("-", " "): partial(_value, invariant.formula)
        for name, invariant in problem.invariants.items()
        if name != "energy"
    }
    return problem.system.digest, replace(LOOKS[name], title=problem.title, invariants=kept)


def _value(formula: Any, q: Any, p: Any, params: Any) -> Any:
    c = SimpleNamespace(**{name: DOUBLES(float(value)) for name, value in params.items()})
    return by_components(DOUBLES, lambda *qp: formula(DOUBLES, c, *qp), q, p)
