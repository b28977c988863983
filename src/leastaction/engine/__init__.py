"""What computes steps on a Lagrangian in float64: the forms of a step, and one native function for a run."""
