"""Path: what a run gives back."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction import files
from leastaction.exact import Digits, Reals, reals, to_text
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.linear.archive import from_arrays, to_arrays
from leastaction.methods import Method, method
from leastaction.program import Program

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_FORMAT = "leastaction path 1"
_OPTIONAL = ("output", "tangent", "sensitivity")


@dataclass(frozen=True, eq=False)
class Path:
    """A trajectory.

    t, q, p     times (K,), positions and momenta (K, n), at the start, after every `every` steps and at the end
    h           the step used
    params      the parameters' values in this run
    stats       Newton iterations, floor, compile and run times, and what else the run counted
    output      the degrees of freedom stored, where not all are: then q and p are (K, len(output))
    digits      None in float64; else t, q, p, h and params are mpmath numbers of so many decimal digits
    tangent     ∂(q, p)/∂(q₀, p₀) at every stored time, (K, 2n, 2n), if asked for
    sensitivity ∂(q, p)/∂(w, h), (K, 2n, P + 1), if asked for: by the P parameters in the order of `system.values()`,
                with q₀ and p₀ fixed, and by h
    """

    system: Lagrangian | Quadratic
    method: Method
    t: NDArray[Any]
    q: NDArray[Any]
    p: NDArray[Any]
    h: Any
    every: int
    params: Mapping[str, Any]
    stats: Mapping[str, Any] = field(default_factory=dict)
    output: NDArray[np.int64] | None = None
    digits: int | None = None
    tangent: FloatArray | None = None
    sensitivity: FloatArray | None = None

    @property
    def reals(self) -> Reals:
        """The arithmetic of the run."""
        return reals(self.digits)

    @cached_property
    def mechanics(self) -> Any:
        """momentum, velocity, energy of the system in the arithmetic of the run: the system itself in float64."""
        if not isinstance(self.reals, Digits):
            return self.system
        from leastaction.precision import mechanics

        return mechanics(self.system, self.system.values(self.params, self.reals), self.reals)

    def energy(self) -> NDArray[Any]:
        """E = p·v − L at every stored time, (K,)."""
        self._require_whole("the energy")
        with self.reals.working():
            return np.asarray(self.mechanics.energy(self.q, self.p, self.t, self.params))

    def velocity(self) -> NDArray[Any]:
        """v at every stored time, (K, n)."""
        self._require_whole("the velocity")
        return self.mechanics.velocity(self.q, self.p, self.t, self.params)

    def __call__(self, t: Any) -> NDArray[Any]:
        """q at any time of the run, shape (n,) for one time or (…, n) for an array of times.

        Between steps this is the method's own polynomial of degree s, found again by solving the step
        from the stored state. At the ends of steps its error is that of the run, O(h^order); inside it is
        O(h^{s+1}), or O(h^s) for the members with u = 2s − 2, whose nodes do not see the highest degree. For
        RK4 it is the cubic through positions and velocities, O(h⁴).
        """
        from leastaction.dense import positions

        self._require_whole("dense output")
        with self.reals.working():
            return positions(self, self.reals.array(t))

    def _require_whole(self, what: str) -> None:
        if self.output is not None:
            raise ValueError(
                f"{what} needs the whole state; this path stores {len(self.output)} of {self.system.n} degrees of "
                "freedom"
            )

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        digits = "" if self.digits is None else f", {self.digits} digits"
        return (
            f"Path({self.system.name}, {self.method.name}, t = {float(self.t[0]):g} … {float(self.t[-1]):g}, "
            f"h = {float(self.h):g}, {len(self)} states of {self.q.shape[1]} "
            f"degree{'' if self.q.shape[1] == 1 else 's'} of freedom{digits})"
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
        energy = {"energy": ("t", self.energy())} if self.output is None else {}
        return xarray.Dataset(
            {"q": (("t", "dof"), self.q), "p": (("t", "dof"), self.p), **energy},
            coords={"t": self.t, "dof": np.arange(self.system.n) if self.output is None else self.output},
            attrs={"method": self.method.name, "h": self.h, "every": self.every, "system": self.system.name},
        )

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the path to one file: with its system as NPZ, or t, q and p alone as a table if its name ends in .csv.

        An existing file is replaced only by a whole one; the endings of other formats are refused.
        """
        chosen = files.kind(file)
        header = {
            "format": _FORMAT,
            "method": self.method.name,
            "h": to_text(self.h),
            "digits": self.digits,
            "every": self.every,
            "n": self.system.n,
            "name": self.system.name,
            "defaults": {name: _texts(value) for name, value in self.system.given.items()},
            "params": {name: _texts(value) for name, value in self.params.items()},
            "stats": dict(self.stats),
        }
        arrays: dict[str, Any] = {"t": self.t, "q": self.q, "p": self.p}
        if self.digits is not None:
            arrays = {name: np.array(_texts(array), dtype=str) for name, array in arrays.items()}
        if isinstance(self.system, Quadratic):
            arrays |= to_arrays(self.system)
        else:
            header["program"] = self.system.program.to_json()
        arrays |= {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        target = FilePath(file)
        if not target.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {target.parent} to save {target.name} in")
        temporary = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        try:
            with open(temporary, "xb") as stream:
                if chosen == files.TABLE:
                    files.write_table(self, stream)
                else:
                    np.savez(stream, header=np.array(json.dumps(header)), **arrays)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Path:
        """Read a path back, with its system: energy, dense output and plots work as before."""
        files.require_whole(file)
        try:
            with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as data:
                header = json.loads(str(data["header"]))
                if header.get("format") != _FORMAT:
                    raise ValueError(f"format {header.get('format')!r}, expected {_FORMAT!r}")
                arrays = {name: data[name] for name in data.files if name != "header"}
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(f"{os.fspath(file)} is not a path saved by leastaction, or is damaged: {error}") from error
        if "program" in header:
            program = Program.from_json(header["program"])
            system: Lagrangian | Quadratic = Lagrangian.from_program(
                program, header["n"], header["defaults"], header["name"]
            )
        else:
            system = from_arrays(arrays)
        arithmetic = reals(header["digits"])
        return cls(
            system=system,
            method=method(header["method"]),
            h=arithmetic.array(header["h"]).item(),
            every=int(header["every"]),
            params=system.named(system.values(header["params"], arithmetic)),
            stats=header["stats"],
            **{name: arithmetic.array(arrays[name]) for name in ("t", "q", "p")},
            **{name: arrays[name] for name in _OPTIONAL if name in arrays},
            digits=header["digits"],
        )


def _texts(value: Any) -> Any:
    """Numbers and nested lists of them as JSON keeps them without loss: floats and integers, or text."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_texts(entry) for entry in value]
    return value if isinstance(value, int | float) else to_text(value)
