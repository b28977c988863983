"""Declared order is measured order: every member with s ≤ 5, within 0.2 of min(2s, u), in float64.

The error of a run is the root mean square of (q, p) at eight equal times against P8N8Q16Gau. It is
measured at steps that shrink by about an eighth, until it comes within a thousand units of round-off; the
order is the slope through the three finest. Steps that are still too long betray themselves: there
the two slopes between the three disagree, and the test fails rather than believe either.

Order 10 has few digits between those two ends. It shows on a motion that is gentle and long: the
double pendulum at angles of 0.3, where steps of 0.4 are in the asymptotic range and 64 units of time
bring the error up. On the stronger motion of the second problem orders 2 to 8 are measured; there the tenth enters
its asymptotic range at errors of 10⁻¹³ and is left to high precision.
"""

import math

import numpy as np
import pytest

import leastaction as la
from leastaction.methods import family
from systems import case

TIMES = 8
ROUND_OFF = 1e3 * np.finfo(float).eps
FINEST = 0.02  # the step at which low orders are asymptotic enough
PROBLEMS = {"double-pendulum": (64.0, 0.3), "inseparable": (8.0, 1.0)}  # duration, size of the motion


def states(name, method, steps):
    """(q, p) at equal times, (TIMES + 1, 2n)."""
    system, q0, v0 = case(name)
    duration, size = PROBLEMS[name]
    path = la.integrate(
        system,
        method,
        size * np.array(q0),
        v0=size * np.array(v0),
        h=duration / steps,
        steps=steps,
        every=steps // TIMES,
    )
    return np.concatenate([path.q, path.p], axis=1)


def step_counts(duration, order):
    """Numbers of steps, in multiples of TIMES, from steps of about a unit time on."""
    steps = TIMES * math.ceil(duration / TIMES / (1.0 if order > 4 else 0.25))
    while steps * FINEST < duration:
        yield steps
        steps = TIMES * math.ceil(1.15 * steps / TIMES)


def rms(x):
    return float(np.sqrt((x**2).mean()))


def slopes(name, method, reference):
    """The slope through the three smallest errors above round-off, and the two slopes between them."""
    counts, errors = [], []
    for steps in step_counts(PROBLEMS[name][0], method.order):
        error = rms(states(name, method, steps) - reference)
        if error < ROUND_OFF * rms(reference):
            break
        counts.append(steps)
        errors.append(error)
    x, y = -np.log(counts[-3:]), np.log(errors[-3:])
    return float(np.polyfit(x, y, 1)[0]), np.diff(y) / np.diff(x)


@pytest.fixture(scope="module")
def references():
    """P8N8Q16Gau, where half the step changes nothing above a hundredth of what is called round-off here."""
    found = {}
    for name, (duration, _) in PROBLEMS.items():
        steps = TIMES * math.ceil(duration)
        found[name] = states(name, "P8N8Q16Gau", 2 * steps)
        assert rms(states(name, "P8N8Q16Gau", steps) - found[name]) < 0.01 * ROUND_OFF * rms(found[name])
    return found


METHODS = [*family(5), la.rk4("hamilton"), la.rk4("lagrange")]
MEASURED = [(m, name) for name in PROBLEMS for m in METHODS if m.order < 10 or name == "double-pendulum"]


@pytest.mark.parametrize(("method", "name"), MEASURED, ids=lambda x: getattr(x, "name", x))
def test_order(method, name, references):
    """|global error| = C h^order (1 + O(h²))."""
    order, pairs = slopes(name, method, references[name])
    assert abs(pairs[0] - pairs[1]) < 0.4, f"not asymptotic: slopes {pairs}"
    assert order == pytest.approx(method.order, abs=0.2)
