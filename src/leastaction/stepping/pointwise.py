"""Programs at many points, natively."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel import compile_program
from leastaction.program import Program
from leastaction.stepping import layout
from leastaction.stepping.native import loop
from leastaction.stepping.workspace import workspace

FloatArray = NDArray[np.float64]


def evaluate(program: Program, rows: FloatArray) -> FloatArray:
    """The program's outputs (K, outputs) for rows (K, inputs) of its inputs."""
    kernel = compile_program(program)
    integers = np.zeros(layout.INTEGERS, np.int64)
    integers[[layout.HESSIAN, layout.STEPS, layout.DOF, layout.PARAMS]] = (
        kernel.address,
        len(rows),
        kernel.inputs,
        kernel.outputs,
    )
    results = np.zeros((len(rows), kernel.outputs))
    loop("pointwise.evaluate")(integers, np.ascontiguousarray(rows, float), results, np.zeros(kernel.work))
    return results


def velocities(
    point: Program, n: int, t: FloatArray, q: FloatArray, p: FloatArray, params: FloatArray
) -> tuple[FloatArray, int | None]:
    """v(t, q, p) at K points, and the index of the first that has none; `params` is one set, or (K, …) sets."""
    space = workspace(n, 1, params.shape[-1], hessian=point)
    space.integers[[layout.STEPS, layout.ROWS]] = len(q), params.ndim - 1
    v = np.zeros((len(q), n))
    points = np.ascontiguousarray(np.concatenate([q, p], axis=1))
    loop("pointwise.velocities")(space.integers, t, points, v, params, space.memory, space.pivots)
    done = int(space.integers[layout.DONE])
    return v, None if done == len(q) else done
