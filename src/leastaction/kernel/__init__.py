"""Program → native function: lower to LLVM IR, compile, keep the machine code on disk."""

from leastaction.kernel.compile import (
    BEST,
    Native,
    compile_ir,
    compile_program,
    compile_strip,
    fingerprint,
    link_ir,
    native_lanes,
)
from leastaction.kernel.lower import lower
from leastaction.kernel.strips import Column, Pattern, Strip, Write

__all__ = [
    "BEST",
    "Column",
    "Native",
    "Pattern",
    "Strip",
    "Write",
    "compile_ir",
    "compile_program",
    "compile_strip",
    "fingerprint",
    "link_ir",
    "lower",
    "native_lanes",
]
