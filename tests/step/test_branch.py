"""branch="any": the root that Newton's iteration finds, where the one that belongs to the motion has ended."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leastaction as la
from systems import case, catalogued

KEPLER = catalogued("kepler-galerkin")
START = {"q0": KEPLER.q0, "p0": KEPLER.p0}
COARSE = {"h": 0.5, "steps": 12}
METHOD = "P1N5Q10Gau"


def anyway(**how):
    return la.integrate(KEPLER.system, METHOD, **START, **COARSE | {"branch": "any"} | how)


def test_a_root_that_is_refused_else_is_a_root():
    """Each step satisfies p_k = −D₁L_d, p_{k+1} = D₂L_d (without inner values), though it belongs to no motion."""
    with pytest.raises(la.StepFailed, match="no solution of this size of step"):
        la.integrate(KEPLER.system, METHOD, **START, **COARSE)
    path = anyway()
    Ld = la.discrete_lagrangian(KEPLER.system, METHOD, 0.5)
    for k in range(len(path) - 1):
        np.testing.assert_allclose(Ld.left(path.q[k], path.q[k + 1])[1], path.p[k], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(Ld.right(path.q[k], path.q[k + 1])[1], path.p[k + 1], rtol=1e-11, atol=1e-11)
    assert path.method.branch == "any" and path.method.name == METHOD and "any branch" in repr(path.method)


def test_a_step_without_any_root_says_so():
    """One of the eight coarse points of Figures 5.7 and 5.9 where Newton finds no root: this step has no root."""
    with pytest.raises(la.StepFailed, match="Newton's iteration finds no root, and none of this size of step"):
        la.integrate(KEPLER.system, "P1N3Q4Lob", **START, h=1.0, steps=25, branch="any")


@pytest.mark.parametrize(
    ("name", "method"), [("inseparable", "P5N5Q10Gau"), ("double-pendulum", "simpson"), ("kepler-3d", "midpoint")]
)
def test_small_steps_have_one_root(name, method):
    system, q0, v0 = case(name)
    followed, found = (
        la.integrate(system, method, q0, v0=v0, h=0.02, steps=60, branch=branch) for branch in ("followed", "any")
    )
    np.testing.assert_allclose(found.q, followed.q, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.p, followed.p, rtol=1e-12, atol=1e-12)


def test_digits_find_the_same_root():
    np.testing.assert_allclose(anyway(steps=3, digits=30).q.astype(float), anyway(steps=3).q, rtol=1e-10)


def test_lanes_find_the_root_of_a_path():
    q0 = np.array(KEPLER.q0, float) + np.array([[0.0, 0], [0.1, 0], [0, 0.1], [-0.1, 0.2], [0.05, 0.05]])
    paths = la.ensemble(KEPLER.system, METHOD, q0, KEPLER.p0, h=0.5, steps=2, branch="any")
    assert (paths.status == 0).all()
    for k in range(len(q0)):
        one = la.integrate(KEPLER.system, METHOD, q0[k], KEPLER.p0, h=0.5, steps=2, branch="any")
        np.testing.assert_allclose(paths.q[k], one.q, rtol=1e-9)


def test_stored_and_resumed(tmp_path):
    pytest.importorskip("zarr")
    la.integrate(KEPLER.system, METHOD, **START, h=0.5, steps=5, branch="any", store=tmp_path / "a.zarr")
    again = la.resume(tmp_path / "a.zarr", steps=7)
    np.testing.assert_array_equal(np.asarray(again.q), anyway().q)
    assert la.open(tmp_path / "a.zarr").method.branch == "any"
    anyway().save(tmp_path / "a.npz")
    assert la.Path.load(tmp_path / "a.npz").method == la.method(f"{METHOD}, any branch")


def test_every_root_is_symplectic():
    path = anyway(tangent=True)
    J = la.analysis.symplectic_matrix(2)
    for D in path.tangent:
        assert abs(D.T @ J @ D - J).max() < 1e-11 * abs(D).max() ** 2


def test_dense_output_is_the_cubic_through_the_states():
    path = anyway()
    np.testing.assert_allclose(path(path.t), path.q, rtol=1e-12)
    middle = path(0.25)
    v = path.system.velocity(path.q[:2], path.p[:2])
    np.testing.assert_allclose(middle, (path.q[0] + path.q[1]) / 2 + 0.5 * (v[0] - v[1]) / 8, rtol=1e-12)
    with pytest.raises(ValueError, match="branch='any' the states between the stored ones are not known"):
        anyway(every=2)(0.25)


@pytest.mark.parametrize(
    ("system", "method", "how", "words"),
    [
        (KEPLER.system, "rk4", {}, "rk4 solves no equations"),
        (KEPLER.system, "simpson", {"branch": "all"}, "must be 'followed' or 'any'"),
        (
            KEPLER.system,
            "simpson",
            {"events": {"x": la.Event(lambda q, p: q[0])}},
            "With branch='any' leave events= out",
        ),
        (la.Quadratic(np.eye(2), np.eye(2)), "simpson", {}, "linear and have one root"),
    ],
)
def test_what_is_refused(system, method, how, words):
    with pytest.raises(ValueError, match=words):
        la.integrate(system, method, **START, **COARSE, **{"branch": "any"} | how)


def test_lanes_watch_the_energy():
    system, q0, v0 = case("double-pendulum")
    how = {"v0": v0, "h": 0.01, "steps": 20, "branch": "any"}
    paths = la.ensemble(system, "simpson", np.tile(q0, (3, 1)), reduce={"E": la.EnergyRange()}, **how)
    energy = la.integrate(system, "simpson", q0, **how).energy()
    np.testing.assert_allclose(paths.reduced["E"], [[energy.min(), energy.max()]] * 3, rtol=1e-12)
    with pytest.raises(ValueError, match="With branch='any' leave events= out"):
        la.ensemble(system, "simpson", q0, events={"x": la.Event(lambda q, p: q[0])}, **how)


def test_work_is_not_known():
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1, force=lambda q, v: -0.1 * v)
    path = la.integrate(system, "simpson", [1.0], [0.0], h=0.1, steps=5, branch="any")
    with pytest.raises(ValueError, match="is not known for a run with branch='any'"):
        path.work()


@pytest.mark.parametrize("h", [0.1, 1.9, 7.0])
def test_an_explicit_step_has_a_root_however_long_it_is(h):
    """Störmer and Verlet find it from the force at the start, q⁺ = q + h (p + h f/2), whatever h and the motion."""

    def wells(q, v):
        return 0.5 * (v @ v) - 0.25 * (q @ q) ** 2 + np.cos(3 * q[0])

    system, q, p = la.Lagrangian(wells, n=2), np.array([1.2, -0.7]), np.array([0.3, 2.0])

    def force(q):
        return -(q @ q) * q - np.array([3 * np.sin(3 * q[0]), 0.0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", la.EnergyWarning)
        path = la.integrate(system, "stormer-verlet", q, p, h=h, steps=3)
        fine = la.integrate(system, "stormer-verlet", q, p, h=h, steps=3, digits=30)
        paths = la.ensemble(system, "stormer-verlet", np.tile(q, (5, 1)), np.tile(p, (5, 1)), h=h, steps=3)
    for k in range(3):
        half = p + h / 2 * force(q)
        q = q + h * half
        p = half + h / 2 * force(q)
        size = 1 + abs(q).max() + abs(p).max()
        for found in (path, paths[4]):
            np.testing.assert_allclose(found.q[k + 1], q, rtol=1e-9, atol=1e-12 * size)
            np.testing.assert_allclose(found.p[k + 1], p, rtol=1e-9, atol=1e-12 * size)
        np.testing.assert_allclose(fine.q[k + 1].astype(float), q, rtol=1e-9, atol=1e-12 * size)


@pytest.mark.parametrize(("method", "n"), [("midpoint", 1), ("midpoint", 3), ("P3N3Q6Gau", 1), ("P3N4Q6Lob", 3)])
def test_the_way_back_is_as_short_as_the_way_there(method, n):
    """∂R/∂z is L_vv/h at h → 0: with s n odd its determinant is negative where h is. Such steps were all continued."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v + np.cos(q[0]) - 0.3 * np.sum(np.diff(q) ** 2), n=n)
    start = {"q0": np.linspace(1.0, 0.5, n), "steps": 200}
    there, back = (la.integrate(system, method, **start, v0=np.full(n, 0.3 * a), h=0.1 * a) for a in (1, -1))
    np.testing.assert_allclose(back.q, there.q, rtol=0, atol=1e-14)
    for name in ("continued", "newton_iterations"):
        assert back.stats[name] == there.stats[name]
