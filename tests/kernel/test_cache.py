"""Machine code on disk: shared between processes, and never a wrong answer from a damaged, missing or locked cache."""

import gc
import itertools
import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import leastaction as la
from leastaction.kernel import cache, compile_program
from leastaction.kernel import compile as compile_module
from leastaction.program import Program
from leastaction.step.stepper import Start
from native import evaluate

# A run, which prints every bit of its result.
CODE = """
import leastaction as la
system = la.Lagrangian(lambda q, v: 0.5 * v @ v + 0.1 * q[0] * v[1] - 0.25 * (q @ q) ** 2, n=2)
path = la.integrate(system, "simpson", [1.0, 0.2], [0.1, 0.3], h=0.05, steps=50)
print(path.q.tobytes().hex(), path.energy().tobytes().hex())
"""


def run(folder, says=""):
    """The result with this cache directory, from a fresh process; and what it says."""
    environment = {**os.environ, "LEASTACTION_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("leastaction: compil")]
    assert says in done.stderr if says else not said
    return done.stdout


def run_four_at_once(folder):
    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(lambda _: run(folder), range(4)))
    assert len(answers) == 1
    return answers.pop()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache that four processes have filled, which started at once; and their answer."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, run_four_at_once(folder)


def entries(folder):
    return sorted(path for path in folder.iterdir() if path.name != cache.LOOKED)


def test_processes_starting_at_once_share_a_cache(filled):
    """All give the same bits, and leave whole entries and nothing else behind."""
    folder, answer = filled
    assert entries(folder) and all(len(path.name) == 64 for path in entries(folder))
    before = {path: path.stat().st_mtime_ns for path in entries(folder)}
    assert run(folder) == answer
    assert {path: path.stat().st_mtime_ns for path in entries(folder)} == before  # nothing was made again


@pytest.mark.slow
def test_processes_starting_at_once_with_an_empty_cache(filled, tmp_path):
    """Every entry is damaged, and the bits stay the same."""
    assert run_four_at_once(tmp_path) == filled[1]
    for path in entries(tmp_path):
        path.write_bytes(flip(path.read_bytes()))
    assert run(tmp_path) == filled[1]
    assert run(tmp_path / entries(tmp_path)[0].name / "not-a-folder", says="cannot be kept") == filled[1]


def truncate(data):
    return data[: len(data) // 2]


def empty(data):
    return b""


def flip(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def flip_checksum(data):
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


def extend(data):
    return data + b"x"


def foreign(data):
    return b"something else entirely"


@pytest.mark.parametrize("damage", [truncate, empty, flip, flip_checksum, extend, foreign])
def test_damaged_entries_are_not_believed(damage, tmp_path, monkeypatch):
    """A damaged entry counts as none and is removed, to be made again."""
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))
    cache.store("entry", b"payload" * 100)
    assert cache.load("entry") == b"payload" * 100
    (tmp_path / "entry").write_bytes(damage((tmp_path / "entry").read_bytes()))
    assert cache.load("entry") is None
    assert not (tmp_path / "entry").exists()
    cache.store("entry", b"payload" * 100)
    assert cache.load("entry") == b"payload" * 100


def test_damaged_kernels_are_compiled_again(filled):
    """Every kernel of the cache damaged, each in its way, and the answer is the same to the bit."""
    folder, answer = filled
    kernels = entries(folder)
    assert len(kernels) >= 3
    whole = {path: path.read_bytes() for path in kernels}
    damages = [truncate, empty, flip, flip_checksum, extend, foreign]
    for i, path in enumerate(kernels):
        path.write_bytes(damages[i % len(damages)](whole[path]))
    assert run(folder) == answer
    assert {path: path.read_bytes() for path in kernels} == whole


def test_folder_that_cannot_be_made(tmp_path, monkeypatch):
    """A file in place of the folder: the kernel is compiled and not kept, and the answer is right."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path / "file" / "cache"))
    program = Program((("x", 1),), (("y", 1),), (("input", 0), ("const", 0.123), ("mul", 0, 1)), (2,))
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*LEASTACTION_CACHE"):
        assert evaluate(program, np.array([[2.0]])) == 0.246
    cache.store("entry", b"payload")  # it was said, once


def test_read_only_folder(tmp_path, monkeypatch):
    """What cannot be stored costs time, not results; no half-written file stays behind."""
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))

    def refuse(*args, **kwargs):
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(RuntimeWarning, match="cannot be kept in .*read-only"):
        cache.store("entry", b"payload")
    assert list(tmp_path.iterdir()) == []
    assert cache.load("entry") is None


def test_key_depends_on_every_part():
    """Texts cannot be shifted from one part to the next."""
    keys = {cache.key(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("ab", "d")]}
    assert len(keys) == 6
    assert cache.key("ab", "c") == cache.key("ab", "c")


def test_kernels_of_another_processor_are_not_used(monkeypatch):
    """Compiler and processor are part of a kernel's key."""
    assert compile_module.llvm.get_host_cpu_name() in compile_module.fingerprint()
    names = []
    monkeypatch.setattr(cache, "load", lambda name: names.append(name))
    monkeypatch.setattr(cache, "store", lambda name, payload: None)
    text = "define void @kernel(ptr %in, ptr %out, ptr %work) { ret void }"
    for processor in ("one", "another"):
        monkeypatch.setattr(compile_module, "fingerprint", lambda processor=processor: processor)
        compile_module._linked([text], "kernel", compile_module.BEST)
    assert len(set(names)) == 2


