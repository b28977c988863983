"""Running: initial data, steps and times, thinning, parameters, dense output, interruption, and the same bits twice."""

import hashlib
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import leastaction as la
from interrupts import pressed_after
from leastaction.kernel import compile as kernel_compile
from leastaction.run.plan import count_steps
from processes import printed_by
from systems import case, double_pendulum, driven_pendulum
from thrift import rest_slow


def run(name="inseparable", method="simpson", **how):
    system, q0, v0 = case(name)
    return la.integrate(system, method, q0, v0=v0, **({"h": 0.05, "steps": 40} | how))


@pytest.mark.parametrize(
    "method", rest_slow(["simpson", "P3N3Q6Gau", "rk4", "rk4-lagrange"], ["simpson", "rk4-lagrange"])
)
@pytest.mark.parametrize("name", ["inseparable", "relativistic", "driven-pendulum", "charge"])
def test_p0_and_v0_are_equivalent(name, method):
    """p0 = ∂L/∂v(t0, q0, v0)."""
    system, q0, v0 = case(name)
    p0 = system.momentum(q0, v0, 0.7)
    from_v = la.integrate(system, method, q0, v0=v0, h=0.05, steps=20, t0=0.7)
    from_p = la.integrate(system, method, q0, p0, h=0.05, steps=20, t0=0.7)
    np.testing.assert_allclose(from_p.q, from_v.q, atol=1e-14)
    np.testing.assert_allclose(from_p.p, from_v.p, atol=1e-14)
    assert (from_v.p[0] == p0).all() and (from_v.q[0] == q0).all()


@pytest.mark.parametrize(
    ("h", "t0", "t_end", "steps"),
    [(0.1, 0.0, 1.0, 10), (0.3, 0.0, 1.0, 4), (5.0, 0.0, 1.0, 1), (0.01, 2.0, 2.3, 30), (-0.1, 1.0, 0.25, 8)],
)
def test_t_end_gives_equal_steps_of_at_most_h(h, t0, t_end, steps):
    """h = (t_end − t0)/N with the fewest steps that keep |h|; the last time is t_end to the bit."""
    path = run(h=h, steps=None, t0=t0, t_end=t_end)
    assert len(path) == steps + 1 and path.stats["steps"] == steps
    assert path.h == pytest.approx((t_end - t0) / steps, rel=1e-15) and abs(path.h) <= abs(h) * (1 + 1e-9)
    assert path.t[0] == t0 and path.t[-1] == t_end
    np.testing.assert_allclose(np.diff(path.t), path.h, rtol=1e-12)
    same = run(h=path.h, steps=steps, t0=t0)
    assert (same.q == path.q).all() and (same.p == path.p).all()


def test_times_of_steps():
    path = run(h=0.1, steps=30, t0=-1.5)
    assert (path.t == -1.5 + 0.1 * np.arange(31)).all() and path.h == 0.1


def test_time_dependent_lagrangian_sees_t0():
    """A start at t0 is the middle of a run that began earlier."""
    system, q0, v0 = case("driven-pendulum")
    whole = la.integrate(system, "P3N3Q6Gau", q0, v0=v0, h=0.1, steps=40)
    rest = la.integrate(system, "P3N3Q6Gau", whole.q[20], whole.p[20], h=0.1, steps=20, t0=whole.t[20])
    np.testing.assert_allclose(rest.q, whole.q[20:], atol=1e-14)
    other = la.integrate(system, "P3N3Q6Gau", whole.q[20], whole.p[20], h=0.1, steps=20)
    assert abs(other.q[-1] - rest.q[-1]).max() > 1e-3


@pytest.mark.parametrize("method", rest_slow(["simpson", "P5N5Q10Gau", "rk4", "rk4-lagrange"], ["simpson", "rk4"]))
@pytest.mark.parametrize(("steps", "every"), [(40, 1), (40, 8), (40, 7), (40, 40), (40, 100)])
def test_every_keeps_rows_of_the_whole_run(steps, every, method):
    """Every `every`-th state and the last one, to the bit."""
    whole, thin = run(method=method, steps=steps), run(method=method, steps=steps, every=every)
    kept = [*range(0, steps, every), steps]
    assert (thin.t == whole.t[kept]).all()
    assert (thin.q == whole.q[kept]).all() and (thin.p == whole.p[kept]).all()
    assert thin.every == every


