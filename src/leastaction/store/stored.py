"""Stored paths: everything a Path can do, with arrays that stay on disk until they are asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.methods import Method, method
from leastaction.path import Path
from leastaction.reading import entry, floats, integer, mapping, numbers
from leastaction.store.archive import Archive
from leastaction.store.checkpoint import Checkpoint
from leastaction.store.lazy import LazyArray, import_xarray
from leastaction.store.systems import keeper, kept, kind
from leastaction.version import __version__

if TYPE_CHECKING:
    import xarray

FloatArray = NDArray[np.float64]

STANDINGS = ("running", "complete", "interrupted", "failed")
READ_CHUNKS, READ_BYTES = 16, 2**23  # of q read at once, at most, unless one chunk is more


@dataclass(frozen=True, eq=False)
class StoredPath(Path):
    """A Path whose t, q and p are on disk: `path.q[1000:2000]` reads those rows, `path.in_memory()` everything.

    standing   "running", "complete", "interrupted" (before its planned end) or "failed": how the run stood at its last
               checkpoint; "killed" if nobody writes any more, though it was running then
    file       the archive
    """

    standing: str = "complete"
    file: FilePath = FilePath()

    def energy(self) -> FloatArray:
        """E = p·v − L at every stored time, (K,), computed a block at a time."""
        self._require_whole("the energy")
        return self._by_blocks(Path.energy)

    def velocity(self, dofs: ArrayLike | None = None) -> FloatArray:
        """v at every stored time, computed a block at a time."""
        return self._by_blocks(lambda part: part.velocity(dofs))

    def acceleration(self, dofs: ArrayLike | None = None) -> FloatArray:
        """a at every stored time, computed a block at a time."""
        return self._by_blocks(lambda part: part.acceleration(dofs))

    def _by_blocks(self, compute: Callable[[Path], Any]) -> FloatArray:
        block = self._block
        return np.concatenate([compute(self.part(begin, begin + block)) for begin in range(0, len(self), block)])

    @property
    def _block(self) -> int:
        """States to have in memory at once."""
        return max(1, READ_BYTES // (16 * self.q.shape[1]))

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
            output=self.output,
        )

    def in_memory(self) -> Path:
        """The whole path, in memory."""
        return self.part(0, len(self))

    def __call__(self, t: ArrayLike) -> FloatArray:
        self._require_whole("dense output")
        times = np.asarray(t, float)
        if not np.isfinite(times).all() or times.size == 0:
            return self.part(0, 1)(times)
        row = (times - self.t[0]) / (self.h * self.every)
        block = np.floor(row / self._block)
        found = np.empty((*times.shape, self.q.shape[1]))
        for number in np.unique(block):
            here = block == number
            begin, end = max(0, int(row[here].min()) - 1), int(np.ceil(row[here].max())) + 2
            found[here] = self.part(min(begin, len(self) - 1), end)(times[here])
        return found

    def to_xarray(self) -> xarray.Dataset:
        """The path as an xarray Dataset; its arrays are read when they are used."""
        xarray = import_xarray()
        return xarray.Dataset(
            {name: getattr(self, name).variable(("t", "dof")) for name in ("q", "p")},
            coords={"t": self.t[:], "dof": np.arange(self.system.n) if self.output is None else self.output},
            attrs={"method": self.method.name, "h": self.h, "every": self.every, "system": self.system.name},
        )

    def __repr__(self) -> str:
        return f"Stored{super().__repr__()[:-1]}, {self.standing}, in {self.file})"


def stored_path(archive: Archive, checkpoint: Checkpoint, system: Lagrangian | Quadratic | None = None) -> StoredPath:
    """The path as far as a checkpoint counts it; its system is read from the archive unless it is at hand."""
    header, facts = archive.header, checkpoint.facts
    system = kept(archive).system if system is None else system
    check_facts(archive, checkpoint)
    width, whole = checkpoint.tail.shape[1] // 2, int(facts["whole"])
    columns: Mapping[str, FloatArray] = {
        "t": times(header, whole, len(checkpoint.tail), int(facts["done"])),
        "q": checkpoint.tail[:, :width],
        "p": checkpoint.tail[:, width:],
    }
    cut = archive.chunk * max(1, min(READ_CHUNKS, READ_BYTES // (8 * width * archive.chunk)))

    def array(name: str, tail: FloatArray) -> LazyArray:
        """An array of which the rows that fill no chunk yet are in the checkpoint."""

        def rows(span: tuple[int, int]) -> FloatArray:
            begin, end = span
            stored = tail[:0] if begin >= whole else archive.read(name, (begin, min(end, whole)))
            return np.concatenate([stored, tail[max(begin - whole, 0) : max(end - whole, 0)]])

        shape = (whole + len(tail), *tail.shape[1:])
        return LazyArray(f"{name} of {archive.path.name}", shape, (cut,), rows)

    arrays: dict[str, Any] = {name: array(name, tail) for name, tail in columns.items()}
    return StoredPath(
        system=system,
        method=method(header["method"]),
        h=float.fromhex(header["h"]),
        every=int(header["every"]),
        params=system.named(system.values(header["params"])),
        stats={"steps": facts["done"], **facts["counts"]},
        output=None if header.get("output") is None else np.array(header["output"]),
        standing=facts["standing"],
        file=archive.path,
        **arrays,
    )


def check_facts(archive: Archive, checkpoint: Checkpoint) -> None:
    """Whether a checkpoint's numbers fit each other and the archive: rows in whole chunks, those after them, steps."""
    facts, header = checkpoint.facts, archive.header
    done = integer(entry(facts, "done"), "done")
    integer(entry(facts, "planned"), "planned", done)
    width = header["n"] if header["output"] is None else len(header["output"])
    rows = len(floats({"tail": checkpoint.tail}, "tail", (None, 2 * width)))
    regular = done // header["every"] + 1
    whole = integer(entry(facts, "whole"), "whole", 0, regular)
    if whole % archive.chunk or whole + rows not in (regular, regular + (done % header["every"] != 0)):
        raise ValueError(f"{whole} and {rows} rows are not those of {done} steps, every {header['every']}")
    if entry(facts, "standing") not in STANDINGS:
        raise ValueError(f"standing must be one of {', '.join(STANDINGS)}; got {facts['standing']!r}")
    numbers(list(mapping(entry(facts, "counts"), "counts").values()), "counts")


