"""Why a step of a Lagrangian could not be done, and what to try: by the stage of the step that failed."""

from __future__ import annotations

from leastaction.backends.status import (
    BRANCH,
    EVENT,
    ITERATION,
    NOT_CONVERGED,
    NOT_FINITE,
    PREDICTION,
    SINGULAR,
    Failure,
)

_REASONS = {
    PREDICTION: "the state at its start has no velocity, so that the step has nothing to begin with",
    ITERATION: "Newton's iteration did not converge",
    BRANCH: "no solution of this size of step is connected with the motion",
    EVENT: "an event in it could not be located, since a shorter step from its start could not be solved",
}
_NUMBERS = {
    NOT_FINITE: "the Lagrangian or a derivative became infinite or not a number",
    SINGULAR: "the equations became singular",
}
_ADVICE = {
    PREDICTION: "L must be regular in its velocities wherever the motion goes: stop before, with an event",
    ITERATION: "Try a smaller step, h = {h:g}, or a method with more nodes; near a singularity of L (a collision, a "
    "chart's pole) other coordinates help",
    BRANCH: "Try a smaller step, h = {h:g}, or a method with more nodes, since this step is too coarse for its forces; "
    "near a singularity of L (a collision, a chart's pole) other coordinates help",
    EVENT: "Try a smaller step, h = {h:g}, or leave out the event and look for it between the stored states",
}


def explained(failure: Failure, h: float) -> tuple[str, str]:
    """Why a step of any Lagrangian that failed so could not be done, and what to try; h is a smaller step."""
    reason = _REASONS[failure.stage]
    if failure.stage == ITERATION and failure.status != NOT_CONVERGED:
        reason = _NUMBERS.get(failure.status, reason)
    return reason, _ADVICE[failure.stage].format(h=h)
