"""Figures 4.1 to 4.3: the moduli of the eigenvalues of one step on the oscillator, over x = hω."""

from __future__ import annotations

import math

from sympy import eye, simplify

from leastaction.analysis import iteration_matrix, stability
from leastaction.papers.model import Claim, Drawing, FigureSpec, Options
from leastaction.papers.typeset import root


def _draw(method: str, window: tuple[float, float], claims: list[Claim]) -> Drawing:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 3.8))
    stability(method).plot(ax, x=window)
    return Drawing(figure, claims)


def figure_4_1(options: Options) -> Drawing:
    """P2N3Q4Lob."""
    found = stability("P2N3Q4Lob")
    first, second = found[0], found[1]
    return _draw(
        "P2N3Q4Lob",
        (0.0, 5.6),
        [
            Claim(
                "the method is stable for |hω| < 2√2",
                first.lower == 0 and first.floats[1] == 2 * math.sqrt(2),
                f"first stable interval, exactly: (0, {root(first.upper)}); as the figure shows, it is stable again on "
                f"({root(second.lower)}, {root(second.upper)})",
            )
        ],
    )


def figure_4_2(options: Options) -> Drawing:
    """P3N4Q6Lob."""
    found = stability("P3N4Q6Lob")
    text = ", ".join(f"({lower:.4f}, {upper:.4f})" for lower, upper in (interval.floats for interval in found))
    gauss = ("P1N1Q2Gau", "P2N2Q4Gau", "P3N3Q6Gau")
    products = [M * M.T for M in map(iteration_matrix, gauss)]
    orthogonal = all(product.applyfunc(simplify) == eye(2) for product in products)
    return _draw(
        "P3N4Q6Lob",
        (0.0, 9.6),
        [
            Claim("the stable region is bounded, with gaps", len(found) == 3, f"stable on {text}"),
            Claim(
                "PsNsQ2sGau, s = 1, 2, 3: the iteration matrices are orthogonal, stable for every h",
                orthogonal and all(stability(name).for_all_h for name in gauss),
                "exactly: M Mᵀ = 1, and no x > 0 where stability could end",
            ),
        ],
    )


def figure_4_3(options: Options) -> Drawing:
    """P3N4Q6Lob near x = π."""
    gap = stability("P3N4Q6Lob").gaps[0]
    return _draw(
        "P3N4Q6Lob",
        (3.05, 3.25),
        [
            Claim(
                "the zoom of Figure 4.2 shows a thin gap of stability",
                float(gap.upper) - float(gap.lower) < 0.1 and gap.growth > 1,
                f"exactly from {root(gap.lower)} ≈ {float(gap.lower):.5f} to {root(gap.upper)} ≈ "
                f"{float(gap.upper):.5f}, with "
                f"|λ| up to {gap.growth:.4f} at x = {gap.at:.4f}",
            )
        ],
    )


FIGURES = [
    FigureSpec("4.1", "Modulus of the eigenvalues of a step of P2N3Q4Lob on the oscillator", figure_4_1),
    FigureSpec("4.2", "Modulus of the eigenvalues of a step of P3N4Q6Lob on the oscillator", figure_4_2),
    FigureSpec("4.3", "Zoom of Figure 4.2 to the first gap", figure_4_3),
]
