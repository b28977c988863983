"""Functions of several lanes at once: sines and cosines of our own, others from libmvec (glibc, x86-64).

A function `f` of `w` doubles is called `_ZGV<isa>N<w>v_f` (x86-64 psABI, Vector Function ABI), with one `v` for
each argument. Errors are below 4 ulp by libmvec's contract (the scalar functions stay below 1); each lane is
computed by the same instructions whatever the others hold. Where the library or a function is missing, `functions`
leaves it out and the lowering calls the scalar function lane by lane.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import NamedTuple

from leastaction.kernel import trigonometry

_UNARY = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "log", "expm1", "log1p", "erf",
)  # fmt: skip
_BINARY = ("pow", "atan2", "hypot")
_ISA = {8: ("e", "avx512f"), 4: ("d", "avx2")}  # the letter of each width, and what the processor must have


class Function(NamedTuple):
    """A function of the library and how many lanes it takes."""

    symbol: str
    width: int


@cache
def functions(lanes: int, features: frozenset[str]) -> dict[str, Function]:
    """The function of several lanes for each operation that has one, as the processor allows."""
    found = _library(lanes, features)
    if lanes > 1 and ("fma" in features or platform.machine() in ("aarch64", "arm64")):
        found |= {op: Function(trigonometry.symbol(op), lanes) for op in ("sin", "cos")}
    return found


def _library(lanes: int, features: frozenset[str]) -> dict[str, Function]:
    """What libmvec has, at this many lanes or half of them."""
    widths = [w for w, (_, feature) in _ISA.items() if w in (lanes, lanes // 2) and feature in features]
    if not widths or platform.machine() not in ("x86_64", "AMD64"):
        return {}
    try:
        # Global, so that code compiled later finds the functions in this process.
        library = ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return {}
    width = widths[0]
    prefix = f"_ZGV{_ISA[width][0]}N{width}"
    names = {op: f"{prefix}v_{op}" for op in _UNARY} | {op: f"{prefix}vv_{op}" for op in _BINARY}
    return {op: Function(name, width) for op, name in names.items() if hasattr(library, name)}
