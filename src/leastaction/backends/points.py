"""What the native loops know of the kernel of a point."""

from __future__ import annotations

from leastaction.kernel.loops import evaluate
from leastaction.program import Program

__all__ = ["evaluate", "place_of_rest"]


def place_of_rest(point: Program) -> int:
    """Where the kernel of a point gives the velocities to begin with; 0 where it gives none."""
    return int(point.output_slice("rest").start) if "rest" in dict(point.outputs) else 0
