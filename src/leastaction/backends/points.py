"""Programs at many points, natively."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.layout import POINTS
from leastaction.backends.native import loop
from leastaction.backends.records import Memory
from leastaction.kernel import Native, compile_program
from leastaction.program import Program

FloatArray = NDArray[np.float64]


def evaluate(program: Program, rows: FloatArray) -> FloatArray:
    """The program's outputs (K, outputs) for rows (K, inputs) of its inputs."""
    kernel = compile_program(program, rarely=True)
    results = np.zeros((len(rows), kernel.outputs))
    inputs = np.ascontiguousarray(rows, float)
    loop("points.evaluate")(
        kernel.address, len(rows), kernel.inputs, kernel.outputs, inputs, results, np.zeros(kernel.work)
    )
    return results


def room(point: Program, n: int, rarely: bool = False) -> tuple[Native, dict[str, Any]]:
    """What the record of one point needs: the kernel of f, m and their derivatives, and arrays to work in."""
    kernel, params = compile_program(point, rarely=rarely), dict(point.inputs)["params"]
    return kernel, {
        "n": n, "params": params, "point": kernel.address, "rest": place_of_rest(point), "mass_pivots": np.zeros(n),
        "v": n, "at": point.input_size, "at_values": kernel.outputs, "V": n * n, "move": n, "fastest": n,
        "work": kernel.work,
    }  # fmt: skip


def place_of_rest(point: Program) -> int:
    """Where the kernel of a point gives the velocities to begin with; 0 where it gives none."""
    return int(point.output_slice("rest").start) if "rest" in dict(point.outputs) else 0


class Velocities:
    """v(t, q, p) of a system with n coordinates, from the Program of f, m and their derivatives at a point."""

    def __init__(self, point: Program, n: int) -> None:
        self._kernel, fields = room(point, n, rarely=True)
        self._memory, self._n = Memory(), n
        self._place = self._memory.add((POINTS, fields))
        self._memory.finish()

    def __call__(
        self, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, int | None]:
        """The velocities at K points, and the index of the first point that has none; `params` is one set, or (K, …)
        sets.
        """
        memory = self._memory.duplicate()
        v, counts = np.zeros((len(q), self._n)), np.array([len(q), 0])
        points = np.concatenate([q, p], axis=1)
        loop("points.velocities")(memory.I, memory.D, self._place, params.ndim - 1, counts, t, points, v, params)
        done = int(counts[1])
        return v, None if done == len(q) else done
