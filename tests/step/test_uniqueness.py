"""Steps that have one root within reach, however stiff, are in no doubt (`backends.fused.uniqueness`)."""

from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pytest

import leastaction as la
from continuation import follow_many
from leastaction.backends import backend, solver
from leastaction.backends.fused import programs, stiff, uniqueness
from leastaction.backends.fused.uniqueness import firmness, nearness, one_root
from leastaction.step.form import samples, stencils, step_of
from leastaction.step.kronecker import kronecker_of
from seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # stiff steps are too long for that


def pendulums(q, v, k):
    g = 1 + 0.1 * np.sin(np.arange(len(q)))
    return 0.5 * v @ v + np.sum(g * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)


def run(n, method, k, steps, h=0.5):
    system = la.Lagrangian(pendulums, n=n, params={"k": k})
    return la.integrate(system, method, np.full(n, 0.5), v0=np.zeros(n), h=h, steps=steps)


@pytest.mark.parametrize("method, most", [("midpoint", 4), ("P2N2Q4Gau", 4), ("P6N6Q12Gau", 8)])
def test_stiff_springs_leave_no_step_in_doubt(method, most):
    """h ω up to 30. Every step of the first two was taken for coarse, and took 7 iterations; of the third one parts of
    the step were solved, too, and some steps continued: 12 iterations.
    """
    first, all_of_them = (run(10, method, 900.0, steps).stats for steps in (1, 101))
    assert all_of_them["continued"] == 0
    assert all_of_them["newton_iterations"] - first["newton_iterations"] <= most * 100


def test_a_coordinate_that_turns_back_may_move_on():
    """Of fifty pendulums with soft springs one often moves by more than its latest steps told: 3 of 1,000 steps were
    continued, which took as long as all others together.
    """
    assert run(50, "midpoint", 1.0, 1000).stats["continued"] == 0


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N3Q6Gau"])
def test_lanes_take_the_same_steps(method):
    system, rng = la.Lagrangian(pendulums, n=3, params={"k": 900.0}), np.random.default_rng(1)
    q = rng.uniform(-1, 1, (9, 3))
    paths = la.ensemble(system, method, q, v0=np.zeros((9, 3)), h=0.5, steps=20)
    for i in (0, 8):
        one = la.integrate(system, method, q[i], v0=np.zeros(3), h=0.5, steps=20)
        np.testing.assert_allclose(paths.q[i], one.q, atol=1e-10)


# ------------------------------------------------------------------------------------------- stiff, and not linear


@contextmanager
def by_continuation():
    """As if nobody could tell whether a root is the only one: first steps are continued from h = 0."""
    none = {"attribute": "one_root", "return_value": None}
    with mock.patch.object(solver, **none), mock.patch.object(programs, **none):
        backend.backend.cache_clear()
        yield
    backend.backend.cache_clear()


def firm(rng, n, dense, kind, most):
    """A random mass, random springs with h ω up to `most` (h = 1), and something that is not linear."""
    A, W = rng.standard_normal((2, n, n))
    M = np.eye(n) + 0.5 * A @ A.T / n if dense else np.diag(rng.uniform(0.5, 2, n))
    K = W @ W.T
    K *= most**2 / np.linalg.eigvals(np.linalg.solve(M, K)).real.max()
    a, f = rng.uniform(0.2, 1.0, n), rng.uniform(0, 6, n)

    def L(q, v):
        bent = np.sum(a * np.cos(q + f)) if kind == "cosines" else -0.03 * np.sum(a * q**4)
        return 0.5 * v @ M @ v - 0.5 * q @ K @ q + bent

    return la.Lagrangian(L, n=n)


def off_the_branch(system, method, q, p, after):
    """Which steps differ from those that continuation finds."""
    with by_continuation():
        single = la.ensemble(system, method, q, p, h=1.0, steps=1).q[:, 1]
    return np.abs(single - after).max(1) > 1e-7 * (1e-3 + np.abs(after - q).max(1))


