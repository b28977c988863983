"""Many trajectories of one system: SIMD lanes, threads, a cluster; and what to compute on the way."""

from leastaction.many.ensemble import ensemble
from leastaction.many.job import Status
from leastaction.many.paths import Paths
from leastaction.many.reductions import Crossings, EnergyRange, FirstCrossing, Section

__all__ = ["Crossings", "EnergyRange", "FirstCrossing", "Paths", "Section", "Status", "ensemble"]
