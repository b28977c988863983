"""A composition at work, at any precision: a stepper of its method for each factor, one step of each in turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.backends.flint.galerkin import GalerkinStepper
from leastaction.backends.flint.mechanics import Mechanics
from leastaction.backends.flint.run import Run
from leastaction.backends.flint.tangent_runs import GalerkinTangent
from leastaction.backends.rows import Row
from leastaction.backends.status import Failure
from leastaction.backends.stepper import Start
from leastaction.methods import Composition
from leastaction.numbers.conversion import Balls
from leastaction.numbers.precision import mpmath_bits
from leastaction.step.form import step_of

Mpfs = NDArray[np.object_]


class ComposedStepper(Run):
    """Runs of a composition from a start, with their derivative where `row` asks for it."""

    def __init__(self, mechanics: Mechanics, method: Composition, start: Start, row: Row) -> None:
        self.row, self.bits = row, mechanics.bits
        step = step_of(mechanics.system, method.root)
        kind = GalerkinTangent if row.varied else GalerkinStepper
        self._factors = method.factors(round(self.bits * 0.302) + 2)
        self.phases: list[Any] = []
        with mpmath_bits(self.bits):
            for k, factor in enumerate(self._factors):
                phase = mpmath.fsum(self._factors[:k]), factor
                self.phases.append(kind(mechanics, step, start, row, phase))

    def step(self) -> Failure | None:
        """One step of each factor; where a step fails, the state is again the one before the first."""
        before = _state(self.phases[0])
        now = before
        for phase in self.phases:
            phase.done = self.done
            phase._q, phase._p, phase.D = now
            failure = phase.step()
            if failure is not None:
                now = before
                break
            now = _state(phase)
        first = self.phases[0]
        first._q, first._p, first.D = now
        return failure

    def now(self) -> Balls:
        return list(self.phases[0].whole())

    def saved(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {"integers": np.array([self.done])}
        for k, phase in enumerate(self.phases):
            found |= {f"{name}_{k}": array for name, array in phase.copies().items()}
        return found

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        self.done = int(saved["integers"][0])
        for k, phase in enumerate(self.phases):
            end = f"_{k}"
            phase.go_on({name.removesuffix(end): array for name, array in saved.items() if name.endswith(end)})

    def single_steps(self, starts: Mpfs, lengths: Mpfs) -> Mpfs:
        """The states (q, p) after single steps of these lengths from rows (t, q, p); NaN where one is not solved.

        Afterwards the stepper can be used for nothing else.
        """
        states = starts.copy()
        with mpmath_bits(self.bits):
            for phase, factor in zip(self.phases, self._factors, strict=True):
                own = lengths * factor
                given = [phase._driven.within(t, h) for t, h in zip(starts[:, 0], lengths, strict=True)]
                states[:, 1:] = self.phases[0].single_steps(states, own, given)
                states[:, 0] = states[:, 0] + own
        return states[:, 1:]

    def counts(self) -> dict[str, Any]:
        found = [phase.counts() for phase in self.phases]
        sums = {name: sum(one[name] for one in found) for name in ("newton_iterations", "continued")}
        return sums | {name: max(one[name] for one in found) for name in ("most_iterations", "floor")}


def _state(phase: GalerkinStepper) -> tuple[Any, ...]:
    return phase._q, phase._p, phase.D
