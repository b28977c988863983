"""Program → native function: lower to LLVM IR, compile, keep the machine code on disk."""

from leastaction.kernel.compile import (
    LEVELS,
    Native,
    compile_object,
    compile_program,
    compile_strip,
    compiler,
    fingerprint,
    link_ir,
    load_object,
    native_lanes,
    packable,
    processor_kind,
    target_triple,
)
from leastaction.kernel.lower import lower
from leastaction.kernel.strips import Column, Pattern, Strip, Write

__all__ = [
    "LEVELS",
    "Column",
    "Native",
    "Pattern",
    "Strip",
    "Write",
    "compile_object",
    "compile_program",
    "compile_strip",
    "compiler",
    "fingerprint",
    "link_ir",
    "load_object",
    "lower",
    "native_lanes",
    "packable",
    "processor_kind",
    "target_triple",
]
