"""Stored paths: everything a Path can do, with arrays that stay on disk until they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.results.path import Path

READ_BYTES = 2**23  # size of the states in memory at once


def _by_blocks(compute: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    """The same of a path on disk, a block of states at a time."""

    @wraps(compute)
    def whole(self: StoredPath, *args: Any, **options: Any) -> NDArray[Any]:
        starts = range(0, len(self), self._block)
        return np.concatenate([compute(self.part(k, k + self._block), *args, **options) for k in starts])

    return whole


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

    energy, reaction = _by_blocks(Path.energy), _by_blocks(Path.reaction)
    velocity, acceleration = _by_blocks(Path.velocity), _by_blocks(Path.acceleration)
    multipliers = property(_by_blocks(lambda part: part.multipliers))

    def work(self) -> NDArray[Any]:
        block, parts = self._block, [self.part(0, 1).work()]
        for begin in range(0, len(self) - 1, block):
            with self.reals.working():
                parts.append(parts[-1][-1] + self.part(begin, begin + block + 1).work()[1:])
        return np.concatenate(parts)

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
        told = {one.name: getattr(self, one.name) for one in fields(Path)}
        for name in ("t", "q", "p", "tangent", "sensitivity"):
            told[name] = None if told[name] is None else told[name][begin:end]
        return Path(**told | {"pace": None if self.pace is None else self.pace.part(begin, end)})

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

    def __repr__(self) -> str:
        return f"Stored{super().__repr__()[:-1]}, {self.standing}, in {self.file})"
