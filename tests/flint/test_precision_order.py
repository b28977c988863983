"""Orders of the methods at 70 digits, and published tables recomputed with the 64 they were computed with."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

import leastaction as la
from leastaction.methods import family
from orders import kepler_order, spring_order
from precise import largest
from systems import catalogued

# Orders.


@pytest.mark.parametrize("name", ["P2N3Q4Lob", "P3N3Q6Gau"])
def test_order(name):
    method = la.method(name)
    assert abs(kepler_order(method, 12) - method.order) < 0.05
    assert abs(spring_order(method, 12) - method.order) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("measure", [kepler_order, spring_order])
@pytest.mark.parametrize("method", list(family(6)), ids=repr)
def test_order_of_the_family(method, measure):
    assert abs(measure(method, 24) - method.order) < 0.05


# Published tables, recomputed with the 64 digits they were computed with.

# Rojas-Quintero, Dubois and Jourdan (2025), Table 2: ‖e_H‖∞ for h = 0.04, 0.02, 0.01.
TABLE_2 = {
    (1, "midpoint"): "7.61e-4 2.09e-4 5.35e-5",
    (1, "rk4"): "7.28e-5 2.11e-6 6.25e-8",
    (1, "simpson"): "8.09e-6 4.94e-7 3.07e-8",
    (10, "midpoint"): "8.31e-4 2.29e-4 5.78e-5",
    (10, "rk4"): "1.04e-3 3.41e-5 1.08e-6",
    (10, "simpson"): "8.83e-6 5.47e-7 3.42e-8",
}
# Tables 4 and 5: ‖e_θ‖∞ and ‖e_H‖∞ for h = 1/50, 1/100, 1/200 of the period of nutation.
TABLES_4_AND_5 = {
    (1, "midpoint"): ("1.53e-1 3.70e-2 9.21e-3", "1.02e-5 2.60e-6 6.52e-7"),
    (1, "rk4-lagrange"): ("2.84e-3 1.66e-4 1.01e-5", "6.73e-7 4.47e-8 2.87e-9"),
    (1, "simpson"): ("2.66e-4 1.64e-5 1.02e-6", "3.56e-8 2.20e-9 1.37e-10"),
    (10, "midpoint"): ("3.22e0 5.48e-1 1.21e-1", "1.02e-5 2.60e-6 6.52e-7"),
    (10, "rk4-lagrange"): ("9.32e-2 3.72e-3 1.71e-4", "1.28e-6 4.47e-8 2.87e-9"),
    (10, "simpson"): ("1.61e-3 9.46e-5 5.81e-6", "3.56e-8 2.20e-9 1.37e-10"),
}


def agree(computed, printed):
    """Whether numbers round to those printed with three digits."""
    return [f"{float(x):.2e}" for x in computed] == [f"{float(x):.2e}" for x in printed.split()]


def energy_error(path):
    with mpmath.workdps(64):
        energy = path.energy()
        return largest((energy - energy[0]) / energy[0])


def long_ones_slow(cells):
    return [pytest.param(*key, marks=[pytest.mark.slow] * (key[0] > 1 or extra)) for key, extra in cells]


@pytest.mark.parametrize(("T", "method"), long_ones_slow((key, False) for key in TABLE_2))
def test_table_2(T, method):
    pendulum = catalogued("double-pendulum")
    errors = []
    for N in (25, 50, 100):
        path = la.integrate(
            pendulum.system, method, pendulum.exact_q0, pendulum.exact_p0, h=Fraction(1, N), steps=N * T, digits=64
        )
        errors.append(energy_error(path))
    assert agree(errors, TABLE_2[T, method])


@pytest.mark.parametrize(("T", "method"), long_ones_slow((key, key[1] != "simpson") for key in TABLES_4_AND_5))
def test_tables_4_and_5(T, method):
    top = catalogued("lagrange-top")
    period = top.data(70).period
    nutation, energy = [], []
    for N in (50, 100, 200):
        with mpmath.workdps(70):
            h = period / N
        path = la.integrate(top.system, method, top.exact_q0, top.exact_p0, h=h, steps=N * T, digits=64)
        theta = top.exact(path.t, digits=20)[0][:, 1]
        with mpmath.workdps(20):
            nutation.append(largest((path.q[:, 1] - theta) / theta))
        energy.append(energy_error(path))
    assert agree(nutation, TABLES_4_AND_5[T, method][0])
    assert agree(energy, TABLES_4_AND_5[T, method][1])