@pytest.mark.parametrize(
    "n, s, kind, firmest", [(5, 2, "quartic", 20.0), (6, 4, "cosines", 30.0), (6, 4, "quartic", 20.0)]
)
def test_stiff_steps_from_random_starts_are_not_continued(n, s, kind, firmest):
    """While the prediction and the velocity said how wide the box is, and springs counted beside the mass alone, 115,
    81 and 116 of 117 later steps were, and took 340 to 620 iterations. Roots are those that continuation finds.
    """
    rng, method = np.random.default_rng([n, s]), f"P{s}N{s}Q{2 * s}Gau"
    system, continued, iterations = firm(rng, n, True, kind, firmest), 0, 0
    for _ in range(3):
        path = la.integrate(system, method, rng.uniform(-1, 1, n), v0=rng.uniform(-1, 1, n), h=1.0, steps=40)
        continued, iterations = continued + path.stats["continued"], iterations + path.stats["newton_iterations"]
        assert not off_the_branch(system, method, path.q[:-1], path.p[:-1], path.q[1:]).any()
    assert continued == 0 and iterations <= 15 * 120


def test_a_root_that_is_not_shown_is_no_prediction(monkeypatch):
    """Chords of a stiff step find a root, and cannot show that it is the only one: then as many steps are continued as
    without such chords. While they left the root as a prediction, steps were taken without a question.
    """
    monkeypatch.setattr(uniqueness, "BEYOND", 1e9)

    def continued():
        one_root.cache_clear()
        backend.backend.cache_clear()
        rng = np.random.default_rng(3)
        system, q, v = firm(rng, 6, True, "quartic", 20.0), rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 6)
        return la.integrate(system, "P4N4Q8Gau", q, v0=v, h=1.0, steps=60).stats["continued"]

    with_chords = continued()
    monkeypatch.setattr(stiff, "MOST_INSTRUCTIONS", 0)
    assert with_chords == continued() > 30
    one_root.cache_clear()
    backend.backend.cache_clear()


@pytest.mark.slow
def test_roots_of_stiff_steps_are_those_of_continuation():
    """Random sizes, degrees, masses, stiffness and speeds."""
    rng, steps, astray = generator(), 0, 0
    for _ in range(40):
        n, s = int(rng.choice([2, 4, 6, 8, 12])), int(rng.integers(1, 9))
        method, kind = f"P{s}N{s}Q{2 * s}Gau", str(rng.choice(["cosines", "quartic"]))
        system = firm(rng, n, bool(rng.integers(2)), kind, 10 ** rng.uniform(0, 1.7))
        q, v = rng.uniform(-1, 1, (8, n)), rng.standard_normal((8, n)) * 10 ** rng.uniform(-1, 1.5, (8, 1))
        paths = la.ensemble(system, method, q, v0=v, h=1.0, steps=20)
        which, step = np.nonzero(np.isfinite(paths.q[:, 1:]).all(2))
        off = off_the_branch(system, method, paths.q[which, step], paths.p[which, step], paths.q[which, step + 1])
        steps, astray = steps + len(off), astray + int(off.sum())
    print(f"{steps} steps, {astray} stray")
    assert steps > 4000 and astray == 0


# ----------------------------------------------------------------------------------------- is there one root, indeed?


@dataclass(frozen=True)
class Stiff:
    """V = ½ q·Kq + Σ_i a_i cos(k_i·q + f_i), one for each of B steps."""

    K: np.ndarray
    k: np.ndarray
    f: np.ndarray
    a: np.ndarray

    def of(self, which):
        return Stiff(self.K[which], self.k[which], self.f[which], self.a[which])

    def gradient(self, x, which):
        k, u = self.k[which], np.einsum("bwn,bin->biw", self.k[which], x) + self.f[which, None]
        waves = np.einsum("biw,bwn->bin", self.a[which, None] * np.sin(u), k)
        return np.einsum("bnm,bim->bin", self.K[which], x) - waves

    def hessian(self, x, which):
        k, u = self.k[which], np.einsum("bwn,bin->biw", self.k[which], x) + self.f[which, None]
        waves = np.einsum("biw,bwn,bwm->binm", self.a[which, None] * np.cos(u), k, k)
        return self.K[which][:, None] - waves


