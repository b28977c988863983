"""What computes the steps of a method on a Lagrangian in float64: forms of a step, and one native function for a run.

Work in progress (docs/design.md, "The engine to come"): `LEASTACTION_ENGINE=forms` switches it on.
"""
