"""Sums over rows of tables: against the same Lagrangian written out, exact solutions, and what must not matter."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.engine import sum_cells
from leastaction.engine.sum_strips import cut
from leastaction.events.motion import DetachedMotion
from leastaction.kernel import native_lanes
from leastaction.methods.registry import family
from systems import catalogued
from thrift import rest_slow

N = 7


def kinetic(q, v, m):
    return 0.5 * m * v[0] ** 2


def spring(q, v, k, b):
    r = q[1] - q[0]
    return -k * (0.5 * r**2 + b / 4 * r**4)


def pairs(n):
    return np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)


def chain(n, k=1.0, b=1.0, m=1.0):
    """A chain between walls."""
    return la.Lagrangian.sum(
        [
            la.Term(kinetic, over=np.arange(n), params={"m": m}),
            la.Term(spring, over=pairs(n), params={"k": k, "b": b}),
            la.Term(lambda q, v, k: -0.5 * k * q[0] ** 2, over=[0, n - 1], params={"k": k}),
        ],
        n=n,
    )


def random_sum(seed, mass="diagonal"):
    """A random graph with terms of one to three coordinates, a force, time, parameters of every kind."""
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.permutation(N)[:3] for _ in range(9)])
    terms = [
        la.Term(
            lambda t, q, v, b, c: -b * np.sin(q[0] * q[1] - q[2] + 0.1 * t) - c[1] * q[1] ** 4 / 4,
            over=triples,
            params={"b": rng.uniform(0, 1, 9), "c": [[0.1, 0.3]]},
            force=lambda q, v, b: np.array([-0.1 * b * v[0], 0.05 * b * v[0], 0.0]),
        ),
        la.Term(lambda q, v, k, a: spring(q, v, k, a), over=pairs(N), params={"k": 1.0, "a": 0.3}),
    ]
    own = {"m": rng.uniform(1, 2, N)}
    if mass == "diagonal":
        terms.append(la.Term(kinetic, over=rng.permutation(N), params=own))
    elif mass == "sparse":
        terms.append(la.Term(kinetic, over=np.arange(N), params=own))
        terms.append(la.Term(lambda q, v: 0.2 * v[0] * v[1], over=pairs(N)))
    elif mass == "moving":
        terms.append(
            la.Term(lambda q, v, m: kinetic(q, v, m) * (1 + 0.2 * np.sin(q[0])), over=np.arange(N), params=own)
        )
        terms.append(la.Term(lambda q, v: 0.2 * v[0] * v[1] * np.cos(q[0] - q[1]), over=pairs(N)))
    elif mass == "magnetic":
        terms.append(la.Term(kinetic, over=np.arange(N), params=own))
        terms.append(la.Term(lambda q, v: 0.3 * (q[0] * v[1] - q[1] * v[0]), over=pairs(N)))
    return la.Lagrangian.sum(terms, n=N)


def start(n=N, seed=5):
    q, v = np.random.default_rng(seed).standard_normal((2, n))
    return 0.4 * q, 0.4 * v


MASSES = ("diagonal", "sparse", "moving", "magnetic")


@pytest.mark.parametrize("mass", MASSES)
def test_mechanics_is_that_of_the_lagrangian_written_out(mass):
    for seed in range(3):
        system, (q, v) = random_sum(seed, mass), start(seed=seed)
        plain, t = system.expanded(), 0.7
        p = plain.momentum(q, v, t)
        assert system.momentum(q, v, t) == pytest.approx(p, abs=1e-14)
        assert system.velocity(q, p, t) == pytest.approx(v, abs=1e-13)
        assert system.energy(q, p, t) == pytest.approx(plain.energy(q, p, t), rel=1e-13, abs=1e-13)
        assert system.external_force(q, v, t) == pytest.approx(plain.external_force(q, v, t), abs=1e-14)
        assert system.acceleration(q, v, t) == pytest.approx(plain.acceleration(q, v, t), abs=1e-13)
        assert system.depends_on_time and system.forced


def test_the_pattern_has_every_entry_of_the_dense_matrices():
    system, (q, v) = random_sum(3, "sparse"), start()
    blocks, node = system.assembly.matrices, system.expanded().node
    x = node([0.7], q, v, system.values())
    for block in ("m_v", "f_q"):
        dense = np.array(x[block]).reshape(N, N)
        found = blocks.matrix(block, 0.7, q, v, system.values()).toarray()
        assert found == pytest.approx(dense, abs=1e-14)


FAMILY = [method.name for method in family(4)]
EVERY_RUN = ["P1N2Q2Lob", "P2N2Q4Gau", "P3N4Q6Lob"]  # explicit, collocation and neither


@pytest.mark.parametrize(
    ("mass", "method"),
    [
        *rest_slow([("diagonal", method) for method in FAMILY], [("diagonal", method) for method in EVERY_RUN]),
        *((mass, "simpson") for mass in MASSES[1:]),
        *rest_slow([("moving", "P4N4Q8Gau")], []),
    ],
)
def test_steps_are_those_of_the_lagrangian_written_out(mass, method):
    system, (q, v) = random_sum(1, mass), start()
    path = la.integrate(system, method, q0=q, v0=v, h=0.05, steps=20)
    plain = la.integrate(system.expanded(), method, q0=q, v0=v, h=0.05, steps=20)
    assert path.q == pytest.approx(plain.q, abs=1e-14)
    assert path.p == pytest.approx(plain.p, abs=1e-14)
    t = np.linspace(0.0, 1.0, 23)
    assert path(t) == pytest.approx(plain(t), abs=1e-14)
    assert path.energy() == pytest.approx(plain.energy(), abs=1e-13)
    assert path.work() == pytest.approx(plain.work(), abs=1e-12)


@pytest.mark.parametrize("method", rest_slow(["midpoint", "P2N2Q4Gau", "P3N3Q6Gau"], ["P2N2Q4Gau"]))
def test_stiff_steps_are_those_of_the_lagrangian_written_out(method):
    """ω h is about ten: mass chords do not contract, the shifted chord does."""
    system = chain(9, k=1e4, b=0.01, m=np.linspace(1, 2, 9))
    q, v = 1e-3 * np.sin(np.arange(9.0)), np.zeros(9)
    path = la.integrate(system, method, q0=q, v0=v, h=0.05, steps=10)
    plain = la.integrate(system.expanded(), method, q0=q, v0=v, h=0.05, steps=10)
    assert path.q == pytest.approx(plain.q, abs=1e-13 * np.abs(plain.q).max())
    assert path.p == pytest.approx(plain.p, abs=1e-12 * np.abs(plain.p).max())


@pytest.mark.parametrize(
    ("method", "h"), rest_slow([("P2N2Q4Gau", 0.03), ("P3N3Q6Gau", 0.1), ("P4N4Q8Gau", 0.03)], [("P2N2Q4Gau", 0.03)])
)
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_steps_in_which_stiffness_changes_much_are_those_of_the_lagrangian_written_out(method, h):
    """Springs become a hundred times stiffer within a step: derivatives at its middle hold for no other point."""
    rng = np.random.default_rng(1)
    system = chain(12, k=100.0, b=100.0)
    q, v = 0.3 * rng.standard_normal(12), rng.standard_normal(12)
    path = la.integrate(system, method, q0=q, v0=v, h=h, steps=5)
    plain = la.integrate(system.expanded(), method, q0=q, v0=v, h=h, steps=5)
    assert path.q == pytest.approx(plain.q, abs=1e-11 * np.abs(plain.q).max())
    assert path.p == pytest.approx(plain.p, abs=1e-11 * np.abs(plain.p).max())


@pytest.mark.parametrize(("seed", "h"), [(2, 0.1), (3, 0.1)])
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_the_stiffest_steps_go_on_where_those_of_the_lagrangian_written_out_do(seed, h):
    """A thousand times stiffer within a step: what GMRES leaves of an equation must not hide how increments shrink."""
    rng = np.random.default_rng(seed)
    system = chain(12, k=1e3, b=1e3)
    q, v = 0.3 * rng.standard_normal(12), rng.standard_normal(12)
    path = la.integrate(system, "P2N2Q4Gau", q0=q, v0=v, h=h, steps=2)
    plain = la.integrate(system.expanded(), "P2N2Q4Gau", q0=q, v0=v, h=h, steps=2)
    assert path.q == pytest.approx(plain.q, abs=1e-10 * np.abs(plain.q).max())


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_forces_that_bend_are_no_noise():
    """In long steps of a stiff chain a probe of f(q ± δ) bends: this must not be taken for rounding, since then a state
    of 10³⁰ would be accepted as a step.
    """
    rng = np.random.default_rng(1)
    rng.standard_normal(24)
    system = chain(12, k=1e3, b=1e3)
    q, v = 0.3 * rng.standard_normal(12), rng.standard_normal(12)
    plain = la.integrate(system.expanded(), "P2N2Q4Gau", q0=q, v0=v, h=0.3, steps=1)
    try:
        path = la.integrate(system, "P2N2Q4Gau", q0=q, v0=v, h=0.3, steps=1)
    except la.StepFailed:
        return
    assert path.q == pytest.approx(plain.q, abs=1e-9 * np.abs(plain.q).max())


def test_row_order_changes_nothing():
    rng = np.random.default_rng(0)
    n, edges = 60, np.array([(a, b) for a in range(60) for b in range(a + 1, 60) if (a * b) % 7 == 3])
    k = rng.uniform(0.5, 1.5, len(edges))
    paths = []
    for order in (np.arange(len(edges)), rng.permutation(len(edges))):
        terms = [
            la.Term(kinetic, over=np.arange(n), params={"m": 1.0}),
            la.Term(spring, over=edges[order], params={"k": k[order], "b": 1.0}),
        ]
        system = la.Lagrangian.sum(terms, n=n)
        q, v = start(n)
        paths.append(la.integrate(system, "simpson", q0=q, v0=v, h=0.02, steps=20))
    assert np.array_equal(paths[0].q, paths[1].q)
    assert np.array_equal(paths[0].p, paths[1].p)


def grid(side):
    """The edges of a square grid, and of its diagonals."""
    at = np.arange(side**2).reshape(side, side)
    edges = ((at[1:], at[:-1]), (at[:, 1:], at[:, :-1]), (at[1:, 1:], at[:-1, :-1]))
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in edges])


def tables_to_share():
    rng = np.random.default_rng(3)
    n = 40
    return {
        "chain": (pairs(1000), 1000),
        "grid": (grid(40), 1600),
        "pairs": (np.array([(a, b) for a in range(n) for b in range(a + 1, n)]), n),
        "random": (np.array([rng.permutation(300)[:3] for _ in range(400)]), 300),
        "apart": (np.stack([np.arange(400), np.arange(400) + 500], axis=1), 1000),
    }


@pytest.mark.parametrize("name", list(tables_to_share()))
def test_rows_of_a_cell_touch_no_other_range(name, monkeypatch):
    table, n = tables_to_share()[name]
    monkeypatch.setattr(sum_cells, "RANGE", 64 if n > 64 else 8)
    cut = sum_cells.cells_of(n, [table], 4)
    (cell,), last = cut.of, cut.phases[1]
    assert last > 1 and cell.max() == last
    covered = []
    for own, begin, end, low, high in cut.owned.tolist():
        inside = table[cell == own]
        assert ((inside >= begin) & (inside < end)).all()
        others = table[cell == last]
        assert begin <= low and high <= end and not ((others >= low) & (others < high)).any()
        covered += range(begin, end)
    assert covered == list(range(n))


def hanging(N, method_mass="diagonal"):
    """N bodies in a plane, in Cartesian coordinates, held by rods: a chain from the origin, with a force and time."""
    xy = np.arange(2 * N).reshape(N, 2)
    terms = [
        la.Term(
            lambda t, q, v, m, g: 0.5 * m * (v[0] ** 2 + v[1] ** 2) - m * g * q[1] * (1 + 0.1 * np.sin(t)),
            over=xy,
            params={"m": np.linspace(1, 2, N), "g": 9.81},
            force=lambda q, v: -0.05 * v,
        ),
        la.Term(over=xy[:1], constraints=lambda q, l: (q @ q - l**2) / 2, params={"l": 1.0}),
        la.Term(
            over=np.concatenate([xy[:-1], xy[1:]], axis=1),
            constraints=lambda q, l: ((q[2:] - q[:2]) @ (q[2:] - q[:2]) - l**2) / 2,
            params={"l": 1.0},
        ),
    ]
    if method_mass == "sparse":
        pairs_of = np.concatenate([xy[:-1], xy[1:]], axis=1)
        terms.append(la.Term(lambda q, v: 0.1 * (v[0] * v[2] + v[1] * v[3]), over=pairs_of))
    if method_mass == "moving":
        terms.append(la.Term(lambda q, v: 0.1 * (v[0] ** 2 + v[1] ** 2) * np.sin(q[0]) ** 2, over=xy))
    system = la.Lagrangian.sum(terms, n=2 * N)
    angles = 0.5 + 0.3 * np.sin(np.arange(N))
    places = np.stack([np.cumsum(np.sin(angles)), -np.cumsum(np.cos(angles))], axis=1).ravel()
    return system, *la.project(system, places, np.random.default_rng(0).standard_normal(2 * N))


@pytest.mark.parametrize(
    ("mass", "method"),
    rest_slow(
        [
            *(("diagonal", method) for method in ("midpoint", "stormer-verlet", "simpson", "P3N3Q6Gau", "P4N5Q8Lob")),
            ("sparse", "simpson"),
            ("moving", "P2N2Q4Gau"),
        ],
        [("diagonal", "stormer-verlet"), ("sparse", "simpson"), ("moving", "P2N2Q4Gau")],
    ),
)
def test_constrained_steps_are_those_of_the_lagrangian_written_out(mass, method):
    system, q, v = hanging(4, mass)
    plain = system.expanded()
    assert system.m == plain.m == 4
    path = la.integrate(system, method, q0=q, v0=v, h=0.02, steps=25)
    other = la.integrate(plain, method, q0=q, v0=v, h=0.02, steps=25)
    assert path.q == pytest.approx(other.q, abs=2e-13)
    assert path.p == pytest.approx(other.p, abs=1e-12)
    assert path.multipliers == pytest.approx(other.multipliers, abs=1e-10)
    assert path.reaction() == pytest.approx(other.reaction(), abs=1e-10)
    assert path(0.311) == pytest.approx(other(0.311), abs=2e-13)


@pytest.mark.parametrize(("method", "h"), rest_slow([("simpson", 0.1), ("P3N3Q6Gau", 0.2)], [("simpson", 0.1)]))
@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
def test_long_steps_of_rods_are_those_of_the_lagrangian_written_out(method, h):
    """Rods turn by more than an angle of one within a step: G of its middle is that of no other point."""
    system, q, v = hanging(8)
    path = la.integrate(system, method, q0=q, v0=v, h=h, steps=8)
    plain = la.integrate(system.expanded(), method, q0=q, v0=v, h=h, steps=8)
    assert path.q == pytest.approx(plain.q, abs=1e-11)
    assert path.p == pytest.approx(plain.p, abs=1e-10)


def test_a_random_graph_of_rods_is_the_lagrangian_written_out():
    """Springs between all, rods between some, coordinates in any order, constraints of two numbers that move."""
    rng = np.random.default_rng(4)
    at = rng.permutation(18).reshape(6, 3)
    rods = np.concatenate([at[[0, 1, 2, 3]], at[[1, 2, 3, 4]]], axis=1)[rng.permutation(4)]
    ties = np.concatenate([at[[0, 2, 1]], at[[5, 5, 4]]], axis=1)
    X = rng.standard_normal((18,))
    lengths = np.linalg.norm(X[rods[:, 3:]] - X[rods[:, :3]], axis=1)

    def rod(q, l):
        return (q[3:] - q[:3]) @ (q[3:] - q[:3]) - l**2

    system = la.Lagrangian.sum(
        [
            la.Term(lambda q, v: 0.5 * v @ v, over=at),
            la.Term(lambda q, v: -np.sqrt(1 + (q[:3] - q[3:]) @ (q[:3] - q[3:])), over=ties),
            la.Term(over=rods, constraints=rod, params={"l": lengths}),
            la.Term(over=at[5:], constraints=lambda t, q: np.array([q[0] - 0.1 * np.sin(t), q[1] + q[2]])),
        ],
        n=18,
    )
    q, v = la.project(system, X, rng.standard_normal(18))
    path = la.integrate(system, "simpson", q0=q, v0=v, h=0.02, steps=40)
    other = la.integrate(system.expanded(), "simpson", q0=q, v0=v, h=0.02, steps=40)
    assert path.q == pytest.approx(other.q, abs=1e-12)
    assert path.p == pytest.approx(other.p, abs=1e-12)


def test_constraints_of_a_long_chain_hold_to_round_off():
    system, q, v = hanging(300)
    path = la.integrate(system, "simpson", q0=q, v0=v, h=0.005, steps=60, every=10)
    at = system.assembly.at(system.values())
    for t, q, v in zip(path.t, path.q, path.velocity(), strict=True):
        here = at.constraints(float(t), q, v)
        assert (abs(here.g) <= 64 * np.finfo(float).eps * here.g_size).all()
        assert (abs(here.c) <= 64 * np.finfo(float).eps * here.c_size).all()


def test_constrained_sums_are_stored_and_resumed_to_the_last_bit(tmp_path):
    system, q, v = hanging(20)
    whole = la.integrate(system, "simpson", q0=q, v0=v, h=0.01, steps=40)
    la.integrate(system, "simpson", q0=q, v0=v, h=0.01, steps=15, store=tmp_path / "run")
    stored = la.resume(tmp_path / "run", steps=25)
    assert np.array_equal(stored.q, whole.q) and np.array_equal(stored.p, whole.p)
    assert la.open(tmp_path / "run").system.m == 20


def test_starts_off_the_constraints_are_refused():
    system, q, v = hanging(5)
    with pytest.raises(la.ConstraintError, match=r"q0 is off the constraints.*la\.project"):
        la.integrate(system, "simpson", q0=q + 0.01, v0=v, h=0.01, steps=1)
    with pytest.raises(la.ConstraintError, match=r"velocity is off the constraints.*la\.project"):
        la.integrate(system, "simpson", q0=q, v0=v + 1.0, h=0.01, steps=1)
    with pytest.raises(la.ConstraintError, match="no state on the constraints"):
        la.project(system, 0 * q, v)


def test_every_row_of_a_table_is_in_one_part():
    rng = np.random.default_rng(0)
    n = 40
    i = np.arange(n)
    tables = {
        "chain": pairs(200),
        "triples": np.stack([i[:-2], i[1:-1], i[2:]], axis=1),
        "bodies": np.array([(3 * a + c, 3 * b + c) for a in range(n) for b in range(a + 1, n) for c in range(3)]),
        "random": np.array([rng.permutation(n)[:3] for _ in range(101)]),
        "one": np.array([[3, 1]]),
        "star": np.stack([np.zeros(30, int), np.arange(1, 31)], axis=1),
    }
    for name, table in tables.items():
        parts = cut(table)
        rows = np.concatenate([part.rows for part in parts])
        assert sorted(rows[rows >= 0].tolist()) == list(range(len(table))), name
        for part in parts:
            written = sum(count * native_lanes() - lacking for _, _, count, lacking, _ in part.pieces())
            assert part.pattern is not None or written == (part.rows >= 0).sum()
    assert cut(tables["chain"])[0].pattern is not None


def test_nothing_is_added_for_rows_that_a_vector_lacks():
    """Threads would disturb each other there, and what is read there may give no number."""
    n = 3
    far = la.Lagrangian.sum(
        [
            la.Term(kinetic, over=np.arange(n), params={"m": 1.0}),
            la.Term(lambda q, v, c: -1 / (q[0] - q[1] - c), over=[[0, 1], [2, 0]], params={"c": np.array([0.5, 0.0])}),
        ],
        n=n,
    )
    f, _ = far.assembly.gradient(0.0, np.array([1.0, 0.0, 2.0]), np.zeros(n), far.values())
    assert f.tolist() == [4.0 - 1.0, -4.0, 1.0]


def test_sums_over_regular_tables_are_those_over_rows_one_by_one():
    """Chains, windows of three, stars and pairs of bodies: all ways in which strips gather and scatter."""
    n = 45
    i = np.arange(n)
    rng = np.random.default_rng(2)
    q, v = rng.standard_normal((2, n))
    tables = [
        pairs(n),
        np.stack([i[:-2], i[2:], i[1:-1]], axis=1)[:, :2],
        np.stack([i[:-3], i[3:]], axis=1),
        np.stack([np.zeros(n - 1, int), i[1:]], axis=1),
        np.stack([i[: n // 3] * 3, i[: n // 3] * 3 + 2], axis=1),
        np.stack([i[:20], i[:20] + 25], axis=1),
    ]
    for table in tables:
        k = rng.uniform(0.5, 1.5, len(table))
        terms = [
            la.Term(kinetic, over=i, params={"m": 1.0}),
            la.Term(lambda q, v, k: k * np.sin(q[0] - 2 * q[1]), over=table, params={"k": k}),
        ]
        a = la.Lagrangian.sum(terms, n=n).acceleration(q, v)
        push = k * np.cos(q[table[:, 0]] - 2 * q[table[:, 1]])
        expected = np.zeros(n)
        np.add.at(expected, table[:, 0], push)
        np.add.at(expected, table[:, 1], -2 * push)
        assert a == pytest.approx(expected, abs=1e-13)


# Exact solutions.


def test_modes_of_a_linear_chain():
    n, mode = 100, 7
    system = chain(n, b=0.0)
    omega = 2 * np.sin(np.pi * mode / (2 * (n + 1)))
    shape = np.sin(np.pi * mode * np.arange(1, n + 1) / (n + 1))
    path = la.integrate(system, "P4N4Q8Gau", q0=shape, v0=np.zeros(n), h=0.2, steps=200, every=200)
    assert path.q[-1] == pytest.approx(np.cos(omega * 40.0) * shape, abs=1e-12)


def test_toda_soliton():
    """q_j = log(1 + e^{2κ(j−1) − 2t sinh κ}) − log(1 + e^{2κj − 2t sinh κ}): a soliton that runs along the chain."""
    n, kappa = 64, 0.8
    j = np.arange(n) - n // 2

    def exact(t):
        def tau(k):
            return np.log1p(np.exp(2 * kappa * k - 2 * t * np.sinh(kappa)))

        q = tau(j - 1) - tau(j)
        eps = 2 * np.sinh(kappa)
        slope = [1 / (1 + np.exp(-(2 * kappa * k - 2 * t * np.sinh(kappa)))) for k in (j - 1, j)]
        return q, -eps * (slope[0] - slope[1])

    toda = la.Term(lambda q, v: -np.exp(q[0] - q[1]) + (q[0] - q[1]), over=pairs(n))
    system = la.Lagrangian.sum([la.Term(kinetic, over=np.arange(n), params={"m": 1.0}), toda], n=n)
    (q, v), (end, _) = exact(0.0), exact(4.0)
    path = la.integrate(system, "P3N3Q6Gau", q0=q, v0=v, h=0.05, steps=80, every=80)
    inner = slice(16, 48)  # the ends of the chain are free
    assert path.q[-1][inner] == pytest.approx(end[inner], abs=1e-8)


def test_sine_gordon_kink():
    """φ_tt − φ_xx + sin φ = 0 on a grid: φ = 4 atan exp((x − ct)/√(1 − c²)), to the grid's second order."""
    errors = []
    for n in (400, 800):
        dx, c = 40.0 / n, 0.5
        x = -20.0 + dx * (np.arange(n) + 0.5)
        gamma = 1 / np.sqrt(1 - c**2)
        terms = [
            la.Term(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]) - 1, over=np.arange(n)),
            la.Term(lambda q, v, w: -0.5 * w * (q[1] - q[0]) ** 2, over=pairs(n), params={"w": dx**-2}),
        ]
        system = la.Lagrangian.sum(terms, n=n)
        q = 4 * np.arctan(np.exp(gamma * x))
        v = -2 * c * gamma / np.cosh(gamma * x)
        path = la.integrate(system, "stormer-verlet", q0=q, v0=v, h=0.2 * dx, t_end=6.0, every=10**6)
        errors.append(np.abs(path.q[-1] - 4 * np.arctan(np.exp(gamma * (x - c * 6.0)))).max())
    assert errors[1] < 3e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.5)