def times(header: Mapping[str, Any], first: int, rows: int, done: int) -> FloatArray:
    """Times of so many stored rows from row `first` on, of a run that has done so many steps: as in memory."""
    k = np.minimum((first + np.arange(rows)) * int(header["every"]), done)
    t0 = float.fromhex(header["t0"])
    if header["until"] is None:
        return np.asarray(t0 + k * float.fromhex(header["h"]), float)
    t_end, count = header["until"]
    return np.asarray(t0 + (float.fromhex(t_end) - t0) * (k / count), float)


def steps_until(header: Mapping[str, Any], t_end: float) -> int:
    """How many steps of a run end at t_end, counted from its start."""
    t0, h = float.fromhex(header["t0"]), float.fromhex(header["h"])
    ratio = (float(t_end) - t0) / h
    count = round(ratio) if np.isfinite(ratio) else 0
    if count < 1 or abs(ratio - count) > 1e-9 * max(1.0, ratio):
        near = "" if ratio < 1 else f"; {t0 + np.floor(ratio) * h:.12g} and {t0 + np.ceil(ratio) * h:.12g} are"
        raise ValueError(
            f"t_end = {t_end!r} is no whole number of steps h = {h:g} after the start, t0 = {t0:g}{near}. A stored run "
            "keeps its step"
        )
    return int(count)


def description(system: Lagrangian | Quadratic, chosen: Method, t0: float, h: float, every: int) -> dict[str, Any]:
    """What an archive says of its run: everything but the state."""
    by = keeper(system)
    header = by.header()
    return {
        "version": __version__,
        "machine": by.machine(header),
        "method": chosen.name,
        "t0": float(t0).hex(),
        "h": float(h).hex(),
        "every": every,
        "n": system.n,
        "name": system.name,
        **header,
    }


def compare(header: Mapping[str, Any], path: object) -> None:
    """Warn where a run goes on under other circumstances than it began."""
    machine = kind(header).machine(header)
    if (header["version"], header["machine"]) != (__version__, machine):
        warnings.warn(
            f"{path} was begun by leastaction {header['version']} on '{header['machine'][:60]} …' and goes on with "
            f"{__version__} on '{machine[:60]} …': its last digits may differ from those of an uninterrupted run",
            RuntimeWarning,
            stacklevel=4,
        )
