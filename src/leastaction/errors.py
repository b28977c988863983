"""What can go wrong, each with a name of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastaction.path import Path


class TraceError(TypeError):
    """The Lagrangian's function cannot be turned into a Program; the message says which part and what to write."""


class DegenerateLagrangianError(ValueError):
    """∂²L/∂v² is singular, so that momenta do not determine velocities."""


class ConstraintError(ValueError):
    """A start is off the constraints, or these depend on each other there; the message says by how much, or which."""


class EnergyWarning(RuntimeWarning):
    """A motion loses energy that nothing takes: it is no longer that of its Lagrangian."""


@contextmanager
def measuring() -> Iterator[None]:
    """Inside, no run warns of energy that it loses: errors are what is measured there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EnergyWarning)
        yield


class StepFailed(ArithmeticError):  # noqa: N818  (a public name)
    """A step could not be solved. `.path` holds every step before it.

    step, time    index of the step that failed and the time at its start
    h             the step tried
    residual      the size of the last Newton increment, relative to the step's own increment
    iterations    Newton iterations spent on it
    """

    def __init__(
        self, message: str, *, path: Path, step: int, time: float, h: float, residual: float, iterations: int
    ) -> None:
        super().__init__(message)
        self.path = path
        self.step = step
        self.time = time
        self.h = h
        self.residual = residual
        self.iterations = iterations

    def __reduce__(self) -> tuple[Any, ...]:
        """How it travels between processes: with all it says, by keywords."""
        names = ("path", "step", "time", "h", "residual", "iterations")
        return partial(type(self), **{name: getattr(self, name) for name in names}), self.args


class RestingContact(StepFailed):
    """Impacts follow each other without end: the motion comes to rest on a wall. `.path` holds everything before."""


class UnstableStepError(ValueError):
    """The step h lies outside the method's stable intervals for this system; the message names ω_max and the limit."""