def test_energy_and_momentum_over_many_steps():
    """A periodic FPUT chain: the momentum stays to round-off, the energy in its band."""
    n = 32
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    terms = [
        la.Term(kinetic, over=np.arange(n), params={"m": 1.0}),
        la.Term(spring, over=ring, params={"k": 1.0, "b": 1.0}),
    ]
    system = la.Lagrangian.sum(terms, n=n)
    q, v = np.sin(2 * np.pi * np.arange(n) / n), np.full(n, 0.1)
    for method, h, band in (("stormer-verlet", 0.05, 3e-3), ("P3N3Q6Gau", 0.2, 1e-7)):
        path = la.integrate(system, method, q0=q, v0=v, h=h, steps=100_000, every=100)
        E = path.energy()
        assert np.abs(E / E[0] - 1).max() < band
        halves = E[: len(E) // 2].mean(), E[len(E) // 2 :].mean()
        assert abs(halves[1] / halves[0] - 1) < band / 10
        assert np.abs(path.p.sum(axis=1) - path.p[0].sum()).max() < 1e-12


# Runs.


@pytest.mark.parametrize("method", ["stormer-verlet", "simpson"])
def test_runs_are_stored_and_resumed_to_the_last_bit(tmp_path, method):
    system, (q, v) = chain(10, m=np.linspace(1, 2, 10)), start(10)
    whole = la.integrate(system, method, q0=q, v0=v, h=0.05, steps=100, every=7)
    la.integrate(system, method, q0=q, v0=v, h=0.05, steps=41, every=7, store=tmp_path / "run.zarr")
    rest = la.resume(tmp_path / "run.zarr", steps=59)
    assert np.array_equal(whole.q, np.asarray(rest.q)) and np.array_equal(whole.p, np.asarray(rest.p))
    opened = la.open(tmp_path / "run.zarr").system
    assert opened.params.keys() == system.params.keys() and opened.n == 10
    some = la.integrate(system, method, q0=q, v0=v, h=0.05, steps=100, every=7, output=[3, 7])
    assert np.array_equal(some.q, whole.q[:, [3, 7]])


def test_a_stiff_run_is_resumed_to_the_last_bit(tmp_path):
    system, v = chain(9, k=1e4, b=0.01), np.zeros(9)
    q = 1e-3 * np.sin(np.arange(9.0))
    whole = la.integrate(system, "P2N2Q4Gau", q0=q, v0=v, h=0.05, steps=12)
    la.integrate(system, "P2N2Q4Gau", q0=q, v0=v, h=0.05, steps=5, store=tmp_path / "run.zarr")
    rest = la.resume(tmp_path / "run.zarr", steps=7)
    assert np.array_equal(whole.q, np.asarray(rest.q))


def test_parameters_of_a_run():
    system, (q, v) = chain(10), start(10)
    path = la.integrate(system, "simpson", q0=q, v0=v, h=0.05, steps=20, params={"b": 0.0, "k": 2.0})
    other = la.integrate(chain(10, k=2.0, b=0.0), "simpson", q0=q, v0=v, h=0.05, steps=20)
    assert np.array_equal(path.q, other.q)
    assert path.params["k"] == 2.0


def test_many_trajectories_are_single_ones():
    system, (q, v) = chain(10), start(10)
    paths = la.ensemble(system, "simpson", q0=np.stack([q, 1.1 * q]), v0=v, h=0.05, steps=20)
    alone = la.integrate(system, "simpson", q0=1.1 * q, v0=v, h=0.05, steps=20)
    assert np.array_equal(paths.q[1], alone.q)


def test_small_sums_are_written_out_where_that_is_needed():
    system, (q, v) = chain(4), start(4)
    path = la.integrate(system, "simpson", q0=q, v0=v, h=0.05, steps=5)
    fine = la.integrate(system, "simpson", q0=q, v0=v, h=0.05, steps=5, digits=30)
    assert path.q[-1] == pytest.approx(fine.q[-1].astype(float), abs=1e-15)
    assert la.integrate(system, "simpson", q0=q, v0=v, h=0.05, steps=2, tangent=True).tangent.shape == (3, 8, 8)
    assert la.integrate(system, "rk4", q0=q, v0=v, h=0.05, steps=5).q[-1] == pytest.approx(path.q[-1], abs=1e-6)
    with pytest.raises(ValueError, match="at most 200"):
        la.integrate(chain(300), "simpson", q0=np.zeros(300), v0=np.ones(300), h=0.05, steps=5, digits=30)


def looked_for():
    """Events of one and of several coordinates, of momenta and of time; one ends the run."""
    return {
        "one": la.Event(lambda q, p: q[3]),
        "both": la.Event(lambda q, p: p[10] * q[11] - 0.1),
        "ends": la.Event(lambda t, q, p, b: q[17] - b * p[5] + 0.1 * np.sin(t), direction=1, stop=True, most=3),
    }


def walls():
    return {
        "at rest": la.Impact(lambda q: q[5] + 2.0),
        "moving": la.Impact(lambda t, q: 2.0 - q[11] + 0.1 * np.cos(t), restitution=0.7),
    }


@pytest.mark.parametrize("method", rest_slow(["stormer-verlet", "simpson", "P4N4Q8Gau"], ["simpson"]))
@pytest.mark.parametrize("events", [looked_for(), walls()], ids=["events", "impacts"])
def test_events_of_large_sums_are_those_of_the_lagrangian_written_out(method, events, monkeypatch):
    """A sum of few coordinates, as if it were one of many."""
    system, (q, v) = chain(20, b=0.3), (np.random.default_rng(0).standard_normal(20) for _ in range(2))
    how = {"q0": q, "v0": 2 * v, "h": 0.05, "steps": 300, "events": events}
    plain = la.integrate(system, method, **how)
    monkeypatch.setattr("leastaction.run.plan.MOST_EXPANDED", 10)
    path = la.integrate(system, method, **how)
    assert isinstance(plain.system, la.Lagrangian) and path.system is system
    assert len(path.t) == len(plain.t) and path.q == pytest.approx(plain.q, abs=1e-11)
    for name, found in plain.events.items():
        assert 0 < path.events[name].count == found.count
        assert path.events[name].t == pytest.approx(found.t, abs=1e-11)
        assert path.events[name].p == pytest.approx(found.p, abs=1e-11)
        if found.p_after is not None:
            assert path.events[name].p_after == pytest.approx(found.p_after, abs=1e-11)


def test_events_of_a_long_chain():
    """A mode of 1,000 masses is at rest in the middle where cos ωt is zero; a function of all masses finds it, too."""
    n, k = 1000, 400
    system, mode = chain(n, b=0.0), np.sin(np.pi * k * np.arange(1, n + 1) / (n + 1))
    omega = 2 * np.sin(np.pi * k / (2 * (n + 1)))
    events = {"one": la.Event(lambda q, p: q[100]), "all": la.Event(lambda q, p: q @ mode, stop=True, most=4)}
    path = la.integrate(system, "P4N4Q8Gau", q0=mode, v0=np.zeros(n), h=0.1, steps=200, events=events)
    expected = (np.arange(4) + 0.5) * np.pi / omega
    assert path.events["all"].t == pytest.approx(expected, abs=1e-9) and path.t[-1] == path.events["all"].t[-1]
    assert path.events["one"].t == pytest.approx(expected[: path.events["one"].count], abs=1e-9)


def test_the_first_looks_of_large_sums_take_few_steps(monkeypatch):
    """Three steps backwards, not fourteen steps of other lengths for each of the first three steps; impacts alike."""
    taken = []
    steps = DetachedMotion.steps
    monkeypatch.setattr(DetachedMotion, "steps", lambda *given: taken.append(len(given[2])) or steps(*given))
    n = 250
    system, (q, v) = chain(n, b=0.3), (np.random.default_rng(0).standard_normal(n) for _ in range(2))
    far = {"far": la.Event(lambda q, p: q[3] - 50.0)}
    la.integrate(system, "simpson", q0=q, v0=v, h=0.05, steps=20, events=far)
    assert taken == [1, 1, 1]


def test_events_of_large_sums_are_stored_and_resumed_to_the_last_bit(tmp_path):
    system, (q, v) = chain(250, b=0.3), (np.random.default_rng(0).standard_normal(250) for _ in range(2))
    events = {"some": la.Event(lambda q, p: q[3] - q[200]), **walls()}
    how = {"q0": q, "v0": v, "h": 0.05, "events": events}
    whole = la.integrate(system, "simpson", **how, steps=120)
    la.integrate(system, "simpson", **how, steps=70, store=tmp_path / "run")
    resumed = la.resume(tmp_path / "run", steps=50)
    assert (resumed.q == whole.q).all() and (resumed.p == whole.p).all()
    for name, found in whole.events.items():
        assert found.count == resumed.events[name].count and (found.t == resumed.events[name].t).all()


@pytest.mark.parametrize("method", rest_slow(["simpson", "P2N2Q4Gau"], ["simpson"]))
def test_impacts_of_large_constrained_sums_are_those_of_the_lagrangian_written_out(method, monkeypatch):
    """A chain of rods swings against a wall, and its last rod against one that moves: reactions of all rods at once."""
    system, q, v = hanging(6)
    events = {
        "wall": la.Impact(lambda q: q[10] - 2.2, restitution=0.8),
        "moving": la.Impact(lambda t, q: q[11] + 5.45 - 0.05 * np.sin(t)),
    }
    how = {"q0": q, "v0": v, "h": 0.01, "steps": 120, "events": events}
    plain = la.integrate(system, method, **how)
    monkeypatch.setattr("leastaction.run.plan.MOST_EXPANDED", 5)
    path = la.integrate(system, method, **how)
    assert isinstance(plain.system, la.Lagrangian) and path.system is system
    assert path.q == pytest.approx(plain.q, abs=1e-9)
    for name, found in plain.events.items():
        assert 0 < path.events[name].count == found.count
        assert path.events[name].t == pytest.approx(found.t, abs=1e-10)
        assert path.events[name].p_after == pytest.approx(found.p_after, abs=1e-8)


def test_impacts_of_a_long_chain_of_rods():
    """Reactions are part of the impulse: rods keep their lengths, and the energy stays."""
    system, q, v = hanging(150)
    wall = {"wall": la.Impact(lambda q: q[298] - q0[298] + 1e-3)}
    q0 = q
    path = la.integrate(system, "simpson", q0=q, v0=v, h=0.005, steps=20, events=wall)
    assert path.events["wall"].count == 1
    (t,), (q,), (before,), (after,) = (getattr(path.events["wall"], name) for name in ("t", "q", "p", "p_after"))
    assert system.energy(q, after, t) == pytest.approx(system.energy(q, before, t), rel=1e-13)
    rates = system.assembly.at(system.values()).constraints(t, q, system.velocity(q, after, t)).c
    assert np.abs(rates).max() < 1e-11 and after[298] == pytest.approx(-before[298], rel=1e-9)


@pytest.mark.parametrize("method", ["stormer-verlet", "simpson"])
def test_a_step_that_fails_leaves_all_states_before(method):
    terms = [
        la.Term(kinetic, over=[0, 1], params={"m": 1.0}),
        la.Term(lambda q, v: -np.sqrt(1 - q[0]), over=[0, 1]),
    ]
    system = la.Lagrangian.sum(terms, n=2)
    with pytest.raises(la.StepFailed) as caught:
        la.integrate(system, method, q0=[0.0, 0.5], v0=[1.0, 0.0], h=0.01, steps=2000, every=30)
    path = caught.value.path
    assert np.isfinite(path.q).all() and path.q[-1, 0] < 1
    assert path.t[-1] == pytest.approx(0.01 * caught.value.step)
    fine = la.integrate(system, method, q0=[0.0, 0.5], v0=[1.0, 0.0], h=0.01, steps=caught.value.step)
    assert np.array_equal(path.q[-1], fine.q[-1])


@pytest.mark.parametrize("method", ["stormer-verlet", "simpson"])
def test_steps_take_no_memory(method):
    """However many steps: a run of 200 takes what one of 20 takes, of which a state alone is 32 kB."""
    system, (q, v) = chain(2000), start(2000)

    def peak(steps):
        tracemalloc.start()
        la.integrate(system, method, q0=q, v0=v, h=0.01, steps=steps, every=steps)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(20)  # compiled
    assert peak(200) < peak(20) + 10_000


# What is refused.


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([[0, 7]], ValueError, "names coordinate 7 in row 0; with n = 7 they are counted from 0 to 6"),
        ([[0, -1]], ValueError, "names coordinate -1"),
        ([[0, 1], [2, 2]], ValueError, "twice in row 1"),
        ([], ValueError, "is empty"),
        (np.zeros((0, 2), int), ValueError, "is empty"),
        ([[0.0, 1.0]], TypeError, "must hold integers"),
        ([[0, 1], [2]], ValueError, "all rows equally long"),
        (np.zeros((2, 2, 2), int), ValueError, "must have shape"),
        ([["a", "b"]], TypeError, "must hold integers"),
    ],
)
def test_bad_tables(rows, error, words):
    with pytest.raises(error, match=words):
        terms = [la.Term(kinetic, over=np.arange(N), params={"m": 1.0}), la.Term(lambda q, v: q[0] * q[1], over=rows)]
        la.Lagrangian.sum(terms, n=N)


