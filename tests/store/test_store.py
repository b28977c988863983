"""Stored paths: bit for bit through kills and resumes; damage, locks, lazy arrays, memory."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

import leastaction as la
from damage import HOW, spoil
from interrupts import pressed_after
from leastaction.engine.stepper import FormStepper
from leastaction.run import archive as archive_module
from processes import started, wait_for
from seeds import generator

pytest.importorskip("zarr")


def double_pendulum(q, v, m, g):
    T = 0.5 * (1 + m) * v[0] ** 2 + 0.5 * m * v[1] ** 2 + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (1 + m) * g * np.cos(q[0]) + m * g * np.cos(q[1])


def chain(q, v):
    d = q[1:] - q[:-1]
    return 0.5 * (v @ v) - 0.5 * (d @ d) - 0.25 * (d**2 @ d**2) - 0.5 * q[0] ** 2


def kepler(q, v):
    return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)


PENDULUM = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "g": 9.81})
BEGIN = {"q0": [1.0, 2.0], "p0": [0.0, 0.0], "h": 0.01}


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 rows, so that short runs have many."""
    monkeypatch.setattr(archive_module, "BLOCK_BYTES", 16)


def same(stored, path):
    for name in ("q", "p"):
        np.testing.assert_array_equal(np.asarray(getattr(stored, name)), getattr(path, name))
    np.testing.assert_allclose(np.asarray(stored.t), path.t, rtol=1e-15)
    assert len(stored) == len(path)


# ------------------------------------------------------------------------------------------ resuming


@pytest.mark.parametrize("method", ["simpson", "midpoint", "P4N4Q8Gau", "rk4", "rk4-lagrange"])
@pytest.mark.parametrize(("every", "parts"), [(1, (64, 63, 300)), (3, (100, 1, 55, 300))])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, small_chunks, method, every, parts):
    whole = la.integrate(PENDULUM, method, **BEGIN, steps=sum(parts), every=every)
    file = tmp_path / "run.zarr"
    stored = la.integrate(PENDULUM, method, **BEGIN, steps=parts[0], every=every, store=file)
    assert stored.standing == "complete"
    for steps in parts[1:]:
        stored = la.resume(file, steps=steps)
    same(stored, whole)
    same(la.open(file), whole)
    assert {k: v for k, v in stored.stats.items() if k in whole.stats} == {k: whole.stats[k] for k in stored.stats}


def test_times_until_an_end_are_those_in_memory(tmp_path, small_chunks):
    for number, end in enumerate((1.999, 1.3)):
        path = la.integrate(PENDULUM, "simpson", **BEGIN, t_end=end)
        stored = la.integrate(PENDULUM, "simpson", **BEGIN, t_end=end, store=tmp_path / f"{number}.zarr")
        np.testing.assert_array_equal(stored.t[:], path.t)
        assert stored.t[-1] == end
        np.testing.assert_allclose(stored(end), path(end), rtol=1e-14)  # the place within a step is rounded differently
        more = la.resume(stored.file, steps=10)
        np.testing.assert_array_equal(more.t[: len(path)], path.t)
        np.testing.assert_allclose(np.diff(more.t), path.h, rtol=1e-12)


def test_large_systems_and_coarse_steps_resume_too(tmp_path, small_chunks):
    system = la.Lagrangian(chain, n=12)
    q0, p0 = np.linspace(-1, 1, 12), np.cos(np.arange(12.0))
    whole = la.integrate(system, "simpson", q0, p0, h=0.05, steps=200)
    la.integrate(system, "simpson", q0, p0, h=0.05, steps=77, store=tmp_path / "chain.zarr")
    same(la.resume(tmp_path / "chain.zarr", steps=123), whole)

    far = {"q0": [2.0, 2.5], "p0": [0.0, 0.0], "h": 0.12}
    whole = la.integrate(PENDULUM, "simpson", **far, steps=60)
    la.integrate(PENDULUM, "simpson", **far, steps=15, store=tmp_path / "far.zarr")
    same(la.resume(tmp_path / "far.zarr", steps=45), whole)


SCRIPT = """
import sys
import numpy as np
import leastaction as la
from leastaction.run import archive

def double_pendulum(q, v, m, g):
    T = 0.5 * (1 + m) * v[0] ** 2 + 0.5 * m * v[1] ** 2 + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (1 + m) * g * np.cos(q[0]) + m * g * np.cos(q[1])

archive.BLOCK_BYTES = 2**14
archive.CHECKPOINT_SECONDS = 0.02
file, steps, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if sys.argv[4] == "new":
    system = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "g": 9.81})
    la.integrate(system, "simpson", [1.0, 2.0], [0.0, 0.0], h=0.01, steps=steps, every=every, store=file)
else:
    la.resume(file)
"""


