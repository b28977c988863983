"""What kernels cost, counted in additions: the count decides between kernels, and nothing else depends on it."""

from __future__ import annotations

from leastaction.backends.fused.elimination import elimination_length
from leastaction.backends.fused.mass import Mass
from leastaction.program import ACROSS, BINARY, UNARY, Program
from leastaction.step.form import Step

# What operations cost in lanes, roughly; what is not listed costs FUNCTION.
WORK = {
    **dict.fromkeys(("neg", "sq", "abs", "add", "sub", "mul", "min", "max", "copysign", "select", "if"), 1.0),
    **dict.fromkeys(("minimum", "maximum"), 2.0),
    **dict.fromkeys(("lt", "le", "eq", "ne", "and", "or", "not", "sign", "floor", "ceil"), 2.0),
    **dict.fromkeys(ACROSS, 1.0),
    "largest": 4.0,
    "div": 8.0,
    "sqrt": 10.0,
}
FUNCTION = 25.0
# Loops over points, rows and columns are so many times slower than the same operations written out: measured on
# Newton's iteration with 4 to 60 unknowns.
LOOPS = 5.0
PER_UNKNOWN = 250.0  # what such an iteration costs beside that, for each of its unknowns: measured with 8 to 24
DEAR = 4.0  # factoring the mass is done once in a step, and takes long to compile: it counts so many times


SAVED = 3  # iterations that chords of collocation save in a step
TWICE = 1.8  # chords that correct twice may cost so many plain ones: they contract by the square


def work(program: Program) -> float:
    """What a program costs, in additions."""
    return sum(WORK.get(op, FUNCTION if op in UNARY or op in BINARY else 0.0) for op, *_ in program.code)


def newton_length(step: Step) -> int:
    """About how many instructions a whole Newton step without multipliers has."""
    nodes = sum(len(step.samples(term).tau) * len(term.slopes.code) for term in step.terms)
    return nodes + 3 * elimination_length(step)


def newton_work(step: Step, lanes: int) -> float:
    """About what a Newton iteration in the loops costs, the points of the step side by side."""
    nodes = sum(-(-len(step.samples(term).tau) // lanes) * work(term.slopes) for term in step.terms)
    unknowns = step.s * (step.n + step.multipliers)
    return LOOPS * (nodes + unknowns**3 / (2 * lanes)) + PER_UNKNOWN * unknowns


def collocation_pays(step: Step) -> bool:
    """Whether the inverses that chords of collocation write down in every step cost less than the chords they save."""
    n, s = step.n, step.s
    inverses = 16 * n**3 * ((s + 1) // 2)
    return inverses < SAVED * (s * work(step.terms[0].program) + 4 * n * s * s)


def chord_length(step: Step, mass: Mass, lanes: int = 1) -> float:
    """About how many instructions a chord has, and factoring the mass, `lanes` points at once."""
    n, s = step.n, step.s
    total = n * s * s + (0 if mass.diagonal else n * n * s)
    for term in step.terms:
        r = len(step.samples(term).tau)
        total += r * len(term.program.code) + (2 if mass.separable else 4) * n * r * s
    if mass.collocated:
        total += 3 * n * n * s * (1 if mass.constant else n)
    return total / lanes + (0 if mass.diagonal or mass.fixed else DEAR * n**3 / 3)
