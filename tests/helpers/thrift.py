"""Cases of a test: some in every run, the others under `slow`."""

import pytest


def rest_slow(cases, kept):
    """For `parametrize`: all cases, those that are not kept under `slow`."""
    unknown = [case for case in kept if case not in cases]
    assert not unknown, f"kept, but no cases: {unknown}"
    return [case if case in kept else pytest.param(*_values(case), marks=pytest.mark.slow) for case in cases]


def _values(case):
    return case if isinstance(case, tuple) else (case,)
