"""The lanes' kernels: Newton's iteration without pivoting, with a kept Jacobian, in place, on any kind of processor."""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import leastaction as la
from leastaction.kernel import lower
from leastaction.kernel.compile import LEVELS, _host_features, _processor
from leastaction.program import Builder
from native import lowered_native

lowering = importlib.import_module("leastaction.kernel.lower")  # the package names its function like the module


def double_pendulum(q, v):
    T = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return T + 9.81 * (2 * np.cos(q[0]) + np.cos(q[1]))


def links(q, v):
    """A chain of equal links that hang on each other."""
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * (x @ x + y @ y) + 9.81 * np.sum(np.cumsum(np.cos(q)))


PENDULUM = la.Lagrangian(double_pendulum, n=2)


def against_single_runs(system, method, Q, P, h, steps, atol):
    paths = la.ensemble(system, method, Q, P, h=h, steps=steps, every=steps // 4)
    assert paths.stats["lanes"] > 1
    assert not paths.failed.any()
    for i in range(len(Q)):
        single = la.integrate(system, method, Q[i], P[i], h=h, steps=steps, every=steps // 4)
        np.testing.assert_allclose(paths.q[i], single.q, rtol=0, atol=atol)
        np.testing.assert_allclose(paths.p[i], single.p, rtol=0, atol=atol)
    return paths


# -------------------------------------------------------------------------------------------- programs


def some_program():
    """Values that depend on z, values that do not, and outputs of both kinds."""
    B = Builder([("q", 2), ("z", 2), ("k", 1)])
    (a, b), (y, z), (k,) = (B.input(name) for name, _ in B.inputs)
    fixed = B.mul(k, B.op("sin", B.add(a, b)))
    moving = B.add(B.mul(fixed, z), B.op("cos", B.add(a, y)))
    return B.build(z=[moving, B.mul(moving, fixed)], q=[b, fixed], other=[B.sub(y, z)])


def test_a_program_is_split_by_what_depends_on_an_input():
    program = some_program()
    before, after = program.split(["z"], "known")
    assert before.outputs == (("known", 1),)
    assert not any(op == "sin" for op, *_ in after.code)
    x = np.random.default_rng(0).normal(size=5)
    whole = program(x)
    rest = after(np.concatenate([x, before(x)["known"]]))
    for name, _ in program.outputs:
        assert list(rest[name]) == list(whole[name])


@pytest.mark.parametrize("piece", [1, 2, 5, 10**6])
def test_a_kernel_in_place_replaces_what_it_reads(piece, monkeypatch):
    """Outputs with the name of an input take its place, others go to `out`, wherever the program is cut."""
    monkeypatch.setattr(lowering, "PIECE", piece)
    program = some_program()
    native = lowered_native(lower(program, "kernel", 4, in_place=True))
    x = np.random.default_rng(1).normal(size=(5, 4))
    state, out, work = x.copy(), np.zeros((1, 4)), np.zeros(native.work)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(native.address)
    function(state.ctypes.data, out.ctypes.data, work.ctypes.data)
    for lane in range(4):
        expected = program(x[:, lane])
        np.testing.assert_allclose(state[:4, lane], [*expected["q"], *expected["z"]], rtol=1e-14)
        assert state[4, lane] == x[4, lane]
        np.testing.assert_allclose(out[:, lane], expected["other"], rtol=1e-14)


# --------------------------------------------------------------------------------------------- systems


@pytest.mark.parametrize(
    ("system", "method", "h"),
    [
        (la.Lagrangian(links, n=6), "simpson", 0.005),
        (la.Lagrangian(links, n=10), "midpoint", 0.005),
        (PENDULUM, "P6N6Q12Gau", 0.02),
        (la.Lagrangian(links, n=3), "P4N5Q8Lob", 0.01),
    ],
    ids=["12 unknowns", "10 unknowns", "P6", "Lobatto"],
)
def test_more_unknowns_than_single_runs_fuse(system, method, h):
    rng = np.random.default_rng(2)
    Q, P = rng.uniform(-0.5, 0.5, (9, system.n)), rng.uniform(-0.5, 0.5, (9, system.n))
    paths = against_single_runs(system, method, Q, P, h, 200, 1e-10)
    assert paths.stats["continued"] <= 0.01 * 9 * 200


def test_no_pivoting_where_the_mass_matrix_has_a_zero_diagonal():
    """L = v₀ v₁ + ½ v₂² …: rows are exchanged beforehand, since the zero is known from L."""

    def crossed(q, v):
        return v[0] * v[1] + 0.5 * v[2] ** 2 - q[0] * q[1] - 0.5 * q[2] ** 2 - 0.1 * q[0] * q[1] * q[2]

    rng = np.random.default_rng(3)
    Q, P = rng.uniform(-0.5, 0.5, (9, 3)), rng.uniform(-0.5, 0.5, (9, 3))
    paths = against_single_runs(la.Lagrangian(crossed, n=3), "simpson", Q, P, 0.02, 200, 1e-12)
    assert paths.stats["continued"] == 0


def test_a_pivot_that_vanishes_on_the_way_costs_time_and_nothing_else():
    """L_vv = ((q₀, 2), (2, 1)): the first pivot goes through zero with q₀, and begins there in one lane."""

    def turning(q, v):
        return 0.5 * q[0] * v[0] ** 2 + 2 * v[0] * v[1] + 0.5 * v[1] ** 2 - 0.5 * (q @ q)

    Q = np.array([[0.0, 0.1], [0.3, 0.0], [-0.2, 0.2], [0.1, -0.3], [1e-9, 0.0]])
    P = np.array([[0.2, 0.1], [-0.2, 0.1], [0.3, 0.0], [0.0, 0.2], [0.1, 0.1]])
    against_single_runs(la.Lagrangian(turning, n=2), "simpson", Q, P, 0.01, 200, 1e-11)


def test_lanes_that_want_other_things_do_not_disturb_each_other():
    """Steps so coarse that some lanes need a fresh Jacobian where others keep theirs, whatever lanes run together."""
    Q = np.random.default_rng(4).uniform(-2, 2, (24, 2))
    options = {"h": 0.08, "steps": 120, "every": 40}
    together = la.ensemble(PENDULUM, "P4N4Q8Gau", Q, [0, 0], **options)
    assert together.stats["newton_iterations"] > 3 * 24 * 120
    for order in (np.arange(24)[::-1], np.random.default_rng(5).permutation(24), np.arange(24)[7:8]):
        apart = la.ensemble(PENDULUM, "P4N4Q8Gau", Q[order], [0, 0], **options)
        np.testing.assert_array_equal(apart.q, together.q[order])
        np.testing.assert_array_equal(apart.p, together.p[order])


@pytest.mark.parametrize(("method", "h"), [("midpoint", 0.05), ("P3N3Q6Gau", 0.1), ("P4N4Q8Gau", 0.2)])
def test_turning_points_need_no_continuation(method, h):
    """Where all velocities are small at once the last increment is nearly zero, and the next one is much longer."""
    Q = np.random.default_rng(7).uniform(-0.3, 0.3, (8, 1)) * [1, np.sqrt(2)]  # near a normal mode
    paths = la.ensemble(PENDULUM, method, Q, [0, 0], h=h, steps=400, final_only=True)
    assert paths.stats["continued"] == 0
    for q in Q:
        assert la.integrate(PENDULUM, method, q, [0, 0], h=h, steps=400).stats["continued"] == 0


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_coarse_steps_stay_on_the_branch():
    """With h ω of about one each step is the one that is found without a step before it."""
    Q = np.random.default_rng(5).uniform(-3, 3, (200, 2))
    paths = la.ensemble(PENDULUM, "midpoint", Q, [0, 0], h=0.05, steps=40)
    taken = np.arange(40) < paths.steps[:, None]
    again = la.ensemble(PENDULUM, "midpoint", paths.q[:, :-1][taken], paths.p[:, :-1][taken], h=0.05, steps=1)
    assert not again.failed.any()
    np.testing.assert_allclose(again.q[:, 1], paths.q[:, 1:][taken], rtol=0, atol=1e-9)


# ------------------------------------------------------------------------------------------ processors

RUN = """
import numpy as np, leastaction as la
system = la.Lagrangian(lambda q, v: 0.5 * (v @ v) + np.cos(q[0]) * np.exp(-q[1] ** 2), n=2)
paths = la.ensemble(system, "simpson", np.linspace(0, 1, 20).reshape(10, 2), [0.1, 0.2], h=0.05, steps=100)
print(paths.stats["lanes"], repr(paths.q[:, -1].tolist()))
"""


def run_as(kind, code):
    environment = {**os.environ, "LEASTACTION_CPU": kind}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_an_unknown_processor_is_refused():
    done = run_as("z80", RUN)
    assert done.returncode != 0
    assert "LEASTACTION_CPU must be native or one of x86-64-v2, x86-64-v3, x86-64-v4; it is 'z80'" in done.stderr


def test_no_name_means_the_processor_at_hand(monkeypatch):
    monkeypatch.setenv("LEASTACTION_CPU", "")
    nameless = _processor.__wrapped__()
    monkeypatch.setenv("LEASTACTION_CPU", "native")
    assert nameless == _processor.__wrapped__()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind, needs in LEVELS.items() if needs <= _host_features()])
def test_other_kinds_of_processors_give_the_same_to_round_off(kind):
    """With two narrow vectors and no fused multiply-adds, with AVX2, with AVX-512: as far as this processor goes."""
    done = run_as(kind, RUN)
    assert done.returncode == 0, done.stderr
    lanes, _, states = done.stdout.partition(" ")
    assert int(lanes) == (8 if kind == "x86-64-v4" else 4)
    here: dict[str, object] = {}
    exec(RUN.replace("print(", "result = ("), here)
    np.testing.assert_allclose(np.array(eval(states)), np.array(eval(here["result"][1])), rtol=0, atol=1e-13)
