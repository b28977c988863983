"""Program: a function as a frozen list of scalar instructions.

A Program is what tracing writes and what every backend reads: the LLVM lowering, the
any-precision interpreter, the composition of whole steps. It knows none of them.

Instruction k defines value k. Each is a tuple whose first entry names the operation:

    ("input", i)        the i-th scalar of the flattened inputs
    ("const", x)        a number: a float (meaning exactly that binary number) or a Fraction
    (op, a)  (op, a, b) an operation of `OPERATIONS` on earlier values a, b

Comparisons and logic give 1.0 or 0.0; ("if", c, x) is x where c is non-zero and 0 elsewhere, and
("select", c, x, y) is x there and y elsewhere. ("maximum", x, y) is NaN where x or y is, as in NumPy; ("max", x, y),
which kernels use, is one instruction of a processor, and leaves open what it is where x or y is NaN.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from leastaction.reading import MOST_INSTRUCTIONS, entry, integer, listing, text

Instruction = tuple[Any, ...]


def _sign(x: float) -> float:
    return x + 0.0 if x == 0 or math.isnan(x) else math.copysign(1.0, x)


def _whole(rounding: Callable[[float], int]) -> Callable[[float], float]:
    """math.floor or math.ceil with the sign of x where they are zero: ⌈−½⌉ is −0."""
    return lambda x: float(rounding(x)) or math.copysign(0.0, x)


def _maximum(x: float, y: float) -> float:
    return y if math.isnan(y) else max(x, y)


def _minimum(x: float, y: float) -> float:
    return y if math.isnan(y) else min(x, y)


# Every operation and what it means on floats. The set is closed: backends implement exactly these.
UNARY: dict[str, Callable[[float], float]] = {
    "neg": lambda x: -x, "sqrt": math.sqrt, "sq": lambda x: x * x,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh,
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh,
    "exp": math.exp, "log": math.log, "expm1": math.expm1, "log1p": math.log1p, "erf": math.erf,
    "abs": abs, "sign": _sign, "floor": _whole(math.floor), "ceil": _whole(math.ceil), "not": lambda x: float(not x),
}  # fmt: skip
BINARY: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": math.pow, "atan2": math.atan2, "hypot": math.hypot, "fmod": math.fmod, "copysign": math.copysign,
    "min": min, "max": max, "minimum": _minimum, "maximum": _maximum,
    "lt": lambda x, y: float(x < y), "le": lambda x, y: float(x <= y),
    "eq": lambda x, y: float(x == y), "ne": lambda x, y: float(x != y),
    "and": lambda x, y: float(bool(x) and bool(y)), "or": lambda x, y: float(bool(x) or bool(y)),
    "if": lambda c, x: x if c else 0.0,
}  # fmt: skip
ARITY = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2) | {"select": 3}
OPERATIONS = ARITY.keys()  # of a system
# Across the lanes of a vector, in kernels whose lanes are the points of one step: the number of lane k, and the largest
# of all, each in every lane. `foldK` has in lane i the larger of lanes i and i^K, `sumK` their sum: of x if bit K of i
# is not set, else of y. `swapK` has in lane i the number of lane i^K. On one lane `lane0` and `largest` are the number
# itself, and the others do not occur.
LANE = tuple(f"lane{k}" for k in range(8))
FOLD = {f"{name}{k}": (name, k) for name in ("fold", "sum") for k in (1, 2, 4)}
SWAP = {f"swap{k}": k for k in range(1, 8)}
ACROSS = {*LANE, "largest", *FOLD, *SWAP}
ARITY = ARITY | dict.fromkeys((*LANE, *SWAP, "largest"), 1) | dict.fromkeys(FOLD, 2)
# Operations that take rational numbers to rational numbers.
_RATIONAL: dict[str, Callable[..., Fraction]] = {
    "neg": operator.neg, "sq": lambda x: x * x,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
}  # fmt: skip
MOST_CONSTANT_BITS = 14_000  # Python writes integers of at most 4,300 digits
LOGICAL = frozenset({"lt", "le", "eq", "ne", "and", "or", "not"})  # whose results are 0 or 1
_COMMUTATIVE = {"add", "mul", "min", "max", "minimum", "maximum", "eq", "ne", "and", "or", "hypot"}


@dataclass(frozen=True)
class Program:
    """A straight-line function from named input blocks to named output blocks.

    `inputs` and `outputs` give each block's name and number of scalars, in order; `results` holds
    the value index of every output scalar, block after block.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    code: tuple[Instruction, ...]
    results: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(size < 0 for _, size in (*self.inputs, *self.outputs)):
            raise ValueError(f"blocks have sizes of at least 0; got inputs {self.inputs} and outputs {self.outputs}")
        if sum(size for _, size in self.outputs) != len(self.results):
            raise ValueError(f"outputs {self.outputs} declare a size other than the {len(self.results)} results given")
        scalars, length = self.input_size, len(self.code)
        for k, (op, *args) in enumerate(self.code):
            if op == "input":
                if len(args) != 1 or not 0 <= args[0] < scalars:
                    raise ValueError(f"instruction {k} reads input {', '.join(map(str, args))} of {scalars}")
            elif op == "const":
                if len(args) != 1 or not isinstance(args[0], float | Fraction):
                    raise ValueError(f"instruction {k} is not one number: {self.code[k]}")
            elif ARITY.get(op) != len(args) or not all(0 <= a < k for a in args):
                raise ValueError(f"instruction {k} is not valid: {self.code[k]}")
        if not all(0 <= k < length for k in self.results):
            raise ValueError(f"results {self.results} name values that no instruction defines; there are {length}")

    @property
    def input_size(self) -> int:
        return sum(size for _, size in self.inputs)

    @property
    def output_size(self) -> int:
        return len(self.results)

    def input_slice(self, name: str) -> slice:
        return _slice(self.inputs, name)

    def output_slice(self, name: str) -> slice:
        return _slice(self.outputs, name)

    def output(self, name: str) -> tuple[int, ...]:
        """Value indices of one output block."""
        return self.results[self.output_slice(name)]

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the program: equal programs, and only they, share it."""
        text = repr((self.inputs, self.outputs, self.code, self.results))
        return hashlib.sha256(text.encode()).hexdigest()

    def select(self, *names: str) -> Program:
        """The same program with only these outputs, without what they do not need; the same object every time."""
        known = self._selected
        if names not in known:
            known[names] = self._reduced(names)
        return known[names]

    @cached_property
    def _selected(self) -> dict[tuple[str, ...], Program]:
        return {}

    def _reduced(self, names: tuple[str, ...]) -> Program:
        results = [k for name in names for k in self.output(name)]
        needed = [False] * len(self.code)
        for k in results:
            needed[k] = True
        for k in range(len(self.code) - 1, -1, -1):
            if needed[k] and self.code[k][0] not in ("input", "const"):
                for a in self.code[k][1:]:
                    needed[a] = True
        place: dict[int, int] = {}
        code: list[Instruction] = []
        for k, (op, *args) in enumerate(self.code):
            if needed[k]:
                place[k] = len(code)
                code.append((op, *args) if op in ("input", "const") else (op, *(place[a] for a in args)))
        outputs = tuple((name, len(self.output(name))) for name in names)
        return Program(self.inputs, outputs, tuple(code), tuple(place[k] for k in results))

    def with_outputs(self, **outputs: Sequence[int]) -> Program:
        """The program that gives these of its values, under these names."""
        blocks = tuple((name, len(values)) for name, values in outputs.items())
        results = tuple(value for values in outputs.values() for value in values)
        return Program(self.inputs, blocks, self.code, results).select(*outputs)

    def reading(self, sources: Sequence[int], blocks: Sequence[tuple[str, int]]) -> Program:
        """The same with other blocks of inputs, in which sources[i] is the place of what was the i-th input."""
        code = tuple(("input", sources[line[1]]) if line[0] == "input" else line for line in self.code)
        return Program(tuple(blocks), self.outputs, code, self.results)

    def depends(self, output: str, *inputs: str) -> bool:
        """Whether a block of outputs may change with one of these blocks of inputs."""
        moving = {i for name in inputs for i in range(*self.input_slice(name).indices(self.input_size))}
        reached = [False] * len(self.code)
        for k, (op, *args) in enumerate(self.code):
            reached[k] = args[0] in moving if op == "input" else op != "const" and any(reached[a] for a in args)
        return any(reached[k] for k in self.output(output))

    def split(self, moving: Sequence[str], name: str) -> tuple[Program, Program]:
        """Two programs that together are this one. The first is without the input blocks `moving`, and computes what
        does not depend on them; the second computes the rest, and reads the output of the first as a further input
        block, `name`.
        """
        blocks = [self.input_slice(block) for block in moving]
        moves = [False] * len(self.code)
        for k, (op, *args) in enumerate(self.code):
            moves[k] = (
                any(block.start <= args[0] < block.stop for block in blocks)
                if op == "input"
                else op != "const" and any(moves[a] for a in args)
            )
        wanted = {
            a for k, (op, *args) in enumerate(self.code) if moves[k] and op not in ("input", "const") for a in args
        }
        fixed = [
            k for k in sorted(wanted | set(self.results)) if not moves[k] and self.code[k][0] not in ("input", "const")
        ]
        place = {k: ("input", self.input_size + i) for i, k in enumerate(fixed)}
        before = Program(self.inputs, ((name, len(fixed)),), self.code, tuple(fixed)).select(name)
        code = tuple(place.get(k, instruction) for k, instruction in enumerate(self.code))
        after = Program((*self.inputs, (name, len(fixed))), self.outputs, code, self.results)
        return before, after.select(*(block for block, _ in self.outputs))

    def to_json(self) -> dict[str, Any]:
        """Plain data, exact: floats in hexadecimal, Fractions as text."""
        code = [
            [op, args[0].hex() if isinstance(args[0], float) else str(args[0])] if op == "const" else [op, *args]
            for op, *args in self.code
        ]
        return {"inputs": self.inputs, "outputs": self.outputs, "code": code, "results": self.results}

    @classmethod
    def from_json(cls, data: Any) -> Program:
        """The program that `to_json` wrote. The data may come from a stranger: everything in them is checked."""
        code = listing(entry(data, "code"), "code")
        if len(code) > MOST_INSTRUCTIONS:
            raise ValueError(f"a program of {len(code)} instructions is longer than the {MOST_INSTRUCTIONS} allowed")
        inputs, outputs = (_blocks(entry(data, name), name) for name in ("inputs", "outputs"))
        results = tuple(integer(k, "a result") for k in listing(entry(data, "results"), "results"))
        return cls(inputs, outputs, tuple(_instruction(line) for line in code), results)

    def __call__(self, *inputs: Iterable[float]) -> dict[str, list[float]]:
        """Evaluate on floats, block by block: slow, plain, and the meaning of the instructions."""
        x = [float(value) for block in inputs for value in block]
        if len(x) != self.input_size:
            raise ValueError(f"expected {self.input_size} input scalars {self.inputs}, got {len(x)}")
        values: list[float] = []
        for op, *args in self.code:
            if op == "input":
                values.append(x[args[0]])
            elif op == "const":
                values.append(to_float64(args[0]))
            else:
                values.append(_evaluate(op, *(values[a] for a in args)))
        return {name: [values[k] for k in self.output(name)] for name, _ in self.outputs}


def _blocks(data: Any, what: str) -> tuple[tuple[str, int], ...]:
    """Names and sizes of blocks, read from a file."""
    blocks = [listing(block, what, 2) for block in listing(data, what)]
    names = [text(name, "the name of a block") for name, _ in blocks]
    if len(set(names)) != len(names):
        raise ValueError(f"{what} must have different names; got {names}")
    return tuple((name, integer(size, f"the size of {name!r}")) for name, (_, size) in zip(names, blocks, strict=True))


def _instruction(data: Any) -> Instruction:
    """One instruction, read from a file."""
    op, *args = listing(data, "an instruction") or [None]
    if op != "const":
        if op in ACROSS:
            raise ValueError(f"{op} is no operation of a system")
        return (text(op, "an operation"), *(integer(a, "the place of a value") for a in args))
    if len(args) != 1:
        raise ValueError(f"a constant is one number; got {len(args)}")
    number = text(args[0], "a constant")
    return "const", Fraction(number) if "/" in number else float.fromhex(number)


def finite(x: float | Fraction) -> bool:
    """Whether a constant is a number; a Fraction of any size is one."""
    return isinstance(x, Fraction) or math.isfinite(x)


def in_range(x: float | Fraction) -> bool:
    """Whether float64 reaches as far as a constant."""
    return not isinstance(x, Fraction) or abs(x.numerator) < abs(x.denominator) << 1024


def negative_zero(x: float | Fraction) -> bool:
    """Whether a constant is −0, which equals 0."""
    return x == 0 and isinstance(x, float) and math.copysign(1.0, x) < 0


def to_float64(x: float | Fraction) -> float:
    """A constant, rounded to float64."""
    if not in_range(x):
        digits = math.log10(2) * (x.numerator.bit_length() - x.denominator.bit_length())  # type: ignore[union-attr]
        raise ValueError(
            f"a constant of about 10^{digits:.0f} appears where constants of L meet, beyond the 1.8·10^308 of float64. "
            "Choose other units, or run with digits="
        )
    return float(x)


def _slice(blocks: Sequence[tuple[str, int]], name: str) -> slice:
    start = 0
    for block, size in blocks:
        if block == name:
            return slice(start, start + size)
        start += size
    raise KeyError(f"no block {name!r}; there are {[block for block, _ in blocks]}")


def _evaluate(op: str, *args: float) -> float:
    """One operation on floats; outside its domain it gives NaN or infinity as compiled code does."""
    if op == "select":
        return args[1] if args[0] else args[2]
    function: Callable[..., float] = UNARY[op] if len(args) == 1 else BINARY[op]
    try:
        return float(function(*args))
    except ZeroDivisionError:
        return (
            math.nan
            if args[0] == 0 or math.isnan(args[0])
            else math.copysign(math.inf, args[0] * math.copysign(1, args[1]))
        )
    except (OverflowError, ValueError):
        return _edge(op, *args)


def _edge(op: str, x: float, y: float = 0.0) -> float:
    """The value where Python's functions raise: at infinity, at a pole, beyond the largest number, or NaN."""
    if op in ("floor", "ceil"):
        return x
    if op == "pow" and (x >= 0 or y == math.floor(y)):
        return math.copysign(math.inf, x) if abs(math.fmod(y, 2)) == 1 else math.inf
    if op in ("sinh", "atanh") and (op == "sinh" or abs(x) == 1):
        return math.copysign(math.inf, x)
    if (op, x) in (("log", 0.0), ("log1p", -1.0)):
        return -math.inf
    return math.inf if op in ("exp", "expm1", "cosh", "hypot") else math.nan


