"""A run in the making, whatever its method: steps one after the other, states stored where they are wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.rows import Row
from leastaction.backends.status import Failure
from leastaction.backends.stepper import Alone
from leastaction.numbers.conversion import Balls, balls, mpfs
from leastaction.numbers.precision import flint_bits

Mpfs = NDArray[np.object_]


class Run(Alone, ABC):
    """One trajectory at work: see `backends.stepper.Stepper`.

    row    what is stored of a state
    D      the derivative that is carried, (2n, varied), if it does not belong to the state itself
    """

    INTEGERS: tuple[str, ...] = ("steps",)

    bits: int
    row: Row
    D: Any = None

    @abstractmethod
    def step(self) -> Failure | None:
        """Do one step, the one after `done` steps; where it fails, leave the state as it is."""

    @abstractmethod
    def now(self) -> Balls:
        """(q, p)."""

    @abstractmethod
    def saved(self) -> dict[str, NDArray[Any]]:
        """Copies of everything but D that the steps to come depend on; always of the same shapes."""

    @abstractmethod
    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such copies."""

    def whole(self) -> Balls:
        """(q, p), and behind it the derivatives that are carried, for one varied quantity after the other."""
        return self.now() if self.D is None else self.now() + list(self.D.transpose().entries())

    def copies(self) -> dict[str, NDArray[Any]]:
        """Copies of everything that the steps to come depend on."""
        return self.saved() if self.D is None else self.saved() | {"directions": mpfs(self.D.entries())}

    def go_on(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go on from such copies."""
        self.load(saved)
        if self.D is not None:
            self.D = flint.arb_mat(self.D.nrows(), self.D.ncols(), balls(saved["directions"]))

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
        now = self.whole()
        return mpfs([now[j] for j in self.row.columns] + now[2 * self.row.n :])

    def at(self) -> Mpfs:
        with flint_bits(self.bits):
            return mpfs(self.whole())[None]

    def state(self) -> dict[str, NDArray[Any]]:
        return {name: array[None] for name, array in self.copies().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        with flint_bits(self.bits):
            self.go_on({name: array[0] for name, array in state.items()})
