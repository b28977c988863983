"""What other processes are asked to do; they import it by its name."""

import os
import signal
import time
from pathlib import Path

import numpy as np

import leastaction as la
from leastaction.run import cluster


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


def die_at_work():
    """This worker of a cluster is killed when its next stretch begins."""
    cluster.stretch = lambda *given: os.kill(os.getpid(), signal.SIGKILL)


def pendulum(q, v, k):
    return 0.5 * v[0] ** 2 + k * np.cos(q[0])


STORED_RUNS = (
    "path",
    "rk4",
    "linear",
    "digits",
    "tangent",
    "events",
    "digits events",
    "impacts",
    "forced",
    "lanes",
    "watched",
    "rk4 lanes",
    "singles",
    "final",
    "linear ensemble",
    "digits ensemble",
    "constraints",
    "constraints lanes",
    "paced",
    "paced lanes",
    "sums",
    "composed",
    "varied",
    "impacts lanes",
    "inputs",
    "inputs lanes",
    "all at once",
)


def spring(q, v):
    stretch = q[1] - q[0]
    return -0.5 * stretch**2 - 0.25 * stretch**4


def masses_and_springs(n):
    """A chain as a sum over tables."""
    masses = la.Term(lambda q, v, m: 0.5 * m * v[0] ** 2, over=np.arange(n), params={"m": np.linspace(1.0, 2.0, n)})
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return la.Lagrangian.sum([masses, la.Term(spring, over=pairs)], n=n)


def rod():
    """A pendulum in the plane, its rod a constraint."""
    return la.Lagrangian(
        lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], n=2, params={"l": 1.0}, constraints=lambda q, l: (q @ q - l**2) / 2
    )


