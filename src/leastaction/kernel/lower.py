"""Program → LLVM IR text.

Every Program becomes one function of the same shape, so that any loop can call any kernel by its
address:

    void kernel(const double *in, double *out, double *work)

`in` and `out` hold the program's input and output blocks one after the other. A long program is
cut into functions of at most `PIECE` instructions, since LLVM's passes cost more than
proportionally in the length of a function; values that cross a cut go through `work`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leastaction.program import Instruction, Program

PIECE = 2000

_ARGUMENTS = "ptr noalias %in, ptr noalias %out, ptr noalias %work"

_ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fmod": "frem"}
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTRINSICS = {
    **{op: f"llvm.{op}.f64" for op in ("sqrt", "sin", "cos", "exp", "log", "pow", "floor", "ceil", "copysign")},
    "abs": "llvm.fabs.f64", "min": "llvm.minnum.f64", "max": "llvm.maxnum.f64",
}  # fmt: skip
_LIBM = (
    "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "expm1", "log1p", "erf", "atan2", "hypot",
)  # fmt: skip
_BINARY_CALLS = {"pow", "copysign", "min", "max", "atan2", "hypot"}
_CALLS = {**_INTRINSICS, **{op: op for op in _LIBM}}


@dataclass(frozen=True)
class Lowered:
    """IR text of one kernel and the number of doubles its `work` array needs."""

    text: str
    work: int


def lower(program: Program, name: str) -> Lowered:
    """The program as LLVM IR defining `void @name(ptr in, ptr out, ptr work)`."""
    pieces = list(_pieces(program))
    slots = _crossing_slots(program, pieces)
    outputs: dict[int, list[int]] = {}
    for place, k in enumerate(program.results):
        outputs.setdefault(k, []).append(place)
    text = [_declarations()]
    if len(pieces) == 1:
        text.append(_function(program, pieces[0], f"@{name}", "", slots, outputs))
    else:
        for i, piece in enumerate(pieces):
            text.append(_function(program, piece, f"@{name}.{i}", "internal ", slots, outputs))
        calls = "\n".join(f"  call void @{name}.{i}(ptr %in, ptr %out, ptr %work)" for i in range(len(pieces)))
        text.append(
            f"define void @{name}(ptr noalias %in, ptr noalias %out, ptr noalias %work) {{\n{calls}\n  ret void\n}}\n"
        )
    return Lowered("\n".join(text), len(slots))


def _pieces(program: Program) -> Iterator[range]:
    length = len(program.code)
    count = max(1, -(-length // PIECE))
    for i in range(count):
        yield range(i * length // count, (i + 1) * length // count)


def _crossing_slots(program: Program, pieces: Sequence[range]) -> dict[int, int]:
    """A place in `work` for every value that is used in a later piece than it is made in."""
    slots: dict[int, int] = {}
    if len(pieces) > 1:
        for piece in pieces:
            for k in piece:
                for a in _operands(program.code[k]):
                    if a < piece.start and program.code[a][0] not in ("input", "const"):
                        slots.setdefault(a, len(slots))
    return slots


def _operands(instruction: Instruction) -> tuple[int, ...]:
    return () if instruction[0] in ("input", "const") else instruction[1:]


def _declarations() -> str:
    lines = []
    for op, symbol in _CALLS.items():
        arguments = "double, double" if op in _BINARY_CALLS else "double"
        attributes = "" if symbol.startswith("llvm.") else " nounwind willreturn memory(none)"
        lines.append(f"declare double @{symbol}({arguments}){attributes}")
    return "\n".join(lines) + "\n"


def _function(
    program: Program, piece: range, symbol: str, linkage: str, slots: dict[int, int], outputs: dict[int, list[int]]
) -> str:
    code = program.code
    body: list[str] = []
    known: dict[int, str] = {}

    def value(k: int) -> str:
        """The operand that holds value k here, loading it if it was made elsewhere."""
        if k not in known:
            op, argument = code[k][0], code[k][1]
            if op == "const":
                known[k] = _literal(float(argument))
            else:
                known[k] = f"%v{k}"
                source, place = ("in", argument) if op == "input" else ("work", slots[k])
                body.append(f"  %a{k} = getelementptr double, ptr %{source}, i64 {place}")
                body.append(f"  %v{k} = load double, ptr %a{k}")
        return known[k]

    for k in piece:
        op = code[k][0]
        if op not in ("input", "const"):
            operands = [value(a) for a in code[k][1:]]
            body.extend(_instruction(f"%v{k}", op, operands))
            known[k] = f"%v{k}"
            if k in slots:
                body.append(f"  %s{k} = getelementptr double, ptr %work, i64 {slots[k]}")
                body.append(f"  store double %v{k}, ptr %s{k}")
        for place in outputs.get(k, ()):
            held = value(k)
            body.append(f"  %o{place} = getelementptr double, ptr %out, i64 {place}")
            body.append(f"  store double {held}, ptr %o{place}")
    kept_apart = " noinline" if linkage else ""
    head = f"define {linkage}void {symbol}({_ARGUMENTS}){kept_apart} {{"
    return "\n".join([head, *body, "  ret void", "}", ""])


def _literal(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def _instruction(v: str, op: str, x: Sequence[str]) -> list[str]:
    """IR lines that define v. Products and sums may be contracted to fused multiply-adds, nothing more."""
    if op in _ARITHMETIC:
        return [f"  {v} = {_ARITHMETIC[op]} contract double {x[0]}, {x[1]}"]
    if op == "neg":
        return [f"  {v} = fneg double {x[0]}"]
    if op == "sq":
        return [f"  {v} = fmul contract double {x[0]}, {x[0]}"]
    if op in _CALLS:
        return [f"  {v} = call double @{_CALLS[op]}({', '.join(f'double {a}' for a in x)})"]
    c = v.replace("%v", "%c")
    zero = _literal(0.0)
    if op in _COMPARE:
        return [f"  {c} = fcmp {_COMPARE[op]} double {x[0]}, {x[1]}", f"  {v} = uitofp i1 {c} to double"]
    if op == "not":
        return [f"  {c} = fcmp oeq double {x[0]}, {zero}", f"  {v} = uitofp i1 {c} to double"]
    if op in ("and", "or"):
        return [
            f"  {c}a = fcmp une double {x[0]}, {zero}",
            f"  {c}b = fcmp une double {x[1]}, {zero}",
            f"  {c} = {op} i1 {c}a, {c}b",
            f"  {v} = uitofp i1 {c} to double",
        ]
    if op in ("if", "select"):
        return [
            f"  {c} = fcmp une double {x[0]}, {zero}",
            f"  {v} = select i1 {c}, double {x[1]}, double {x[2] if op == 'select' else zero}",
        ]
    if op == "sign":
        return [
            f"  {c} = fcmp oeq double {x[0]}, {zero}",
            f"  {c}s = call double @llvm.copysign.f64(double {_literal(1.0)}, double {x[0]})",
            f"  {v} = select i1 {c}, double {zero}, double {c}s",
        ]
    raise ValueError(f"no lowering for operation {op!r}")
