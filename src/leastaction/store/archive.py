"""The files of a run: a Zarr group that only grows, and its checkpoints (only here: zarr).

    run.zarr/…             arrays in compressed chunks, each with a checksum
    run.zarr/zarr.json     what the run is: format, system as a Program, method, step, layout of the arrays; with a
                           checksum
    run.zarr/checkpoint/   checkpoints, and `lock`

`run.archive` says which arrays and checkpoints there are.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leastaction.disk import UNFINISHED, is_held, lock
from leastaction.errors import StoreError
from leastaction.reading import require_regular
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.header import check_layouts, checksum, interpreting, to_json

FORMATS = {"path": 10, "ensemble": 10}
_REASONS = {
    errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would be too large", errno.EROFS: "the disk is read-only",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "no permission to write"),
}  # fmt: skip
SAFE = "the run up to its last checkpoint is safe, and la.resume goes on from there"


class ArrayLayout(NamedTuple):
    """How an array lies on disk: cut along its first axes into chunks of these lengths; `fill` if not written."""

    shape: tuple[int, ...]
    cuts: tuple[int, ...]
    dtype: np.dtype[Any]
    dims: tuple[str, ...]
    fill: Any

    @property
    def chunks(self) -> tuple[int, ...]:
        return (*self.cuts, *self.shape[len(self.cuts) :])


class Archive:
    """The files of one run."""

    def __init__(self, path: Path, group: Any, header: Mapping[str, Any]) -> None:
        # Absolute, since files are read when they are asked for, and the working directory may have changed by then.
        self.path, self._group, self.header = path.absolute(), group, header

    @classmethod
    @contextmanager
    def creating(
        cls, path: Path, header: Mapping[str, Any], arrays: Mapping[str, ArrayLayout], begin: Callable[[Archive], None]
    ) -> Iterator[Archive]:
        """A new archive with these arrays, its lock held; `begin` writes its first checkpoint. An archive that is there
        already is left alone.

        The folder gets its name when all of it is there: whenever its writer is killed, there is no archive or one that
        can be resumed. A folder is not renamed over another one: if two runs begin at once, one of them gets an error.
        """
        zarr = _zarr()
        path = path.absolute()
        unfinished = path.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
        with _explained(path, "the run did not begin"):
            path.parent.mkdir(parents=True, exist_ok=True)
            _require_new(path)
            try:
                unfinished.mkdir()
                (unfinished / "checkpoint").mkdir()
                header = to_json({**header, "arrays": {k: [a.dtype.str, a.chunks] for k, a in arrays.items()}})
                attributes = {"leastaction": header, "format": FORMATS[header["kind"]], "checksum": checksum(header)}
                group = zarr.create_group(zarr.storage.LocalStore(unfinished), attributes=attributes)
                group.create_group("checkpoint")
                archive = cls(unfinished, group, header)
                for name, layout in arrays.items():
                    archive._add(name, layout)
                begin(archive)
                _require_new(path)
                try:
                    unfinished.rename(path)
                except OSError:
                    _require_new(path)  # another run began between these two lines
                    raise
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
        archive = cls.open(path, write=True)
        with archive.writing():
            yield archive

    def keep(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write the arrays of the system, once, before the first checkpoint."""
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

    def _add(self, name: str, layout: ArrayLayout) -> None:
        """A new array, its chunks compressed and each with a checksum."""
        self._group.create_array(
            name, shape=layout.shape, chunks=layout.chunks, dtype=layout.dtype, fill_value=layout.fill,
            compressors=_compressors(layout.dtype.itemsize), dimension_names=layout.dims,
        )  # fmt: skip

    @classmethod
    def open(cls, path: Path, write: bool = False) -> Archive:
        """An existing archive, its header checked against damage and nonsense."""
        zarr = _zarr()
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such archive", str(path))
        try:
            require_regular((path / "zarr.json").stat(), path / "zarr.json")
            group = zarr.open_group(
                zarr.storage.LocalStore(path.absolute(), read_only=not write), mode="r+" if write else "r"
            )
            attributes = dict(group.attrs)
        except Exception as error:
            raise StoreError(f"{path} is not a Zarr archive, or its zarr.json is damaged: {error}") from error
        header = attributes.get("leastaction")
        if not isinstance(header, dict):
            raise StoreError(f"{path} is a Zarr archive, but not of a run of leastaction")
        kind = str(header.get("kind"))
        if attributes.get("format") != FORMATS.get(kind):
            raise StoreError(
                f"{path} has format {attributes.get('format')} of a stored {kind}, this version of leastaction reads "
                f"and writes format {FORMATS.get(kind)}; use the version that wrote it. Nothing was changed"
            )
        if attributes.get("checksum") != checksum(header):
            raise StoreError(
                f"{path}/zarr.json is damaged: what it says of the run does not fit its checksum. The states can still "
                "be read, with zarr alone"
            )
        with interpreting(path):
            check_layouts(header)
        return cls(path, group, header)

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
        """Hold the lock while writing, or say who else is writing."""
        with ExitStack() as held:
            with _explained(self.path, "nothing was changed"):
                try:
                    held.enter_context(lock(self._folder / "lock"))
                except BlockingIOError as error:
                    raise StoreError(
                        f"{self.path} is being written by {error}; one run at a time can write to an archive, while "
                        "la.open may read it"
                    ) from None
            yield

    def written(self) -> bool:
        """Whether a process holds the lock; True if that cannot be known."""
        return is_held(self._folder / "lock")

    def grow(self, name: str, length: int, axis: int) -> None:
        """Make an array at least this long."""
        self._resize(name, length, axis, shorter=False)

    def cut_to(self, name: str, length: int, axis: int) -> None:
        """Make an array exactly this long."""
        self._resize(name, length, axis, shorter=True)

    def _resize(self, name: str, length: int, axis: int, shorter: bool) -> None:
        with _explained(self.path, SAFE):
            array = self._array(name)
            shape = [*array.shape]
            if shape[axis] < length or (shorter and shape[axis] > length):
                shape[axis] = length
                if shorter:
                    self._remove(name, array.chunks, shape)
                # Not by array.resize: it would look for every chunk that the file tells of, and it may tell of any.
                _zarr().core.sync.sync(array.async_array.resize(tuple(shape), delete_outside_chunks=False))

    def _remove(self, name: str, chunks: Sequence[int], shape: Sequence[int]) -> None:
        """Remove the files of chunks that lie outside of a shape."""
        folder = self.path / name / "c"
        for file in folder.rglob("*"):
            place = file.relative_to(folder).parts
            outside = (int(k) * cut >= size for k, cut, size in zip(place, chunks, shape, strict=False) if k.isdigit())
            if file.is_file() and any(outside):
                file.unlink(missing_ok=True)

    def put(self, name: str, first: tuple[int, ...], values: NDArray[Any]) -> None:
        """Write a part of an array that begins where chunks begin, and wait until it is on the disk.

        What those chunks held before does not count. If the part ends inside a chunk, because another thread has made
        the array longer, Zarr would read the chunk's file first: a killed run may have left half a chunk there.
        """
        with _explained(self.path, SAFE):
            array = self._array(name)
            first = (*first, *[0] * (array.ndim - len(first)))
            ends = [begin + length for begin, length in zip(first, values.shape, strict=True)]
            places = list(self._places(array, list(zip(first, ends, strict=True))))
            for place in places:
                whole = (
                    min((k + 1) * cut, size) for k, cut, size in zip(place, array.chunks, array.shape, strict=True)
                )
                if any(end < edge for end, edge in zip(ends, whole, strict=True)):
                    self._file(name, place).unlink(missing_ok=True)
            array[tuple(map(slice, first, ends))] = values
            for place in places:
                file = self._file(name, place)
                if file.exists():  # a chunk of fill values alone has no file
                    handle = os.open(file, os.O_RDWR)
                    try:
                        os.fsync(handle)
                    finally:
                        os.close(handle)

    def _file(self, name: str, place: tuple[int, ...]) -> Path:
        return self.path.joinpath(name, "c", *map(str, place))

    @staticmethod
    def _places(array: Any, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
        """The chunks that hold these entries."""
        ends = zip(spans, array.chunks, array.shape, strict=True)
        return product(*(range(begin // cut, -(-min(end, size) // cut)) for (begin, end), cut, size in ends))

    def _array(self, name: str) -> Any:
        """An array, after its metadata were compared with the header."""
        file = self.path / name / "zarr.json"
        try:
            require_regular(file.stat(), file)
            found = self._group[name]
            layout = [found.dtype.str, list(found.chunks)]
            first, *others = found.metadata.codecs
            coded = type(first).__name__ == "BytesCodec" and others == _compressors(found.dtype.itemsize)
            endian = getattr(first.endian, "value", first.endian)
            separator = found.metadata.chunk_key_encoding.separator
        except (KeyError, FileNotFoundError):
            raise StoreError(f"{self.path} is damaged: its array {name} is missing") from None
        except Exception as error:
            raise StoreError(f"{file} is damaged: {error}") from error
        if layout != self.header["arrays"].get(name):
            raise StoreError(f"{file} is damaged: it tells of {layout}, zarr.json of {self.header['arrays'].get(name)}")
        wanted = "little" if found.dtype.itemsize > 1 else None
        if not coded or endian != wanted or separator != "/":
            raise StoreError(f"{file} is damaged: its chunks are not encoded as leastaction encodes them")
        return found

    def has(self, name: str) -> bool:
        return name in self.header["arrays"]

    def commit(self, checkpoint: Checkpoint, name: str = "state") -> None:
        with _explained(self.path, SAFE):
            checkpoint.write(self._folder / name)

    def tidy(self) -> None:
        """Remove temporary files that a killed run has left."""
        for file in [*self._folder.glob(f"{UNFINISHED}*"), *self.path.rglob("*.partial")]:
            file.unlink(missing_ok=True)

    def read(self, name: str, *spans: tuple[int, int], needed: bool | NDArray[np.bool_] = True) -> NDArray[Any]:
        """The entries begin … end along the first axes of an array; those that are needed must have been written."""
        array = self._array(name)
        what = f"rows {' × '.join(f'{begin} … {end}' for begin, end in spans)} of {self.path}/{name}"
        entry, chunk = array.shape[len(spans) :], array.chunks[len(spans) :]
        if entry != chunk:
            raise StoreError(f"{self.path}/{name} is damaged: entries of shape {entry} in chunks of shape {chunk}")
        try:
            for place in self._places(array, [*spans, *((0, size) for size in entry)]):
                _check_chunk(self._file(name, place), array)
            values = np.asarray(array[tuple(slice(*span) for span in spans)])
        except Exception as error:
            raise StoreError(f"{what} are damaged: {error}. The rest of the archive can still be read") from error
        shape = tuple(end - begin for begin, end in spans)
        there = values[..., :1] != 0 if values.dtype == np.uint8 else np.isfinite(values)
        if values.shape != (*shape, *entry) or not there[np.broadcast_to(needed, shape)].all():
            raise StoreError(f"{what} are missing: a chunk's file is not there")
        return values


@contextmanager
def _explained(path: Path, safe: str) -> Iterator[None]:
    """Turn errors of the operating system into a StoreError with clear words."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, str(error))
        raise StoreError(error.errno, f"cannot write {path}: {reason}; {safe}") from error


def _require_new(path: Path) -> None:
    if path.exists():
        raise StoreError(
            errno.EEXIST, f"{path} exists; la.resume continues a run, another name or removing it starts a new one"
        )


def _check_chunk(file: Path, array: Any) -> None:
    """Refuse a chunk's file that is no plain file, or whose unpacked length (Blosc's bytes 4 to 8) is wrong."""
    try:
        require_regular(file.stat(), file)
    except FileNotFoundError:
        return  # a chunk of fill values alone
    with open(file, "rb") as stream:
        length = int.from_bytes(stream.read(8)[4:], "little")
    expected = int(np.prod(array.chunks)) * array.dtype.itemsize
    if length != expected:
        raise ValueError(f"{file} holds {length} bytes where a chunk has {expected}")


def _compressors(size: int) -> list[Any]:
    """The codecs that pack the chunks of an array with entries of this many bytes, and add a checksum to each chunk."""
    codecs = _zarr().codecs
    shuffle = "shuffle" if size > 1 else "noshuffle"
    return [codecs.BloscCodec(cname="zstd", clevel=3, shuffle=shuffle, typesize=size), codecs.Crc32cCodec()]


def _zarr() -> Any:
    try:
        import zarr
        import zarr.codecs
        import zarr.storage
    except ImportError:
        raise ImportError("stored runs need zarr: pip install 'leastaction[zarr]'") from None
    return zarr
