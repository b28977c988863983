"""Runs: sparse equals dense, orders, damping and load, output, dense output, saved paths."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.sparse import csr_array

import leastaction as la
from leastaction import Samples
from leastaction.linear import Rayleigh
from leastaction.linear.shifts import shifts
from leastaction.methods import family
from linear_systems import chain, definite, matrices, semidefinite, sparse, state
from thrift import rest_slow

FAMILY = [m.name for m in family(3, 4)] + ["P4N4Q8Gau", "P4N5Q8Lob", "P6N6Q12Gau", "P8N8Q16Gau", "P10N10Q20Gau", "rk4"]


def random_system(n: int = 5, **forces) -> la.Quadratic:
    rng = np.random.default_rng(11)
    return la.Quadratic(definite(rng, n), semidefinite(rng, n, n - 1), **forces)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("damping", rest_slow(["none", "rayleigh", "general"], ["general"]))
def test_sparse_equals_dense(name, damping):
    """One matrix in the native loop against factorisations and solves: the same motion to round-off."""
    C = {"none": None, "rayleigh": Rayleigh(0.1, 0.2), "general": semidefinite(np.random.default_rng(2), 5, 5)}[damping]
    dense = random_system(C=C, f=lambda t: np.cos(t * np.arange(5)))
    q, p = state(5)
    a = la.integrate(dense, name, q, p, h=0.2, steps=50)
    b = la.integrate(sparse(dense), name, q, p, h=0.2, steps=50)
    assert "matrix" in a.stats["how"] and "matrix" not in b.stats["how"]
    np.testing.assert_allclose(a.q, b.q, atol=2e-12)
    np.testing.assert_allclose(a.p, b.p, atol=2e-12)
    np.testing.assert_array_equal(a.t, b.t)


@settings(max_examples=40)
@given(matrices(), st.sampled_from(["newmark", "simpson", "P2N2Q4Gau", "P3N3Q6Gau", "P3N4Q6Lob"]))
def test_random_systems_sparse_equals_dense_and_conserve_phi(MK, name):
    M, K = MK
    dense = la.Quadratic(M, K)
    q, p = state(len(M))
    h = min(0.5, 0.9 * dense.stable_step(name))
    a = la.integrate(dense, name, q, p, h=h, steps=100)
    b = la.integrate(sparse(dense), name, q, p, h=h, steps=100)
    scale = 1 + np.abs(a.q).max()
    np.testing.assert_allclose(a.q, b.q, atol=1e-11 * scale)
    phi = [dense.conserved(x, y, name, h) for x, y in ((a.q[0], a.p[0]), (a.q[-1], a.p[-1]))]
    assert phi[1] == pytest.approx(phi[0], rel=1e-11)


def test_a_large_dense_system_takes_the_solving_way():
    n = 60
    rng = np.random.default_rng(4)
    M, K = definite(rng, n), semidefinite(rng, n, n)
    q, p = state(n)
    for name in ("simpson", "P3N3Q6Gau"):
        dense, thin = (
            la.integrate(system, name, q, p, h=0.2, steps=20)
            for system in (la.Quadratic(M, K), la.Quadratic(csr_array(M), csr_array(K)))
        )
        assert "solves" in dense.stats["how"]
        np.testing.assert_allclose(dense.q, thin.q, atol=1e-12)
    damped = la.Quadratic(M, K, C=semidefinite(rng, n, n))
    np.testing.assert_allclose(
        la.integrate(damped, "simpson", q, p, h=0.2, steps=20).q,
        la.integrate(sparse(damped), "simpson", q, p, h=0.2, steps=20).q,
        atol=1e-12,
    )


@pytest.mark.parametrize("name", ["newmark", "simpson", "P2N2Q4Gau", "P3N4Q6Lob", "P4N4Q8Gau"])
def test_lumped_and_consistent_mass(name):
    """A diagonal mass is the same whether it comes as a vector, a dense or a sparse matrix."""
    n = 40
    system = chain(n)
    q, p = state(n)
    h = 0.3
    paths = [
        la.integrate(s, name, q, p, h=h, steps=30)
        for s in (system, la.Quadratic(np.eye(n), system.K.toarray()), la.Quadratic(csr_array(np.eye(n)), system.K))
    ]
    for path in paths[1:]:
        np.testing.assert_allclose(path.q, paths[0].q, atol=1e-13)


def test_shifts_of_the_schemes_in_the_papers():
    """Newmark factorises M + h²K/4, Simpson M + h²K/24 and M; Gauss members come in conjugate pairs."""
    h = 0.1
    for name, gamma in (("newmark", [-1 / 4]), ("stormer-verlet", [0]), ("simpson", [-1 / 24, 0])):
        small = shifts(la.method(name).linear_form(), h)
        np.testing.assert_allclose(np.sort(small.gamma.real), np.sort(gamma), atol=1e-15)
        assert not small.gamma.imag.any() and not small.coupled
    for s in (2, 3, 4, 5):
        small = shifts(la.method(f"P{s}N{s}Q{2 * s}Gau").linear_form(), h)
        assert len(small.gamma) == (s + 1) // 2
    assert shifts(la.method("P10N10Q20Gau").linear_form(), h).coupled


def driven_reference(M, C, K, b, Omega, q0, p0, t):
    """M q̈ + C q̇ + K q = b cos Ωt: steady state plus the exponential of the rest."""
    n = len(M)
    steady = np.linalg.solve(K - Omega**2 * M + 1j * Omega * C, b)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    rest = expm(A * t) @ np.r_[q0 - steady.real, np.linalg.solve(M, p0) - (1j * Omega * steady).real]
    now = steady * np.exp(1j * Omega * t)
    return rest[:n] + now.real, M @ (rest[n:] + (1j * Omega * now).real)


@pytest.mark.parametrize("name", [m.name for m in family(4, 5)] + ["rk4"])
@pytest.mark.parametrize("kind", rest_slow(["rayleigh", "general"], ["general"]))
def test_order_on_a_damped_driven_system(name, kind):
    """min(2s, u), with damping and load at the method's own nodes."""
    rng = np.random.default_rng(3)
    M, K = definite(rng, 3), semidefinite(rng, 3, 3) + 0.5 * np.eye(3)
    C = 0.3 * semidefinite(rng, 3, 3)
    damping = Rayleigh(0.2, 0.1) if kind == "rayleigh" else C
    C = 0.2 * M + 0.1 * K if kind == "rayleigh" else C
    b, Omega, T = rng.standard_normal(3), 1.3, 6.0
    q0, p0 = state(3)
    system = la.Quadratic(M, K, C=damping, f=lambda t: b * np.cos(Omega * t))
    q, p = driven_reference(M, C, K, b, Omega, q0, p0, T)
    order = la.method(name).order
    steps = {2: 128, 4: 48, 6: 16, 8: 8}[order]
    errors = []
    for N in (steps, 2 * steps):
        path = la.integrate(system, name, q0, p0, h=T / N, steps=N)
        errors.append(np.linalg.norm(np.r_[path.q[-1] - q, path.p[-1] - p]))
    assert errors[1] > 1e-13  # above round-off
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


