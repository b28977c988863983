"""What a run asks of a system, whatever it is made of; systems read back from files; and whether float64 or flint steps
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leastaction.linear import Quadratic
from leastaction.linear.archive import from_arrays
from leastaction.methods import Method
from leastaction.numbers.rounding import Digits, Reals
from leastaction.program import Program
from leastaction.systems.defaults import Clock
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.pace import Paced
from leastaction.systems.sums import Sum

if TYPE_CHECKING:
    from leastaction.engine.run import Engine
    from leastaction.step.status import Failure
    from leastaction.step.stepper import Start, Stepper
    from leastaction.step.stored_row import Row


class System(Protocol):
    """A mechanical system: `Lagrangian`, `Sum`, `Paced` and `Quadratic` are.

    n                  degrees of freedom
    m                  how many constraints hold
    constraints        these, as one Program of (t, q, params); None where there are none, or rows of a sum have them
    name               for people
    names              of the coordinates, in tables and pictures; () where none are given
    linear             whether its equations of motion are linear
    depends_on_time    whether t occurs in its equations of motion
    mass_varies_with_velocity   whether L is not quadratic in v
    mass_varies_with_position   whether its mass is known to depend on q: not asked of sums
    forced             whether forces act that do not come from L
    forced_by_state    whether such forces depend on q or v
    inputs             names and shapes of what drives it from outside, given with a run
    params, given      names and default values of its parameters, as numbers and as they were given
    clock              where the time stands in a run
    in_time            the system whose motion in time it is: itself, unless it has a pace
    instructions       of L and the forces at one point, the measure of work
    digest             a fingerprint of its Programs; None: copies of it in one process have no code to share
    tools              libraries with which its steps are computed, beside NumPy and the kernels

    q, p, v may be one state (n,), or many (K, n).
    """

    n: int

    def __hash__(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def constraints(self) -> Program | None: ...
    @property
    def linear(self) -> bool: ...
    @property
    def depends_on_time(self) -> bool: ...
    @property
    def mass_varies_with_velocity(self) -> bool: ...
    @property
    def mass_varies_with_position(self) -> bool: ...
    @property
    def forced(self) -> bool: ...
    @property
    def forced_by_state(self) -> bool: ...
    @property
    def inputs(self) -> Mapping[str, tuple[int, ...]]: ...
    @property
    def params(self) -> dict[str, Any]: ...
    @property
    def given(self) -> dict[str, Any]: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def in_time(self) -> System: ...
    @property
    def instructions(self) -> int: ...
    @property
    def digest(self) -> str | None: ...
    @property
    def tools(self) -> tuple[str, ...]: ...

    @property
    def has_tangent(self) -> bool:
        """Whether a run can carry the derivatives of its states."""
        ...

    def expanded(self) -> System:
        """The same system without sums over rows: a sum written out as one Lagrangian, others as they are."""
        ...

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

    def frequency(
        self, t: float, q: NDArray[Any], p: NDArray[Any], v: NDArray[Any], params: NDArray[Any], length: float
    ) -> float:
        """The largest frequency or growth rate of a motion of this length at its start, or soon after."""
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

    def check_inputs(self) -> None:
        """Refuse inputs, if none can drive the system, and say what drives it instead."""
        ...

    def longest_step(self, t0: float) -> float | None:
        """The length of pieces of time, from t0 on, at whose ends steps have to end; None: anywhere."""
        ...

    def stepper(self, method: Method, start: Start, row: Row | None = None) -> Stepper:
        """The stepper of one trajectory in float64."""
        ...

    def engine(self, method: Method, width: int = 1, energy: bool = False, varied: int = 0) -> Engine | None:
        """How one native function steps so many trajectories side by side; None if none does."""
        ...

    def explain(self, failure: Failure, h: float) -> tuple[str, str]:
        """Why a step that failed so could not be done, and what to try; h is a smaller step."""
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


class NonlinearSystem(System, Protocol):
    """A system of which it is not known before a run whether steps are stable: energies tell (`run.motion_checks`)."""

    def terms_of_energy(
        self, t: float, q: NDArray[Any], p: NDArray[Any], params: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """v and L, and ∂L/∂q and ∂L/∂v at rest, at many states (K, n), each with its parameters; NaN where there is no
        v.
        """
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


def require_lagrangian(
    system: Any, what: str, instead: str = "For a sum of terms give system.expanded()"
) -> Lagrangian:
    """The system, if it is one Lagrangian; else refuse it, and say what to do instead."""
    if not isinstance(system, Lagrangian):
        raise TypeError(f"{what} is for a la.Lagrangian; got {system!r}. {instead}")
    return system


def from_record(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Lagrangian | Quadratic | Sum:
    """The system that a file keeps. Header and arrays may come from a stranger: everything in them is checked."""
    if "terms" in record:
        return Sum.from_record(record, arrays)
    if "pace" in record:
        return Paced.from_record(record)
    return Lagrangian.from_record(record) if "program" in record else from_arrays(arrays, record.get("names", []))


def mechanics(system: System, values: Any, reals: Reals) -> Any:
    """momentum, velocity and energy of a system in this arithmetic: in float64 the system itself."""
    if not isinstance(reals, Digits):
        return system
    from leastaction import flint

    return flint.mechanics(system, values, reals)


def stepper(system: System, method: Method, start: Start, row: Row | None = None, at: Any = None) -> Stepper:
    """The stepper of one trajectory; `at` is what `mechanics` gives."""
    if at is not None and at is not system:
        from leastaction import flint

        return flint.stepper(at, method, start, row)
    return system.stepper(method, start, row)
