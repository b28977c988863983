"""The native loops: translated by Numba once, then machine code like every other kernel.

Their machine code comes with the package (`built`), or from the cache, or is made: translated and compiled. The text of
all loops decides the code, so a change anywhere makes new code. Numba is imported only to translate.

Python and the loops share memory whose layout both know. So the text that counts is the one with which this process
began: its files may change while it lives, as by an update of the package, and loops of the new text would read the
memory of the old one.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import metadata, resources
from typing import Any

import numpy as np

from leastaction import kernel
from leastaction.backends import built
from leastaction.kernel import compile_object, link_ir, load_object
from leastaction.kernel.guarded import GUARDING, between_zones

_SYMBOL = "loop"  # the name of a loop in its machine code

# Each loop with what it is given: arrays of i 64-bit integers or d doubles, and n an integer.
LOOPS = {
    "run.run": "idn" + "ddi" + "dddd",
    "composed.run": "innnndd",
    "polynomials.polynomials": "idnnddddd",
    "polynomials.events": "idnnndddi" + "ddddddd",
    "helpers.work": "idnn",
    "strips.evaluate": "idnddddd",
    "sparse.analyse": "niiiii",
    "sparse.begin": "idndd",
    "points.evaluate": "nnnnddd",
    "points.velocities": "idnnidddd",
    "linear.run": "idn" + "ddddddd" + "id",
}
_MEMORY = {"i": np.dtype(np.int64), "d": np.dtype(np.float64)}
_BYTES = ctypes.c_char * 0
# The files, below the package, whose text decides the machine code.
_SOURCES = ("backends/loops", "backends/native.py", "backends/layout.py", "backends/records.py", "step/status.py")
_RULES = ("step/continuation.py", "step/crossing.py", "step/poles.py", "step/verdict.py")


# Functions that stay functions: copies of them at every call would cost time to compile and gain none to run.
_APART = (
    "set_step", "set_products", "set_given", "set_times", "set_mass", "jacobian", "factor", "solve", "invert", "_miss",
    "iterated", "increments", "chord", "chords", "continue_from_rest", "alone", "_alone", "_iterate", "_iterate_fused",
    "iterate_softly", "give_up", "iterate_stiffly", "march", "ends", "crossing", "by_kernels", "advance", "sweep",
    "move", "single", "settle", "set_bumps",
    "stiffly", "set_pattern", "by_pattern", "set_sparse", "by_sparse", "summed_velocity", "level", "leap",
    "by_jacobian", "linearised", "linearly", "see_rounding", "_piece", "take", "wait", "settle_sum",
    "solve_along", "missed", "negative", "negative_mass", "turned_pattern", "turned_jacobian", "turned_sparse",
    "coarse_jacobian", "coarse_pattern", "coarse_sparse", "lay_out", "eliminate", "solve_rows",
    "eliminate_rows", "solve_pattern", "leaps_over", "_near_the_largest", "look_for_poles", "_look_for_poles",
)  # fmt: skip


class Loop:
    """A native loop: it takes contiguous arrays and integers, and runs without the interpreter's lock.

    start      runs it on what `arguments` made of arrays and integers, as often as one likes: to check and to convert
               ten arrays takes some microseconds, as long as several steps
    address    of its machine code
    """

    def __init__(self, name: str) -> None:
        ready = built.find(name, source(name))
        self.name, self.address = name, load_object(compiled(name) if ready is None else ready.code, _SYMBOL)
        types = [ctypes.c_int64 if kind == "n" else ctypes.c_void_p for kind in LOOPS[name]]
        self.start = ctypes.CFUNCTYPE(None, *types)(self.address)
        self._memory = [_MEMORY.get(kind) for kind in LOOPS[name]]

    def __call__(self, *given: Any) -> None:
        arguments = self.arguments(*given)
        if not GUARDING:
            self.start(*arguments)
            return
        with between_zones(self.name, given) as safe:
            self.start(*self.arguments(*safe))

    def arguments(self, *given: Any) -> list[Any]:
        """What the machine code takes for these; arrays live as long as it."""
        return [
            int(x) if dtype is None else self._pointer(x, dtype) for x, dtype in zip(given, self._memory, strict=True)
        ]

    def argument(self, place: int, array: Any) -> Any:
        """The same for the array at this place alone."""
        return self._pointer(array, self._memory[place])

    def _pointer(self, array: Any, dtype: Any) -> Any:
        flags = array.flags
        if array.dtype != dtype or not flags.c_contiguous:
            raise TypeError(f"{self.name} takes contiguous arrays of {dtype}, got {array.dtype}")
        if flags.writeable:
            return _BYTES.from_buffer(array)  # faster than the other way
        return array.ctypes.data_as(ctypes.c_void_p)


@cache
def loop(name: str) -> Loop:
    """A native loop by name."""
    return Loop(name)


def fingerprint() -> str:
    """What decides the last bits of what loops and kernels compute: the processor, and the compilers of both."""
    ready = built.find("run.run", source("run.run"))
    foreign = "" if ready is None or ready.compiler == kernel.compiler() else f", loops by {ready.compiler}"
    return kernel.fingerprint() + foreign


def compiled(name: str) -> bytes:
    """A loop's machine code, from the cache or made."""
    return compile_object(lambda: _translate(name), _SYMBOL, f"{metadata.version('numba')} {source(name)}")