def test_a_table_of_the_wrong_width():
    with pytest.raises(la.TraceError):
        la.Term(spring, over=[0, 1], params={"k": 1.0, "b": 1.0})


def test_bad_terms_and_parameters():
    with pytest.raises(ValueError, match="one entry for each of the 2"):
        la.Term(spring, over=[[0, 1], [1, 2]], params={"k": [1.0, 2.0, 3.0], "b": 1.0})
    with pytest.raises(TypeError, match="needs a function"):
        la.Term(over=[[0, 1]])
    with pytest.raises(TypeError, match="list of terms"):
        la.Lagrangian.sum([], n=3)
    with pytest.raises(TypeError, match="list of terms"):
        la.Lagrangian.sum(la.Term(kinetic, over=[0], params={"m": 1.0}), n=1)
    with pytest.raises(TypeError, match="'m' must be a number or an array of numbers"):
        la.Lagrangian.sum([la.Term(kinetic, over=[0, 1], params={"m": [1.0, None]})], n=2)
    with pytest.raises(ValueError, match="different values"):
        la.Lagrangian.sum(
            [la.Term(kinetic, over=[0], params={"m": 1.0}), la.Term(kinetic, over=[1], params={"m": 2.0})], n=2
        )
    system = la.Lagrangian.sum([la.Term(kinetic, over=[0, 1], params={"m": 1.0})], n=3)
    with pytest.raises(la.DegenerateLagrangianError, match=r"v\[2\]"):
        la.integrate(system, "simpson", q0=np.zeros(3), v0=np.ones(3), h=0.1, steps=1)
    with pytest.raises(TypeError, match="parameter 'm' must be a number"):
        la.integrate(system, "simpson", q0=np.zeros(3), v0=np.ones(3), h=0.1, steps=1, params={"m": None})
    with pytest.raises(ValueError, match="no parameter 'g'"):
        la.integrate(chain(3), "simpson", q0=np.zeros(3), v0=np.ones(3), h=0.1, steps=1, params={"g": 1.0})


