"""Of the members that follow each other by degree the cheapest: costs fall, and then grow."""

from __future__ import annotations

from collections.abc import Callable

from leastaction.pilots.asked import MEMBERS, Asked

OFTEN = ((1e-4, 3), (1e-7, 4), (1e-10, 6), (0.0, 8))  # down to which tolerance which degree is often the best …
HELD = ((1e-4, 2), (1e-7, 3), (0.0, 4))  # … and where constraints hold
FOLLOWING = 4  # degree that may carry derivatives: where constraints hold, that which is often the best, if lower
GROWN = 1.5  # times the least cost: then further degrees cost more


def often_best(asked: Asked, tol: float, degrees: list[int]) -> int:
    """Of these degrees the one nearest to that which is often the best for a tolerance. Steps with machine code of
    their own are several times as quick as steps of loops: so the next lower degree is better if it alone has such
    code.
    """
    often = next(s for least, s in (HELD if asked.held else OFTEN) if tol >= least)
    lower = MEMBERS[max(0, MEMBERS.index(often) - 1)]
    if asked.own_code(lower) and not asked.own_code(often):
        often = lower
    return min(degrees, key=lambda s: abs(MEMBERS.index(s) - MEMBERS.index(often)))


def following(asked: Asked, tol: float) -> int:
    """The degree that may carry derivatives: one that is measured anyway, since each has code of its own."""
    return min(FOLLOWING, often_best(asked, tol, list(MEMBERS))) if asked.held else FOLLOWING


def search(measure: Callable[[int], float | None], degree: int) -> list[int]:
    """Measure this degree, then lower and higher ones, until costs grow; return the degrees that were left out because
    no time was left. Steps of low degrees may be solved by other, quicker code: so costs may grow a little and fall
    again.
    """
    first = MEMBERS.index(degree)
    costs = {first: measure(degree)}
    for step in (-1, 1):
        k, least = first + step, costs[first]
        if least is not None and GROWN * min(cost for cost in costs.values() if cost is not None) < least:
            break  # costs fall towards lower degrees, and grow towards higher ones
        while 0 <= k < len(MEMBERS):
            now = costs[k] = measure(MEMBERS[k])
            if now is not None and (least is None or now > GROWN * least):
                break
            k, least = k + step, least if now is None else min(least or now, now)
    return [MEMBERS[k] for k, cost in sorted(costs.items()) if cost is None]
