"""The numbers γ by which the equations of a step fall apart into systems of the size of the mechanics."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.mass import inverse_of
from leastaction.methods import Galerkin
from leastaction.step.form import samples, stencils

FloatArray = NDArray[np.float64]


@lru_cache(maxsize=64)
def shifts_of(method: Galerkin) -> dict[str, FloatArray]:
    """γ and α, what takes equations to right-hand sides and solutions to increments, the same of constraints, the mean
    and the weights of the control points; see `loops.shifts`.

    Of conjugate pairs those with a positive imaginary part are kept.
    """
    table = stencils(samples(method), 1)
    positions, weights = table.gather["q"], table.weights[:, None]
    B = (weights * table.scatter["f"]).T @ positions
    Q = (weights * table.scatter["m"]).T @ positions
    inverse = inverse_of(method)
    gamma, V = np.linalg.eig(inverse @ B)
    into = np.linalg.solve(V, inverse.astype(V.dtype))
    alpha = np.diagonal(into @ Q @ V)
    keep = gamma.imag >= 0
    out = V[:, keep] * np.where(gamma.imag > 0, 2.0, 1.0)[keep]
    complexes = {"gamma": gamma[keep], "alpha": alpha[keep], "into": into[keep], "out": out}
    # Constraints: the equations have h² W ⊗ Gᵀ dλ beside A ⊗ M dz, and G dz^ν = −g^ν.
    controls = stencils(samples(method, "controls"), 1)
    W = (controls.weights[:, None] * controls.scatter["f"]).T @ controls.gather["multipliers"]
    reactions = np.linalg.solve(W, np.linalg.solve(inverse, out))
    beta = controls.weights[: method.s]
    complexes |= {"into_held": np.linalg.inv(V)[keep], "out_held": reactions}
    return {**{name: _parts(x) for name, x in complexes.items()}, "mean": table.weights @ positions, "beta": beta}


def _parts(x: NDArray[Any]) -> FloatArray:
    """Real and imaginary parts, side by side."""
    return np.stack([x.real, x.imag], axis=-1)
