"""What a numerical analyst asks of an integrator: exact answers where they exist, numbers and pictures elsewhere."""

from leastaction.analysis.stability import Gap, Interval, Stability, iteration_matrix, stability, stable_for_all_h

__all__ = ["Gap", "Interval", "Stability", "iteration_matrix", "stability", "stable_for_all_h"]
