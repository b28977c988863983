"""Machine code on disk: shared between processes, and never a wrong answer from a damaged, missing or locked cache."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from leastaction.backends import native
from leastaction.backends.points import evaluate
from leastaction.kernel import cache
from leastaction.program import Program

# A run that needs a kernel of its own and native loops, and prints every bit of its result.
CODE = """
import leastaction as la
system = la.Lagrangian(lambda q, v: 0.5 * v @ v + 0.1 * q[0] * v[1] - 0.25 * (q @ q) ** 2, n=2)
path = la.integrate(system, "simpson", [1.0, 0.2], [0.1, 0.3], h=0.05, steps=50)
print(path.q.tobytes().hex(), path.energy().tobytes().hex())
"""


def run(folder):
    """The result with this cache directory, from a fresh process."""
    environment = {**os.environ, "LEASTACTION_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def run_four_at_once(folder):
    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(lambda _: run(folder), range(4)))
    assert len(answers) == 1
    return answers.pop()


@pytest.fixture(scope="module")
def loops():
    """The entries of the native loops, which take seconds to make, from the cache these tests run with."""
    found = {}
    load = cache.load

    def record(name):
        found[name] = payload = load(name)
        return payload

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "load", record)
        for name in ("galerkin.run", "pointwise.evaluate", "pointwise.velocities"):
            native.loop_address(name)
            native.loop_address.__wrapped__(name)
    return {name: payload for name, payload in found.items() if payload is not None}


@pytest.fixture(scope="module")
def filled(tmp_path_factory, loops):
    """A cache with the loops, filled by four processes that started at once without kernels; and their answer."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEASTACTION_CACHE", str(folder))
        for name, payload in loops.items():
            cache.store(name, payload)
    return folder, run_four_at_once(folder)


def entries(folder):
    return sorted(path for path in folder.iterdir())


def test_processes_starting_at_once_share_a_cache(filled, loops):
    """All give the same bits, and leave whole entries and nothing else behind."""
    folder, answer = filled
    assert len(entries(folder)) > len(loops) and all(len(path.name) == 64 for path in entries(folder))
    before = {path: path.stat().st_mtime_ns for path in entries(folder)}
    assert run(folder) == answer
    assert {path: path.stat().st_mtime_ns for path in entries(folder)} == before  # nothing was made again


@pytest.mark.slow
def test_processes_starting_at_once_with_an_empty_cache(filled, tmp_path):
    """The loops too are made by four processes at once; then every entry is damaged, and the bits stay the same."""
    assert run_four_at_once(tmp_path) == filled[1]
    for path in entries(tmp_path):
        path.write_bytes(flip(path.read_bytes()))
    assert run(tmp_path) == filled[1]
    assert run(tmp_path / entries(tmp_path)[0].name / "not-a-folder") == filled[1]


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


def test_damaged_kernels_are_compiled_again(filled, loops):
    """Every kernel of the cache damaged, each in its way, and the answer is the same to the bit."""
    folder, answer = filled
    kernels = [path for path in entries(folder) if path.name not in loops]
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
    assert evaluate(program, np.array([[2.0]])) == 0.246


def test_read_only_folder(tmp_path, monkeypatch):
    """What cannot be stored costs time, not results; no half-written file stays behind."""
    monkeypatch.setenv("LEASTACTION_CACHE", str(tmp_path))

    def refuse(*args, **kwargs):
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "replace", refuse)
    cache.store("entry", b"payload")
    assert list(tmp_path.iterdir()) == []
    assert cache.load("entry") is None


def test_key_depends_on_every_part():
    """Texts cannot be shifted from one part to the next."""
    keys = {cache.key(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("ab", "d")]}
    assert len(keys) == 6
    assert cache.key("ab", "c") == cache.key("ab", "c")


def test_loops_are_made_again_when_their_text_changes(monkeypatch):
    """The key of a loop holds the text of all loops and of their layout, and the compilers' versions."""
    keys = []

    def record(text, symbol, key, effort):
        keys.append(key)
        return 1

    monkeypatch.setattr(native, "compile_ir", record)
    native.loop.__wrapped__("rk4.run")
    source = native._source()
    monkeypatch.setattr(native, "_source", lambda: source + "\n# changed")
    native.loop.__wrapped__("rk4.run")
    native.loop.__wrapped__("run.run")
    assert len(set(keys)) == 3
    for file in ("layout.py", "records.py", "loops/solver.py", "loops/run.py", "loops/rk4.py", "../step/verdict.py"):
        with open(os.path.join(os.path.dirname(native.__file__), file), encoding="utf-8") as text:
            assert text.read() in source


def test_kernels_of_another_processor_are_not_used(monkeypatch):
    """Compiler and processor are part of a kernel's key."""
    from leastaction.kernel import compile as kernel_compile

    assert kernel_compile.llvm.get_host_cpu_name() in kernel_compile.fingerprint()
    names = []
    monkeypatch.setattr(cache, "load", lambda name: names.append(name))
    monkeypatch.setattr(cache, "store", lambda name, payload: None)
    text = "define void @kernel(ptr %in, ptr %out, ptr %work) { ret void }"
    for processor in ("one", "another"):
        monkeypatch.setattr(kernel_compile, "fingerprint", lambda processor=processor: processor)
        kernel_compile.compile_ir(lambda: text, "kernel", key="k", effort=kernel_compile.BEST)
    assert len(set(names)) == 2
