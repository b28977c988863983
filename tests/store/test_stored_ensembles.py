"""Stored ensembles: extended, killed and resumed bit for bit; bounded memory; damage, and readers of all kinds."""

from __future__ import annotations

import json
import pickle
import shutil
import signal
import time
import tracemalloc
from functools import cache

import numpy as np
import pytest

import leastaction as la
from damage import HOW, spoil
from interrupts import pressed_after
from leastaction.run import Status, archive, drive
from processes import started, wait_for
from seeds import generator

zarr = pytest.importorskip("zarr")


def double_pendulum(q, v, m, g):
    T = 0.5 * (1 + m) * v[0] ** 2 + 0.5 * m * v[1] ** 2 + m * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (1 + m) * g * np.cos(q[0]) + m * g * np.cos(q[1])


def wells(q, v, k):
    """Oscillators, and one coordinate that must stay positive."""
    return 0.5 * (v @ v) + 0.05 * k * np.sqrt(q[0]) - 0.5 * (q[1:] @ q[1:])


B = 21
FALLS = 5
LANES = la.Lagrangian(wells, n=2, params={"k": 1.0})
SINGLES = la.Lagrangian(wells, n=9, params={"k": 1.0})
KINDS = {"lanes": (LANES, "simpson"), "rk4": (LANES, "rk4-lagrange"), "large": (SINGLES, "simpson")}
REDUCE = {"E": la.EnergyRange()}
EVENTS = {
    "x": la.Event(lambda q, p: q[1] - 0.2, most=3),
    "y": la.Event(lambda q, p: p[1] + 0.3),
    "far": la.Event(lambda t, q, p: q[0] - 3.5, stop=True),
    "wall": la.Impact(lambda q: 1.6 - q[1], restitution=0.9),
}


def run(kind="lanes", **options):
    """Some trajectories of which one fails, some are stopped early, some late, and one cannot begin."""
    system, method = KINDS[kind]
    rng = np.random.default_rng(10)
    Q, V = rng.uniform(0.5, 1.5, (B, system.n)), rng.normal(0, 0.1, (B, system.n))
    V[:, 0] = rng.permutation(np.linspace(0.0, 1.5, B))
    V[FALLS, 0] = -1.0
    Q[7] = 0.0
    options = {"h": 0.05, "params": {"k": rng.uniform(0.5, 1, B)}, "reduce": REDUCE, "events": EVENTS, **options}
    return la.ensemble(system, method, Q, v0=V, **options)


@cache
def in_memory(kind, steps, every):
    return run(kind, steps=steps, **({"every": every} if every else {"final_only": True}))


def same(stored, paths):
    for name in ("q", "p", "t", "status", "steps", "values"):
        np.testing.assert_array_equal(np.asarray(getattr(stored, name)), getattr(paths, name), err_msg=name)
    assert stored.reduced.keys() == paths.reduced.keys()
    for name, found in paths.reduced.items():
        np.testing.assert_array_equal(stored.reduced[name], found, err_msg=name)
    assert stored.events.keys() == paths.events.keys()
    for name, found in paths.events.items():
        np.testing.assert_array_equal(stored.events[name].count, found.count, err_msg=name)
        np.testing.assert_array_equal(stored.events[name].table(), found.table(), err_msg=name)
    np.testing.assert_array_equal(stored.end_time, paths.end_time)
    for name in ("newton_iterations", "continued"):
        assert stored.stats[name] == paths.stats[name]


@pytest.fixture
def small(monkeypatch):
    """Few trajectories in a chunk, few rows in a block."""
    monkeypatch.setattr(archive, "BLOCK_BYTES", 8 * 2 * 8 * 12)
    monkeypatch.setattr(archive, "USUAL_ROWS", 1)


