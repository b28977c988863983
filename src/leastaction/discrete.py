"""The discrete equations of one step, as a Program.

With increments z^ν = q^ν − q_k (ν = 1 … s) as unknowns, the motion at node i and its velocity are

    q_i = q_k + Σ_ν l_ν(c_i) z^ν,      v_i = (1/h) Σ_ν l_ν′(c_i) z^ν,

and the equations p_k + ∂L_d/∂q^0 = 0, ∂L_d/∂q^ν = 0 (0 < ν < s) read, for ν = 0 … s−1,

    R_ν = δ_ν0 p_k + Σ_i b_i ( h l_ν(c_i) L_q(q_i, v_i) + l_ν′(c_i) L_v(q_i, v_i) ) = 0.

Adding ∂L_d/∂q^s = p_{k+1} to their sum leaves the impulse: p_{k+1} = p_k + h Σ_i b_i L_q(q_i, v_i). The sum of
all R_ν may stand for R_0, with 1 − l_s and −l_s′ for l_0 and l_0′ (`Table.equations`).

In float64 the numbers D_iν = l_ν′(c_i)/h are rounded once and then used for both, v_i = Σ_ν D_iν z^ν and
R_ν = δ_ν0 p_k + h Σ_i b_i (l_ν(c_i) L_q + D_iν L_v): however they are rounded, that is the gradient of
h Σ_i b_i L(q_i, v_i), and the step is symplectic. Measured, not proven: with each velocity divided by h, or p_k the
first of the sum's terms, the energy has a bias of 4 to 12·10⁻⁶ ε a step where 1/h is nearly a small odd number times a
power of two (h = 0.01, 0.0125; none at 0.01 (1 ± ε)), for there the roundings that involve h leave few fractions.

For a small system the whole Newton step is fused into one Program: nodes, residual, Jacobian and the
solution of the linear system. It gives the increment dz = −(∂R/∂z)⁻¹ R, and the impulse after that
increment to first order in dz, so that a step that has converged needs no further evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leastaction.methods import Table
from leastaction.program import Builder, Program

# Beyond these, whole-step code costs more to compile and to fetch than it saves: use the loops over nodes.
FUSED_UNKNOWNS = 8
FUSED_INSTRUCTIONS = 4000


def fusible(point: Program, table: Table, n: int) -> bool:
    """Whether a whole Newton step of this method on this system is small enough to be one Program."""
    r, unknowns = len(table.c), (len(table.d) - 1) * n
    return unknowns <= FUSED_UNKNOWNS and r * len(point.code) + unknowns**3 <= FUSED_INSTRUCTIONS


def newton_program(point: Program, table: Table, n: int) -> Program:
    """(t, h, q, p, z, params) ↦ (dz, impulse): one Newton step for the increments z.

    `point` gives Lq, Lv, Lqq, Lqv, Lvv at one (t, q, v, params).
    """
    E = _equations(point, table, n)
    B = E.B
    minus_h, inverse_h = B.op("neg", E.h), B.div(B.const(1.0), E.h)
    (dz,) = solve(B, E.jacobian, [[B.mul(minus_h, x) for x in E.residual]])
    correction = [B.mul(inverse_h, _dot(B, row, dz)) for row in E.impulse_slope]
    return B.build(dz=dz, impulse=[B.add(x, y) for x, y in zip(E.impulse, correction, strict=True)])


def tangent_program(point: Program, table: Table, n: int) -> Program:
    """(t, h, q, p, z, params) ↦ Φ' = ∂(q⁺, p⁺)/∂(q, p), row-major, where z solves the step.

    dz = −(∂R/∂z)⁻¹ (∂R/∂q dq + ∂R/∂p dp),   dq⁺ = dq + dz^s,   dp⁺ = dp + ∂I/∂q dq + ∂I/∂z dz,   I the impulse.
    """
    E = _equations(point, table, n)
    B, N = E.B, len(E.residual)
    zero, inverse_h = B.const(0.0), B.div(B.const(1.0), E.h)
    by_q = [[B.op("neg", row[k]) for row in E.slope_by_q] for k in range(n)]
    by_p = [[B.op("neg", E.h) if i == k else zero for i in range(N)] for k in range(n)]
    dz = solve(B, E.jacobian, by_q + by_p)
    state = []
    for i in range(2 * n):
        for k in range(2 * n):
            term = dz[k][N - n + i] if i < n else _dot(B, E.impulse_slope[i - n], dz[k])
            if i >= n:
                term = B.mul(inverse_h, B.add(term, E.impulse_by_q[i - n][k]) if k < n else term)
            state.append(B.add(B.const(1.0), term) if i == k else term)
    return B.build(state=state)


@dataclass(frozen=True)
class _Equations:
    """Values of a Builder: R and the impulse, and h times their derivatives by z and by q."""

    B: Builder
    h: int
    residual: list[int]
    impulse: list[int]
    jacobian: list[list[int]]
    impulse_slope: list[list[int]]
    slope_by_q: list[list[int]]
    impulse_by_q: list[list[int]]


def _dot(B: Builder, row: Sequence[int], x: Sequence[int]) -> int:
    return B.sum(B.mul(a, y) for a, y in zip(row, x, strict=True))


def _equations(point: Program, table: Table, n: int) -> _Equations:
    """The equations of a step and their derivatives as values of a Builder with inputs (t, h, q, p, z, params)."""
    s, r = len(table.d) - 1, len(table.c)
    count = point.inputs[-1][1]
    B = Builder([("t", 1), ("h", 1), ("q", n), ("p", n), ("z", s * n), ("params", count)])
    (t,), (h,), q, p, z, params = (B.input(name) for name, _ in B.inputs)
    h2, inverse_h = B.mul(h, h), B.div(B.const(1.0), h)

    def combine(coefficients: Sequence[float], terms: Sequence[int]) -> int:
        return B.sum(B.scale(c, x) for c, x in zip(coefficients, terms, strict=True))

    residual = [[B.const(0.0)] * n for _ in range(s)]  # less p_k, by h
    jacobian = [[B.const(0.0)] * (s * n) for _ in range(s * n)]  # h ∂R/∂z
    impulse = [B.const(0.0)] * n
    impulse_slope = [[B.const(0.0)] * (s * n) for _ in range(n)]  # h ∂(impulse)/∂z
    slope_by_q = [[B.const(0.0)] * n for _ in range(s * n)]
    impulse_by_q = [[B.const(0.0)] * n for _ in range(n)]
    for i in range(r):
        l, dl, b = table.l[i], table.dl[i], float(table.b[i])
        weight, slope = (array[i] for array in table.equations)  # of L_q and L_v in the equation ν
        along = [z[j::n] for j in range(n)]  # the increments of coordinate j
        at = B.inline(
            point,
            t=[B.add(t, B.scale(float(table.c[i]), h))],
            q=[B.add(q[j], combine(l[1:], along[j])) for j in range(n)],
            v=[B.sum(B.mul(B.scale(d, inverse_h), x) for d, x in zip(dl[1:], along[j], strict=True)) for j in range(n)],
            params=params,
        )
        Lq = [B.scale(b, x) for x in at["Lq"]]
        Lv = [B.scale(b, x) for x in at["Lv"]]
        Lqq = [B.mul(h2, B.scale(b, x)) for x in at["Lqq"]]
        Lqv = [B.mul(h, B.scale(b, x)) for x in at["Lqv"]]
        Lvv = [B.scale(b, x) for x in at["Lvv"]]
        impulse = [B.add(impulse[j], B.mul(h, Lq[j])) for j in range(n)]
        for j in range(n):
            for v in range(s):
                D = B.scale(slope[v], inverse_h)
                residual[v][j] = B.sum([residual[v][j], B.scale(weight[v], Lq[j]), B.mul(D, Lv[j])])
            for k in range(n):
                qq, vq = Lqq[j * n + k], Lqv[k * n + j]
                impulse_by_q[j][k] = B.add(impulse_by_q[j][k], qq)
                for v in range(s):
                    row = slope_by_q[v * n + j]
                    row[k] = B.sum([row[k], B.scale(weight[v], qq), B.scale(slope[v], vq)])
            for m in range(1, s + 1):
                for k in range(n):
                    # Derivatives of h b L_q and b L_v at this node by the k-th coordinate of z^m, times h.
                    column = (m - 1) * n + k
                    d_Lq = B.add(B.scale(l[m], Lqq[j * n + k]), B.scale(dl[m], Lqv[j * n + k]))
                    d_Lv = B.add(B.scale(l[m], Lqv[k * n + j]), B.scale(dl[m], Lvv[j * n + k]))
                    impulse_slope[j][column] = B.add(impulse_slope[j][column], d_Lq)
                    for v in range(s):
                        row = jacobian[v * n + j]
                        row[column] = B.sum([row[column], B.scale(weight[v], d_Lq), B.scale(slope[v], d_Lv)])
    scaled = [[B.mul(h, x) for x in block] for block in residual]
    flat = [B.add(p[j], x) for j, x in enumerate(scaled[0])] + [x for block in scaled[1:] for x in block]
    return _Equations(B, h, flat, impulse, jacobian, impulse_slope, slope_by_q, impulse_by_q)


def solve(B: Builder, matrix: Sequence[Sequence[int]], rights: Sequence[Sequence[int]]) -> list[list[int]]:
    """Gaussian elimination with partial pivoting, without branches: rows are exchanged by selection.

    One solution for each right-hand side.

    An entry that is zero by structure stays so, and costs nothing.
    """
    N = len(matrix)
    rows = [[*row, *(right[i] for right in rights)] for i, row in enumerate(matrix)]
    width = N + len(rights)
    for k in range(N):
        for i in range(k + 1, N):
            if B.constant(rows[i][k]) == 0:
                continue
            larger = B.op("lt", B.op("abs", rows[k][k]), B.op("abs", rows[i][k]))
            for j in range(k, width):
                upper, lower = rows[k][j], rows[i][j]
                rows[k][j] = B.select(larger, lower, upper)
                rows[i][j] = B.select(larger, upper, lower)
        inverse = B.div(B.const(1.0), rows[k][k])
        for j in range(k + 1, width):
            rows[k][j] = B.mul(inverse, rows[k][j])
        for i in range(k + 1, N):
            for j in range(k + 1, width):
                rows[i][j] = B.sub(rows[i][j], B.mul(rows[i][k], rows[k][j]))
    solutions = []
    for column in range(N, width):
        x: list[int] = [rows[k][column] for k in range(N)]
        for k in range(N - 1, -1, -1):
            for i in range(k):
                x[i] = B.sub(x[i], B.mul(rows[i][k], x[k]))
        solutions.append(x)
    return solutions
