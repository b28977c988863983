"""Single steps of any length, each from a state of its own, by the solver of one trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.native import loop
from leastaction.backends.solver import Solvers

if TYPE_CHECKING:
    from leastaction.backends.backend import Backend

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SingleSteps:
    """Steps of a method on a system; the solver `alone` is one of the solvers."""

    backend: Backend
    solvers: Solvers
    alone: int

    def polynomials(
        self, starts: FloatArray, lengths: FloatArray, params: FloatArray, inputs: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The increments z, (K, s, n), and impulses, (K, n), of single steps of these lengths from rows (t, q, p), with
        one set of parameters or a row of them for each, and the inputs at their nodes, (K, r, channels).

        NaN where a step cannot be solved.
        """
        memory, step, count = self.solvers.memory, self.backend.step, len(starts)
        z, impulses = np.full((count, step.s, step.n), np.nan), np.full((count, step.n), np.nan)
        rows, starts = _rows(params[..., : self.backend.params], count, inputs), np.ascontiguousarray(starts)
        loop("polynomials.polynomials")(memory.I, memory.D, self.alone, count, lengths, starts, rows, z, impulses)
        return z, impulses


def _rows(params: FloatArray, count: int, inputs: FloatArray | None) -> FloatArray:
    """A row of parameters for each of so many, and behind it the inputs at the nodes."""
    rows = params if params.shape[:-1] == (count,) else np.broadcast_to(params, (count, params.shape[-1]))
    if inputs is None:
        return np.ascontiguousarray(rows)
    return np.concatenate([rows, inputs.reshape(count, inputs.shape[1] * inputs.shape[2])], axis=1)
