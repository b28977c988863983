"""One step as data, and the rules by which every engine solves it.

form          what a step is: unknowns, Programs sampled at its points, how they enter the equations
prediction    where the next step's iteration begins
continuation  the way to a root that the prediction does not lead to
sensitivity   how a Term depends on time and the parameters
constraints   g(t, q) = 0 as a Term at the control points and an End
field         the same systems as vector fields, for RK4
rows          numbers of the points of a step in a kernel, one by one or in the lanes of vectors
status        how a step, or a trajectory, ended
stored_row    what is stored of a state
stepper       what a run asks of trajectories at work
inputs        what drives a force from outside, at the nodes of steps; `samples`, functions known at some times
"""
