"""How a step, or a trajectory, ended: numbers that native code and Python share."""

from __future__ import annotations

import math
from dataclasses import dataclass

GOING_WELL = 0
NOT_CONVERGED = 1
NOT_FINITE = 2
BRANCH_ENDS = 3
SINGULAR = 4
STOPPED = 5  # by an event, as asked
RESTING = 9  # impacts follow each other without end
HELD = 10  # no impulse throws the motion back from a wall
STANDSTILL = 11  # at its pace a run never reaches the time at which it was to end


# The stages of a step, in one of which it fails: what it begins with; its equations; the question whether their root
# belongs to the motion; the events in it.
PREDICTION, ITERATION, BRANCH, EVENT = STAGES = ("prediction", "iteration", "branch", "event")
_STAGES = {BRANCH_ENDS: BRANCH, RESTING: EVENT, HELD: EVENT, STANDSTILL: EVENT}


@dataclass(frozen=True)
class Failure:
    """Why a piece of a run ended early: a status, and what the solver had reached.

    stage        of the step; without one that which follows from the status
    step, time   of a step whose events were looked for later: its number, and the time at its start
    """

    status: int
    residual: float = math.nan
    iterations: int = 0
    reach: float = 0.0
    stage: str = ""
    step: int = -1
    time: float = math.nan

    def __post_init__(self) -> None:
        if not self.stage:
            object.__setattr__(self, "stage", _STAGES.get(self.status, ITERATION))
