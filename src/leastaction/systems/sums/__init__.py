"""Large systems: a Lagrangian that is a sum of small ones over rows of tables."""

from leastaction.systems.sums.system import MOST_EXPANDED, Sum
from leastaction.systems.sums.term import Term

__all__ = ["MOST_EXPANDED", "Sum", "Term"]
