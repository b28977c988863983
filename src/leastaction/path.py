"""Path: what a run gives back."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.lagrangian import Lagrangian
from leastaction.methods import Method, method
from leastaction.program import Program

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_FORMAT = "leastaction path 1"
_ARRAYS = ("t", "q", "p", "tangent", "sensitivity")


@dataclass(frozen=True, eq=False)
class Path:
    """A trajectory.

    t, q, p     times (K,), positions and momenta (K, n), at the start, after every `every` steps and at the end
    h           the step used
    params      the parameters' values in this run
    stats       Newton iterations, floor, compile and run times, and what else the run counted
    tangent     ∂(q, p)/∂(q₀, p₀) at every stored time, (K, 2n, 2n), if asked for
    sensitivity ∂(q, p)/∂(w, h), (K, 2n, P + 1), if asked for: by the P parameters in the order of `system.values()`,
                with q₀ and p₀ fixed, and by h
    """

    system: Lagrangian
    method: Method
    t: FloatArray
    q: FloatArray
    p: FloatArray
    h: float
    every: int
    params: Mapping[str, Any]
    stats: Mapping[str, Any] = field(default_factory=dict)
    tangent: FloatArray | None = None
    sensitivity: FloatArray | None = None

    def energy(self) -> FloatArray:
        """E = p·v − L at every stored time, (K,)."""
        return self.system.energy(self.q, self.p, self.t, self.params)

    def velocity(self) -> FloatArray:
        """v at every stored time, (K, n)."""
        return self.system.velocity(self.q, self.p, self.t, self.params)

    def __call__(self, t: ArrayLike) -> FloatArray:
        """q at any time of the run, shape (n,) for one time or (…, n) for an array of times.

        Between steps this is the method's own polynomial of degree s, found again by solving the step
        from the stored state. Its error inside a step is O(h^{s+1}) (O(h^{2s}) or better at the ends of steps); for
        RK4 it is the cubic through positions and velocities, O(h⁴).
        """
        from leastaction.dense import positions

        return positions(self, np.asarray(t, float))

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return (
            f"Path({self.system.name}, {self.method.name}, t = {self.t[0]:g} … {self.t[-1]:g}, "
            f"h = {self.h:g}, {len(self)} states of {self.system.n} degrees of freedom)"
        )

    def plot(self, what: str = "configuration", ax: Axes | None = None) -> Axes:
        """Draw the "configuration" (q over t), the "phase" portrait (p over q) or the "energy" error over t."""
        from leastaction.plots import plot_path

        return plot_path(self, what, ax)

    def to_xarray(self) -> xarray.Dataset:
        """The path as an xarray Dataset with coordinates t and dof (needs the extra `leastaction[xarray]`)."""
        try:
            import xarray
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install 'leastaction[xarray]'") from None
        return xarray.Dataset(
            {"q": (("t", "dof"), self.q), "p": (("t", "dof"), self.p), "energy": ("t", self.energy())},
            coords={"t": self.t, "dof": np.arange(self.system.n)},
            attrs={"method": self.method.name, "h": self.h, "every": self.every, "system": self.system.name},
        )

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the path, with its system, to one file; an existing file is replaced only by a whole one."""
        header = {
            "format": _FORMAT,
            "method": self.method.name,
            "h": float(self.h).hex(),
            "every": self.every,
            "n": self.system.n,
            "name": self.system.name,
            "defaults": {name: np.asarray(value).tolist() for name, value in self.system.params.items()},
            "program": self.system.program.to_json(),
            "params": {name: np.asarray(value).tolist() for name, value in self.params.items()},
            "stats": dict(self.stats),
        }
        target = FilePath(file)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        try:
            with os.fdopen(handle, "wb") as stream:
                arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
                np.savez(stream, header=np.array(json.dumps(header)), **arrays)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Path:
        """Read a path back, with its system: energy, dense output and plots work as before."""
        try:
            with np.load(file, allow_pickle=False) as data:
                header = json.loads(str(data["header"]))
                if header.get("format") != _FORMAT:
                    raise ValueError(f"format {header.get('format')!r}, expected {_FORMAT!r}")
                arrays = {name: data[name] for name in _ARRAYS if name in data or name in "tqp"}
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(file)} is not a path saved by leastaction, or is damaged: {error}") from error
        system = Lagrangian.from_program(
            Program.from_json(header["program"]), header["n"], header["defaults"], header["name"]
        )
        return cls(
            system=system,
            method=method(header["method"]),
            h=float.fromhex(header["h"]),
            every=int(header["every"]),
            params=system.named(system.values(header["params"])),
            stats=header["stats"],
            **arrays,
        )
