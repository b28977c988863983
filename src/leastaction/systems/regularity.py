"""Whether momenta determine velocities: the rank of ∂²L/∂v², whatever the units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
EQUILIBRATIONS = 24  # each one halves the remaining exponents
DOMINANT = 1.999  # if a row whose diagonal is one sums up to less, the diagonal outweighs the other entries
ORDINARY = 1e-100  # quotients of numbers between this and one over this do not overflow


def is_regular(Lvv: FloatArray) -> bool:
    """Whether a symmetric matrix has full rank, whatever the units of its rows and columns."""
    if dominant(Lvv[None]):
        return True
    return bool(Lvv.any(axis=1).all()) and int(np.linalg.matrix_rank(equilibrated(Lvv))) == len(Lvv)


def equilibrated(matrices: FloatArray) -> FloatArray:
    """Symmetric matrices, (…, n, n), with rows and columns scaled until the largest entry of each is about one.

    The result does not depend on units (Ruiz, *A scaling algorithm to equilibrate both rows and columns norms in
    matrices*, 2001). Rows of zeros stay zero.
    """
    scaled = matrices
    for _ in range(EQUILIBRATIONS):
        row = np.sqrt(np.abs(scaled).max(axis=-1, initial=0.0))
        row = np.where(row > 0, row, 1.0)
        scaled = scaled / row[..., :, None] / row[..., None, :]
    return scaled


def dominant(matrices: FloatArray) -> bool:
    """Whether symmetric matrices, (B, n, n), have diagonals of ordinary size that outweigh the rest of their rows, in
    units in which all diagonals are one, and so are regular beyond doubt.
    """
    size = np.abs(matrices)
    diagonal = np.diagonal(size, axis1=1, axis2=2)
    if not ((diagonal > ORDINARY) & (diagonal < 1 / ORDINARY)).all():
        return False
    unit = np.sqrt(diagonal)
    return bool(((size / unit[:, None, :]).sum(axis=2) < DOMINANT * unit).all())
