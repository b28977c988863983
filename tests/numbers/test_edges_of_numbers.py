"""Numbers at their edges: constants beyond float64, zeros with a sign, event functions with poles."""

import itertools

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.cli import main
from leastaction.methods.oscillator import BITS, exact_step, positive_roots
from thrift import rest_slow

LARGE = [
    lambda q, v: 0.5 * v @ v - 1e300 * q[0] * 1e300,
    lambda q, v: 0.5 * v @ v - 1e300 * (1e300 * q[0]),
    lambda q, v: 0.5 * v @ v - q[0] / 1e-300 / 1e-300,
    lambda q, v: 0.5 * v @ v - (1e300 * q[0]) * (1e300 * q[0]),
    lambda q, v: 0.5 * v @ v - 10**400 * q[0],
]


@pytest.mark.parametrize("L", LARGE)
def test_constants_beyond_float64_are_named(L):
    system = la.Lagrangian(L, n=1)
    with pytest.raises(ValueError, match=r"constant of about 10\^(400|600).*beyond.*float64.*digits="):
        la.integrate(system, "simpson", [1.0], [0.0], h=0.1, steps=3)


def test_constants_beyond_float64_are_right_at_more_digits():
    """q̈ = −10⁶⁰⁰: one step of the midpoint rule is exact."""
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v - 10**300 * (10**300 * q[0]), n=1)
    path = la.integrate(system, "midpoint", ["0"], ["0"], h="1", steps=1, digits=30)
    with mpmath.workdps(60):
        assert abs(path.p[-1, 0] / mpmath.mpf(10) ** 600 + 1) < mpmath.mpf("1e-30")


def test_an_infinite_constant_is_an_error_at_the_start():
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v - 1e300 * 1e300 * q[0], n=1)
    with pytest.raises(ValueError, match="not finite at the start"):
        la.integrate(system, "simpson", [1.0], [0.0], h=0.1, steps=3)


@pytest.mark.parametrize("sign", [-0.0, 0.0, -2.0, 3.0])
def test_copysign_of_a_constant_means_the_same_at_every_precision(sign):
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v + np.copysign(q[0] ** 2, sign), n=1)
    paths = [la.integrate(system, "simpson", [1.0], [0.0], h=0.1, steps=5, digits=d) for d in (None, 30)]
    assert float(paths[1].q[-1, 0]) == pytest.approx(paths[0].q[-1, 0], rel=1e-14)
    assert (paths[0].q[-1, 0] > 1) == (np.copysign(1, sign) > 0)


@pytest.mark.slow
def test_methods_of_high_degree_are_listed(capsys):
    """From P25N26… on zeros and poles of ρ are so near each other that 256 bits do not tell them apart."""
    assert main(["methods", "--max-s", "40"]) == 0
    assert "P40N40Q80Gau" in capsys.readouterr().out


def test_roots_that_are_nearer_than_the_first_enclosures():
    """What `methods --max-s 40` needs of its hardest member."""
    roots = positive_roots(exact_step(la.method("P40N41Q82Gau")).rho)
    gaps = [float((high.x2 - low.x2).mid()) for low, high in itertools.pairwise(roots)]
    assert 0 < min(gaps) < 2.0**-BITS


def free(q, v):
    return 0.5 * v @ v


@pytest.mark.parametrize("method", ["midpoint", "P8N8Q16Gau"])  # in lanes, and alone
def test_a_pole_is_no_crossing(method):
    """g = 1/(q − 1/3) changes its sign where it has no zero."""
    system = la.Lagrangian(free, n=1)
    events = {"pole": la.Event(lambda q, p: 1 / (q[0] - 1 / 3)), "zero": la.Event(lambda q, p: q[0] - 1 / 3)}
    with pytest.warns(RuntimeWarning, match="without a zero: it has a pole"):
        paths = la.ensemble(system, method, [[0.0], [0.05]], [1.0], h=0.1, steps=10, events=events)
    assert not paths.events["pole"].count.any()
    np.testing.assert_allclose(paths.events["zero"].t[:, 0], [1 / 3, 1 / 3 - 0.05], atol=1e-14)


def test_an_event_function_that_is_no_number_at_the_start():
    system = la.Lagrangian(free, n=1)
    events = {"root": la.Event(lambda q, p: np.sqrt(q[0]) - 1)}
    with pytest.raises(ValueError, match=r"function of event 'root' is not a number at the start of trajectory 1"):
        la.ensemble(system, "midpoint", [[0.5], [-0.5]], [1.0], h=0.1, steps=10, events=events)
    with pytest.raises(ValueError, match=r"function of event 'root' is not a number at the start: its"):
        la.integrate(system, "midpoint", [-0.5], [1.0], h=0.1, steps=10, events=events)


NO_NUMBER = {
    "ends": (lambda q, p: np.sqrt(1 - q[0]) - 0.5, [0.75]),  # no number from q = 1 on
    "pauses": (lambda q, p: np.where(q[0] < 0.5, np.sqrt(0.3 - q[0]) + 1, q[0] - 0.8), [0.8]),  # between 0.3 and 0.5
}


@pytest.mark.parametrize(
    ("method", "digits"),
    rest_slow(
        [(method, digits) for method in ("simpson", "P8N8Q16Gau", "rk4") for digits in (None, 25)],
        [("P8N8Q16Gau", None), ("rk4", None), ("simpson", 25)],
    ),
)
@pytest.mark.parametrize("name", NO_NUMBER)
def test_an_event_function_that_becomes_no_number(name, method, digits):
    """Events are found where the function is a number, none is invented elsewhere, and a warning says so, once."""
    g, times = NO_NUMBER[name]
    with pytest.warns(RuntimeWarning, match="'g' is not a number near t = .*: no events of it are found there") as told:
        run = {"h": 0.1, "steps": 20, "digits": digits}
        path = la.integrate(la.Lagrangian(free, n=1), method, [0.0], [1.0], **run, events={"g": la.Event(g)})
    assert len(told) == 1 and path.stats["steps"] == 20
    np.testing.assert_allclose(path.events["g"].t.astype(float), times, rtol=1e-12)


def test_an_event_function_that_is_no_number_inside_a_step():
    def g(q, p):
        return np.sqrt((q[0] - 0.5) ** 2 - 0.01) + 1

    with pytest.warns(RuntimeWarning, match="is not a number near"):
        path = la.integrate(
            la.Lagrangian(free, n=1), "simpson", [0.0], [1.0], h=1.0, steps=3, events={"g": la.Event(g)}
        )
    assert path.events["g"].count == 0


def test_a_wall_that_is_no_number_ends_the_run():
    wall = la.Impact(lambda q: np.sqrt(1.05 - q[0]) + 1)
    with pytest.warns(RuntimeWarning, match="its wall cannot be seen"), pytest.raises(la.StepFailed) as failed:
        la.integrate(la.Lagrangian(free, n=1), "simpson", [0.0], [1.0], h=0.1, steps=30, events={"w": wall})
    path = failed.value.path
    assert path.t[-1] == pytest.approx(1.0) and path.q[-1, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["simpson", "rk4"])
def test_an_event_function_of_an_ensemble_that_becomes_no_number(method):
    events = {"g": la.Event(NO_NUMBER["ends"][0])}
    with pytest.warns(RuntimeWarning, match="is not a number near"):
        paths = la.ensemble(la.Lagrangian(free, n=1), method, [[0.0], [0.05]], [1.0], h=0.1, steps=20, events=events)
    np.testing.assert_allclose(paths.events["g"].t[:, 0], [0.75, 0.7], rtol=1e-12)
