"""Files from strangers are data: nothing may crash, hang, or allocate more than the file accounts for."""

import json
import os
import shutil
import time
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
import sympy  # noqa: F401  (so that its import does not count as reading)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import leastaction as la
from damaged_files import (
    change_checkpoint,
    change_header,
    change_metadata,
    changed_bytes,
    changed_file,
    one,
    write_checkpoint,
)
from hostile_workers import driven, masses_and_springs, rod
from leastaction.reading import unpacked
from leastaction.store.archive import Archive
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.header import checksum
from seeds import generator

HANGS = 100.0  # seconds of the processor, then reading is taken for a hang: the slowest takes one
LONG = 1000  # steps
LITTLE = 2**22  # bytes that reading takes whatever the file's length

CLEAN = (
    ValueError,
    TypeError,
    ArithmeticError,
    la.StoreError,
    la.StepFailed,
    FileNotFoundError,
    IndexError,
    MemoryError,
)
few = settings(max_examples=15, suppress_health_check=list(HealthCheck), print_blob=True, database=None)
many = settings(few, max_examples=2000)
SEEDS = st.integers(0, 2**32 - 1)  # of a change; the test that fails shows its own


def lagrangian(q, v, m, k):
    return 0.5 * m * (v @ v) - 0.5 * (k * q) @ q - 0.1 * q[0] ** 2 * q[1]


SYSTEM = la.Lagrangian(lagrangian, n=2, params={"m": 1.5, "k": [1.0, "4/3"]})
LINEAR = la.Quadratic(np.array([2.0, 1.0]), np.array([[2.0, -1.0], [-1.0, 2.0]]), f=(np.arange(6.0), np.ones((6, 2))))
FORCED = la.Lagrangian(lagrangian, n=2, params={"m": 1.5, "k": [1.0, 2.0]}, force=lambda t, q, v, m: -0.1 * m * v + t)
LOADED = la.Quadratic(
    np.array([2.0, 1.0]), np.eye(2), f=la.linear.Load([1.0, 0.5], np.arange(6.0), np.sin(np.arange(6.0)))
)
EVENTS = {"cross": la.Event(lambda q, p, m: m * q[0] - 0.5), "wall": la.Impact(lambda q: q[1] + 0.2)}
ON_A_ROD = {"q0": [1.0, 0.0], "p0": [0.0, 0.3], "h": 0.05, "steps": 10}
ON_A_CHAIN = {"q0": np.sin(np.arange(6.0)), "p0": np.zeros(6), "h": 0.1, "steps": 10}
START = {"q0": [1.0, 0.3], "p0": [0.0, 0.2], "h": 0.1, "steps": 10}
PUSH = {"u": np.sin(np.arange(15.0))[:, None]}  # for five steps more


def sparse():
    from scipy.sparse import csr_array

    K = np.diag([2.0] * 5) - np.diag([1.0] * 4, 1) - np.diag([1.0] * 4, -1)
    return la.Quadratic(csr_array(np.eye(5)), csr_array(K))


def distance(q):
    return np.sqrt(q @ q + 0.1)


