"""LLVM IR → machine code in this process, through the cache on disk.

Only this module touches llvmlite. The code is compiled for the processor it runs on; its name and
features are part of the cache's key, so a cache shared between machines is safe.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from leastaction.kernel import cache
from leastaction.kernel.lower import lower
from leastaction.program import Program

# Straight-line code beyond this many instructions gains little from LLVM's passes and waits long for them.
LONG = 20_000

_lock = threading.Lock()
_libraries: list[Any] = []  # the machine code lives as long as the process


@dataclass(frozen=True)
class Native:
    """A compiled Program: its address, and the sizes of the arrays it is called with."""

    address: int
    inputs: int
    outputs: int
    work: int


@lru_cache(maxsize=1)
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@lru_cache(maxsize=1)
def _jit() -> Any:
    return llvm.create_lljit_compiler(_machine(2))


def _machine(level: int) -> Any:
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc="pic",
        codemodel="default",
    )


def _fingerprint() -> str:
    """What else decides the machine code: compiler and processor."""
    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    return f"{llvmlite.__version__} {version} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


def compile_program(program: Program) -> Native:
    """The program as a native function; equal programs are compiled once."""
    return _compile_program(program.digest, program)


_programs: dict[str, Native] = {}


def _compile_program(digest: str, program: Program) -> Native:
    native = _programs.get(digest)
    if native is None:
        lowered = lower(program, "kernel")
        level = 1 if len(program.code) > LONG else 3
        address = compile_ir(lowered.text, "kernel", level)
        native = Native(address, program.input_size, program.output_size, max(1, lowered.work))
        _programs[digest] = native
    return native


def compile_ir(text: str, symbol: str, level: int = 3) -> int:
    """The address of `symbol` in this IR, optimised at `level` and compiled or taken from the cache."""
    _target()
    name = cache.key("object", _fingerprint(), str(level), symbol, text)
    code = cache.load(name)
    if code is None:
        code = _object_code(text, symbol, level)
        cache.store(name, code)
    with _lock:
        library = (
            llvm.JITLibraryBuilder()
            .add_object_img(code)
            .add_current_process()
            .export_symbol(symbol)
            .link(_jit(), f"{name}-{len(_libraries)}")
        )
        _libraries.append(library)
    return int(library[symbol])


def _object_code(text: str, symbol: str, level: int) -> bytes:
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"  # what nothing calls is dropped
    machine = _machine(level)
    module.triple = machine.triple
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.slp_vectorization = level > 1
    options.loop_vectorization = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))
