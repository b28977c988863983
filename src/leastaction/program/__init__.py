"""Programs: straight-line lists of scalar instructions, and an order of them that suits kernels (`ordering`)."""

from leastaction.program.core import (
    ACROSS,
    ARITY,
    BINARY,
    FOLD,
    LANE,
    OPERATIONS,
    SWAP,
    UNARY,
    Builder,
    Instruction,
    Program,
    Value,
    finite,
    in_range,
    indices,
    to_float64,
)

__all__ = [
    "ACROSS",
    "ARITY",
    "BINARY",
    "FOLD",
    "LANE",
    "OPERATIONS",
    "SWAP",
    "UNARY",
    "Builder",
    "Instruction",
    "Program",
    "Value",
    "finite",
    "in_range",
    "indices",
    "to_float64",
]
