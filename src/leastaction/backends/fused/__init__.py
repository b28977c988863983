"""A whole step of a small system as Programs, without branches: for SIMD lanes of trajectories, or for one.

rows in `step`   numbers one by one, or side by side in vectors
equations        the equations of a step written out, with their derivatives
elimination      linear algebra written out
newton           an iteration with a new Jacobian, or with the last one
mass, chord      an iteration with the mass matrix alone
nodes, shifts, collocation   an iteration with the mass of every node and the derivatives of the step's middle
separable        the same where the mass is constant and forces do not depend on velocities
explicit, held   steps that need no iteration, or only one for multipliers
judging          the verdict on an iteration
advance          the sums q + z^s, p + impulse, and the prediction of the next step
work             what kernels cost
programs         the kernels that belong together

What a trajectory has decided (it has converged, it has failed, it has been stopped) is a number in its state that
selects between the old values and the new, so lanes that still iterate do not change those that are done, and what a
lane computes does not depend on its neighbours. What depends only on the state at the start of the step, such as most
values at a node c = 0, is computed once.
"""
