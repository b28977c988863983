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
    """γ and α, and what takes equations to right-hand sides and solutions to increments; see `loops.shifts`.

    Of conjugate pairs those with a positive imaginary part are kept.
    """
    table = stencils(samples(method), 1)
    positions, weights = table.gather["q"], table.weights[:, None]
    Q = (weights * table.scatter["m"]).T @ positions
    inverse = inverse_of(method)
    gamma, V, keep, out = _decoupled(method)
    into = np.linalg.solve(V, inverse.astype(V.dtype))
    alpha = np.diagonal(into @ Q @ V)
    complexes = {"gamma": gamma[keep], "alpha": alpha[keep], "into": into[keep], "out": out}
    return {name: _parts(x) for name, x in complexes.items()}


@lru_cache(maxsize=64)
def held_of(method: Galerkin) -> dict[str, FloatArray]:
    """The same of constraints: what takes g to right-hand sides and solutions to multipliers. The equations have h² W ⊗
    Gᵀ dλ beside A ⊗ M dz, and G dz^ν = −g^ν.
    """
    controls = stencils(samples(method, "controls"), 1)
    W = (controls.weights[:, None] * controls.scatter["f"]).T @ controls.gather["multipliers"]
    _, V, keep, out = _decoupled(method)
    reactions = np.linalg.solve(W, np.linalg.solve(inverse_of(method), out))
    complexes = {"into_held": np.linalg.inv(V)[keep], "out_held": reactions}
    return {name: _parts(x) for name, x in complexes.items()}


def _decoupled(method: Galerkin) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[Any]]:
    """A⁻¹B = V γ V⁻¹: γ, V, which γ are kept, and the matrix from solutions to increments."""
    table = stencils(samples(method), 1)
    B = (table.weights[:, None] * table.scatter["f"]).T @ table.gather["q"]
    gamma, V = np.linalg.eig(inverse_of(method) @ B)
    keep = gamma.imag >= 0
    return gamma, V, keep, V[:, keep] * np.where(gamma.imag > 0, 2.0, 1.0)[keep]


def _parts(x: NDArray[Any]) -> FloatArray:
    """Real and imaginary parts, side by side."""
    return np.stack([x.real, x.imag], axis=-1)
