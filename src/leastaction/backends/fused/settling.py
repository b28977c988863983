"""Where a step with constraints ends, as a Program: the impulse after which ġ = 0, by the End of `step.form`.

With M = m_v, which does not depend on v here, A = M⁻¹Gᵀ and S = G A the equations e = p⁻ and c = 0 are

    S dμ = −c − G y,      dv = y + A dμ,      y = M⁻¹(p + impulse − m(v)),

solved from the velocity with which the polynomial ends. What is found of μ goes to the impulse, and once more: the
second time takes away what rounding left of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from leastaction.backends.fused.elimination import factors, substitute
from leastaction.backends.fused.equations import dot
from leastaction.backends.fused.judging import finite
from leastaction.backends.fused.mass import mass_of
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.form import Step

TIMES = 2


def settling(step: Step, blocks: Sequence[tuple[str, int]]) -> Program:
    """The state of trajectories whose step is solved ↦ impulse, and trouble where it is not finite."""
    assert step.end is not None and step.end.linear
    n, s, m, mass = step.n, step.s, step.multipliers, mass_of(step)
    B = Builder(blocks)
    x = {name: B.values(name) for name, _ in blocks}
    (t,), (h,), (trouble,), z = x["t"], x["h"], x["trouble"], x["z"]
    slope = step.method.table.slope.tolist()
    q = [a + z[(s - 1) * n + j] for j, a in enumerate(x["q"])]
    speed = [sum(slope[v + 1] * z[v * n + j] for v in range(s)) for j in range(n)]
    v = indices([a / h for a in speed], B)
    impulse, p = [a.k for a in x["impulse"]], [a.k for a in x["p"]]
    given = {"t": [(t + h).k], "q": indices(q, B), "params": [a.k for a in x["params"]]}
    momentum, rate = step.terms[0].program.select("m"), step.end.program.select("c")
    nothing = B.const(0.0)  # what else a node reads does not enter its momentum
    at = {name: [nothing] * size for name, size in momentum.inputs} | given | {"v": v, "multipliers": [nothing] * m}
    slopes = step.end.program.select("c_v")
    G = _rows(B.inline(slopes, **{name: at[name] for name, _ in slopes.inputs})["c_v"], n)
    inverse = [Value(B, k) for k in mass.inverted(B, **{name: at[name] for name, _ in mass.program.inputs})]

    def by_mass(columns: Sequence[Sequence[int]]) -> list[list[int]]:
        """M⁻¹ times columns."""
        right = [[Value(B, column[j]) for column in columns] for j in range(n)]
        solved = mass.solve(inverse, right)
        return [indices([row[k] for row in solved], B) for k in range(len(columns))]

    pulled = by_mass(G)
    lower = factors(B, [[dot(B, row, a) for a in pulled] for row in G])
    for _ in range(TIMES):
        now = at | {"v": v}
        held = B.inline(momentum, **{name: now[name] for name, _ in momentum.inputs})["m"]
        c = B.inline(rate, **{name: now[name] for name, _ in rate.inputs})["c"]
        (y,) = by_mass([[B.sub(B.add(p[j], impulse[j]), held[j]) for j in range(n)]])
        mu = substitute(B, lower, [B.sub(B.op("neg", c[i]), dot(B, G[i], y)) for i in range(m)])
        impulse = [B.add(impulse[j], B.sum(B.mul(G[i][j], mu[i]) for i in range(m))) for j in range(n)]
        v = [B.add(v[j], B.add(y[j], B.sum(B.mul(pulled[i][j], mu[i]) for i in range(m)))) for j in range(n)]
    spoilt = ~finite(Value(B, B.sum(impulse)))
    return B.build(impulse=impulse, trouble=[(trouble | spoilt).k])


def _rows(matrix: Sequence[int], n: int) -> list[list[int]]:
    return [list(matrix[k : k + n]) for k in range(0, len(matrix), n)]
