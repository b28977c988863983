"""Programs and their compiled form: the machine code means what `Program.__call__` says, operation by operation."""

import ctypes
import importlib
import json
import math
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leastaction as la
from leastaction.kernel.compile import compile_program
from leastaction.kernel.lower import lower
from leastaction.program import BINARY, OPERATIONS, UNARY, Builder, Program
from leastaction.program.ordering import ordered
from leastaction.step.form import step_of
from leastaction.step.rows import SideBySide
from native import evaluate, lowered_native
from systems import catalogued

compiling = importlib.import_module("leastaction.kernel.compile")

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -3.0,
    1e-300,
    1e300,
    -1e300,
    1001.0,
    -1000.0,
    math.inf,
    -math.inf,
    math.nan,
]
EXACT = {
    "neg", "sq", "sqrt", "abs", "sign", "floor", "ceil", "not", "add", "sub", "mul", "div", "fmod", "copysign", "min",
    "max", "minimum", "maximum", "lt", "le", "eq", "ne", "and", "or", "if", "select",
}  # fmt: skip


def one_operation(op):
    """A program of that operation alone, on inputs."""
    count = 1 if op in UNARY else 3 if op == "select" else 2
    code = (*(("input", i) for i in range(count)), (op, *range(count)))
    return Program((("x", count),), (("y", 1),), code, (count,))


def same(mine, exact, ulps):
    if math.isnan(exact) or math.isinf(exact) or exact == 0:
        return (math.isnan(mine) and math.isnan(exact)) or mine == exact
    return abs(mine - exact) <= ulps * math.ulp(exact)


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_every_operation_compiled(op):
    """Correctly rounded operations agree to the bit, functions to four units in the last place, NaN and ∞ included."""
    program = one_operation(op)
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(200, program.input_size)) * 10.0 ** rng.integers(-3, 3, (200, program.input_size))
    pairs = np.array(np.meshgrid(*[SPECIAL] * min(2, program.input_size))).reshape(min(2, program.input_size), -1).T
    special = np.ones((len(pairs), program.input_size))
    special[:, : pairs.shape[1]] = pairs
    rows = np.concatenate([rows, abs(rows), special])
    compiled = evaluate(program, rows)[:, 0]
    for row, mine in zip(rows, compiled, strict=True):
        exact = program(row)["y"][0]
        if op in ("min", "max") and np.isnan(row).any():
            continue  # which of a number and NaN is the smaller is left open
        assert same(mine, exact, 0 if op in EXACT else 4), (op, row, mine, exact)


def test_every_operation_is_tested_and_meant():
    assert EXACT <= OPERATIONS
    assert {*UNARY, *BINARY, "select"} == OPERATIONS


def test_unknown_operation_is_refused():
    with pytest.raises(ValueError, match=r"instruction 1 is not valid: \('gamma', 0\)"):
        Program((("x", 1),), (("y", 1),), (("input", 0), ("gamma", 0)), (1,))
    with pytest.raises(ValueError, match="instruction 0 reads input 3 of 1"):
        Program((("x", 1),), (("y", 1),), (("input", 3),), (0,))
    with pytest.raises(ValueError, match="not valid"):
        Program((("x", 1),), (("y", 1),), (("input", 0), ("neg", 1)), (1,))
    with pytest.raises(ValueError, match="declare a size other than the 1 results"):
        Program((("x", 1),), (("y", 2),), (("input", 0),), (0,))


def random_program(seed, length, inputs=5, outputs=4):
    """A random straight-line program that stays of moderate size."""
    rng = np.random.default_rng(seed)
    code = [("input", i) for i in range(inputs)] + [("const", float(rng.normal()))]
    for _ in range(length):
        a, b, c = (int(rng.integers(max(0, len(code) - 40), len(code))) for _ in range(3))
        code.append(
            [("sin", a), ("cos", a), ("tanh", a), ("neg", a), ("lt", a, b), ("select", a, b, c), ("if", a, b),
             ("min", a, b), ("abs", a), ("sub", a, b)][rng.integers(10)]
        )  # fmt: skip
    results = (*(int(k) for k in rng.integers(0, len(code), outputs - 1)), len(code) - 1)
    return Program((("x", inputs),), (("y", outputs),), tuple(code), results)


