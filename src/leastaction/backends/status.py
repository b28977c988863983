"""How a step, or a trajectory, ended: numbers that the native loops and Python share."""

from __future__ import annotations

from dataclasses import dataclass

GOING_WELL = 0
NOT_CONVERGED = 1
NOT_FINITE = 2
BRANCH_ENDS = 3
SINGULAR = 4
STOPPED = 5  # by an event, as asked
IN_DOUBT = 8  # solved, but the root may be another one: continuation decides
COARSE = 12  # not solved: the step is too coarse for its prediction
RESTING = 9  # impacts follow each other without end
HELD = 10  # no impulse throws the motion back from a wall
STANDSTILL = 11  # at its pace a run never reaches the time at which it was to end


@dataclass(frozen=True)
class Failure:
    """Why a piece of a run ended early: a status, and what the solver had reached."""

    status: int
    residual: float
    iterations: int
    reach: float