def test_a_force_alone_is_a_term():
    drag = la.Term(over=np.arange(3), force=lambda q, v: -0.5 * v)
    system = la.Lagrangian.sum([la.Term(kinetic, over=np.arange(3), params={"m": 1.0}), drag], n=3)
    path = la.integrate(system, "P3N3Q6Gau", q0=np.zeros(3), v0=np.ones(3), h=0.1, t_end=2.0)
    assert path.p[-1] == pytest.approx(np.exp(-1.0) * np.ones(3), abs=1e-12)


def test_a_rayleigh_function_is_the_force_that_it_stands_for():
    masses = la.Term(kinetic, over=np.arange(3), params={"m": 1.0})
    pairs = [[0, 1], [1, 2]]
    by = la.Term(over=pairs, dissipation=lambda q, v, c: 0.5 * c * (v[1] - v[0]) ** 2, params={"c": 0.5})
    force = la.Term(over=pairs, force=lambda q, v, c: c * (v[1] - v[0]) * np.array([1.0, -1.0]), params={"c": 0.5})
    ends = [
        la.integrate(la.Lagrangian.sum([masses, one], n=3), "P3N3Q6Gau", np.zeros(3), v0=np.arange(3.0), h=0.1, t_end=1)
        for one in (by, force)
    ]
    assert ends[0].p[-1] == pytest.approx(ends[1].p[-1], abs=1e-14)
    with pytest.raises(TypeError, match="dissipation must be a function"):
        la.Term(over=pairs, dissipation=0.5)