def test_sampled_load_and_constant_load():
    """Samples fine enough give the function's motion; a constant load moves the equilibrium."""
    t = np.linspace(0, 5, 400)
    shape = np.array([1.0, -1.0])
    exact = la.Quadratic(np.eye(2), [1.0, 4.0], f=lambda t: np.sin(2.2 * t) * shape)
    for f in ((t, np.sin(2.2 * t)[:, None] * shape), Samples(t, np.sin(2.2 * t)[:, None] * shape)):
        sampled = la.Quadratic(np.eye(2), [1.0, 4.0], f=f)
        a, b = (la.integrate(s, "P2N2Q4Gau", [0, 0], [0, 0], h=0.05, steps=100) for s in (exact, sampled))
        np.testing.assert_allclose(a.q, b.q, atol=1e-7)
    with pytest.raises(ValueError, match="known from t = 0 to 5"):
        la.integrate(sampled, "P2N2Q4Gau", [0, 0], [0, 0], h=0.05, steps=101)
    pushed = la.Quadratic(np.eye(2), [1.0, 4.0], C=Rayleigh(1.0, 0.0), f=[2.0, 2.0])
    np.testing.assert_allclose(
        la.integrate(pushed, "simpson", [0, 0], [0, 0], h=0.1, t_end=80).q[-1], [2, 0.5], atol=1e-9
    )


