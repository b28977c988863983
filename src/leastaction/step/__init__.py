"""One step as data, and the rules by which every backend solves it.

form          what a step is: unknowns, Programs sampled at its points, how they enter the equations
verdict       when an iteration is done, and whether its root can be trusted
prediction    where the next step's iteration begins
sensitivity   how a Term depends on time and the parameters
kronecker     the small matrices that are left of a step where a system is linear
continuation  the way to a root that the prediction does not lead to
constraints   g(t, q) = 0 as a Term at the control points and an End
status        how a step, or a trajectory, ended
stored_row    what is stored of a state
stepper       what a run asks of trajectories at work
inputs        what drives a force from outside, at the nodes of steps; `samples`, functions known at some times
"""
