"""Programs evaluated by machine code."""

import ctypes

import numpy as np

from leastaction.kernel import compile_program


def evaluate(program, rows):
    """The program's outputs, (K, outputs), for rows of its inputs, (K, inputs)."""
    kernel, rows = compile_program(program, rarely=True), np.ascontiguousarray(rows, float)
    found, work = np.zeros((len(rows), kernel.outputs)), np.zeros(kernel.work)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(kernel.address)
    for row, out in zip(rows, found, strict=True):
        function(row.ctypes.data, out.ctypes.data, work.ctypes.data)
    return found
