"""Where a step with constraints ends: the impulse after which ġ = 0, by the End of `step.form`.

With M = m_v, which does not depend on v here, and m(0), the momentum at rest, the equations e = p⁻ and c = 0 are

    v = M⁻¹(p + impulse − m(0)),        (G M⁻¹Gᵀ) μ = −(G v + g_t),        impulse ← impulse + Gᵀμ.

The μ that is found goes to the impulse, and μ is solved for once more: the second time removes what rounding left of
the first. Where μ is almost known beforehand, once is enough.

Pivot i of G M⁻¹Gᵀ is the square of what is left of row i of G when the rows before it are taken out, in the metric of
M⁻¹. Where next to nothing is left, constraints depend on each other (`step.independence`), and the step has no end to
be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leastaction.engine.mass import mass_of
from leastaction.program import Builder, Value, dot
from leastaction.program.elimination import by_rows, factors, short_dot, substitute
from leastaction.step.form import Step
from leastaction.step.independence import INDEPENDENT
from leastaction.step.rows import OneByOne


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
