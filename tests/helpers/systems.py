"""Lagrangians that several tests share, each with a start away from special points."""

from functools import cache
from typing import NamedTuple

import numpy as np

import leastaction as la


class Case(NamedTuple):
    """A system and where to start it."""

    system: la.Lagrangian
    q0: list[float]
    v0: list[float]


def pendulum(q, v, g):
    return 0.5 * v[0] ** 2 + g * np.cos(q[0])


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    return T + m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))


def inseparable(q, v):
    """Every mixed derivative of L is there: a mass that depends on q, a magnetic term, a nonlinear potential."""
    T = 0.5 * (1 + q[0] ** 2) * v[0] ** 2 + 0.5 * (2 + np.cos(q[1])) * v[1] ** 2 + 0.3 * np.sin(q[0]) * v[0] * v[1]
    return T + 0.4 * (q[0] * v[1] - q[1] ** 2 * v[0]) - 0.5 * q[0] ** 2 - 0.25 * q[1] ** 4 + 0.2 * np.cos(q[0] - q[1])


def separable(q, v):
    """A constant, full mass matrix and a nonlinear potential."""
    T = 0.5 * (2 * v[0] ** 2 + v[1] ** 2 + v[0] * v[1])
    return T - 0.5 * q[0] ** 2 - 0.25 * q[1] ** 4 + 0.5 * np.cos(q[0] - q[1])


def charge(q, v, B):
    """A charge in the plane, in a field B(1 + q₁²) across it, held by a weak spring."""
    return 0.5 * v @ v + 0.5 * B * (q[0] * v[1] * (1 + q[0] ** 2 / 3) - q[1] * v[0]) - 0.05 * q @ q


def relativistic(q, v, c):
    """Kinetic energy that is not quadratic in v; its momenta are unbounded, its speed is not."""
    return -(c**2) * np.sqrt(1 - v @ v / c**2) - 0.5 * q @ q


def driven_pendulum(t, q, v, a):
    return 0.5 * v[0] ** 2 + (1 + a * np.cos(2 * t)) * np.cos(q[0]) + 0.3 * np.sin(t) * v[0]


def kepler(q, v):
    return 0.5 * v @ v + 1 / np.sqrt(q @ q)


def chain(q, v):
    """Links of unit length and mass, hung from a point; q are the angles to the vertical."""
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * (x @ x + y @ y) + np.sum(np.cumsum(np.cos(q)))


_CASES = {
    "pendulum": (pendulum, {"g": 1.0}, [2.0], [0.1]),
    "double-pendulum": (double_pendulum, {"m": 1.0, "l": 1.0, "g": 1.0}, [0.8, 1.1], [0.3, -0.2]),
    "inseparable": (inseparable, {}, [0.5, -0.3], [0.4, 0.6]),
    "separable": (separable, {}, [0.5, -0.8], [0.4, 0.6]),
    "charge": (charge, {"B": 1.5}, [1.0, 0.2], [0.1, 0.8]),
    "relativistic": (relativistic, {"c": 1.5}, [0.9, 0.2], [0.3, 0.9]),
    "driven-pendulum": (driven_pendulum, {"a": 0.4}, [1.2], [0.3]),
    "kepler": (kepler, {}, [1.0, 0.1], [0.1, 1.1]),
    "kepler-3d": (kepler, {}, [1.0, 0.1, 0.2], [0.1, 1.0, 0.3]),
    "chain-4": (chain, {}, [0.5, 0.3, -0.2, 0.6], [0.1, 0.2, 0.0, -0.3]),
}
NAMES = list(_CASES)


@cache
def case(name: str) -> Case:
    """A case by name; each system is traced once."""
    fn, params, q0, v0 = _CASES[name]
    return Case(la.Lagrangian(fn, n=len(q0), params=params), q0, v0)


@cache
def catalogued(name: str):
    """A problem of the catalogue with its usual data; each is made, and its system traced, once."""
    return la.problems.get(name)


def step(system, method, q, p, h, t0=0.0):
    """Φ_h(q, p), one step."""
    path = la.integrate(system, method, q, p, h=h, steps=1, t0=t0)
    return path.q[1], path.p[1]
