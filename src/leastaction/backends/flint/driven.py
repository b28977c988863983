"""The inputs of a run at any precision, step by step, as flint numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.stepper import Start, require_inputs
from leastaction.numbers.conversion import Balls, balls

Mpfs = NDArray[np.object_]


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