@pytest.mark.parametrize("piece", [1, 3, 50, 10**6])
def test_programs_cut_in_pieces(piece, monkeypatch):
    """Where a long program is cut changes nothing; values cross the cuts through the workspace."""
    monkeypatch.setattr(compiling, "PIECE", piece)
    for seed in range(3):
        program = random_program(seed + 10 * piece % 97, 300)
        lowered = lower(program, "kernel", piece=piece)
        assert lowered.text.count("define ") == (1 if piece > 300 else -(-len(program.code) // piece) + 1)
        assert (lowered.work > 0) == (piece <= 300)
        rows = np.random.default_rng(seed).normal(size=(20, 5))
        np.testing.assert_allclose(evaluate(program, rows), [program(row)["y"] for row in rows], rtol=0, atol=1e-11)


def test_equal_programs_are_compiled_once():
    a, b = random_program(5, 50), random_program(5, 50)
    assert a == b and a is not b and a.digest == b.digest
    assert compile_program(a) is compile_program(b)
    assert random_program(6, 50).digest != a.digest


def test_digest_tells_zeros_apart():
    """0.0 and −0.0 are equal numbers but different programs: 1/x."""
    plus, minus = (Program((), (("y", 1),), (("const", x),), (0,)) for x in (0.0, -0.0))
    assert plus.digest != minus.digest


@pytest.mark.parametrize("seed", range(5))
def test_json_round_trip(seed):
    program = random_program(seed, 60)
    back = Program.from_json(json.loads(json.dumps(program.to_json())))
    assert back == program and back.digest == program.digest


@pytest.mark.parametrize(
    "x", [0.1, -0.0, 1e-310, 1e308, math.inf, -math.inf, Fraction(1, 3), Fraction(-22, 7), Fraction(10**40 + 1, 3)]
)  # fmt: skip
def test_constants_survive_json(x):
    """Floats to the bit, Fractions exactly."""
    program = Program((), (("y", 1),), (("const", x),), (0,))
    back = Program.from_json(json.loads(json.dumps(program.to_json())))
    assert repr(back.code) == repr(program.code)


def test_json_of_a_damaged_program_is_refused():
    data = random_program(1, 20).to_json()
    data["code"][-1] = ["sin", 10**6]
    with pytest.raises(ValueError, match="is not valid"):
        Program.from_json(json.loads(json.dumps(data)))


class TestBuilder:
    """Simplification that is exact at every precision."""

    def setup_method(self):
        self.B = Builder([("x", 3)])
        self.x, self.y, self.z = self.B.input("x")

    def value(self, k):
        return self.B.constant(k)

    def test_constants_fold_exactly(self):
        B = self.B
        tenth = B.div(B.const(1.0), B.const(10.0))
        assert self.value(tenth) == Fraction(1, 10) != 0.1
        assert self.value(B.mul(tenth, B.const(10.0))) == 1.0
        assert self.value(B.sum([tenth] * 10)) == 1.0
        assert self.value(B.op("sqrt", B.const(2.0))) is None  # left to the backend and its precision
        assert self.value(B.div(B.const(1.0), B.const(0.0))) is None

    def test_neutral_elements(self):
        B, x, y = self.B, self.x, self.y
        zero, one, minus = B.const(0.0), B.const(1.0), B.const(-1.0)
        assert (
            B.add(x, zero) == x == B.add(zero, x) == B.sub(x, zero) == B.mul(one, x) == B.mul(x, one) == B.div(x, one)
        )
        assert self.value(B.mul(zero, x)) == 0 == self.value(B.div(zero, x))
        assert B.mul(minus, x) == B.op("neg", x) == B.sub(zero, x)
        assert B.op("neg", B.op("neg", x)) == x
        assert B.add(x, B.op("neg", y)) == B.sub(x, y) and B.sub(x, B.op("neg", y)) == B.add(x, y)
        assert B.select(x, y, y) == y

    def test_nothing_is_computed_twice(self):
        B, x, y = self.B, self.x, self.y
        assert B.add(x, y) == B.add(y, x) and B.mul(x, y) == B.mul(y, x)
        assert B.sub(x, y) != B.sub(y, x)
        assert B.op("sin", x) == B.op("sin", x)

    def test_condition_times_nan_is_zero(self):
        """(x < y) · z is an `if`, so a NaN in the branch not taken does not leak."""
        B = self.B
        program = B.build(r=[B.mul(B.op("lt", self.x, self.y), self.z)])
        assert program([2.0, 1.0, math.nan])["r"] == [0.0]
        assert math.isnan(program([1.0, 2.0, math.nan])["r"][0])

    def test_unneeded_values_are_dropped(self):
        B = self.B
        B.op("sin", self.y)
        assert len(B.build(r=[B.op("cos", self.x)]).code) == 2

    def test_inline(self):
        inner = random_program(3, 40, inputs=3)
        B = self.B
        program = B.build(y=B.inline(inner, x=[self.z, self.x, self.y])["y"])
        assert program([1.0, 2.0, 3.0])["y"] == pytest.approx(inner([3.0, 1.0, 2.0])["y"])
        with pytest.raises(ValueError, match="block 'x' has 3 scalars, got 1"):
            B.inline(inner, x=[self.x])

    @settings(max_examples=50)
    @given(st.integers(0, 10**6))
    def test_simplified_programs_mean_the_same(self, seed):
        """Inlining runs every instruction through the simplifier."""
        inner = random_program(seed, 80)
        B = Builder([("x", 5)])
        program = B.build(y=B.inline(inner, x=B.input("x"))["y"])
        assert len(program.code) <= len(inner.code)
        x = np.random.default_rng(seed).normal(size=5)
        assert program(x)["y"] == pytest.approx(inner(x)["y"], abs=1e-12, nan_ok=True)


def test_select_keeps_what_an_output_needs():
    program = random_program(2, 100)
    double = Program(program.inputs, (("a", 2), ("b", 2)), program.code, program.results)
    b = double.select("b")
    x = np.linspace(-1, 1, 5)
    assert b(x)["b"] == double(x)["b"] and len(b.code) <= len(double.code)
    with pytest.raises(KeyError, match=r"no block 'c'; there are \['a', 'b'\]"):
        double.select("c")


@pytest.mark.parametrize("seed", range(10))
def test_another_order_means_the_same(seed):
    """Dead values and inputs that are outputs included: the same instructions on the same values, bit for bit."""
    program = random_program(seed, 150)
    moved = ordered(program)
    assert sorted(op for op, *_ in moved.code) == sorted(op for op, *_ in program.code)
    x = np.random.default_rng(seed).normal(size=5)
    assert moved(x) == program(x)


def waiting(program):
    """How many values wait for a use, at most."""
    code, given = program.code, ("input", "const")
    last = {a: k for k, (op, *args) in enumerate(code) if op not in given for a in args if code[a][0] not in given}
    last |= dict.fromkeys(program.results, len(code))
    ends = Counter(last.values())
    return max(accumulate((k in last) - ends[k] for k in range(len(code))))


def test_an_order_in_which_few_values_wait():
    """The force of six bodies: the values of all pairs wait at the turn of the gradient; then those of a few."""
    system = catalogued("outer-solar-system").system
    force = step_of(system, la.method("P4N4Q8Gau")).terms[0].program.select("f")
    assert waiting(ordered(force)) < 0.5 * waiting(force)


@pytest.mark.parametrize("size", [3, 5000])  # in one function, and in several
def test_outputs_that_are_mostly_zero_are_filled_at_once(size):
    """The text's length is that of the operations; −0.0 stays what it is, and what stood in `out` is gone."""
    code = [("input", 0), ("const", Fraction(0)), ("const", -0.0), *(("sq", k) for k in (0, *range(3, size)))]
    last = len(code) - 1
    program = Program((("x", 1),), (("y", 100_000),), tuple(code), (0, 1, 2, *[1] * 99_996, last))
    assert len(lower(program, "kernel").text) < 200 * size + 10_000
    for row in evaluate(program, np.array([[1.0], [-1.0]])):
        np.testing.assert_array_equal(np.flatnonzero(row), [0, 99_999])
        assert abs(row[0]) == row[-1] == 1.0
        assert math.copysign(1, row[1]) == 1 and math.copysign(1, row[2]) == -1


def test_outputs_count_when_llvm_s_effort_is_chosen():
    small, large = (Program((("x", 1),), (("y", n),), (("input", 0),), (0,) * n) for n in (10, 10**5))
    assert compiling._effort(small) == compiling.STRAIGHT
    assert compiling._effort(large).passes == compiling._effort(large).selection == 0


@pytest.mark.parametrize("piece", [2000, 7])
def test_what_is_the_same_in_all_lanes_is_computed_once(piece):
    """Numbers, and vectors that read them, as without: every operation, whole and cut into pieces, in place."""
    lanes = 4
    B = Builder([("one", 3), ("many", 2), ("found", 2)])
    (a, b, c), (x, y) = B.values("one"), B.values("many")
    top = (x * y).op("largest") + a * b
    numbers = [top, top - c, -a, a.op("sq"), a.op("min", b), b.op("max", c), abs(c), a / b, x.op("lane2") * c]
    logic = [(a < b) & (b <= c), (a < b) | ~(c < 0.0), a.op("eq", b), a.op("ne", b)]
    numbers += [*logic, logic[0].where(a, b), logic[1].op("if", c), a.op("sin"), a.op("sqrt")]
    total = sum((k * (i + 1.0) for i, k in enumerate(numbers)), a * 0.0)
    outputs = {"found": [x * total + numbers[3], y - top], "one": [total, numbers[1], logic[0]]}
    program = B.build(**{name: [value.k for value in values] for name, values in outputs.items()})
    given = np.random.default_rng(3).uniform(0.5, 2.0, (7, lanes))
    given[:3] = given[:3, :1]
    results = []
    for same in ((), ("one",)):
        library = compiling._library(lanes)
        lowered = lower(program, "kernel", lanes, True, True, library, piece, same)
        code = compiling._linked([lowered.text], "kernel", compiling.BEST)
        state, work = given.copy(), np.zeros(max(1, lowered.work))
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(int(code["kernel"]))
        call(state.ctypes.data, state.ctypes.data, work.ctypes.data)
        results.append(state)
    np.testing.assert_allclose(results[1][:3, 0], results[0][:3, 0], rtol=1e-15)
    np.testing.assert_allclose(results[1][3:], results[0][3:], rtol=1e-15)
    texts = [lower(program, "kernel", lanes, same=same).text for same in ((), ("one",))]
    assert [text.count("fdiv contract double") for text in texts] == [0, 1]


@pytest.mark.parametrize("lanes", [4, 8])
def test_vectors_on_the_stack_are_aligned(lanes):
    """In every piece of a kernel. Across two lines of the cache a chord of lanes took up to a fifth longer."""
    B = Builder([("x", 20)])
    program = B.build(y=[B.mul(k, k) for k in B.input("x")])
    for piece in (5, 1000):
        heads = [line for line in lower(program, "kernel", lanes, piece=piece).text.splitlines() if "define" in line]
        assert heads and all(f"alignstack({8 * lanes})" in head for head in heads)
    assert "alignstack" not in lower(program, "kernel").text


@pytest.mark.parametrize("same", [(), ("one",)])
@pytest.mark.parametrize("lanes", [4, 8])
def test_the_largest_comparison_tells_whether_any_lane_holds(lanes, same):
    """Masks answer this at once; a number, and a vector that reads it, are as the comparisons in all lanes say."""
    B = Builder([("one", 3), ("x", 1), ("y", 1)])
    (x,), (y,) = B.values("x"), B.values("y")
    any_less, none, either = ((c).op("largest") for c in (x < y, x < -y, (x < y) | ~(x < 1.9)))
    outputs = {"one": [any_less, none, either], "x": [x + either]}
    program = B.build(**{name: [value.k for value in values] for name, values in outputs.items()})
    lowered = lower(program, "kernel", lanes, True, True, compiling._library(lanes), 2000, same)
    code = compiling._linked([lowered.text], "kernel", compiling.BEST)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(int(code["kernel"]))
    rng, work = np.random.default_rng(lanes), np.zeros(max(1, lowered.work))
    for least in (0.5, 1.5, 1.95):
        state = np.zeros((5, lanes))
        state[3], state[4] = rng.uniform(least, 2.0, lanes), rng.uniform(0.5, 2.0, lanes)
        before = state.copy()
        call(state.ctypes.data, state.ctypes.data, work.ctypes.data)
        wanted = [(before[3] < before[4]).any(), False, ((before[3] < before[4]) | (before[3] >= 1.9)).any()]
        np.testing.assert_array_equal(state[:3, 0], wanted)
        np.testing.assert_array_equal(state[3], before[3] + wanted[2])


@pytest.mark.parametrize(("lanes", "count"), [(2, 2), (4, 4), (4, 3), (8, 8), (8, 6), (8, 13)])
def test_a_table_times_a_row_side_by_side(lanes, count):
    """The product is that of the matrix."""
    random = np.random.default_rng(count)
    matrix, x = random.normal(size=(count, count)), random.normal(size=count)
    rows = SideBySide({"matrix": lambda h: matrix * h}, lanes)
    height = rows.length(count)
    B = Builder([("h", 1), ("tables", rows.size), ("x", height)])
    product = SideBySide(rows.tables, lanes, B).product("matrix", B.values("x"))
    program = B.build(y=[value.k for value in product])
    given = np.zeros((program.input_size, lanes))
    given[0], given[1 : 1 + rows.size] = 0.5, rows.numbers(0.5)
    given[1 + rows.size :].reshape(-1)[:count] = x
    native = lowered_native(lower(program, "kernel", lanes, same=frozenset({"h"})))
    y, work = np.zeros((height, lanes)), np.zeros(native.work)
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(native.address)
    kernel(given.ctypes.data, y.ctypes.data, work.ctypes.data)
    assert y.reshape(-1)[:count] == pytest.approx(0.5 * matrix @ x, rel=1e-14, abs=1e-14)
