"""Where the last step, prolonged, tells nothing of the next step, others predict it; where it tells nearly all, one
iteration is enough.
"""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from systems import catalogued
from thrift import rest_slow


def pendulums(q, v, k):
    """Pendulums in a row that springs couple."""
    g = 1 + 0.1 * np.sin(np.arange(len(q)))
    return 0.5 * v @ v + np.sum(g * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)


@pytest.mark.parametrize(("n", "s"), rest_slow([(2, 8), (2, 16), (6, 8)], [(2, 8)]))
def test_stiff_steps_are_not_continued(n, s):
    """h ω is up to 30. The roots are those of single steps."""
    system, method = la.Lagrangian(pendulums, n=n, params={"k": 900.0}), f"P{s}N{s}Q{2 * s}Gau"
    path = la.integrate(system, method, np.full(n, 0.5), v0=np.zeros(n), h=0.5, steps=100)
    assert path.stats["continued"] <= 5
    single = la.ensemble(system, method, path.q[:-1], path.p[:-1], h=0.5, steps=1)
    np.testing.assert_allclose(single.q[:, 1], path.q[1:], rtol=0, atol=1e-11)


def test_encounters_are_not_continued():
    """At a pericentre a step may be far longer than the latest ones: chords from the motion itself find it, too. The
    roots are those of single steps.
    """
    problem, method, h = catalogued("kepler"), "P16N16Q32Gau", 32 / 52
    path = la.integrate(problem.system, method, problem.q0, problem.p0, h=h, steps=52)
    assert path.stats["continued"] == 0
    single = la.ensemble(problem.system, method, path.q[:-1], path.p[:-1], h=h, steps=1)
    np.testing.assert_allclose(single.q[:, 1], path.q[1:], rtol=0, atol=1e-12)


def waves(rng, n):
    """A random potential of waves in a bowl."""
    heights, ways, phases = rng.normal(size=3), 1.5 * rng.normal(size=(3, n)), rng.uniform(0, 6, 3)

    def L(q, v):
        return 0.5 * v @ v - 0.15 * q @ q - np.sum(heights * np.cos(ways @ q + phases))

    return la.Lagrangian(L, n=n)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_roots_of_coarse_separable_steps_are_those_of_single_steps(n):
    rng = np.random.default_rng(n)
    system, steps, astray = waves(rng, n), 0, 0
    for _ in range(100):
        s, h = int(rng.choice([4, 6, 8, 12])), rng.uniform(0.4, 2.5)
        method = f"P{s}N{s}Q{2 * s}Gau"
        start = {"q0": 2 * rng.normal(size=n), "v0": 1.5 * rng.normal(size=n)}
        try:
            path = la.integrate(system, method, **start, h=h, steps=30)
        except la.StepFailed as failure:
            path = failure.path
        if len(path.t) > 1:
            single = la.ensemble(system, method, path.q[:-1], path.p[:-1], h=h, steps=1)
            off = np.abs(single.q[:, -1] - path.q[1:]).max(axis=1)
            steps, astray = steps + len(off), astray + int(np.sum(off > 1e-6))
    assert steps > 2000
    assert astray == 0


def wells(q, v, e):
    """Two narrow wells at right angles in a bowl."""
    return 0.5 * v @ v + 0.5 * np.sum(np.exp(-0.5 * (q / e) ** 2)) - 0.05 * (q @ q) ** 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_roots_at_wells_narrower_than_a_step_are_those_of_single_steps():
    """Where chords fail far from any root, pivots tell whether Newton's iteration may begin from the prediction. While
    nobody asked them, 4 of 4,818 of these steps had another root. Wells so narrow that no node of the step lies in them
    stay unseen, by any rule that looks at nodes.
    """
    system, rng, steps = la.Lagrangian(wells, n=2, params={"e": 0.1}), np.random.default_rng([1, 4, 200, 10]), 0
    for _ in range(100):
        start = {"q0": rng.uniform(-1, 1, 2), "v0": rng.uniform(-0.6, 0.6, 2)}
        run = {"h": 0.2, "params": {"e": 10 ** rng.uniform(-2.5, -0.5)}}
        try:
            path = la.integrate(system, "P8N8Q16Gau", **start, **run, steps=60)
        except la.StepFailed as failure:
            path = failure.path
        single = la.ensemble(system, "P8N8Q16Gau", path.q[:-1], path.p[:-1], **run, steps=1)
        np.testing.assert_allclose(single.q[:, -1], path.q[1:], rtol=0, atol=1e-6)
        steps += len(path.t) - 1
    assert steps > 4000
