"""RATTLE: steps that are explicit except for their multipliers (`engine.held`)."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.program import Builder
from leastaction.program.elimination import factors, square, substitute
from leastaction.program.ordering import prompt

Q0 = np.array([np.sin(0.3), -np.cos(0.3), np.sin(0.3) + 0.7 * np.sin(0.2), -np.cos(0.3) - 0.7 * np.cos(0.2)])


def two_points(q, v, g):
    return 0.5 * (v[:2] @ v[:2]) + v[2:] @ v[2:] - g * (q[1] + 2 * q[3])


def rods(q, l1, l2):
    return np.array([q[:2] @ q[:2] - l1**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - l2**2])


def lifted(t, q, v, u):
    return np.array([0.0, u + 0.1 * np.sin(t), 0.0, 0.0])


PARAMS = {"g": 9.81, "l1": 1.0, "l2": 0.7}
FREE = la.Lagrangian(two_points, 4, PARAMS, constraints=rods)
DRIVEN = la.Lagrangian(two_points, 4, PARAMS, constraints=rods, force=lifted, inputs={"u": ()})


def run(system, h, steps, **given):
    if system is DRIVEN:
        given["inputs"] = {"u": np.cos(0.1 * np.arange(steps))}
    return la.integrate(system, "stormer-verlet", q0=Q0, v0=np.zeros(4), h=h, steps=steps, **given)


@pytest.mark.parametrize("system", [FREE, DRIVEN])
@pytest.mark.parametrize("h", [0.01, 0.08])
def test_what_is_watched_or_stored_changes_no_bit(system, h, tmp_path):
    plain = run(system, h, 200)
    watched = run(system, h, 200, events={"up": la.Event(lambda q, p: q[3] - 5.0), "low": la.Event(lambda q, p: q[0])})
    assert len(watched.events["low"].t) > 0
    sparse = run(system, h, 200, every=8)
    if system is FREE:
        run(system, h, 101, store=tmp_path / "path.zarr")
        resumed = la.resume(tmp_path / "path.zarr", steps=99)
        np.testing.assert_array_equal(np.asarray(resumed.q[:]), plain.q)
        np.testing.assert_array_equal(np.asarray(resumed.p[:]), plain.p)
        varied = la.tangent(system, "stormer-verlet", Q0, np.zeros(4), h, steps=200)
        np.testing.assert_array_equal(varied.q, plain.q[-1])
    for name in ("q", "p"):
        np.testing.assert_array_equal(getattr(watched, name), getattr(plain, name))
        np.testing.assert_array_equal(getattr(sparse, name), getattr(plain, name)[::8])


@pytest.mark.parametrize("h", [0.001, 0.01, 0.03, 0.06, 0.1])
def test_one_trajectory_takes_the_steps_that_lanes_take(h):
    """At these steps two iterations are enough always, mostly, sometimes, and never."""
    steps = 300
    path = run(FREE, h, steps)
    beside = la.ensemble(FREE, "stormer-verlet", q0=np.array([Q0, Q0]), v0=np.zeros((2, 4)), h=h, steps=steps)
    np.testing.assert_allclose(path.q, beside.q[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(path.p, beside.p[0], rtol=0, atol=1e-10)
    held = np.array([rods(q, 1.0, 0.7) for q in path.q])
    assert np.abs(held).max() < 4e-16 * 8
    d, w = path.q[:, 2:] - path.q[:, :2], path.p[:, 2:] / 2 - path.p[:, :2]
    moving = [(path.q[:, :2] * path.p[:, :2]).sum(1), (d * w).sum(1)]
    assert np.abs(moving).max() < 1e-13


def test_a_hasty_elimination_finds_the_same():
    rng = np.random.default_rng(5)
    for N in (1, 2, 3, 4):
        a = rng.standard_normal((N, N))
        matrix, right = a @ a.T + np.eye(N), rng.standard_normal(N)
        B = Builder([("a", N * N), ("b", N)])
        x = substitute(factors(square(B.values("a")), hasty=True), B.values("b"))
        found = B.finished(x=x)(matrix.ravel(), right)["x"]
        np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-12)


def test_a_prompt_program_is_the_same_program():
    program = FREE.engine(la.method("stormer-verlet")).easy["first"]
    early = prompt(program)
    assert all(a < k for k, (op, *args) in enumerate(early.code) if op not in ("input", "const") for a in args)
    assert prompt(early) == early
    assert sorted(op for op, *_ in early.code) == sorted(op for op, *_ in program.code)
