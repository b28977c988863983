"""The memory a native loop runs in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel import Native, compile_program
from leastaction.program import Program
from leastaction.stepping import lapack, layout


@dataclass(frozen=True, eq=False)
class Workspace:
    """Integers shared with the loop, its scratch arrays, and the kernels whose addresses are among the integers."""

    integers: NDArray[np.int64]
    memory: NDArray[np.float64]
    pivots: NDArray[np.int32]
    kernels: tuple[Native, ...]


def workspace(
    n: int, s: int, params: int, *, hessian: Program, gradient: Program | None = None, newton: Program | None = None
) -> Workspace:
    """Memory for n coordinates, degree s and this many parameters, with the kernels compiled and entered."""
    integers = np.zeros(layout.INTEGERS, np.int64)
    integers[[layout.DOF, layout.DEGREE, layout.PARAMS]] = n, s, params
    scratch, kernels = 1, []
    for place, program in ((layout.HESSIAN, hessian), (layout.GRADIENT, gradient), (layout.NEWTON, newton)):
        if program is not None:
            kernel = compile_program(program)
            integers[place] = kernel.address
            kernels.append(kernel)
            scratch = max(scratch, kernel.work)
    if n * s >= layout.LAPACK_FROM:
        integers[layout.GETRF], integers[layout.GETRS] = lapack.address("dgetrf"), lapack.address("dgetrs")
    places = layout.offsets(layout.work_sizes(n, s, params, scratch))
    integers[layout.WORK : layout.WORK + len(places)] = places
    return Workspace(integers, np.zeros(places[-1]), np.zeros(n * s + 4, np.int32), tuple(kernels))
