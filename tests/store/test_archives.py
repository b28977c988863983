"""Archives: damage is noticed, creation is exclusive, permissions are those of the user."""

import contextlib
import json
import multiprocessing
import os
import shutil
import stat
import time

import numpy as np
import pytest

import leastaction as la
from hostile_workers import kepler, race
from seeds import generator

FLIPS = 60  # of single characters; `slow` tries so many times more
RACES = 6
MORE = 10
START = {"q0": [1.0, 0.0], "p0": [0.0, 1.1], "h": 0.1}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    system = la.Lagrangian(kepler, n=2)
    la.integrate(system, "simpson", **START, steps=30, store=folder / "path")
    la.ensemble(system, "simpson", np.eye(2), [[0.0, 1.1]], h=0.1, steps=30, store=folder / "ensemble")
    return folder


def look(file):
    """All numbers of an archive, as they are shown."""
    run = la.open(file)
    numbers = [run.energy(), np.asarray(run.q), np.asarray(run.t), np.array(run.h), np.array(sorted(run.stats.items()))]
    return [*numbers, run([0.05, 1.23])] if isinstance(run, la.Path) else numbers


def same(first, second):
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, second, strict=True))


def flips(folder, whole, names, rng, count):
    """Flip characters: the archive shows what it showed, or says that it is damaged."""
    for kind in ("path", "ensemble"):
        before = look(whole / kind)
        for _ in range(count // 2):
            file = folder / kind
            shutil.rmtree(file, ignore_errors=True)
            shutil.copytree(whole / kind, file)
            target = rng.choice(sorted(file.glob(names)))
            data = bytearray(target.read_bytes())
            place = int(rng.integers(len(data)))
            data[place] = int(rng.choice(list(b'0123456789abc "[{,:pxN-')))
            target.write_bytes(data)
            around = bytes(data[max(0, place - 20) : place + 20])
            with contextlib.suppress(la.StoreError):
                assert same(look(file), before), f"{target.relative_to(file)}, byte {place}: {around}"


def test_flips_in_the_header_are_noticed(tmp_path, archives):
    flips(tmp_path, archives, "zarr.json", generator(), FLIPS)


def test_flips_in_the_metadata_of_arrays_are_noticed(tmp_path, archives):
    flips(tmp_path, archives, "*/zarr.json", generator(), FLIPS)


@pytest.mark.slow
@pytest.mark.parametrize("names", ["zarr.json", "*/zarr.json"])
def test_flips_are_noticed_at_length(tmp_path, archives, names):
    flips(tmp_path, archives, names, generator(), FLIPS * MORE)


def test_another_step_in_the_header_is_no_other_step_of_the_run(tmp_path, archives):
    """The report's own case: one digit of h."""
    file = tmp_path / "run"
    shutil.copytree(archives / "path", file)
    header = (file / "zarr.json").read_text()
    assert "0x1.999999999999ap-4" in header
    (file / "zarr.json").write_text(header.replace("0x1.999999999999ap-4", "0x1.999999999899ap-4"))
    for use in (la.open, la.resume):
        with pytest.raises(la.StoreError, match="checksum"):
            use(file)


def test_chunks_of_another_byte_order_are_refused(tmp_path, archives):
    file = tmp_path / "run"
    shutil.copytree(archives / "path", file)
    metadata = json.loads((file / "q" / "zarr.json").read_text())
    metadata["codecs"][0]["configuration"]["endian"] = "big"
    (file / "q" / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(la.StoreError, match="encoded"):
        la.open(file).q[:]


def races(folder, count):
    """Two processes begin the same new archive at once: exactly one succeeds, and the header is that of its run."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(race, [(str(folder / f"warm-{k}"), 0.1, 0.0) for k in range(2)], 1)
        for k in range(count):
            file = folder / f"run-{k}"
            at = time.time() + 0.3
            outcomes = pool.map(race, [(str(file), h, at) for h in (0.1, 0.2)], 1)
            winners = [h for h, outcome in zip((0.1, 0.2), outcomes, strict=True) if outcome == "done"]
            assert len(winners) == 1, outcomes
            assert any("exists" in outcome for outcome in outcomes), outcomes
            run = la.open(file)
            assert run.h == winners[0] and run.standing == "complete"


def test_of_two_runs_at_once_one_begins(tmp_path):
    races(tmp_path, RACES)


@pytest.mark.slow
def test_of_two_runs_at_once_one_begins_at_length(tmp_path):
    races(tmp_path, RACES * MORE)


def test_an_archive_in_the_making_is_locked(tmp_path, archives):
    from leastaction.store.archive import Archive

    header = Archive.open(archives / "path").header
    with Archive.creating(tmp_path / "run", header, {}, lambda archive: None):
        with pytest.raises(la.StoreError, match="being written by another process"):
            la.resume(tmp_path / "run")
        with (
            pytest.raises(la.StoreError, match="exists"),
            Archive.creating(tmp_path / "run", header, {}, lambda archive: None),
        ):
            pass


def test_half_a_chunk_that_a_killed_run_left_is_written_anew(tmp_path, archives):
    """Also where the new rows end inside the chunk, since another thread has made the array longer meanwhile."""
    from leastaction.store.archive import Archive

    shutil.copytree(archives / "path", tmp_path / "run")
    archive = Archive.open(tmp_path / "run", write=True)
    cut, rows = archive.cut("q"), np.full((3, 2), 1.5)
    with archive.writing():
        archive.grow("q", 3 * cut, 0)
        archive.put("q", (cut, 0), rows)
        (half,) = (tmp_path / "run/q/c/1").rglob("*")
        half.write_bytes(half.read_bytes()[:7])
        archive.put("q", (cut, 0), rows)
    assert (archive.read("q", (cut, cut + 3)) == rows).all()


@pytest.mark.parametrize("mask", [0o022, 0o002, 0o077])
def test_files_have_the_permissions_that_the_user_wants(tmp_path, mask):
    before = os.umask(mask)
    try:
        la.integrate(la.Lagrangian(kepler, n=2), "simpson", **START, steps=5, store=tmp_path / "run")
        la.integrate(la.Lagrangian(kepler, n=2), "simpson", **START, steps=5).save(tmp_path / "path")
    finally:
        os.umask(before)
    for file in [*(tmp_path / "run").rglob("*"), tmp_path / "path"]:
        wanted = (0o777 if file.is_dir() else 0o666) & ~mask
        assert stat.S_IMODE(file.stat().st_mode) == wanted, file
