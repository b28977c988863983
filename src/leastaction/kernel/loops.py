"""Small native loops around what Programs and matrices compute, each compiled when it is first asked for.

points    a Program at many points
linear    steps of a small linear system: one matrix, applied again and again
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.kernel.compile import compile_program, compile_text, native_lanes
from leastaction.kernel.driver import _Code
from leastaction.kernel.guarded import GUARDING, between_zones
from leastaction.program import Program

FloatArray = NDArray[np.float64]

_BYTES = ctypes.c_char * 0
_MEMORY = {"i": np.dtype(np.int64), "d": np.dtype(np.float64)}
BLOCK = 4  # vectors of rows whose products are summed at the same time, so that no sum waits for itself


class Loop:
    """A native function that takes contiguous arrays and integers and gives an integer, without the interpreter's lock.

    kinds   of its arguments: arrays of i 64-bit integers or d doubles, and n an integer
    """

    def __init__(self, name: str, kinds: str, text: str) -> None:
        self.name, self._native = name, compile_text(name, text)
        self._memory = [_MEMORY.get(kind) for kind in kinds]
        types = [ctypes.c_int64 if kind == "n" else ctypes.c_void_p for kind in kinds]
        self._start = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(self._native.address)

    def __call__(self, *given: Any) -> int:
        if not GUARDING:
            return int(self._start(*self._arguments(given)))
        with between_zones(self.name, given) as safe:
            return int(self._start(*self._arguments(safe)))

    def _arguments(self, given: Any) -> list[Any]:
        return [x if dtype is None else self._pointer(x, dtype) for x, dtype in zip(given, self._memory, strict=True)]

    def _pointer(self, array: Any, dtype: Any) -> Any:
        flags = array.flags
        if array.dtype != dtype or not flags.c_contiguous:
            raise TypeError(f"{self.name} takes contiguous arrays of {dtype}, got {array.dtype}")
        if flags.writeable:
            return _BYTES.from_buffer(array)  # faster than the other way
        return array.ctypes.data_as(ctypes.c_void_p)


def evaluate(program: Program, rows: FloatArray) -> FloatArray:
    """The program's outputs (K, outputs) for rows (K, inputs) of its inputs."""
    kernel = compile_program(program, rarely=True)
    results = np.zeros((len(rows), kernel.outputs))
    inputs = np.ascontiguousarray(rows, float)
    _points()(kernel.address, len(rows), kernel.inputs, kernel.outputs, inputs, results, np.zeros(kernel.work))
    return results


@cache
def _points() -> Loop:
    c = _Code()
    with c.each("%count") as k:
        given, found = c.at("%in", c.mul(k, "%inputs")), c.at("%out", c.mul(k, "%outputs"))
        c.do(f"call void %kernel(ptr {given}, ptr {found}, ptr %work)")
    head = "i64 @points(ptr %kernel, i64 %count, i64 %inputs, i64 %outputs, ptr %in, ptr %out, ptr %work)"
    return Loop("points", "nnnnddd", c.finished(head, "i64 0"))


