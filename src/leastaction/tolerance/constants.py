"""The constants of the choice, each with its reason. Work is counted in instructions of Programs, never in seconds."""

FINER = 1.25  # of two runs that are compared, the steps of one are shorter by this: with order 8 its error is a sixth
AIM = 0.3  # of the tolerance: the error for which a step is chosen, since the order holds only about
RESOLVED = 0.01  # two runs that differ by more, of the size of the motion, say nothing of the order yet
USEFUL = 1e-3  # if rounding grows beyond this until the end, the end cannot be known: a time before it is aimed at
SURE = 3.0  # times what rounding did once: it is seldom more
BEFORE = 0.8  # of the time until which a tolerance can be kept: there rounding does not disturb yet
NOISY = 30.0  # where rounding is nearer to the tolerance than this, it is measured again with the final step
LATER = 1.5  # times as long as coarse ones the finer runs have to show the motion, or they are the last
TRIES = 2  # runs that gain nothing, or in which a trajectory fails: then shorter steps will not help
ROWS = 1024  # states at which the size of a motion and the growth of errors are looked at …
FEW = 32  # … if no fewer than these tell how long a tolerance is kept
NUMBERS = 2**20  # numbers that are stored for that, of all trajectories
SAMPLE = 64  # trajectories of an ensemble that are looked at until the step is found; then all are
ITERATIONS = 5  # of a step, where none has been counted yet; …
MANY = 50  # … if they are more, half the step costs less
PART = 3e8  # instructions of a run, about 0.3 s: of a longer run the step is found with a part of it
FIRST = 3e7  # instructions that one run may take in the first round, about 0.03 s; and in each next one …
GROWN = 8.0  # … so many times more
CODE = 1e8  # instructions that the code of another member costs, times its degree: it must save as much …
LONGEST = 0.4  # hω of `ladder`: with longer steps the equations of a step may have several roots
RUNS = 3  # … in so many runs, those that are still to come
LIMIT = 6e10  # instructions of a run, about a minute: a longer run is not made twice
BAND = 16  # unknowns: larger matrices of constraints have a pattern, and few entries beyond a band of this width
