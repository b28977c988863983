"""Cyclic coordinates: the step of those coordinates that are left, by Routh's reduction.

Where a force f_c is zero and nothing reads q_c, the momentum p_c is constant. If the velocities at the nodes can be the
unknowns of a step, as with Gauss' rules of s nodes, then m_c = p_c holds at every node, and where L is quadratic in v,
these equations are linear in the cyclic velocities:

    M_cc v_c = p_c − m_c(t, q, v_r, v_c = 0) .

So v_c is a function of the other coordinates, and of p_c, which are further parameters: a step of the coordinates r
that are not cyclic has the Program

    (t, q_r, v_r, params and p_c) ↦ f_r, m_r, v_c,

and q_c⁺ = q_c + Σ_i h b_i v_c,i, p_c⁺ = p_c. This is the same step, with fewer unknowns, and often a simpler one: that
of a top has one coordinate of three, whose mass is constant and whose force does not depend on its velocity. Where M_cc
is singular the chart has a pole (`step.poles`).

The velocities are eliminated without pivoting. Where that loses digits at a node (`step.pivots`), as it may where M is
regular but not definite, the step of all coordinates is solved. A system that loses digits everywhere is not reduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.program import Builder, Program, Value, dot
from leastaction.step.form import Step, Term
from leastaction.step.pivots import lost_digits


@dataclass(frozen=True)
class Cyclic:
    """Which of n coordinates are cyclic, and which are left, free; among the cyclic ones, those of constant mass come
    first, since these are eliminated without waiting for q.
    """

    n: int
    free: tuple[int, ...]
    cyclic: tuple[int, ...]

    def whole(self, free: Sequence[Any], cyclic: Sequence[Any]) -> list[Any]:
        """Something of every coordinate, from that of the free ones and of the cyclic ones."""
        found: list[Any] = [None] * self.n
        for j, value in zip((*self.free, *self.cyclic), (*free, *cyclic), strict=True):
            found[j] = value
        return found


@lru_cache(maxsize=64)
def reduced(step: Step) -> Step:
    """The step of the free coordinates; the step itself where no coordinate is cyclic, or all are.

    The steps are to be collocation by a rule of Gauss.
    """
    if len(step.terms) > 1 or step.multipliers:
        return step
    (term,) = step.terms
    parts = _parts(term, step.n)
    if not parts.cyclic or not parts.free:
        return step
    found = _reduced(term, parts)
    if not _passes(found.program, step.params):
        return step
    return Step(len(parts.free), step.method, (found,), of=parts)


def _parts(term: Term, n: int) -> Cyclic:
    """The cyclic coordinates; none where L is not quadratic in v."""
    program, slopes = term.program.select("f", "m"), term.slopes
    if "m_v" not in dict(slopes.outputs) or slopes.depends("m_v", "v"):
        return Cyclic(n, tuple(range(n)), ())
    first = program.input_slice("q").start
    read = {args[0] for op, *args in program.code if op == "input"}
    forces = [program.code[k] for k in program.output("f")]
    found = [j for j in range(n) if forces[j] == ("const", 0.0) and first + j not in read and j not in term.still]
    masses = slopes.output("m_v")
    varied = [slopes.with_outputs(M=[masses[j * n + j]]).depends("M", "t", "q") for j in range(n)]
    return Cyclic(n, tuple(j for j in range(n) if j not in found), tuple(sorted(found, key=lambda j: varied[j])))


def _passes(program: Program, params: int) -> bool:
    """Whether no digits are lost somewhere, by the Program of the free coordinates."""
    program = program.select("turning", "lost")
    own = dict(program.inputs)["params"] - params
    at = {"params": np.concatenate([np.linspace(0.7, 1.3, params), np.linspace(0.3, 0.9, own)])}
    found = program(*(at.get(name, np.linspace(0.3, 0.9, size)) for name, size in program.inputs))
    return bool(np.isfinite([*found["turning"], *found["lost"]]).all())


def _reduced(term: Term, parts: Cyclic) -> Term:
    """The term of the free coordinates, which also gives the cyclic velocities, `turning`; the pivots of M_cc, of those
    that change, and their `steepness`, ∂/∂q_r; the `barrier` U, if v = 0; and `lost`: zero, or no number where the
    elimination of the velocities loses digits.
    """
    from leastaction.trace.differentiate import jacobian

    free, cyclic, n = parts.free, parts.cyclic, parts.n
    sizes = dict(term.program.inputs) | {"q": len(free), "v": len(free)}
    own = sizes["params"]
    sizes["params"] += len(cyclic)
    B = Builder([*sizes.items()])
    given = B.blocks()
    momenta, nothing = given["params"][own:], [B.number(0.0)] * len(cyclic)
    given |= {"params": given["params"][:own], "q": parts.whole(given["q"], nothing)}
    speeds = given["v"]

    def inlined(program: Program, turning: Sequence[Value]) -> dict[str, list[Value]]:
        return B.at(program, given | {"v": parts.whole(speeds, turning)})

    M = inlined(term.slopes.select("m_v"), nothing)["m_v"]
    m = inlined(term.program.select("m"), nothing)["m"]
    missing = [p - m[j] for j, p in zip(cyclic, momenta, strict=True)]
    turning, found_pivots = _solved([[M[j * n + k] for k in cyclic] for j in cyclic], missing)
    barrier = dot(missing, turning)
    found = inlined(term.program.select("f", "m"), turning)
    forces, carried = ([found[name][j] for j in free] for name in ("f", "m"))
    slopes = jacobian(B.finished(f=forces, m=carried), "q", "v").select("f", "m", "f_q", "f_v", "m_q", "m_v")
    pivots = [k for k in found_pivots if B.finished(pivot=[k]).depends("pivot", "t", "q")]
    if "inputs" in sizes and B.finished(barrier=[barrier]).depends("barrier", "inputs"):
        pivots = []  # U is known at nodes alone, not between them
    order = (*cyclic, *free)
    lost = lost_digits([[M[j * n + k] for k in order] for j in order], len(cyclic))
    steepness = B.at(jacobian(B.finished(pivots=pivots), "q").select("pivots_q"), B.blocks())
    program = B.finished(
        f=forces, m=carried, turning=turning, pivots=pivots, steepness=steepness["pivots_q"], barrier=[barrier],
        lost=[lost],
    )  # fmt: skip
    return Term(program, slopes, still=tuple(free.index(j) for j in term.still))


def barrier(step: Step) -> Program | None:
    """(t, q, p, params) ↦ U of the cyclic coordinates of a step; None where its chart has no poles."""
    own = reduced(step)
    if own.of is None or not dict(own.terms[0].program.outputs)["pivots"]:
        return None
    program = own.terms[0].program.select("barrier")
    B = Builder([("t", 1), ("q", step.n), ("p", step.n), ("params", step.params)])
    x = B.blocks()
    given = {name: [0.0] * size for name, size in program.inputs} | {
        "t": x["t"],
        "q": [x["q"][j] for j in own.of.free],
        "params": [*x["params"], *(x["p"][j] for j in own.of.cyclic)],
    }
    return B.finished(**B.at(program, given))


def _solved(matrix: list[list[Value]], right: list[Value]) -> tuple[list[Value], list[Value]]:
    """The solution of M x = r by elimination without exchanges, and the pivots.

    By divisions: a rounded inverse of a constant mass would make the same error in every step.
    """
    n, rows = len(right), [[*row, r] for row, r in zip(matrix, right, strict=True)]
    for k in range(n):
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    found: list[Value] = []
    for k in reversed(range(n)):
        found.insert(0, (rows[k][n] - dot(rows[k][k + 1 : n], found)) / rows[k][k])
    return found, [rows[k][k] for k in range(n)]
