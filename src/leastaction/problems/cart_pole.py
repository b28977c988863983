"""Cart and pole: a force u on a cart on a rail, and a pole that turns about a pin on the cart. The input is u.

    L(q, v) = ½ (M + m) ẋ² + m l cos θ ẋ θ̇ + ⅔ m l² θ̇² − m g l cos θ,      F = (u, 0)

x is where the cart is, θ the pole's angle from upright, l half the length of the pole, which is uniform, so that its
moment of inertia about the pin is 4/3 m l². There is no friction. θ = 0 is unstable: a force on the cart must hold the
pole there. A run is given u over time, `la.integrate(…, inputs={"u": U})`. No closed form is known. Data and model,
without its friction, are from A. G. Barto, R. S. Sutton and C. W. Anderson, Neuronlike adaptive elements that can solve
difficult learning control problems, IEEE Trans. Syst. Man Cybern. SMC-13, 1983, 834–846, appendix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.problems.problem import Number, Parts, Positive, Vector, catalogued


def lagrangian(q: Any, v: Any, M: Any, m: Any, l: Any, g: Any) -> Any:
    moving = 0.5 * (M + m) * v[0] ** 2 + m * l * np.cos(q[1]) * v[0] * v[1] + 2 * m * l**2 * v[1] ** 2 / 3
    return moving - m * g * l * np.cos(q[1])


def motor(q: Any, v: Any, u: Any) -> Any:
    return np.array([u[0], 0])


@catalogued(
    "Cart and pole",
    "A pole on a cart, which a force on the cart, the input u, holds upright or swings up.",
    "Barto, Sutton and Anderson, IEEE Trans. Syst. Man Cybern. SMC-13, 1983, 834-846",
)
def cart_pole(
    M: Positive = 1,
    m: Positive = "0.1",
    l: Positive = "0.5",
    g: Positive = "9.8",
    x0: Number = 0,
    theta0: Number = "0.1",
    p0: Vector = (0, 0),
) -> Parts:
    """A cart of mass M with a pole of mass m and length 2l, let go at the angle theta0 from upright."""
    return Parts(
        lagrangian=lagrangian,
        force=motor,
        inputs={"u": 1},
        q0=(x0, theta0),
    )
