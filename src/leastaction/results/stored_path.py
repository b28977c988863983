"""Stored paths: everything a Path can do, with arrays that stay on disk until they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.results.path import Path
from leastaction.store.lazy import import_xarray

if TYPE_CHECKING:
    import xarray

READ_BYTES = 2**23  # size of the states in memory at once


@dataclass(frozen=True, eq=False)
class StoredPath(Path):
    """A Path whose t, q, p and derivatives stay on disk until they are asked for.

    ``path.q[1000:2000]`` reads those rows. Everything that a `Path` can do works, a block of states at a time.

    Attributes
    ----------
    standing : str
        How the run stood at its last checkpoint: "running", "complete", "interrupted" (before its planned end),
        "stopped" (by an event), "failed", or "killed" where a running process has vanished.
    file : path
        The archive.

    Methods
    -------
    in_memory, part

    Examples
    --------
    >>> import leastaction as la, tempfile, pathlib
    >>> kepler = la.problems.get("kepler")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "run.zarr"
    ...     path = la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.05, steps=100, store=file)
    ...     path.standing, len(path.in_memory())
    ('complete', 101)
    """

    standing: str = "complete"
    file: FilePath = FilePath()
    pace: StoredPath | None = None

    def energy(self) -> NDArray[Any]:
        """E = p·v − L at every stored time, (K,), computed a block at a time."""
        self._require_whole("the energy")
        return self._by_blocks(Path.energy)

    def work(self) -> NDArray[Any]:
        """The work of the external forces since the start at every stored time, (K,), computed a block at a time."""
        self._require_whole("the work")
        block, parts = self._block, [self.part(0, 1).work()]
        for begin in range(0, len(self) - 1, block):
            with self.reals.working():
                parts.append(parts[-1][-1] + self.part(begin, begin + block + 1).work()[1:])
        return np.concatenate(parts)

    @property
    def multipliers(self) -> NDArray[Any]:
        """λ of the constraints at every stored time, (K, m), computed a block at a time."""
        return self._by_blocks(lambda part: part.multipliers)

    def reaction(self) -> NDArray[Any]:
        """Gᵀλ at every stored time, (K, n), computed a block at a time."""
        return self._by_blocks(Path.reaction)

    def velocity(self, dofs: ArrayLike | None = None) -> NDArray[Any]:
        """v at every stored time, computed a block at a time."""
        return self._by_blocks(lambda part: part.velocity(dofs))

    def acceleration(self, dofs: ArrayLike | None = None) -> NDArray[Any]:
        """a at every stored time, computed a block at a time."""
        return self._by_blocks(lambda part: part.acceleration(dofs))

    def _by_blocks(self, compute: Callable[[Path], Any]) -> NDArray[Any]:
        block = self._block
        return np.concatenate([compute(self.part(begin, begin + block)) for begin in range(0, len(self), block)])

    @property
    def _block(self) -> int:
        """The number of states to hold in memory at once."""
        return max(1, READ_BYTES // (16 * self.q.shape[1]))

    def part(self, begin: int, end: int) -> Path:
        """The stored states number begin to end − 1 as a Path in memory.

        Parameters
        ----------
        begin, end : int
            Which states.
        """
        derivatives: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[begin:end]
            for name in ("tangent", "sensitivity")
        }
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
            digits=self.digits,
            events=self.events,
            advice=self.advice,
            inputs=self.inputs,
            pace=None if self.pace is None else self.pace.part(begin, end),
            **derivatives,
        )

    def in_memory(self) -> Path:
        """The whole path, in memory."""
        return self.part(0, len(self))

    def __call__(self, t: ArrayLike) -> NDArray[Any]:
        self._require_whole("dense output")
        if self.digits is not None:
            return self.in_memory()(t)
        times = np.asarray(t, float)
        if not np.isfinite(times).all() or times.size == 0:
            return self.part(0, 1)(times)
        if self.pace is None:
            row = (times - self.t[0]) / (self.h * self.every)
        else:
            forward = np.sign(self.h)
            row = np.searchsorted(forward * np.asarray(self.t), forward * times, "right") - 0.5
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
        arrays: Any = {"q": self.q, "p": self.p}
        return xarray.Dataset(
            {name: array.variable(("t", "dof")) for name, array in arrays.items()},
            coords={"t": self.t[:], "dof": np.arange(self.system.n) if self.output is None else self.output},
            attrs={"method": self.method.name, "h": self.h, "every": self.every, "system": self.system.name},
        )

    def __repr__(self) -> str:
        return f"Stored{super().__repr__()[:-1]}, {self.standing}, in {self.file})"
