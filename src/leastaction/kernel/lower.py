"""Program → LLVM IR text.

Every Program becomes one function of the same shape, so that any loop can call any kernel by its
address:

    void kernel(const double *in, double *out, double *work)

`in` and `out` hold the program's input and output blocks one after the other. A kernel made to work in place writes
an output block that has the name of an input block over that one, each number after its last use. A long program is
cut into functions of at most `PIECE` instructions, since LLVM's passes cost more than
proportionally in the length of a function; values that cross a cut go through `work`. Where most of `out` is zero, as
in the Hessian of a chain, one fill with zeros stands for their stores: the code's length is that of the work, not n².

With several lanes every double becomes a vector of that many: scalar i of lane k is at [i · lanes + k] of the
arrays, and all lanes go through the same instructions, so that a lane's result does not depend on its
neighbours or its place. Functions that LLVM has no vector code for come from a library of functions of several lanes
(`vector_math`); what it lacks each lane calls by itself.

Where lanes are the points of one step, many values are the same in all lanes: those read from blocks of which the
caller says so, single lanes, and what is computed from these, as the whole verdict on an iteration. Such values are
computed once, as single numbers, beside the vectors' work, and spread over a vector where a vector needs them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from leastaction.kernel import vector_math
from leastaction.kernel.vector_math import Library
from leastaction.program import ACROSS, FOLD, LANE, SWAP, Instruction, Program, to_float64

PIECE = 2000  # instructions of one function, at most
MOST_INLINED = 2  # functions of a Program in which sines are written out; of twenty pendulums they are 4/5 of the code
GIVEN = ("input", "const")

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fmod": "frem"}
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTRINSICS = {
    **{op: f"llvm.{op}.f64" for op in ("sqrt", "sin", "cos", "exp", "log", "pow", "floor", "ceil", "copysign")},
    "abs": "llvm.fabs.f64",
}  # fmt: skip
_LIBM = (
    "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "expm1", "log1p", "erf", "atan2", "hypot",
)  # fmt: skip
_BINARY_CALLS = {"pow", "copysign", "atan2", "hypot"}
_CALLS = {**_INTRINSICS, **{op: op for op in _LIBM}}
_VECTOR_INTRINSICS = {"sqrt", "floor", "ceil", "copysign", "abs"}  # a few instructions, for all lanes
_LOGICAL = {*_COMPARE, "and", "or", "not"}  # operations whose results are zero or one
# What is computed once where it is the same in all lanes; functions are better in vectors than as calls of libm.
_ONCE = {"add", "sub", "mul", "div", "neg", "sq", "min", "max", "if", "select", "and", "or", "not", "abs", *_COMPARE}


@dataclass(frozen=True)
class Lowered:
    """IR text of one kernel and the number of doubles its `work` array needs."""

    text: str
    work: int


def lower(
    program: Program,
    name: str,
    lanes: int = 1,
    bounded: bool = False,
    in_place: bool = False,
    library: Library | None = None,
    piece: int = PIECE,
    same: Collection[str] = (),
) -> Lowered:
    """The program as LLVM IR defining `void @name(ptr in, ptr out, ptr work)`, in functions of at most so many
    instructions as a `piece` has.

    `library` has functions of several lanes (`vector_math`); with `bounded` sin x and
    cos x may be NaN for |x| ≥ 2³⁰. The blocks in `same` have the same
    number in all lanes.
    """
    target = _Lanes(lanes, bounded, library or {} if lanes > 1 else {})
    pieces = list(_pieces(program, piece))
    writes = _writes(program, pieces, in_place)
    zeros = _zeros(program)
    filled = not in_place and 2 * sum(k in zeros for k in program.results) > program.output_size
    if filled:
        writes = [[write for write in own if write[0] not in zeros] for own in writes]
    slots = _slots(program, pieces, writes)
    alias = "" if in_place else " noalias"
    arguments = f"ptr{alias} %in, ptr{alias} %out, ptr noalias %work"
    # A stack is aligned to 16 bytes: vectors that wait there would mostly lie across two lines of the cache.
    aligned = f" alignstack({8 * lanes})" if lanes > 1 else ""
    text, fill = [_declarations(target, {op for op, *_ in program.code})], []
    if len(pieces) > MOST_INLINED:
        text = [text[0].replace("alwaysinline", "noinline")]
    if filled:
        text.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n")
        size = 8 * lanes * program.output_size
        fill = [f"  call void @llvm.memset.p0.i64(ptr align 8 %out, i8 0, i64 {size}, i1 false)"]
    once = {i for name in same for i in range(*program.input_slice(name).indices(program.input_size))}
    alike = _alike(program, once) if lanes > 1 and same else set()
    bodies = [
        _body(program, piece, slots, own, in_place, target, alike, once)
        for piece, own in zip(pieces, writes, strict=True)
    ]
    if len(bodies) > 1:
        for i, body in enumerate(bodies):
            text.append(_function(f"internal void @{name}.{i}({arguments}) noinline{aligned}", body))
        bodies = [[f"  call void @{name}.{i}(ptr %in, ptr %out, ptr %work)" for i in range(len(pieces))]]
    text.append(_function(f"void @{name}({arguments}){aligned}", fill + bodies[0]))
    return Lowered("\n".join(text), len(slots) * lanes)


def _function(head: str, body: Sequence[str]) -> str:
    return "\n".join([f"define {head} {{", *body, "  ret void", "}", ""])


def _pieces(program: Program, piece: int) -> Iterator[range]:
    length = len(program.code)
    count = max(1, -(-length // piece))
    for i in range(count):
        yield range(i * length // count, (i + 1) * length // count)


Write = tuple[int, str, int, int]  # a value, the array it goes to, its place there, and after which instruction


def _writes(program: Program, pieces: Sequence[range], in_place: bool) -> list[list[Write]]:
    """What each piece writes, and after which instruction. A value that replaces an input is written after the last use
    of that input; a value that is an input itself is written last of all, when everything has been read.
    """
    inputs = dict(program.inputs) if in_place else {}
    end = len(program.code) - 1
    last = _last_uses(program) if in_place else {}
    for k in program.results:
        if program.code[k][0] == "input":
            last[program.code[k][1]] = end
    found: list[list[Write]] = [[] for _ in pieces]
    outside = 0
    for name, size in program.outputs:
        array, begin = ("in", program.input_slice(name).start) if name in inputs else ("out", outside)
        outside += 0 if name in inputs else size
        for i, k in enumerate(program.output(name)):
            if array == "in" and program.code[k] == ("input", begin + i):
                continue
            after = max(k, last.get(begin + i, 0)) if array == "in" else k
            if in_place and program.code[k][0] == "input":
                after = end
            own = next(j for j, piece in enumerate(pieces) if after < piece.stop)
            found[own].append((k, array, begin + i, after))
    return found


def _last_uses(program: Program) -> dict[int, int]:
    """The last instruction that reads each input."""
    last: dict[int, int] = {}
    for k, instruction in enumerate(program.code):
        for a in _operands(instruction):
            if program.code[a][0] == "input":
                last[program.code[a][1]] = k
    return last


def _zeros(program: Program) -> set[int]:
    """The values that are the constant +0."""
    constants = {k: to_float64(code[1]) for k, code in enumerate(program.code) if code[0] == "const"}
    return {k for k, number in constants.items() if number == 0 and math.copysign(1.0, number) > 0}


def _alike(program: Program, read: set[int]) -> set[int]:
    """The values that are the same in all lanes, as these inputs are; not those of constants alone."""
    found: set[int] = set()
    for k, (op, *args) in enumerate(program.code):
        if op in GIVEN:
            if op == "input" and args[0] in read:
                found.add(k)
        elif op not in ACROSS:
            if all(a in found or program.code[a][0] == "const" for a in args):
                found.add(k)
        elif op in LANE or op == "largest":
            found.add(k)
    return found


def _slots(program: Program, pieces: Sequence[range], writes: Sequence[Sequence[Write]]) -> dict[int, int]:
    """A place in `work` for every value that is used in a later piece than it is made in."""
    slots: dict[int, int] = {}
    for piece, own in zip(pieces, writes, strict=True):
        for a in [a for k in piece for a in _operands(program.code[k])] + [k for k, *_ in own]:
            if a < piece.start and program.code[a][0] not in GIVEN:
                slots.setdefault(a, len(slots))
    return slots


def _operands(instruction: Instruction) -> tuple[int, ...]:
    return () if instruction[0] in GIVEN else instruction[1:]


@dataclass(frozen=True)
class _Lanes:
    """How many lanes, and the library functions that take them all at once."""

    count: int
    bounded: bool
    functions: Library

    @property
    def type(self) -> str:
        return "double" if self.count == 1 else f"<{self.count} x double>"

    @property
    def bits(self) -> str:
        return "i1" if self.count == 1 else f"<{self.count} x i1>"

    def literal(self, x: float) -> str:
        number = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
        return number if self.count == 1 else f"<{', '.join([f'double {number}'] * self.count)}>"

    def intrinsic(self, op: str) -> str:
        symbol = _INTRINSICS[op]
        return symbol if self.count == 1 else symbol.replace(".f64", f".v{self.count}f64")

    def call(self, v: str, op: str, x: Sequence[str]) -> list[str]:
        """v = op(x …), for all lanes at once where there is such a function, else lane by lane."""
        function = self.functions.get(op)
        if function is None and (self.count == 1 or op in _VECTOR_INTRINSICS):
            function = self.intrinsic(op) if op in _INTRINSICS else op
        if function is not None:
            return [f"  {v} = call {self.type} @{function}({', '.join(f'{self.type} {a}' for a in x)})"]
        lines = []
        held = "poison"
        part = v.replace("%v", "%e")
        for k in range(self.count):
            for i, a in enumerate(x):
                lines.append(f"  {part}.{k}.{i} = extractelement {self.type} {a}, i32 {k}")
            arguments = ", ".join(f"double {part}.{k}.{i}" for i in range(len(x)))
            lines.append(f"  {part}.{k} = call double @{_CALLS[op]}({arguments})")
            into = v if k == self.count - 1 else f"{part}.{k}.r"
            lines.append(f"  {into} = insertelement {self.type} {held}, double {part}.{k}, i32 {k}")
            held = into
        return lines

    def largest(self, v: str, x: str) -> list[str]:
        """v = the largest of the lanes of x, in every lane."""
        lines, width = [], self.count
        while width > 1:
            width //= 2
            found = v if width == 1 else f"{v.replace('%v', '%e')}.{width}"
            places = ", ".join(f"i32 {k ^ width}" for k in range(self.count))
            lines += [
                f"  {found}.o = shufflevector {self.type} {x}, {self.type} poison, <{self.count} x i32> <{places}>",
                *self.extreme(found, "max", x, f"{found}.o"),
            ]
            x = found
        return lines

    def any(self, v: str, x: str) -> list[str]:
        """v = 1 if x, whose lanes are zero or one, is one in any lane, else 0: a single number."""
        c = v.replace("%v", "%c")
        return [
            f"  {c} = fcmp une {self.type} {x}, {self.literal(0.0)}",
            f"  {c}.bits = bitcast {self.bits} {c} to i{self.count}",
            f"  {c}.any = icmp ne i{self.count} {c}.bits, 0",
            f"  {v} = uitofp i1 {c}.any to double",
        ]

    def fold(self, v: str, how: str, k: int, x: str, y: str) -> list[str]:
        """v = in lane i the larger of lanes i and i^k, or their sum: of x where bit k of i is not set, else of y."""
        lines, e = [], v.replace("%v", "%e")
        for name, other in (("a", 0), ("b", k)):
            places = ", ".join(f"i32 {(i ^ other) + (self.count if i & k else 0)}" for i in range(self.count))
            lines.append(
                f"  {e}.{name} = shufflevector {self.type} {x}, {self.type} {y}, <{self.count} x i32> <{places}>"
            )
        if how == "sum":
            return [*lines, f"  {v} = fadd {self.type} {e}.a, {e}.b"]
        return [*lines, *self.extreme(v, "max", f"{e}.a", f"{e}.b")]

    def extreme(self, v: str, op: str, x: str, y: str) -> list[str]:
        """v = min or max of x and y: y where y is less, or more, and x elsewhere, as in Python."""
        compare = "ogt" if op == "max" else "olt"
        return [
            f"  {v}.c = fcmp {compare} {self.type} {y}, {x}",
            f"  {v} = select {self.bits} {v}.c, {self.type} {y}, {self.type} {x}",
        ]

    def extreme_or_nan(self, v: str, op: str, x: str, y: str) -> list[str]:
        """v = min or max of x and y, and NaN where one is: `extreme` keeps a NaN of x, and looks over one of y."""
        found = f"{v}.e"
        return [
            *self.extreme(found, op, x, y),
            f"  {v}.n = fcmp uno {self.type} {y}, {y}",
            f"  {v} = select {self.bits} {v}.n, {self.type} {y}, {self.type} {found}",
        ]


def _declarations(target: _Lanes, used: Collection[str]) -> str:
    pure = " nounwind willreturn memory(none)"
    functions = {symbol: ("double", op in _BINARY_CALLS) for op, symbol in _CALLS.items()}
    if target.count > 1:
        functions |= {target.intrinsic(op): (target.type, op in _BINARY_CALLS) for op in sorted(_VECTOR_INTRINSICS)}
        functions |= {
            symbol: (target.type, op in _BINARY_CALLS)
            for op, symbol in target.functions.items()
            if symbol != vector_math.symbol(op)
        }
    lines = []
    for symbol, (kind, binary) in functions.items():
        arguments = f"{kind}, {kind}" if binary else kind
        lines.append(f"declare {kind} @{symbol}({arguments}){'' if symbol.startswith('llvm.') else pure}")
    own = target.functions if not set(vector_math.PAIR).isdisjoint(used) else {}
    lines += filter(None, [vector_math.definitions(own, target.count, target.bounded)])
    return "\n".join(lines) + "\n"


def _body(
    program: Program,
    piece: range,
    slots: dict[int, int],
    writes: Sequence[Write],
    in_place: bool,
    target: _Lanes,
    alike: set[int],
    once: set[int],
) -> list[str]:
    """The lines of one piece; values that are `alike`, and inputs read `once`, are the same in all lanes."""
    code, kind, single = program.code, target.type, _Lanes(1, target.bounded, {})
    body: list[str] = []
    known: dict[int, str] = {}
    numbers: dict[int, str] = {}  # that are the same in all lanes

    def number(k: int) -> str:
        """The operand that holds the number which value k is in every lane."""
        if k not in numbers:
            op, argument = code[k][0], code[k][1]
            if op == "const":
                numbers[k] = single.literal(to_float64(argument))
                return numbers[k]
            numbers[k] = f"%n{k}"
            if k in known:
                body.append(f"  %n{k} = extractelement {kind} {known[k]}, i32 0")
                return numbers[k]
            source, place = ("in", argument * target.count) if op == "input" else ("work", slots[k] * target.count)
            body.append(f"  %b{k} = getelementptr double, ptr %{source}, i64 {place}")
            body.append(f"  %n{k} = load double, ptr %b{k}, align 8")
        return numbers[k]

    def value(k: int) -> str:
        """The operand that holds value k here, loading it if it was made elsewhere."""
        if k not in known:
            op, argument = code[k][0], code[k][1]
            if k in numbers or (op == "input" and k in alike):
                own = number(k)
                known[k] = f"%v{k}"
                body.extend(
                    [
                        f"  %i{k} = insertelement {kind} poison, double {own}, i32 0",
                        f"  %v{k} = shufflevector {kind} %i{k}, {kind} poison, <{target.count} x i32> zeroinitializer",
                    ]
                )
            elif op == "const":
                known[k] = target.literal(to_float64(argument))
            else:
                known[k] = f"%v{k}"
                source, place = ("in", argument) if op == "input" else ("work", slots[k])
                body.append(f"  %a{k} = getelementptr {kind}, ptr %{source}, i64 {place}")
                body.append(f"  %v{k} = load {kind}, ptr %a{k}, align 8")
        return known[k]

    def write(k: int, array: str, place: int) -> None:
        """Value k, to its place; of a block that has the same number in all lanes the first lane is all that is
        read.
        """
        if array == "in" and place in once:
            operand = number(k)
            body.append(f"  %{array}{place} = getelementptr double, ptr %{array}, i64 {place * target.count}")
            body.append(f"  store double {operand}, ptr %{array}{place}, align 8")
            return
        operand = value(k)
        body.append(f"  %{array}{place} = getelementptr {kind}, ptr %{array}, i64 {place}")
        # Where some lanes keep the old value LLVM would make a masked store, which is slow itself, and slow to read
        # from.
        how = "store volatile" if in_place and target.count > 1 else "store"
        body.append(f"  {how} {kind} {operand}, ptr %{array}{place}, align 8")

    by_time: dict[int, list[Write]] = {}
    for own in writes:
        by_time.setdefault(own[-1], []).append(own)
    for k in piece:
        op = code[k][0]
        if op not in GIVEN:
            if k in alike and op in _ONCE:
                body.extend(_instruction(single, f"%vn{k}", op, [number(a) for a in code[k][1:]]))
                numbers[k] = f"%vn{k}"
            elif op == "largest" and target.count > 1 and code[code[k][1]][0] in _LOGICAL:
                body.extend(target.any(f"%vn{k}", value(code[k][1])))
                numbers[k] = f"%vn{k}"
            else:
                body.extend(_instruction(target, f"%v{k}", op, [value(a) for a in code[k][1:]]))
                known[k] = f"%v{k}"
            if k in slots:
                operand = value(k)
                body.append(f"  %s{k} = getelementptr {kind}, ptr %work, i64 {slots[k]}")
                body.append(f"  store {kind} {operand}, ptr %s{k}, align 8")
        # All values are read before the first is written.
        ready = by_time.get(k, ())
        for own in ready:
            _ = number(own[0]) if own[1] == "in" and own[2] in once else value(own[0])
        for held, array, place, _ in ready:
            write(held, array, place)
    return body


def _instruction(target: _Lanes, v: str, op: str, x: Sequence[str]) -> list[str]:
    """IR lines that define v. Products and sums may be contracted to fused multiply-adds, nothing more."""
    T, bits = target.type, target.bits
    if op in _ARITHMETIC:
        return [f"  {v} = {_ARITHMETIC[op]} contract {T} {x[0]}, {x[1]}"]
    if op == "neg":
        return [f"  {v} = fneg {T} {x[0]}"]
    if op == "sq":
        return [f"  {v} = fmul contract {T} {x[0]}, {x[0]}"]
    if op in ("min", "max"):
        return target.extreme(v, op, *x)
    if op in ("minimum", "maximum"):
        return target.extreme_or_nan(v, op[:3], *x)
    if op in _CALLS:
        return target.call(v, op, x)
    c = v.replace("%v", "%c")
    zero = target.literal(0.0)
    if op in _COMPARE:
        return [f"  {c} = fcmp {_COMPARE[op]} {T} {x[0]}, {x[1]}", f"  {v} = uitofp {bits} {c} to {T}"]
    if op == "not":
        return [f"  {c} = fcmp oeq {T} {x[0]}, {zero}", f"  {v} = uitofp {bits} {c} to {T}"]
    if op in ("and", "or"):
        return [
            f"  {c}a = fcmp une {T} {x[0]}, {zero}",
            f"  {c}b = fcmp une {T} {x[1]}, {zero}",
            f"  {c} = {op} {bits} {c}a, {c}b",
            f"  {v} = uitofp {bits} {c} to {T}",
        ]
    if op in ("if", "select"):
        return [
            f"  {c} = fcmp une {T} {x[0]}, {zero}",
            f"  {v} = select {bits} {c}, {T} {x[1]}, {T} {x[2] if op == 'select' else zero}",
        ]
    if op in LANE:
        places = ", ".join([f"i32 {LANE.index(op)}"] * target.count)
        return [f"  {v} = shufflevector {T} {x[0]}, {T} poison, <{target.count} x i32> <{places}>"]
    if op == "largest":
        return target.largest(v, x[0])
    if op in FOLD:
        return target.fold(v, *FOLD[op], *x)
    if op in SWAP:
        places = ", ".join(f"i32 {i ^ SWAP[op]}" for i in range(target.count))
        return [f"  {v} = shufflevector {T} {x[0]}, {T} poison, <{target.count} x i32> <{places}>"]
    if op == "sign":
        return [  # x + 0 is 0 for ±0, and NaN for NaN
            f"  {c} = fcmp ueq {T} {x[0]}, {zero}",
            f"  {c}z = fadd {T} {x[0]}, {zero}",
            f"  {c}s = call {T} @{target.intrinsic('copysign')}({T} {target.literal(1.0)}, {T} {x[0]})",
            f"  {v} = select {bits} {c}, {T} {c}z, {T} {c}s",
        ]
    raise ValueError(f"no lowering for operation {op!r}")
