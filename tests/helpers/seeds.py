"""Random numbers that are different in every run of the tests, and can be repeated."""

import os

import numpy as np


def fresh_generator():
    """A generator whose seed pytest shows when the test fails; TEST_SEED=… in the environment repeats it."""
    seed = int(os.environ.get("TEST_SEED") or np.random.default_rng().integers(2**31))
    print(f"repeat with TEST_SEED={seed}")
    return np.random.default_rng(seed)