def test_pieces_do_not_show(monkeypatch):
    """The native loop runs in pieces; where they are cut changes no bit."""
    module = sys.modules["leastaction.run.drive"]
    for method in ("P5N5Q10Gau", "rk4-lagrange"):
        whole = run("driven-pendulum", method, steps=101, every=3)
        monkeypatch.setattr(module, "first_piece", lambda plan: 7)
        monkeypatch.setattr(module, "PIECE_SECONDS", 1e-9)
        pieces = run("driven-pendulum", method, steps=101, every=3)
        monkeypatch.undo()
        assert (pieces.q == whole.q).all() and (pieces.p == whole.p).all()


def test_parameters_at_run_time_do_not_recompile(monkeypatch):
    """Values are inputs of the compiled code; the run equals that of a system with them as defaults. Steps are so
    short that none needs the hard way, which is compiled when it is needed.
    """
    system, q0, v0 = case("double-pendulum")
    first = la.integrate(system, "simpson", q0, v0=v0, h=0.02, steps=20)
    first.energy()
    la.integrate(system, "simpson", q0, v0=v0, h=0.02, steps=20, params={"m": 2.0})  # a start that is not known yet

    def never(*args, **kwargs):
        raise AssertionError("compiled again")

    monkeypatch.setattr(kernel_compile, "_object_code", never)
    heavy = la.integrate(system, "simpson", q0, v0=v0, h=0.02, steps=20, params={"m": 3.0, "g": 2.0})
    assert heavy.params == {"m": 3.0, "l": 1.0, "g": 2.0}
    assert (heavy.q != first.q).any()
    other = la.Lagrangian(double_pendulum, n=2, params={"m": 3.0, "l": 1.0, "g": 2.0})
    same = la.integrate(other, "simpson", q0, v0=v0, h=0.02, steps=20)
    assert (same.q == heavy.q).all() and (same.p == heavy.p).all()
    assert (heavy.energy() == same.energy()).all()
    assert system.params == {"m": 1.0, "l": 1.0, "g": 1.0}


def test_stats():
    """Newton's iterations, and times."""
    stats = run(steps=200).stats
    assert stats["steps"] == 200
    assert 200 < stats["newton_iterations"] < 1000 and 1 < stats["most_iterations"] < 40
    assert stats["continued"] == 0
    assert stats["compile_time"] >= 0 and stats["run_time"] > 0 and stats["interrupted"] is False


DENSE = [
    "midpoint", "stormer-verlet", "P2N2Q4Gau", "simpson", "P2N2Q2Lob", "P3N3Q6Gau", "P3N3Q4Lob", "P3N4Q6Lob",
    "P4N4Q8Gau", "P4N4Q6Lob", "rk4", "rk4-lagrange",
]  # fmt: skip


@pytest.fixture(scope="module")
def fine():
    return run(method="P8N8Q16Gau", h=0.01, steps=200)


@pytest.mark.parametrize("method", DENSE)
def test_order_of_dense_output(method, fine):
    """Inside steps the error is O(h^{s+1}), O(h^s) if u = 2s − 2, and O(h⁴) for the cubic of RK4."""
    m = la.method(method)
    expected = 4 if method.startswith("rk4") else m.s + (m.rule.order >= 2 * m.s - 1)
    errors = [abs(run(method=method, h=h, steps=round(2 / h))(fine.t) - fine.q).max() for h in (0.1, 0.05, 0.025)]
    assert np.log2(errors[1] / errors[2]) == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("method", ["simpson", "P5N6Q10Lob", "rk4"])
@pytest.mark.parametrize(
    "how", rest_slow([{}, {"h": -0.05}, {"t0": 3.0}, {"every": 7}, {"every": 100}], [{}, {"h": -0.05}, {"every": 7}])
)
def test_dense_output_passes_through_the_states(method, how):
    """path(t_k) = q_k, for every step of the run, stored or not."""
    whole, path = run(method=method, **{**how, "every": 1}), run(method=method, **how)
    np.testing.assert_allclose(path(whole.t), whole.q, atol=2e-14)
    inside = whole.t[:-1] + 0.3 * np.diff(whole.t)
    np.testing.assert_allclose(path(inside), whole(inside), atol=2e-14)


