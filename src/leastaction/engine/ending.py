"""Where a step with constraints ends: the impulse after which ġ = 0, by the End of `step.form`.

settled    where L is quadratic in v, and its mass has no zeros on the diagonal. With m(0), the momentum at rest,

               v = M⁻¹(p + impulse − m(0)),        (G M⁻¹Gᵀ) μ = −(G v + g_t),        impulse ← impulse + Gᵀμ.

           μ is solved for once more: the second time removes what rounding left of the first. Where μ is almost known
           beforehand, once is enough. Pivot i of G M⁻¹Gᵀ is the square of what is left of row i of G when the rows
           before it are taken out, in the metric of M⁻¹.
settled_anyhow    else: v and μ by Newton, from the velocity of the step's polynomial. The matrix is (e_v, −Gᵀ; G, 0),
           eliminated with pivoting. Each μ goes to the impulse at once, so that the next iteration sees the rounded
           momentum.

Where constraints depend on each other (`step.independence`) the step has no end to be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leastaction.engine.mass import mass_of
from leastaction.program import Builder, Value, dot
from leastaction.program.elimination import by_rows, factors, short_dot, solve, substitute
from leastaction.step.form import Step
from leastaction.step.independence import INDEPENDENT, probe
from leastaction.step.rows import OneByOne, total

LINEAR, CURVED = 2, 5  # iterations; the first error of the velocity is O(hˢ)
ROUNDING = 1e-7  # the last move, relative to the velocities


def simple_end(step: Step) -> bool:
    """Whether L is quadratic in v, and no entry on the diagonal of its mass zero by structure."""
    assert step.end is not None
    program = step.end.program
    diagonal = program.output("e_v")[:: step.n + 1]
    return step.end.linear and all(program.code[k] != ("const", 0.0) for k in diagonal)


def settled(
    step: Step, B: Builder, x: Mapping[str, list[Value]], z: Sequence[Value], impulse: Sequence[Value],
    known: Sequence[Value] | None = None,
) -> tuple[list[Value], Value]:  # fmt: skip
    """The impulse after which ġ = 0, from that of the equations of motion, and whether it is finite and the constraints
    are independent there: x is the state, z are the unknowns. `known` is what is known of μ beforehand.
    """
    assert step.end is not None and step.end.linear
    n, s, m, mass = step.n, step.s, step.multipliers, mass_of(step)
    (t,), (h,), nothing = x["t"], x["h"], B.number(0.0)
    q = [a + z[(s - 1) * n + j] for j, a in enumerate(x["q"])]
    momentum, moving = step.terms[0].program.select("m"), step.end.program.select("c", "c_v")
    # The other numbers that a node reads do not enter its momentum.
    at = {name: [nothing] * size for name, size in momentum.inputs}
    at |= {"t": [t + h], "q": q, "v": [nothing] * n, "multipliers": [nothing] * m, "params": x["params"]}
    rest, motion = B.at(momentum, at)["m"], B.at(moving, at)
    c, G, inverse = motion["c"], by_rows(motion["c_v"], n), mass.inverted(B, at)
    columns = list(zip(*G, strict=True))
    pulled = list(zip(*mass.solve(inverse, [*map(list, columns)]), strict=True))  # the columns of M⁻¹Gᵀ
    S = [[short_dot(row, a) for a in pulled] for row in G]
    lower = factors(S, hasty=known is not None)
    left = [abs(S[i][i] * lower[i][i]) * INDEPENDENT for i in range(1, m)]
    independent = OneByOne().largest([nothing, *left]) <= 1.0

    def pushed(by: Sequence[Value]) -> list[Value]:
        return [a + dot(column, by) for a, column in zip(impulse, columns, strict=True)]

    if known is not None:
        impulse = pushed(known)
    for _ in range(2 if known is None else 1):
        free = [[a + b - r] for a, b, r in zip(x["p"], impulse, rest, strict=True)]
        v = [own for (own,) in mass.solve(inverse, free)]
        impulse = pushed(substitute(lower, [-(a + short_dot(row, v)) for a, row in zip(c, G, strict=True)]))
    whole = sum(impulse, nothing)
    return list(impulse), independent & (whole - whole).op("eq", 0.0)


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
