"""A system with exact parameters and its start at many digits; runs at many digits, with which others are compared."""

import numpy as np

import leastaction as la


def spring(q, v, k, c):
    """Two coupled degrees of freedom, with a mass that depends on q and a Lagrangian that is not separable."""
    return (1 + q[0] ** 2) * v[0] ** 2 / 2 + v[1] ** 2 / 2 + c * v[0] * v[1] * np.sin(q[1]) - k * np.cosh(q[0] - q[1])


SPRING = la.Lagrangian(spring, n=2, params={"k": "1.3", "c": "1/3"})
START = {"q0": ["1/5", "-2/7"], "p0": ["0.4", "0.1"]}


def largest(x):
    return max(abs(entry) for entry in np.asarray(x).flat)


def exact(system, method, q0, p0=None, *, steps, digits=20, **how):
    """q and p of a run at many digits, rounded: the solution of the same equations by another solver."""
    path = la.integrate(system, method, q0, p0, steps=steps, digits=digits, **how)
    return path.q.astype(float), path.p.astype(float)