def test_dense_output_shapes_and_range():
    path = run()
    assert path(0.33).shape == (2,)
    assert path([0.1, 0.2, 0.3]).shape == (3, 2)
    assert path(np.full((2, 3), 0.4)).shape == (2, 3, 2)
    assert path([]).shape == (0, 2)
    assert (path([0.2, 0.1])[::-1] == path([0.1, 0.2])).all()
    assert (path(0.0) == path.q[0]).all()
    for t in (-0.1, 2.1):
        with pytest.raises(ValueError, match=rf"the path covers t = 0 … 2; asked for t = {t:g}"):
            path([0.5, t])
    for t in (np.nan, np.inf):
        with pytest.raises(ValueError, match="needs finite times"):
            path(t)


def test_energy_of_a_time_dependent_system():
    """E = p·v − L(t, q, v) at the path's own times: here v²/2 − (1 + a cos 2t) cos q with v = p − 0.3 sin t."""
    path = run("driven-pendulum", t0=0.4, params={"a": 0.7})
    v = path.p[:, 0] - 0.3 * np.sin(path.t)
    expected = v**2 / 2 - (1 + 0.7 * np.cos(2 * path.t)) * np.cos(path.q[:, 0])
    np.testing.assert_allclose(path.energy(), expected, atol=1e-14)
    np.testing.assert_allclose(path.velocity()[:, 0], v, atol=1e-15)
    assert path.energy().shape == (41,) and np.ptp(expected) > 0.1


@pytest.mark.parametrize("size", [0.0, 1e-8, 0.1, 1.0, 30.0, 1e4])
def test_velocity_of_the_relativistic_particle(size):
    """p = v/√(1 − v²/c²) has the inverse v = p/√(1 + p²/c²), found by Newton from rest for any momentum."""
    system, q0, _ = case("relativistic")
    p = size * np.array([0.6, -0.8])
    v = system.velocity(q0, p)
    np.testing.assert_allclose(v, p / np.sqrt(1 + p @ p / 1.5**2), rtol=1e-13)
    many = system.velocity(np.tile(q0, (5, 1)), np.outer([1, -1, 0, 2, 0.1], p))
    np.testing.assert_allclose(many[0], v, rtol=1e-13)
    np.testing.assert_allclose(many[1], -v, rtol=1e-13)


def test_acceleration_is_the_second_derivative_of_the_motion():
    """q̈ = L_vv⁻¹(L_q − L_vq v − L_vt), against differences of an accurate path."""
    for name in ("inseparable", "driven-pendulum", "relativistic"):
        system, q0, v0 = case(name)
        h = 1e-3
        path = la.integrate(system, "P4N4Q8Gau", q0, v0=v0, h=h, steps=2, t0=0.5)
        back = la.integrate(system, "P4N4Q8Gau", q0, v0=v0, h=-h, steps=2, t0=0.5)
        v = [back.velocity()[2], back.velocity()[1], path.velocity()[1], path.velocity()[2]]
        difference = (v[0] - 8 * v[1] + 8 * v[2] - v[3]) / (12 * h)
        np.testing.assert_allclose(system.acceleration(q0, v0, 0.5), difference, atol=1e-10)


def test_scalars_for_one_degree_of_freedom():
    system, q0, v0 = case("pendulum")
    a = la.integrate(system, "simpson", q0[0], v0=v0[0], h=0.1, steps=5)
    b = la.integrate(system, "simpson", q0, v0=v0, h=0.1, steps=5)
    assert (a.q == b.q).all()


