"""sin and cos of several lanes, as LLVM IR that is inlined into the kernels.

Libraries' vector sines are up to 4 ulp off; these stay below 1, as the scalar ones do, share everything
between sin x and cos x, and give the same bits at any number of lanes. With n the integer nearest to 2x/π,

    r = x − n π/2,  |r| ≤ π/4,

is found by fused multiply-adds with π/2 in three parts (Cody and Waite), the first exact, as a number and
its tail; sin r and cos r are the polynomials of fdlibm's k_sin.c and k_cos.c (Sun Microsystems, 1993). Lanes with
|x| ≥ 2³⁰, or not finite, call the scalar function. The branch to it costs time in every kernel, so there
is a bounded variant that gives NaN there, for callers that have another way for such lanes. All this pays where the
processor has fused multiply-adds, and `vector_math` offers it there.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath

from leastaction.numbers.precision import mpmath_bits

_SIN = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_COS = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
_PREFIX = "la."
_LARGEST = 2.0**30
_ROUND = 1.5 * 2.0**52  # added and taken away, it rounds to an integer, which is then in the sum's last bits


@cache
def _half_pi() -> tuple[float, float, float]:
    """π/2 as a sum of three floats, correct to 160 bits."""
    with mpmath_bits(240):
        left, parts = +mpmath.pi / 2, []
        for _ in range(3):
            parts.append(float(left))
            left -= parts[-1]
    return parts[0], parts[1], parts[2]


class _Writer:
    """Lines of IR on values of one vector type."""

    def __init__(self, lanes: int) -> None:
        self.lanes, self.type, self.lines, self.count = lanes, f"<{lanes} x double>", list[str](), 0

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %r{self.count} = {text}")
        return f"%r{self.count}"

    def number(self, x: float) -> str:
        bits = struct.unpack("<Q", struct.pack("<d", x))[0]
        return f"<{', '.join([f'double 0x{bits:016X}'] * self.lanes)}>"

    def integer(self, x: int) -> str:
        return f"<{', '.join([f'i64 {x}'] * self.lanes)}>"

    def op(self, name: str, a: str, b: str) -> str:
        return self.new(f"{name} {self.type} {a}, {b}")

    def bits(self, name: str, a: str, b: str) -> str:
        return self.new(f"{name} <{self.lanes} x i64> {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        T = self.type
        return self.new(f"call {T} @llvm.fma.v{self.lanes}f64({T} {a}, {T} {b}, {T} {c})")

    def polynomial(self, coefficients: tuple[float, ...], z: str) -> str:
        value = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, z, self.number(c))
        return value


def _function(op: str, lanes: int, bounded: bool) -> str:
    w = _Writer(lanes)
    T, J, N = w.type, f"<{lanes} x i64>", w.number
    high, middle, low = _half_pi()
    shifted = w.fma("%x", N(float(Fraction(1) / Fraction(high))), N(_ROUND))
    n = w.op("fsub", shifted, N(_ROUND))
    exact = w.fma(n, N(-high), "%x")
    # r + tail = exact − n·middle − n·low: the difference and the product with their roundings. Where |exact| is less
    # than the product, it has so few digits that nothing is lost.
    product = w.op("fmul", n, N(middle))
    lost = w.fma(n, N(-middle), product)
    r = w.op("fsub", exact, product)
    tail = w.op("fadd", w.op("fsub", w.op("fsub", exact, r), product), lost)
    tail = w.fma(n, N(-low), tail)
    z = w.op("fmul", r, r)
    # sin r = r + (tail + z r P(z)): cos r before the tail would change an eighth of an ulp.
    sine = w.op("fadd", r, w.fma(w.op("fmul", z, r), w.polynomial(_SIN, z), tail))
    # cos r = (1 − z/2) + what that rounded off + z² Q(z) − r·tail
    half = w.op("fmul", N(0.5), z)
    near = w.op("fsub", N(1.0), half)
    rest = w.op("fsub", w.op("fsub", N(1.0), near), half)
    rest = w.fma(w.op("fmul", z, z), w.polynomial(_COS, z), rest)
    cosine = w.op("fadd", near, w.fma(w.new(f"fneg {T} {r}"), tail, rest))
    # The quadrant chooses between them, and the sign.
    quadrant = w.new(f"bitcast {T} {shifted} to {J}")
    odd = w.new(f"icmp ne {J} {w.bits('and', quadrant, w.integer(1))}, {w.integer(0)}")
    first, second = (cosine, sine) if op == "sin" else (sine, cosine)
    value = w.new(f"select <{lanes} x i1> {odd}, {T} {first}, {T} {second}")
    turned = quadrant if op == "sin" else w.bits("add", quadrant, w.integer(1))
    sign = w.bits("shl", w.bits("and", turned, w.integer(2)), w.integer(62))
    signed = w.bits("xor", w.new(f"bitcast {T} {value} to {J}"), sign)
    fast = w.new(f"bitcast {J} {signed} to {T}")
    size = w.new(f"call {T} @llvm.fabs.v{lanes}f64({T} %x)")
    far = w.new(f"fcmp uge {T} {size}, {N(_LARGEST)}")
    if bounded:
        w.new(f"select <{lanes} x i1> {far}, {T} {N(float('nan'))}, {T} {fast}")
        body = "\n".join(w.lines)
        return f"define internal {T} @la.{op}({T} %x) alwaysinline memory(none) {{\n{body}\n  ret {T} %r{w.count}\n}}\n"
    some = w.new(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {far})")
    body = "\n".join(w.lines)
    slow, held = [], "%fast"
    for k in range(lanes):
        slow.append(
            f"  %x{k} = extractelement {T} %x, i32 {k}\n"
            f"  %s{k} = call double @llvm.{op}.f64(double %x{k})\n"
            f"  %i{k} = insertelement {T} {held}, double %s{k}, i32 {k}"
        )
        held = f"%i{k}"
    lines = "\n".join(slow)
    return f"""
define internal {T} @la.{op}.far({T} %x, {T} %fast, <{lanes} x i1> %far) noinline cold memory(none) {{
{lines}
  %mixed = select <{lanes} x i1> %far, {T} {held}, {T} %fast
  ret {T} %mixed
}}
define internal {T} @la.{op}({T} %x) alwaysinline memory(none) {{
near:
{body}
  br i1 {some}, label %far, label %done, !prof !{{!"branch_weights", i32 1, i32 1000000}}
far:
  %slow = call {T} @la.{op}.far({T} %x, {T} {fast}, <{lanes} x i1> {far})
  br label %done
done:
  %result = phi {T} [ {fast}, %near ], [ %slow, %far ]
  ret {T} %result
}}
"""


def symbol(op: str) -> str:
    """What sin or cos is called in the IR."""
    return f"{_PREFIX}{op}"


def defines(name: str) -> bool:
    """Whether a function of this name is written here."""
    return name in (symbol("sin"), symbol("cos"))


def shared(functions: Mapping[str, Any]) -> bool:
    """Whether the functions of several lanes have sin x and cos x from here, together."""
    return "sin" in functions and defines(functions["sin"].symbol)


@cache
def definitions(lanes: int, bounded: bool) -> str:
    """IR of @la.sin and @la.cos on <lanes x double>; @llvm.fma must be declared."""
    return (
        f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)\n"
        + _function("sin", lanes, bounded)
        + _function("cos", lanes, bounded)
    )
