"""Single steps of any length, each from a state of its own, by the solver of one trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.native import loop
from leastaction.backends.solver import Solvers
from leastaction.kernel import compile_program
from leastaction.program import Program

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

    def crossings(
        self, event: Program, which: NDArray[np.int64], starts: FloatArray, lengths: FloatArray, z: FloatArray,
        brackets: FloatArray, params: FloatArray, inputs: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
        """Where event functions (t, q, p, params) ↦ g change their signs in single steps: place, value and state.

        which     of the event functions, for each step
        z         the increments of the steps, (K, s, n)
        brackets  two places of each step, in units of its length, between which that one changes its sign, and its
                  values there, (K, 4)
        inputs    at their nodes, (K, r, channels), of shorter steps, too
        """
        memory, kernel, count = self.solvers.memory, compile_program(event), len(starts)
        places, values = (np.concatenate([brackets[:, k : k + 2]] * 2, axis=1) for k in (0, 2))
        states = np.zeros((count, starts.shape[1] - 1))
        loop("polynomials.events")(
            memory.I, memory.D, self.alone, kernel.address, count, lengths, np.ascontiguousarray(starts),
            _rows(params, count, inputs), which, np.ascontiguousarray(z), places, values, states,
            np.zeros(kernel.inputs), np.zeros(kernel.outputs), np.zeros(kernel.work),
        )  # fmt: skip
        return places[:, 0], values[:, 0], states


def _rows(params: FloatArray, count: int, inputs: FloatArray | None) -> FloatArray:
    """A row of parameters for each of so many, and behind it the inputs at the nodes."""
    rows = params if params.shape[:-1] == (count,) else np.broadcast_to(params, (count, params.shape[-1]))
    if inputs is None:
        return np.ascontiguousarray(rows)
    return np.concatenate([rows, inputs.reshape(count, inputs.shape[1] * inputs.shape[2])], axis=1)
