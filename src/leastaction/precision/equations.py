"""The discrete equations of one step as products of matrices.

The residual of `leastaction.discrete`,

    R_ν = δ_ν0 p_k + Σ_i b_i ( h l_ν(c_i) L_q(q_i, v_i) + l_ν′(c_i) L_v(q_i, v_i) ),      ν = 0 … s−1,

is linear in the values of L_q, L_v at the nodes, and its derivative by z is linear in those of L_qq, L_qv, L_vq, L_vv:
with the coefficients in matrices, made once for each h, flint does all sums of a step at its own speed. One more row
gives the impulse h Σ_i b_i L_q, another block of rows its derivative.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol

import flint

from leastaction.precision.arithmetic import balls
from leastaction.precision.mechanics import identity


class PointFunctions(Protocol):
    """A system as the equations see it, at the point (t, q…, v…)."""

    n: int

    @property
    def force(self) -> Callable[..., list[Any]]:
        """L_q, L_v."""
        ...

    @property
    def point(self) -> Callable[..., list[Any]]:
        """L_q, L_v, L_qq, L_qv, L_vq, L_vv."""
        ...


class Coefficients:
    """A method's table (entries of `Galerkin.exact_table`) as the coefficients of its equations, for h = 1.

    nodes      (q; z¹ … z^s) ↦ q_i, then v_i
    residual   (L_q, L_v at node 1; at node 2; …) ↦ R − (p; 0 …), and the impulse
    jacobian   (L_qq, L_qv, L_vq, L_vv at node 1; …) ↦ blocks (ν, μ) of ∂R/∂z, and blocks (μ) of ∂(impulse)/∂z
    """

    def __init__(self, table: dict[str, Any]) -> None:
        self.s, self.r = s, r = len(table["d"]) - 1, len(table["c"])
        self.c, b = balls(table["c"]), balls(table["b"])
        l, dl = [balls(row) for row in table["l"]], [balls(row) for row in table["dl"]]
        zero, one = flint.arb(0), flint.arb(1)
        self.nodes = [x for row in l for x in (one, *row[1:])] + [x for row in dl for x in (zero, *row[1:])]
        bl, bdl = ([[(b[i] * x).mid() for x in rows[i]] for i in range(r)] for rows in (l, dl))
        self.residual = [x for v in range(s) for i in range(r) for x in (bl[i][v], bdl[i][v])]
        self.residual += [x for i in range(r) for x in (b[i], zero)]
        self.jacobian = [
            x
            for v in range(s)
            for m in range(1, s + 1)
            for i in range(r)
            for x in (bl[i][v] * l[i][m], bl[i][v] * dl[i][m], bdl[i][v] * l[i][m], bdl[i][v] * dl[i][m])
        ]
        self.jacobian += [
            x for m in range(1, s + 1) for i in range(r) for x in (b[i] * l[i][m], b[i] * dl[i][m], zero, zero)
        ]


class Equations:
    """A method's coefficients at step h, on one system."""

    def __init__(self, of: Coefficients, h: Any, mechanics: PointFunctions) -> None:
        n, s, r = mechanics.n, of.s, of.r
        self.n, self.s, self.N, self.h = n, s, n * s, h
        self._mechanics = mechanics
        self._times = [(c * h).mid() for c in of.c]
        half = r * (s + 1)
        self._nodes = flint.arb_mat(2 * r, s + 1, of.nodes[:half] + [x / h for x in of.nodes[half:]]).mid()
        self._residual = flint.arb_mat(s + 1, 2 * r, _scaled(of.residual, [h, None])).mid()
        self._jacobian = flint.arb_mat((s + 1) * s, 4 * r, _scaled(of.jacobian, [h, None, None, 1 / h])).mid()
        # Entry (ν n + j, μ n + k) of the matrix is entry (j, k) of the block (ν, μ); likewise for the impulse.
        self._order = [
            (v * s + m) * n * n + j * n + k for v in range(s + 1) for j in range(n) for m in range(s) for k in range(n)
        ]
        self._identity = identity(self.N)

    def residual(self, t: Any, q: list[Any], p: list[Any], z: list[Any]) -> list[Any]:
        """R and, behind it, the impulse."""
        values: list[Any] = []
        for point in self._points(t, q, z):
            values += self._mechanics.force(*point)
        return self._assemble(values, p)

    def linearised(self, t: Any, q: list[Any], p: list[Any], z: list[Any]) -> tuple[list[Any], Any, Any]:
        """R and the impulse; (∂R/∂z)⁻¹, None where singular; ∂(impulse)/∂z."""
        n, N = self.n, self.N
        first: list[Any] = []
        second: list[Any] = []
        for point in self._points(t, q, z):
            values = self._mechanics.point(*point)
            first += values[: 2 * n]
            second += values[2 * n :]
        blocks = (self._jacobian * flint.arb_mat(len(second) // (n * n), n * n, second)).mid().entries()
        entries = [blocks[k] for k in self._order]
        jacobian = flint.arb_mat(N, N, entries[: N * N])
        try:
            inverse = jacobian.solve(self._identity, algorithm="approx").mid()
        except ZeroDivisionError:
            inverse = None
        return self._assemble(first, p), inverse, flint.arb_mat(n, N, entries[N * N :])

    def loaded(self, t: Any, load: Callable[[Any], list[Any]]) -> list[Any]:
        """What a force f(t) adds to R and to the impulse."""
        zero = [flint.arb(0)] * self.n
        return self._assemble([x for at in self._times for x in (*load(t + at), *zero)], zero)

    def _points(self, t: Any, q: list[Any], z: list[Any]) -> list[list[Any]]:
        """(t, q, v) at every node."""
        n, r = self.n, len(self._times)
        entries = (self._nodes * flint.arb_mat(self.s + 1, n, q + z)).mid().entries()
        half = r * n
        return [
            [t + self._times[i], *entries[i * n : i * n + n], *entries[half + i * n : half + i * n + n]]
            for i in range(r)
        ]

    def _assemble(self, values: list[Any], p: list[Any]) -> list[Any]:
        out = (self._residual * flint.arb_mat(len(values) // self.n, self.n, values)).mid().entries()
        for j in range(self.n):
            out[j] = (out[j] + p[j]).mid()
        return out


def _scaled(values: list[Any], pattern: list[Any]) -> list[Any]:
    """The values, multiplied in turn by the factors of the pattern that are not None."""
    factors = itertools.cycle(pattern)
    return [x if factor is None else x * factor for x, factor in zip(values, factors, strict=False)]
