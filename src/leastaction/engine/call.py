"""Programs called from Python, one point at a time."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel import compile_program
from leastaction.kernel.guarded import check_zones, guarded
from leastaction.program import Program

KERNEL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)


class Called:
    """A Program as a function of named blocks, with memory of its own."""

    def __init__(self, program: Program) -> None:
        self.program, self.native = program, compile_program(program, rarely=True)
        self.function = KERNEL(self.native.address)
        sizes = {"given": self.native.inputs, "found": self.native.outputs, "work": self.native.work}
        self.arrays = [guarded((size,), name) for name, size in sizes.items()]
        self.given, self.found, _ = self.arrays
        self.addresses = [array.ctypes.data for array in self.arrays]

    def __call__(self, blocks: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
        begin = 0
        for name, size in self.program.inputs:
            self.given[begin : begin + size] = blocks[name]
            begin += size
        self.function(*self.addresses)
        check_zones(*self.arrays)
        found, begin = {}, 0
        for name, size in self.program.outputs:
            found[name] = self.found[begin : begin + size].copy()
            begin += size
        return found
