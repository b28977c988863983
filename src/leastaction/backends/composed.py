"""A composition at work, by the native loops: a stepper for each factor, and one loop that hands the state on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.galerkin import GalerkinStepper
from leastaction.backends.native import loop
from leastaction.kernel.guarded import between_zones
from leastaction.methods import Composition
from leastaction.step.status import GOING_WELL, Failure
from leastaction.step.stepper import Start
from leastaction.step.stored_row import Row

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]


class ComposedStepper:
    """A composition at work, on one trajectory or on many in lanes: a stepper of its method for each factor.

    A trajectory that fails inside a step stands where the step began.
    """

    INTEGERS: tuple[str, ...] = ("status", "steps")

    def __init__(
        self, system: Lagrangian, method: Composition, start: Start, row: Row | None = None, lanes: int = 1
    ) -> None:
        self.row, self._method = row or Row.whole(system.n), method
        parts = method.parts
        offsets = np.concatenate([[0.0], np.cumsum(parts)[:-1]])
        self.phases = [
            GalerkinStepper(system, method.root, start, self.row, lanes, phase=phase)
            for phase in zip(offsets.tolist(), parts.tolist(), strict=True)
        ]
        first = self.phases[0]
        self.size, self.D = first.size, first.D
        for phase in self.phases:
            phase.D = self.D
            if self.D is not None:
                phase.run.D = self.D
        lanes_there = len(first.run.counts)
        self._home = np.zeros((lanes_there, 2 * system.n))
        self._home[: self.size] = np.concatenate([np.atleast_2d(start.q), np.atleast_2d(start.p)], axis=1)
        self._directions = np.zeros(1) if self.D is None else self.D.copy()
        self._loop, self._run = loop("composed.run"), loop("run.run")

    def leave(self, status: NDArray[np.int8]) -> None:
        """Before the first step: which trajectories cannot begin."""
        for phase in self.phases:
            phase.leave(status)

    @property
    def done(self) -> int:
        return int(self.steps()[self.status() == GOING_WELL].max(initial=0))

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        begun, last = self.done, len(self.phases) - 1
        for phase in self.phases:
            phase.drive(begun, steps)
        for k, phase in enumerate(self.phases):
            phase.run.tell(*((every, first) if k == last else (0, 0)), rows)
        given = [x for phase in self.phases for x in phase.run.given(rows)]
        with between_zones("the phases", given) as safe:
            table = np.array([x if isinstance(x, int) else x.ctypes.data for x in safe], np.int64)
            self._loop(table, len(self.phases), begun, steps, self._run.address, self._home, self._directions)
        return int(self.steps().max()) - begun

    def steps(self) -> NDArray[np.int64]:
        return self.phases[-1].steps()

    def status(self) -> NDArray[np.int8]:
        return np.max([phase.status() for phase in self.phases], axis=0)

    def at(self) -> FloatArray:
        found = self._home[: self.size].copy()
        return found if self.D is None else np.concatenate([found, self._directions.reshape(1, -1)], axis=1)

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        spent = [phase.spent() for phase in self.phases]
        return sum(one for one, _ in spent), sum(other for _, other in spent)  # type: ignore[return-value]

    def count_from(self, step: int) -> None:
        """Before the first step: as if so many had been done, so that time and what varies with h count these, too."""
        for phase in self.phases:
            phase.count_from(step)

    def single_steps(self, starts: FloatArray, lengths: FloatArray) -> FloatArray:
        """The states (q, p) after single steps of these lengths; NaN where one is not solved."""
        states, solver = starts.copy(), self.phases[0]
        for part, phase in zip(self._method.parts, self.phases, strict=True):
            given = phase.driving(starts[:, 0], lengths)
            z, impulses = solver.solved_steps(states, part * lengths, inputs=given)
            states[:, 1:] += np.concatenate([z[:, -1], impulses], axis=1)
            states[:, 0] += part * lengths
        return states[:, 1:]

    def counts(self) -> dict[str, Any]:
        found = [phase.counts() for phase in self.phases]
        sums = {name: sum(one[name] for one in found) for name in ("newton_iterations", "continued")}
        return sums | {name: max(one[name] for one in found) for name in ("most_iterations", "floor")}

    def failure(self) -> Failure | None:
        return next((found for phase in self.phases if (found := phase.failure()) is not None), None)

    def finish(self, standing: Any) -> None:
        """Nothing is computed on the way."""

    def state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {"integers": np.stack([self.status(), self.steps()], axis=1).astype(np.int64)}
        state["home"] = self._home[: self.size].copy()
        if self.D is not None:
            state["directions"] = self._directions.reshape(self.D.shape)[None].copy()
        for k, phase in enumerate(self.phases):
            state |= {f"{name}_{k}": array for name, array in phase.state().items() if name != "directions"}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self._home[: self.size] = state["home"]
        if self.D is not None:
            self._directions[...] = self.D[...] = state["directions"][0]
        for k, phase in enumerate(self.phases):
            own = {name: state[f"{name}_{k}"] for name in ("state", "integers", "floor")}
            phase.restore(own if self.D is None else own | {"directions": self.D[None]})