def padded(size: int) -> int:
    """So many rows have the matrices of `linear` for a state of this size: whole blocks of vectors."""
    block, lanes = _block(size)
    return -(-size // (block * lanes)) * block * lanes


def linear(size: int) -> Loop:
    """Steps y ← y + (W + W_low) y + G F_k of a state y of this size; what rounding lost of y is in `carry`.

    It takes W, W_low and G, transposed, with `padded(size)` numbers in each row; F, a row for each step; y, carry and
    room for an increment, padded; the columns to store and where to store them; and size, padded size, loads, columns,
    numbers of a stored row, steps until a state is stored, and from then on, and steps to do. It gives the number of
    steps done: fewer than asked for, if the next one is not finite.
    """
    return _linear(*_block(size))


def _block(size: int) -> tuple[int, int]:
    """How many vectors of how many rows go together."""
    lanes = min(native_lanes(), max(2, 1 << (size - 1).bit_length()))
    return min(BLOCK, -(-size // lanes)), lanes


@cache
def _linear(block: int, lanes: int) -> Loop:
    c = _Code()
    kind, vectors = f"<{lanes} x double>", [lanes * b for b in range(block)]

    def times(sum_: str, matrix: str, factor: str) -> str:
        product = c.op(f"fmul contract {kind} {matrix}, {factor}")
        return c.op(f"fadd contract {kind} {sum_}, {product}")

    def read(array: str, place: str) -> str:
        return c.vector(c.at(array, place), lanes)

    def spread(array: str, place: str) -> str:
        return c.splat(c.get(c.at(array, place), "double"), lanes)

    k, going = c.variable("0"), c.variable("true", "i1")
    due, row, load = c.variable("%due"), c.variable("%rows", "ptr"), c.variable("%F", "ptr")
    spoilt = c.variable("zeroinitializer", kind)

    def more() -> str:
        return c.op(f"and i1 {c.op(f'icmp slt i64 {c.get(k)}, %steps')}, {c.get(going, 'i1')}")

    with c.repeat(more):
        with c.between("0", "%padded", lanes * block) as i:
            places = [c.add(i, v) for v in vectors]
            high = [c.variable("zeroinitializer", kind) for _ in vectors]
            low = [c.variable(read("%carry", place), kind) for place in places]
            with c.each("%size") as j:
                y, carry, line = spread("%y", j), spread("%carry", j), c.mul(j, "%padded")
                for a, b, place in zip(high, low, places, strict=True):
                    at = c.add(line, place)
                    W = read("%W", at)
                    c.put(a, times(c.get(a, kind), W, y), kind)
                    c.put(b, times(times(c.get(b, kind), read("%W_low", at), y), W, carry), kind)
            with c.each("%loads") as j:
                x, line = spread(c.get(load, "ptr"), j), c.mul(j, "%padded")
                for a, place in zip(high, places, strict=True):
                    c.put(a, times(c.get(a, kind), read("%G", c.add(line, place)), x), kind)
            for a, b, place in zip(high, low, places, strict=True):
                d = c.op(f"fadd {kind} {c.get(a, kind)}, {c.get(b, kind)}")
                c.put_vector(c.at("%d", place), d, lanes)
                after = c.op(f"fadd {kind} {read('%y', place)}, {d}")
                nothing = c.op(f"fsub {kind} {after}, {after}")  # not a number where a sum is infinite or not one
                c.put(spoilt, c.op(f"fadd {kind} {c.get(spoilt, kind)}, {nothing}"), kind)
        bits = c.op(f"fcmp uno {kind} {c.get(spoilt, kind)}, zeroinitializer")
        c.put(going, c.op(f"icmp eq i{lanes} {c.op(f'bitcast <{lanes} x i1> {bits} to i{lanes}')}, 0"), "i1")
        with c.when(c.get(going, "i1")):
            with c.between("0", "%padded", lanes) as i:  # Knuth's two-sum: y + carry is exact
                y, d = read("%y", i), read("%d", i)
                after = c.op(f"fadd {kind} {y}, {d}")
                rounded = c.op(f"fsub {kind} {after}, {y}")
                lost = c.op(f"fsub {kind} {y}, {c.op(f'fsub {kind} {after}, {rounded}')}")
                carry = c.op(f"fadd {kind} {lost}, {c.op(f'fsub {kind} {d}, {rounded}')}")
                c.put_vector(c.at("%carry", i), carry, lanes)
                c.put_vector(c.at("%y", i), after, lanes)
            c.put(k, c.add(c.get(k), 1))
            c.put(load, c.at(c.get(load, "ptr"), "%loads"), "ptr")
            c.put(due, c.add(c.get(due), -1))
            with c.when(c.op(f"icmp eq i64 {c.get(due)}, 0")):
                c.put(due, "%every")
                with c.each("%width") as j:
                    x = c.get(c.at("%y", c.get(c.at("%columns", j))), "double")
                    c.put(c.at(c.get(row, "ptr"), j), x, "double")
                c.put(row, c.at(c.get(row, "ptr"), "%stride"), "ptr")
    arrays = ("W", "W_low", "G", "F", "y", "carry", "d", "columns", "rows")
    numbers = ("size", "padded", "loads", "width", "stride", "due", "every", "steps")
    given = [f"ptr %{name}" for name in arrays] + [f"i64 %{name}" for name in numbers]
    return Loop("linear", "dddddddidnnnnnnnn", c.finished(f"i64 @linear({', '.join(given)})", f"i64 {c.get(k)}"))
