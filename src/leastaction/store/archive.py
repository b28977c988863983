"""A run on disk: a Zarr group that only grows, and its checkpoints (only here: zarr).

    run.zarr/t, q, p       arrays (K,), (K, n), (K, n) in compressed chunks of `CHUNK_BYTES`, each with a checksum
    run.zarr/zarr.json     what the run is: format, system as a Program, method, step, parameters
    run.zarr/checkpoint/   `state`: how far it has come, with the rows that do not fill a chunk yet; `lock`; `system`:
                           the arrays of a system that has no Program, written before the first row

That of a path; `leastaction.many.archive` says what an ensemble adds.

Whole chunks are written first, then the checkpoint that counts them. Rows that no checkpoint counts, after a run was
killed, do not exist: reading ignores them and resuming writes over them. No counted chunk is ever written again.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.store.checkpoint import Checkpoint, is_held, lock
from leastaction.store.errors import StoreError

FloatArray = NDArray[np.float64]

FORMATS = {"path": 2, "ensemble": 2}
CHUNK_BYTES = 2**19  # of q; its compression and its file cost less than one percent of making it
USUAL_ROWS, LARGE_CHUNK_BYTES = 64, 2**22  # of larger rows a chunk has so many, if they stay below this
NAMES = ("t", "q", "p")
SAFE = "the run up to its last checkpoint is safe, and la.resume goes on from there"


class Archive:
    """The files of one run."""

    def __init__(self, path: Path, group: Any, header: Mapping[str, Any]) -> None:
        # Absolute, since files are read when they are asked for, and the working directory may be another one then.
        self.path, self._group, self.header = path.absolute(), group, header

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any], arrays: Mapping[str, tuple[int, ...]]) -> Archive:
        """A new archive with these arrays, of shapes that grow in t; one that exists is left alone."""
        zarr = _zarr()
        if path.exists():
            raise StoreError(
                errno.EEXIST, f"{path} exists; la.resume continues a run, another name or removing it starts a new one"
            )
        with _explained(path, "the run did not begin"):
            attributes = {"leastaction": dict(header), "format": FORMATS[header["kind"]]}
            group = zarr.create_group(zarr.storage.LocalStore(path.absolute()), attributes=attributes)
            group.create_group("checkpoint")
        archive = cls(path, group, header)
        row = 8 * max((int(np.prod(shape[1:])) for shape in arrays.values()), default=1)
        length = max(CHUNK_BYTES // row, min(USUAL_ROWS, LARGE_CHUNK_BYTES // row), 1)
        for name, shape in arrays.items():
            archive.add(name, shape, (length,), np.dtype(float), ("t", "dof")[: len(shape)], np.nan)
        return archive

    def keep(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the arrays of the system, once, before the first checkpoint."""
        with _explained(self.path, "the run did not begin; remove what there is of it before starting again"):
            Checkpoint({}, np.empty((0, 0)), arrays).write(self._folder / "system")

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The arrays of the system."""
        file = self._folder / "system"
        rest = "t, q and p can still be read, with zarr alone"
        if not file.exists():
            raise StoreError(f"the system's file {file} is missing; {rest}")
        try:
            return Checkpoint.read(file).state
        except StoreError as error:
            raise StoreError(f"{error}. It holds the system; {rest}") from error

    def add(
        self,
        name: str,
        shape: tuple[int, ...],
        cuts: tuple[int, ...],
        dtype: np.dtype[Any],
        dims: tuple[str, ...],
        fill: Any,
    ) -> None:
        """A new array, cut along its first axes into chunks so long, each compressed and with a checksum."""
        codecs = _zarr().codecs
        size = dtype.itemsize
        blosc = codecs.BloscCodec(cname="zstd", clevel=3, shuffle="shuffle" if size > 1 else "noshuffle", typesize=size)
        with _explained(self.path, "nothing else was changed"):
            self._group.create_array(
                name,
                shape=shape,
                chunks=(*cuts, *shape[len(cuts) :]),
                dtype=dtype,
                compressors=[blosc, codecs.Crc32cCodec()],
                fill_value=fill,
                dimension_names=dims,
            )

    @classmethod
    def open(cls, path: Path, write: bool = False) -> Archive:
        """An existing archive, its format checked."""
        zarr = _zarr()
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such archive", str(path))
        try:
            group = zarr.open_group(
                zarr.storage.LocalStore(path.absolute(), read_only=not write), mode="r+" if write else "r"
            )
            attributes = dict(group.attrs)
        except Exception as error:
            raise StoreError(f"{path} is not a Zarr archive, or its zarr.json is damaged: {error}") from error
        if "leastaction" not in attributes:
            raise StoreError(f"{path} is a Zarr archive, but not of a run of leastaction")
        kind = attributes["leastaction"].get("kind")
        if attributes.get("format") != FORMATS.get(kind):
            raise StoreError(
                f"{path} has format {attributes.get('format')} of a stored {kind}, this version of leastaction reads "
                f"and writes format {FORMATS.get(kind)}; use the version that wrote it. Nothing was changed"
            )
        return cls(path, group, attributes["leastaction"])

    @property
    def chunk(self) -> int:
        """Rows of a path in a whole chunk."""
        return self.cut("q")

    def cut(self, name: str) -> int:
        """How long a chunk of an array is along its first axis."""
        return int(self._array(name).chunks[0])

    def checkpoint(self, name: str = "state") -> Checkpoint:
        return Checkpoint.read(self._folder / name)

    def has_checkpoint(self, name: str = "state") -> bool:
        return (self._folder / name).exists()

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

    def written(self) -> bool:
        """Whether a process holds the lock; where that cannot be told, yes."""
        return is_held(self._folder / "lock")

    def append(self, rows: FloatArray, first: int, t: FloatArray) -> None:
        """Write rows (q, p) from row number `first` on, a multiple of the chunk, and cut the arrays after them."""
        n = rows.shape[1] // 2
        end = first + len(rows)
        with _explained(self.path, SAFE):
            for name, values in zip(NAMES, (t, rows[:, :n], rows[:, n:]), strict=True):
                array = self._array(name)
                array.resize((end, *array.shape[1:]))
                if len(rows):
                    self.put(name, (first,), values)

    def resize(self, name: str, shape: tuple[int, ...]) -> None:
        """Make an array longer."""
        with _explained(self.path, SAFE):
            array = self._array(name)
            if array.shape != shape:
                array.resize(shape)

    def put(self, name: str, first: tuple[int, ...], values: NDArray[Any]) -> None:
        """Write a part of an array that begins where chunks begin, and see it onto the disk."""
        with _explained(self.path, SAFE):
            array = self._array(name)
            first = (*first, *[0] * (array.ndim - len(first)))
            ends = [begin + length for begin, length in zip(first, values.shape, strict=True)]
            array[tuple(map(slice, first, ends))] = values
            chunks = [
                range(begin // cut, -(-end // cut)) for begin, end, cut in zip(first, ends, array.chunks, strict=True)
            ]
            for place in product(*chunks):
                file = self.path.joinpath(name, "c", *map(str, place))
                if file.exists():  # a chunk of fill values alone has no file
                    handle = os.open(file, os.O_RDWR)
                    try:
                        os.fsync(handle)
                    finally:
                        os.close(handle)

    def _array(self, name: str) -> Any:
        try:
            return self._group[name]
        except KeyError:
            raise StoreError(f"{self.path} is damaged: its array {name} is missing") from None

    def has(self, name: str) -> bool:
        return name in self._group

    def commit(self, checkpoint: Checkpoint, name: str = "state") -> None:
        with _explained(self.path, SAFE):
            checkpoint.write(self._folder / name)

    def tidy(self) -> None:
        """Remove temporary files that a killed run has left."""
        for file in [*self._folder.glob(".new-*"), *self.path.rglob("*.partial")]:
            file.unlink(missing_ok=True)

    def read(self, name: str, *spans: tuple[int, int], needed: bool | NDArray[np.bool_] = True) -> NDArray[Any]:
        """The entries begin … end along the first axes of an array; those that are needed must have been written."""
        array = self._array(name)
        what = f"rows {' × '.join(f'{begin} … {end}' for begin, end in spans)} of {self.path}/{name}"
        try:
            values = np.asarray(array[tuple(slice(*span) for span in spans)])
        except Exception as error:
            raise StoreError(f"{what} are damaged: {error}. The rest of the archive can still be read") from error
        shape = tuple(end - begin for begin, end in spans)
        if values.shape[: len(spans)] != shape or not np.isfinite(values[np.broadcast_to(needed, shape)]).all():
            raise StoreError(f"{what} are missing: a chunk's file is not there")
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
