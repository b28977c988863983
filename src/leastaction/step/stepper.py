"""Trajectories at work: what a run asks of a backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from leastaction.step.inputs import Inputs
from leastaction.step.status import GOING_WELL, Failure


@dataclass(frozen=True)
class Start:
    """Where a run begins: time, position, momentum, velocity; its step and parameters; what drives it.

    Floats, or mpmath numbers for a run at another precision. Trajectories in lanes have a row each, (B, n).
    """

    t: Any
    q: NDArray[Any]
    p: NDArray[Any]
    v: NDArray[Any]
    h: Any
    params: NDArray[Any]
    inputs: Inputs | None = None


def require_inputs(system: Any, start: Start) -> None:
    """Refuse to step a system without what drives it."""
    if system.inputs and start.inputs is None:
        raise ValueError(
            f"{system.name} is driven by {', '.join(map(repr, system.inputs))}, and no values are given here: "
            "la.integrate and la.ensemble take inputs="
        )


class Stepper(Protocol):
    """Trajectories at work, in step with each other: one, or B in lanes.

    INTEGERS   what the integers of its state are, in their order
    done       steps done by each trajectory that goes on, the same number for all
    advance    do at most so many steps, and say how many were done: the state after k steps, for every k that `every`
               divides, goes to rows[:, k // every − first], (B, …, width); `every` = 0 stores nothing
    steps      done by each trajectory, (B,), and `status`: GOING_WELL, or what has ended it
    at         the whole states reached, (q, p) and the derivatives carried, (B, whole_width)
    spent      iterations, and steps solved by continuation, of each trajectory; `counts`: what else the solver tells
    failure    why the trajectory failed that failed last
    finish     bring what was computed on the way to where it is kept
    state      copies of all that the steps to come depend on, a row for each trajectory; `restore` goes on from them,
               to the last bit as if there had been no pause
    """

    INTEGERS: tuple[str, ...]

    @property
    def done(self) -> int: ...
    def advance(self, steps: int, every: int, first: int, rows: NDArray[Any]) -> int: ...
    def steps(self) -> NDArray[np.int64]: ...
    def status(self) -> NDArray[np.int8]: ...
    def at(self) -> NDArray[Any]: ...
    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def counts(self) -> dict[str, Any]: ...
    def failure(self) -> Failure | None: ...
    def finish(self, standing: Any) -> None: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...


class PolynomialStepper(Stepper, Protocol):
    """A stepper whose steps are polynomials."""

    def polynomials(self, starts: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """The increments z, (K, s, n), of single steps from rows (t, q, p), and how many could be solved."""
        ...


class Alone:
    """What the stepper of one trajectory tells about the trajectory."""

    done = 0
    failed: Failure | None = None

    def steps(self) -> NDArray[np.int64]:
        return np.array([self.done], np.int64)

    def status(self) -> NDArray[np.int8]:
        return np.array([GOING_WELL if self.failed is None else self.failed.status], np.int8)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        counts = self.counts()
        iterations, continued = (np.array([counts.get(name, 0)]) for name in ("newton_iterations", "continued"))
        return iterations, continued

    def counts(self) -> dict[str, Any]:
        return {}

    def failure(self) -> Failure | None:
        return self.failed

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time and what varies with h count these, too."""
        self.done = step
