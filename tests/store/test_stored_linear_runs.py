"""Stored runs of Quadratic systems: bit for bit through ends and kills, wide rows in little memory, the system kept."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array
from threadpoolctl import threadpool_limits

import leastaction as la
from damage import HOW, spoil
from interrupts import pressed_after
from leastaction import Samples
from leastaction.linear import Rayleigh
from leastaction.run import archive as archive_module
from leastaction.run.archive import Disk
from leastaction.run.plan import plan_run
from leastaction.store.archive import Archive
from linear_systems import chain, definite, semidefinite, sparse, state
from processes import started, wait_for
from seeds import generator

pytest.importorskip("zarr")

n = 6
RNG = np.random.default_rng(5)
M, K, C = definite(RNG, n), semidefinite(RNG, n, n - 1), semidefinite(RNG, n, n)
TIMES = np.linspace(-1.0, 60.0, 200)
SAMPLES = Samples(TIMES, np.sin(TIMES[:, None] * np.arange(1, n + 1)))


def unsorted() -> csr_array:
    """K in CSR as an assembly may leave it: columns in any order, and an entry in two parts."""
    order = np.arange(n)[::-1]
    indices = np.concatenate([np.append(order, 0) for _ in range(n)])
    halves = K[:, order].copy()
    halves[:, -1] /= 2
    data = np.concatenate([np.append(row, row[-1]) for row in halves])
    return csr_array((data, indices, (n + 1) * np.arange(n + 1)), (n, n))


SYSTEMS = {
    "dense, native loop": la.Quadratic(M, K),
    "dense, damped and loaded": la.Quadratic(M, K, C=C, f=np.arange(n)),
    "dense, Rayleigh and samples": la.Quadratic(M, K, C=Rayleigh(0.1, 0.02), f=SAMPLES),
    "dense, exact numbers": la.Quadratic(["1/3"] * n, K, f=["1/7"] * n),
    "dense, solves": la.Quadratic(definite(RNG, 40), np.asfortranarray(semidefinite(RNG, 40, 39))),
    "sparse": chain(30),
    "sparse, lumped mass": la.Quadratic(np.arange(1.0, n + 1), csr_array(K)),
    "sparse, damped and loaded": la.Quadratic(csr_array(M), csr_array(K), C=csr_array(C), f=np.arange(n)),
    "sparse, Rayleigh and samples": la.Quadratic(csr_array(M), csr_array(K), C=Rayleigh(0.1, 0.02), f=SAMPLES),
    "sparse, as assembled": la.Quadratic(csr_array(M), unsorted()),
}
each = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS.keys())


@pytest.fixture(params=[1, 7], ids=["chunks of one row", "chunks of seven rows"])
def small_chunks(request, monkeypatch):
    """Chunks of few rows, so that short runs have many."""
    monkeypatch.setattr(archive_module, "BLOCK_BYTES", 0)
    monkeypatch.setattr(archive_module, "USUAL_ROWS", request.param)


def same(stored, path):
    for name in ("t", "q", "p"):
        np.testing.assert_array_equal(np.asarray(getattr(stored, name)), getattr(path, name), err_msg=name)
    assert len(stored) == len(path)


def run(system, steps, method="simpson", **options):
    return la.integrate(system, method, *state(system.n), h=0.05, steps=steps, **options)


# ------------------------------------------------------------------------------------------ resuming


@each
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, small_chunks, system):
    parts, file = (10, 1, 45, 60), tmp_path / "run.zarr"
    whole = run(system, sum(parts), every=3)
    stored = run(system, parts[0], every=3, store=file)
    assert stored.standing == "complete"
    same(stored, run(system, parts[0], every=3))
    for steps in parts[1:]:
        stored = la.resume(file, steps=steps)
    same(stored, whole)
    same(la.open(file), whole)
    timed = {"stability_time", "compile_time", "run_time", "time_per_step", "interrupted"}
    assert {k: v for k, v in stored.stats.items() if k not in timed} == {
        k: v for k, v in whole.stats.items() if k not in timed
    }


@pytest.mark.parametrize("method", ["newmark", "P3N3Q6Gau", "P8N8Q16Gau", "rk4"])
def test_every_way_of_stepping_resumes(tmp_path, method):
    for name in ("dense, Rayleigh and samples", "sparse, Rayleigh and samples", "sparse, damped and loaded"):
        file = tmp_path / f"{name}.zarr"
        run(SYSTEMS[name], 20, method, store=file)
        same(la.resume(file, steps=20), run(SYSTEMS[name], 40, method))


def test_times_until_an_end_are_those_in_memory(tmp_path):
    how = {"h": 0.07, "t0": 0.5, "t_end": 3.0}
    path = la.integrate(chain(5), "simpson", *state(5), **how)
    same(la.integrate(chain(5), "simpson", *state(5), **how, store=tmp_path / "run.zarr"), path)


@pytest.mark.parametrize("make", [lambda s: s, sparse], ids=["dense", "sparse"])
def test_some_degrees_of_freedom_only(tmp_path, small_chunks, make):
    system, file = make(la.Quadratic(M, K)), tmp_path / "run.zarr"
    whole = run(system, 50, output=[-1, 2, 0])
    run(system, 20, output=[-1, 2, 0], store=file)
    stored = la.resume(file, steps=30)
    same(stored, whole)
    np.testing.assert_array_equal(stored.output, [5, 2, 0])
    for refused in (stored.energy, stored.velocity, lambda: stored(1.0), stored.in_memory().energy):
        with pytest.raises(ValueError, match=r"stores 3 of \d+ degrees of freedom"):
            refused()
    stored.in_memory().save(tmp_path / "copy.npz")
    same(la.Path.load(tmp_path / "copy.npz"), whole)


def test_an_unstable_run_that_was_wanted_is_not_asked_about_again(tmp_path):
    system, file = chain(20), tmp_path / "run.zarr"
    how = {"q0": np.ones(20), "p0": np.zeros(20), "h": 1.01 * system.stable_step("simpson")}
    with pytest.raises(la.UnstableStepError):
        la.integrate(system, "simpson", **how, steps=10, store=file)
    assert not file.exists()
    la.integrate(system, "simpson", **how, steps=10, allow_unstable=True, store=file)
    same(la.resume(file, steps=20), la.integrate(system, "simpson", **how, steps=30, allow_unstable=True))


@pytest.mark.parametrize("make", [lambda s: s, sparse], ids=["dense", "sparse"])
def test_a_run_that_overflows_ends_with_its_archive(tmp_path, small_chunks, make):
    system, file = make(la.Quadratic([1.0], [1.0])), tmp_path / "run.zarr"
    how = {"h": 5.0, "steps": 500, "every": 4, "allow_unstable": True}
    with pytest.raises(la.StepFailed) as plain:
        la.integrate(system, "stormer-verlet", [1.0], [0.0], **how)
    with pytest.raises(la.StepFailed) as stored:
        la.integrate(system, "stormer-verlet", [1.0], [0.0], **how, store=file)
    assert stored.value.step == plain.value.step
    same(stored.value.path, plain.value.path)
    same(la.open(file), plain.value.path)
    assert la.open(file).standing == "failed"
    with pytest.raises(la.StoreError, match="could not be solved"):
        la.resume(file, steps=10)


def test_interrupted_by_the_keyboard(tmp_path):
    system, file = chain(200), tmp_path / "run.zarr"

    with pressed_after(1000), pytest.warns(RuntimeWarning, match=r"la\.resume"):
        stored = run(system, 10**8, every=10, store=file)
    assert stored.standing == "interrupted"
    done = stored.stats["steps"]
    same(la.resume(file, steps=7), run(system, done + 7, every=10))


SCRIPT = """
import sys
import numpy as np
import leastaction as la
from leastaction.run import archive
from linear_systems import chain, state

