"""Random numbers of tests: the same in every run, unless TEST_SEED in the environment says otherwise."""

import os

import numpy as np

SEED = int(os.environ["TEST_SEED"])  # set in any case: conftest.py


def generator() -> np.random.Generator:
    """A generator whose seed pytest shows when the test fails."""
    print(f"repeat with TEST_SEED={SEED}")
    return np.random.default_rng(SEED)
