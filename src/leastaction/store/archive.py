"""A run on disk: a Zarr group that only grows, and its checkpoint (only here: zarr).

    run.zarr/t, q, p       arrays (K,), (K, n), (K, n) in compressed chunks of `CHUNK_BYTES`, each with a checksum
    run.zarr/zarr.json     what the run is: format, system as a Program, method, step, parameters
    run.zarr/checkpoint/   `state`: how far it has come, with the rows that do not fill a chunk yet; `lock`

Whole chunks are written first, then the checkpoint that counts them. Rows that no checkpoint counts, after a run was
killed, do not exist: reading ignores them and resuming writes over them. No counted chunk is ever written again.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.store.checkpoint import Checkpoint, lock
from leastaction.store.errors import StoreError

FloatArray = NDArray[np.float64]

FORMAT = 1
CHUNK_BYTES = 2**19  # of q; its compression and its file cost less than one percent of making it
NAMES = ("t", "q", "p")


class Archive:
    """The files of one run."""

    def __init__(self, path: Path, group: Any, header: Mapping[str, Any]) -> None:
        self.path, self._group, self.header = path, group, header

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any], n: int) -> Archive:
        """A new archive; one that exists is left alone."""
        zarr = _zarr()
        if path.exists():
            raise StoreError(
                errno.EEXIST, f"{path} exists; la.resume continues a run, another name or removing it starts a new one"
            )
        length = max(64, CHUNK_BYTES // (8 * n))
        with _explained(path, "nothing was written"):
            group = zarr.create_group(
                zarr.storage.LocalStore(path), attributes={"leastaction": dict(header), "format": FORMAT}
            )
            codecs = [
                zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=8),
                zarr.codecs.Crc32cCodec(),
            ]
            for name in NAMES:
                shape, dims = ((0,), ("t",)) if name == "t" else ((0, n), ("t", "dof"))
                group.create_array(
                    name,
                    shape=shape,
                    chunks=(length, *shape[1:]),
                    dtype="float64",
                    compressors=codecs,
                    fill_value=np.nan,
                    dimension_names=dims,
                )
            group.create_group("checkpoint")
        return cls(path, group, header)

    @classmethod
    def open(cls, path: Path, write: bool = False) -> Archive:
        """An existing archive, its format checked."""
        zarr = _zarr()
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such archive", str(path))
        try:
            group = zarr.open_group(zarr.storage.LocalStore(path, read_only=not write), mode="r+" if write else "r")
            attributes = dict(group.attrs)
        except Exception as error:
            raise StoreError(f"{path} is not a Zarr archive, or its zarr.json is damaged: {error}") from error
        if "leastaction" not in attributes:
            raise StoreError(f"{path} is a Zarr archive, but not of a run of leastaction")
        if attributes.get("format") != FORMAT:
            raise StoreError(
                f"{path} has format {attributes.get('format')}, this version of leastaction reads and writes format "
                f"{FORMAT}; use the version that wrote it. Nothing was changed"
            )
        return cls(path, group, attributes["leastaction"])

    @property
    def chunk(self) -> int:
        """Rows in a whole chunk."""
        return int(self._group["q"].chunks[0])

    def checkpoint(self) -> Checkpoint:
        return Checkpoint.read(self._folder / "state")

    @property
    def _folder(self) -> Path:
        return self.path / "checkpoint"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock while writing."""
        with _explained(self.path, "nothing was changed"):
            held = lock(self._folder / "lock", self.path)
            held.__enter__()
        try:
            yield
        finally:
            held.__exit__(None, None, None)

    def append(self, rows: FloatArray, first: int, t: FloatArray) -> None:
        """Write rows (q, p) from row number `first` on, a multiple of the chunk, and cut the arrays after them."""
        n = rows.shape[1] // 2
        end = first + len(rows)
        with _explained(self.path, "the run up to its last checkpoint is safe, and la.resume goes on from there"):
            for name, values in zip(NAMES, (t, rows[:, :n], rows[:, n:]), strict=True):
                array = self._group[name]
                array.resize((end, *array.shape[1:]))
                if len(rows):
                    array[first:end] = values
            if len(rows):
                self._sync(first)

    def _sync(self, first: int) -> None:
        """Onto the disk, before a checkpoint counts it."""
        number = first // self.chunk
        for name in NAMES:
            file = self.path / name / "c" / str(number)
            handle = os.open(file if name == "t" else file / "0", os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def commit(self, checkpoint: Checkpoint) -> None:
        with _explained(self.path, "the run up to its last checkpoint is safe, and la.resume goes on from there"):
            checkpoint.write(self._folder / "state")

    def tidy(self) -> None:
        """Remove temporary files that a killed run has left."""
        for folder, pattern in [(self._folder, ".new-*"), *((self.path / name, "**/*.partial") for name in NAMES)]:
            for file in folder.glob(pattern):
                file.unlink(missing_ok=True)

    def read(self, name: str, begin: int, end: int) -> FloatArray:
        """Rows of one array, checked."""
        try:
            values = np.asarray(self._group[name][begin:end])
        except Exception as error:
            raise StoreError(
                f"rows {begin} … {end} of {self.path}/{name} are damaged: {error}. "
                "The rest of the archive can still be read"
            ) from error
        missing = not np.isfinite(values).all()
        if missing or len(values) != end - begin:
            raise StoreError(f"rows {begin} … {end} of {self.path}/{name} are missing: a chunk's file is not there")
        return values


@contextmanager
def _explained(path: Path, safe: str) -> Iterator[None]:
    """Errors of the system, said clearly."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full",
            errno.EDQUOT: "the disk quota is used up",
            errno.EFBIG: "a file would be too large",
            errno.EROFS: "the disk is read-only",
            errno.EACCES: "no permission to write",
            errno.EPERM: "no permission to write",
        }
        reason = reasons.get(error.errno or 0, str(error))
        raise StoreError(error.errno, f"cannot write {path}: {reason}; {safe}") from error


def to_json(value: Any) -> Any:
    """Plain data, as JSON reads it back."""
    return json.loads(json.dumps(value))


def _zarr() -> Any:
    try:
        import zarr
        import zarr.codecs
        import zarr.storage
    except ImportError:
        raise ImportError("stored runs need zarr: pip install 'leastaction[zarr]'") from None
    return zarr
