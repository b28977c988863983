"""Chains of N points on rigid links in the plane, in Cartesian coordinates: n = 2N, m = N.

    L = Σ_i ½ m |v_i|² − m g y_i,        |r_i − r_{i−1}|² = l²,    r_0 = 0

`chain` hangs from the origin and is let go straight; `falling_chain` is folded, one half down and the other up again,
and its free end is let go: it falls faster than a free body.

Sources: E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, VII.1 (constrained systems);
W. Tomaszewski, P. Pieranski, J.-C. Geminard, The motion of a freely falling chain tip, American Journal of Physics 74
(2006) 776–783.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.numbers.symbolic import positive, symbolic
from leastaction.problems.problem import Problem


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    return 0.5 * m * (v @ v) - m * g * q[1::2].sum()


def links(q: Any, l: Any) -> Any:
    x, y = q[0::2], q[1::2]
    return [
        (x[i] - x[i - 1]) ** 2 + (y[i] - y[i - 1]) ** 2 - l**2 if i else x[0] ** 2 + y[0] ** 2 - l**2
        for i in range(len(x))
    ]


def chain(m: Any = 1, g: Any = "9.81", l: Any = 1, count: Any = 5, theta0: Any = "pi/2") -> Problem:
    """A chain of so many links, straight at the angle theta0 off the vertical, at rest."""
    m, g, l, count = positive(m, "m"), positive(g, "g"), positive(l, "l"), whole(count, 1)
    theta0 = symbolic(theta0, "theta0")
    places = [(k * l * sp.sin(theta0), -k * l * sp.cos(theta0)) for k in range(1, count + 1)]
    params = {"m": m, "g": g, "l": l}
    return Problem(
        name="chain",
        title="Chain of rods",
        description="Points on rigid links that hang from a pivot: as many constraints as links.",
        source="Hairer, Lubich, Wanner, Geometric Numerical Integration, VII.1",
        lagrangian=lagrangian,
        constraints=links,
        q0=tuple(sp.sympify(z) for place in places for z in place),
        p0=(sp.Integer(0),) * (2 * count),
        params=params,
        settings={**params, "count": sp.Integer(count), "theta0": theta0},
        invariants={"energy": energy},
    )


def falling_chain(m: Any = "1/10", g: Any = "9.81", l: Any = "1/10", count: Any = 9) -> Problem:
    """A folded chain of 2k + 1 links: k straight down, one across, k up again. This last end is let go."""
    m, g, l, count = positive(m, "m"), positive(g, "g"), positive(l, "l"), whole(count, 3)
    if count % 2 == 0:
        raise ValueError(f"count must be odd: as many links go down as up, and one link goes across; got {count}")
    half = count // 2
    places = [(sp.Integer(0), -k * l) for k in range(1, half + 1)]
    places += [(l, -k * l) for k in range(half, -1, -1)]
    params = {"m": m, "g": g, "l": l}
    return Problem(
        name="falling-chain",
        title="Falling chain",
        description="A folded chain, one of its ends let go: the tip falls faster than a free body.",
        source="Tomaszewski, Pieranski, Geminard, American Journal of Physics 74 (2006) 776–783",
        lagrangian=lagrangian,
        constraints=links,
        q0=tuple(sp.sympify(z) for place in places for z in place),
        p0=(sp.Integer(0),) * (2 * count),
        params=params,
        settings={**params, "count": sp.Integer(count)},
        invariants={"energy": energy},
        period=sp.sqrt(2 * half * l / g),
        period_of="a free fall to the bend",
    )


def whole(count: Any, least: int) -> int:
    """The number of links, or of loops, checked."""
    number = symbolic(count, "count")
    if number != int(number) or number < least:
        raise ValueError(f"count, how many there are, must be an integer, at least {least}; got {count!r}")
    return int(number)


def energy(x: Arithmetic, c: Any, q: Any, p: Any) -> Any:
    return sum(z**2 for z in p) / (2 * c.m) + c.m * c.g * sum(q[1::2])
