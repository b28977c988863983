"""How an archive keeps a system: a Lagrangian by its Program, in zarr.json; a Quadratic by its arrays, in a file.

Each way knows

header()     what zarr.json says of the system
arrays()     what the file `checkpoint/system` holds, bit for bit; without any there is no such file
stepper(…)   the method at work on the system, to be restored from a checkpoint
machine(…)   what decides the last bits of a run, besides the version of leastaction
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.status import STOPPED
from leastaction.backends.stepper import GalerkinStepper, ResumableStepper, Start, stepper
from leastaction.kernel import fingerprint
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.linear.archive import from_arrays, to_arrays
from leastaction.linear.factor import blas_threads
from leastaction.linear.stepper import LinearStepper
from leastaction.methods import Galerkin, Method, method
from leastaction.reading import MOST_STEPS, floats
from leastaction.store.archive import Archive

Header = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ByProgram:
    """A Lagrangian system."""

    system: Lagrangian

    @classmethod
    def of(cls, header: Header) -> ByProgram:
        return cls(Lagrangian.from_record(header))

    def header(self) -> dict[str, Any]:
        defaults = {name: np.asarray(value).tolist() for name, value in self.system.params.items()}
        return {"defaults": defaults, "program": self.system.program.to_json()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def stepper(self, header: Header, steps: int) -> ResumableStepper:
        nothing = np.zeros(self.system.n)
        t0, h = float.fromhex(header["t0"]), float.fromhex(header["h"])
        values = self.system.values(header["params"])
        return stepper(self.system, method(header["method"]), Start(t0, nothing, nothing, nothing, h, values))

    @staticmethod
    def machine(header: Header) -> str:
        return fingerprint()


@dataclass(frozen=True, eq=False)
class ByArrays:
    """A Quadratic system."""

    system: Quadratic

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> ByArrays:
        return cls(from_arrays(arrays))

    def header(self) -> dict[str, Any]:
        return {"sparse": self.system.sparse}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return to_arrays(self.system)

    def stepper(self, header: Header, steps: int) -> ResumableStepper:
        nothing = np.zeros(self.system.n)
        t0, h = float.fromhex(header["t0"]), float.fromhex(header["h"])
        chosen, output = method(header["method"]), header["output"]
        # Whether h is stable was asked, or not to be asked, when the run began.
        solver = LinearStepper(self.system, chosen, t0, nothing, nothing, h, output=output, allow_unstable=True)
        solver.require_load(steps)
        return solver

    @staticmethod
    def machine(header: Header) -> str:
        import scipy

        libraries = f"NumPy {np.__version__}, SciPy {scipy.__version__}, "
        # How many threads share a dense product or solution decides the order of its sums; sparse work has one.
        threads = "" if header["sparse"] else f"{blas_threads()} BLAS threads, "
        return libraries + threads + fingerprint()


Keeper = ByProgram | ByArrays


def keeper(system: Lagrangian | Quadratic) -> Keeper:
    """How this system is kept."""
    return ByProgram(system) if isinstance(system, Lagrangian) else ByArrays(system)


def kept(archive: Archive) -> Keeper:
    """The system of an archive."""
    header = archive.header
    if kind(header) is ByProgram:
        return ByProgram.of(header)
    by = ByArrays.of(archive.arrays())
    if (by.system.n, by.system.sparse) != (header["n"], header["sparse"]):
        raise ValueError(f"zarr.json tells of n = {header['n']}, the system's matrices of n = {by.system.n}")
    return by


def restore(solver: ResumableStepper, chosen: Method, state: Mapping[str, NDArray[Any]], done: int) -> None:
    """Set a stepper up again after so many steps. The state may come from a stranger: native loops would trust it."""
    fresh = solver.state()
    if state.keys() != fresh.keys():
        raise ValueError(f"the state must hold {', '.join(fresh)}; got {', '.join(state)}")
    for name, array in fresh.items():
        floats(state, name, array.shape, array.dtype)
    if "integers" in state:
        check_integers(chosen, state["integers"], done)
    elif int(state["first"]) != done:
        raise ValueError(f"the state is that after {state['first']} steps, not after {done}")
    solver.restore(state)


def check_integers(chosen: Method, integers: NDArray[Any], done: Any) -> None:
    """Whether the integers of a stepper's state, or of many, can be those after so many steps."""
    names = GalerkinStepper.INTEGERS if isinstance(chosen, Galerkin) else ("first",)
    if integers.shape[-1] != len(names):
        raise ValueError(f"the state must hold {len(names)} integers; got {integers.shape[-1]}")
    for k, name in enumerate(names):
        low, high = {"first": (done, done), "steps": (done, done), "status": (0, STOPPED)}.get(name, (0, MOST_STEPS))
        if name != "layout" and not ((low <= integers[..., k]) & (integers[..., k] <= high)).all():
            raise ValueError(f"the state's integers are not those after {done} steps: {integers}")


def kind(header: Header) -> type[Keeper]:
    """How the system of an archive with this header is kept."""
    return ByProgram if "program" in header else ByArrays