class Saved(dict):
    """By name the bytes and the arrays of saved paths, shown in few words."""

    def __repr__(self):
        return "saved paths"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Saved paths of every kind, as bytes and as arrays."""
    folder = tmp_path_factory.mktemp("saved")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = {
            "plain": la.integrate(SYSTEM, "simpson", **START, every=3),
            "tangent": la.integrate(SYSTEM, "midpoint", **START, tangent="all"),
            "digits": la.integrate(SYSTEM, "simpson", **START, digits=30),
            "linear": la.integrate(LINEAR, "simpson", **START, output=[1]),
            "sparse": la.integrate(sparse(), "simpson", np.ones(5), np.zeros(5), h=0.1, steps=10),
            "events": la.integrate(SYSTEM, "simpson", **START, events=EVENTS),
            "forced": la.integrate(FORCED, "simpson", **START),
            "loaded": la.integrate(LOADED, "simpson", **START),
            "constraints": la.integrate(rod(), "simpson", **ON_A_ROD),
            "paced": la.integrate(SYSTEM, "simpson", **START, pace=distance, events=EVENTS),
            "sums": la.integrate(masses_and_springs(6), "simpson", **ON_A_CHAIN),
            "composed": la.integrate(SYSTEM, la.compose("simpson", "yoshida"), **START),
            "inputs": la.integrate(driven(), "simpson", **START, inputs=PUSH),
        }
    found = Saved()
    for name, path in paths.items():
        path.save(folder / name)
        data = (folder / name).read_bytes()
        found[name] = data, unpacked(data)
    return found


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Archives of every kind."""
    folder = tmp_path_factory.mktemp("archives")
    la.integrate(SYSTEM, "simpson", **START, every=3, store=folder / "path")
    la.integrate(SYSTEM, "rk4", **START, store=folder / "rk4")
    la.integrate(LINEAR, "simpson", **START, store=folder / "linear")
    la.integrate(sparse(), "simpson", np.ones(5), np.zeros(5), h=0.1, steps=10, store=folder / "sparse")
    watched = {"reduce": {"E": la.EnergyRange()}, "events": {"c": la.Event(lambda q, p: q[0] - 0.99, most=3)}}
    many = {"h": 0.1, "steps": 10, **watched, "params": {"m": [1.0, 1.5, 2.0]}}
    la.ensemble(SYSTEM, "simpson", START["q0"], START["p0"], **many, store=folder / "lanes")
    la.ensemble(SYSTEM, "rk4", START["q0"], START["p0"], **many, store=folder / "singles")
    la.integrate(SYSTEM, "simpson", **START, digits=30, tangent=True, store=folder / "digits")
    la.ensemble(LINEAR, "simpson", **START, tangent=True, store=folder / "linear-ensemble")
    la.integrate(SYSTEM, "simpson", **START, events=EVENTS, store=folder / "events")
    la.integrate(SYSTEM, "rk4", **START, digits=20, events=EVENTS, store=folder / "digits-events")
    la.integrate(FORCED, "P4N4Q8Gau", **START, tangent="all", store=folder / "forced")
    la.integrate(LOADED, "simpson", **START, output=[1], store=folder / "loaded")
    plain = {"h": 0.1, "steps": 10, "params": {"m": [1.0, 1.5, 2.0]}}
    la.ensemble(SYSTEM, "rk4", START["q0"], START["p0"], **plain, final_only=True, store=folder / "rk4-lanes")
    la.ensemble(SYSTEM, "P8N8Q16Gau", START["q0"], START["p0"], **plain, tangent=True, store=folder / "tangents")
    la.integrate(rod(), "simpson", **ON_A_ROD, store=folder / "constraints")
    la.ensemble(rod(), "simpson", **ON_A_ROD | {"p0": np.array([[0.0, 0.3], [0.0, 0.2]])}, store=folder / "rods")
    la.integrate(rod(), "simpson", **ON_A_ROD, digits=20, store=folder / "digits-constraints")
    la.integrate(SYSTEM, "simpson", **START, pace=distance, events=EVENTS, store=folder / "paced")
    until = {"h": 0.1, "t_end": 1.0, "pace": distance}
    la.integrate(SYSTEM, "simpson", START["q0"], START["p0"], **until, store=folder / "paced-until")
    la.ensemble(SYSTEM, "simpson", **START | {"q0": np.eye(2)}, pace=distance, store=folder / "paced-ensemble")
    la.integrate(masses_and_springs(6), "simpson", **ON_A_CHAIN, store=folder / "sums")
    la.integrate(SYSTEM, la.compose("simpson", "yoshida"), **START, store=folder / "composed")
    K = np.array([np.eye(2), 2 * np.eye(2), 3 * np.eye(2)])
    la.ensemble(la.Quadratic(np.ones(2), np.eye(2)), "simpson", **START, params={"K": K}, store=folder / "varied")
    la.ensemble(SYSTEM, "simpson", **START | {"q0": np.eye(2)}, events=EVENTS, store=folder / "impacts")
    la.integrate(driven(), "simpson", **START, inputs=PUSH, store=folder / "inputs")
    la.ensemble(driven(), "simpson", **START | {"q0": np.eye(2)}, inputs=PUSH, store=folder / "inputs-lanes")
    return folder


def use(path):
    """All that can be done with what was read."""
    repr(path)
    path.energy(), np.asarray(path.q), np.asarray(path.t)
    if isinstance(path, la.Path):
        if path.output is None and path.every < 10**4:
            path(path.t[0] + 0.3 * path.h)
    else:
        len(path), path.failed, path.end_time, path[0]