@pytest.fixture
def restless(monkeypatch):
    """A checkpoint after the smallest piece of work."""
    monkeypatch.setattr(archive, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(drive, "PIECE_SECONDS", 0.0)
    monkeypatch.setattr(drive, "first_piece", lambda plan: 16)


# ---------------------------------------------------------------------------------------- extensions


def test_the_example_has_trajectories_of_every_kind():
    for kind in KINDS:
        paths = in_memory(kind, 100, 7)
        assert paths.failed[FALLS] and paths.steps[FALLS] > 7
        assert paths.failed[7] and paths.steps[7] == 0
        assert (paths.status == Status.STOPPED).any() and (paths.status == Status.COMPLETE).any()
        assert (in_memory(kind, 133, 7).status == Status.STOPPED).sum() > (paths.status == Status.STOPPED).sum()


def cases(*quick):
    """Kinds of runs and `every`, of which all but the quick ones are slow."""
    every = [(kind, every) for kind in KINDS for every in (1, 3, 7, 0)]
    return [case if case in quick else pytest.param(*case, marks=pytest.mark.slow) for case in every]


@pytest.mark.parametrize(("kind", "every"), cases(("lanes", 7), ("lanes", 0), ("rk4", 7), ("large", 0)))
def test_an_extended_ensemble_is_the_uninterrupted_one(tmp_path, small, kind, every):
    file = tmp_path / "run.zarr"
    how = {"every": every} if every else {"final_only": True}
    same(run(kind, steps=40, **how, store=file), in_memory(kind, 40, every))
    for more, total in ((60, 100), (33, 133)):
        same(la.resume(file, steps=more, threads=2), in_memory(kind, total, every))
    same(la.open(file), in_memory(kind, 133, every))
    same(la.resume(file), in_memory(kind, 133, every))


@pytest.mark.parametrize(("kind", "every"), cases(("lanes", 0), ("large", 0)))
def test_from_whatever_checkpoint(tmp_path, small, restless, kind, every, monkeypatch):
    """Every stretch as short as can be, in a run that is ended in the middle again and again."""
    monkeypatch.setattr("leastaction.run.drive.BLOCK", 40)
    file = tmp_path / "run.zarr"
    taken = []
    take = archive._OnDisk.take

    def ended(chunk, block):
        take(chunk, block)
        taken.append(chunk.begin)
        if len(taken) % 3 == 0:
            raise RuntimeError("ended here")

    monkeypatch.setattr(archive._OnDisk, "take", ended)
    how = {"every": every} if every else {"final_only": True}
    with pytest.raises(RuntimeError, match="ended here"):
        run(kind, steps=100, **how, store=file, threads=1)
    steps, extended = 100, False
    for _ in range(1000):
        paths = la.open(file)
        pending = paths.status == Status.PENDING
        assert (paths.steps[pending] < steps).all()
        whole = in_memory(kind, steps, every)
        q = np.asarray(paths.q)
        there = np.isfinite(q)
        np.testing.assert_array_equal(q[there], whole.q[there])
        np.testing.assert_array_equal(there[~pending], np.isfinite(whole.q)[~pending])
        if every:
            begun = pending & (paths.steps > 0)
            assert (there.all(axis=2).sum(axis=1)[begun] == paths.steps[begun] // every + 1).all()
        if not pending.any():
            break
        try:
            if len(taken) > 3 and not extended:
                steps, extended = 133, True
                la.resume(file, steps=33, threads=1)
            else:
                la.resume(file, threads=1)
        except RuntimeError:
            pass
    assert extended
    same(la.open(file), in_memory(kind, 133, every))


def test_a_plan_once_made_is_kept(tmp_path, small):
    """As if killed right after more steps were planned, before anything else; and asked for more again."""
    file = tmp_path / "run.zarr"
    run(steps=40, every=7, store=file)
    archive.Disk.open(archive.Archive.open(file, write=True)).extend(100)
    paths = la.open(file)
    assert len(paths.t) == len(in_memory("lanes", 100, 7).t)
    ended = in_memory("lanes", 40, 7).status != Status.COMPLETE
    assert (paths.status[~ended] == Status.PENDING).all() and (paths.steps[~ended] == 40).all()
    assert np.isnan(paths.q[:, 6:]).all()  # the state after 40 steps is not among those stored any more
    np.testing.assert_array_equal(paths.q[:, :6], in_memory("lanes", 40, 7).q[:, :6])
    same(la.resume(file, steps=33), in_memory("lanes", 133, 7))


def test_times_until_an_end_and_beyond(tmp_path):
    file = tmp_path / "run.zarr"
    stored = run(t_end=1.99, every=7, store=file)
    same(stored, run(t_end=1.99, every=7))
    assert stored.t[-1] == 1.99
    more = la.resume(file, steps=9)
    np.testing.assert_array_equal(more.t[:6], stored.t[:6])
    np.testing.assert_allclose(np.diff(more.t), 7 * stored.h, rtol=1e-12)


def test_resume_says_what_it_cannot_do(tmp_path):
    file = tmp_path / "run.zarr"
    run(steps=10, store=file)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="steps must be a positive integer"):
            la.resume(file, steps=wrong)
    with pytest.raises((TypeError, ImportError), match=r"Client|dask"):
        la.resume(file, steps=10, client="tcp://somewhere")
    with pytest.raises(la.StoreError, match=r"exists; la\.resume"):
        run(steps=10, store=file)
    assert len(la.open(file).t) == 11
    with pytest.raises((TypeError, ImportError), match=r"Client|dask"):
        run(steps=10, store=tmp_path / "none.zarr", client="tcp://somewhere")
    assert not (tmp_path / "none.zarr").exists()


def test_a_state_of_another_version_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "run.zarr"
    run(steps=10, store=file)
    read = archive.standing_of

    def other(checkpoint):
        standing = read(checkpoint)
        standing.state["other"] = standing.state.popitem()[1]
        return standing

    monkeypatch.setattr(archive, "standing_of", other)
    with pytest.raises(la.StoreError, match="the version that wrote it"):
        la.resume(file, steps=10)


# ---------------------------------------------------------------------------------------------- kills

SCRIPT = """
import sys
import numpy as np
import leastaction as la
from leastaction.run import archive

def L(q, v, w):
    return 0.5 * v[0] ** 2 + w * np.cos(q[0])

archive.BLOCK_BYTES = 2**14
archive.CHECKPOINT_SECONDS = 0.02
file, steps, how = sys.argv[1:]
if how == "new":
    system = la.Lagrangian(L, n=1, params={"w": 1.0})
    events = {"x": la.Event(lambda q, p: q[0], most=50)}
    w = np.linspace(1, 4, 96)
    la.ensemble(system, "simpson", [1.0], [0.0], params={"w": w}, h=0.01, steps=int(steps), every=30,
                reduce={"E": la.EnergyRange()}, events=events, store=file, threads=2)
elif how == "more":
    la.resume(file, steps=int(steps))
else:
    la.resume(file)
"""


def pendulums(steps):
    system = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 + w * np.cos(q[0]), n=1, params={"w": 1.0})
    events = {"x": la.Event(lambda q, p: q[0], most=50)}
    options = {"params": {"w": np.linspace(1, 4, 96)}, "h": 0.01, "steps": steps, "every": 30}
    return la.ensemble(system, "simpson", [1.0], [0.0], **options, reduce={"E": la.EnergyRange()}, events=events)


