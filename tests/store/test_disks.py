"""Disks that refuse: full, read-only, or with a limit. What was counted before stays, and the run goes on elsewhere."""

from __future__ import annotations

import errno
import os
import pwd
import resource
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.run import archive

pytest.importorskip("zarr")

SYSTEM = la.Lagrangian(lambda q, v, w: 0.5 * v[0] ** 2 + w * np.cos(q[0]), n=1, params={"w": 1.0})


def path(steps, **options):
    return la.integrate(SYSTEM, "simpson", [1.0], [0.0], h=0.01, steps=steps, **options)


def ensemble(steps, **options):
    w = {"w": np.linspace(1, 2, 16)}
    return la.ensemble(SYSTEM, "simpson", [1.0], [0.0], params=w, h=0.01, steps=steps, threads=2, **options)


both = pytest.mark.parametrize("run", [path, ensemble])


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 rows and less, so that short runs have many."""
    monkeypatch.setattr(archive, "BLOCK_BYTES", 2**9)
    monkeypatch.setattr(archive, "USUAL_ROWS", 1)


def same(stored, whole):
    for name in ("t", "q", "p"):
        np.testing.assert_allclose(
            np.asarray(getattr(stored, name)), getattr(whole, name), rtol=1e-15 if name == "t" else 0
        )


@both
def test_a_disk_that_refuses_costs_nothing_that_was_counted(tmp_path, small_chunks, monkeypatch, run):
    file = tmp_path / "run.zarr"
    run(100, store=file)

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(la.StoreError, match=r"disk is full.*up to its last checkpoint is safe") as caught:
            la.resume(file, steps=200)
    assert caught.value.errno == errno.ENOSPC
    same(la.open(file), run(100))
    same(la.resume(file, steps=200), run(300))


@pytest.mark.parametrize(("run", "steps"), [(path, 100_000), (ensemble, 10_000)])
def test_a_disk_that_is_full(tmp_path, monkeypatch, run, steps):
    """A real one, of one megabyte."""
    monkeypatch.setattr(archive, "BLOCK_BYTES", 2**15)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if made.returncode:
        pytest.skip(f"no disk may be mounted here: {made.stderr.strip()}")
    try:
        with pytest.raises(la.StoreError, match=r"disk is full.*up to its last checkpoint is safe") as caught:
            run(steps, store=disk / "run.zarr")
        assert caught.value.errno == errno.ENOSPC
        assert np.asarray(la.open(disk / "run.zarr").q[..., :1]).size  # it can be read …
        shutil.copytree(disk / "run.zarr", tmp_path / "run.zarr")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    same(la.resume(tmp_path / "run.zarr"), run(steps))  # … and goes on where there is room


@pytest.mark.parametrize("kind", ["path", "ensemble"])
def test_files_that_may_not_grow(tmp_path, kind):
    """The system itself refuses: no file may be larger than 20 kB."""
    file = tmp_path / "run.zarr"
    script = """
        import resource, signal, sys
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        import leastaction as la
        limit = 20_000
        system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, n=1)
        run = la.integrate if sys.argv[2] == "path" else la.ensemble
        run(system, "simpson", [1.0], [0.0], h=0.1, steps=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        run(system, "simpson", [1.0], [0.0], h=0.1, steps=1_000_000, store=sys.argv[1])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(file), kind], capture_output=True, text=True, check=False
    )
    assert "StoreError" in done.stderr, done.stderr
    assert "too large" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    assert len(la.open(file).t) >= 1
    if kind == "path":
        assert len(la.resume(file, steps=100)) == 101


@both
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a directory that nobody may write to")
def test_a_place_that_cannot_be_written(run):
    with pytest.raises(la.StoreError, match="cannot write"):
        run(10, store="/proc/run.zarr")


READER = """
import os, pwd, sys
import numpy as np
import leastaction as la

spare, file = sys.argv[1:]
la.resume(spare, steps=1)  # so that everything is imported and compiled
nobody = pwd.getpwnam("nobody")
if os.geteuid() == 0:  # who may write everywhere
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
print(np.isfinite(np.asarray(la.open(file).q)).all())
try:
    la.resume(file, steps=10)
except la.StoreError as error:
    print(error)
"""


@both
def test_a_read_only_archive_can_be_opened_but_not_resumed(run):
    try:
        pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no user called nobody")
    with tempfile.TemporaryDirectory() as name:  # where everybody can look, unlike in pytest's
        folder = Path(name)
        folder.chmod(0o755)
        file, spare = folder / "run.zarr", folder / "spare.zarr"
        run(100, store=file)
        shutil.copytree(file, spare)
        for item in [file, *file.rglob("*")]:
            item.chmod(0o555 if item.is_dir() else 0o444)
        before = {item: item.read_bytes() for item in file.rglob("*") if item.is_file()}
        command = [sys.executable, "-c", READER, str(spare), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for item in [file, *file.rglob("*")]:
            item.chmod(0o755)
        assert done.stdout.splitlines()[0] == "True", done.stderr
        assert "no permission to write" in done.stdout
        assert {item: item.read_bytes() for item in file.rglob("*") if item.is_file()} == before
