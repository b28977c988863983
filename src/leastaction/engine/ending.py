"""Where a step with constraints ends, whatever the kinetic energy: v and μ of the End (`step.form`) by Newton.

The matrix is (e_v, −Gᵀ; G, 0), eliminated with pivoting, since e_v may have zeros on its diagonal. The search begins
with the velocity of the step's polynomial. Each μ goes to the impulse at once, so that the next iteration sees the
rounded momentum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leastaction.program import Builder, Value, dot
from leastaction.program.elimination import by_rows, solve
from leastaction.step.form import Step
from leastaction.step.independence import INDEPENDENT, probe
from leastaction.step.rows import OneByOne, total

LINEAR, CURVED = 2, 5  # iterations; the first error of the velocity is O(hˢ)
ROUNDING = 1e-7  # the last move, relative to the velocities


def simple_end(step: Step) -> bool:
    """Whether L is quadratic in v, and no entry on the diagonal of its mass zero by structure (`settling`)."""
    assert step.end is not None
    program = step.end.program
    diagonal = program.output("e_v")[:: step.n + 1]
    return step.end.linear and all(program.code[k] != ("const", 0.0) for k in diagonal)


def settled_anyhow(
    step: Step, B: Builder, x: Mapping[str, Sequence[Any]], z: Sequence[Value], impulse: Sequence[Value]
) -> tuple[list[Value], Value]:
    """The impulse after which ġ = 0, and whether the search ended and the constraints are independent there."""
    assert step.end is not None
    n, s, m, h = step.n, step.s, step.multipliers, x["h"][0]
    zero, slope = B.number(0.0), step.method.table.slope.tolist()
    q = [a + z[(s - 1) * n + j] for j, a in enumerate(x["q"])]
    v: list[Any] = [dot(slope[1:], z[j : s * n : n]) / h for j in range(n)]
    given = {"t": [x["t"][0] + h], "q": q, "multipliers": [zero] * m, "params": x["params"]}
    sound, largest = zero.op("eq", 0.0), OneByOne().largest
    for k in range(LINEAR if step.end.linear else CURVED):
        at = B.at(step.end.program, given | {"v": v})
        M, G = by_rows(at["e_v"], n), by_rows(at["c_v"], n)
        saddle = [[*M[j], *(-row[j] for row in G)] for j in range(n)] + [[*row, *[zero] * m] for row in G]
        rights = [[i + (p - e) for i, p, e in zip(impulse, x["p"], at["e"], strict=True)] + [-c for c in at["c"]]]
        heavy = [abs(row[j]).op("sqrt") for j, row in enumerate(M)]
        if not k:  # rows of G in the metric of the mass (`step.independence`)
            parts = [[(g.op("sq") / M[j][j]) for j, g in enumerate(row) if M[j][j].known != 0] for row in G]
            lengths = [abs(total(part)).op("sqrt") if part else B.number(1.0) for part in parts]
            rights.append([zero] * n + [length * probe(i) for i, length in enumerate(lengths)])
        found = solve(saddle, rights)
        if not k:
            sound &= largest([abs(a) * b * INDEPENDENT for a, b in zip(found[1][n:], lengths, strict=True)]) <= 1.0
        dv, push = found[0][:n], [dot(column, found[0][n:]) for column in zip(*G, strict=True)]
        impulse, v = ([a + b for a, b in zip(*of, strict=True)] for of in ((impulse, push), (v, dv)))
    moved = total([w * abs(a) for w, a in zip(heavy, dv, strict=True)])
    whole = total([w * abs(a) for w, a in zip(heavy, v, strict=True)])
    pushed = [(abs(p) + abs(i)) / w for p, i, w in zip(x["p"], impulse, heavy, strict=True) if w.known != 0]
    return list(impulse), sound & (moved <= (whole + total([zero, *pushed])) * ROUNDING)