def start(file, steps, every, how):
    """The run in a process of its own, waited for until it has a checkpoint."""
    process = started(SCRIPT, file, steps, every, how)
    wait_for((file / "checkpoint" / "state").exists, process)
    return process


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_bit_for_bit(tmp_path):
    rng = generator()
    file, steps, every = tmp_path / "run.zarr", 600_000, 10
    process = start(file, steps, every, "new")
    for _ in range(4):
        time.sleep(rng.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = la.open(file)
        if found.stats["steps"] == steps:
            break
        assert found.standing == "killed" and "killed" in repr(found)
        process = start(file, steps, every, "more")
    process.kill()
    process.wait()
    if la.open(file).stats["steps"] < steps:
        la.resume(file)
    whole = la.integrate(PENDULUM, "simpson", **BEGIN, steps=steps, every=every)
    stored = la.open(file)
    assert stored.standing == "complete"
    same(stored, whole)


def test_what_no_checkpoint_counts_is_dropped(tmp_path, small_chunks):
    """As if killed after a chunk was half written and before it was counted."""
    file = tmp_path / "run.zarr"
    la.integrate(PENDULUM, "simpson", **BEGIN, steps=100, store=file)
    for name in ("q", "p"):
        folder = file / name / "c" / "2"
        folder.mkdir()
        (folder / "0").write_bytes(b"half a chunk")
        (folder / "0.123.partial").write_bytes(b"and a temporary file")
    (file / "checkpoint" / ".new-abc").write_bytes(b"half a checkpoint")
    assert len(la.open(file)) == 101
    same(la.resume(file, steps=200), la.integrate(PENDULUM, "simpson", **BEGIN, steps=300))
    assert not list(file.rglob("*.partial")) and not list(file.rglob(".new-*"))


def test_interrupted_by_the_keyboard(tmp_path):
    file = tmp_path / "run.zarr"
    with pressed_after(1000), pytest.warns(RuntimeWarning, match=r"la\.resume"):
        stored = la.integrate(PENDULUM, "simpson", **BEGIN, steps=100_000_000, every=1000, store=file)
    assert stored.standing == "interrupted"
    done = stored.stats["steps"]
    stored = la.resume(file, steps=2000 - done % 1000)
    assert stored.standing == "interrupted"  # of a hundred million steps
    same(stored, la.integrate(PENDULUM, "simpson", **BEGIN, steps=done + 2000 - done % 1000, every=1000))


def test_a_run_that_goes_on_for_a_while_remembers_its_planned_end(tmp_path):
    file = tmp_path / "run.zarr"
    with pytest.warns(RuntimeWarning, match=r"la\.resume"), stopped_after(100):
        la.integrate(PENDULUM, "simpson", **BEGIN, steps=1000, store=file)
    first = la.open(file).stats["steps"]
    assert 0 < first < 1000
    some = la.resume(file, steps=50)
    assert some.standing == "interrupted" and some.stats["steps"] == first + 50
    whole = la.resume(file)
    assert whole.standing == "complete"
    same(whole, la.integrate(PENDULUM, "simpson", **BEGIN, steps=1000))
    longer = la.resume(file, steps=10)  # beyond the end: that is the planned one now
    assert longer.standing == "complete" and longer.stats["steps"] == 1010


@contextmanager
def stopped_after(steps):
    """As by the keyboard, after so many steps or some more."""
    advance = FormStepper.advance

    def counted(stepper, piece, *how):
        done = advance(stepper, min(piece, 10), *how)
        if stepper.done >= steps:
            signal.raise_signal(signal.SIGINT)
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FormStepper, "advance", counted)
        yield


def test_resume_until_a_time(tmp_path):
    file, h = tmp_path / "run.zarr", BEGIN["h"]
    la.integrate(PENDULUM, "simpson", **BEGIN, steps=10, store=file)
    stored = la.resume(file, t_end=25 * h)
    same(stored, la.integrate(PENDULUM, "simpson", **BEGIN, steps=25))
    with pytest.raises(ValueError, match="no whole number of steps"):
        la.resume(file, t_end=30.5 * h)
    with pytest.raises(ValueError, match="is past t_end"):
        la.resume(file, t_end=20 * h)
    with pytest.raises(ValueError, match="not both"):
        la.resume(file, steps=1, t_end=30 * h)
    with pytest.raises(ValueError, match="no whole number"):
        la.resume(file, t_end=-h)