def begin(file, steps, how):
    return started(SCRIPT, file, steps, how)


def killed(process):
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_killed_at_random_moments_also_while_extended(tmp_path):
    rng = generator()
    file, first, more = tmp_path / "run.zarr", 60_000, 20_011
    process = begin(file, first, "new")
    wait_for(lambda: list(file.glob("checkpoint/chunk-*")))
    with pytest.raises(la.StoreError, match=f"another process .number {process.pid}"):
        la.resume(file, steps=3)
    time.sleep(rng.uniform(0.0, 0.4))
    kills = killed(process)
    partial = la.open(file)
    assert ((partial.status == Status.PENDING) == (partial.steps < first)).all()
    process = begin(file, more, "more")
    state = (file / "checkpoint" / "state").read_bytes()
    wait_for(lambda: (file / "checkpoint" / "state").read_bytes() != state)
    time.sleep(rng.uniform(0.0, 0.6))
    kills += killed(process)
    assert archive.Disk.open(archive.Archive.open(file)).plan.steps == first + more
    whole = pendulums(first + more)
    partial = la.open(file)
    q = np.asarray(partial.q)
    there = np.isfinite(q)
    np.testing.assert_array_equal(q[there], whole.q[there])
    process = begin(file, 0, "on")
    time.sleep(rng.uniform(0.0, 0.3))
    killed(process)
    same(la.resume(file), whole)


def test_opened_while_running(tmp_path):
    file = tmp_path / "run.zarr"
    process = begin(file, 10**8, "new")
    try:
        wait_for(lambda: list(file.glob("checkpoint/chunk-*")), process)
        first = la.open(file)
        i = int(first.steps.argmax())
        assert first.steps[i] > 0
        wait_for(lambda: la.open(file).steps[i] > first.steps[i], process)
        later = la.open(file)
        assert (later.status == Status.PENDING).all()
        assert (later.steps >= first.steps).all()
        rows, before = int(later.steps[i]) // 30 + 1, int(first.steps[i]) // 30 + 1
        assert np.isfinite(later.q[i, :rows]).all() and np.isnan(later.q[i, rows : rows + 100]).all()
        np.testing.assert_array_equal(first.p[i, :before], later.p[i, :before])
        few = min(rows, 1000)
        np.testing.assert_array_equal(later.q[i, :few], pendulums(30 * (few - 1)).q[i])
    finally:
        process.kill()
        process.wait()