# Documentation and examples.

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["sine_gordon", "hyperelastic_beam"])
def test_examples_run(tmp_path, name):
    if name == "hyperelastic_beam":
        pytest.importorskip("skfem")
    picture = tmp_path / "picture.png"
    call = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--small", "--picture", str(picture)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert picture.stat().st_size > 10_000


def test_a_cloth_falls():
    from examples.cloth import cloth

    system, q0 = cloth(6)
    path = la.integrate(system, "stormer-verlet", q0=q0, v0=np.zeros(len(q0)), h=1e-3, steps=100, every=50)
    E = path.energy()
    assert E[-1] == pytest.approx(E[0] + path.work()[-1], abs=1e-3 * abs(E[0]))
    assert path.q[-1].reshape(-1, 3)[:, 2].min() < -0.01


def test_the_picture_of_the_cloth_has_all_of_it(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    from examples.cloth import cloth, draw

    system, q0 = cloth(6)
    path = la.integrate(system, "stormer-verlet", q0=q0, v0=np.zeros(len(q0)), h=1e-3, steps=900, every=300)
    draw(str(tmp_path / "cloth.png"), path, 6)
    places, axes = path.q.reshape(-1, 3), plt.gcf().axes
    plt.close()
    assert len(axes) == 4
    for axis in axes:
        limits = np.array([axis.get_xlim(), axis.get_ylim(), axis.get_zlim()])
        assert (places >= limits[:, 0]).all() and (places <= limits[:, 1]).all()


def test_n_bodies_are_the_problem_of_the_same_bodies():
    known = catalogued("outer-solar-system")
    masses = [float(value) for key, value in known.params.items() if key != "G"]
    q, p = known.q0.reshape(-1, 3), known.p0.reshape(-1, 3)
    bodies = la.problems.n_body(masses, q, p / np.array(masses)[:, None], G=float(known.params["G"]))
    path = la.integrate(bodies.system, "P4N4Q8Gau", q0=bodies.q0, p0=bodies.p0, h=50.0, steps=40)
    other = la.integrate(known.system, "P4N4Q8Gau", q0=known.q0, p0=known.p0, h=50.0, steps=40)
    assert path.q == pytest.approx(other.q, rel=1e-12, abs=1e-12)
    with pytest.raises(ValueError, match=r"shape \(2, 2\) or \(2, 3\)"):
        la.problems.n_body([1.0, 1.0], [[0.0], [1.0]], [[0.0], [0.0]])


def test_lattices():
    ring = [[j, (j + 1) % 8] for j in range(8)]
    system = la.problems.lattice(
        ring, lambda r, k: 0.5 * k * r**2, masses=2.0, params={"k": np.arange(1.0, 9)}, onsite=lambda q: q**4
    )
    q = np.sin(np.arange(8.0))
    k = np.arange(1.0, 9)
    pull = k * (np.roll(q, -1) - q)
    assert system.acceleration(q, 0 * q) == pytest.approx((pull - np.roll(pull, 1) - 4 * q**3) / 2, abs=1e-13)
    with pytest.raises(ValueError, match=r"shape \(E, 2\)"):
        la.problems.lattice([[0, 1, 2]], lambda r: r)
