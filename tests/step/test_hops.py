"""Hops: steps of one trajectory with constraints in one kernel, where they are surely solved (`fused.hop`)."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from leastaction.backends.fused.elimination import factors, square, substitute
from leastaction.backends.fused.programs import held_programs

import leastaction as la
from leastaction.kernel import compile_program
from leastaction.program import Builder
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
    """Steps go through a hop, a far hop or the kernels of `rattle`; which, does not depend on what is asked."""
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
def test_hops_find_the_steps_that_lanes_find(h):
    """Lanes know no hops; at these steps two iterations are enough always, mostly, sometimes, and never."""
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


def begun():
    """The hops of FREE, and a state before the eleventh step."""
    h, kernels = 0.01, held_programs(FREE, la.method("stormer-verlet"), single=True).kernels
    places = {name: kernels["advance"].input_slice(name) for name, _ in kernels["advance"].inputs}
    size = kernels["advance"].input_size
    native = {name: compile_program(program, 1, in_place="hop" not in name) for name, program in kernels.items()}
    work = np.zeros(max(kernel.work for kernel in native.values()))

    def call(name, X, Y):
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(native[name].address)
        function(X.ctypes.data, Y.ctypes.data, work.ctypes.data)

    X = np.zeros(size)
    given = {"h": h, "params": list(PARAMS.values()), "alive": 1, "q": Q0, "length": 1}
    for name, value in given.items():
        X[places[name]] = value
    X[places["z"]][4:] = FREE.multipliers(Q0, np.zeros(4))
    call("begin", X, np.zeros(size))
    for _ in range(10):
        call("leap", X, np.zeros(size))
        call("advance", X, np.zeros(size))
    return call, places, X


def test_a_hop_that_is_not_sure_says_so_and_changes_nothing():
    call, places, X = begun()
    for name in ("hop", "far_hop"):
        Y, before = np.zeros(len(X)), X.copy()
        call(name, X, Y)
        assert Y[places["unsure"]] == 0
        for wrong in (-40.0, 1e6, np.nan):  # predictions that are far off, that lead to another root, no number
            far = X.copy()
            far[places["z"]][4:] *= wrong
            kept = far.copy()
            call(name, far, Y)
            assert Y[places["unsure"]] == 1, (name, wrong)
            np.testing.assert_array_equal(far, kept)
        np.testing.assert_array_equal(X, before)


def test_a_singular_configuration_is_no_sure_hop():
    """Both rods in one line with equal points: G M⁻¹Gᵀ is singular where the second rod has no length."""
    call, places, X = begun()
    X[places["q"]][2:] = X[places["q"]][:2]
    for name in ("hop", "far_hop"):
        Y = np.zeros(len(X))
        call(name, X, Y)
        assert Y[places["unsure"]] == 1


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
    program = held_programs(FREE, la.method("stormer-verlet"), single=True).kernels["leap"]
    early = prompt(program)
    assert all(a < k for k, (op, *args) in enumerate(early.code) if op not in ("input", "const") for a in args)
    assert prompt(early) == early
    assert sorted(op for op, *_ in early.code) == sorted(op for op, *_ in program.code)
