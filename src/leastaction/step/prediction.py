"""Where the iteration of the next step begins: the last step's polynomial, prolonged and corrected.

With modes the Legendre coefficients of the last step's velocity, growth · modes is its polynomial over the next step.
Extrapolation magnifies a mode of degree j by about 5.8^j, so for s > WHOLE the polynomial is cut to the degree that
would have predicted the step just solved best. Up to WHOLE it is taken whole and misses step k by e_k = z_k −
(prediction). That varies slowly from step to step, so it is itself extrapolated by backward differences: e_{k+1} ≈ e_k
+ ∇e_k + ∇²e_k. How many of them to add, none to three, is what has predicted best lately: by the largest error, older
ones counting half as much with every step. Steps so coarse that even the best was far off are predicted by the
polynomial alone: there the differences lead to other roots.

Errors are counted in lengths of the steps lately, coordinate by coordinate, so that units do not matter. A prediction
has three stages, of which the first and the last know one coordinate alone:

    assess     z of the step just solved, memory ↦ memory, and how far each candidate would have been off
    choose     the largest errors over all coordinates, record ↦ the candidate to take, record
    propose    memory, choice ↦ z of the next step

They are written once, on Values of a Builder: inlined in fused kernels, compiled for the native loops, evaluated at any
precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from leastaction.program import Builder, Program, Value, indices

WHOLE = 3  # up to this degree the last polynomial is extrapolated whole
DIFFERENCES = 3  # of what the last predictions missed
NEAR = 1 / 16  # they are added where they have come so near, in lengths of the steps lately

Values = list[Any]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The prediction of a member of degree s: the entries of `modes` and `growth` are numbers, or Values."""

    modes: Any
    growth: Any

    @property
    def s(self) -> int:
        return len(self.modes)

    @property
    def memory(self) -> int:
        """Numbers remembered of each coordinate: the modes, or what was prolonged and what was missed."""
        return self.s if self.s > WHOLE else (1 + DIFFERENCES) * self.s

    @property
    def candidates(self) -> int:
        return self.s if self.s > WHOLE else DIFFERENCES + 1

    @property
    def record(self) -> int:
        """Numbers remembered of all coordinates together: how far candidates were off lately."""
        return 0 if self.s > WHOLE else self.candidates

    def assess(self, z: Sequence[Value], unit: Value, started: Value, memory: Sequence[Value]) -> tuple[Values, Values]:
        """What to remember, and the error of each candidate, of one coordinate; `unit` is one over its length."""
        s, modes = self.s, _apply(self.modes, z)
        errors = []
        if s > WHOLE:
            moved: Values = [0.0] * s
            for i in range(s):
                moved = [y + self.growth[m][i] * memory[i] for m, y in enumerate(moved)]
                errors.append(_largest([a - b for a, b in zip(moved, z, strict=True)]) * unit)
            return modes, errors
        miss = [started.op("if", a - b) for a, b in zip(z, memory[:s], strict=True)]
        missed: Values = []
        for k in range(DIFFERENCES + 1):
            errors.append(_largest(miss) * unit)
            if k < DIFFERENCES:
                missed += miss
                miss = [a - b for a, b in zip(miss, memory[(k + 1) * s : (k + 2) * s], strict=True)]
        return _apply(self.growth, modes) + missed, errors

    def choose(self, errors: Sequence[Value], started: Value, record: Sequence[Value]) -> tuple[Value, Values]:
        """The degree to cut to, or how many differences to add; and what to remember of the errors."""
        lately = list(errors) if self.s > WHOLE else [a.op("max", b * 0.5) for a, b in zip(errors, record, strict=True)]
        best, least = started * 0.0, lately[0]
        for i, error in enumerate(lately[1:], 1):
            better = error < least
            best, least = better.where(float(i), best), better.where(error, least)
        if self.s > WHOLE:
            return started.where(best + 1.0, float(self.s)), []
        return (least <= NEAR).op("if", best), lately

    def propose(self, memory: Sequence[Value], choice: Value) -> Values:
        """z of one coordinate."""
        s = self.s
        if s > WHOLE:
            return _apply(self.growth, [(choice > float(i)).op("if", y) for i, y in enumerate(memory)])
        z = list(memory[:s])
        for k in range(DIFFERENCES):
            wanted = choice > float(k)
            z = [a + wanted.op("if", b) for a, b in zip(z, memory[(k + 1) * s : (k + 2) * s], strict=True)]
        return z

    # The stages as Programs, of one coordinate; for the native loops and for any precision.

    @cached_property
    def assess_program(self) -> Program:
        """(z, unit, started, memory) ↦ memory, errors."""
        B = Builder([("z", self.s), ("unit", 1), ("started", 1), ("memory", self.memory)])
        z, (unit,), (started,), memory = (B.values(name) for name, _ in B.inputs)
        after, errors = self.assess(z, unit, started, memory)
        return B.build(memory=indices(after, B), errors=indices(errors, B))

    @cached_property
    def choose_program(self) -> Program:
        """(errors, started, record) ↦ choice, record."""
        B = Builder([("errors", self.candidates), ("started", 1), ("record", self.record)])
        errors, (started,), record = (B.values(name) for name, _ in B.inputs)
        choice, after = self.choose(errors, started, record)
        return B.build(choice=[choice.k], record=indices(after, B))

    @cached_property
    def propose_program(self) -> Program:
        """(z, choice, started, memory) ↦ z: the places of `assess_program`, with the choice for the unit."""
        B = Builder([("z", self.s), ("choice", 1), ("started", 1), ("memory", self.memory)])
        _, (choice,), _, memory = (B.values(name) for name, _ in B.inputs)
        return B.build(z=indices(self.propose(memory, choice), B))


def _apply(matrix: Any, x: Sequence[Value]) -> Values:
    return [sum((a * y for a, y in zip(row, x, strict=True)), 0.0) for row in matrix]


def _largest(values: Sequence[Value]) -> Value:
    found = abs(values[0])
    for value in values[1:]:
        found = found.op("max", abs(value))
    return found
