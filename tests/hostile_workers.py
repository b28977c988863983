"""What other processes are asked to do; they import it by its name."""

import time

import numpy as np

import leastaction as la


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


def falls_into_the_sun(steps):
    """A run that cannot be finished: StepFailed."""
    return la.integrate(la.Lagrangian(kepler, n=2), "midpoint", [1.0, 0.0], [0.0, 0.0], h=0.5, steps=steps)


def goes_round(steps):
    return la.integrate(la.Lagrangian(kepler, n=2), "midpoint", [1.0, 0.0], [0.0, 1.0], h=0.1, steps=steps)


def race(task):
    """Begin an archive at a moment; "done", or what the error says."""
    file, h, at = task
    system = la.Lagrangian(kepler, n=2)
    time.sleep(max(0.0, at - time.time()))
    try:
        la.integrate(system, "simpson", [1.0, 0.0], [0.0, 1.1], h=h, steps=200, store=file)
    except la.StoreError as error:
        return str(error)
    return "done"
