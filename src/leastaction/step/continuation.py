"""The way to the root that is connected with the solution at h → 0: continuation in h.

From a small fraction of h, where the velocity alone predicts the step, the polynomial solved at one step is prolonged
to predict the next larger one. What the last prolongation has missed is expected to be missed again: with z = h y(h)
the prolonged h₂ y(h₁) misses h₂ (y(h₂) − y(h₁)), about h₂ (h₂ − h₁) y′ (`again`). The growth is cut when the iteration
does not contract at once or leads to a wrong root, and rises again slowly; where the growth would have to be less than
SLOWEST the branch is taken to end.

A prediction that is far off may lead to another root, so the growth is small, and what was missed is added. Where the
branch folds, a step beyond the fold may leap to another branch, and contract there. Two things tell (`trusted`):

    missed   how far the root is from its prediction, of each coordinate in parts of its longest step on the way. As the
             growth shrinks, so does what a prediction misses of its own branch, but not the way to another branch.
    turned   whether the determinant of ∂R/∂z has another sign than before: along a branch without a fold it has one
             sign, that of the mass.

Where one of them is too much, the growth is cut. A coordinate that others have just set in motion is missed by all of
its step however small the growth is: it does not count then, and a growth below CAREFUL allows any miss. The sign
changes without a fold where a motion keeps a symmetry that has become unstable, as a pendulum on its head: there the
branch goes on, and predictions of it miss by little. `tests/hostile/test_coarse_steps.py` counts what is left.

`onward`, `again` and `trusted` are plain Python on floats: the native loops translate them, other backends call them.
"""

from __future__ import annotations

SMALLEST = 1.0 / 64.0  # the fraction of h to begin with …
LEAST = 1e-6  # … and the one to give up at
FASTEST = 0.0625  # by what part the step grows at a time, at most …
SLOWEST = 1e-4  # … and at least
MISSED = 1.0 / 32.0  # what a prediction may miss of the longest step …
CAREFUL = 5e-4  # … unless the growth is less than this

# A first step that its acceleration predicts well is not continued, if these parts of it are predicted well, too: over
# the waves of a force one of them alone may come near a root by chance.
PARTS = (0.5, 0.75, 1.0)

# Where one root can be shown, these are enough: the step, its half, a quarter of it, … down to SMALLEST.
HALVES = 6

# What to do next: solve the step of the new fraction, predicted by the last one solved, or by the velocity; or stop.
PROLONG, FROM_REST, ARRIVED, ENDED = 0, 1, 2, 3


def onward(good: bool, fraction: float, reached: float, growth: float) -> tuple[int, float, float, float]:
    """After an attempt at a fraction of h: what to do next, the next fraction, the largest one solved, the growth."""
    if good:
        if fraction == 1.0:
            return ARRIVED, 1.0, 1.0, growth
        growth = min(1.5 * growth, FASTEST)
        return PROLONG, min(1.0, fraction * (1.0 + growth)), fraction, growth
    if reached > 0.0:
        if fraction == 1.0:
            growth = min(growth, 1.0 / reached - 1.0)
        growth = 0.25 * growth
        action = PROLONG if growth >= SLOWEST else ENDED
        return action, min(1.0, reached * (1.0 + growth)), reached, growth
    smaller = fraction / 8.0
    return FROM_REST if smaller >= LEAST else ENDED, smaller, 0.0, growth


def again(fraction: float, reached: float, before: float) -> float:
    """How many times the prolongation from `reached` to `fraction` misses what that from `before` to `reached` did."""
    return fraction * (fraction - reached) / (reached * (reached - before))


def trusted(missed: float, turned: bool, growth: float) -> bool:
    """Whether a root that follows another one is on the same branch."""
    if turned:
        return missed <= MISSED and growth < CAREFUL
    return missed <= MISSED or growth < CAREFUL
