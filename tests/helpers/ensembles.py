"""Systems that the tests of ensembles share."""

import numpy as np

import leastaction as la


def double_pendulum(q, v, m, g):
    T = 0.5 * (1 + m) * v[0] ** 2 + 0.5 * m * v[1] ** 2 + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (1 + m) * g * np.cos(q[0]) + m * g * np.cos(q[1])


def kepler(q, v, k):
    return 0.5 * (v @ v) + k / np.sqrt(q @ q)


def chain(q, v):
    d = q[1:] - q[:-1]
    return 0.5 * (v @ v) - 0.5 * (d @ d) - 0.25 * (d**2 @ d**2) - 0.5 * q[0] ** 2


PENDULUM = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "g": 9.81})
KEPLER = la.Lagrangian(kepler, n=2, params={"k": 1.0})
