"""Saved paths and archives, changed as a stranger might: whole in form, with any content."""

import copy
import hashlib
import io
import json

import numpy as np

from leastaction.store import checkpoint as checkpoint_module
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.header import checksum

HOSTILE = [
    None, True, False, -1, 0, 1, 2, 3, 300, 2**31, 10**9, 2**53, 2**63, 10**30, 1.5, float("inf"), float("nan"), "",
    "x",
    "0x1p-1074", "0x1p5000", "1/0", "1/3", "nan", "P1000000N1000000Q2000000Gau", "P64N64Q128Gau", "rk4", "9" * 5000,
    "gamma(9999)", "10**10**10", [], {}, [[]], [["q", 300]], [1, 2, 3], {"a": 1}, ["input", 10**6], ["const", "x"],
    ["sin", 0, 0], ["select", 0], ["if", 0, 10**9], ["input", -1],
]  # fmt: skip


def one(rng, choices):
    """One of these, as it is."""
    return choices[int(rng.integers(len(choices)))]


def places(data, at=()):
    """The ways to all entries of nested lists and mappings."""
    keys = data.keys() if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    for key in keys:
        yield (*at, key)
        yield from places(data[key], (*at, key))


def changed(rng, data):
    """Nested data with one to three entries replaced, removed or doubled."""
    data = copy.deepcopy(data)
    for _ in range(int(rng.integers(1, 3 + 1))):
        ways = list(places(data))
        if not ways:
            return data
        *way, last = ways[int(rng.integers(len(ways)))]
        inside = data
        for key in way:
            inside = inside[key]
        how = one(rng, ["replace", "replace", "replace", "near", "remove", "double"])
        value = inside[last]
        if how == "near" and isinstance(value, int):
            inside[last] = value + one(rng, [-2, -1, 1, 2])
        elif how == "remove":
            del inside[last]
        elif how == "double" and isinstance(inside, list):
            inside.insert(last, copy.deepcopy(value))
        else:
            inside[last] = copy.deepcopy(one(rng, HOSTILE))
    return data


def changed_array(rng, array):
    """An array of another shape, type or content."""
    how = one(rng, ["value", "value", "cut", "longer", "type", "shape", "empty", "number"])
    array = array.copy()
    if how == "value" and array.size and array.dtype.kind in "if":
        large = np.iinfo(array.dtype).max if array.dtype.kind == "i" else 1e308
        hostile = [-1, 0, 1, 100, large // 3, large]
        array.flat[int(rng.integers(array.size))] = one(rng, hostile)
    elif how == "cut" and array.ndim:
        array = array[:-1]
    elif how == "longer" and array.ndim:
        array = np.concatenate([array, array])
    elif how == "type" and array.dtype.kind in "if":
        array = array.astype(one(rng, ["<f4", "<i8", "<U8", "<i2"]), casting="unsafe", copy=True)
    elif how == "shape":
        array = array.reshape(-1, 1) if array.ndim == 1 else array.ravel()
    elif how == "empty":
        array = array[:0] if array.ndim else array
    elif how == "number":
        array = np.array(10**9)
    return array


def changed_file(rng, arrays):
    """The bytes of a saved path, its header or some of its arrays changed."""
    arrays = dict(arrays)
    if rng.random() < 0.5:
        header = changed(rng, json.loads(str(arrays["header"])))
        arrays["header"] = np.array(json.dumps(header))
    else:
        for _ in range(int(rng.integers(1, 2 + 1))):
            name = one(rng, sorted(arrays))
            if rng.integers(0, 4 + 1) == 0:
                del arrays[name]
                if not arrays:
                    break
            else:
                with np.errstate(invalid="ignore"):
                    arrays[name] = changed_array(rng, arrays[name])
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def changed_bytes(rng, data):
    """Bytes as disks and transfers damage them."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 4 + 1))):
        data[int(rng.integers(len(data)))] = int(rng.integers(0, 255 + 1))
    return bytes(data[: int(rng.integers(len(data) + 1))] if rng.integers(0, 4 + 1) == 0 else data)


def change_header(rng, archive):
    """Another header, with the right checksum."""
    file = archive / "zarr.json"
    group = json.loads(file.read_text())
    header = changed(rng, group["attributes"]["leastaction"])
    group["attributes"] |= {"leastaction": header, "checksum": checksum(header)}
    file.write_text(json.dumps(group))


def change_checkpoint(rng, archive):
    """Another checkpoint, with the right checksum."""
    files = sorted(file for file in (archive / "checkpoint").iterdir() if file.name not in ("lock", "zarr.json"))
    file = one(rng, files)
    found = Checkpoint.read(file)
    facts, tail, state = dict(found.facts), found.tail, dict(found.state)
    what = one(rng, ["facts", "tail", "state", "state"])
    with np.errstate(invalid="ignore"):
        if what == "facts" or (what == "state" and not state):
            facts = changed(rng, facts)
        elif what == "tail":
            tail = changed_array(rng, tail)
        else:
            name = one(rng, sorted(state))
            state[name] = changed_array(rng, state[name])
    write_checkpoint(file, facts, tail, state)


def write_checkpoint(file, facts, tail, state):
    stream = io.BytesIO()
    arrays = {f"state_{name}": value for name, value in state.items()}
    np.savez(stream, facts=np.array(json.dumps(facts)), tail=tail, **arrays)
    payload = stream.getvalue()
    file.write_bytes(checkpoint_module._MAGIC + hashlib.sha256(payload).digest() + payload)


def change_metadata(rng, archive):
    """Another description of an array."""
    file = one(rng, sorted(archive.glob("*/zarr.json")))
    file.write_text(json.dumps(changed(rng, json.loads(file.read_text()))))
