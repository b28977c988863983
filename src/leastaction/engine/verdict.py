"""When an iteration is done, and whether its root is trusted: one rule for all ways of solving a step.

An iteration changes the unknowns by increments. Each coordinate is judged on its own scale, the length of its step as
predicted, so that neither units nor a fast or heavy neighbour matter. With d_j the largest increment of coordinate j at
any point of the step the size of increment k is δ_k = max_j d_j / scale_j, and the rate is θ = δ_k/δ_{k−1}.

solved   What would come next is NEGLIGIBLE: δ_k θ, or δ_k θ² where the iteration contracts quadratically, where the
         forces are evaluated once more at the end, or where θ is the rate of a first iteration and the others correct
         twice. The smallest rate seen counts: rounding may hide how small an increment is, so one below ROUNDING counts
         as δ_{k−1} θ at most.
         Or increments that were STALLED at rounding level shrink no more (θ > ½).
trusted  A rate was at most TRUST, of Newton's iteration the first one: by the theorem of Newton and Kantorovich
         (Deuflhard, Newton Methods for Nonlinear Problems, 2.1) there is then one root near the place where that
         iteration began. Or the first increment was a small part of the step (NEAR): the prediction was near a root.
         Where det ∂R/∂z is known it has the sign that it has for h → 0 (`refuse`).
failed   A number is not finite; an increment or the step is longer than FAR times its scale; the iteration shrinks too
         slowly (SLOW, SLOWER from the third rate on), or would take more than `patience` further iterations.

A first step has no step before it that could give a scale: where its first iteration leads is its scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leastaction.program import Value
from leastaction.step.continuation import TRUST
from leastaction.step.prediction import NEAR, TINY
from leastaction.step.rows import Row, Rows, numbers
from leastaction.step.rows import size as length

EPS = 2.0**-52
NEGLIGIBLE = EPS / 1000  # larger ones were seen as a drift of the energy, since what is left has a side
ROUNDING = 8 * EPS  # increments that small are noise for the most part
MOST_ITERATIONS = 50  # of the rescue, and of the velocity where a step ends
STALLED = 1e-9  # the floor of an ill-conditioned mass: 10⁻¹² for chains of fifty links
FAR = 48.0  # a step grows by no such factor from one step to the next
SLOW, SLOWER = 0.9, 0.5  # a second rate may be bad where the prediction was; a third one says how it goes on
PATIENCE = 32  # further iterations that are worth more than derivatives, or another prediction
STATE = ("going", "failed", "size", "rate", "nearest", "iterations")  # what the verdict remembers, a number of each


def judged(
    rows: Rows,
    x: Mapping[str, Sequence[Value]],
    moves: Sequence[Row],
    places: Sequence[Row],
    *,
    first: bool,
    patience: int,
    squares: bool = False,
    corrected: bool = False,
    lands: bool = False,
) -> dict[str, list[Any]]:
    """What an iteration changes of the state beside the unknowns; x is the state, `moves` the increments and `places`
    the whole increments of the step, a row for each coordinate.

    first      whether it is the first iteration of a step
    patience   how many further iterations are worth more than another way of solving
    squares    whether it contracts quadratically
    corrected  whether all iterations but the first one contract by the square of what the first one contracts by
    lands      whether the result follows from forces that are evaluated at the root again
    """
    n, one, started = len(moves), x["going"][0].B.number(1.0), x["started"][0]
    scale = list(x["scale"])
    if first:
        longest = rows.packed([length(row) for row in places])
        scale = [started.where(a, a.op("max", b).op("max", TINY)) for a, b in zip(scale, longest, strict=True)]
    units = numbers(rows, [one / a for a in scale], n)
    size, reach = (_largest(rows, units, of) for of in (moves, places))
    found = ruled(x, size, reach, first=first, patience=patience, squares=squares, corrected=corrected, lands=lands)
    return found | ({"scale": scale} if first else {})


def ruled(
    x: Mapping[str, Sequence[Value]], size: Value, reach: Value, *, first: bool, patience: int, squares: bool = False,
    corrected: bool = False, lands: bool = False, stalled: Any = STALLED,
) -> dict[str, list[Any]]:  # fmt: skip
    """The rule alone, of the size of an increment and of the whole step, in scales, and of the size at which increments
    that shrink no more are rounding.
    """
    one, sound = size.B.number(1.0), (size < FAR) & (reach < FAR)
    if first:
        solved, slow, rate = size <= NEGLIGIBLE, size < 0.0, one
        nearest = (size <= NEAR).where(0.0, 1.0)
    else:
        before, least, k = x["size"][0], x["rate"][0], x["iterations"][0]
        now = size / before
        rate = now.op("min", least)
        hidden = (size <= ROUNDING).where(size.op("min", before * least), size)
        factor = rate * rate if squares or lands else (k < 1.5).where(rate * rate, rate) if corrected else rate
        left = hidden * factor
        solved = (left <= NEGLIGIBLE) | ((now > 0.5) & (size <= stalled))
        nearest = x["nearest"][0].op("min", (k < 1.5).where(now, one) if squares else now)
        hopeless = (left * power(factor, patience) > NEGLIGIBLE) & (k > 1.5)
        slow = (size > STALLED) & ((now > (k < 2.5).where(SLOW, SLOWER)) | hopeless)
        solved = solved & (nearest <= TRUST)
        slow = slow | (nearest > TRUST) if squares else slow | ((now > 0.5) & (size <= stalled) & ~solved)
    failed = ~sound | (slow & ~solved)
    return {
        "going": [~failed & ~solved],
        "failed": [failed],
        "size": [size],
        "rate": [rate],
        "nearest": [nearest],
        "iterations": [one if first else x["iterations"][0] + 1.0],
        "most": [x["most"][0].op("max", one if first else x["iterations"][0] + 1.0)],
        "spent": [x["spent"][0] + 1.0],
    }


def refuse(after: dict[str, list[Any]], turned: Value) -> None:
    """Where the determinant has turned the root lies beyond a fold or a pole. `after` is what `judged` says."""
    after["failed"] = [after["failed"][0] | ~after["going"][0] & turned]


def wanted(x: Mapping[str, Sequence[Value]], wants: Value, after: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """What changes of the trajectories that want it; the others keep what they have."""
    return {name: [wants.where(a, b) for a, b in zip(new, x[name], strict=True)] for name, new in after.items()}


def power(x: Value, k: int) -> Value:
    """x to the largest power of two that is at most k."""
    for _ in range(k.bit_length() - 1):
        x = x * x
    return x


def _largest(rows: Rows, units: Sequence[Value], of: Sequence[Row]) -> Value:
    return rows.largest([abs(d) * u for row, u in zip(of, units, strict=True) for d in row if isinstance(d, Value)])
