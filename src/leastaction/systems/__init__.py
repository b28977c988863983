"""What moves: Lagrangians, sums of them over tables, and what belongs to them.

lagrangian   a system from the user's L(t, q, v), as runs step it
programs     L, the force and the constraints as Programs, and their derivatives
mechanics    momenta, velocities, energy, acceleration, and whether a trajectory can begin
arguments    what a user gives, checked
sums         one small Lagrangian summed over the rows of tables
forces       the force F in the Program of a node
projection   the nearest state on the constraints
pace         L̂ = σ [L(q, w/σ) + E₀]: steps that are short where the motion is quick
frequencies  how quickly a motion may change
varied       linear systems whose matrices differ in an ensemble
protocol     what a run asks of a system, and whether float64 or flint steps it
defaults     what systems answer unless they have another answer
"""
