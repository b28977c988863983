"""Random systems, members of every kind with s ≤ 8: one trajectory and lanes take the steps of 25 digits.

The reference is a run of 25 digits. Runs in float64 differ from it by rounding, and rounding grows as the motion lets
it grow. Each step adds an error of some ε of the numbers that it is summed from: with S the largest |q| and |p| of the
motion, some ε S. The tangent map Φ of the run, from any step to any later one, says what becomes of that: with K the
largest sum of a row of |Φ_k Φ_j⁻¹|, an error of

    BOUND ε S K

after a few steps. ∂z/∂p is part of Φ, so K also holds what an ill-conditioned mass does.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest

import leastaction as la
from leastaction.methods.quadrature import READY
from seeds import generator

FEW, MANY = 1, 30
STEPS = 4
BOUND = 16  # up to 1.2 has been seen
EPS = 2.0**-52
KINDS = ("separable", "mass of q", "gyroscopic", "mass of v", "force", "time", "sum")
MOST_NODES = {"Gau": 10, "Lob": 10, "RadL": 10, "RadR": 10, "Che": 16, "Cle": 16}


@cache
def members():
    """All members with s ≤ 8 of all rules by name, the nodes as many as la.method takes, up to MOST_NODES."""
    found = []
    for family, s in product(READY, range(1, 9)):
        for r in range(1, MOST_NODES[family] + 1):
            order = {"Gau": 2 * r, "Lob": 2 * r - 2, "RadL": 2 * r - 1, "RadR": 2 * r - 1}.get(family, r + r % 2)
            try:
                found.append(la.method(f"P{s}N{r}Q{order}{family}"))
            except ValueError:
                continue
    return found


def random_system(rng, kind, n):
    """A Lagrangian of n coordinates with a mass that is positive definite and a potential that is bounded below."""
    A, B, C = rng.normal(size=(3, n, n))
    M, B, d = A @ A.T / n + np.eye(n), 0.4 * B, rng.normal(size=n)

    def potential(q, k):
        return k * np.sum(np.cos(C @ q + d)) * 0.3 + 0.2 * q @ q + 0.05 * np.sum(q**4)

    def still(q, v, k):
        T = 0.5 * v @ M @ v
        if kind in ("mass of q", "mass of v", "force"):
            T = T + 0.15 * np.sum(np.sin(B @ q) ** 2 * v * v)
        if kind in ("gyroscopic", "mass of v"):
            T = T + 0.3 * np.sum(np.cos(q) * (B @ v))
        if kind == "mass of v":
            T = T + 0.05 * np.sum((v * v) ** 2) / (1 + q[0] ** 2)
        return T - potential(q, k)

    def timed(t, q, v, k):
        return still(q, v, k) * (1 + 0.2 * np.cos(t)) + 0.3 * np.sin(2 * t) * (d @ q)

    def force(q, v):
        return -0.2 * v * np.cos(q) - 0.1 * np.sin(B @ q)

    if kind == "sum":
        own = la.Term(
            lambda q, v, m: 0.5 * m * v[0] ** 2 - 0.2 * q[0] ** 2 - 0.05 * q[0] ** 4,
            over=[(j,) for j in range(n)],
            params={"m": 1 + d**2},
        )
        if n == 1:
            return la.Lagrangian.sum([own], n=1)
        springs = la.Term(lambda q, v: -0.15 * np.cos(q[0] - 1.7 * q[1]), over=[(j, (j + 1) % n) for j in range(n)])
        return la.Lagrangian.sum([own, springs], n=n)
    return la.Lagrangian(
        timed if kind == "time" else still, n=n, params={"k": 1.0}, force=force if kind == "force" else None
    )


def states(run):
    """The rows (q, p) of a run."""
    return np.concatenate([run.q, run.p], axis=-1).astype(float)


def runs(system, method, q, p, h):
    """Rows (q, p) of the run, alone and in lanes, and the path of the reference."""
    how, written_out = {"h": h, "steps": STEPS, "t0": 0.3}, system.expanded()
    found = {"alone": states(la.integrate(system, method, q, p, **how))}
    starts = [np.stack([x, 0.9 * x, x, -x, 1.1 * x, 0.5 * x, x, -0.5 * x, x]) for x in (q, p)]
    rows = states(la.ensemble(written_out, method, *starts, threads=1, **how))
    found |= {f"lane {lane}": rows[lane] for lane in (0, 6, 8)}
    return found, la.integrate(written_out, method, q, p, digits=25, tangent=True, **how)


def bound(path):
    """How far rounding may take a run from the path, with its tangent maps Φ from the first state to each."""
    rows, maps = states(path), path.tangent.astype(float)
    growth = [maps[k] @ np.linalg.inv(maps[j]) for k in range(STEPS + 1) for j in range(k + 1)]
    return BOUND * EPS * abs(rows).max() * max(abs(A).sum(axis=1).max() for A in growth)


def check(rng, count):
    worst = {}
    for kind, _ in product(KINDS, range(count)):
        n, method = int(rng.integers(1, 6)), members()[rng.integers(len(members()))]
        h = float(rng.choice([0.02, 0.1, 0.3]))
        system = random_system(rng, kind, n)
        q, v = 0.7 * rng.normal(size=(2, n))
        p = system.momentum(q, v, t=0.3) if kind == "time" else system.momentum(q, v)
        found, path = runs(system, method, q, p, h)
        expected, most = states(path), bound(path)
        for name, rows in found.items():
            off = abs(rows - expected).max() / most
            assert off <= 1, f"{name}: {BOUND * off:.3g} of {BOUND}, {kind}, n = {n}, {method.name}, h = {h}"
            worst[name] = max(worst.get(name, 0.0), BOUND * off)
    print("largest errors, of", BOUND, {name: round(off, 2) for name, off in worst.items()})


def test_random_systems_take_the_steps_of_many_digits():
    check(generator(), FEW)


@pytest.mark.slow
def test_random_systems_take_the_steps_of_many_digits_of_many():
    check(generator(), MANY)