def test_an_archive_that_is_written_is_running(tmp_path):
    """Opened from within the run's own process, too; a reader's look does not disturb a writer."""
    from leastaction.store.archive import Archive

    file = tmp_path / "run.zarr"
    la.integrate(PENDULUM, "simpson", **BEGIN, steps=10, store=file)
    archive = Archive.open(file, write=True)
    assert not archive.written()
    with archive.writing():
        assert Archive.open(file).written()
    assert not archive.written()


def test_resume_says_what_it_cannot_do(tmp_path):
    file = tmp_path / "run.zarr"
    la.integrate(PENDULUM, "simpson", **BEGIN, steps=10, store=file)
    with pytest.raises(ValueError, match="say how many more"):
        la.resume(file)
    with pytest.raises(ValueError, match="positive integer"):
        la.resume(file, steps=0)
    with pytest.raises(FileNotFoundError):
        la.resume(tmp_path / "nothing.zarr")
    with pytest.raises(la.StoreError, match=rf"^{re.escape(str(file))} exists; la\.resume"):  # no "[Errno 17]" before
        la.integrate(PENDULUM, "simpson", **BEGIN, steps=10, store=file)
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(la.StoreError, match="not a Zarr archive"):
        la.open(tmp_path / "empty.zarr")


def test_a_step_that_fails_ends_the_run_and_its_archive(tmp_path):
    file = tmp_path / "fall.zarr"
    fall = {"q0": [1.0, 0.0], "v0": [0.0, 0.0], "h": 0.05, "steps": 100}
    system = la.Lagrangian(kepler, n=2)
    with pytest.raises(la.StepFailed) as plain:
        la.integrate(system, "simpson", **fall)
    with pytest.raises(la.StepFailed) as stored:
        la.integrate(system, "simpson", **fall, store=file)
    assert stored.value.step == plain.value.step
    same(stored.value.path, plain.value.path)
    same(la.open(file), plain.value.path)
    assert la.open(file).standing == "failed"
    with pytest.raises(la.StoreError, match="could not be solved"):
        la.resume(file, steps=10)


# ------------------------------------------------------------------------------- damage and mismatch


@pytest.fixture
def finished(tmp_path, small_chunks):
    file = tmp_path / "run.zarr"
    la.integrate(PENDULUM, "simpson", **BEGIN, steps=300, store=file)
    return file


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_chunk_is_noticed_and_the_rest_is_readable(finished, how):
    spoil(finished / "q" / "c" / "1" / "0", how)
    stored = la.open(finished)
    with pytest.raises(la.StoreError, match=r"damaged|missing"):
        np.asarray(stored.q)
    whole = la.integrate(PENDULUM, "simpson", **BEGIN, steps=300)
    np.testing.assert_array_equal(stored.q[:64], whole.q[:64])
    np.testing.assert_array_equal(stored.q[128:], whole.q[128:])
    np.testing.assert_array_equal(np.asarray(stored.p), whole.p)


def test_a_damaged_checkpoint_or_description_is_noticed(finished):
    state = finished / "checkpoint" / "state"
    data = bytearray(state.read_bytes())
    data[-20] ^= 1
    state.write_bytes(data)
    with pytest.raises(la.StoreError, match="checksum"):
        la.open(finished)
    with pytest.raises(la.StoreError, match="checksum"):
        la.resume(finished, steps=1)
    state.unlink()
    with pytest.raises(la.StoreError, match="no checkpoint"):
        la.open(finished)
    (finished / "zarr.json").write_text("{")
    with pytest.raises(la.StoreError, match="damaged"):
        la.open(finished)


def contents(file):
    return {path: path.read_bytes() for path in sorted(file.rglob("*")) if path.is_file() and path.name != "lock"}


def test_another_format_is_refused_and_left_alone(finished):
    description = json.loads((finished / "zarr.json").read_text())
    description["attributes"]["format"] = 99
    (finished / "zarr.json").write_text(json.dumps(description))
    before = contents(finished)
    for use in (la.open, la.resume):
        with pytest.raises(la.StoreError, match="format 99"):
            use(finished)
    assert contents(finished) == before
    del description["attributes"]["leastaction"]
    (finished / "zarr.json").write_text(json.dumps(description))
    with pytest.raises(la.StoreError, match="not of a run"):
        la.open(finished)


