"""A kind of method that the library does not know, in one file: what it answers, and where it is refused."""

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.methods import LinearForm, Method
from leastaction.methods.linear_form import of_stages
from leastaction.methods.oscillator import OscillatorStep, of_truncated_rotation


class Heun(Method):
    """Heun's method: the trapezoidal rule with an explicit step in place of the end."""

    name, text, order, symmetric = "heun", "heun", 2, False

    def linear_form(self, digits: int | None = None) -> LinearForm:
        zero, one = mpmath.mpf(0), mpmath.mpf(1)
        c, a, b = ([zero, one], [[zero, zero], [one, zero]], [one / 2, one / 2])
        form = of_stages(*(np.array(x, object) for x in (c, a, b)))
        return form if digits else form.in_floats()

    def on_oscillator(self) -> OscillatorStep:
        return of_truncated_rotation(2)


@pytest.mark.parametrize("digits", [None, 30])
def test_it_runs_on_linear_systems(digits):
    system = la.Quadratic([1.0], [1.0])
    path = la.integrate(system, Heun(), [1.0], [0.0], h="1/100", steps=100, digits=digits, allow_unstable=True)
    q, p = 1.0, 0.0
    for _ in range(100):
        q, p = q + 0.01 * p - 0.01**2 * q / 2, p - 0.01 * q - 0.01**2 * p / 2
    assert float(path.q[-1, 0]) == pytest.approx(q, abs=1e-14)


def test_it_is_unstable_for_every_h():
    with pytest.raises(la.UnstableStepError):
        la.integrate(la.Quadratic([1.0], [1.0]), Heun(), [1.0], [0.0], h=0.01, steps=100)
    assert len(la.analysis.stability(Heun())) == 0
    assert la.analysis.dispersion(Heun()).energy_error.power == 4


@pytest.mark.parametrize("digits", [None, 20])
def test_it_is_refused_where_it_has_no_answer(digits):
    free = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2, n=1)
    with pytest.raises((TypeError, ValueError), match="heun"):
        la.integrate(free, Heun(), [1.0], [0.0], h=0.1, steps=2, digits=digits)
    with pytest.raises(ValueError, match="heun"):
        la.discrete_lagrangian(free, Heun(), 0.1)
