"""The constants of the choice, each with its reason. Work is counted in instructions of Programs, never in seconds."""

FINER = 1.25  # of two runs that are compared, the steps of one are shorter by this: with order 8 its error is a sixth
AIM = 0.3  # of the tolerance: the error for which a step is chosen, since the order holds only about
RESOLVED = 0.01  # of the size of the motion: two runs that differ by more tell nothing of the order, or of the end
SURE = 3.0  # times what rounding did once: it is seldom more
LATER = 1.5  # times as long as coarse ones the finer runs have to show the motion, or they are the last
TRIES = 2  # runs that gain nothing: then shorter steps will not help
ROWS = 1024  # states at which the size of a motion and the growth of errors are looked at …
FEW = 32  # … at least; and the trajectories of an ensemble that are looked at until a step is found
ITERATIONS = 5  # of a step, where none has been counted yet; ten times as many are a reason for shorter steps
FIRST = 3e7  # instructions that one run may take in the first round, about 0.01 s; and in each next one …
GROWN = 8.0  # … so many times more
CODE = 3e7  # instructions that another member has to save in a run, times its degree, since its code is compiled
LIMIT = 6e10  # instructions of a run, ten seconds to a minute: a longer run is not made twice
