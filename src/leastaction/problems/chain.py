"""Chains of N points on rigid links in the plane, in Cartesian coordinates: n = 2N, m = N.

    L = Σ_i ½ m |v_i|² − m g y_i,        |r_i − r_{i−1}|² = l²,    r_0 = 0

`chain` hangs from the origin and is let go straight; `falling_chain` is folded, one half down and the other up again,
and its free end is let go: it falls faster than a free body.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems.problem import Count, Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[1::2].sum()


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
    return Parts(
        lagrangian=lagrangian,
        constraints=links,
        q0=tuple(z for place in places for z in place),
        p0=(0,) * int(2 * count),
        invariants={"energy": energy},
    )


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
    return Parts(
        lagrangian=lagrangian,
        constraints=links,
        q0=tuple(z for place in places for z in place),
        p0=(0,) * int(2 * count),
        invariants={"energy": energy},
        period=sp.sqrt(2 * half * l / g),
        period_of="a free fall to the bend",
    )


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return sum(z**2 for z in p) / (2 * c.m) + c.m * c.g * sum(q[1::2])