def test_rayleigh_is_its_matrix():
    dense = random_system()
    C = 0.3 * dense.M + 0.2 * dense.K
    q, p = state(5)
    for name in ("simpson", "P3N3Q6Gau", "rk4"):
        for form in (lambda s: s, sparse):
            a, b = (
                la.integrate(form(la.Quadratic(dense.M, dense.K, C=c)), name, q, p, h=0.1, steps=50)
                for c in (Rayleigh(0.3, 0.2), C)
            )
            np.testing.assert_allclose(a.q, b.q, atol=1e-12)
    w = dense.modes().omega[1:3]
    fitted = Rayleigh.from_ratios((w[0], 0.03), (w[1], 0.03))
    np.testing.assert_allclose((fitted.alpha / w + fitted.beta * w) / 2, [0.03, 0.03])


@pytest.mark.parametrize("name", ["newmark", "simpson", "P4N4Q8Gau"])
def test_backward_returns_to_the_start(name):
    system = random_system()
    q, p = state(5)
    for s in (system, sparse(system)):
        there = la.integrate(s, name, q, p, h=0.1, steps=200)
        back = la.integrate(s, name, there.q[-1], there.p[-1], h=-0.1, steps=200)
        np.testing.assert_allclose(back.q[-1], q, atol=1e-12)
        np.testing.assert_allclose(back.p[-1], p, atol=1e-12)


@pytest.mark.parametrize("make", [random_system, lambda: sparse(random_system())], ids=["dense", "sparse"])
def test_every_output_and_the_last_step(make):
    system = make()
    q, p = state(5)
    whole = la.integrate(system, "simpson", q, p, h=0.1, steps=23)
    some = la.integrate(system, "simpson", q, p, h=0.1, steps=23, every=5, output=[3, 0])
    assert whole.q.shape == (24, 5)
    np.testing.assert_allclose(some.t, [0, 0.5, 1.0, 1.5, 2.0, 2.3])
    rows = [0, 5, 10, 15, 20, 23]
    np.testing.assert_array_equal(some.q, whole.q[rows][:, [3, 0]])
    np.testing.assert_array_equal(some.p, whole.p[rows][:, [3, 0]])
    for use in (some.energy, some.velocity, lambda: some(0.3)):
        with pytest.raises(ValueError, match="whole state"):
            use()
    assert "states of 2 degrees" in repr(some)
    la.integrate(system, "simpson", q, v0=system.velocity(q, p), h=0.1, t_end=2.3)


@pytest.mark.parametrize("name", ["newmark", "simpson", "P3N3Q6Gau", "P4N5Q8Lob", "rk4"])
def test_dense_output_is_the_methods_polynomial(name):
    """Between the steps of a fine run, and equal for dense and sparse; also where only every seventh is stored."""
    system = random_system()
    q, p = state(5)
    t = np.linspace(0, 2, 41)
    exact, _ = system.exact(q, p, t)
    values = []
    for s in (system, sparse(system)):
        path = la.integrate(s, name, q, p, h=0.02, steps=100, every=7)
        values.append(path(t))
        np.testing.assert_allclose(path(path.t), path.q, atol=1e-13)
        assert path(0.123).shape == (5,)
    np.testing.assert_allclose(values[0], values[1], atol=1e-12)
    assert np.abs(values[0] - exact).max() < {"newmark": 2e-3, "simpson": 3e-6, "P3N3Q6Gau": 1e-7, "rk4": 1e-6}.get(
        name, 1e-9
    )


def test_simpsons_middle_is_the_papers():
    """Dense output at the middle of a step is q_{j+1/2} of the first variant."""
    system = random_system()
    q, p = state(5)
    path = la.integrate(system, "simpson", q, p, h=0.2, steps=1)
    middle = (la.linear.simpson_first(system.M, system.K, 0.2).Phi @ np.r_[p, q])[:5]
    np.testing.assert_allclose(path(0.1), middle, atol=1e-12)


