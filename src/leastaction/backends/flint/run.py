"""A run in the making, whatever its method: steps one after the other, states stored where they are wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.rows import Row
from leastaction.backends.status import Failure
from leastaction.backends.stepper import Alone
from leastaction.numbers.conversion import Balls, mpfs
from leastaction.numbers.precision import flint_bits

Mpfs = NDArray[np.object_]


class Run(Alone, ABC):
    """One trajectory at work: see `backends.stepper.Stepper`.

    row    what is stored of a state
    """

    INTEGERS: tuple[str, ...] = ("steps",)

    bits: int
    row: Row

    @abstractmethod
    def step(self) -> Failure | None:
        """Do one step, the one after `done` steps; where it fails, leave the state as it is."""

    @abstractmethod
    def now(self) -> Balls:
        """(q, p), and behind it the derivatives that are carried, for one varied quantity after the other."""

    @abstractmethod
    def saved(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that the steps to come depend on; always of the same shapes."""

    @abstractmethod
    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such copies."""

    def advance(self, steps: int, every: int, first: int, rows: Mpfs) -> int:
        begun = self.done
        with flint_bits(self.bits):
            while self.done < begun + steps:
                self.failed = self.step()
                if self.failed is not None:
                    break
                self.done += 1
                if every and self.done % every == 0:
                    rows[0, self.done // every - first] = self._stored()
        return self.done - begun

    def _stored(self) -> Mpfs:
        now = self.now()
        return mpfs([now[j] for j in self.row.columns] + now[2 * self.row.n :])

    def at(self) -> Mpfs:
        with flint_bits(self.bits):
            return mpfs(self.now())[None]

    def state(self) -> dict[str, NDArray[Any]]:
        return {name: array[None] for name, array in self.saved().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        with flint_bits(self.bits):
            self.load({name: array[0] for name, array in state.items()})
