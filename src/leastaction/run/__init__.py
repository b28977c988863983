"""One run: a plan, where its trajectories stand, one loop that drives them, and a sink for what they give.

plan        what was asked, checked once
starts      where trajectories begin
standing    where they stand: all that the next step depends on
batches     trajectories at work: in lanes, or one by one
watched     … and the range of the energy on the way (`reductions`)
drive       the loop: pieces, progress, Ctrl-C, threads; `cluster` runs it on other machines
memory, archive   the sinks; `view` is what an archive shows
advice      what was chosen for a run, as data; `waiting` tells who waits for a compiler
"""

from leastaction.run.reductions import EnergyRange
from leastaction.run.standing import Status

__all__ = ["EnergyRange", "Status"]
