"""The pivots of a step at h → 0, from the small matrices of linear steps (`methods.linear_form`)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin, LinearForm


def kronecker_of(method: Galerkin) -> LinearForm:
    """The small matrices of a method in float64."""
    return method.linear_form()


@lru_cache(maxsize=64)
def short_pivots(method: Galerkin) -> NDArray[np.float64]:
    """The pivots of A, (s,). Those of ∂R/∂z are, at h → 0, products of theirs, of those of L_vv, and of 1/h."""
    return np.asarray(np.linalg.cholesky(method.linear_form().A).diagonal() ** 2)
