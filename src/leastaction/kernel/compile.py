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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import llvmlite
import llvmlite.binding as llvm

from leastaction.kernel import cache, vector_math
from leastaction.kernel.driver import Shape, driver
from leastaction.kernel.lower import PIECE, lower
from leastaction.kernel.script import Script, jobs_alone
from leastaction.kernel.strips import Strip, lower_strip
from leastaction.program import Program


class Effort(NamedTuple):
    """How hard LLVM tries: the level of its passes over the IR, and of instruction selection; whether operations on
    numbers that lie side by side are packed into vectors.
    """

    passes: int
    selection: int
    pack: bool = False


BEST = Effort(3, 3)
STRAIGHT = Effort(1, 3)  # for code without branches and loops, in which further passes find nothing to do

# The kinds of x86-64 processors (psABI's microarchitecture levels), and what each has, by LLVM's names.
_V2 = frozenset({"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
_WIDE = {"avx2", "fma", "avx512f"}  # what decides how vectors are computed with


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


def packable(program: Program) -> bool:
    """Whether a program is short enough for its numbers to be packed into vectors."""
    return _effort(program).passes > 0


RECENT = 128  # programs whose code is kept though nobody holds it, since it may be asked for again


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


_Kernel = tuple[str, int, bool, bool, Effort]

_lock = threading.RLock()
_loops: list[Any] = []  # the code of native loops lives as long as the process
_held: WeakValueDictionary[_Kernel, Native] = WeakValueDictionary()
_recent: OrderedDict[_Kernel, Native] = OrderedDict()
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


def _machine(level: int, kind: str = "native") -> Any:
    name, features = _processor() if kind == "native" else (kind, "")
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


def _library(lanes: int) -> dict[str, vector_math.Function]:
    """The functions of several lanes for the processor to compile for."""
    found = dict(vector_math.functions(lanes, _features()))
    return found if _processor()[0] in LEVELS else found | vector_math.powers(lanes, _features())


def _by_addition(program: Program, library: Mapping[str, vector_math.Function]) -> Program:
    """Sines of sums of angles from those of the angles, where sines and cosines are found together."""
    return vector_math.by_addition(program) if vector_math.written(library, vector_math.PAIR) else program


@lru_cache(maxsize=1)
def processor_kind() -> str:
    """The level of processor that the native loops are compiled for, so that one code serves all of them.

    It is the highest level that the processor has; "native" where the processor has no level, or could do more with
    vectors.
    """
    there = [level for level, needed in LEVELS.items() if needed <= _features()]
    return there[-1] if there and LEVELS[there[-1]] & _WIDE == _features() & _WIDE else "native"


def native_lanes() -> int:
    """How many trajectories go side by side: what fills a vector of AVX-512, or of AVX2, or two of 128 bits."""
    return 8 if "avx512f" in _features() else 4


def fingerprint() -> str:
    """What else decides the machine code: compiler and processor."""
    return f"{compiler()} {' '.join(_processor())}"


def compiler() -> str:
    """The compiler's versions, and the system that it compiles for."""
    return f"{llvmlite.__version__} {'.'.join(map(str, llvm.llvm_version_info))} {target_triple()}"


def target_triple() -> str:
    """Processor family, vendor and system, as LLVM names them."""
    return str(llvm.get_process_triple())


def compile_program(
    program: Program,
    lanes: int = 1,
    bounded: bool = False,
    in_place: bool = False,
    rarely: bool = False,
    pack: bool = False,
    same: frozenset[str] = frozenset(),
) -> Native:
    """The program as a native function of one or several lanes (see `lower`); equal programs are compiled once.

    Code that runs rarely, once in a step at most, is made in less time; with `pack` compilation takes longer, and like
    operations on numbers side by side are done at once. The blocks in `same` have the same number in all lanes.
    """
    effort = _effort(program, rarely)
    if pack and effort.passes > 0:
        effort = effort._replace(pack=True)
    what = (f"{program.digest} {sorted(same)}", lanes, bounded, in_place, effort)
    with _lock:
        native = _recent.get(what) or _held.get(what)
    if native is None:
        library = _library(lanes)
        written = _by_addition(program, library) if bounded else program
        piece = PIECE if effort.passes else LONG_PIECE
        lowered = lower(written, "kernel", lanes, bounded, in_place, library, piece, same)
        code = _linked(lambda: lowered.text, "kernel", key=lowered.text, effort=effort)
        native = Native(int(code["kernel"]), program.input_size, program.output_size, max(1, lowered.work), code)
    return _keep(what, native)


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
    key = "\n".join(["apart", *texts])
    codes = [_compiled(lambda: link_ir(texts, list(pieces)) if texts[1:] else texts[0], "run", key, effort)]
    codes += [_compiled(partial(str, text), name, text, effort) for text, name, effort in parts]
    code = _link("run", *codes)
    return Native(int(code["run"]), 0, 0, work, code)


def compile_jobs() -> Native:
    """The loop over jobs, loops over rows of tables (`script.Jobs`), for whoever sums at one point."""
    return compile_text("jobs", jobs_alone())


def compile_text(name: str, text: str) -> Native:
    """A function of this name, written in IR."""
    code = _linked(lambda: text, name, key=text, effort=STRAIGHT)
    return Native(int(code[name]), 0, 0, 0, code)


def _keep(what: _Kernel, native: Native) -> Native:
    """The one Native of a kernel, kept for a while though nobody may hold it."""
    with _lock:
        kept = _recent.get(what)
        if kept is None:
            kept = _recent[what] = _held.setdefault(what, native)
        _recent.move_to_end(what)
        while len(_recent) > RECENT:
            _recent.popitem(last=False)
    return kept


def compile_strip(strip: Strip) -> Native:
    """A loop over rows of a table as a native function (see `strips`); equal ones are compiled once."""
    program, lanes, effort = strip.program, native_lanes(), _effort(strip.program)
    effort = BEST if effort == STRAIGHT else effort  # there is a loop
    what = (f"{program.digest} {strip.writes} {strip.own} {strip.columns} {strip.pattern}", lanes, False, False, effort)
    with _lock:
        native = _held.get(what)
    if native is None:
        text = lower_strip(strip, lanes, _library(lanes))
        code = _linked(lambda: text, "strip", key=text, effort=effort)
        native = Native(int(code["strip"]), program.input_size, program.output_size, 1, code)
    return _keep(what, native)


def load_object(code: bytes, symbol: str) -> int:
    """The address of `symbol` in machine code that stays for as long as the process lives: that of a native loop."""
    library = _link(symbol, code)
    with _lock:
        _loops.append(library)
    return int(library[symbol])


def compile_object(text: Callable[[], str], symbol: str, key: str) -> bytes:
    """Machine code, for all processors of this one's kind, of the IR that `text()` gives.

    `key` must decide the IR: with an entry in the cache the IR is not made at all.
    """
    return _compiled(text, symbol, key, BEST, processor_kind())


def _linked(text: Callable[[], str], symbol: str, key: str, effort: Effort) -> Any:
    """Machine code in memory, compiled or taken from the cache; the code stays as long as this object."""
    return _link(symbol, _compiled(text, symbol, key, effort))


def _compiled(text: Callable[[], str], symbol: str, key: str, effort: Effort, kind: str = "native") -> bytes:
    """Machine code, compiled or taken from the cache."""
    _target()
    name = cache.key("object", fingerprint() if kind == "native" else f"{compiler()} {kind}", repr(effort), symbol, key)
    code = cache.load(name)
    if code is None:
        cache.missed()
        code = _object_code(text(), symbol, effort, kind)
        cache.store(name, code)
    return code


def _link(symbol: str, *codes: bytes) -> Any:
    _target()
    builder = llvm.JITLibraryBuilder().add_current_process().export_symbol(symbol)
    for code in codes:
        builder.add_object_img(code)
    with _lock:
        return builder.link(_jit(), f"code-{next(_names)}")


def link_ir(texts: list[str], apart: list[str]) -> str:
    """One module of several; functions whose names contain one of the texts `apart` are never inlined."""
    _target()
    module = llvm.parse_assembly(texts[0])
    for text in texts[1:]:
        module.link_in(llvm.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and any(name in function.name for name in apart):
            function.add_function_attribute("noinline")
    return str(module)


def _object_code(text: str, symbol: str, effort: Effort, kind: str) -> bytes:
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"  # what nothing calls is dropped
    machine = _machine(effort.selection, kind)
    module.triple = machine.triple
    if effort.passes:
        options = llvm.create_pipeline_tuning_options(speed_level=effort.passes)
        options.loop_vectorization = True
        options.slp_vectorization = effort.pack
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    for k, function in enumerate(function for function in module.functions if not function.is_declaration):
        if function.name != symbol:
            function.name = f"part.{k}"  # the same code has the same names, whoever made it
    return bytes(machine.emit_object(module))
