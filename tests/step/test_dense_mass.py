"""Steps with a dense mass in the loops: eliminated with exchanges and without, and chords that end at its rounding."""

import numpy as np
import pytest

import leastaction as la
from rungs import solved_by
from thrift import rest_slow


def chain(q, v):
    """n equal links, each hanging from the one before: a dense mass, positive definite and ill-conditioned."""
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(x**2 + y**2) + 9.81 * np.sum(np.cumsum(np.cos(q)))


def crossed(q, v):
    """A mass that is neither positive definite nor has a first pivot."""
    return v[0] * v[1] * (2 + np.cos(q[2])) + 0.3 * v[2] * (v[0] + v[2]) - 0.5 * q @ q + 0.2 * np.sin(q[0]) * q[1]


def by(how, system, s, q0, h, steps):
    with solved_by(how):
        return la.integrate(system, f"P{s}N{s}Q{2 * s}Gau", q0, v0=np.zeros(system.n), h=h, steps=steps)


@pytest.mark.parametrize("n", rest_slow([3, 9, 18, 21], [9, 18]))
@pytest.mark.parametrize("s", rest_slow([1, 3], [3]))
def test_chords_give_newtons_steps_of_chains(n, s):
    """Sizes with and without whole vectors and whole fours of rows."""
    system, q0 = la.Lagrangian(chain, n=n), np.linspace(0.5, 1.0, n)
    chords, newton = (by(how, system, s, q0, 1e-3, 20) for how in ("chord", "newton"))
    np.testing.assert_allclose(chords.q, newton.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(chords.p, newton.p, rtol=0, atol=1e-12 * np.abs(newton.p).max())


@pytest.mark.parametrize("s", [1, 2, 4])
def test_a_mass_that_is_not_definite_is_eliminated_with_exchanges(s):
    system, q0 = la.Lagrangian(crossed, n=3), np.array([0.4, -0.2, 0.7])
    chords, newton = (by(how, system, s, q0, 0.02, 50) for how in ("chord", "newton"))
    np.testing.assert_allclose(chords.q, newton.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(chords.p, newton.p, rtol=0, atol=1e-13)


def test_chords_end_where_rounding_of_momenta_hides_what_comes_next():
    """Twenty links: increments stand still at 10⁻¹³ of a step, and to see them stand would cost a chord more."""
    system, q0 = la.Lagrangian(chain, n=20), np.linspace(0.5, 1.0, 20)
    path = la.integrate(system, "P4N4Q8Gau", q0, v0=np.zeros(20), h=1e-3, steps=500)
    assert path.stats["newton_iterations"] < 2.3 * 500
    assert path.stats["continued"] == 0
    assert np.ptp(E := path.energy()) < 1e-14 * np.abs(E).max()


def test_momenta_whose_rows_were_exchanged_are_judged_in_their_own_units():
    """A chain beside v_18 v_19: iterations are the same, whatever the unit of a coordinate is."""

    def beside(q, v, unit):
        return chain(q[:18], v[:18]) + unit * (v[18] * v[19] * (1 + 0.1 * np.cos(q[0])) - 0.5 * q[18] * q[19])

    def iterations(unit):
        q0, v0 = np.r_[np.linspace(0.5, 1.0, 18), 0.5 / unit, 0.3], np.r_[np.zeros(18), 0.2 / unit, 0.1]
        system = la.Lagrangian(beside, n=20, params={"unit": unit})
        return la.integrate(system, "P4N4Q8Gau", q0, v0=v0, h=1e-3, steps=500).stats["newton_iterations"]

    assert iterations(2.0**20) == iterations(1.0) < 2.3 * 500


def stiff(n, reach, h, rng):
    """A dense mass, a dense stiffness with h ω = reach, and a start that excites all modes."""
    A, B = rng.normal(size=(2, n, n))
    K, M = A.T @ A, B @ B.T / n + 0.5 * np.eye(n)
    K *= (reach / h) ** 2 / np.abs(np.linalg.eigvals(np.linalg.solve(M, K))).max()
    modes, V = np.linalg.eigh(K)
    return M, K, V @ (rng.normal(size=n) * 0.5 / (1 + np.sqrt(modes))), rng.normal(size=n) * 0.5


@pytest.mark.parametrize(
    ("seed", "reach", "s"),
    [(0, 3.0, 9)]
    + [
        pytest.param(seed, reach, s, marks=pytest.mark.slow)
        for seed in (1, 2)
        for reach in (1.0, 3.0, 5.0)
        for s in (4, 9)
    ],
)
def test_chords_of_stiff_systems_with_a_dense_mass_are_as_accurate_as_newton(seed, reach, s):
    """24 coordinates, all coupled, the mass and its change dense. A step that is continued sets floors for those that
    follow; where these alone ended the mass chords, momenta were 4·10⁻¹¹ off.
    """
    n, h = 24, 0.01
    M, K, q0, p0 = stiff(n, reach, h, np.random.default_rng(seed))

    def L(q, v):
        return 0.5 * (v @ (M @ v)) * (1 + 0.1 * np.sin(q[0])) - 0.5 * (q @ (K @ q)) + np.sum(np.cos(q))

    def path():
        return la.integrate(la.Lagrangian(L, n=n), f"P{s}N{s}Q{2 * s}Gau", q0=q0, p0=p0, h=h, steps=25)

    with solved_by("newton"):
        exact = path()
    found = path()
    np.testing.assert_allclose(found.p, exact.p, rtol=0, atol=1e-12)
    assert np.abs(found.energy() - exact.energy()).max() < 2e-12


def test_a_coordinate_that_rounding_alone_moves_leaves_stiff_neighbours_accurate():
    """Two equal systems of twelve coordinates pull at a body between them, which rests but for rounding: it needs a
    floor, and with the floors that all had then the momenta of the others were 9·10⁻¹¹ off.
    """
    n, s, h, rng = 12, 9, 0.01, np.random.default_rng(7)
    M, K, q0, p0 = stiff(n, 4.4, h, rng)
    k = rng.uniform(5, 30, size=n)

    def L(q, v):
        (a, b, y), (u, w) = (q[:n], q[n:-1], q[-1]), (v[:n], v[n:-1])
        T = 0.5 * (u @ (M @ u)) * (1 + 0.1 * np.sin(a[0])) + 0.5 * (w @ (M @ w)) * (1 + 0.1 * np.sin(b[0]))
        U = 0.5 * (a @ (K @ a)) + 0.5 * (b @ (K @ b)) + 0.5 * np.sum(k * ((a - y) ** 2 + (b + y) ** 2))
        return T + 0.5 * v[-1] ** 2 - U + np.sum(np.cos(q[:-1]))

    def path():
        start = {"q0": np.r_[q0, q0, 0.0], "p0": np.r_[p0, p0, 0.0]}
        return la.integrate(la.Lagrangian(L, n=2 * n + 1), f"P{s}N{s}Q{2 * s}Gau", **start, h=h, steps=25)

    with solved_by("shifted"):
        exact = path()
    np.testing.assert_allclose(path().p, exact.p, rtol=0, atol=1e-12)