class Builder:
    """Writes Programs: folds constants, drops neutral elements, and never computes a value twice.

    Folding is exact: sums and products of constants are kept as Fractions where a float would
    round, and functions of constants are left to the backend, so that a Program means the same
    at any precision. A product with a comparison becomes an `if`, so that the derivative of the branch of
    `np.where` that was not taken cannot leak a NaN (0 · NaN) into the result.

    Some of these rules change the sign of a zero: x + 0 is +0 where x = −0, and x is not.
    """

    def __init__(self, inputs: Sequence[tuple[str, int]]) -> None:
        self.inputs = tuple(inputs)
        self.code: list[Instruction] = []
        self._place: dict[Instruction, int] = {}
        self._blocks: dict[str, list[int]] = {}

    def _emit(self, *instruction: Any) -> int:
        # A float's repr tells 0.0 from -0.0, which are equal as dictionary keys.
        key = ("const", repr(instruction[1])) if instruction[0] == "const" else instruction
        place = self._place.get(key)
        if place is None:
            place = self._place[key] = len(self.code)
            self.code.append(instruction)
        return place

    def input(self, name: str) -> list[int]:
        """The values of one input block."""
        if name not in self._blocks:
            block = _slice(self.inputs, name)
            self._blocks[name] = [self._emit("input", i) for i in range(block.start, block.stop)]
        return self._blocks[name].copy()

    def const(self, x: float | Fraction) -> int:
        if isinstance(x, Fraction):
            if (bits := max(x.numerator.bit_length(), x.denominator.bit_length())) > MOST_CONSTANT_BITS:
                raise ValueError(
                    f"a constant has {bits} bits; those of a Lagrangian have at most {MOST_CONSTANT_BITS}, 4,200 digits"
                )
            nearest = float(x) if in_range(x) else math.inf
            return self._emit("const", nearest if finite(nearest) and Fraction(nearest) == x else x)
        return self._emit("const", float(x))

    def constant(self, k: int) -> float | Fraction | None:
        """The number that value k is known to be, or None."""
        return self.code[k][1] if self.code[k][0] == "const" else None

    def op(self, op: str, *args: int) -> int:
        """The value of `op` on the values `args`, simplified."""
        constants = [self.constant(a) for a in args]
        if op == "mul" and 0 in constants:
            return self.const(0.0)
        if op in _RATIONAL and all(c is not None and finite(c) for c in constants):
            exact = [Fraction(c) for c in constants if c is not None]
            if op != "div" or exact[1] != 0:
                return self.const(_RATIONAL[op](*exact))
        if len(args) == 2:
            a, b = args
            x, y = constants
            if op == "add":
                if x == 0:
                    return b
                if y == 0:
                    return a
                if self.code[b][0] == "neg":
                    return self.op("sub", a, self.code[b][1])
                if self.code[a][0] == "neg":
                    return self.op("sub", b, self.code[a][1])
            elif op == "sub":
                if y == 0:
                    return a
                if x == 0:
                    return self.op("neg", b)
                if self.code[b][0] == "neg":
                    return self.op("add", a, self.code[b][1])
            elif op == "mul":
                if x == 1:
                    return b
                if y == 1:
                    return a
                if x == -1:
                    return self.op("neg", b)
                if y == -1:
                    return self.op("neg", a)
                for c, value in ((a, b), (b, a)):
                    if self.code[c][0] in LOGICAL:
                        return self._emit("if", c, value)
            elif op == "div":
                if x == 0 and y != 0:
                    return self.const(0.0)
                if y == 1:
                    return a
            if op in _COMMUTATIVE and a > b:
                args = (b, a)
        elif op == "neg" and self.code[args[0]][0] == "neg":
            return int(self.code[args[0]][1])
        return self._emit(op, *args)

    def add(self, a: int, b: int) -> int:
        return self.op("add", a, b)

    def sub(self, a: int, b: int) -> int:
        return self.op("sub", a, b)

    def mul(self, a: int, b: int) -> int:
        return self.op("mul", a, b)

    def div(self, a: int, b: int) -> int:
        return self.op("div", a, b)

    def select(self, c: int, x: int, y: int) -> int:
        condition = self.constant(c)
        if condition is not None:
            return x if condition else y
        return x if x == y else self._emit("select", c, x, y)

    def scale(self, x: float, a: int) -> int:
        return self.op("mul", self.const(x), a)

    def sum(self, terms: Iterable[int]) -> int:
        total = self.const(0.0)
        for term in terms:
            total = self.add(total, term)
        return total

    def inline(self, program: Program, **blocks: Sequence[int]) -> dict[str, list[int]]:
        """Write another program here, its input blocks bound to values of this one."""
        bound = [value for name, size in program.inputs for value in _checked(name, blocks[name], size)]
        place: list[int] = []
        for op, *args in program.code:
            if op == "input":
                place.append(bound[args[0]])
            elif op == "const":
                place.append(self.const(args[0]))
            else:
                place.append(self.op(op, *(place[a] for a in args)))
        return {name: [place[k] for k in program.output(name)] for name, _ in program.outputs}

    def build(self, **outputs: Sequence[int]) -> Program:
        """The finished program, without the values that no output needs."""
        return Program(self.inputs, (), tuple(self.code), ()).with_outputs(**outputs)

    # The same with Values, for arithmetic.

    def values(self, name: str) -> list[Value]:
        """The values of one input block."""
        return [Value(self, k) for k in self.input(name)]

    def blocks(self) -> dict[str, list[Any]]:
        """The values of all input blocks."""
        return {name: self.values(name) for name, _ in self.inputs}

    def number(self, x: float) -> Value:
        """A number."""
        return Value(self, self.const(x))

    def at(self, program: Program, given: Mapping[str, Iterable[Any]]) -> dict[str, list[Value]]:
        """What another program gives where it reads these values and numbers; it need not read all of them."""
        read = {name: indices(given[name], self) for name, _ in program.inputs}
        return {name: [Value(self, k) for k in found] for name, found in self.inline(program, **read).items()}

    def finished(self, **outputs: Iterable[Any]) -> Program:
        """The finished program of these values and numbers."""
        return self.build(**{name: indices(values, self) for name, values in outputs.items()})


