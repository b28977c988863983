"""Programs evaluated by machine code."""

import ctypes

import numpy as np

from leastaction.kernel import Native, compile_program
from leastaction.kernel.compile import compile_text


def evaluate(program, rows):
    """The program's outputs, (K, outputs), for rows of its inputs, (K, inputs)."""
    kernel, rows = compile_program(program, rarely=True), np.ascontiguousarray(rows, float)
    found, work = np.zeros((len(rows), kernel.outputs)), np.zeros(kernel.work)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(kernel.address)
    for row, out in zip(rows, found, strict=True):
        function(row.ctypes.data, out.ctypes.data, work.ctypes.data)
    return found


def lowered_native(lowered):
    """A lowered kernel, compiled: `address`, `work` and what keeps the code."""
    code = compile_text("kernel", lowered.text)
    return Native(code.address, 0, 0, max(1, lowered.work), code)