def wavy(q, v, K, k, f, a):
    return 0.5 * (v @ v) - 0.5 * q @ K @ q - np.sum(a * np.cos(k @ q + f))


def random_systems(rng, count, n=2, waves=3):
    """h = 1: stiffness of up to 10³, with some directions that are unstable, and waves of up to twice the mass."""
    turn = np.linalg.qr(rng.standard_normal((count, n, n)))[0]
    stiff = 10 ** rng.uniform(-2, 3, (count, n)) * rng.choice([1, 1, 1, -1e-3], (count, n))
    K = np.einsum("bij,bj,bkj->bik", turn, stiff, turn)
    k = rng.standard_normal((count, waves, n)) * 10 ** rng.uniform(-0.3, 0.7, (count, waves, 1))
    a = rng.uniform(-1, 1, (count, waves))
    a *= (10 ** rng.uniform(-1.5, 0.3, count) / (np.abs(a) * (k**2).sum(2)).sum(1))[:, None]
    return Stiff(0.5 * (K + K.transpose(0, 2, 1)), k, rng.uniform(0, 6.3, (count, waves)), a)


def counted(seed, method, count, parts):
    """Coarse steps over waves and stiff springs: how many were solved, how many of them are known to have one root, and
    how many stray from the branch that plain NumPy follows from h = 0.
    """
    rng, steps = np.random.default_rng(seed), 4
    own = random_systems(rng, count)
    params = {"K": own.K, "k": own.k, "f": own.f, "a": own.a}
    q, v = rng.standard_normal((count, 2)), rng.standard_normal((count, 2)) * 10 ** rng.uniform(-1, 1, (count, 1))
    system = la.Lagrangian(wavy, n=2, params={name: x[0] for name, x in params.items()})
    paths = la.ensemble(system, method, q, v0=v, h=1.0, steps=steps, params=params)
    which, step = np.nonzero(np.isfinite(paths.q[:, 1:]).all(2))
    begin, p, moved = paths.q[which, step], paths.p[which, step], paths.q[which, step + 1] - paths.q[which, step]
    program, known = one_root(step_of(system, la.method(method))), 0
    for b in range(len(which)):
        given = np.concatenate([x[which[b]].ravel() for x in params.values()])
        known += program([0.0], [1.0], begin[b], np.abs(moved[b]), given)["unique"][0] != 0
    z, followed = follow_many(la.method(method).table, own.of(which), begin, p, 1.0, parts)
    strayed = ~(followed & np.isclose(moved, z[:, -1], rtol=1e-6, atol=1e-6).all(1))
    return len(which), known, int(strayed.sum())


def test_steps_with_one_root_are_connected_with_no_step():
    solved, known, strayed = counted(5, "midpoint", 30, 400)
    assert solved > 60 and known > 30 and strayed == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N3Q6Gau"])
def test_few_of_many_stray(method):
    solved, known, strayed = counted(6, method, 150, 1500)
    print(f"{solved} steps, {known} with one root, {strayed} stray")
    assert known > 0.4 * solved and strayed <= solved / 400


