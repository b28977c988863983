"""Stored paths: everything a Path can do, with arrays that stay on disk until they are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.kernel import fingerprint
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Method, method
from leastaction.path import Path
from leastaction.program import Program
from leastaction.store.archive import Archive
from leastaction.store.checkpoint import Checkpoint
from leastaction.version import __version__

if TYPE_CHECKING:
    import xarray

FloatArray = NDArray[np.float64]


class LazyArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array on disk: slices read what they need, and arithmetic or np.asarray reads it all."""

    def __init__(
        self, archive: Archive, name: str, whole: int, tail: FloatArray, sparse: NDArray[np.bool_] | None = None
    ) -> None:
        self._archive, self._name, self._whole, self._tail, self._sparse = archive, name, whole, tail, sparse

    @property
    def shape(self) -> tuple[int, ...]:
        return (self._whole + len(self._tail), *self._tail.shape[1:])

    @property
    def ndim(self) -> int:
        return self._tail.ndim

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._tail.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, begin: int, end: int) -> FloatArray:
        """Rows begin … end, of which those that fill no chunk yet are in the checkpoint."""
        stored = self._tail[:0]
        if begin < self._whole:
            last = min(end, self._whole)
            sparse = False if self._sparse is None else self._sparse[begin:last]
            stored = self._archive.read(self._name, begin, last, sparse)
        return np.concatenate([stored, self._tail[max(begin - self._whole, 0) : max(end - self._whole, 0)]])

    def __getitem__(self, key: Any) -> Any:
        first, rest = (key[0], key[1:]) if isinstance(key, tuple) else (key, ())
        if isinstance(first, int | np.integer):
            place = range(len(self))[first]
            found = self.rows(place, place + 1)[0]
            return found[rest] if rest else found
        if isinstance(first, slice):
            places = range(len(self))[first]
            if not places:
                found = self._tail[:0]
            else:
                begin, end = min(places[0], places[-1]), max(places[0], places[-1]) + 1
                found = self._strided(begin, end, abs(places.step))
                found = found if places.step > 0 else found[::-1]
            return found[(slice(None), *rest)]
        return np.asarray(self)[key]

    def _strided(self, begin: int, end: int, step: int) -> FloatArray:
        """Every step-th row, a block at a time, so that a sparse look at a long run stays small."""
        block = max(step, self._archive.rows(self._name) // step * step)
        parts = [self.rows(at, min(at + block, end))[::step] for at in range(begin, end, block)]
        return np.concatenate(parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.rows(0, len(self)).astype(dtype or self.dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, how)(*(np.asarray(x) if isinstance(x, LazyArray) else x for x in inputs), **options)

    def __repr__(self) -> str:
        return f"LazyArray({self._name} of {self._archive.path.name}, shape {self.shape})"


@dataclass(frozen=True, eq=False)
class StoredPath(Path):
    """A Path whose t, q and p are on disk: `path.q[1000:2000]` reads those rows, `path.in_memory()` everything.

    standing   "running", "complete", "interrupted" or "failed": how the run stood at its last checkpoint
    file       the archive
    """

    standing: str = "complete"
    file: FilePath = FilePath()

    def energy(self) -> FloatArray:
        """E = p·v − L at every stored time, (K,), computed a block at a time."""
        block = 1 << 16
        parts = [self.part(begin, begin + block) for begin in range(0, len(self), block)]
        return np.concatenate([part.system.energy(part.q, part.p, part.t, part.params) for part in parts])

    def velocity(self) -> FloatArray:
        """v at every stored time, (K, n)."""
        return self.in_memory().velocity()

    def part(self, begin: int, end: int) -> Path:
        """The stored states begin … end as a Path in memory."""
        return Path(
            system=self.system,
            method=self.method,
            t=self.t[begin:end],
            q=self.q[begin:end],
            p=self.p[begin:end],
            h=self.h,
            every=self.every,
            params=self.params,
            stats=self.stats,
        )

    def in_memory(self) -> Path:
        """The whole path, in memory."""
        return self.part(0, len(self))

    def __call__(self, t: ArrayLike) -> FloatArray:
        times = np.asarray(t, float)
        if not np.isfinite(times).all() or times.size == 0:
            return self.part(0, 1)(times)
        row = (times - self.t[0]) / (self.h * self.every)
        begin, end = max(0, int(row.min()) - 1), int(np.ceil(row.max())) + 2
        return self.part(min(begin, len(self) - 1), end)(times)

    def to_xarray(self) -> xarray.Dataset:
        """The path as an xarray Dataset; its arrays are read when they are used."""
        try:
            import xarray
            from xarray.backends import BackendArray
            from xarray.core import indexing
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install 'leastaction[xarray]'") from None

        class Lazy(BackendArray):
            def __init__(self, array: LazyArray) -> None:
                self.array, self.shape, self.dtype = array, array.shape, array.dtype

            def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
                support = indexing.IndexingSupport.BASIC
                return indexing.explicit_indexing_adapter(key, self.shape, support, self.array.__getitem__)

        def variable(dims: tuple[str, ...], array: Any) -> xarray.Variable:
            return xarray.Variable(dims, indexing.LazilyIndexedArray(Lazy(array)))

        return xarray.Dataset(
            {"q": variable(("t", "dof"), self.q), "p": variable(("t", "dof"), self.p)},
            coords={"t": self.t[:], "dof": np.arange(self.system.n)},
            attrs={"method": self.method.name, "h": self.h, "every": self.every, "system": self.system.name},
        )

    def __repr__(self) -> str:
        return f"Stored{super().__repr__()[:-1]}, {self.standing}, in {self.file})"


def stored_path(archive: Archive, checkpoint: Checkpoint) -> StoredPath:
    header, facts = archive.header, checkpoint.facts
    system = system_of(header)
    n, whole = system.n, int(facts["whole"])
    columns: Mapping[str, FloatArray] = {
        "t": times(header, whole, len(checkpoint.tail), int(facts["done"])),
        "q": checkpoint.tail[:, :n],
        "p": checkpoint.tail[:, n:],
    }
    arrays: dict[str, Any] = {name: LazyArray(archive, name, whole, tail) for name, tail in columns.items()}
    return StoredPath(
        system=system,
        method=method(header["method"]),
        h=float.fromhex(header["h"]),
        every=int(header["every"]),
        params=system.named(system.values(header["params"])),
        stats={"steps": facts["done"], **facts["counts"]},
        standing=facts["standing"],
        file=archive.path,
        **arrays,
    )


def times(header: Mapping[str, Any], first: int, rows: int, done: int) -> FloatArray:
    """Times of so many stored rows from row `first` on, of a run that has done so many steps: as in memory."""
    k = np.minimum((first + np.arange(rows)) * int(header["every"]), done)
    t0 = float.fromhex(header["t0"])
    if header["until"] is None:
        return np.asarray(t0 + k * float.fromhex(header["h"]), float)
    t_end, count = header["until"]
    return np.asarray(t0 + (float.fromhex(t_end) - t0) * (k / count), float)


def description(system: Lagrangian, chosen: Method, t0: float, h: float, every: int) -> dict[str, Any]:
    """What an archive says of its run: everything but the state."""
    return {
        "version": __version__,
        "machine": fingerprint(),
        "method": chosen.name,
        "t0": float(t0).hex(),
        "h": float(h).hex(),
        "every": every,
        "n": system.n,
        "name": system.name,
        "defaults": {name: np.asarray(value).tolist() for name, value in system.params.items()},
        "program": system.program.to_json(),
    }


def compare(header: Mapping[str, Any], path: object) -> None:
    """Warn where a run goes on under other circumstances than it began."""
    if (header["version"], header["machine"]) != (__version__, fingerprint()):
        warnings.warn(
            f"{path} was begun by leastaction {header['version']} on '{header['machine'][:60]} …' and goes on with "
            f"{__version__} on '{fingerprint()[:60]} …': its last digits may differ from those of an uninterrupted run",
            RuntimeWarning,
            stacklevel=4,
        )


def system_of(header: Mapping[str, Any]) -> Lagrangian:
    """The system that an archive's header describes."""
    return Lagrangian.from_program(
        Program.from_json(header["program"]), header["n"], header["defaults"], header["name"]
    )