def test_interrupted_by_the_keyboard(tmp_path):
    file = tmp_path / "run.zarr"
    alone = {"reduce": None, "events": None}  # no event ends a trajectory before the key is pressed
    with pressed_after(1000), pytest.warns(RuntimeWarning, match=r"interrupted; .* la\.resume"):
        stored = run("rk4", steps=100_000_000, every=10_000, store=file, **alone)
    assert stored.stats["interrupted"] and (stored.status == Status.PENDING).any()
    assert stored.steps.sum() > 0  # what was done before is not lost


# -------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("kind", ["lanes", "rk4"])
def test_memory_does_not_grow_with_the_run(tmp_path, monkeypatch, kind):
    for name in ("BLOCK_BYTES", "TABLE_BYTES"):
        monkeypatch.setattr(archive, name, 2**16)
    monkeypatch.setattr("leastaction.run.view.TIMES", 2**10)
    system, method = KINDS[kind]

    def peak(steps):
        file = tmp_path / f"{steps}.zarr"
        tracemalloc.start()
        paths = la.ensemble(system, method, np.ones((8, 2)), [0.1, 0.0], h=0.01, steps=steps, store=file, threads=1)
        assert len(paths.q[3, ::1000]) == steps // 1000 + 1 and paths.t[-1] == pytest.approx(0.01 * steps)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(1_000)  # imports
    few, many = 2_000, 20_000
    assert peak(many) < peak(few) + (many - few) * 8 * 4 * 8 / 10  # a tenth of the states


# -------------------------------------------------------------------------------------------- damage


@pytest.fixture
def finished(tmp_path, small):
    file = tmp_path / "run.zarr"
    run(steps=133, every=3, store=file)
    return file


