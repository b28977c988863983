"""Steps of RK4 that are too long for one Program: the numbers of exact arithmetic, whatever the mass is."""

import numpy as np
import pytest

import leastaction as la
from leastaction.engine.rk4 import Calls
from leastaction.kernel.script import Script

N = 14
HOW = {"h": 0.01, "steps": 5, "t0": 0.25}


def chain(q, v):
    """Pendulums in a chain: the mass is full."""
    velocity = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(velocity[0] ** 2 + velocity[1] ** 2) + np.sum(np.cumsum(np.cos(q)))


def fast(t, q, v):
    """Momenta are not linear in v, and L depends on t."""
    velocity = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    slow = np.sqrt(1 - 0.05 * (velocity[0] ** 2 + velocity[1] ** 2))
    return (np.cos(t) - 20 * slow).sum() + np.sin(t) * np.sum(np.cumsum(np.cos(q)))


def saddle(q, v):
    """The mass is not definite, and has zeros on its diagonal."""
    turned = np.stack([np.cumsum(np.cos(q)) * v, np.cumsum(np.sin(q)) * v])
    return sum(np.sum(a[: N // 2] * a[: N // 2 - 1 : -1]) for a in turned) + np.sum(v[1:] * v[:-1] * q[1:]) - q @ q


CASES = {"chain": chain, "fast": fast, "saddle": saddle}
Q, V = np.linspace(0.3, 0.5, N), np.linspace(0.1, -0.2, N)


@pytest.fixture(autouse=True)
def shorter(monkeypatch):
    """Steps count as long that are not very long, so that compilation takes no time."""
    monkeypatch.setattr("leastaction.engine.rk4.LONGEST_ONCE", 500)


@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange"])
@pytest.mark.parametrize("name", CASES)
def test_a_long_step_has_the_numbers_of_exact_arithmetic(name, method, monkeypatch):
    system, rescued, solve = la.Lagrangian(CASES[name], n=N), [], Calls.solve
    monkeypatch.setattr(Calls, "solve", lambda *given: rescued.append(given) or solve(*given))
    path, exact = (la.integrate(system, method, Q, v0=V, **HOW, **more) for more in ({}, {"digits": 20}))
    np.testing.assert_allclose(path.q, np.array(exact.q, float), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(path.p, np.array(exact.p, float), rtol=1e-12, atol=1e-11)
    assert isinstance(system.engine(la.method(method)).form.pieces()["first"], Script)
    assert len(rescued) == (HOW["steps"] if name == "saddle" else 0)


@pytest.mark.parametrize("method", ["rk4", "rk4-lagrange"])
def test_long_steps_with_inputs_are_the_steps_of_one_program(method, monkeypatch):
    def pushed(q, v, u):
        return u[0] * np.cos(q) + u[1] * v

    values = {"u": np.random.default_rng(1).normal(size=(HOW["steps"], 2))}
    paths = []
    for longest in (500, 10**6):
        monkeypatch.setattr("leastaction.engine.rk4.LONGEST_ONCE", longest)
        system = la.Lagrangian(fast, n=6, force=pushed, inputs={"u": 2})
        paths.append(la.integrate(system, method, Q[:6], v0=V[:6], inputs=values, **HOW))
    np.testing.assert_allclose(paths[0].q, paths[1].q, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(paths[0].p, paths[1].p, rtol=1e-12, atol=1e-12)
