"""LLVM IR → machine code in this process, through the cache on disk.

Only this module touches llvmlite. The code is compiled for the processor it runs on, or for the kind that
$LEASTACTION_CPU names (`LEVELS`), so that the same code runs on all processors of that kind, as on a mixed cluster
whose results are to agree to the last bit. The processor is part of the cache's key, so a cache shared between
machines is safe.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from leastaction.kernel import cache, vector_math
from leastaction.kernel.driver import Shape, driver
from leastaction.kernel.lower import PIECE, lower
from leastaction.kernel.script import Script
from leastaction.kernel.strips import Strip, lower_strip
from leastaction.kernel.vector_math import Library
from leastaction.program import Program


class Effort(NamedTuple):
    """How hard LLVM tries: the level of its passes over the IR, and of instruction selection."""

    passes: int
    selection: int


BEST = Effort(3, 3)
STRAIGHT = Effort(1, 3)  # for code without branches and loops, in which further passes find nothing to do

# The kinds of x86-64 processors (psABI's microarchitecture levels), and what each has, by LLVM's names.
_V2 = frozenset({"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
LONG = 4_000  # instructions and outputs of a Program beyond which LLVM's passes gain nothing …
LONG_AND_RARE = 1_000  # … or too little for code that runs once in a step at most
LONG_PIECE = 500  # instructions of one function of such a Program
LONG_RUN = 40_000  # instructions of a piece of a run, of which there are four or five
ITERATING = {"first", "again", "hard", "harder"}  # pieces of a run whose result another iteration checks


def _effort(program: Program, rarely: bool = False) -> Effort:
    """The longer straight-line code is, the less LLVM's passes gain on it and the longer they take.

    Measured on the Hessian of twenty pendulums, 8,300 lines: 1.0 s with all passes, 0.7 s with none and the second
    level of instruction selection, 0.4 s with the first, 0.04 s with the fast one; the code ran in 1.4, 1.4, 1.4 and
    2.3 µs. So for long code that runs rarely instructions are selected fast. Outputs count, too: a caller that asks for
    a Hessian of n² entries spends more time on its own work with them than on their computation.

    The time that selection takes grows faster than a function. Derivatives of twenty pendulums at the nodes of a step,
    4,000 instructions in lanes, take 0.42 s in functions of 2,000 instructions, 0.28 s in functions of 500, and run as
    fast.
    """
    length = len(program.code) + program.output_size
    if length <= (LONG_AND_RARE if rarely else LONG):
        return STRAIGHT
    return Effort(0, 0) if rarely or length > 20_000 else Effort(0, 1)


RECENT = 128  # kernels that are kept though nobody may hold them, since they may be asked for again


@dataclass(frozen=True, eq=False)
class Native:
    """A compiled Program: its address, and the sizes of the arrays it is called with.

    The machine code is freed with the last Native of its program, so whoever keeps the address keeps the Native.
    """

    address: int
    inputs: int
    outputs: int
    work: int
    code: Any = field(default=None, repr=False)  # what keeps the machine code in memory


_lock = threading.RLock()
_recent: OrderedDict[tuple[Any, ...], Native] = OrderedDict()
_names = itertools.count()


@lru_cache(maxsize=1)
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@lru_cache(maxsize=1)
def _jit() -> Any:
    if missing := _features() - _host_features():
        asked = _processor()[0]
        raise ValueError(f"LEASTACTION_CPU asks for {asked}, but this processor has no {', '.join(sorted(missing))}")
    # JITLink lays the parts of a kernel side by side. In a process whose memory is crowded, LLVM's older linker may put
    # them farther apart than addresses relative to the code reach, and then the linker ends the process.
    return llvm.create_lljit_compiler(_machine(2), use_jit_link=True)


def _machine(level: int) -> Any:
    name, features = _processor()
    return _target().create_target_machine(cpu=name, features=features, opt=level, reloc="pic", codemodel="default")


@lru_cache(maxsize=1)
def _processor() -> tuple[str, str]:
    """The processor to compile for, as LLVM has it: its name and what it can do beyond that."""
    asked = os.environ.get("LEASTACTION_CPU") or "native"
    if asked == "native":
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    if asked not in LEVELS:
        raise ValueError(f"LEASTACTION_CPU must be native or one of {', '.join(LEVELS)}; it is {asked!r}")
    return asked, ""


@lru_cache(maxsize=1)
def _host_features() -> frozenset[str]:
    """What this processor has, by LLVM's names."""
    return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)


def _features() -> frozenset[str]:
    """What the processor to compile for has."""
    return LEVELS.get(_processor()[0], _host_features())


def _library(lanes: int) -> Library:
    """The functions of several lanes for the processor to compile for."""
    return vector_math.functions(lanes, _features())


def _by_addition(program: Program, library: Library) -> Program:
    """Sines of sums of angles from those of the angles, where sines and cosines are found together."""
    return vector_math.by_addition(program) if vector_math.written(library, vector_math.PAIR) else program


def native_lanes() -> int:
    """How many trajectories go side by side: what fills a vector of AVX-512, or of AVX2, or two of 128 bits."""
    return 8 if "avx512f" in _features() else 4


