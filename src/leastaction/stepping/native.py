"""The native loops: translated by Numba once, then machine code like every other kernel.

A loop's cache key is the text of all loops, of the layout they share with Python, and the versions
of the compilers; so a change anywhere in them makes new code. With a warm cache Numba is not even imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata, resources
from typing import Any

import numpy as np

from leastaction.kernel import BEST, compile_ir

# Each loop with the kinds of memory it is given: i 64-bit integers, d doubles, p LAPACK's 32-bit integers.
LOOPS = {
    "galerkin.run": "iddddddp",
    "galerkin.polynomials": "iddddddp",
    "lanes.run": "ididddidddddp",
    "rk4.run": "idddddp",
    "linear.run": "idddddddid",
    "tangent.run": "iddddddpiddd",
    "pointwise.evaluate": "iddd",
    "pointwise.velocities": "idddddp",
}
_NO_DESTRUCTOR = "define void @NRT_MemInfo_call_dtor(ptr %unused) { ret void }"
_MEMORY = {"i": np.int64, "d": np.float64, "p": np.int32}


@cache
def loop_address(name: str) -> int:
    """Where a loop's machine code is: one loop may call another."""
    key = f"{name} {metadata.version('numba')} {_source()}"
    return compile_ir(lambda: _translate(name), "loop", key, BEST)


@cache
def loop(name: str) -> Callable[..., None]:
    """A native loop by name; it takes contiguous arrays and runs without the interpreter's lock."""
    kinds = LOOPS[name]
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))(loop_address(name))

    def call(*arrays: np.ndarray) -> None:
        for array, kind in zip(arrays, kinds, strict=True):
            if array.dtype != _MEMORY[kind] or not array.flags.c_contiguous:
                raise TypeError(f"{name} takes contiguous arrays of {_MEMORY[kind].__name__}, got {array.dtype}")
        function(*(array.ctypes.data for array in arrays))

    return call


def _source() -> str:
    """The text of everything that decides the loops' machine code."""
    folder = resources.files("leastaction.stepping")
    files = [folder / "layout.py", *sorted((folder / "loops").iterdir(), key=lambda file: file.name)]
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.name.endswith(".py"))


@contextlib.contextmanager
def _unoptimised() -> Iterator[None]:
    """Numba's own passes off: what it translates is optimised here, once, as a whole."""
    import numba.core.config

    config: Any = numba.core.config
    level = config.OPT
    config.OPT = type(level)(0)
    try:
        yield
    finally:
        config.OPT = level


def _translate(name: str) -> str:
    """LLVM IR of a loop, by Numba, with an entry point `void loop(pointer, …)`."""
    from numba import types

    pointers = {"i": types.CPointer(types.int64), "d": types.CPointer(types.float64), "p": types.CPointer(types.int32)}
    module, function = name.split(".")
    dispatcher = getattr(importlib.import_module(f"leastaction.stepping.loops.{module}"), function)
    signature = tuple(pointers[kind] for kind in LOOPS[name])
    with _unoptimised():
        dispatcher.compile(signature)
    text = dispatcher.inspect_llvm(signature)
    # Numba's own entry takes places for the result and for an exception (there is neither) and then the arguments.
    symbol = re.search(r"^define [^@]*i32 @(\"?[\w.$]+\"?)\(ptr", text, re.MULTILINE)
    if symbol is None:
        raise RuntimeError(f"Numba's translation of {name} has no entry point")
    # Arrays made from pointers own nothing, so the destructor that Numba's reference counts name is never called.
    text = re.sub(r"^declare void @NRT_MemInfo_call_dtor\(ptr\).*$", _NO_DESTRUCTOR, text, flags=re.MULTILINE)
    parameters = ", ".join(f"ptr %a{i}" for i in range(len(signature)))
    return (
        text
        + f"\ndefine void @loop({parameters}) {{\n  %result = alloca i64\n  %error = alloca ptr\n"
        + f"  %status = call i32 @{symbol.group(1)}(ptr %result, ptr %error, {parameters})\n  ret void\n}}\n"
    )
