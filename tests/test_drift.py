"""The energy of many orbits over long times: is it a random walk, or does it drift?

If roundings are independent, the mean of what the energies of a start's neighbours (`orbits`) have moved by is zero
within its standard error, which their scatter tells. A bias moves them all to one side. `benchmarks/drift.py` prints
slopes.
"""

import numpy as np

from orbits import slopes


def significance(name, method, h, **sizes):
    """The largest slope of a start in standard errors."""
    found, errors, _ = slopes(name, method, h, **sizes)
    return np.max(abs(found) / errors)


def test_separable_steps_whose_inverse_is_round_do_not_drift():
    """Products of h with sums that end with p let the energy drift by 1.2·10⁻⁴ ε a step, 13 standard errors."""
    assert significance("oscillators", "P8N8Q16Gau", 0.05, steps=50_000, starts=2, neighbours=128) < 4
