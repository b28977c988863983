"""What a run asks of a system, whatever it is made of; and systems read back from files."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isfunction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leastaction.linear import Quadratic
from leastaction.linear.archive import from_arrays
from leastaction.numbers.rounding import Reals
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.pace import Paced
from leastaction.systems.sums import Sum


class System(Protocol):
    """A mechanical system: `Lagrangian` and `Quadratic` are.

    n                  degrees of freedom
    m                  constraints that hold
    name               for people
    linear             whether its equations of motion are linear
    depends_on_time    whether t occurs in its equations of motion
    forced             whether forces act that do not come from L
    inputs             names and shapes of what drives it from outside, given with a run
    params, given      names and default values of its parameters, as numbers and as they were given

    q, p, v may be one state (n,), or many (K, n).
    """

    n: int

    @property
    def m(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def linear(self) -> bool: ...
    @property
    def depends_on_time(self) -> bool: ...
    @property
    def forced(self) -> bool: ...
    @property
    def inputs(self) -> Mapping[str, tuple[int, ...]]: ...
    @property
    def params(self) -> dict[str, Any]: ...
    @property
    def given(self) -> dict[str, Any]: ...

    def values(self, params: Any = None, reals: Reals = ...) -> NDArray[Any]:
        """The parameters as one flat array, defaults replaced by what `params` brings."""
        ...

    def named(self, values: NDArray[Any]) -> dict[str, Any]:
        """The flat array of `values`, by name."""
        ...

    def momentum(self, q: Any, v: Any, t: Any = 0.0, params: Any = None) -> NDArray[Any]: ...
    def velocity(self, q: Any, p: Any, t: Any = 0.0, params: Any = None) -> NDArray[Any]: ...
    def energy(self, q: Any, p: Any, t: Any = 0.0, params: Any = None) -> Any: ...

    def external_force(self, q: Any, v: Any, t: Any = 0.0, params: Any = None) -> NDArray[Any]:
        """The generalised forces that do not come from L."""
        ...

    def energies(self, t: NDArray[Any], q: NDArray[Any], p: NDArray[Any], params: NDArray[Any]) -> NDArray[np.float64]:
        """The energy at many states, each with its own parameters."""
        ...

    def begin(
        self, t: float, q: NDArray[Any], p: NDArray[Any] | None, v: NDArray[Any] | None, params: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int8]]:
        """Momenta, velocities and a status of trajectories that begin at q with p or v, a row for each."""
        ...

    def check_start(
        self, t: float, q: NDArray[Any], p: NDArray[Any] | None, v: NDArray[Any] | None, params: Any
    ) -> None:
        """Say why one trajectory cannot begin."""
        ...

    def check_span(self, t0: float, t_end: float) -> None:
        """Refuse times at which the system is not known."""
        ...

    def explain(self, status: int, h: float) -> tuple[str, str]:
        """Why a step that ended with this status could not be done, and what to try; h is a smaller step."""
        ...

    def record(self) -> dict[str, Any]:
        """What a file's header says of the system."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file has beside the header."""
        ...

    def machine(self) -> str:
        """The facts that decide the last bits of a run in float64, besides the version of leastaction."""
        ...


def check_system(system: Any) -> None:
    """Refuse what is no system, first of all a bare Lagrangian function."""
    if isinstance(system, Lagrangian | Quadratic | Sum):
        return
    function = f". Make one of the function: la.Lagrangian({system.__name__}, n=…)" if isfunction(system) else ""
    raise TypeError(
        "expected a system, as from la.Lagrangian(fn, n=…), la.Lagrangian.sum(terms, n=…) or la.Quadratic(M, K); "
        f"got {system!r}{function}"
    )


def from_record(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Lagrangian | Quadratic | Sum:
    """The system that a file keeps. Header and arrays may come from a stranger: everything in them is checked."""
    if "terms" in record:
        return Sum.from_record(record, arrays)
    if "pace" in record:
        return Paced.from_record(record)
    return Lagrangian.from_record(record) if "program" in record else from_arrays(arrays)
