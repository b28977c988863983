"""What all tests share, whatever the process that starts them has set."""

import os
import random
import signal
from itertools import groupby
from pathlib import Path

import hypothesis
import threadpoolctl

HELPERS = str(Path(__file__).parent / "helpers")
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background begin with SIGINT ignored
os.environ.setdefault("LEASTACTION_GUARD", "1")  # guard zones around the arrays of native code (`kernel.guarded`)
os.environ.setdefault("TEST_SEED", "1")  # of all random cases; `make test-all` draws others
# Every core has a worker already: threads beside it would wait for each other, ten times as long as they work.
os.environ |= dict.fromkeys(BLAS_THREADS, "1")
threadpoolctl.threadpool_limits(1)  # of libraries that a plugin of pytest has loaded before
# Processes that tests start find the helpers, as tests do (`pythonpath` in pyproject.toml).
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HELPERS, os.environ.get("PYTHONPATH")]))

# Examples may take long where others work, and nothing is remembered of earlier runs.
hypothesis.settings.register_profile("tests", database=None, deadline=None)
hypothesis.settings.load_profile("tests")
hypothesis.core.global_force_seed = int(os.environ["TEST_SEED"])


def pytest_collection_modifyitems(items):
    """With TEST_ORDER=… in the environment: files, and tests within each of them, in an order drawn with this seed."""
    if "TEST_ORDER" in os.environ:
        draw = random.Random(os.environ["TEST_ORDER"])
        files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
        items[:] = [test for tests in draw.sample(files, len(files)) for test in draw.sample(tests, len(tests))]
