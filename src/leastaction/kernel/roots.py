"""1/√x of several lanes, as LLVM IR that is inlined into the kernels, without a root and without a division.

Forces of gravity need 1/r and its powers, and a vector of roots and quotients keeps the one divider of a processor busy
for longer than all the rest of such a force takes. Processors with AVX-512 give y₀ ≈ 1/√x within 2⁻¹⁴. With

    e = 1 − (x y₀) y₀,  |e| < 2⁻¹³,      1/√x = y₀ (1 − e)^(−1/2) = y₀ + y₀ e (1/2 + 3/8 e + 5/16 e² + 35/128 e³ + …),

and the term of e³ replaced by the nearest one of degree 1, whose error is 2⁻⁵⁶, six operations find 1/√x within 1.1 ulp
(a root and a quotient: 1.5 ulp). All x of float64 are in range, subnormal ones too. Where e is no number, y₀ is the
result: 1/√0 = ∞, 1/√−0 = −∞, 1/√∞ = 0, NaN for NaN and below zero.

The last bits of y₀ may differ from one maker of processors to another. So this is for code that is compiled for the
processor it runs on, not for a kind of processors whose results are to agree to the last bit.
"""

from __future__ import annotations

import struct

from leastaction.kernel.vector_math import Function
from leastaction.program import Instruction, Program

OPERATION = "rsqrt"
SYMBOL = "la.rsqrt"
_WIDTHS = {8: 512, 4: 256}  # lanes, and bits of a vector
_LARGEST = 2.0**-13  # |e|
# e³ ≈ 2(√2 − 1) _LARGEST² e, with the least of largest errors where both are multiplied by e.
_COEFFICIENTS = (1 / 2, 3 / 8 + 35 / 128 * 2 * (2**0.5 - 1) * _LARGEST**2, 5 / 16)


def functions(lanes: int, features: frozenset[str]) -> dict[str, Function]:
    """1/√x of so many lanes, if the processor has a start for it."""
    there = lanes in _WIDTHS and {"avx512f", "avx512vl", "fma"} <= features
    return {OPERATION: Function(SYMBOL, lanes)} if there else {}


def by_one_operation(program: Program) -> Program:
    """The same program, with one operation for 1/√x."""
    one = {k for k, line in enumerate(program.code) if line[0] == "const" and line[1] == 1}
    code: list[Instruction] = []
    for op, *args in program.code:
        below = program.code[args[1]] if op == "div" and args[0] in one else ("",)
        code.append((OPERATION, below[1]) if below[0] == "sqrt" else (op, *args))
    if OPERATION not in {op for op, *_ in code}:
        return program
    found = Program(program.inputs, program.outputs, tuple(code), program.results)
    return found.select(*(name for name, _ in program.outputs))


def definition(lanes: int) -> str:
    """IR of @la.rsqrt on <lanes x double>; @llvm.fma must be declared."""
    T, bits = f"<{lanes} x double>", _WIDTHS[lanes]
    start, fma = f"llvm.x86.avx512.rsqrt14.pd.{bits}", f"llvm.fma.v{lanes}f64"

    def number(x: float) -> str:
        text = f"double 0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
        return f"<{', '.join([text] * lanes)}>"

    first, second, third = map(number, _COEFFICIENTS)
    return f"""
declare {T} @{start}({T}, {T}, i8)
define internal {T} @{SYMBOL}({T} %x) alwaysinline memory(none) {{
  %y = call {T} @{start}({T} %x, {T} zeroinitializer, i8 -1)
  %root = fmul {T} %x, %y
  %minus = fneg {T} %root
  %e = call {T} @{fma}({T} %minus, {T} %y, {T} {number(1.0)})
  %p = call {T} @{fma}({T} %e, {T} {third}, {T} {second})
  %q = call {T} @{fma}({T} %e, {T} %p, {T} {first})
  %ye = fmul {T} %y, %e
  %near = call {T} @{fma}({T} %ye, {T} %q, {T} %y)
  %number = fcmp ord {T} %e, %e
  %result = select <{lanes} x i1> %number, {T} %near, {T} %y
  ret {T} %result
}}
"""
