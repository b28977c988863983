"""Ensembles on a Dask cluster: the local result bit for bit, also when workers die."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import numpy as np
import pytest

import leastaction as la
from hostile_workers import die_at_work
from interrupts import pressed_after
from leastaction.run import Status, archive, cluster
from leastaction.run.plan import plan_run
from leastaction.run.standing import Standing

distributed = pytest.importorskip("distributed")


def double_pendulum(q, v, m, g):
    T = 0.5 * (1 + m) * v[0] ** 2 + 0.5 * m * v[1] ** 2 + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (1 + m) * g * np.cos(q[0]) + m * g * np.cos(q[1])


PENDULUM = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "g": 9.81})
WATCHED = {
    "reduce": {"E": la.EnergyRange()},
    "events": {"x": la.Event(lambda q, p: np.sin(q[1]), +1, most=4), "up": la.Event(lambda q, p: q[1] - 3, stop=True)},
}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def random_starts(size):
    rng = np.random.default_rng(9)
    return rng.uniform(-2, 2, (size, 2)), rng.normal(size=(size, 2)), rng.uniform(0.5, 2, size)


def same(one, other):
    np.testing.assert_array_equal(one.q, other.q)
    np.testing.assert_array_equal(one.p, other.p)
    np.testing.assert_array_equal(one.status, other.status)
    np.testing.assert_array_equal(one.steps, other.steps)
    for name in one.reduced:
        np.testing.assert_array_equal(one.reduced[name], other.reduced[name])
    for name, found in one.events.items():
        np.testing.assert_array_equal(found.count, other.events[name].count)
        np.testing.assert_array_equal(found.table(), other.events[name].table())


@pytest.mark.parametrize("method", ["simpson", pytest.param("rk4", marks=pytest.mark.slow)])
def test_a_cluster_gives_the_local_result(client, method):
    Q, P, m = random_starts(100)
    options = {"params": {"m": m}, "h": 0.02, "steps": 200, "every": 50, **WATCHED}
    local = la.ensemble(PENDULUM, method, Q, P, **options)
    same(la.ensemble(PENDULUM, method, Q, P, client=client, **options), local)


def test_failures_come_back_as_marks(client):
    system = la.Lagrangian(lambda q, v: 0.5 * (v @ v) + 1 / np.sqrt(q @ q), n=2)
    Q = np.tile([1.0, 0.0], (40, 1))
    V = np.tile([0.0, 1.0], (40, 1))
    V[17] = 0.0
    paths = la.ensemble(system, "simpson", Q, v0=V, h=0.05, steps=100, client=client)
    assert list(np.flatnonzero(paths.failed)) == [17]


def test_a_worker_killed_in_the_middle(client):
    Q, P, m = random_starts(512)
    options = {"params": {"m": m}, "h": 0.01, "steps": 20_000, "final_only": True}
    la.ensemble(PENDULUM, "simpson", Q[:16], P[:16], params={"m": m[:16]}, h=0.01, steps=10, client=client)  # compiled
    with a_worker_killed(client):
        paths = la.ensemble(PENDULUM, "simpson", Q, P, client=client, **options)
    same(paths, la.ensemble(PENDULUM, "simpson", Q, P, **options))


@pytest.mark.parametrize("method", ["simpson", pytest.param("rk4", marks=pytest.mark.slow)])
def test_a_stored_ensemble_goes_on_on_a_cluster(client, tmp_path, monkeypatch, method):
    """Stored and extended there and here, in many short stretches."""
    monkeypatch.setattr(archive, "BLOCK_BYTES", 2**11)
    monkeypatch.setattr(archive, "USUAL_ROWS", 1)
    monkeypatch.setattr(archive, "CHECKPOINT_SECONDS", 0.1)
    Q, P, m = random_starts(16)
    options = {"params": {"m": m}, "h": 0.02, "every": 3, **WATCHED}
    file = tmp_path / "run.zarr"
    stored = la.ensemble(PENDULUM, method, Q, P, steps=100, client=client, store=file, **options)
    same(stored, la.ensemble(PENDULUM, method, Q, P, steps=100, **options))
    same(la.resume(file, steps=60, client=client), la.ensemble(PENDULUM, method, Q, P, steps=160, **options))
    same(la.resume(file, steps=10), la.ensemble(PENDULUM, method, Q, P, steps=170, **options))
    last = {**options, "final_only": True, "every": 1}
    la.ensemble(PENDULUM, method, Q, P, steps=100, client=client, store=tmp_path / "last.zarr", **last)
    same(
        la.resume(tmp_path / "last.zarr", steps=70, client=client),
        la.ensemble(PENDULUM, method, Q, P, steps=170, **last),
    )


@pytest.mark.parametrize("digits", [None, 30])
@pytest.mark.parametrize("system", [PENDULUM, la.Quadratic([2, 1], [[3, 1], [1, 2]])], ids=["lagrangian", "quadratic"])
def test_digits_derivatives_and_linear_systems_on_a_cluster(client, system, digits):
    options = {"h": "1/50", "steps": 12, "every": 5, "digits": digits, "tangent": True}
    Q = [["1/3", "1/5"], ["1/7", "1"], ["-1/2", "3/4"]]
    there, here = (la.ensemble(system, "simpson", Q, [0, "1/10"], **options, **how) for how in ({"client": client}, {}))
    for name in ("t", "q", "p", "tangent"):
        assert (getattr(there, name) == getattr(here, name)).all(), name


def test_a_worker_killed_in_the_middle_of_a_stored_run(client, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "CHECKPOINT_SECONDS", 0.1)
    Q, P, m = random_starts(128)
    options = {"params": {"m": m}, "h": 0.01, "steps": 20_000, "every": 100}
    with a_worker_killed(client):
        paths = la.ensemble(PENDULUM, "simpson", Q, P, client=client, store=tmp_path / "run.zarr", **options)
    same(paths, la.ensemble(PENDULUM, "simpson", Q, P, **options))


@contextmanager
def a_worker_killed(client):
    """One of the workers dies when it begins its next stretch."""
    address, pid = next(iter(client.run(os.getpid).items()))
    client.run(die_at_work, workers=[address])
    yield
    assert pid not in client.run(os.getpid).values()


def test_a_worker_keeps_the_systems_it_needs(monkeypatch):
    monkeypatch.setattr(cluster, "MOST_SYSTEMS", 2)
    monkeypatch.setattr(cluster, "_systems", {})
    seen = []
    for k in (1.0, 2.0, 1.0, 3.0):
        system = la.Lagrangian(lambda q, v, k=k: 0.5 * v[0] ** 2 - k * q[0] ** 4, n=1)
        how = {"h": 0.1, "steps": 3, "t_end": None, "t0": 0.0, "params": None, "every": 1, "many": True}
        plan, starts = plan_run(system, "simpson", ([1.0], [0.0], None), **how)
        standing, rows = cluster._work(plan, starts, Standing.begin(plan, starts), (0, plan.kept), np.inf)
        assert list(standing.steps) == [3] and np.isfinite(rows[:, 1:]).all()  # the first row is where it begins
        seen.append(system.program.digest)
    assert [digest for digest, _ in cluster._systems] == [seen[0], seen[3]]  # the last two that were used


def test_systems_travel_without_their_function():
    system = la.Lagrangian(lambda q, v, k: 0.5 * (v @ v) - 0.5 * k * (q @ q), n=2, params={"k": 2.0})
    assert system.hessian
    copy = pickle.loads(pickle.dumps(system))
    assert copy.program == system.program and copy.params == system.params and copy.fn is None
    assert copy.energy([1.0, 0.0], [0.0, 1.0]) == system.energy([1.0, 0.0], [0.0, 1.0])


def test_a_system_defined_in_main(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np
        import leastaction as la
        from distributed import Client, LocalCluster

        def L(q, v, k):
            return 0.5 * (v @ v) - 0.5 * k * (q @ q)

        def g(q, p):
            return q[0]

        if __name__ == "__main__":
            system = la.Lagrangian(L, n=2, params={"k": 1.0})
            cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0")
            with cluster, Client(cluster) as client:
                paths = la.ensemble(system, "simpson", [1.0, 0.0], [0.0, 0.5], params={"k": np.arange(1.0, 31.0)},
                                    h=0.01, steps=200, client=client, events={"x": la.Event(g)})
            assert np.allclose(paths.events["x"].t[:, 0], np.pi / 2 / np.sqrt(np.arange(1.0, 31.0)), atol=1e-6)
            print("done")
    """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "done", done.stderr


