"""A stepper of one trajectory whose energy is looked at after every step; in lanes the fused step does this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.status import Failure
from leastaction.backends.stepper import Start, Stepper

if TYPE_CHECKING:
    from leastaction.run.plan import Plan
    from leastaction.run.standing import Standing

FloatArray = NDArray[np.float64]

BLOCK = 4096  # steps that are looked at together, at most


class WatchedEnergy:
    """A stepper around another one: all its states are looked at; the Standing takes the range of the energy."""

    def __init__(self, plan: Plan, start: Start, stepper: Stepper, standing: Standing) -> None:
        self.plan, self._start, self.stepper, self._standing = plan, start, stepper, standing
        self.INTEGERS: tuple[str, ...] = stepper.INTEGERS

    @property
    def done(self) -> int:
        return self.stepper.done

    def advance(self, steps: int, every: int, first: int, rows: FloatArray) -> int:
        steps, begun = min(steps, BLOCK), self.stepper.done
        now = self.stepper.at()
        found = np.empty((1, steps, now.shape[1]))
        self.stepper.advance(steps, 1, begun + 1, found)
        done = int(self.stepper.steps()[0]) - begun
        states = np.concatenate([now, found[0, :done]])
        self._observe(begun, states)
        k = np.arange(begun + 1, begun + done + 1)
        kept = k[k % every == 0] if every else k[:0]
        rows[0, kept // every - first if every else kept] = states[kept - begun]
        return done

    def _observe(self, first: int, states: FloatArray) -> None:
        """Take the energy after these steps, of which `first` is the first."""
        t = np.asarray(self.plan.t0 + np.arange(first, first + len(states)) * self.plan.h, float)
        q, p = (np.ascontiguousarray(part) for part in np.split(states, 2, axis=1))
        params = np.tile(self._start.params, (len(t), 1))
        E = self.plan.system.energies(t, q, p, params)
        low, high = self._standing.energy[0]
        self._standing.energy[0] = np.fmin(low, E.min()), np.fmax(high, E.max())

    def steps(self) -> NDArray[np.int64]:
        return self.stepper.steps()

    def status(self) -> NDArray[np.int8]:
        return self.stepper.status()

    def at(self) -> FloatArray:
        return self.stepper.at()

    def spent(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.stepper.spent()

    def counts(self) -> dict[str, Any]:
        return self.stepper.counts()

    def failure(self) -> Failure | None:
        return self.stepper.failure()

    def finish(self, standing: Standing) -> None:
        """Everything is there already."""

    def state(self) -> dict[str, NDArray[Any]]:
        return self.stepper.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.stepper.restore(state)
