"""What computes a Step: each derives from `leastaction.step.form`, and states no mathematics of its own."""
