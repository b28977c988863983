"""The places of numbers in the arrays that Python and the native loops exchange."""

from __future__ import annotations

from itertools import accumulate

# Integers, in.
DOF = 0  # n
DEGREE = 1  # s
NODES = 2  # r
FUSED = 3  # 1: NEWTON is a whole Newton step; 0: loops over the nodes with GRADIENT and HESSIAN
NEWTON = 4  # addresses of kernels …
GRADIENT = 5
HESSIAN = 6
GETRF = 7  # … and of LAPACK
GETRS = 8
PARAMS = 9
FIRST = 10  # index of the next step, counted from the start of the run
STEPS = 11  # how many to do now
EVERY = 12
LAST = 13  # the run's last step, stored whatever EVERY says
FORM = 14  # RK4: 0 Hamilton, 1 Lagrange
# Integers, in and out.
STARTED = 15  # 0: there is no last step to predict from; the first is found by continuation
PREDICTOR = 16  # degree of the predictor in use
# Integers, out.
STATUS = 17
DONE = 18
STORED = 19
ITERATIONS = 20  # summed over the steps
MOST = 21  # largest in a step
CONTINUED = 22  # steps solved by continuation in h
TABLE = 23  # offsets of the method's arrays in the table …
WORK = 32  # … and of the workspace's
ROWS = 48  # pointwise: 0 if all points share one set of parameters, else 1
COLUMNS = 56  # linear systems: how many of the numbers (q, p) are stored
INTEGERS = 57

# Integers of the tangent loop, in an array of their own.
SENSITIVITY = 0  # address of the kernel of second derivatives, or of the whole derivative of a step
SENSITIVITY_EXTRA = 1  # columns beyond those of the state: 0, or one for each parameter and one for h
SENSITIVITY_VALUES = 2  # how many values the kernel gives
SENSITIVITY_FUSED = 3  # 1: the kernel gives Φ' of the whole step
RUN = 4  # address of galerkin.run

# From this many unknowns on, LAPACK factors faster than plain loops.
LAPACK_FROM = 32

# Newton's iteration ends when the next increment would change nothing …
EPS = 2.220446049250313e-16
NEGLIGIBLE = 1e-3 * EPS
# … or when it has stopped shrinking and is this small; the floor actually reached is reported.
ACCEPTABLE = 1e-7
MOST_ITERATIONS = 50
# Increments that small are no motion, and have no digits left to compare.
TINY = 1e-280
# If the second Newton increment is at most this part of the first, the root is the only one near the prediction
# (the affine-invariant Newton–Kantorovich theorem; Deuflhard, Newton Methods for Nonlinear Problems, 2.1).
ON_THE_BRANCH = 0.25
# With the first Jacobian kept the second increment is shorter, κ/2 of the first, not (κ/2)/(1 − κ), in that theorem.
# Where the latter is a quarter, κ = 1/3, the former is a sixth.
OF_A_CHORD = 1.5
# The theorem's κ holds all along: with κ ≤ 1/3 a third Newton increment is at most a fourteenth of the second, one
# with a kept Jacobian never more than 0.42 of the one before. Where later ones are longer than a quarter, or a half,
# the first two have deceived, and the root may be a wrong one.
OF_A_LATER_CHORD = 0.5
ASTRAY = 1.0
# Continuation: by what part the step grows at a time, at most and at least. Growing twofold lost the branch of a
# midpoint step of most of a period once in sixteen, growing by a quarter never did.
FASTEST = 0.25
SLOWEST = 1e-3
# Up to this degree the last polynomial is extrapolated whole; beyond, its degree is chosen by what predicted best.
WHOLE_POLYNOMIAL = 3

# Status.
GOING_WELL = 0
NOT_CONVERGED = 1
NOT_FINITE = 2
BRANCH_ENDS = 3
SINGULAR = 4
STOPPED = 5  # of a lane: by an event, as asked

# Reals that travel with the state: start time, step, and what the last piece measured.
START = 0
STEP = 1
FLOOR = 2  # largest increment left undone in a step, relative to the step
RESIDUAL = 3  # the same of the step that failed
REACH = 4  # continuation: the largest fraction of h that could be solved
SPENT = 5  # Newton iterations on the step that failed
LENGTH = 6  # of the last step but one, in and out
REALS = 7


def table_sizes(s: int, r: int) -> list[int]:
    """Lengths of c, b, d, l, dl, slope, modes, growth."""
    return [r, r, s + 1, r * (s + 1), r * (s + 1), s + 1, s * s, s * s]


def work_sizes(n: int, s: int, params: int, kernel: int) -> list[int]:
    """Lengths of the arrays of `loops.workspace.Work`, in their order."""
    N = n * s
    point, values = 1 + 2 * n + params, 2 * n + 3 * n * n + n
    return [N + n, kernel, point, values, n * n, N * N, N * N, n * N, N, s, N, n, n, n * n, 6 * n]


def offsets(sizes: list[int]) -> list[int]:
    """Where each array begins, and where the last one ends."""
    return [0, *accumulate(sizes)]


# Lanes: integers, in. Addresses of the lanes' kernels …
FRESH = 0
CHORD = 1
ADVANCE = 2
LANES = 3  # lanes in a group, groups in a batch
GROUPS = 4
INPUTS = 5  # vectors in a group's state; these are offsets in it, in vectors:
Q_PLACE = 6
Z_PLACE = 7
IMPULSE_PLACE = 8
FRESH_PLACE = 9
CHORD_PLACE = 10
TROUBLE_PLACE = 11
ITERATIONS_PLACE = 12
PARAMS_PLACE = 13
ALIVE_PLACE = 14
EVENTS_PLACE = 15
JACOBIAN_PLACE = 16  # what Newton's iteration keeps of its last Jacobian, and how much that is
JACOBIAN_SIZE = 17
EVENTS = 18  # how many event functions
SKIPPED = 19  # stored rows to leave out at the start: 1 if only the last state is wanted
KEPT = 20  # rows stored per lane
RECORDS = 21  # crossings recorded per lane, of all events
EVENT = 22  # of each event: direction, how many to record, where its records begin, whether it stops the lane
LANE_INTEGERS = EVENT + 4 * 16
# Per lane: integers, out.
LANE_STATUS = 0
LANE_STEPS = 1
LANE_ITERATIONS = 2
LANE_CONTINUED = 3
LANE_CROSSINGS = 4  # one for each event
LANE_COUNTS = LANE_CROSSINGS + 16
MOST_EVENTS = 16
