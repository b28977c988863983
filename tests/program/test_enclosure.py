"""Bounds of Programs: no value within a box is outside of its ball."""

from __future__ import annotations

import math

import numpy as np
import pytest

import leastaction as la
from leastaction.events.check import midpoint_coefficients
from leastaction.program import ARITY, OPERATIONS, Builder
from leastaction.program.enclosure import RULES, enclosed, radii
from native import evaluate
from seeds import generator

ONE = ("x", 1), ("y", 1), ("z", 1)


def program_of(op):
    B = Builder(list(ONE))
    values = [B.input(name)[0] for name, _ in ONE][: ARITY[op]]
    return B.build(g=[B.op(op, *values) if op != "select" else B.select(*values)])


def test_every_operation_has_a_rule():
    assert RULES.keys() | {"mul"} == set(OPERATIONS)


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_an_operation_stays_in_its_ball(op):
    rng = generator()
    program = program_of(op)
    names = [name for name, _ in ONE]
    for bound in (enclosed(program, names), radii(program, names)):
        tight = "g" in dict(bound.outputs)
        for _ in range(60):
            centre = rng.normal(size=3) * 10.0 ** rng.uniform(-2, 1)
            if rng.random() < 0.3:
                centre = np.round(centre)
            radius = np.abs(rng.normal(size=3)) * 10.0 ** rng.uniform(-6, 0.5) * (rng.random(3) < 0.8)
            found = bound(*(centre[:, None]), *(radius[:, None]))
            middle = program(*(centre[:, None]))["g"][0]
            if tight:
                assert found["g"][0] == middle or math.isnan(middle)
            rho = found["g_radius"][0]
            for _ in range(8):
                inside = centre + radius * rng.choice([-1.0, 1.0, 0.0, rng.uniform(-1, 1)], size=3)
                value = program(*(inside[:, None]))["g"][0]
                # Where the centre or the radius is no number nothing is claimed.
                if not (math.isnan(rho) or math.isnan(middle) or math.isinf(rho)):
                    assert abs(value - middle) <= rho * (1 + 1e-9) + 1e-12 * abs(middle), (centre, radius, inside)


def test_random_programs_stay_in_their_balls():
    rng = generator()
    smooth = ["add", "sub", "mul", "sin", "cos", "sq", "exp", "tanh", "atan", "sqrt", "div", "min", "abs", "hypot"]
    for _ in range(20):
        B = Builder([("x", 4)])
        values = list(B.input("x"))
        for _ in range(12):
            op = smooth[rng.integers(len(smooth))]
            values.append(B.op(op, *(values[i] for i in rng.integers(len(values), size=ARITY[op]))))
        program = B.build(g=values[-3:])
        bound = enclosed(program, ["x"])
        centre, radius = rng.normal(size=4), np.abs(rng.normal(size=4)) * 10.0 ** rng.uniform(-4, 0)
        found = bound(centre, radius)
        inside = centre + radius * rng.uniform(-1, 1, (500, 4))
        reached = evaluate(program, inside)
        for k in range(3):
            middle, rho = found["g"][k], found["g_radius"][k]
            if math.isfinite(middle) and math.isfinite(rho):
                assert (np.abs(reached[:, k] - middle) <= rho * (1 + 1e-9) + 1e-12 * abs(middle)).all()


@pytest.mark.parametrize("op", ["sin", "cos", "sign", "atan2"])
def test_what_is_not_defined_in_a_box_has_no_bound(op):
    """√x is no number where x is negative, and so is its sine, though sines of numbers are at most one."""
    B = Builder([("x", 2)])
    x, y = B.input("x")
    g = B.op(op, *([B.op("sqrt", x), y] if op == "atan2" else [B.op("sqrt", x)]))
    for bound in (enclosed(B.build(g=[g]), ["x"]), radii(B.build(g=[g]), ["x"])):
        assert not math.isfinite(bound([1.0, 1.0], [2.0, 0.0])["g_radius"][0])
        assert math.isfinite(bound([1.0, 1.0], [0.5, 0.0])["g_radius"][0])


def test_balls_shrink_with_their_boxes():
    B = Builder([("x", 2)])
    x, y = B.input("x")
    g = B.add(B.op("sin", B.mul(x, y)), B.op("sqrt", B.op("exp", y)))
    bound = enclosed(B.build(g=[g]), ["x"])
    sizes = [bound([0.3, 0.7], [r, r])["g_radius"][0] / r for r in (1e-2, 1e-4, 1e-6)]
    np.testing.assert_allclose(sizes, sizes[-1], rtol=0.05)
    assert sizes[-1] < 4


def test_polynomials_around_the_middle_have_exact_zeros():
    """A coefficient that is zero costs no instruction after every step."""
    assert midpoint_coefficients(la.method("simpson")).tolist() == [[1.0, 0.0], [0.0, 0.5], [-1.0, 0.5]]
