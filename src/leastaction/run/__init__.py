"""One run: a plan, where its trajectories stand, one loop that drives them, and a sink for what they give.

plan        what was asked, checked once
starts      where trajectories begin
standing    where they stand: all that the next step depends on
drive       trajectories at work, in lanes or one by one, and the loop that drives them into memory or an archive;
            `cluster` runs it on other machines
waiting     who waits for it: messages, Ctrl-C
motion_checks     whether the run is the motion of its Lagrangian
archive     the sink on disk; `view` is what an archive shows
advice      what was chosen for a run, as data
"""

from leastaction.run.plan import EnergyRange
from leastaction.run.standing import Status

__all__ = ["EnergyRange", "Status"]