def _written(op: str, swap: bool = False) -> Callable[[Value, Any], Value]:
    """An operator of Values; with `swap` the other one comes first."""
    if swap:
        return lambda self, other: Value(self.B, self.B.op(op, self._of(other), self.k))
    return lambda self, other: Value(self.B, self.B.op(op, self.k, self._of(other)))


class Value:
    """A value of a Builder with Python's arithmetic: what is computed with it is written to the Builder."""

    __slots__ = ("B", "k")

    def __init__(self, B: Builder, k: int) -> None:
        self.B, self.k = B, k

    def _of(self, other: Any) -> int:
        return other.k if isinstance(other, Value) else self.B.const(other)

    def op(self, op: str, *others: Any) -> Value:
        return Value(self.B, self.B.op(op, self.k, *(self._of(other) for other in others)))

    __add__, __radd__ = _written("add"), _written("add", swap=True)
    __sub__, __rsub__ = _written("sub"), _written("sub", swap=True)
    __mul__, __rmul__ = _written("mul"), _written("mul", swap=True)
    __truediv__, __rtruediv__ = _written("div"), _written("div", swap=True)
    __lt__, __gt__ = _written("lt"), _written("lt", swap=True)
    __le__, __ge__ = _written("le"), _written("le", swap=True)
    __and__, __or__ = _written("and"), _written("or")

    def __neg__(self) -> Value:
        return self.op("neg")

    def __abs__(self) -> Value:
        return self.op("abs")

    def __invert__(self) -> Value:
        return self.op("not")

    @property
    def known(self) -> float | Fraction | None:
        """The number that this is known to be, or None."""
        return self.B.constant(self.k)

    def where(self, yes: Any, no: Any) -> Value:
        """`yes` where this is not zero, `no` elsewhere."""
        return Value(self.B, self.B.select(self.k, self._of(yes), self._of(no)))


def dot(row: Iterable[Any], x: Iterable[Any]) -> Any:
    """Σ_k row_k x_k, one after the other."""
    return sum(a * b for a, b in zip(row, x, strict=True))


def indices(values: Iterable[Any], B: Builder) -> list[int]:
    """Values and numbers as indices of the Builder's values."""
    return [value.k if isinstance(value, Value) else B.const(value) for value in values]


def _checked(name: str, values: Sequence[int], size: int) -> Sequence[int]:
    if len(values) != size:
        raise ValueError(f"block {name!r} has {size} scalars, got {len(values)}")
    return values
