"""Program → native function: lower to LLVM IR, compile, keep the machine code on disk."""

from leastaction.kernel.compile import BEST, Native, compile_ir, compile_program, fingerprint, link_ir, native_lanes
from leastaction.kernel.lower import lower

__all__ = ["BEST", "Native", "compile_ir", "compile_program", "fingerprint", "link_ir", "lower", "native_lanes"]
