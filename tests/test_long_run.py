"""Energy over long times at steps so small that only round-off is left: a random walk, not a drift.

With truncation errors far below ε (h = 0.01, order 6) the energy error is a sum of roundings. If
these are independent, increments over windows of equal length have mean zero and a size that grows like the square root
of the window; a bias of 10⁻⁵ ε a step, such as that of inconsistently rounded coefficients, shows in both.
"""

import numpy as np
import pytest

import leastaction as la
from systems import case

EPS = np.finfo(float).eps


def energy_errors(method, h, steps, samples, sizes):
    """E(t) − E(0) of one pendulum for each size of swing, (len(sizes), samples + 1), in units of ε."""
    system, q0, v0 = case("pendulum")
    errors = []
    for size in sizes:
        path = la.integrate(system, method, size * np.array(q0), v0=v0, h=h, steps=steps, every=steps // samples)
        energy = path.energy()
        errors.append((energy - energy[0]) / EPS)
    return np.array(errors)


def in_sigmas(errors):
    """The mean increment from sample to sample, in units of its own standard deviation."""
    increments = np.diff(errors, axis=1).ravel()
    return increments.mean() / (increments.std() / np.sqrt(increments.size))


def test_no_drift_in_a_million_steps():
    """The mean of increments over 5·10⁴ steps is zero within four standard deviations, and they are small."""
    errors = energy_errors("P3N3Q6Gau", 0.01, 10**6, 20, [0.5, 0.7, 0.85, 1.0])
    assert abs(in_sigmas(errors)) < 4
    assert abs(errors).max() < 100


@pytest.mark.slow
def test_energy_error_is_a_random_walk_over_ten_million_steps():
    """Increments have no mean (four standard deviations), and their size grows with exponent ½ ± 0.15."""
    errors = energy_errors("P3N3Q6Gau", 0.01, 10**7, 100, np.linspace(0.5, 1.0, 8))
    assert abs(in_sigmas(errors)) < 4
    lags = np.array([1, 2, 4, 8, 16])
    sizes = [np.sqrt(((errors[:, lag:] - errors[:, :-lag]) ** 2).mean()) for lag in lags]
    exponent = np.polyfit(np.log(lags), np.log(sizes), 1)[0]
    assert 0.35 < exponent < 0.65
    assert abs(errors).max() < 300