def driven(constraints=None):
    """A pendulum in the plane, damped, and pushed by an input."""
    return la.Lagrangian(
        lambda q, v: 0.5 * (v @ v) - 9.81 * q[1],
        n=2,
        force=lambda q, v, u: u * v[::-1] - 0.01 * v,
        inputs={"u": 1},
        constraints=constraints,
    )


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
    elif kind == "digits":
        la.integrate(system, "simpson", **start, steps=600, every=7, digits=30)
    elif kind == "tangent":
        la.integrate(system, "P4N4Q8Gau", **start, steps=20_000, every=7, tangent="all")
    elif kind in ("events", "digits events"):
        events = {"apsides": la.Event(lambda q, p: q @ p), "line": la.Event(lambda q, p: q[1], most=20)}
        run = {"steps": 200_000, "every": 7} if kind == "events" else {"steps": 400, "every": 7, "digits": 30}
        la.integrate(system, "simpson", **start | {"h": 0.05}, **run, events=events)
    elif kind == "impacts":
        ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], n=1)
        begin = {"q0": [1.0], "p0": [0.0], "h": 0.01, "store": file}
        la.integrate(ball, "simpson", **begin, steps=10_000, every=7, events={"floor": la.Impact(lambda q: q[0])})
    elif kind == "forced":
        damped = la.Lagrangian(pendulum, n=1, params={"k": 9.81}, force=lambda t, q, v: np.cos(t) - 0.1 * v)
        la.integrate(damped, "P4N4Q8Gau", [1.0], [0.0], h=0.02, steps=200_000, every=7, store=file)
    elif kind in ("constraints", "constraints lanes"):
        begin = {"q0": [1.0, 0.0], "p0": [0.0, 0.3], "h": 0.02, "store": file, "every": 7}
        if kind == "constraints":
            la.integrate(rod(), "P4N4Q8Gau", **begin, steps=100_000)
        else:
            pushed = {"p0": np.stack([np.zeros(12), np.linspace(0.1, 0.9, 12)], axis=1)}
            la.ensemble(rod(), "simpson", **begin | pushed, steps=30_000, threads=2)
    elif kind in ("inputs", "inputs lanes"):
        spring = la.Lagrangian(
            lambda q, v: 0.5 * (v @ v) - 0.5 * (q @ q), n=1, force=lambda q, v, u: u - 0.1 * v, inputs={"u": 1}
        )
        begin = {"q0": [1.0], "p0": [0.0], "h": 0.02, "store": file, "every": 7}
        if kind == "inputs":
            la.integrate(spring, "P4N4Q8Gau", **begin, steps=100_000, inputs={"u": np.sin(np.arange(1e5))[:, None]})
        else:
            each = np.sin(np.arange(20_000.0) * np.linspace(1, 2, 12)[:, None])[:, :, None]
            many = begin | {"q0": np.ones((12, 1)), "threads": 2}
            la.ensemble(spring, "simpson", **many, steps=20_000, inputs={"u": each})
    elif kind == "all at once":  # force, input, constraint, impact, event, derivatives
        events = {"line": la.Event(lambda q, p: q[0]), "wall": la.Impact(lambda q: q[0] + 0.5)}
        begin = {"q0": [1.0, 0.0], "p0": [0.0, 0.3], "h": 0.02, "store": file, "every": 7, "events": events}
        on_a_rod = driven(lambda q: (q @ q - 1) / 2)
        u = 0.1 * np.sin(np.arange(10_000.0))[:, None]
        la.integrate(on_a_rod, "simpson", **begin, steps=10_000, inputs={"u": u}, tangent=True)
    elif kind == "paced":
        line = {"line": la.Event(lambda q, p: q[1], most=20)}
        begin = {"q0": [0.1, 0.0], "p0": [0.0, 4.2], "h": 0.05, "store": file}
        la.integrate(system, "P4N4Q8Gau", **begin, t_end=5_000.0, every=7, pace=lambda q: np.sqrt(q @ q), events=line)
    elif kind == "paced lanes":
        begin = {"q0": np.linspace([0.1, 0.0], [0.5, 0.0], 12), "p0": [0.0, 1.9], "h": 0.05, "store": file}
        la.ensemble(system, "simpson", **begin, steps=30_000, every=9, threads=2, pace=lambda q: np.sqrt(q @ q))
    elif kind == "sums":
        begin = {"q0": np.sin(np.arange(500.0)), "p0": np.zeros(500), "h": 0.02, "store": file}
        la.integrate(masses_and_springs(500), "simpson", **begin, steps=10_000, every=70)
    elif kind == "composed":
        la.integrate(system, la.compose("verlet", "yoshida6"), **start, steps=50_000, every=7)
    elif kind == "varied":
        K = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
        each = np.linspace(0.5, 2.0, 8)[:, None, None] * K
        begin = {"q0": np.ones(3), "p0": np.zeros(3), "h": 0.02, "store": file}
        la.ensemble(la.Quadratic(np.ones(3), K), "simpson", **begin, steps=100_000, every=20, params={"K": each})
    elif kind == "impacts lanes":
        ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], n=1)
        begin = {"q0": np.linspace([1.0], [2.0], 6), "p0": [0.0], "h": 0.02, "store": file, "threads": 1}
        la.ensemble(ball, "simpson", **begin, steps=10_000, every=7, events={"floor": la.Impact(lambda q: q[0])})
    elif kind in ("linear", "linear ensemble"):
        K = np.diag([2.0] * 30) - np.diag([1.0] * 29, 1) - np.diag([1.0] * 29, -1)
        chain = la.Quadratic(np.ones(30), K)
        begin = {"q0": np.ones(30), "p0": np.zeros(30), "h": 0.02, "store": file}
        if kind == "linear":
            la.integrate(chain, "simpson", **begin, steps=100_000, every=20)
        else:
            many = {"q0": np.linspace(0.5, 1, 5)[:, None] * np.ones(30)}
            la.ensemble(chain, "simpson", **begin | many, steps=20_000, every=20)
    else:
        start |= {"q0": np.linspace([1.0, 0.0], [1.5, 0.2], 12)}
        run = {"steps": 60_000, "every": 9, "threads": 2}
        if kind == "singles":
            run |= {"steps": 2_000, "method": "P8N8Q16Gau", "tangent": True}
        elif kind == "watched":
            run |= {"reduce": {"E": la.EnergyRange()}, "events": {"x": la.Event(lambda q, p: q[1], most=50)}}
        elif kind == "rk4 lanes":
            run |= {"steps": 300_000, "method": "rk4"}
        elif kind == "final":
            run |= {"steps": 300_000, "final_only": True}
            del run["every"]
        elif kind == "digits ensemble":
            run |= {"steps": 60, "digits": 30}
            del run["threads"]
        la.ensemble(system, **{"method": "simpson"} | start | run)


def chain(q, v):
    stretch = np.diff(q)
    return 0.5 * v @ v - np.sum(0.5 * stretch**2 + 0.25 * stretch**4) - 0.5 * q @ q


def bits(kind):
    """A fingerprint of all numbers of a run whose matrices are large enough for threads."""
    import hashlib

    n = 24
    system, q, p = la.Lagrangian(chain, n=n), np.sin(np.arange(n)), np.zeros(n)
    if kind == "path":
        run = la.integrate(system, "P8N8Q16Gau", q, p, h=0.1, steps=40)
    elif kind == "tangent":
        run = la.integrate(system, "simpson", q, p, h=0.1, steps=40, tangent=True)
    elif kind == "rk4":
        run = la.integrate(system, "rk4", q, p, h=0.02, steps=40, tangent=True)
    else:
        run = la.ensemble(system, "P8N8Q16Gau", np.stack([q, q / 2, q / 5]), p, h=0.1, steps=20)
    arrays = [run.q, run.p] + ([] if run.tangent is None else [run.tangent])
    return hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in arrays)).hexdigest()
