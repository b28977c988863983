"""Loads as vectors times records, moving grounds, and what is read off a run: v, a, reactions, spectra, histories."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import leastaction as la
from leastaction import Samples
from leastaction.linear import Load, Rayleigh, reactions, response_spectrum
from linear_systems import chain, definite, semidefinite, sparse
from systems import catalogued

n = 6
RNG = np.random.default_rng(3)
M, K, C = definite(RNG, n), semidefinite(RNG, n, n), 0.1 * definite(RNG, n)
T = np.linspace(0.0, 4.0, 41)
RECORD = np.sin(3 * T) * T
VECTOR = RNG.standard_normal(n)
REST = np.zeros(n), np.zeros(n)


@pytest.mark.parametrize("form", [lambda s: s, sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize("rule", ["previous", "linear", "cubic"])
def test_a_load_is_its_samples_without_the_table(form, rule):
    """f = vector · g(t) moves the system as the n columns of samples do, and keeps n + m numbers."""
    load = Load(VECTOR, T, RECORD, rule)
    table = Samples(T, np.outer(RECORD, VECTOR), rule)
    paths = [
        la.integrate(form(la.Quadratic(M, K, C=C, f=f)), "P2N2Q4Gau", *REST, h=0.05, t_end=4) for f in (load, table)
    ]
    np.testing.assert_allclose(paths[0].q, paths[1].q, rtol=1e-12, atol=1e-14)
    assert load.vector.size + load.values.size == n + len(T)


def test_several_records_add_up():
    vectors, records = RNG.standard_normal((n, 3)), RNG.standard_normal((len(T), 3))
    load = Load(vectors, T, records)
    for t in (0.0, 0.123, 4.0):
        parts = [Load(v, T, g)(t) for v, g in zip(vectors.T, records.T, strict=True)]
        np.testing.assert_allclose(load(t), np.sum(parts, axis=0), atol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], T, RECORD), "finite numbers"),
        ((np.ones((2, 2, 2)), T, RECORD), "finite numbers"),
        (([], T, RECORD), "finite numbers"),
        ((VECTOR, T, np.ones((len(T), 2))), "a column for each"),
        ((np.ones((n, 2)), T, RECORD), r"shape \(41, 2\)"),
        ((VECTOR, T, RECORD[:-1]), "one for each time"),
        ((VECTOR, T[::-1], RECORD), "ascending"),
        ((VECTOR, T, RECORD, 0), "rule"),
    ],
)
def test_bad_loads_say_why(arguments, message):
    with pytest.raises(ValueError, match=message):
        Load(*arguments)


def test_a_load_of_another_size_and_a_record_too_short():
    with pytest.raises(ValueError, match="must give 6 real numbers"):
        la.Quadratic(M, K, f=Load(np.ones(5), T, RECORD))
    system = la.Quadratic(M, K, f=Load(VECTOR, T, RECORD))
    with pytest.raises(ValueError, match="samples are known from t = 0 to 4"):
        la.integrate(system, "simpson", *REST, h=0.1, t_end=5)


def test_a_load_is_kept_in_files_and_resumed(tmp_path):
    system = la.Quadratic(csr_array(M), csr_array(K), C=Rayleigh(0.1, 0.01), f=Load(VECTOR, T, RECORD, "linear"))
    whole = la.integrate(system, "simpson", *REST, h=0.05, steps=60)
    whole.save(tmp_path / "run.npz")
    read = la.Path.load(tmp_path / "run.npz").system.f
    assert isinstance(read, Load) and read.rule == "linear"
    np.testing.assert_array_equal(read(1.234), system.f(1.234))
    pytest.importorskip("zarr")
    la.integrate(system, "simpson", *REST, h=0.05, steps=25, store=tmp_path / "run.zarr")
    resumed = la.resume(tmp_path / "run.zarr", steps=35)
    np.testing.assert_array_equal(np.asarray(resumed.q), whole.q)
    np.testing.assert_array_equal(resumed.acceleration([2]), whole.acceleration([2]))


@pytest.mark.parametrize("consistent", [False, True])
def test_a_moving_ground_in_both_coordinates(consistent):
    """q counted from the ground, against absolute positions pulled by springs and dampers from the moving wall."""
    w, a = 2.0, lambda t: -4.0 * np.sin(2.0 * t)  # the ground at g = sin 2t, less its start: g̈ = −4 sin 2t
    N = 5  # the first is the ground
    k = np.array([3.0, 2.0, 5.0, 4.0])
    full = np.zeros((N, N))
    for i, stiffness in enumerate(k):
        full[i : i + 2, i : i + 2] += stiffness * np.array([[1, -1], [-1, 1]])
    mass = np.diag(np.arange(1.0, N + 1))
    if consistent:
        mass += np.diag(np.full(N - 1, 0.2), 1) + np.diag(np.full(N - 1, 0.2), -1)
    damping = 0.05 * full
    times = np.linspace(0, 6, 2001)
    load = Load.base(mass, np.ones(N), times, a(times))
    relative = la.Quadratic.without([0], mass, full, C=damping, f=load)
    x = la.integrate(relative, "P3N3Q6Gau", np.zeros(4), v0=np.full(4, -w), h=0.02, t_end=6)

    def pull(t):  # K_fh and C_fh times the ground's motion, M_fh times its acceleration, to the other side
        return -full[1:, 0] * np.sin(w * t) - damping[1:, 0] * w * np.cos(w * t) - mass[1:, 0] * a(t)

    absolute = la.Quadratic(mass[1:, 1:], full[1:, 1:], C=damping[1:, 1:], f=pull)
    y = la.integrate(absolute, "P3N3Q6Gau", np.zeros(4), v0=np.zeros(4), h=0.02, t_end=6)
    np.testing.assert_allclose(x.q + np.sin(w * x.t)[:, None], y.q, atol=1e-8)
    with pytest.raises(ValueError, match="must have 5 rows"):
        Load.base(mass, np.ones(4), times, a(times))


@pytest.mark.parametrize("damping", [None, Rayleigh(0.2, 0.05), C], ids=["none", "Rayleigh", "general"])
@pytest.mark.parametrize("lumped", [True, False])
@pytest.mark.parametrize("form", [lambda s: s, sparse], ids=["dense", "sparse"])
def test_velocity_and_acceleration_are_those_of_the_equations(damping, lumped, form):
    """M a + C v + K q = f at every stored time, also from few stored degrees of freedom where that is possible."""
    mass = np.arange(1.0, n + 1) if lumped else M
    stiffness = np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1)
    general = None if damping is None or isinstance(damping, Rayleigh) else np.diag(np.diag(damping))
    system = form(la.Quadratic(mass, stiffness, C=damping if general is None else general, f=Load(VECTOR, T, RECORD)))
    q, p = RNG.standard_normal((2, n))
    whole = la.integrate(system, "simpson", q, p, h=0.05, t_end=4)
    v, a = whole.velocity(), whole.acceleration()
    np.testing.assert_allclose((system.M @ v.T).T, whole.p, atol=1e-12)
    f = np.array([system.f(t) for t in whole.t])
    balance = (system.M @ a.T).T + (system.K @ whole.q.T).T - f
    if system.C is not None:
        balance += system.damping_force(v.T).T
    np.testing.assert_allclose(balance, 0, atol=1e-11)
    np.testing.assert_array_equal(whole.velocity([-1, 2]), v[:, [n - 1, 2]])
    few = la.integrate(system, "simpson", q, p, h=0.05, t_end=4, output=system.around([4, 2]))
    if not lumped:
        for ask in (few.velocity, few.acceleration):
            with pytest.raises(ValueError, match="M is not diagonal"):
                ask([2])
        return
    np.testing.assert_array_equal(few.output, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(few.velocity([4, 2]), v[:, [4, 2]], atol=1e-13)
    np.testing.assert_allclose(few.acceleration([4, 2]), a[:, [4, 2]], atol=1e-12)
    with pytest.raises(ValueError, match=r"output=system.around\(\[1\]\)"):
        few.acceleration([1])
    with pytest.raises(ValueError, match=r"\[0\] are not stored"):
        few.velocity([0])


def test_accelerations_are_second_differences():
    system = chain(5)
    path = la.integrate(system, "P4N4Q8Gau", np.arange(5.0), np.zeros(5), h=0.001, steps=200)
    second = (path.q[2:] - 2 * path.q[1:-1] + path.q[:-2]) / 0.001**2
    np.testing.assert_allclose(path.acceleration()[1:-1], second, atol=1e-5)
    pendulum = la.integrate(catalogued("pendulum").system, "simpson", [1.0], [0.0], h=0.1, steps=3)
    with pytest.raises(TypeError, match="Quadratic"):
        pendulum.acceleration()


@pytest.mark.parametrize("kind", ["lumped", "consistent", "sparse"])
def test_reactions_balance_all_forces(kind):
    """A free structure held at both ends: the sum of inertia, damping, load and reactions is zero, since K 1 = 0."""
    N = 7
    stiffness = np.diag(np.r_[1.0, np.full(N - 2, 2.0), 1.0]) - np.eye(N, k=1) - np.eye(N, k=-1)
    mass = np.arange(1.0, N + 1) if kind == "lumped" else np.diag(np.arange(1.0, N + 1)) + 0.1 * np.eye(N, k=1)
    mass = mass if mass.ndim == 1 else (mass + mass.T) / 2
    load = Load(np.arange(N) - 2.0, T, RECORD)
    if kind == "sparse":
        mass, stiffness = csr_array(mass), csr_array(stiffness)
    how = {"C": Rayleigh(0.0, 0.1), "f": load}
    system = la.Quadratic.without([0, N - 1], mass, stiffness, **how)
    q = RNG.standard_normal(N - 2)
    path = la.integrate(system, "P3N3Q6Gau", q, np.zeros(N - 2), h=0.05, t_end=4)
    R = reactions(path, [0, N - 1], mass, stiffness, **how)
    full = np.diag(mass) if mass.ndim == 1 else mass.toarray() if kind == "sparse" else mass
    inertia = path.acceleration() @ full[1:-1].sum(axis=1)
    applied = np.array([load(t).sum() for t in path.t])
    np.testing.assert_allclose(R.sum(axis=1) + applied, inertia, atol=1e-11)
    if kind == "lumped":
        ends = la.integrate(system, "P3N3Q6Gau", q, np.zeros(N - 2), h=0.05, t_end=4, output=[0, -1])
        np.testing.assert_allclose(reactions(ends, [0, N - 1], mass, stiffness, **how), R, atol=1e-12)
        middle = la.integrate(system, "P3N3Q6Gau", q, np.zeros(N - 2), h=0.05, t_end=4, output=[2])
        with pytest.raises(ValueError, match=r"\[1, 5\] are needed"):
            reactions(middle, [0, N - 1], mass, stiffness, **how)
    with pytest.raises(ValueError, match="6 are left"):
        reactions(path, [0], mass, stiffness, **how)


def test_a_static_load_is_carried_by_the_support():
    system = la.Quadratic.without([0], [1.0, 1.0], [[5.0, -5.0], [-5.0, 5.0]], C=Rayleigh(2.0, 0.0), f=[0.0, 3.0])
    path = la.integrate(system, "midpoint", [0.6], [0.0], h=0.1, steps=10)  # at rest under its load
    R = reactions(path, [0], [1.0, 1.0], [[5.0, -5.0], [-5.0, 5.0]], C=Rayleigh(2.0, 0.0), f=[0.0, 3.0])
    np.testing.assert_allclose(R, -3.0, rtol=1e-12)


def test_response_spectrum_of_a_ground_that_jumps():
    """a = 1 from the start on: u runs to 2/ω² undamped, and (1 + e^{−πζ/√(1−ζ²)})/ω² damped, as textbooks have it."""
    periods, ratios = np.array([0.5, 1.0, 2.0]), np.array([0.0, 0.05, 0.2])
    found = response_spectrum([0.0, 10.0], [1.0, 1.0], periods, ratios, steps_per_period=400)
    omega = 2 * np.pi / periods
    overshoot = 1 + np.exp(-np.pi * ratios / np.sqrt(1 - ratios**2))
    np.testing.assert_allclose(found.displacement, overshoot / omega[:, None] ** 2, rtol=1e-4)
    np.testing.assert_allclose(found.acceleration[:, 0], 2.0, rtol=1e-4)
    np.testing.assert_allclose(found.velocity[:, 0], 1 / omega, rtol=1e-4)
    import matplotlib.pyplot as plt

    ax = found.plot("displacement")
    assert len(ax.lines) == 3 and "5 % of critical" in ax.get_legend().get_texts()[1].get_text()
    with pytest.raises(ValueError, match="expected 'displacement'"):
        found.plot("force")
    plt.close("all")


def test_a_response_spectrum_is_that_of_runs():
    """Against la.integrate on each oscillator with the same record."""
    times = np.linspace(0, 8, 81)
    record = RNG.standard_normal(81)
    found = response_spectrum(times, record, [0.3, 1.1], 0.02)
    for i, period in enumerate((0.3, 1.1)):
        w = 2 * np.pi / period
        system = la.Quadratic([1.0], [w**2], C=[2 * 0.02 * w], f=Load.base([1.0], [1.0], times, record, rule="linear"))
        path = la.integrate(system, "P4N4Q8Gau", [0.0], [0.0], h=0.00625, t_end=8)
        total = path.acceleration()[:, 0] + np.interp(path.t, times, record)
        assert found.displacement[i, 0] == pytest.approx(np.abs(path.q).max(), rel=2e-3)
        assert found.velocity[i, 0] == pytest.approx(np.abs(path.velocity()).max(), rel=2e-3)
        assert found.acceleration[i, 0] == pytest.approx(np.abs(total).max(), rel=2e-3)
    for bad in ([], [0.0], [-1.0], [np.inf]):
        with pytest.raises(ValueError, match="periods"):
            response_spectrum(times, record, bad)
    with pytest.raises(ValueError, match="damping"):
        response_spectrum(times, record, [1.0], -0.1)


def test_histories_by_name():
    import matplotlib.pyplot as plt

    system = chain(8)
    path = la.integrate(system, "simpson", np.arange(8.0), np.zeros(8), h=0.1, steps=50, output=system.around([7, 3]))
    names = {7: "tip", 3: "middle"}
    for of, values in (("q", path.q[:, [4, 1]]), ("v", path.velocity([7, 3])), ("a", path.acceleration([7, 3]))):
        ax = path.plot("history", dofs=[7, 3], of=of, names=names)
        assert [line.get_label() for line in ax.lines] == ["tip", "middle"]
        np.testing.assert_array_equal(np.transpose([line.get_ydata() for line in ax.lines]), values)
        plt.close("all")
    with pytest.raises(ValueError, match=r"\[0\] are not stored"):
        path.plot("history", dofs=[0])
    with pytest.raises(ValueError, match="of must be"):
        path.plot("history", of="p")
    plt.close("all")