def source(name: str) -> str:
    """What decides a loop's machine code, beside the compilers."""
    return f"{name} {_TEXTS}"


def _texts() -> str:
    """The text of all loops and of what they are made from, as it is on disk now."""
    package = resources.files("leastaction")
    files = [package / path for path in (*_SOURCES[1:], *_RULES)]
    files += sorted((package / _SOURCES[0]).iterdir(), key=lambda file: file.name)
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.name.endswith(".py"))


_TEXTS = _texts()  # as they were when this process began

_COUNTED = re.compile(r"B\d+v\d+")  # the part of a name by which Numba counts its functions
_translated: list[Any] = []  # modules of all functions so far, what is called before what calls it


@contextlib.contextmanager
def _translation() -> Iterator[None]:
    """Numba translates and does nothing more: what it would optimise, link and load is compiled here, once, as a whole.

    Inside, the modules of all functions that are translated come to the list; Numba translates each function once.
    """
    from numba.core import codegen, config, cpu

    def finalize(one: Any) -> None:
        one._finalized = True
        _translated.append(one._final_module)

    settings: Any = config
    library: Any = codegen.CPUCodeLibrary
    context: Any = cpu.CPUContext
    level, whole, executable = settings.OPT, library.finalize, context.get_executable
    settings.OPT = type(level)(0)
    library.finalize = finalize
    context.get_executable = lambda *_: [].append  # a new object, never called, to know the function by
    try:
        yield
    finally:
        settings.OPT, library.finalize, context.get_executable = level, whole, executable


def _translate(name: str) -> str:
    """LLVM IR of a loop, by Numba, with an entry point `void loop(…)`."""
    from numba import types

    kinds = {"i": types.CPointer(types.int64), "d": types.CPointer(types.float64), "n": types.int64}
    module, function = name.split(".")
    dispatcher = getattr(importlib.import_module(f"leastaction.backends.loops.{module}"), function)
    if _texts() != _TEXTS:
        raise RuntimeError(
            "the files of leastaction have changed since this process imported them, as by an update, and its native "
            "loops, which are made when they are first needed, would not fit: start Python again"
        )
    signature = tuple(kinds[kind] for kind in LOOPS[name])
    with _translation():
        dispatcher.compile(signature)
        whole = dispatcher.overloads[signature]
        if whole.library._final_module not in _translated:
            whole.library.finalize()
    symbol = whole.fndesc.llvm_func_name
    # Numba's own entry takes places for the result and for an exception (there is neither) and then the arguments.
    given = ", ".join(f"{'i64' if kind == 'n' else 'ptr'} %a{i}" for i, kind in enumerate(LOOPS[name]))
    kinds_only = ", ".join("i64" if kind == "n" else "ptr" for kind in LOOPS[name])
    entry = (
        f'declare i32 @"{symbol}"(ptr, ptr, {kinds_only})\n'
        f"define void @loop({given}) {{\n  %result = alloca i64\n  %error = alloca ptr\n"
        f'  %status = call i32 @"{symbol}"(ptr %result, ptr %error, {given})\n  ret void\n}}\n'
    )
    # In an order that does not depend on what was translated before; the first module decides the layout of data.
    texts = sorted(map(str, _translated), key=lambda text: _COUNTED.sub("", text))
    return link_ir([*texts, entry], [f"{len(function)}{function}B" for function in _APART])
