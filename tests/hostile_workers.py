"""What other processes are asked to do; they import it by its name."""

import numpy as np

import leastaction as la


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


def falls_into_the_sun(steps):
    """A run that cannot be finished: StepFailed."""
    return la.integrate(la.Lagrangian(kepler, n=2), "midpoint", [1.0, 0.0], [0.0, 0.0], h=0.5, steps=steps)


def goes_round(steps):
    return la.integrate(la.Lagrangian(kepler, n=2), "midpoint", [1.0, 0.0], [0.0, 1.0], h=0.1, steps=steps)
