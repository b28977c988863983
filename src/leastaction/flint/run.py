"""A run in the making, whatever its method: steps one after the other, states stored where they are wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.conversion import Balls, balls, mpfs
from leastaction.numbers.precision import flint_bits
from leastaction.step.status import Failure
from leastaction.step.stepper import Alone, Start, require_inputs
from leastaction.step.stored_row import Row

Mpfs = NDArray[np.object_]


class Run(Alone, ABC):
    """One trajectory at work: see `step.stepper.Stepper`.

    Everything that the steps to come depend on is in attributes of `kept`: lists of flint numbers, always of the same
    length, by the names NUMBERS, floats by the names REALS, and integers by the names INTEGERS.

    row    what is stored of a state
    D      the derivative that is carried, (2n, varied) row by row; empty where there is none
    """

    NUMBERS: tuple[str, ...] = ("D",)
    REALS: tuple[str, ...] = ()
    INTEGERS: tuple[str, ...] = ("steps",)

    bits: int
    row: Row
    D: Balls

    @abstractmethod
    def step(self) -> Failure | None:
        """Do one step, the one after `done` steps; where it fails, leave the state as it is."""

    @abstractmethod
    def now(self) -> Balls:
        """(q, p), and behind it the derivatives that are carried, for one varied quantity after the other."""

    def kept(self) -> list[Any]:
        return [self]

    def begin_derivative(self) -> None:
        """D of the start by itself."""
        self.D = [flint.arb(int(i == j)) for i in range(2 * self.row.n) for j in range(self.row.varied)]

    def advance(self, steps: int, every: int, first: int, rows: Mpfs) -> int:
        begun, row = self.done, self.row
        with flint_bits(self.bits):
            while self.done < begun + steps:
                self.failed = self.step()
                if self.failed is not None:
                    break
                self.done += 1
                if every and self.done % every == 0:
                    now = self.now()
                    rows[0, self.done // every - first] = mpfs([now[j] for j in row.columns] + now[2 * row.n :])
        return self.done - begun

    def at(self) -> Mpfs:
        with flint_bits(self.bits):
            return mpfs(self.now())[None]

    def state(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        for k, own in enumerate(self.kept()):
            found |= {_key(name, k): mpfs(x)[None] for name in own.NUMBERS if (x := getattr(own, name))}
            found[_key("reals", k)] = np.array([[float(getattr(own, name)) for name in own.REALS]])
            found[_key("integers", k)] = np.array([[int(getattr(own, _attribute(name))) for name in own.INTEGERS]])
        return {name: array for name, array in found.items() if array.size}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        for k, own in enumerate(self.kept()):
            with flint_bits(self.bits):
                found = {name: balls(state[_key(name, k)][0]) for name in own.NUMBERS if _key(name, k) in state}
            for names, key in ((own.REALS, "reals"), (own.INTEGERS, "integers")):
                found |= dict(zip(names, state[_key(key, k)][0].tolist() if names else (), strict=True))
            for name, value in found.items():
                setattr(own, _attribute(name), value)


def _key(name: str, k: int) -> str:
    return f"{name}_{k}" if k else name


def _attribute(name: str) -> str:
    return "done" if name == "steps" else name


def behind(D: Balls, columns: int) -> Balls:
    """The derivatives as a row stores them, column by column."""
    return [x for j in range(columns) for x in D[j::columns]]


class Driven:
    """Inputs at the points of steps, point by point; none where a system has no inputs."""

    def __init__(self, system: Any, start: Start, points: Mpfs) -> None:
        require_inputs(system, start)
        self._start, self._inputs, self._points = start, start.inputs, points

    def step(self, k: int) -> Balls:
        """The inputs of the k-th step of the run."""
        start, inputs = self._start, self._inputs
        if inputs is None:
            return []
        with inputs.reals.working():
            found = inputs.along(start.t, start.h, k, 1, self._points)[0, 0]
        return balls(np.broadcast_to(found, (len(self._points), found.shape[1])).ravel())

    def within(self, t: Any, h: Any) -> Balls:
        """The inputs of a step of any length that begins at t."""
        if self._inputs is None:
            return []
        with self._inputs.reals.working():
            return balls(self._inputs.nodes(np.array([t], dtype=object), h, self._points)[0].ravel())
