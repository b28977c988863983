"""Large systems: a Lagrangian that is a sum of small ones over rows of tables."""

from leastaction.sums.system import MOST_EXPANDED, Sum
from leastaction.sums.term import Term

__all__ = ["MOST_EXPANDED", "Sum", "Term"]
