"""Paths: what an ensemble gives back."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.lagrangian import Lagrangian
from leastaction.many.job import Status
from leastaction.many.starts import energies
from leastaction.methods import Method
from leastaction.path import Path

if TYPE_CHECKING:
    import xarray

FloatArray = NDArray[np.float64]

BLOCK = 1 << 18  # states whose energy is computed at once


@dataclass(frozen=True, eq=False)
class Paths:
    """Many trajectories.

    t           times of the stored states, (K,), the same for all
    q, p        positions and momenta, (B, K, n); NaN after a trajectory's end
    status      how each ended, (B,): 0 complete, else a `Status`
    steps       steps done by each, (B,)
    values      parameters of each, flat, (B, …); `paths[i].params` has their names
    reduced     what was computed on the way, by the names given in `reduce`
    """

    system: Lagrangian
    method: Method
    t: FloatArray
    q: FloatArray
    p: FloatArray
    h: float
    t0: float
    every: int
    values: FloatArray
    status: NDArray[np.int8]
    steps: NDArray[np.int64]
    reduced: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which trajectories met a step that could not be solved, (B,)."""
        return ~np.isin(self.status, (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED, Status.PENDING))

    @property
    def end_time(self) -> FloatArray:
        """The time each trajectory has reached, (B,): that of the failure for one that failed."""
        return np.asarray(self.t0 + self.steps * self.h, float)

    def energy(self) -> FloatArray:
        """E = p·v − L at every stored state, (B, K)."""
        B, K, n = self.q.shape
        E = np.full((B, K), np.nan)
        block = max(1, BLOCK // K)
        for begin in range(0, B, block):
            part = slice(begin, begin + block)
            q, p = self.q[part].reshape(-1, n), self.p[part].reshape(-1, n)
            there = np.isfinite(q).all(axis=1) & np.isfinite(p).all(axis=1)
            t = np.tile(self.t, len(self.q[part]))[there]
            params = np.repeat(self.values[part], K, axis=0)[there]
            found = np.full(len(q), np.nan)
            found[there] = energies(self.system, t, q[there], p[there], params)
            E[part] = found.reshape(-1, K)
        return E

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, i: int) -> Path:
        """Trajectory i as a single Path, as far as it went."""
        i = operator.index(i)
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} trajectories; asked for number {i}")
        there = np.isfinite(self.q[i]).all(axis=1) & np.isfinite(self.p[i]).all(axis=1)
        return Path(
            system=self.system,
            method=self.method,
            t=self.t[there],
            q=self.q[i][there],
            p=self.p[i][there],
            h=self.h,
            every=max(1, self.every),
            params=self.system.named(self.values[i]),
            stats={"steps": int(self.steps[i]), "status": Status(int(self.status[i])).name},
        )

    def __iter__(self) -> Iterator[Path]:
        return (self[i] for i in range(len(self)))

    def to_xarray(self) -> xarray.Dataset:
        """The paths as an xarray Dataset with coordinates trajectory, t and dof (needs `leastaction[xarray]`)."""
        try:
            import xarray
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install 'leastaction[xarray]'") from None
        dims = ("trajectory", "t", "dof")
        return xarray.Dataset(
            {"q": (dims, self.q), "p": (dims, self.p), "status": ("trajectory", self.status)},
            coords={"trajectory": np.arange(len(self)), "t": self.t, "dof": np.arange(self.system.n)},
            attrs={"method": self.method.name, "h": self.h, "every": self.every, "system": self.system.name},
        )

    def __repr__(self) -> str:
        failed = int(self.failed.sum())
        return (
            f"Paths({len(self)} × {self.system.name}, {self.method.name}, t = {self.t[0]:g} … {self.t[-1]:g}, "
            f"h = {self.h:g}, {len(self.t)} states each{f', {failed} failed' if failed else ''})"
        )
