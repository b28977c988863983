"""Many orbits of many systems, and the slope of their energy error.

Independent roundings give a random walk: its ends scatter by σ √N around zero. A bias gives a slope, the same for all
neighbours of a start. So every start has some neighbours, moved by up to a thousandth, whose roundings are others: the
mean of their ends divided by N is the slope of that orbit, and their scatter gives its standard error.
"""

from inspect import isfunction

import numpy as np

import leastaction as la

EPS = np.finfo(float).eps


def oscillators(q, v):
    """Two linear oscillators, coupled: separable."""
    return 0.5 * v @ v - 0.5 * q[0] ** 2 - 0.8 * q[1] ** 2 - 0.3 * q[0] * q[1]


def anharmonic(q, v):
    return 0.5 * v @ v - 0.25 * q[0] ** 4 - 0.5 * q[1] ** 2 - 0.1 * q[0] ** 2 * q[1] ** 2


def henon_heiles(q, v):
    return 0.5 * v @ v - 0.5 * q @ q - q[0] ** 2 * q[1] + q[1] ** 3 / 3


def kepler(q, v):
    return 0.5 * v @ v + 1 / np.sqrt(q @ q)


def pendulum(q, v):
    return 0.5 * v[0] ** 2 + np.cos(q[0])


def charge(q, v):
    """A charge in a magnetic field that grows outwards, held by a weak spring."""
    return 0.5 * v @ v + 0.5 * (q[0] * v[1] * (1 + q[0] ** 2 / 3) - q[1] * v[0]) - 0.05 * q @ q


def uniform(q, v):
    """A charge in a uniform magnetic field and an anharmonic potential: derivatives but f_q are constant."""
    return 0.5 * v @ v + 0.5 * (q[0] * v[1] - q[1] * v[0]) - 0.25 * q[0] ** 4 - 0.5 * q[1] ** 2


def double_pendulum(q, v):
    return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]) + 2 * np.cos(q[0]) + np.cos(q[1])


def top(q, v):
    """Lagrange's top in Euler's angles (θ, φ, ψ)."""
    spin = v[2] + v[1] * np.cos(q[0])
    return 0.5 * (v[0] ** 2 + (v[1] * np.sin(q[0])) ** 2) + 0.25 * spin**2 - np.cos(q[0])


def lorentz(t, q, v):
    """The force of a magnetic field, given as a force: it does no work."""
    return (1 + q[0] ** 2) * np.array([v[1], -v[0]])


def distance(q):
    """The pace of Kepler's orbits."""
    return np.sqrt(q @ q)


def falling(q, v):
    return 0.5 * v @ v - q[1]


def rod(q):
    return (q @ q - 1) / 2


def chain(n):
    """A sum over rows: masses between walls, with springs that grow stiffer."""
    ends, pairs = np.array([0, n - 1]), np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return la.Lagrangian.sum(
        [
            la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n)),
            la.Term(lambda q, v: -0.5 * (q[1] - q[0]) ** 2 - 0.25 * (q[1] - q[0]) ** 4, over=pairs),
            la.Term(lambda q, v: -0.5 * q[0] ** 2, over=ends),
        ],
        n=n,
    )


def near(centre_q, centre_v, spread):
    """Starts around a state."""

    def starts(rng, count):
        size = (count, len(centre_q))
        return (np.array(x) + rng.uniform(-spread, spread, size) for x in (centre_q, centre_v))

    return starts


SYSTEMS = {
    "oscillators": (oscillators, near([0, 0], [0, 0], 1.0)),
    "anharmonic": (anharmonic, near([0, 0], [0, 0], 1.0)),
    "henon-heiles": (henon_heiles, near([0, 0], [0, 0], 0.25)),
    "kepler": (kepler, near([1, 0], [0, 1], 0.2)),
    "pendulum": (pendulum, near([0.8], [0], 0.5)),
    "charge": (charge, near([0, 0], [0, 0], 1.0)),
    "uniform": (uniform, near([0, 0], [0, 0], 1.0)),
    "double-pendulum": (double_pendulum, near([0, 0], [0, 0], 0.5)),
    "top": (top, near([0.5, 0, 0], [0, 0, 4], 0.3)),
    "forced": (la.Lagrangian(anharmonic, n=2, force=lorentz), near([0, 0], [0, 0], 1.0)),
    "rod": (la.Lagrangian(falling, n=2, constraints=rod), near([0.6, -0.8], [0.4, 0.3], 0.3)),
    "paced": (kepler, near([1, 0], [0, 1], 0.2), {"pace": distance}),
    "sum": (chain(6), near([0] * 6, [0] * 6, 0.5)),
}


def slopes(name, method, h, *, steps, starts, neighbours, alone=False, seed=0):
    """Of each start: the slope and its standard error, in ε a step; and the walk's size after all steps, in ε."""
    given, sample, *options = SYSTEMS[name]
    rng = np.random.default_rng(seed)
    q0, v0 = sample(rng, starts)
    system = la.Lagrangian(given, n=q0.shape[1]) if isfunction(given) else given
    q0, v0 = (
        (np.repeat(x, neighbours, axis=0) + rng.uniform(-1e-3, 1e-3, (starts * neighbours, x.shape[1])))
        for x in (q0, v0)
    )
    run = {"h": h, "steps": steps, "every": steps, **(options[0] if options else {})}
    if system.m:
        held = [la.project(system, q, v) for q, v in zip(q0, v0, strict=True)]
        q0, v0 = (np.array(x) for x in zip(*held, strict=True))
    if alone:
        energy = np.array([la.integrate(system, method, q, v0=v, **run).energy() for q, v in zip(q0, v0, strict=True)])
    else:
        energy = la.ensemble(system, method, q0, v0=v0, **run).energy()
    ends = ((energy[:, -1] - energy[:, 0]) / np.maximum(abs(energy[:, 0]), 0.25) / EPS).reshape(starts, neighbours)
    scatter = ends.std(axis=1, ddof=1)
    return ends.mean(axis=1) / steps, scatter / np.sqrt(neighbours) / steps, scatter
