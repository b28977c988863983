"""Do constraints depend on each other? Where they do, as where a linkage folds, rounding of q decides v.

With D_i = Σ_j G_ij²/m_jj, about the square of row i of G = ∂g/∂q in the metric of M⁻¹, the numbers of

    D^½ (G M⁻¹Gᵀ)⁻¹ D^½

are about one over the square of the sine between a row and the other rows. A backend that eliminates G M⁻¹Gᵀ sees these
squares: its pivots, in parts of the diagonal. Another one multiplies the matrix by the vector of the numbers `probe`,
which is orthogonal to no row that occurs in practice, and looks at the largest number of the product.
"""

from __future__ import annotations

INDEPENDENT = 2.0**-48  # the smallest square of such a sine that float64 may see


def probe(i: int) -> float:
    """Number i of a vector, between ½ and 3/2."""
    return 0.5 + (0.6180339887498949 * (i + 1)) % 1.0