def done(work):
    """The result of the work; None where it fails, which it may only do in a clean way."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work()
    except CLEAN as error:
        assert str(error), f"{type(error).__name__} says nothing"
        return None


def seconds_of(read):
    """The processor time of reading."""
    clock = time.process_time()
    done(read)
    return time.process_time() - clock


def bytes_of(read):
    """The memory that reading takes; this measurement itself takes time."""
    tracemalloc.start()
    done(read)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def check_reading(read, size):
    """Reading stays within its bounds; if it is slow or large at first, as by an import, it has a second chance."""
    for measure, most in ((seconds_of, HANGS), (bytes_of, 10 * size + LITTLE)):
        assert measure(read) < most or measure(read) < most, f"{measure.__name__} reading {size} bytes is above {most}"
    return done(read)


def check_loading(file, data):
    file.write_bytes(data)
    path = check_reading(lambda: la.Path.load(file), len(data))
    if path is not None:
        done(lambda: use(path))


def check_archive(file):
    size = sum(part.stat().st_size for part in file.rglob("*") if part.is_file())
    run = check_reading(lambda: la.open(file), size)
    if run is None:
        done(lambda: la.resume(file, steps=5))
    elif int(Checkpoint.read(file / "checkpoint" / "state").facts.get("steps", 0)) < LONG:
        # A run that was planned for very long can be opened; to look at all of it, or to do it, takes long.
        done(lambda: use(run))
        done(lambda: la.resume(file, steps=5))


KINDS = ["plain", "tangent", "digits", "linear", "sparse", "events", "forced", "loaded"]
KINDS += ["constraints", "paced", "sums", "composed", "inputs"]
RUNS = ["path", "rk4", "linear", "sparse", "lanes", "singles", "digits", "linear-ensemble"]
RUNS += ["events", "digits-events", "forced", "loaded", "rk4-lanes", "tangents"]
RUNS += [
    "constraints",
    "rods",
    "digits-constraints",
    "paced",
    "paced-ensemble",
    "sums",
    "composed",
    "varied",
    "impacts",
    "inputs",
    "inputs-lanes",
]


def any_content(saved, folder, seed):
    rng = np.random.default_rng(seed)
    check_loading(folder / "stranger", changed_file(rng, saved[one(rng, KINDS)][1]))


def any_damage(saved, folder, seed):
    rng = np.random.default_rng(seed)
    check_loading(folder / "damaged", changed_bytes(rng, saved[one(rng, KINDS)][0]))


def any_archive(archives, folder, seed):
    rng = np.random.default_rng(seed)
    file = folder / "archive"
    shutil.rmtree(file, ignore_errors=True)
    shutil.copytree(archives / one(rng, [*RUNS, "paced-until"]), file)
    one(rng, [change_header, change_checkpoint, change_checkpoint, change_metadata])(rng, file)
    check_archive(file)


@few
@given(seed=SEEDS)
def test_paths_of_any_content(saved, tmp_path_factory, seed):
    any_content(saved, tmp_path_factory.getbasetemp(), seed)


@few
@given(seed=SEEDS)
def test_damaged_paths(saved, tmp_path_factory, seed):
    any_damage(saved, tmp_path_factory.getbasetemp(), seed)


@few
@given(seed=SEEDS)
def test_archives_of_any_content(archives, tmp_path_factory, seed):
    any_archive(archives, tmp_path_factory.getbasetemp(), seed)


@pytest.mark.slow
@many
@given(seed=SEEDS)
def test_paths_of_any_content_at_length(saved, tmp_path_factory, seed):
    any_content(saved, tmp_path_factory.getbasetemp(), seed)


@pytest.mark.slow
@many
@given(seed=SEEDS)
def test_archives_of_any_content_at_length(archives, tmp_path_factory, seed):
    any_archive(archives, tmp_path_factory.getbasetemp(), seed)


# The attacks of the report, one by one.


def header_of(saved, **changes):
    header = json.loads(str(saved["plain"][1]["header"]))
    for name, value in changes.items():
        inside = header
        *way, last = name.split("__")
        for key in way:
            inside = inside[key]
        inside[last] = value
    return header


def load_with(saved, file, kind="plain", **arrays):
    with file.open("wb") as stream:
        np.savez(stream, **{**saved[kind][1], **arrays})
    return la.Path.load(file)


BLOCKS = [["t", 1], ["q", 300], ["v", 300], ["params", 0]]


@pytest.mark.parametrize(
    "change, match",
    [
        ({"program__inputs": BLOCKS}, "Program of a Lagrangian"),
        ({"n": 10**9}, "n, the number of degrees of freedom"),
        ({"program__code": [["input", 0]] * 300_000}, "300000 instructions"),
        ({"program__code": [["input", 0], ["sin", 0, 0, 0]]}, "instruction 1|results|inputs"),
        ({"program__results": [10**6]}, "results"),
        ({"method": "P1000000N1000000Q2000000Gau"}, "nodes"),
        ({"digits": 10**9}, "digits"),
        ({"every": 0}, "every"),
        ({"every": -(10**9)}, "every"),
        ({"h": "0x0p0"}, "h not zero"),
        ({"h": "0x1p-1000"}, "times"),
        ({"h": "0x1p-1074"}, "next to nothing beside its times"),
        ({"params": {"m": "10**10**10", "k": [1, 2]}}, "too large|cannot read"),
        ({"stats": 3}, "stats"),
    ],
)
def test_headers_that_cannot_be(saved, tmp_path, change, match):
    with pytest.raises(ValueError, match=match):
        load_with(saved, tmp_path / "file", header=np.array(json.dumps(header_of(saved, **change))))
    assert seconds_of(lambda: la.Path.load(tmp_path / "file")) < HANGS


@pytest.mark.parametrize("h", ["0x1p-1074", "0x1p-5000", "0x1p5000"])
def test_steps_of_no_size_at_many_digits(saved, tmp_path, h):
    """Loaded before; then dense output ended in a bare OverflowError."""
    header = json.loads(str(saved["digits"][1]["header"]))
    with pytest.raises(ValueError, match=r"next to nothing beside its times|its times are not those"):
        load_with(saved, tmp_path / "file", "digits", header=np.array(json.dumps({**header, "h": h})))


def test_sparse_matrices_that_point_elsewhere(saved, tmp_path):
    arrays = saved["sparse"][1]
    for name, place, value in (
        ("K.indices", 0, 10**6),
        ("K.indices", 0, -7),
        ("K.indptr", -1, 10**6),
        ("K.indptr", 2, 9),
    ):
        wrong = arrays[name].copy()
        wrong[place] = value
        with pytest.raises(ValueError, match=name.split(".")[0]):
            load_with(saved, tmp_path / "file", "sparse", **{name: wrong})


def test_a_zip_bomb(tmp_path):
    with zipfile.ZipFile(tmp_path / "file", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q.npy", bytes(10**8))
    tracemalloc.start()
    with pytest.raises(ValueError, match="unpack"):
        la.Path.load(tmp_path / "file")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe"):
        la.Path.load(tmp_path / "pipe")


def test_a_pipe_in_place_of_the_lock_is_not_waited_for(archives, tmp_path):
    shutil.copytree(archives / "path", tmp_path / "run")
    lock = tmp_path / "run" / "checkpoint" / "lock"
    lock.unlink(missing_ok=True)
    os.mkfifo(lock)
    assert len(la.open(tmp_path / "run")) > 0


@pytest.mark.parametrize("kind", ["path", "singles"])
def test_restored_integers_that_cannot_be(archives, tmp_path, kind):
    name, key = "chunk-0", "state_integers"
    for place, value in ((1, 10**9), (0, 7), (2, -5), (3, -1)) if kind == "path" else ((0, 10**9), (0, -1)):
        file = tmp_path / f"{kind}-{place}-{value}"
        shutil.copytree(archives / kind, file)
        found = Checkpoint.read(file / "checkpoint" / name)
        state = dict(found.state)
        state[key] = state[key].copy()
        state[key][..., place] = value
        write_checkpoint(file / "checkpoint" / name, dict(found.facts), found.tail, state)
        with pytest.raises(la.StoreError, match="integers"):
            la.resume(file, steps=5)


def last(array):
    """The last axis that counts numbers; a text has one more axis, its characters."""
    return -2 if array.dtype == np.uint8 else -1


MISSHAPEN = {
    "fewer rows": lambda x: x[:-1],
    "more rows": lambda x: np.concatenate([x, x]),
    "fewer numbers": lambda x: x.take(range(x.shape[last(x)] - 1), axis=last(x)),
    "more numbers": lambda x: np.concatenate([x, x], axis=last(x)),
    "one axis less": lambda x: x.reshape(-1),
    "one axis more": lambda x: x[..., None],
    "nothing": lambda x: x[:0],
    "other numbers": lambda x: x.astype("<f4" if x.dtype.kind != "f" else "<i8"),
    "text": lambda x: x.astype("<U8"),
}


def test_some_restored_states_of_another_shape(archives, tmp_path):
    misshapen(archives, tmp_path, one(generator(), RUNS))


@pytest.mark.parametrize("key, value", [("clevel", 77), ("cname", "lz4"), ("blocksize", 10**9), ("typesize", 3)])
def test_chunks_packed_in_another_way(archives, tmp_path, key, value):
    """Reading would succeed, but a resumed run would write with the same packing: a level of 77 ended it in Blosc."""
    shutil.copytree(archives / "path", tmp_path / "run")
    file = tmp_path / "run" / "q" / "zarr.json"
    metadata = json.loads(file.read_text())
    (blosc,) = (codec for codec in metadata["codecs"] if codec["name"] == "blosc")
    blosc["configuration"][key] = value
    file.write_text(json.dumps(metadata))
    with pytest.raises(la.StoreError, match="damaged"):
        la.resume(tmp_path / "run", steps=5)


@pytest.mark.parametrize("name", ["start_p", "q"])
def test_arrays_with_entries_of_any_length(archives, tmp_path, name):
    """An array of few chunks whose description tells of 10⁹: it took 20 GB to look for them."""
    file = shutil.copytree(archives / "path", tmp_path / "run")
    about = file / name / "zarr.json"
    told = json.loads(about.read_text())
    told["shape"][-1] = 10**9
    about.write_text(json.dumps(told))
    size = sum(part.stat().st_size for part in file.rglob("*") if part.is_file())

    def use():
        np.asarray(la.open(file).q)
        la.resume(file, steps=5)

    with pytest.raises(la.StoreError, match=f"{name} is damaged"):
        use()
    check_reading(use, size)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_restored_states_of_another_shape(archives, tmp_path, kind):
    misshapen(archives, tmp_path, kind)


def misshapen(archives, tmp_path, kind):
    """Everything that steps to come depend on, in every other shape."""
    file = tmp_path / "run"
    shutil.copytree(archives / kind, file)
    place = file / "checkpoint" / "chunk-0"
    found = Checkpoint.read(place)
    for name, array in found.state.items():
        for change in MISSHAPEN.values():
            with np.errstate(invalid="ignore"):
                wrong = change(array)
            if wrong.shape == array.shape and wrong.dtype == array.dtype:
                continue
            write_checkpoint(place, dict(found.facts), found.tail, {**found.state, name: wrong})
            with pytest.raises(la.StoreError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                la.resume(file, steps=5)
    write_checkpoint(place, dict(found.facts), found.tail, found.state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert la.resume(file, steps=5) is not None


@pytest.mark.parametrize("kind", ["lanes", "singles"])
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("state_event_counts", lambda x: x - 10**6, "cannot be kept"),
        ("state_event_counts", lambda x: x + 10**6, "cannot be kept"),
        ("state_event_counts", lambda x: x[..., :0], "event_counts"),
        ("state_event_rows", lambda x: x[..., 1:], "event_rows"),
        ("state_event_rows", lambda x: x[:, :0], "cannot be kept"),
    ],
)
def test_restored_events_that_cannot_be(archives, tmp_path, kind, name, change, message):
    file = tmp_path / "run"
    shutil.copytree(archives / kind, file)
    found = Checkpoint.read(file / "checkpoint" / "chunk-0")
    assert found.state["state_event_counts"].max() > 0
    state = dict(found.state) | {name: np.ascontiguousarray(change(found.state[name]))}
    write_checkpoint(file / "checkpoint" / "chunk-0", dict(found.facts), found.tail, state)
    with pytest.raises(la.StoreError, match=message):
        la.resume(file, steps=5)
    with pytest.warns(RuntimeWarning, match=message):
        la.open(file)


def test_ensembles_that_only_a_header_tells_of(archives, tmp_path):
    for size in (10**7, 10**12):
        file = tmp_path / str(size)
        shutil.copytree(archives / "lanes", file)
        group = json.loads((file / "zarr.json").read_text())
        header = group["attributes"]["leastaction"] | {"size": size}
        group["attributes"] |= {"leastaction": header, "checksum": checksum(header)}
        (file / "zarr.json").write_text(json.dumps(group))
        begun = time.process_time()
        with pytest.raises(la.StoreError, match=f"{size} trajectories"):
            la.open(file)
        assert time.process_time() - begun < HANGS


def test_chunks_that_an_array_only_tells_of_are_not_looked_for(tmp_path):
    """To shorten an array took as long, and as much memory, as it had chunks: by its own word 10¹⁸ of them."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v, n=2)
    la.ensemble(system, "simpson", np.ones((3, 2)), np.ones((3, 2)), h=0.1, steps=4, store=tmp_path / "run")
    file, own = tmp_path / "run" / "zarr.json", tmp_path / "run" / "q" / "zarr.json"
    whole, array = json.loads(file.read_text()), json.loads(own.read_text())
    header = whole["attributes"]["leastaction"]
    header["arrays"]["q"][1] = array["chunk_grid"]["configuration"]["chunk_shape"] = [1, 1, 1]
    array["shape"] = [10**6] * 3
    whole["attributes"]["checksum"] = checksum(header)
    file.write_text(json.dumps(whole)), own.write_text(json.dumps(array))
    Archive.open(tmp_path / "run", write=True).cut_to("q", 5, 1)
    assert json.loads(own.read_text())["shape"] == [10**6, 5, 10**6]
