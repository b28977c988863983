"""Where a step with constraints ends, as a Program: the impulse after which ġ = 0, by the End of `step.form`.

With M = m_v, which does not depend on v here, and m(0), the momentum at rest, the equations e = p⁻ and c = 0 are

    v = M⁻¹(p + impulse − m(0)),        (G M⁻¹Gᵀ) μ = −(G v + g_t),        impulse ← impulse + Gᵀμ.

The μ that is found goes to the impulse, and μ is solved for once more: the second time removes what rounding left of
the first. Where μ is almost known beforehand, once is enough.

Pivot i of G M⁻¹Gᵀ is the square of what is left of row i of G when the rows before it are taken out, in the metric of
M⁻¹. Where next to nothing is left, constraints depend on each other (`step.independence`), and the step has no end to
be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from leastaction.backends.fused.elimination import factors, substitute
from leastaction.backends.fused.equations import short_dot
from leastaction.backends.fused.judging import finite
from leastaction.backends.fused.mass import mass_of
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step
from leastaction.step.independence import INDEPENDENT
from leastaction.step.rows import OneByOne

TIMES = 2


def settling(step: Step, blocks: Sequence[tuple[str, int]]) -> Program:
    """The state of trajectories whose step is solved ↦ impulse, and trouble where it is not finite."""
    B = Builder(blocks)
    x = {name: B.values(name) for name, _ in blocks}
    impulse, independent = settled(step, B, x, indices(x["z"], B), indices(x["impulse"], B))
    spoilt = ~(independent & finite(Value(B, B.sum(impulse))))
    return B.build(impulse=impulse, trouble=[(x["trouble"][0] | spoilt).k])


def settled(
    step: Step,
    B: Builder,
    x: dict[str, list[Value]],
    z: Sequence[int],
    impulse: Sequence[int],
    known: Sequence[int] | None = None,
) -> tuple[list[int], Value]:
    """The impulse after which ġ = 0, from that of the equations of motion, and whether the constraints are independent
    there: x is the state, z are the unknowns. `known` is what is known of μ beforehand.
    """
    assert step.end is not None and step.end.linear
    n, s, m, mass = step.n, step.s, step.multipliers, mass_of(step)
    (t,), (h,), nothing = x["t"], x["h"], B.const(0.0)
    q = [B.add(a.k, z[(s - 1) * n + j]) for j, a in enumerate(x["q"])]
    momentum, moving = step.terms[0].program.select("m"), step.end.program.select("c", "c_v")
    # The other numbers that a node reads do not enter its momentum.
    at = {name: [nothing] * size for name, size in momentum.inputs}
    at |= {
        "t": [(t + h).k],
        "q": q,
        "v": [nothing] * n,
        "multipliers": [nothing] * m,
        "params": indices(x["params"], B),
    }
    rest = B.inline(momentum, **{name: at[name] for name, _ in momentum.inputs})["m"]
    motion = B.inline(moving, **{name: at[name] for name, _ in moving.inputs})
    c, G = motion["c"], _rows(motion["c_v"], n)
    inverse = [Value(B, k) for k in mass.inverted(B, {name: at[name] for name, _ in mass.program.inputs})]

    def by_mass(columns: Sequence[Sequence[int]]) -> list[list[int]]:
        """M⁻¹ times columns."""
        right = [[Value(B, column[j]) for column in columns] for j in range(n)]
        solved = mass.solve(inverse, right)
        return [indices([row[k] for row in solved], B) for k in range(len(columns))]

    pulled = by_mass(G)
    S = [[short_dot(B, row, a) for a in pulled] for row in G]
    lower = factors(B, S, hasty=known is not None)
    left = [abs(Value(B, S[i][i]) * Value(B, lower[i][i])) * INDEPENDENT for i in range(1, m)]
    independent = OneByOne().largest([Value(B, B.const(0.0)), *left]) <= 1.0

    def pushed(by: Sequence[int]) -> list[int]:
        """The impulse and Gᵀμ."""
        return [B.add(impulse[j], B.sum(B.mul(G[i][j], by[i]) for i in range(m))) for j in range(n)]

    if known is not None:
        impulse = pushed(known)
    for _ in range(TIMES if known is None else 1):
        (v,) = by_mass([[B.sub(B.add(a.k, b), r) for a, b, r in zip(x["p"], impulse, rest, strict=True)]])
        impulse = pushed(substitute(B, lower, [B.op("neg", B.add(c[i], short_dot(B, G[i], v))) for i in range(m)]))
    return list(impulse), independent


def _rows(matrix: Sequence[int], n: int) -> list[list[int]]:
    return [list(matrix[k : k + n]) for k in range(0, len(matrix), n)]