def test_paths_are_saved_with_their_system(tmp_path):
    q, p = state(5)
    C = semidefinite(np.random.default_rng(2), 5, 5)
    for system in (
        random_system(),
        random_system(C=Rayleigh(0.1, 0.2)),
        sparse(random_system()),
        sparse(random_system(C=C)),
        random_system(f=np.ones(5)),
        random_system(f=Samples([0.0, 1.0, 3.0], np.arange(15.0).reshape(3, 5), rule="linear")),
    ):
        path = la.integrate(system, "P3N3Q6Gau", q, p, h=0.1, steps=20, every=3)
        path.save(tmp_path / "run.npz")
        again = la.Path.load(tmp_path / "run.npz")
        np.testing.assert_array_equal(again.q, path.q)
        np.testing.assert_array_equal(again.energy(), path.energy())
        np.testing.assert_array_equal(again(1.234), path(1.234))
        assert again.system.sparse == system.sparse
    some = la.integrate(system, "simpson", q, p, h=0.1, steps=3, output=[1, 4])
    some.save(tmp_path / "some.npz")
    np.testing.assert_array_equal(la.Path.load(tmp_path / "some.npz").output, [1, 4])
    loaded = la.integrate(random_system(f=lambda t: np.ones(5)), "simpson", q, p, h=0.1, steps=3)
    with pytest.raises(ValueError, match=r"load f\(t\) is a function"):
        loaded.save(tmp_path / "load.npz")


def test_a_system_is_pickled_without_its_factors():
    q, p = state(5)
    for system in (random_system(), sparse(random_system(f=np.ones(5)))):
        path = la.integrate(system, "P3N3Q6Gau", q, p, h=0.1, steps=5)
        again = la.integrate(pickle.loads(pickle.dumps(system)), "P3N3Q6Gau", q, p, h=0.1, steps=5)
        np.testing.assert_array_equal(again.q, path.q)


def test_an_interrupt_keeps_what_there_is():
    """Ctrl-C in the middle of a long run of solves."""
    import signal

    def load(t):
        if t > 10 and not interrupted:
            interrupted.append(t)
            signal.raise_signal(signal.SIGINT)
        return np.zeros(200)

    interrupted, free = [], chain(200)
    system = la.Quadratic(free.M, free.K, f=load)
    with pytest.warns(RuntimeWarning, match="interrupted after"):
        path = la.integrate(system, "newmark", *state(200), h=0.1, steps=10**7, every=10)
    assert path.stats["interrupted"] and 100 <= path.stats["steps"] < 10**7
    assert np.isfinite(path.q).all()


def test_no_dense_inverse_and_no_dense_matrix_of_a_sparse_system(monkeypatch):
    """A sparse run never calls toarray or a dense inverse."""
    n = 3000
    system = chain(n)
    monkeypatch.setattr(csr_array, "toarray", lambda *a, **k: pytest.fail("made dense"))
    q = np.sin(np.arange(n))
    for name in ("newmark", "simpson", "P3N3Q6Gau", "P10N10Q20Gau"):
        path = la.integrate(system, name, q, np.zeros(n), h=0.1, steps=3, output=[0])
        assert all(entries < 30 * n for entries in path.stats["factor_entries"])


def test_conservation_in_a_stiff_system():
    """Newmark with h ω_max = 10⁴: a rounding of q moves p by h ω_max times as much, at random."""
    system = la.Quadratic(np.ones(3), csr_array(np.diag([1.0, 100.0, 1e10])))
    path = la.integrate(system, "newmark", [1.0, 0.1, 1e-5], [0, 0, 0], h=0.1, steps=10_000)
    energy = path.energy()
    assert np.abs(energy / energy[0] - 1).max() < 10 * np.finfo(float).eps * 1e4 * np.sqrt(10_000)


@pytest.mark.parametrize("rule", ["linear", "cubic", "previous"])
def test_samples_at_many_times_are_those_at_each(rule):
    """A load of samples is asked for at all nodes of many steps at once: the same bits as one time after the other."""
    times, rng = np.linspace(0, 2, 9), np.random.default_rng(3)
    at = np.sort(rng.uniform(0, 2, (5, 3)), axis=None).reshape(5, 3)
    for load in (
        la.Samples(times, rng.normal(size=(9, 4)), rule),
        la.linear.Load(rng.normal(size=(4, 2)), times, rng.normal(size=(9, 2)), rule),
    ):
        assert (load(at) == [[load(t) for t in row] for row in at]).all() and load(at).shape == (5, 3, 4)
    with pytest.raises(ValueError, match=r"known from t = 0 to 2; the run asks for t = 2\.5"):
        load(np.array([1.0, 2.5]))
