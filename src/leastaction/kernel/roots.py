"""x^(−1/2) and x^(−3/2) of several lanes, as LLVM IR that is inlined into the kernels, without a root and a division.

Forces of gravity need 1/r and 1/r³, and a vector of roots and quotients keeps the one divider of a processor busy for
longer than all the rest of such a force takes. Processors with AVX-512 give y ≈ 1/√x within 2⁻¹⁴, of 16 digits. With

    e = 1 − x y²,  |e| < 2⁻¹³,      1/√x = y (1 − e)^(−1/2) = y + y e (1/2 + 3/8 e + 5/16 e² + 35/128 e³ + …),
                                    x^(−3/2) = y³ (1 − e)^(−3/2) = y³ + y³ e (3/2 + 15/8 e + 35/16 e² + 315/128 e³ + …),

and with the terms of e³ replaced by terms of degree 1 that have the same mean, six operations find 1/√x within 1.1 ulp
(a root and a quotient: 1.5 ulp), and seven find x^(−3/2) within 1.5 ulp (a root, a quotient and two products: 5 ulp).

All x of float64 are in range, subnormal ones too. Where the sum is no number, its first term is the result: 1/√0 = ∞,
1/√−0 = −∞, 1/√∞ = 0, NaN for NaN and below zero. Kernels with bounds, whose callers have another way for lanes that
become NaN, leave this out: NaN is then also the result for 0 and ∞, and for numbers whose power is beyond float64.

The last digits of y may differ from one maker of processors to another. So all this is for code that is compiled for
the processor it runs on, not for a kind of processors whose results are to agree to the last bit.
"""

from __future__ import annotations

import struct
from collections import Counter

from leastaction.kernel.vector_math import Function
from leastaction.program import Instruction, Program

POWERS = {"rsqrt": 1, "rsqrt3": 3}  # operations, and the power of 1/√x that they are
_PREFIX = "la."
_WIDTHS = {8: 512, 4: 256}  # lanes, and bits of a vector
_LARGEST = 2.0**-13  # |e|
_LINEAR = 0.6 * _LARGEST**2  # e³ ≈ this times e: the errors have no mean where both are multiplied by e


def functions(lanes: int, features: frozenset[str]) -> dict[str, Function]:
    """These operations on so many lanes, if the processor has a start for them."""
    there = lanes in _WIDTHS and {"avx512f", "avx512vl", "fma"} <= features
    return {op: Function(f"{_PREFIX}{op}", lanes) for op in POWERS} if there else {}


def defines(name: str) -> bool:
    """Whether a function of this name is written here."""
    return name.removeprefix(_PREFIX) in POWERS


def by_powers(program: Program) -> Program:
    """The same program, with one operation for 1/√x, and one for its cube where only this is wanted."""
    code: list[Instruction] = list(program.code)
    for k, (op, *args) in enumerate(program.code):
        if op == "div" and program.code[args[0]] == ("const", 1.0) and program.code[args[1]][0] == "sqrt":
            code[k] = ("rsqrt", program.code[args[1]][1])
    if code == list(program.code):
        return program
    uses = Counter(a for op, *args in code if op not in ("input", "const") for a in args) + Counter(program.results)
    for k, (op, *args) in enumerate(program.code):
        if op == "mul":
            a, b = args if code[args[0]][0] == "rsqrt" else args[::-1]
            if code[a][0] == "rsqrt" and code[b] == ("sq", a) and (uses[a], uses[b]) == (2, 1):
                code[k] = ("rsqrt3", code[a][1])
    found = Program(program.inputs, program.outputs, tuple(code), program.results)
    return found.select(*(name for name, _ in program.outputs))


def definitions(lanes: int, bounded: bool) -> str:
    """IR of both on <lanes x double>; @llvm.fma must be declared."""
    T, start = f"<{lanes} x double>", f"llvm.x86.avx512.rsqrt14.pd.{_WIDTHS[lanes]}"
    # 1/√x by (x y) y, which is in range for all x; the other power is beyond float64 where y² is.
    first = _function("rsqrt", lanes, bounded, ("%t = fmul {T} %x, %y", "%y"), "%y", (1 / 2, 3 / 8, 5 / 16, 35 / 128))
    third = _function(
        "rsqrt3", lanes, bounded, ("%t = fmul {T} %y, %y", "%x"), "%c", (3 / 2, 15 / 8, 35 / 16, 315 / 128)
    )
    return f"declare {T} @{start}({T}, {T}, i8)\n{first}{third}"


def _function(
    op: str, lanes: int, bounded: bool, square: tuple[str, str], lead: str, series: tuple[float, float, float, float]
) -> str:
    """`lead` (1 + e (series in e)) with e = 1 − the product of `square`, of which the first factor is %t."""
    T, fma = f"<{lanes} x double>", f"llvm.fma.v{lanes}f64"

    def number(x: float) -> str:
        text = f"double 0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
        return f"<{', '.join([text] * lanes)}>"

    def fused(name: str, a: str, b: str, c: str) -> str:
        return f"%{name} = call {T} @{fma}({T} {a}, {T} {b}, {T} {c})"

    a, b, c, d = series
    factor, other = square
    lines = [
        f"%y = call {T} @llvm.x86.avx512.rsqrt14.pd.{_WIDTHS[lanes]}({T} %x, {T} zeroinitializer, i8 -1)",
        factor.replace("{T}", T),
        f"%minus = fneg {T} %t",
        fused("e", "%minus", other, number(1.0)),
        f"%c = fmul {T} %t, %y",
        fused("p", "%e", number(c), number(b + d * _LINEAR)),
        fused("q", "%e", "%p", number(a)),
        f"%le = fmul {T} {lead}, %e",
        fused("near", "%le", "%q", lead),
    ]
    if not bounded:
        lines += [
            f"%number = fcmp ord {T} %near, %near",
            f"%result = select <{lanes} x i1> %number, {T} %near, {T} {lead}",
        ]
    body = "\n  ".join([*lines, f"ret {T} {'%near' if bounded else '%result'}"])
    return f"define internal {T} @{_PREFIX}{op}({T} %x) alwaysinline memory(none) {{\n  {body}\n}}\n"