@pytest.mark.parametrize("method", ["midpoint", "P2N2Q4Gau", "P4N4Q8Gau", "P3N4Q6Lob"])
def test_where_one_root_is_told_every_iteration_finds_it(method):
    """Newton's iteration from 40 random places of the box: all that end there end at one root. Waves have slopes of up
    to ten times the mass, and springs of up to 10³ times the mass.
    """
    rng, count, way = np.random.default_rng(7), 300, 1.0
    own, q, p = random_systems(rng, count), rng.standard_normal((count, 2)), 0.2 * rng.standard_normal((count, 2))
    own = Stiff(own.K, own.k, own.f, 5 * own.a)
    params = {"K": np.eye(2), "k": np.eye(3, 2), "f": np.zeros(3), "a": np.ones(3)}
    member = la.method(method)
    program, told = one_root(step_of(la.Lagrangian(wavy, n=2, params=params), member)), []
    for b in range(count):
        params = np.concatenate([own.K[b].ravel(), own.k[b].ravel(), own.f[b], own.a[b]])
        told.append(program([0.0], [1.0], q[b], [way, way], params)["unique"][0] != 0)
    (which,) = np.nonzero(told)
    assert 0.1 * count < len(which) < 0.9 * count

    table, s, times = member.table, member.s, 40
    b, l0, l1 = table.b, table.l[:, :-1], table.l[:, 1:]
    A = table.dl[:, :-1].T @ (b[:, None] * table.dl[:, 1:])
    every, some = np.repeat(np.arange(len(which)), times), own.of(which)
    z = rng.uniform(-2 * way, 2 * way, (len(every), s, 2))
    for _ in range(60):
        x = np.einsum("im,bmn->bin", l1, z)
        at = q[which][every][:, None] + x
        R = np.einsum("vm,bmn->bvn", A, z) - np.einsum("i,iv,bin->bvn", b, l0, some.gradient(at, every))
        R[:, 0] += p[which][every]
        J = np.einsum("i,iv,im,binj->bvnmj", b, l0, l1, some.hessian(at, every)).reshape(-1, 2 * s, 2 * s)
        z = z - np.linalg.solve(np.kron(A, np.eye(2)) - J, R.reshape(-1, 2 * s, 1)).reshape(z.shape)
    inside = (np.abs(x) <= 2 * way * nearness(member)).all((1, 2)) & (np.abs(R) < 1e-9).all((1, 2))
    inside, x = inside.reshape(-1, times), x.reshape(len(which), times, -1)
    met = inside.any(1)
    lowest, highest = (f(np.where(inside[..., None], x, far), axis=1) for f, far in ((np.min, 9.0), (np.max, -9.0)))
    assert met.sum() > 0.5 * len(which)
    np.testing.assert_allclose(lowest[met], highest[met], atol=1e-8)


@pytest.mark.parametrize("s", range(1, 13))
def test_how_firm_a_rule_is(s):
    """1/‖T(y)‖ ≥ 2 + c y, between the numbers y that were tried, too; Lobatto's rules have c = 0."""
    for name, at_least in ((f"P{s}N{s}Q{2 * s}Gau", 0.15), (f"P{s}N{s + 1}Q{2 * s}Lob", 0.0)):
        method = la.method(name)
        small, c = kronecker_of(method), firmness(method)
        gather, root = stencils(samples(method), 1).gather["q"], np.sqrt(small.w)
        y = np.concatenate([np.linspace(-1, 3, 300), np.geomspace(3, 1e8, 3000)])
        T = gather @ np.linalg.solve(small.A - y[:, None, None] * small.B, small.load)
        bound = 1 / np.linalg.norm(root[:, None] * T / root, 2, axis=(1, 2))
        assert at_least <= c <= 1
        assert np.all(bound >= (2 + c * y) * (1 - 1e-3))


def test_who_is_asked():
    """Not systems whose forces have no constant slope, nor those whose mass changes, nor other forces."""

    def kepler(q, v):
        return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)

    def turning(q, v):
        return 0.5 * (1 + q[0] ** 2) * (v @ v) - 0.5 * (q @ q)

    def springs(q, v):
        return 0.5 * (v @ v) - 5.0 * (q[0] - q[1]) ** 2 - np.cos(q[0])

    def asked(method, *given, **more):
        return one_root(step_of(la.Lagrangian(*given, n=2, **more), la.method(method))) is not None

    assert asked("midpoint", springs) and asked("P8N8Q16Gau", springs) and asked("P3N4Q6Lob", springs)
    assert not asked("midpoint", kepler) and not asked("midpoint", turning)
    assert not asked("midpoint", springs, force=lambda q, v: np.stack([q[1], 0.0 * q[0]]))
    assert not asked("midpoint", springs, force=lambda q, v: -0.1 * v)
