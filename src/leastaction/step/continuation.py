"""The way to the root that is connected with the solution at h → 0: continuation in h.

From a small fraction of h, where the velocity alone predicts the step, the polynomial solved at one step is prolonged
to predict the next larger one. What the last prolongation has missed is expected to be missed again: with z = h y(h)
the prolonged h₂ y(h₁) misses h₂ (y(h₂) − y(h₁)), about h₂ (h₂ − h₁) y′ (`again`). The growth is cut when the iteration
does not contract at once or leads to a wrong root, and rises again slowly; where the growth would have to be less than
SLOWEST the branch is taken to end.

A prediction that is far off may lead to another root, so the growth is small, and what was missed is added.
`tests/test_failures.py` has steps that strayed with prolongation alone and growth by an eighth, and counts such steps
among random ones.

`onward` and `again` are plain Python on floats: the native loops translate them, other backends call them.
"""

from __future__ import annotations

SMALLEST = 1.0 / 64.0  # the fraction of h to begin with …
LEAST = 1e-6  # … and the one to give up at
FASTEST = 0.0625  # by what part the step grows at a time, at most …
SLOWEST = 1e-4  # … and at least

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
        growth = 0.25 * growth
        action = PROLONG if growth >= SLOWEST else ENDED
        return action, min(1.0, reached * (1.0 + growth)), reached, growth
    smaller = fraction / 8.0
    return FROM_REST if smaller >= LEAST else ENDED, smaller, 0.0, growth


def again(fraction: float, reached: float, before: float) -> float:
    """How many times the prolongation from `reached` to `fraction` misses what that from `before` to `reached` did."""
    return fraction * (fraction - reached) / (reached * (reached - before))
