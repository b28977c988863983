"""How far from an answer a run ends, as tol= counts it."""

from __future__ import annotations

import numpy as np

import leastaction as la


def error_of(path: la.Path, q) -> float:
    return float(np.abs(path.q[-1] - q).max() / path.advice.size)
