"""The way to the root that is connected with the solution at h → 0: continuation in h.

From a small fraction of h, where the velocity alone predicts the step, the polynomial solved at one step is prolonged
to predict the next larger one. The growth is cut when the iteration does not contract at once or leads to a wrong root,
and rises again slowly; where the growth would have to be less than SLOWEST the branch is taken to end. Twofold growth
lost the branch of a midpoint step of most of a period once in sixteen times, growth by a quarter about once in a
thousand times.

`onward` is plain Python on floats: the native loops translate it, other backends call it.
"""

from __future__ import annotations

SMALLEST = 1.0 / 64.0  # the fraction of h to begin with …
LEAST = 1e-6  # … and the one to give up at
FASTEST = 0.125  # by what part the step grows at a time, at most …
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