def fingerprint() -> str:
    """What else decides the machine code: compiler, system and processor."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvmlite.__version__} {version} {llvm.get_process_triple()} {' '.join(_processor())}"


def compile_program(program: Program, lanes: int = 1, bounded: bool = False, rarely: bool = False) -> Native:
    """The program as a native function of one or several lanes (see `lower`); equal programs are compiled once.

    Code that runs rarely, once in a step at most, is made in less time.
    """
    effort = _effort(program, rarely)

    def make() -> Native:
        library = _library(lanes)
        written = _by_addition(program, library) if bounded else program
        piece = PIECE if effort.passes else LONG_PIECE
        lowered = lower(written, "kernel", lanes, bounded, library=library, piece=piece)
        code = _linked([lowered.text], "kernel", effort)
        return Native(int(code["kernel"]), program.input_size, program.output_size, max(1, lowered.work), code)

    return _kept((program.digest, lanes, bounded, effort), make)


def compile_run(pieces: Mapping[str, Program | Script], shape: Shape, same: frozenset[str]) -> Native:
    """The pieces of a step and the loops around them as one native function (see `driver`).

    The blocks in `same` have the same number in all lanes. A lane whose angles are out of the bounded sine's range gets
    a NaN, so that its step fails and is solved alone.
    """
    library, texts, work = _library(shape.lanes), list[str](), 1
    parts = list[tuple[str, str, Effort]]()  # of Programs, compiled apart: other runs have the same ones
    for name, program in pieces.items():
        if isinstance(program, Script):
            texts += program.lower(name, shape.lanes, library)
            continue
        bounded = shape.lanes > 1 and name in ITERATING
        written = _by_addition(program, library) if bounded else program
        effort = STRAIGHT if len(program.code) <= LONG_RUN else Effort(0, 1)
        piece = PIECE if effort.passes else LONG_PIECE
        lowered = lower(written, name, shape.lanes, bounded, True, library, piece, same & dict(program.inputs).keys())
        parts.append((lowered.text, name, effort))
        work = max(work, lowered.work)
    effort = BEST if texts else STRAIGHT
    texts.append(driver(tuple(pieces), shape))
    # Pieces stay apart: inlined, a product of one piece could be contracted with a sum of the next.
    codes = [_compiled(texts, "run", effort, list(pieces))]
    codes += [_compiled([text], name, effort) for text, name, effort in parts]
    code = _link("run", *codes)
    return Native(int(code["run"]), 0, 0, work, code)


def compile_text(name: str, text: str) -> Native:
    """A function of this name, written in IR."""
    code = _linked([text], name, STRAIGHT)
    return Native(int(code[name]), 0, 0, 0, code)


def compile_strip(strip: Strip) -> Native:
    """A loop over rows of a table as a native function (see `strips`); equal ones are compiled once."""
    program, lanes, effort = strip.program, native_lanes(), _effort(strip.program)
    effort = BEST if effort == STRAIGHT else effort  # there is a loop

    def make() -> Native:
        code = _linked([lower_strip(strip, lanes, _library(lanes))], "strip", effort)
        return Native(int(code["strip"]), program.input_size, program.output_size, 1, code)

    return _kept((program.digest, strip.writes, strip.own, strip.columns, strip.pattern, effort), make)


def _kept(what: tuple[Any, ...], make: Callable[[], Native]) -> Native:
    """The one Native of a kernel, kept for a while though nobody may hold it."""
    with _lock:
        native = _recent.get(what)
    native = native or make()
    with _lock:
        native = _recent.setdefault(what, native)
        _recent.move_to_end(what)
        while len(_recent) > RECENT:
            _recent.popitem(last=False)
    return native


def _linked(texts: Sequence[str], symbol: str, effort: Effort, apart: Sequence[str] = ()) -> Any:
    """Machine code in memory, compiled or taken from the cache; the code stays as long as this object."""
    return _link(symbol, _compiled(texts, symbol, effort, apart))


def _compiled(texts: Sequence[str], symbol: str, effort: Effort, apart: Sequence[str] = ()) -> bytes:
    """Machine code, compiled or taken from the cache."""
    _target()
    name = cache.key("object", fingerprint(), repr(effort), symbol, *apart, *texts)
    code = cache.load(name)
    if code is None:
        cache.missed()
        code = _object_code(_joined(texts, apart), symbol, effort)
        cache.store(name, code)
    return code


def _link(symbol: str, *codes: bytes) -> Any:
    _target()
    builder = llvm.JITLibraryBuilder().add_current_process().export_symbol(symbol)
    for code in codes:
        builder.add_object_img(code)
    with _lock:
        return builder.link(_jit(), f"code-{next(_names)}")


def _joined(texts: Sequence[str], apart: Sequence[str]) -> Any:
    """One module of several; functions whose names contain one of the texts `apart` are never inlined."""
    module = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        module.link_in(llvm.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and any(name in function.name for name in apart):
            function.add_function_attribute("noinline")
    return module


def _object_code(module: Any, symbol: str, effort: Effort) -> bytes:
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"  # what nothing calls is dropped
    machine = _machine(effort.selection)
    module.triple = machine.triple
    if effort.passes:
        options = llvm.create_pipeline_tuning_options(speed_level=effort.passes)
        options.loop_vectorization = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    for k, function in enumerate(function for function in module.functions if not function.is_declaration):
        if function.name != symbol:
            function.name = f"part.{k}"  # the same code has the same names, whoever made it
    return bytes(machine.emit_object(module))
