"""Programs: straight-line lists of scalar instructions, and an order of them that suits kernels (`ordering`)."""

from leastaction.program.core import (
    ACROSS,
    ARITY,
    BINARY,
    FOLD,
    LANE,
    LOGICAL,
    OPERATIONS,
    SWAP,
    UNARY,
    Builder,
    Instruction,
    Program,
    Value,
    dot,
    finite,
    in_range,
    indices,
    negative_zero,
    to_float64,
)  # fmt: skip

__all__ = [
    "ACROSS", "ARITY", "BINARY", "FOLD", "LANE", "LOGICAL", "OPERATIONS", "SWAP", "UNARY", "Builder", "Instruction",
    "Program", "Value", "dot", "finite", "in_range", "indices", "negative_zero", "to_float64",
]  # fmt: skip
