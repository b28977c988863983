"""What other processes are asked to do; they import it by its name."""

import time
from pathlib import Path

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


STORED_RUNS = ("path", "rk4", "linear", "lanes", "singles")


def stored_run(kind, file):
    """A run of a second or so into an archive; one that is there already goes on."""
    if Path(file).exists():
        try:
            la.resume(file)
        except ValueError:
            return  # at its end
        return
    system = la.Lagrangian(kepler, n=2)
    start = {"q0": [1.0, 0.0], "p0": [0.0, 1.1], "h": 0.02, "store": file}
    if kind == "path":
        la.integrate(system, "P4N4Q8Gau", **start, steps=100_000, every=7)
    elif kind == "rk4":
        la.integrate(system, "rk4", **start, steps=500_000, every=7)
    elif kind == "linear":
        K = np.diag([2.0] * 30) - np.diag([1.0] * 29, 1) - np.diag([1.0] * 29, -1)
        begin = {"q0": np.ones(30), "p0": np.zeros(30), "h": 0.02, "store": file}
        la.integrate(la.Quadratic(np.ones(30), K), "simpson", **begin, steps=100_000, every=20)
    else:
        start |= {"q0": np.linspace([1.0, 0.0], [1.5, 0.2], 12)}
        method, steps = ("simpson", 60_000) if kind == "lanes" else ("P8N8Q16Gau", 2_000)
        la.ensemble(system, method, **start, steps=steps, every=9, threads=2)
