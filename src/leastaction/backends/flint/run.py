"""A run in the making, whatever its method: steps one after the other, states stored where they are wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.status import Failure
from leastaction.numbers.conversion import Balls, mpfs
from leastaction.numbers.precision import flint_bits

Mpfs = NDArray[np.object_]


class Run(ABC):
    """What `integrate` asks of a method at work."""

    bits: int
    done = 0

    @abstractmethod
    def step(self) -> Failure | None:
        """Do one step, that after `done` others; or leave the state as it is."""

    @abstractmethod
    def row(self) -> Balls:
        """(q, p) now, to be stored."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that the steps to come depend on."""

    @abstractmethod
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such copies, to the last bit as if there had been no pause."""

    def advance(self, steps: int, every: int, last: int, rows: Mpfs) -> tuple[int, int, Failure | None]:
        """Do steps, write the stored states (q, p) to rows; return steps done, rows written, and a failure."""
        first, stored = self.done, 0
        with flint_bits(self.bits):
            while self.done < first + steps:
                failure = self.step()
                if failure is None:
                    self.done += 1
                wanted = self.done % every == 0 or self.done == last
                # Where a run fails, the state that it has come to is stored, if it is not yet.
                if wanted is (failure is None):
                    rows[stored] = mpfs(self.row())
                    stored += 1
                if failure is not None:
                    return self.done - first, stored, failure
        return steps, stored, None

    def counts(self) -> dict[str, float]:
        return {}
