"""What the captions of Figures 5 and 9 say of energy, checked over a hundred times the time drawn."""

from __future__ import annotations

from collections.abc import Mapping

from leastaction.papers.model import Claim
from leastaction.papers.top2025.runs import MIDPOINT, RK4, SIMPSON

GROWTH = 2.0  # an error that a hundredfold time does not double is not a drift


def energy_claims(largest: Mapping[str, float], later: Mapping[str, float], drawn: str, long: str) -> list[Claim]:
    """From the largest |e_H| over the time drawn, and over a hundred times that."""

    def both(method: str) -> str:
        return f"{method}: largest {largest[method]:.1e} over {drawn}, {later[method]:.1e} over {long}"

    return [
        Claim(
            "RK4's energy error grows with time",
            later[RK4] > GROWTH * largest[RK4],
            both(RK4),
        ),
        Claim(
            "the variational integrators do not dissipate energy",
            all(later[m] < GROWTH * largest[m] for m in (MIDPOINT, SIMPSON)),
            "; ".join(both(m) for m in (MIDPOINT, SIMPSON)),
        ),
        Claim(
            "Simpson's energy error is closest to zero",
            largest[SIMPSON] < min(largest[MIDPOINT], largest[RK4]),
            f"largest over {drawn}: Simpson {largest[SIMPSON]:.1e}, implicit midpoint {largest[MIDPOINT]:.1e}, "
            f"RK4 {largest[RK4]:.1e}",
        ),
    ]
