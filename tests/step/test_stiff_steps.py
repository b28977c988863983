"""Steps many times longer than the fastest oscillation are solved all the same, or fail; no unsolved step is accepted.

After a step that needed continuation, rounding is allowed for (`step.verdict`, floors). This allowance was once passed
on from coordinate to coordinate as if the step were explicit: at h ω = 100 the allowance grew by 10⁴ with every pass,
beyond the motion itself, and from then on one iteration was enough for any step. Energies fell by 99.99 % without a
warning.
"""

import numpy as np
import pytest

import leastaction as la
from seeds import generator
from thrift import rest_slow

pytestmark = pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # such steps are too long for that


def chain(q, v, k):
    stretch = np.diff(q)
    return 0.5 * (v @ v) - k * np.sum(0.5 * stretch**2 + 0.25 * stretch**4)


def force(q, k):
    """−∂U/∂q of the chain at states (K, n)."""
    stretch = np.diff(q)
    pull = k * (stretch + stretch**3)
    return np.pad(pull, [(0, 0), (0, 1)]) - np.pad(pull, [(0, 0), (1, 0)])


def states(run):
    """The path of a run; if a step failed, which it may, the states before that step."""
    try:
        return run()
    except la.StepFailed as failed:
        return failed.path


def test_midpoint_steps_satisfy_their_equations():
    """q₁ − q₀ = h p₀ + ½ h² f((q₀ + q₁)/2), whose root is the only one, since U is convex."""
    rng = generator()
    solved = 0
    for _ in range(12):
        n, k, fast = int(rng.choice([2, 6])), 10.0 ** rng.uniform(-3, 9), 10.0 ** rng.uniform(0, 3)
        h, q0 = fast / (2 * k**0.5), rng.uniform(0.05, 0.5) * rng.standard_normal(n)
        system = la.Lagrangian(chain, n=n, params={"k": k})
        path = states(lambda s=system, q=q0, h=h, n=n: la.integrate(s, "midpoint", q, np.zeros(n), h=h, steps=60))
        if len(path) == 1:
            continue  # the first step has failed, and said so
        middle = (path.q[1:] + path.q[:-1]) / 2
        terms = [path.q[1:], -path.q[:-1], -h * path.p[:-1], -0.5 * h**2 * force(middle, k)]
        # A rounding of the positions changes the force by fast² times as much.
        size = np.abs(terms).max() + fast**2 * np.abs(path.q).max()
        assert np.abs(sum(terms)).max() <= 64 * np.finfo(float).eps * size, (n, k, fast)
        solved += len(path) - 1
    assert solved > 100


@pytest.mark.parametrize("method", rest_slow(["midpoint", "simpson", "P3N3Q6Gau"], ["midpoint"]))
def test_long_runs_are_those_of_more_digits(method):
    """Root by root: what float64 computes is what 30 digits do, as long as rounding has not grown."""
    rng = generator()
    for fast in (3.0, 100.0):
        n, k = 2, 1e6
        h = fast / (2 * k**0.5)
        system, q0 = la.Lagrangian(chain, n=n, params={"k": k}), 0.1 * rng.standard_normal(n)
        given = {"q0": q0, "p0": np.zeros(n), "h": h, "steps": 15}
        path = states(lambda s=system, given=given: la.integrate(s, method, **given))
        exact = states(lambda s=system, given=given: la.integrate(s, method, **given, digits=30))
        count = min(len(path), len(exact))
        off = np.abs(path.q[:count] - exact.q[:count].astype(float)).max()
        assert off < 1e-7 * np.abs(q0).max(), (fast, off)
        assert count > 10 or fast > 10, (fast, count)


@pytest.mark.xfail(reason="at h ω = 100 the rescue finds no root to trust: StepFailed after 15 steps", strict=True)
def test_the_chain_that_lost_its_energy():
    """In lanes and alone: its energy wanders by a hundredth, which is the midpoint rule's own error at h ω = 100."""
    q0 = 0.3 * np.random.default_rng(0).standard_normal(6)
    system = la.Lagrangian(chain, n=6, params={"k": 1e6})
    E = la.integrate(system, "midpoint", q0, np.zeros(6), h=0.05, steps=300).energy()
    assert np.abs(E / E[0] - 1).max() < 0.03
    many = la.ensemble(system, "midpoint", np.tile(q0, (5, 1)), np.zeros(6), h=0.05, steps=300)
    assert np.abs(many.energy() / E[0] - 1).max() < 0.03