def test_another_machine_goes_on_with_a_warning(finished, monkeypatch):
    monkeypatch.setattr("leastaction.systems.defaults.fingerprint", lambda: "another processor")
    with pytest.warns(RuntimeWarning, match="last digits may differ"):
        la.resume(finished, steps=1)


# ------------------------------------------------------------------------------------------- sharing


def test_opened_while_running_and_closed_to_a_second_writer(tmp_path):
    file = tmp_path / "run.zarr"
    process = start(file, 10**9, 10, "new")
    try:
        first = la.open(file)
        assert first.standing == "running"
        wait_for(lambda: len(la.open(file)) > len(first), process)
        later = la.open(file)
        rows = min(len(later), 3000)
        whole = la.integrate(PENDULUM, "simpson", **BEGIN, steps=10 * (rows - 1), every=10)
        np.testing.assert_array_equal(later.q[:rows], whole.q)
        np.testing.assert_array_equal(
            first.p[:], whole.p[: len(first)] if len(first) <= rows else later.p[: len(first)]
        )
        with pytest.raises(la.StoreError, match=f"another process .number {process.pid}"):
            la.resume(file, steps=1)
    finally:
        process.kill()
        process.wait()
    la.resume(file, steps=1)


def test_without_zarr_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"leastaction\[zarr\]"):
        la.integrate(PENDULUM, "simpson", **BEGIN, steps=1, store=tmp_path / "x.zarr")


# --------------------------------------------------------------------------------------- lazy arrays


def test_lazy_arrays_index_as_arrays_do(finished):
    stored, whole = la.open(finished), la.integrate(PENDULUM, "simpson", **BEGIN, steps=300)
    assert stored.q.shape == (301, 2) and stored.q.ndim == 2 and stored.t.shape == (301,)
    assert stored.q.dtype == np.float64 and stored.q.size == 602 and len(stored.p) == 301
    keys = [
        0, -1, 150, slice(None), slice(60, 70), slice(250, 301), slice(10, 290, 37), slice(None, None, -5), slice(5, 5),
        (3, 1), (slice(None), 0), (slice(60, 200, 3), slice(0, 1)), [1, 5, 299], np.array([0, 300]),
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(stored.q[key], whole.q[key])
    with pytest.raises(IndexError):
        stored.q[301]
    np.testing.assert_array_equal(stored.q - 2 * stored.p, whole.q - 2 * whole.p)
    np.testing.assert_array_equal(np.sin(stored.q), np.sin(whole.q))
    assert "run.zarr" in repr(stored) and "LazyArray" in repr(stored.q)


def test_a_stored_path_does_what_a_path_does(finished):
    stored, whole = la.open(finished), la.integrate(PENDULUM, "simpson", **BEGIN, steps=300)
    assert isinstance(stored, la.Path)
    np.testing.assert_array_equal(stored.energy(), whole.energy())
    np.testing.assert_array_equal(stored.velocity(), whole.velocity())
    for t in (0.0, 1.234, 3.0, np.array([0.005, 2.991]), np.linspace(0, 3, 50)):
        np.testing.assert_allclose(stored(t), whole(t), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="the path covers"):
        stored(3.5)
    np.testing.assert_array_equal(stored.in_memory().q, whole.q)
    stored.in_memory().save(finished.parent / "copy.npz")


def test_xarray_reads_what_it_needs(finished):
    xarray = pytest.importorskip("xarray")
    whole = la.integrate(PENDULUM, "simpson", **BEGIN, steps=300)
    shutil.rmtree(finished / "p" / "c" / "3")
    data = la.open(finished).to_xarray()
    np.testing.assert_array_equal(data.q.sel(t=slice(1.0, 1.5)).values, whole.q[100:151])
    np.testing.assert_array_equal(data.p.isel(t=[3, 70], dof=0).values, whole.p[[3, 70], 0])
    with pytest.raises(la.StoreError):
        data.p.load()
    with xarray.open_zarr(finished, consolidated=False, chunks=None) as plain:
        np.testing.assert_array_equal(plain.q.values, whole.q)
        np.testing.assert_array_equal(plain.t.values, whole.t)


def test_memory_does_not_grow_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_module, "BLOCK_BYTES", 2**15)

    def peak(steps):
        tracemalloc.start()
        la.integrate(PENDULUM, "simpson", **BEGIN, steps=steps, store=tmp_path / f"{steps}.zarr")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(5_000)  # imports
    few, many = 10_000, 100_000
    assert peak(many) < peak(few) + (many - few) * 4 * 8 / 10  # a tenth of the states
