"""Functions of several lanes at once, from the C library's libmvec (glibc, x86-64).

A function `f` of `w` doubles is called `_ZGV<isa>N<w>v_f` (x86-64 psABI, Vector Function ABI), with one `v` for
each argument. Errors are below 4 ulp by libmvec's contract (the scalar functions stay below 1); each lane is
computed by the same instructions whatever the others hold. Where the library or a function is missing, `symbols` leaves
it out and the lowering calls the scalar function lane by lane.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

_UNARY = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "log", "expm1", "log1p", "erf",
)  # fmt: skip
_BINARY = ("pow", "atan2", "hypot")
_ISA = {4: "d", 8: "e"}  # AVX2, AVX-512


@cache
def symbols(lanes: int) -> dict[str, str]:
    """The library's function for each operation that it has at this number of lanes."""
    if lanes not in _ISA or platform.machine() not in ("x86_64", "AMD64"):
        return {}
    try:
        # Global, so that code compiled later finds the functions in this process.
        library = ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return {}
    names = {op: f"_ZGV{_ISA[lanes]}N{lanes}v_{op}" for op in _UNARY}
    names |= {op: f"_ZGV{_ISA[lanes]}N{lanes}vv_{op}" for op in _BINARY}
    return {op: name for op, name in names.items() if hasattr(library, name)}