def test_from_sympy_is_the_same_motion():
    """L(t, q, v) written in SymPy, with its parameter."""
    t, a = sp.symbols("t a")
    q = sp.Function("q")(t)
    v = q.diff(t)
    L = v**2 / 2 + (1 + a * sp.cos(2 * t)) * sp.cos(q) + sp.Rational(3, 10) * sp.sin(t) * v
    system = la.Lagrangian.from_sympy(L, [q], [v], t=t, params={"a": 0.4})
    _, q0, v0 = case("driven-pendulum")
    path = la.integrate(system, "P3N3Q6Gau", q0, v0=v0, h=0.1, steps=50)
    same = la.integrate(la.Lagrangian(driven_pendulum, n=1, params={"a": 0.4}), "P3N3Q6Gau", q0, v0=v0, h=0.1, steps=50)
    np.testing.assert_allclose(path.q, same.q, atol=1e-13)
    np.testing.assert_allclose(path.energy(), same.energy(), atol=1e-13)


FINGERPRINT = """
import hashlib, numpy as np
from test_running import run
paths = [run(name, method, h=0.1, steps=500) for name in ("inseparable", "double-pendulum", "chain-4")
         for method in ("simpson", "P4N4Q8Gau", "rk4")]
print(hashlib.sha256(b"".join(p.q.tobytes() + p.p.tobytes() + p(p.t[:-1] + 0.03).tobytes() for p in paths)).hexdigest())
"""


def test_two_runs_give_the_same_bits():
    """In one process, and in two others."""
    for method in ("simpson", "P5N5Q10Gau", "rk4"):
        a, b = run(method=method, steps=1000), run(method=method, steps=1000)
        assert a.q.tobytes() == b.q.tobytes() and a.p.tobytes() == b.p.tobytes()
    first, second = (printed_by(FINGERPRINT, folder=Path(__file__).parent) for _ in range(2))
    assert first == second and len(first) == hashlib.sha256().digest_size * 2


def test_ctrl_c_returns_what_there_is():
    """One interrupt ends a run that would take a day, between two pieces, and the path ends with the last step done."""
    short = run(steps=1000)
    with pressed_after(1000), pytest.warns(RuntimeWarning) as caught:
        path = run(steps=10**11, every=10**6)
    (warning,) = caught
    steps = path.stats["steps"]
    assert path.stats["interrupted"] and 0 < steps < 10**11
    assert str(warning.message).startswith(f"interrupted after {steps} of {10**11} steps; the path ends at t = ")
    assert np.isfinite(path.q).all() and (path.q[0] == short.q[0]).all()
    assert path.t[-1] == steps * path.h
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert (run(steps=1000).q == short.q).all()


def test_runs_in_threads():
    """Outside the main thread, where signals cannot be handled, runs work and give the same bits."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: run(steps=2000), range(4)))
    assert all((path.q == paths[0].q).all() for path in paths)
    assert (run(steps=2000).q == paths[0].q).all()


def test_progress_bar(capfd):
    run(steps=100)
    assert capfd.readouterr() == ("", "")
    run(steps=100, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "100%" in err and "steps" in err


def test_the_bar_of_a_run_that_fails_stands_where_it_failed(capfd):
    falling = la.Lagrangian(lambda q, v: v[0] ** 2 / 2 + np.sqrt(q[0]), n=1)
    with pytest.raises(la.StepFailed) as failure:
        la.integrate(falling, "simpson", [1.0], v0=[-2.0], h=0.001, steps=10_000, progress=True)
    shown = capfd.readouterr().err
    assert f"{len(failure.value.path) - 1}/10.0k" in shown and "100%" not in shown


def test_a_bar_in_a_file_is_few_lines(capfd):
    """Where stderr is no terminal, every state of the bar is a line: only the first and the last are shown."""
    run(steps=400_000, every=400_000, progress=True)
    assert capfd.readouterr().err.count("steps/s") <= 2


def test_allocation_that_cannot_be_met():
    with pytest.raises(
        MemoryError, match=r"states of 2 degrees of freedom need .* GiB; keep fewer with every= \(now 1\)"
    ):
        run(steps=10**15)


@pytest.mark.parametrize(("h", "t_end", "count"), [(0.1, 0.3, 3), (0.1, 0.35, 4), (1e-6, 1e9, 10**15), (0.3, 0.1, 1)])
def test_number_of_steps_until_a_time(h, t_end, count):
    """Equal steps of at most h, a rounding of their number aside; 10¹⁵ of them are not cut by 10⁶."""
    assert count_steps(h, None, t_end, 0.0) == (count, t_end / count)
