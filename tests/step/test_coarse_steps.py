"""Steps over waves of a force have many roots: with h ω up to one the one that is taken is connected with h → 0.

The reference is plain NumPy: the branch from h = 0 in many small parts of h. Where a step differs from it the branch is
followed again in five times as many parts, since a reference that is too coarse leaps, too.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import leastaction as la
from continuation import follow_many
from seeds import generator
from thrift import rest_slow

pytestmark = pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # such steps are too long for that
WAVES = 3
METHODS = ["midpoint", "simpson", "P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau"]
CASES = [(n, method) for n in (1, 2, 3) for method in METHODS]
SOME = [(2, "midpoint"), (2, "simpson"), (1, "P3N3Q6Gau")]


@dataclass(frozen=True)
class Potentials:
    """V = Σ_i a_i cos(k_i·q + f_i) + c (q·q)²/40, one for each of B steps."""

    k: np.ndarray
    f: np.ndarray
    a: np.ndarray
    c: np.ndarray

    def gradient(self, x, which):
        k, a = self.k[which], self.a[which, None]
        u = np.einsum("bwn,bin->biw", k, x) + self.f[which, None]
        return 0.1 * self.c[which, None, None] * (x**2).sum(2, keepdims=True) * x - np.einsum(
            "biw,bwn->bin", a * np.sin(u), k
        )

    def hessian(self, x, which):
        k, a = self.k[which], self.a[which, None]
        u = np.einsum("bwn,bin->biw", k, x) + self.f[which, None]
        square = (x**2).sum(2)[..., None, None] * np.eye(x.shape[2]) + 2 * x[..., None] * x[..., None, :]
        return 0.1 * self.c[which, None, None, None] * square - np.einsum("biw,bwn,bwm->binm", a * np.cos(u), k, k)


def random_steps(rng, n, count, coarse):
    """Potentials and starts of steps of length one; `coarse` is the range of the largest h ω of one wave."""
    k = rng.standard_normal((count, WAVES, n)) * 10 ** rng.uniform(-0.3, 0.7, (count, WAVES, 1))
    a = rng.uniform(0.2, 1.0, (count, WAVES)) * rng.choice([-1, 1], (count, WAVES))
    fast = rng.uniform(*coarse, count) ** 2
    a *= (fast / (np.abs(a) * (k**2).sum(2)).max(1))[:, None]
    c = fast * 10 ** rng.uniform(-3, -1, count)
    f = rng.uniform(0, 2 * np.pi, (count, WAVES))
    q, v = rng.standard_normal((count, n)), rng.standard_normal((count, n)) * 10 ** rng.uniform(-1, 1, (count, 1))
    return Potentials(k, f, a, c), q, v


def waves(q, v, k, f, a, c):
    return 0.5 * (v @ v) - np.sum(a * np.cos(k @ q + f)) - 0.025 * c * (q @ q) ** 2


def heavier(q, v, k, f, a, c):
    """The same with a mass that grows with the velocity."""
    return waves(q, v, k, f, a, c) + 0.02 * (v @ v) ** 2


@cache
def system(n, how="kernels"):
    params = {"k": np.zeros((WAVES, n)), "f": np.zeros(WAVES), "a": np.zeros(WAVES), "c": 1.0}
    if how == "sum":
        return la.Lagrangian.sum([la.Term(waves, over=[list(range(n))], params=as_row(params))], n=n)
    return la.Lagrangian(heavier if how == "mass of v" else waves, n=n, params=params)


def as_row(params):
    return {name: np.asarray(values)[None] for name, values in params.items()}


def astray(method, potentials, q, p, moved, parts=500):
    """Which steps, of those that were solved, are not connected with h → 0."""
    table = la.method(method).table
    strayed = np.isfinite(moved).all(1)
    for more in (1, 5):
        (which,) = np.nonzero(strayed)
        own = Potentials(*(getattr(potentials, name)[which] for name in ("k", "f", "a", "c")))
        z, followed = follow_many(table, own, q[which], p[which], 1.0, more * parts)
        strayed[which] = ~(followed & np.isclose(moved[which], z[:, -1], rtol=1e-6, atol=1e-6).all(1))
    return strayed


def astray_from_single_steps(method, potentials, q, p, moved):
    """The same, for masses that depend on v: which steps are not those that begin from there without a prediction."""
    params = {name: getattr(potentials, name) for name in ("k", "f", "a", "c")}
    single = la.ensemble(system(q.shape[1], "mass of v"), method, q, p, h=1.0, steps=1, params=params)
    return ~np.isclose(single.q[:, 1] - q, moved, rtol=1e-6, atol=1e-6).all(1)


def counted(rng, n, method, count, coarse, steps, how="kernels"):
    """Of runs from random starts: first and later steps that were solved, and how many of each have strayed."""
    potentials, q, v = random_steps(rng, n, count, coarse)
    q, p = motions(how, n, method, potentials, q, v, steps)
    found = []
    for first in (True, False):
        which, step = np.nonzero(np.isfinite(q[:, 1:]).all(2) & ((np.arange(steps) == 0) == first))
        own = Potentials(*(getattr(potentials, name)[which] for name in ("k", "f", "a", "c")))
        begin, moved = q[which, step], q[which, step + 1] - q[which, step]
        judge = astray_from_single_steps if how == "mass of v" else astray
        found += [len(which), int(judge(method, own, begin, p[which, step], moved).sum())]
    return np.array(found)


def motions(how, n, method, potentials, q, v, steps):
    """q and p of all runs, NaN behind a step that could not be solved.

    kernels   as large ensembles are run
    sum, digits, mass of v   as a sum; at 20 digits; with another mass
    """
    params = {name: getattr(potentials, name) for name in ("k", "f", "a", "c")}
    one = system(n, how)
    if how not in ("sum", "digits"):
        paths = la.ensemble(one, method, q, v0=v, h=1.0, steps=steps, params=params)
        return paths.q, paths.p
    found, more = np.full((2, len(q), steps + 1, n), np.nan), {"digits": 20} if how == "digits" else {}
    for b in range(len(q)):
        own = {name: values[b] for name, values in params.items()}
        own = as_row(own) if how == "sum" else own
        try:
            path = la.integrate(one, method, q[b], v0=v[b], h=1.0, steps=steps, params=own, **more)
        except la.StepFailed as failure:
            path = failure.path
        found[:, b, : len(path.t)] = path.q.astype(float), path.p.astype(float)
    return found


# ------------------------------------------------------------------------------------------------- random steps


@pytest.mark.parametrize("n, method", rest_slow(CASES, SOME))
def test_steps_over_many_waves_are_connected_with_no_step(n, method):
    """With h ω up to one none strays, no first step and no later one. Beyond, `benchmarks/judge_roots.py` counts."""
    assert counted(generator(), n, method, 60, (0.2, 1.0), 4).tolist() == [60, 0, 180, 0]


@pytest.mark.parametrize("how", ["sum", "mass of v", "digits"])
def test_no_kind_of_run_strays(how):
    count = 12
    assert counted(generator(), 2, "midpoint", count, (0.2, 1.0), 4, how).tolist() == [count, 0, 3 * count, 0]


# ------------------------------------------------------------------------------------------------- single steps


def wavy(q, v, a, k, f):
    smooth = 0.025 * q[0] ** 4 + 0.06 * q[0] * q[1] ** 2 + 0.5 * q[1] ** 2
    return 0.5 * (v @ v) - smooth - np.sum(a * np.cos(k * q[0] + f)) - np.sum(0.5 * a * np.sin(k * q[1] - f))


TURNED = {
    "a": np.array([0.8058012042120885, -1.2104623841950084, 0.2410420639445514]),
    "k": np.array([6.730018556910025, 2.192824757142356, 3.589601053430437]),
    "f": np.array([4.6651346400444655, 3.8195853536752273, 4.403369666715883]),
}


@pytest.mark.parametrize("how", ["plain", "lanes", "digits"])
def test_a_root_with_a_turned_determinant_is_not_taken(how):
    """h ω of about 4: continuation leapt to a root where det(1 + ¼ h² V″) < 0, by [0.5172, 0.0553]."""
    q, v = [-0.5655710361854747, 1.8269038175493117], [-0.09381164410626268, 0.19360206208910205]
    one = la.Lagrangian(wavy, n=2, params=TURNED)
    given = {"v0": v, "h": 0.6860696961750548, "steps": 1}
    if how == "lanes":
        found = la.ensemble(one, "midpoint", np.tile(q, (3, 1)), **given).q[1]
    else:
        found = la.integrate(one, "midpoint", q, **given, **({"digits": 20} if how == "digits" else {})).q
    moved = (found[1] - found[0]).astype(float)
    assert moved == pytest.approx([0.5137, 0.5901], abs=1e-4)


def head_over(q, v):
    return 0.5 * (v @ v) - np.cos(q[0]) - 0.5 * q[1] ** 2


@pytest.mark.parametrize("how", [{}, {"digits": 20}])
def test_a_symmetric_motion_goes_on_where_the_determinant_turns(how):
    """A pendulum that stands on its head beside an oscillator: det = (1 − ¼ h²)(1 + ¼ h²) turns at h = 2 without a
    fold. The oscillator's steps are those of its rotation by 2 arctan(h/2).
    """
    h = 2.5
    path = la.integrate(la.Lagrangian(head_over, n=2), "midpoint", [0.0, 1.0], v0=[0.0, 0.5], h=h, steps=4, **how)
    turn = 2 * np.arctan(h / 2) * np.arange(5)
    np.testing.assert_array_equal(path.q[:, 0].astype(float), 0.0)
    np.testing.assert_allclose(path.q[:, 1].astype(float), np.cos(turn) + 0.5 * np.sin(turn), atol=1e-12)


def falling(q, v):
    return 0.5 * (v @ v) + 0.5 * (q @ q)


@pytest.mark.parametrize("how", [{}, {"digits": 20}])
def test_a_step_beyond_infinity_fails(how):
    """q̈ = q by midpoint: the step h v/(1 − ¼ h²) goes to infinity at h = 2, and comes back from the other side."""
    one = la.Lagrangian(falling, n=1)
    assert la.integrate(one, "midpoint", [1.0], v0=[0.3], h=1.5, steps=1, **how).q[1, 0] > 1
    with pytest.raises(la.StepFailed, match="no solution of this size of step"):
        la.integrate(one, "midpoint", [1.0], v0=[0.3], h=2.5, steps=1, **how)


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N3Q6Gau"])
@pytest.mark.parametrize("how", [{}, {"digits": 20}])
def test_the_sign_is_that_of_an_indefinite_mass(method, how):
    """L_vv with a negative determinant: short steps are not continued for it."""

    def L(q, v, m):
        return v[0] * v[1] * (1 + 0.1 * m * np.sin(q[0])) - q[0] * q[1] - 0.1 * np.cos(q[0]) * q[1]

    path = la.integrate(
        la.Lagrangian(L, n=2, params={"m": 1.0}), method, [0.5, 0.3], v0=[0.2, 0.1], h=0.05, steps=20, **how
    )
    assert path.stats["continued"] == 0
