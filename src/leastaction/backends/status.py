"""How a step, or a trajectory, ended: numbers that the native loops and Python share."""

from __future__ import annotations

GOING_WELL = 0
NOT_CONVERGED = 1
NOT_FINITE = 2
BRANCH_ENDS = 3
SINGULAR = 4
STOPPED = 5  # by an event, as asked
IN_DOUBT = 8  # solved, but the root may be another one: continuation decides
