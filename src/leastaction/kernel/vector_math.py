"""Functions of several lanes at once: of our own, as LLVM IR that is inlined into the kernels, or from libmvec (glibc).

**libmvec.** A function `f` of `w` doubles is called `_ZGV<isa>N<w>v_f` (x86-64 psABI, Vector Function ABI), with one
`v` for each argument. Errors are below 4 ulp by its contract. Where the library or a function is missing, the
lowering calls the scalar function lane by lane.

**sin and cos** of our own stay below 1 ulp, as the scalar ones do, share everything between sin x and cos x, and give
the same bits at any number of lanes. With n the integer nearest to 2x/π, r = x − n π/2, |r| ≤ π/4, is found by fused
multiply-adds with π/2 in three parts (Cody and Waite), the first exact, as a number and its tail; sin r and cos r are
the polynomials of fdlibm's k_sin.c and k_cos.c (Sun Microsystems, 1993). Lanes with |x| ≥ 2³⁰, or not finite, call
the scalar function. The branch to it costs time in every kernel, so there is a bounded variant that gives NaN there,
for callers that have another way for such lanes. All this pays where the processor has fused multiply-adds.

**Sums of angles**, in bounded kernels: since sin x and cos x are found together, four products stand for a third
pair,

    sin(x ± y) = sin x cos y ± cos x sin y,      cos(x ± y) = cos x cos y ∓ sin x sin y,

with an error of some ε of the products, as much as rounding x and y to float64 makes.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import cache

import mpmath

from leastaction.numbers.precision import mpmath_bits
from leastaction.program import Instruction, Program

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
PAIR = ("sin", "cos")
SUMS = ("add", "sub")
_UNARY = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "log", "expm1", "log1p", "erf",
)  # fmt: skip
_BINARY = ("pow", "atan2", "hypot")
Library = Mapping[str, str]  # the function of several lanes for each operation that has one

_ISA = {8: ("e", "avx512f"), 4: ("d", "avx2")}  # the letter of each width, and what the processor must have


@cache
def functions(lanes: int, features: frozenset[str]) -> dict[str, str]:
    """The function of several lanes for each operation that has one, as the processor allows."""
    found = _libmvec(lanes, features)
    if lanes > 1 and ("fma" in features or platform.machine() in ("aarch64", "arm64")):
        found |= {op: symbol(op) for op in PAIR}
    return found


def symbol(op: str) -> str:
    """What a function that is written here is called in the IR."""
    return f"{_PREFIX}{op}"


def written(functions: Library, ops: Collection[str]) -> bool:
    """Whether these operations are computed by functions that are written here."""
    return all(functions.get(op) == symbol(op) for op in ops)


def literal(x: float, lanes: int) -> str:
    """A number in every lane."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    return f"<{', '.join([f'double 0x{bits:016X}'] * lanes)}>"


def definitions(functions: Library, lanes: int, bounded: bool) -> str:
    """IR of the functions that are written here."""
    if not written(functions, PAIR):
        return ""
    T = f"<{lanes} x double>"
    declared = [
        f"declare {T} @llvm.fma.v{lanes}f64({T}, {T}, {T})",
        f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)",
    ]
    return "\n".join([*declared, *(_angle(op, lanes, bounded) for op in PAIR)])


def _libmvec(lanes: int, features: frozenset[str]) -> dict[str, str]:
    """What libmvec has, at this many lanes."""
    letter, feature = _ISA.get(lanes, ("", ""))
    if feature not in features or platform.machine() not in ("x86_64", "AMD64"):
        return {}
    try:
        # Global, so that code compiled later finds the functions in this process.
        library = ctypes.CDLL("libmvec.so.1", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return {}
    prefix = f"_ZGV{letter}N{lanes}"
    names = {op: f"{prefix}v_{op}" for op in _UNARY} | {op: f"{prefix}vv_{op}" for op in _BINARY}
    return {op: name for op, name in names.items() if hasattr(library, name)}


@cache
def _half_pi() -> tuple[float, float, float]:
    """π/2 as a sum of three floats, correct to 160 bits."""
    with mpmath_bits(240):
        left, parts = +mpmath.pi / 2, []
        for _ in range(3):
            parts.append(float(left))
            left -= parts[-1]
    return parts[0], parts[1], parts[2]


class _Lines:
    """Lines of IR on values of one vector type."""

    def __init__(self, lanes: int) -> None:
        self.lanes, self.type, self.lines, self.count = lanes, f"<{lanes} x double>", list[str](), 0

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %r{self.count} = {text}")
        return f"%r{self.count}"

    def number(self, x: float) -> str:
        return literal(x, self.lanes)

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


@cache
def _angle(op: str, lanes: int, bounded: bool) -> str:
    w = _Lines(lanes)
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


def by_addition(program: Program) -> Program:
    """The same program, where sines and cosines of sums of angles follow from those of the angles."""
    code = program.code
    angles = {args[0] for op, *args in code if op in PAIR}
    sums = {k for k in angles if code[k][0] in SUMS and set(code[k][1:]) <= angles}
    sums = {k for k in sums if not sums & set(code[k][1:])}
    if not sums:
        return program
    written: list[Instruction] = []
    places: list[int] = []
    known: dict[Instruction, int] = {}

    def write(*instruction: object) -> int:
        place = known.setdefault(instruction, len(written))
        if place == len(written):
            written.append(instruction)
        return place

    for k, (op, *args) in enumerate(code):
        if op not in PAIR:
            places.append(len(written))
            written.append(code[k] if op in ("input", "const") else (op, *(places[a] for a in args)))
        elif args[0] not in sums:
            places.append(write(op, places[args[0]]))
        else:
            kind, x, y = code[args[0]]
            (sx, cx), (sy, cy) = ([write(each, places[a]) for each in PAIR] for a in (x, y))
            first, second = ((sx, cy), (cx, sy)) if op == "sin" else ((cx, cy), (sx, sy))
            joined = kind if op == "sin" else SUMS[kind == "add"]
            places.append(write(joined, write("mul", *first), write("mul", *second)))
    results = tuple(places[k] for k in program.results)
    found = Program(program.inputs, program.outputs, tuple(written), results)
    return found.select(*(name for name, _ in program.outputs))