@pytest.mark.parametrize("how", HOW)
def test_a_damaged_block_is_noticed_and_the_rest_is_readable(finished, how):
    whole = in_memory("lanes", 133, 3)
    disk = archive.Disk.open(archive.Archive.open(finished))
    chunk = FALLS // disk.length
    spoil(finished / "q" / "c" / str(chunk) / "0" / "0", how)
    stored = la.open(finished)
    for i in (FALLS, chunk * disk.length):
        with pytest.raises(la.StoreError, match=r"damaged|missing"):
            stored.q[i]
        np.testing.assert_array_equal(stored.q[i, disk.rows :], whole.q[i, disk.rows :])
        np.testing.assert_array_equal(stored.p[i], whole.p[i])
    others = [i for i in range(B) if i // disk.length != chunk]
    assert others
    for i in others:
        np.testing.assert_array_equal(stored.q[i], whole.q[i])


@pytest.mark.parametrize("status", [Status.STOPPED, Status.COMPLETE])
def test_rows_that_are_missing_are_noticed_in_whatever_way_a_trajectory_ended(finished, status):
    whole = in_memory("lanes", 133, 3)
    disk = archive.Disk.open(archive.Archive.open(finished))
    i = np.flatnonzero(whole.status == status)[-1]
    rows = int(whole.steps[i]) // 3 + 1
    shutil.rmtree(finished / "p" / "c" / str(i // disk.length) / str((rows - 1) // disk.rows))
    with pytest.raises(la.StoreError, match="missing"):
        la.open(finished).p[i]
    with pytest.raises(la.StoreError, match="missing"):
        la.resume(finished, steps=5)  # fails at the latest when it needs the rows: nothing is invented
        np.asarray(la.open(finished).p)


def test_a_damaged_checkpoint_is_noticed(finished):
    whole = in_memory("lanes", 133, 3)
    spoil(finished / "checkpoint" / "chunk-1", "changed")
    disk = archive.Disk.open(archive.Archive.open(finished))
    lost = np.arange(B) // disk.length == 1
    with pytest.warns(RuntimeWarning, match=r"chunk-1 is damaged.*shown as not run"):
        stored = la.open(finished)
    assert (stored.status[lost] == Status.PENDING).all()
    np.testing.assert_array_equal(stored.status[~lost], whole.status[~lost])
    np.testing.assert_array_equal(np.asarray(stored.q)[~lost], whole.q[~lost])
    with pytest.raises(la.StoreError, match="chunk-1 is damaged"):
        la.resume(finished, steps=3)
    (finished / "checkpoint" / "chunk-1").unlink()
    same(la.resume(finished), whole)  # more was not planned either
    (finished / "checkpoint" / "state").unlink()
    for use in (la.open, la.resume):
        with pytest.raises(la.StoreError, match="no checkpoint"):
            use(finished)


@pytest.mark.parametrize("name", ["start_q", "start_p", "start_params", "start_status"])
def test_a_start_that_is_missing_is_noticed(finished, name):
    """A missing array would be read as zeros, and zeros are a possible start."""
    path, shape = finished, la.open(finished).q.shape
    shutil.rmtree(path / name / "c")
    with pytest.raises(la.StoreError, match=f"{name} (are|is) missing"):
        la.resume(path, steps=1)
    if name != "start_params":
        assert la.open(path).q.shape == shape  # no more is planned
    shutil.rmtree(path / name)
    with pytest.raises(la.StoreError, match=f"its array {name} is missing"):
        la.resume(path)


def test_a_damaged_note_for_other_readers_is_no_obstacle(finished):
    (finished / "checkpoint" / "told").write_bytes(b"?")
    paths = la.resume(finished)
    np.testing.assert_array_equal(zarr.open_group(finished, mode="r")["t"][:], paths.t[:])


def test_plans_beyond_counting_or_telling_times_apart_are_refused_and_not_recorded(finished, tmp_path):
    shape = la.open(finished).q.shape
    with pytest.raises(ValueError, match="too long to be counted"):
        la.resume(finished, steps=10**30)
    assert la.open(finished).q.shape == shape
    driven = la.Lagrangian(lambda t, q, v: 0.5 * v[0] ** 2 - np.cos(t) * q[0], n=1)
    far = {"h": 0.1, "t0": 1e12, "final_only": True}
    la.ensemble(driven, "simpson", [1.0], [0.0], steps=1, store=tmp_path / "far.zarr", **far)
    with pytest.raises(ValueError, match="lost in the rounding"):
        la.resume(tmp_path / "far.zarr", steps=8 * 10**15)
    assert la.open(tmp_path / "far.zarr").t[-1] < 1e12 + 1
    with pytest.raises(ValueError, match="lost in the rounding"):
        la.ensemble(driven, "simpson", [1.0], [0.0], steps=1, **far | {"t0": 1e17})


def test_archives_of_the_older_layout_are_refused_and_left_alone(finished):
    description = json.loads((finished / "zarr.json").read_text())
    description["attributes"]["format"] = 1
    (finished / "zarr.json").write_text(json.dumps(description))
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    for use in (la.open, la.resume):
        with pytest.raises(la.StoreError, match=r"format 1 of a stored ensemble.* format 10"):
            use(finished)
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before


def test_what_no_checkpoint_counts_is_dropped(tmp_path, small):
    file = tmp_path / "run.zarr"
    run(steps=40, every=3, store=file)
    disk = archive.Disk.open(archive.Archive.open(file))
    folder = file / "q" / "c" / "0" / str(disk.plan.kept // disk.rows + 1)
    folder.mkdir()
    (folder / "0").write_bytes(b"half a block")
    (folder / "0.123.partial").write_bytes(b"and a temporary file")
    (file / "checkpoint" / ".new-abc").write_bytes(b"half a checkpoint")
    same(la.open(file), in_memory("lanes", 40, 3))
    same(la.resume(file, steps=93), in_memory("lanes", 133, 3))
    assert not list(file.rglob("*.partial")) and not list(file.rglob(".new-*"))


def test_half_a_block_is_not_read_when_it_is_written_again(tmp_path, small):
    """Another thread has made the array longer, so that a block that ends early is a part of its chunk."""
    file = tmp_path / "run.zarr"
    run(steps=40, every=3, store=file)
    disk = archive.Disk.open(archive.Archive.open(file, write=True))
    block = disk.plan.kept // disk.rows + 1
    disk.archive.grow("q", (block + 1) * disk.rows, 1)
    chunk = disk.archive.path / "q" / "c" / "0" / str(block) / "0"
    chunk.parent.mkdir()
    chunk.write_bytes(b"half a block")
    values, first = np.ones((disk.length, disk.rows - 1, 2)), block * disk.rows
    disk.archive.put("q", (0, first), values)
    found = zarr.open_group(file, mode="r")["q"][: disk.length, first : first + disk.rows - 1]
    np.testing.assert_array_equal(found, values)


# ------------------------------------------------------------------------------------------- readers


@pytest.mark.parametrize("how", [{"every": 3}, {"final_only": True}])
def test_zarr_and_xarray_alone_read_a_run_that_has_ended(tmp_path, small, how):
    xarray = pytest.importorskip("xarray")
    file = tmp_path / "run.zarr"
    run(steps=40, **how, store=file)
    la.resume(file, steps=60)
    paths = run(steps=100, **how)
    group = zarr.open_group(file, mode="r")
    for name in ("q", "p", "t", "status", "steps"):
        np.testing.assert_array_equal(group[name][:], getattr(paths, name), err_msg=name)
    np.testing.assert_array_equal(group["energy"][:], paths.reduced["E"])
    with xarray.open_zarr(file, consolidated=False, chunks=None) as plain:
        np.testing.assert_array_equal(plain.q.values, paths.q)
        np.testing.assert_array_equal(plain.t.values, paths.t)


def test_lazy_arrays_read_what_they_need(finished):
    whole = in_memory("lanes", 133, 3)
    stored = la.open(finished)
    keys = [
        0, -1, slice(None), slice(3, 15, 4), (4, 7), (slice(None), -1), (slice(2, 20, 3), slice(30, 2, -4), 1),
        (slice(None, None, -1), slice(40, None)), (5, slice(None), 0), [1, 5, 20], whole.failed, (slice(5, 5), 3),
        (np.int64(3), slice(1, 9)), ..., (slice(None), [0, 3]),
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(stored.q[key], whole.q[key], err_msg=str(key))
    for key in [(B, 0), (0, 99), (0, 0, 2)]:
        with pytest.raises(IndexError):
            stored.q[key]
    np.testing.assert_array_equal(stored.q - 2 * stored.p, whole.q - 2 * whole.p)
    np.testing.assert_array_equal(stored.energy(), whole.energy())
    np.testing.assert_array_equal(stored[3].q, whole[3].q)
    assert stored[3].params == whole[3].params
    disk = archive.Disk.open(archive.Archive.open(finished))
    chunk = int(whole.steps.argmax()) // disk.length  # it has a second block, however many lanes there are
    shutil.rmtree(finished / "q" / "c" / str(chunk) / "1")
    np.testing.assert_array_equal(stored.q[:, : disk.rows], whole.q[:, : disk.rows])
    for others in (slice(chunk * disk.length), slice((chunk + 1) * disk.length, None)):
        np.testing.assert_array_equal(stored.q[others], whole.q[others])
    data = stored.to_xarray()
    np.testing.assert_array_equal(data.q.isel(t=slice(0, disk.rows)).values, whole.q[:, : disk.rows])
    with pytest.raises(la.StoreError):
        data.q.load()


def test_a_reader_keeps_what_it_saw_while_the_run_goes_on(tmp_path, small):
    file = tmp_path / "run.zarr"
    early = run(steps=40, every=7, store=file)
    la.resume(file, steps=60)
    same(early, in_memory("lanes", 40, 7))


def test_an_archive_stays_readable_from_another_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = run(steps=10, store="run.zarr")
    monkeypatch.chdir("/")
    assert np.isfinite(paths.q[0]).all()


def test_there_is_work_for_every_thread(tmp_path):
    file = tmp_path / "run.zarr"
    system, method = KINDS["lanes"]
    la.ensemble(system, method, np.ones((200, 2)), [0.1, 0.0], h=0.01, steps=10, store=file, threads=16)
    assert len(list(file.glob("checkpoint/chunk-*"))) >= 16


def test_stored_paths_can_be_pickled(tmp_path):
    stored = run(steps=10, every=5, store=tmp_path / "run.zarr")
    travelled = pickle.loads(pickle.dumps(stored))
    assert isinstance(travelled.q, np.ndarray)
    np.testing.assert_array_equal(travelled.q, stored.q)
    np.testing.assert_array_equal(travelled.t, stored.t)


def test_an_ensemble_goes_on_until_a_time(tmp_path):
    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    start = {"q0": np.linspace(0.5, 1.0, 3)[:, None], "p0": np.zeros((3, 1)), "h": 0.1}
    la.ensemble(system, "simpson", **start, steps=10, store=tmp_path / "run.zarr")
    longer = la.resume(tmp_path / "run.zarr", t_end=2.5)
    whole = la.ensemble(system, "simpson", **start, steps=25)
    np.testing.assert_array_equal(longer.q[:], whole.q)
    with pytest.raises(ValueError, match="before the planned end"):
        la.resume(tmp_path / "run.zarr", t_end=1.0)
