"""Why a step of a Lagrangian could not be done, and what to try."""

from __future__ import annotations

from leastaction.backends.status import BRANCH_ENDS, NOT_CONVERGED, NOT_FINITE, SINGULAR

_REASONS = {
    NOT_CONVERGED: "Newton's iteration did not converge",
    NOT_FINITE: "the Lagrangian or a derivative became infinite or not a number",
    BRANCH_ENDS: "no solution of this size of step is connected with the motion",
    SINGULAR: "the equations became singular",
}


def explained(status: int, h: float) -> tuple[str, str]:
    """Why a step of any Lagrangian that ended with this status could not be done, and what to try."""
    advice = (
        f"Try a smaller step, h = {h:g}, or a method with more nodes; near a singularity of L (a collision, a "
        "chart's pole) other coordinates help"
    )
    return _REASONS[status], advice
