"""The discrete equations of one step, as a Program.

With increments z^ν = q^ν − q_k (ν = 1 … s) as unknowns, the motion at node i and its velocity are

    q_i = q_k + Σ_ν l_ν(c_i) z^ν,      v_i = (1/h) Σ_ν l_ν′(c_i) z^ν,

and the equations p_k + ∂L_d/∂q^0 = 0, ∂L_d/∂q^ν = 0 (0 < ν < s) read, for ν = 0 … s−1,

    R_ν = δ_ν0 p_k + Σ_i b_i ( h l_ν(c_i) L_q(q_i, v_i) + l_ν′(c_i) L_v(q_i, v_i) ) = 0.

Adding ∂L_d/∂q^s = p_{k+1} to their sum leaves the impulse: p_{k+1} = p_k + h Σ_i b_i L_q(q_i, v_i). The sum of
all R_ν may stand for R_0, with 1 − l_s and −l_s′ for l_0 and l_0′ (`Table.equations`).

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


def fused_length(point: Program, table: Table, n: int) -> int:
    """About how many instructions a whole Newton step of this method on this system has."""
    return len(table.c) * len(point.code) + ((len(table.d) - 1) * n) ** 3


def fusible(point: Program, table: Table, n: int) -> bool:
    """Whether a whole Newton step of this method on this system is small enough to be one Program."""
    few = (len(table.d) - 1) * n <= FUSED_UNKNOWNS
    return few and fused_length(point, table, n) <= FUSED_INSTRUCTIONS


def newton_program(point: Program, table: Table, n: int) -> Program:
    """(t, h, q, p, z, params) ↦ (dz, impulse): one Newton step for the increments z.

    `point` gives Lq, Lv, Lqq, Lqv, Lvv at one (t, q, v, params).
    """
    E = equations(point, table, n)
    B = E.B
    (dz,) = solve(B, E.jacobian, [[B.op("neg", x) for x in E.residual]])
    correction = [dot(B, row, dz) for row in E.impulse_slope]
    return B.build(dz=dz, impulse=[B.add(x, y) for x, y in zip(E.impulse, correction, strict=True)])


def tangent_program(point: Program, table: Table, n: int) -> Program:
    """(t, h, q, p, z, params) ↦ Φ' = ∂(q⁺, p⁺)/∂(q, p), row-major, where z solves the step.

    dz = −(∂R/∂z)⁻¹ (∂R/∂q dq + ∂R/∂p dp),   dq⁺ = dq + dz^s,   dp⁺ = dp + ∂I/∂q dq + ∂I/∂z dz,   I the impulse.
    """
    E = equations(point, table, n)
    B, N = E.B, len(E.residual)
    by_q = [[B.op("neg", row[k]) for row in E.slope_by_q] for k in range(n)]
    by_p = [[B.const(-1.0 if i == k else 0.0) for i in range(N)] for k in range(n)]
    dz = solve(B, E.jacobian, by_q + by_p)
    state = []
    for i in range(2 * n):
        for k in range(2 * n):
            term = dz[k][N - n + i] if i < n else dot(B, E.impulse_slope[i - n], dz[k])
            if i >= n and k < n:
                term = B.add(term, E.impulse_by_q[i - n][k])
            state.append(B.add(B.const(1.0), term) if i == k else term)
    return B.build(state=state)


@dataclass(frozen=True)
class Equations:
    """Values of a Builder: R and the impulse, and their derivatives by z and by q."""

    B: Builder
    residual: list[int]
    impulse: list[int]
    jacobian: list[list[int]]
    impulse_slope: list[list[int]]
    slope_by_q: list[list[int]]
    impulse_by_q: list[list[int]]


def dot(B: Builder, row: Sequence[int], x: Sequence[int]) -> int:
    return B.sum(B.mul(a, y) for a, y in zip(row, x, strict=True))


def equations(point: Program, table: Table, n: int) -> Equations:
    """The equations of a step and their derivatives as values of a Builder with inputs (t, h, q, p, z, params).

    The numbers h b_i and l_ν′(c_i)/h are rounded once and stand for the exact ones wherever they occur, in
    velocities and equations alike. So the equations are those of a discrete Lagrangian, whose coefficients are a
    rounding away from the method's, and the step is symplectic. The roundings of single operations are then as likely
    up as down, with two exceptions that were found by measuring the energy of many pendulums over 10⁶ steps: quotients
    by h (a drift of 4·10⁻⁶ ε a step where 1/h is nearly a small odd number times 2^k, as for h = 0.01: presumably since
    ties then all fall to one side), and sums that begin with p (up to 3·10⁻⁶ ε a step). So p comes last.
    """
    s, r = len(table.d) - 1, len(table.c)
    count = point.inputs[-1][1]
    B = Builder([("t", 1), ("h", 1), ("q", n), ("p", n), ("z", s * n), ("params", count)])
    (t,), (h,), q, p, z, params = (B.input(name) for name, _ in B.inputs)
    inverse_h = B.div(B.const(1.0), h)

    residual = [[B.const(0.0)] * n for _ in range(s)]  # without p
    jacobian = [[B.const(0.0)] * (s * n) for _ in range(s * n)]
    impulse = [B.const(0.0)] * n
    impulse_slope = [[B.const(0.0)] * (s * n) for _ in range(n)]
    slope_by_q = [[B.const(0.0)] * n for _ in range(s * n)]
    impulse_by_q = [[B.const(0.0)] * n for _ in range(n)]
    for i in range(r):
        b = B.scale(float(table.b[i]), h)
        weights, slopes = (array[i] for array in table.equations)  # of L_q and h L_v in the equation ν
        l, weight = ([B.const(x) for x in values] for values in (table.l[i], weights))
        dl, slope = ([B.scale(x, inverse_h) for x in values] for values in (table.dl[i], slopes))
        along = [z[j::n] for j in range(n)]  # the increments of coordinate j
        at = B.inline(
            point,
            t=[B.add(t, B.scale(float(table.c[i]), h))],
            q=[B.add(q[j], dot(B, l[1:], along[j])) for j in range(n)],
            v=[dot(B, dl[1:], along[j]) for j in range(n)],
            params=params,
        )
        Lq, Lv, Lqq, Lqv, Lvv = ([B.mul(b, x) for x in at[name]] for name in ("Lq", "Lv", "Lqq", "Lqv", "Lvv"))
        impulse = [B.add(impulse[j], Lq[j]) for j in range(n)]
        for j in range(n):
            for v in range(s):
                residual[v][j] = B.sum([residual[v][j], B.mul(weight[v], Lq[j]), B.mul(slope[v], Lv[j])])
            for k in range(n):
                qq, vq = Lqq[j * n + k], Lqv[k * n + j]
                impulse_by_q[j][k] = B.add(impulse_by_q[j][k], qq)
                for v in range(s):
                    row = slope_by_q[v * n + j]
                    row[k] = B.sum([row[k], B.mul(weight[v], qq), B.mul(slope[v], vq)])
            for m in range(1, s + 1):
                for k in range(n):
                    # Derivatives of h b L_q and h b L_v at this node by the k-th coordinate of z^m.
                    column = (m - 1) * n + k
                    d_Lq = B.add(B.mul(l[m], Lqq[j * n + k]), B.mul(dl[m], Lqv[j * n + k]))
                    d_Lv = B.add(B.mul(l[m], Lqv[k * n + j]), B.mul(dl[m], Lvv[j * n + k]))
                    impulse_slope[j][column] = B.add(impulse_slope[j][column], d_Lq)
                    for v in range(s):
                        row = jacobian[v * n + j]
                        row[column] = B.sum([row[column], B.mul(weight[v], d_Lq), B.mul(slope[v], d_Lv)])
    residual[0] = [B.add(x, y) for x, y in zip(p, residual[0], strict=True)]
    flat = [x for block in residual for x in block]
    return Equations(B, flat, impulse, jacobian, impulse_slope, slope_by_q, impulse_by_q)


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
