"""The prediction of `step.prediction` on flint numbers, for all coordinates of a step.

A prediction needs only the digits that will be right: it has twice as many bits as were right in the last one.
"""

from __future__ import annotations

from functools import lru_cache

import flint
import numpy as np

from leastaction.backends.flint.evaluate import function
from leastaction.methods import Galerkin
from leastaction.numbers.conversion import Balls, fraction
from leastaction.step.prediction import Prediction, prediction

LEAST_BITS = 128


class Predictor:
    """What is remembered of the last steps, and the guess of the next step: n coordinates; multipliers stay as they
    were.
    """

    def __init__(self, method: Galerkin, n: int, digits: int) -> None:
        rule = _rule(method, digits)
        programs = rule.assess_program, rule.choose_program, rule.propose_program
        self._assess, self._choose, self._propose = (function(x, x.results, []) for x in programs)
        self._n, self._s, self._size = n, method.s, rule.memory
        zero = flint.arb(0)
        self.started, self.record = zero, [zero] * rule.record
        self.memory = [[zero] * rule.memory for _ in range(n)]

    def after(self, z: Balls, longest: Balls, right: float) -> Balls:
        """z of the next step, after one with this z; `longest` are the lengths of the latest steps, and 2^-right is
        about what the last prediction missed.
        """
        bits = flint.ctx.prec
        flint.ctx.prec = int(min(bits, max(LEAST_BITS, 2 * right)))
        n, own = self._n, self._n * self._s
        errors: Balls = []
        for j, length in enumerate(longest):
            unit = length if length.is_zero() else 1 / length
            found = self._assess(*z[j:own:n], unit, self.started, *self.memory[j])
            self.memory[j] = found[: self._size]
            off = [x.mid() for x in found[self._size :]]
            errors = [max(a, b) for a, b in zip(errors, off, strict=True)] if errors else off
        choice, *self.record = self._choose(*errors, self.started, *self.record)
        self.started = flint.arb(1)
        columns = [self._propose(*z[j:own:n], choice, self.started, *memory) for j, memory in enumerate(self.memory)]
        flint.ctx.prec = bits
        return [x.mid() for row in zip(*columns, strict=True) for x in row] + z[own:]


@lru_cache(maxsize=32)
def _rule(method: Galerkin, digits: int) -> Prediction:
    """The rule with the method's table, as the table is at so many digits."""
    table = method.exact_table(digits)
    modes, growth = (np.array([[fraction(x) for x in row] for row in table[name]]) for name in ("modes", "growth"))
    return prediction(modes, growth)
