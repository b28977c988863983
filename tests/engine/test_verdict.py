"""The rule that ends iterations: from the sizes of increments alone, in parts of the step."""

import numpy as np
import pytest

from leastaction.engine.verdict import ruled
from leastaction.program import Builder

STATE = ("size", "rate", "nearest", "iterations", "most", "spent", "started")


def rule(first, **how):
    B = Builder([(name, 1) for name in ("now", "reach", *STATE)])
    x = {name: B.values(name) for name in STATE}
    return B.finished(**ruled(x, B.values("now")[0], B.values("reach")[0], first=first, **how))


def iterate(sizes, reach=1.0, patience=512, **how):
    """How the iteration ended, and after how many increments."""
    first, again = (rule(one, patience=patience, **how) for one in (True, False))
    state = {name: [1.0] for name in STATE}
    for k, size in enumerate(sizes, 1):
        given = {"now": [size], "reach": [reach], **state}
        with np.errstate(all="ignore"):
            found = (first if k == 1 else again)(*(given[name] for name in ("now", "reach", *STATE)))
        state = {name: np.atleast_1d(found.get(name, state[name])) for name in STATE}
        if found["failed"][0]:
            return "failed", k
        if not found["going"][0]:
            return "solved", k
    return "going", len(sizes)


@pytest.mark.parametrize(
    ("sizes", "how", "ends"),
    [
        ([0.03, 1e-4, 1e-9, 1e-20], {"squares": True}, ("solved", 3)),  # 10⁻⁹ θ² is negligible
        ([0.03, 1e-4, 1e-9, 1e-20], {}, ("solved", 4)),  # 10⁻⁹ θ is not
        ([0.5, 0.1, 0.02, 1e-20], {}, ("solved", 4)),  # trusted, since the first rate is below a quarter …
        ([0.5, 0.2, 0.02, 1e-20], {}, ("solved", 4)),  # … or the second one is
        ([0.5, 0.2], {"squares": True}, ("failed", 2)),  # of Newton's iteration only the first one counts
        ([0.03, 0.02, 1e-20], {}, ("solved", 3)),  # so near to where it began needs none
        ([0.03, 0.02, 0.012, 0.0072], {}, ("failed", 4)),  # a second rate may be 0.6, a third one may not
        ([0.03, 0.029], {}, ("failed", 2)),
        ([0.03, 0.02, 0.009], {"patience": 1}, ("failed", 3)),  # other ways are quicker
        ([1e-3, 1e-8, 1e-13, 0.9e-13], {}, ("solved", 4)),  # rounding shrinks no more
        ([1e-7, 1e-10, 1e-13, 1e-15, 1e-30], {}, ("solved", 4)),  # rounding hides that the last one is 10⁻¹⁶
        ([0.03, 3e-8, 1e-20], {"corrected": True}, ("solved", 2)),  # iterations after the first one correct twice …
        ([0.03, 1e-3, 1e-9, 1e-20], {"corrected": True}, ("solved", 4)),  # … by the rate of the first one
        ([float("nan")], {}, ("failed", 1)),
        ([0.03, 50.0], {}, ("failed", 2)),
        ([0.0], {}, ("solved", 1)),
    ],
)
def test_how_an_iteration_ends(sizes, how, ends):
    assert iterate(sizes, **how) == ends


def test_a_step_that_grows_beyond_all_measure_fails():
    assert iterate([0.03], reach=50.0) == ("failed", 1)