def used(days, size, folder, name):
    """An entry that was used last so many days ago."""
    (folder / name).write_bytes(bytes(size))
    ago = time.time() - 86_400 * days
    os.utime(folder / name, (ago, ago))


def test_old_entries_are_evicted(tmp_path, monkeypatch):
    for name, days in (("old", cache.MOST_DAYS + 1), ("new", 1), (".new-left-behind", 2), (".new-at-work", 0)):
        used(days, 10, tmp_path, name)
    cache.evict(tmp_path)
    assert {path.name for path in entries(tmp_path)} == {"new", ".new-at-work"}


def test_the_oldest_entries_are_evicted_until_the_rest_is_little_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 250)
    for k in range(5):
        used(k, 100, tmp_path, f"entry-{k}")
    cache.evict(tmp_path)
    assert {path.name for path in entries(tmp_path)} == {"entry-0", "entry-1"}


def test_storing_evicts_and_using_keeps(tmp_path, monkeypatch):
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "OFTEN", 1)
    cache.store("used", b"payload")
    for name in ("used", "unused"):
        ago = time.time() - 86_400 * (cache.MOST_DAYS - 1)
        if name == "unused":
            (tmp_path / name).write_bytes(b"anything")
        os.utime(tmp_path / name, (ago, ago))
    assert cache.load("used") == b"payload"
    later = time.time() + 86_400 * 2
    monkeypatch.setattr(time, "time", lambda: later)
    cache.store("another", b"payload")
    assert {path.name for path in entries(tmp_path)} == {"used", "another"}


@pytest.mark.parametrize(("hours", "left"), [(0.5, {"old", "first", "second"}), (2, {"first", "second"})])
def test_many_processes_do_not_look_through_the_entries_again_and_again(tmp_path, monkeypatch, hours, left):
    """Of forty thousand entries that would take a third of a second in each of them."""
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_stored", itertools.count())
    used(cache.MOST_DAYS + 1, 10, tmp_path, "old")
    used(hours / 24, 0, tmp_path, cache.LOOKED)
    for name in ("first", "second"):
        cache.store(name, b"payload")
    assert {path.name for path in entries(tmp_path)} == left


def test_a_pipe_in_place_of_an_entry_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))
    os.mkfifo(tmp_path / "entry")
    assert cache.load("entry") is None
    cache.store("entry", b"payload")
    assert cache.load("entry") == b"payload"


def test_a_link_in_place_of_an_entry_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))
    cache.store("entry", b"payload")
    (tmp_path / "link").symlink_to(tmp_path / "entry")
    with pytest.warns(RuntimeWarning, match="link is a link.*is not used.*LEASTACTION_CACHE"):
        assert cache.load("link") is None
    cache.store("link", b"its own")  # in place of the link
    assert (cache.load("link"), cache.load("entry")) == (b"its own", b"payload")


@pytest.mark.parametrize("what", ["entry", "folder"])
@pytest.mark.parametrize("how", ["writable by the group", "writable by all", "of another user"])
def test_code_that_others_may_have_written_is_not_executed(tmp_path, monkeypatch, what, how):
    """The checksum of a stranger's entry fits."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LEASTACTION_CACHE", str(folder))
    cache.store("entry", b"payload")
    target = folder if what == "folder" else folder / "entry"
    if how == "of another user":
        if os.getuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(target, 12345, 12345)
    else:
        target.chmod(target.stat().st_mode | (0o020 if "group" in how else 0o002))
    with pytest.warns(RuntimeWarning, match="is not used.*LEASTACTION_CACHE"):
        assert cache.load("entry") is None
    if what == "folder":
        cache.store("more", b"payload")
        assert not (folder / "more").exists()
    else:
        cache.store("entry", b"payload")  # replaced by the user's own
        assert cache.load("entry") == b"payload"


def test_strangers_entries_are_told_of_once(tmp_path, monkeypatch):
    """Not once for each entry."""
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))
    for name in "abc":
        cache.store(name, b"payload")
        (tmp_path / name).chmod(0o666)
    with pytest.warns(RuntimeWarning, match="is not used") as told:
        assert [cache.load(name) for name in "abc"] == [None] * 3
    assert len(told) == 1


def test_a_new_folder_is_the_users_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path / "a" / "cache"))
    before = os.umask(0)
    try:
        cache.store("entry", b"payload")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "cache").stat().st_mode) == 0o700
    assert cache.load("entry") == b"payload"


def program_number(k):
    return Program((("x", 1),), (("y", 1),), (("input", 0), ("const", 2.0 + k / 1024), ("mul", 0, 1)), (2,))


def mappings():
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="mappings are counted in /proc")
def test_code_that_nobody_holds_is_freed(monkeypatch):
    monkeypatch.setattr(compile_module, "RECENT", 8)
    for k in range(20):
        compile_program(program_number(k))
    gc.collect()
    before = mappings()
    for k in range(20, 320):
        assert evaluate(program_number(k), np.array([[1.0]])) == 2.0 + k / 1024
    gc.collect()
    assert mappings() < before + 100  # 300 programs had three to nine mappings each


def test_code_that_is_held_stays(monkeypatch):
    monkeypatch.setattr(compile_module, "RECENT", 2)
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v - 0.3137 * q @ q, n=2)
    run = system.stepper(la.method("simpson"), Start(0.0, np.ones(2), np.ones(2), np.ones(2), 0.1, np.zeros(0)))
    rows = np.full((1, 20, 4), np.nan)
    run.advance(10, 1, 1, rows)
    for k in range(2000, 2030):
        compile_program(program_number(k))
    gc.collect()
    run.advance(10, 1, 1, rows)
    assert np.isfinite(rows).all()
