"""Programs in SIMD lanes: every operation, sines and cosines, long programs."""

from __future__ import annotations

import ctypes
import math
from collections import OrderedDict

import mpmath
import numpy as np
import pytest

from leastaction.kernel import compile_program, vector_math
from leastaction.kernel.vector_math import by_addition
from leastaction.program import BINARY, OPERATIONS, UNARY, Builder, Program


def call(program, lanes, x, bounded=False):
    """The compiled program on rows of inputs, (K, inputs) ↦ (K, outputs), so many lanes at a time."""
    native = compile_program(program, lanes, bounded)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(native.address)
    groups = np.ascontiguousarray(np.asarray(x, float).reshape(-1, lanes, native.inputs).transpose(0, 2, 1))
    out, work = np.zeros((len(groups), native.outputs, lanes)), np.zeros(native.work)
    for group, result in zip(groups, out, strict=True):
        function(group.ctypes.data, result.ctypes.data, work.ctypes.data)
    return out.transpose(0, 2, 1).reshape(-1, native.outputs)


def all_operations():
    """Every operation of Programs on inputs x, y in (0, 1), moved into the operation's domain."""
    B = Builder([("x", 2)])
    x, y = B.input("x")
    shifted = {"acosh": B.add(x, B.const(1.0)), "log": B.add(x, B.const(0.1))}
    results = []
    for op in sorted(OPERATIONS):
        if op in UNARY:
            results.append(B.op(op, shifted.get(op, x)))
        elif op in BINARY:
            results.append(B.op(op, x, y))
        else:
            results.append(B.op(op, B.op("lt", x, y), x, y))
    return B.build(y=results)


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_every_operation_in_lanes(lanes):
    program = all_operations()
    x = np.random.default_rng(0).uniform(0, 1, (64, 2))
    x[3, 1] = x[3, 0]
    found = call(program, lanes, x)
    for row, values in zip(x, found, strict=True):
        expected = np.array(program(row)["y"])
        np.testing.assert_allclose(values, expected, rtol=4 * 2**-52, atol=0)


def forget_kernels(monkeypatch):
    """What is compiled in this test is compiled anew."""
    monkeypatch.setattr("leastaction.kernel.compile._recent", OrderedDict())


@pytest.mark.parametrize("lanes", [4, 8])
def test_without_a_vector_library_lanes_call_the_scalar_functions(monkeypatch, lanes):
    monkeypatch.setattr(vector_math, "functions", lambda lanes, features: {})
    forget_kernels(monkeypatch)
    program = all_operations()
    x = np.random.default_rng(1).uniform(0, 1, (64, 2))
    ours = [place for place, op in enumerate(sorted(OPERATIONS)) if op not in ("sin", "cos")]
    np.testing.assert_array_equal(call(program, lanes, x)[:, ours], call(program, 1, x)[:, ours])


def test_sine_and_cosine_are_within_one_ulp_and_the_same_at_any_width():
    B = Builder([("x", 1)])
    (x,) = B.input("x")
    program = B.build(y=[B.op("sin", x), B.op("cos", x)])
    rng = np.random.default_rng(2)
    points = np.concatenate(
        [
            rng.uniform(-4, 4, 1004),
            rng.uniform(-1e6, 1e6, 500),
            np.arange(-250, 250) * (np.pi / 2),  # where the difference x − n π/2 cancels
            10.0 ** rng.uniform(-12, 15, 500),
            [0.0, 5e-324, 1e-310, 2.0**30, 1e22, 1e300, 3.0, 4.0],
        ]
    )
    values = {lanes: call(program, lanes, points) for lanes in (2, 4, 8)}
    np.testing.assert_array_equal(values[2], values[8])
    np.testing.assert_array_equal(values[4], values[8])
    with mpmath.workprec(1200):
        for point, (sine, cosine) in zip(points, values[8], strict=True):
            for value, exact in ((sine, mpmath.sin(point)), (cosine, mpmath.cos(point))):
                assert abs(value - exact) <= math.ulp(value)
    assert np.isnan(call(program, 4, np.array([np.inf, -np.inf, np.nan, np.nan]))).all()


def test_sines_and_cosines_of_sums_follow_from_those_of_the_angles():
    """Only where the sines of both angles are there anyway; beyond all bounds, and alone, nothing is rewritten."""
    B = Builder([("x", 2)])
    x, y = B.input("x")
    sums = [B.op(op, B.op(kind, x, y)) for op in ("sin", "cos") for kind in ("add", "sub")]
    alone = B.build(y=sums)
    assert by_addition(alone) is alone
    program = B.build(y=[*sums, B.op("sin", x), B.op("cos", y)])
    written = by_addition(program)
    assert {args[0] for op, *args in written.code if op in ("sin", "cos")} == {0, 1}
    points = np.random.default_rng(3).uniform(-9, 9, (200, 2))
    for found in (call(program, 8, points, bounded=True), [written(point)["y"] for point in points]):
        np.testing.assert_allclose(found, [program(point)["y"] for point in points], rtol=0, atol=2e-15)
    far = np.array([[6e9, 0.3], [6e9, 6e9]] * 4)
    np.testing.assert_allclose(call(program, 8, far), [program(point)["y"] for point in far], rtol=1e-15, atol=0)


def test_operations_of_kernels_are_no_operations_of_a_system():
    for op in ("lane0", "largest"):
        data = {"inputs": [["x", 1]], "outputs": [["y", 1]], "code": [["input", 0], [op, 0]], "results": [1]}
        with pytest.raises(ValueError, match="no operation of a system"):
            Program.from_json(data)


def test_a_long_program_in_lanes_is_cut_into_pieces():
    B = Builder([("x", 1)])
    (x,) = B.input("x")
    value = x
    for k in range(5000):
        value = B.op("sub", B.mul(value, B.const(0.5)), B.scale(1e-4 * k, x))
    program = B.build(y=[value])
    points = np.linspace(0, 1, 16)
    np.testing.assert_array_equal(call(program, 8, points), call(program, 1, points))
