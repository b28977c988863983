"""The prediction that no last step leads astray: the motion itself, by the classical Runge–Kutta method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leastaction.engine.form import Form, Values
from leastaction.engine.sparsity import LONGEST_ONCE
from leastaction.program import Builder, Value, dot
from leastaction.program.elimination import factors, square, substitute
from leastaction.step.prediction import TINY
from leastaction.step.rows import Row, Rows, numbers

WILD = 16.0  # a march that leads further, in lengths of the latest steps, is no motion: h times a frequency is large


def marched(
    form: Form, B: Builder, x: Values, inputs: Sequence[Value], places: Sequence[float]
) -> list[tuple[list[Any], list[Any]]]:
    """(q, v) at these places of the step, in units of h, by a step of RK4 from each to the next. Inputs stay the same.

    A march that would take too long to compile goes on with the velocity at the start.
    """
    n, slopes, h = form.n, form.step.terms[0].slopes, x["h"][0]
    own = [name for name in ("f", "m", "m_q", "m_v") if name in dict(slopes.outputs)]

    def at(names: Sequence[str], t: Value, q: Sequence[Any], v: Sequence[Any]) -> Values:
        return B.at(slopes.select(*names), {"t": [t], "q": q, "v": v, "params": x["params"], "inputs": inputs})

    def rates(t: Value, q: Sequence[Any], v: Sequence[Any]) -> tuple[Sequence[Any], list[Value]]:
        found = at(own, t, q, v)
        turn = [dot(found["m_q"][j * n : j * n + n], v) for j in range(n)] if "m_q" in found else [0.0] * n
        return v, substitute(factors(square(found["m_v"])), [a - b for a, b in zip(found["f"], turn, strict=True)])

    rest = at(("m", "m_v"), form.time(x, 0.0), x["Q"], [B.number(0.0)] * n)
    v: list[Any] = substitute(factors(square(rest["m_v"])), [a - b for a, b in zip(x["P"], rest["m"], strict=True)])
    q: list[Any] = list(x["Q"])
    if 4 * len(places) * len(slopes.code) > LONGEST_ONCE:
        return [([a + (h * c) * b for a, b in zip(q, v, strict=True)], v) for c in places]
    found, now = [], 0.0
    for c in places:
        d, t = h * (c - now), form.time(x, h * now)
        k = [rates(t, q, v)]
        for share in (0.5, 0.5, 1.0):
            to = [[a + d * (b * share) for a, b in zip(y, r, strict=True)] for y, r in zip((q, v), k[-1], strict=True)]
            k.append(rates(t + d * share, *to))
        q, v = (
            [
                a + (d * (1 / 6)) * (k0 + 2.0 * (k1 + k2) + k3)
                for a, k0, k1, k2, k3 in zip(y, *(r[i] for r in k), strict=True)
            ]
            for i, y in enumerate((q, v))
        )
        found.append((q, v))
        now = c
    return found


def tamed(form: Form, rows: Rows, x: Values, moves: Sequence[Row], by: Any) -> list[Row]:
    """Moves, a row for each coordinate, or none where they lead too far, `by` times as far: then the first iteration
    finds the step of the equations that are linearised at rest.
    """
    units = numbers(rows, [abs(by) / a.op("max", TINY) for a in x["scale"]], form.n)
    farthest = rows.largest([abs(a) * u for row, u in zip(moves, units, strict=True) for a in row])
    wild = x["started"][0].op("ne", 0.0) & ~(farthest < WILD)
    return [[wild.where(0.0, a) for a in row] for row in moves]