archive.BLOCK_BYTES = 2**14
archive.CHECKPOINT_SECONDS = 0.02
system, file = chain(int(sys.argv[2])), sys.argv[1]
la.integrate(system, "P2N2Q4Gau", *state(system.n), h=0.05, steps=10**8, every=5, store=file)
"""


def start(file, size):
    """A run in a process of its own, waited for until it has a checkpoint."""
    process = started(SCRIPT, file, size)
    wait_for((file / "checkpoint" / "state").exists, process)
    return process


def test_opened_while_running_killed_at_a_random_moment_and_resumed_bit_for_bit(tmp_path):
    rng = generator()
    size, file = 50, tmp_path / "run.zarr"
    process = start(file, size)
    try:
        first = la.open(file)
        assert first.standing == "running"
        wait_for(lambda: len(la.open(file)) > len(first), process)
        time.sleep(rng.uniform(0.0, 0.5))
        with pytest.raises(la.StoreError, match=f"another process .number {process.pid}"):
            la.resume(file, steps=1)
    finally:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    killed = la.open(file)
    done = killed.stats["steps"]
    assert killed.standing == "killed" and len(killed) > len(first)
    stored = la.resume(file, steps=123)
    system = chain(size)
    whole = la.integrate(system, "P2N2Q4Gau", *state(size), h=0.05, steps=done + 123, every=5)
    same(stored, whole)
    np.testing.assert_array_equal(first.q[:], whole.q[: len(first)])


# ----------------------------------------------------------------------------------- the system's file


@each
def test_the_system_is_kept_bit_for_bit(tmp_path, system):
    run(system, 2, store=tmp_path / "run.zarr")
    again = la.open(tmp_path / "run.zarr").system
    assert again.sparse == system.sparse
    for name in "MKC":
        a, b = getattr(system, name), getattr(again, name)
        if system.sparse and a is not None and not isinstance(a, Rayleigh):
            for part in ("data", "indices", "indptr"):
                np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
            assert a.flags.f_contiguous == b.flags.f_contiguous  # which decides the order of sums
        else:
            assert a == b
    if system.f is not None:
        for t in (0.0, 0.1234, 7.7):
            np.testing.assert_array_equal(system.f(t), again.f(t))


def test_a_load_that_is_a_function_is_refused_and_nothing_is_left(tmp_path):
    system = la.Quadratic(M, K, f=lambda t: np.cos(t * np.arange(n)))
    with pytest.raises(ValueError, match=r"load f\(t\) is a function cannot be saved; give the load as samples"):
        run(system, 10, store=tmp_path / "run.zarr")
    assert not list(tmp_path.iterdir())


def test_samples_that_end_before_the_run_are_noticed_before_it(tmp_path):
    system, file = SYSTEMS["sparse, Rayleigh and samples"], tmp_path / "run.zarr"
    for h, t0, message in ((0.05, 0.0, "asks for t = 100"), (0.01, -2.0, "asks for t = -2")):
        with pytest.raises(ValueError, match=message):
            la.integrate(system, "simpson", *state(n), h=h, t0=t0, steps=2000, store=file)
        assert not list(tmp_path.iterdir())
    run(system, 100, store=file)
    with pytest.raises(ValueError, match="known from"):
        la.resume(file, steps=2000)
    assert la.open(file).standing == "complete"
    same(la.resume(file, steps=100), run(system, 200))


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_system_is_noticed(tmp_path, how):
    file = tmp_path / "run.zarr"
    run(chain(20), 10, store=file)
    spoil(file / "checkpoint" / "system", how)
    for use in (la.open, lambda file: la.resume(file, steps=1)):
        with pytest.raises(la.StoreError, match=r"checkpoint/system is (damaged|missing).*with zarr alone"):
            use(file)


def killed(*_):
    raise KeyboardInterrupt


def test_a_run_that_dies_before_its_archive_is_whole_leaves_none(tmp_path, monkeypatch):
    file = tmp_path / "run.zarr"
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            run(chain(5), 10, store=file)
    assert not file.exists()
    run(chain(5), 10, store=file)


def test_a_disk_too_small_for_the_system(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(la.StoreError, match="disk is full; the run did not begin"):
        run(chain(5), 10, store=tmp_path / "run.zarr")
    assert not list(tmp_path.rglob(".new-*"))


def test_other_libraries_and_threads_go_on_with_a_warning(tmp_path, monkeypatch):
    """More threads add up a dense product in another order; sparse work has one thread always."""
    dense, thin = tmp_path / "dense.zarr", tmp_path / "sparse.zarr"
    with threadpool_limits(2, "blas"):
        for file, system in ((dense, la.Quadratic(M, K)), (thin, chain(5))):
            run(system, 10, store=file)
    with threadpool_limits(1, "blas"):
        with pytest.warns(RuntimeWarning, match=r"2 BLAS threads.* goes on with .*1 BLAS threads"):
            la.resume(dense, steps=1)
        la.resume(thin, steps=1)
    monkeypatch.setattr(np, "__version__", "1.99")
    with pytest.warns(RuntimeWarning, match=r"goes on with .*NumPy 1\.99.*last digits may differ"):
        la.resume(thin, steps=1)


# --------------------------------------------------------------------------------------- lazy arrays


def test_a_stored_path_does_what_a_path_does(tmp_path, small_chunks):
    system = la.Quadratic(M, K)
    stored, whole = run(system, 100, every=3, store=tmp_path / "run.zarr"), run(system, 100, every=3)
    np.testing.assert_allclose(stored.energy(), whole.energy(), rtol=1e-13)
    np.testing.assert_allclose(stored.velocity(), whole.velocity(), rtol=1e-13)
    for key in [(slice(None), 2), (slice(3, 30, 4), slice(None, None, 2)), (5, 1), (-1, slice(1, 3)), (slice(5, 5), 0)]:
        np.testing.assert_array_equal(stored.q[key], whole.q[key])
    for t in (0.0, 1.234, 5.0, np.array([[0.005, 4.991], [2.0, 0.1]]), np.linspace(0, 5, 50)):
        np.testing.assert_allclose(stored(t), whole(t), rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="the path covers"):
        stored(5.5)


def test_xarray_knows_which_degrees_of_freedom(tmp_path):
    xarray = pytest.importorskip("xarray")
    file = tmp_path / "run.zarr"
    whole = run(chain(20), 30, output=[19, 3])
    data = run(chain(20), 30, output=[19, 3], store=file).to_xarray()
    np.testing.assert_array_equal(data.q.sel(dof=3).values, whole.q[:, 1])
    np.testing.assert_array_equal(data.p.isel(t=slice(4, 9)).values, whole.p[4:9])
    with xarray.open_zarr(file, consolidated=False, chunks=None) as plain:
        np.testing.assert_array_equal(plain.q.values, whole.q)


# -------------------------------------------------------------------------------------------- memory


def peak(work):
    tracemalloc.start()
    work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_stays_bounded_with_wide_rows(tmp_path):
    """One row is 320 kB; 64 of them, once the least of a chunk, or all of the run are not held at once."""
    size = 20_000
    system = la.Quadratic(np.ones(size), diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(size, size)))
    row = 16 * size
    run(system, 1, "newmark", store=tmp_path / "first.zarr")
    few = peak(lambda: run(system, 30, "newmark", store=tmp_path / "few.zarr"))
    many = peak(lambda: run(system, 300, "newmark", store=tmp_path / "many.zarr"))
    assert many < few + 30 * row
    stored = la.open(tmp_path / "many.zarr")
    assert stored.q.shape == (301, size)
    for look in (lambda: stored.q[:, 7], lambda: stored.q[::100], stored.energy, lambda: stored([0.01, 7.0, 14.9])):
        assert peak(look) < len(stored) * row / 2
    np.testing.assert_array_equal(stored.q[:, 7], run(system, 300, "newmark", output=[7]).q[:, 0])


@pytest.mark.parametrize("width", [1, 2, 1000, 10_000, 100_000, 1_000_000])
def test_chunks_are_neither_tiny_nor_huge(tmp_path, width):
    system = la.Quadratic(np.ones(width), diags_array([np.ones(width)], offsets=[0]))
    how = {"h": 0.1, "steps": 10, "t_end": None, "t0": 0.0, "params": None, "every": 1}
    plan, starts = plan_run(system, "newmark", (np.ones(width), np.zeros(width), None), **how)
    with Disk.creating(tmp_path / "run.zarr", plan, starts, [(0, 1)]) as disk:
        assert disk.rows == disk.archive.cut("q") == disk.archive.cut("t") == disk.archive.cut("p")
    assert disk.rows >= 1
    assert archive_module.BLOCK_BYTES / 2 <= 8 * width * disk.rows <= max(8 * width, 2**22)


def test_the_checkpoint_holds_the_state_and_less_than_a_chunk(tmp_path, small_chunks):
    file = tmp_path / "run.zarr"
    run(chain(10), 40, every=3, store=file)
    disk = Disk.open(Archive.open(file))
    checkpoint = disk.checkpoint(0)
    assert {name for name in checkpoint.state if name.startswith("state_")} == {
        "state_y", "state_carry", "state_integers"
    }  # fmt: skip
    assert checkpoint.tail.shape[1] <= disk.rows
    assert disk.plan.system.n == 10
    copy = tmp_path / "copy.zarr"
    shutil.copytree(file, copy)
    same(la.resume(copy, steps=2), la.resume(file, steps=2))
