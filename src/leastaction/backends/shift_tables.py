"""The numbers γ by which the equations of a step fall apart into systems of the size of the mechanics, and the pattern
along which these are eliminated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.elimination import slopes_of
from leastaction.backends.fused.mass import inverse_of
from leastaction.methods import Galerkin
from leastaction.step.form import Step, samples, stencils

FloatArray = NDArray[np.float64]


@lru_cache(maxsize=64)
def shifts_of(method: Galerkin) -> dict[str, FloatArray]:
    """γ and α, and what takes equations to right-hand sides and solutions to increments; see `loops.shifted_chords`.

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


def shift_vectors(method: Galerkin, W: int) -> dict[str, FloatArray]:
    """The same tables in vectors of W numbers: of shifts, or of control points (`layout.SHIFTS`).

    A last vector that shifts do not fill has the last one again.
    """
    found = shifts_of(method)
    count, s = found["into"].shape[:2]
    lanes = np.minimum(np.arange(-(-count // W) * W), count - 1).reshape(-1, W)
    out = np.zeros((-(-s // W) * W, count, 2))
    out[:s] = found["out"]
    return {
        "gamma": np.moveaxis(found["gamma"][lanes], 1, -1),
        "alpha": np.moveaxis(found["alpha"][lanes], 1, -1),
        "into": np.moveaxis(found["into"][lanes], 1, -1),
        "out": np.moveaxis(out.reshape(-1, W, count, 2), 1, -1),
    }


@dataclass(frozen=True)
class Pattern:
    """Where L and U of a shifted system have entries, row by row, and how many products their elimination takes."""

    order: NDArray[np.int64]  # the coordinate that is eliminated k-th
    begin: NDArray[np.int64]
    column: NDArray[np.int64]
    diagonal: NDArray[np.int64]
    products: int


@lru_cache(maxsize=64)
def pattern_of(step: Step) -> Pattern:
    """The pattern of a step's mechanics. The coordinate that depends on the fewest others comes first: a chain is
    eliminated from its end, and what is coupled to all others comes last.
    """
    n = step.n
    filled = slopes_of(step) | np.eye(n, dtype=bool)
    filled |= filled.T
    left, order = filled.copy(), np.zeros(n, np.int64)
    for k in range(n):
        degrees = left.sum(axis=0)
        order[k] = own = np.argmin(np.where(degrees > 0, degrees, n + 1))
        others = np.flatnonzero(left[own])
        filled[np.ix_(others, others)] = left[np.ix_(others, others)] = True
        left[own] = left[:, own] = False
    row, column = np.nonzero(filled[np.ix_(order, order)])
    begin = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))]).astype(np.int64)
    diagonal = np.flatnonzero(row == column)
    beyond = begin[1:] - diagonal - 1
    return Pattern(order, begin, column, diagonal, int((beyond * (1 + beyond)).sum()))
