"""Program → native function: lower to LLVM IR, compile, keep the machine code on disk."""

from leastaction.kernel.compile import Native, compile_program, compile_strip, fingerprint, native_lanes
from leastaction.kernel.lower import lower
from leastaction.kernel.strips import Column, Pattern, Strip, Write

__all__ = [
    "Column",
    "Native",
    "Pattern",
    "Strip",
    "Write",
    "compile_program",
    "compile_strip",
    "fingerprint",
    "lower",
    "native_lanes",
]