def test_clients_are_checked(client, monkeypatch):
    start = {"q0": [1.0, 0.0], "p0": [0.0, 0.0], "h": 0.1, "steps": 1}
    with pytest.raises(TypeError, match="distributed"):
        la.ensemble(PENDULUM, "simpson", client="tcp://somewhere", **start)
    with pytest.raises(ValueError, match="threads="):
        la.ensemble(PENDULUM, "simpson", client=client, threads=2, **start)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"leastaction\[dask\]"):
        la.ensemble(PENDULUM, "simpson", client=client, **start)


def test_an_interrupt_keeps_what_is_finished(client):
    """Ctrl-C during a run on a cluster: the chunks that are done stay, bit for bit, the others are marked."""
    Q, P, m = random_starts(512)
    options = {"params": {"m": m}, "h": 0.01, "final_only": True}
    with pressed_after(1), pytest.warns(RuntimeWarning, match="interrupted"):  # when the first chunk is done
        paths = la.ensemble(PENDULUM, "simpson", Q, P, steps=30_000, client=client, **options)
    interrupted = paths.status == Status.INTERRUPTED
    assert interrupted.any()
    assert (interrupted | (paths.status == Status.COMPLETE)).all()
    done = np.flatnonzero(~interrupted)[:4]
    assert done.size
    alone = la.ensemble(PENDULUM, "simpson", Q[done], P[done], **(options | {"params": {"m": m[done]}}), steps=30_000)
    np.testing.assert_array_equal(paths.q[done], alone.q)
