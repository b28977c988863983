"""What computes the steps of a method on a Lagrangian in float64: forms of a step, and one compiled function for a run."""
