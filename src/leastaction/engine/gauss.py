"""Steps that are collocation by a rule of Gauss: places Z and velocities V at the nodes are iterated.

    Z_i = Σ_j N_ij w_j V_j,      m(q + Z_i, V_i) = P_i = p + Σ_j N_ij w_j f(q + Z_j, V_j),      w_j = h b_j,
    q⁺ = q + Σ_j w_j V_j,        p⁺ = p + Σ_j w_j f_j                                            (`collocation`).

Soft: where the mass is constant and f does not depend on v, places alone are iterated, Z = γ M⁻¹p + M⁻¹ A w f(q + Z),
with tables rounded such that the step is symplectic (`kick_tables`). Each iteration contracts by O(h²).

Hard: the velocities miss their equations by g_i = M_i⁻¹ (P_i − m_i), every node with its own mass; with the other
derivatives those of the middle of the step the equations fall apart by the eigenvalues of the method's table
(`shifted`). From the second iteration on what the increment leaves of the equations is corrected, too, with
derivatives of every node, so that it contracts by the square of the first one's rate (`twice`).

The first iteration begins from the last polynomial, prolonged. Where that fails the motion itself (`march`) is the
prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine import shifted
from leastaction.engine.collocation import collocation
from leastaction.engine.form import Blocks, Form, Values
from leastaction.engine.increment_tables import tables as increment_tables
from leastaction.engine.kick_tables import kick_tables
from leastaction.engine.march import marched, tamed
from leastaction.engine.shifted import DENSE, moving, slopes_at
from leastaction.engine.verdict import PATIENCE, judged, refuse
from leastaction.program import Builder, Program, Value, dot
from leastaction.program.elimination import pivots_of, square
from leastaction.step.form import stencils
from leastaction.step.prediction import WHOLE, Prediction
from leastaction.step.rows import Row, Rows, Table, apply, numbers, size, total

SOFT = 8  # further iterations without derivatives that cost no more than one with derivatives and those that follow

FloatArray = NDArray[np.float64]


class Gauss(Form):
    """Collocation by Gauss' rule."""

    def tables(self) -> dict[str, Table]:
        method, found = self.step.method, increment_tables(self.step)
        self.nodes, self.soft = collocation(method), self.mass.separable
        names = ["times 0", "weights 0", "modes", "growth", "ends", "parts"]
        own = {name: found[name] for name in names} | {"places": self.nodes.places, "lift": self.nodes.lift}
        if self.s > WHOLE:
            table = method.table
            ahead, faster = (basis[:, 1:] @ table.growth for basis in (table.l, table.dl))
            own |= {"ahead": ahead, "faster": lambda h: faster * (1 / h)}
        else:
            own |= {name: found[name] for name in ("q 0", "v 0")}
        pair = self.nodes.paired(self.lanes) if self.side and self.n <= DENSE else {}
        return own | (pair or self.nodes.parted()) | (kick_tables(method) if self.soft else {})

    def padded(self) -> frozenset[str]:
        solutions = {f"{name}{part}" for name in ("out", "led") for part in ("", " re", " im")}
        return frozenset(solutions | {"times 0", "q 0", "v 0", "ahead", "faster", "places", "A", "gamma", "ahead A"})

    def own_blocks(self) -> Blocks:
        n, w = self.n, self.rows.length(self.s)
        ahead = Prediction(self.s, self.rows)
        return [("Z", n * w), ("V", n * w), ("stiff", int(self.soft)), ("E", shifted.size_of(self.step, self.rows)),
                ("memory", 0 if self.soft else n * ahead.memory),
                ("record", 0 if self.soft else ahead.record)]  # fmt: skip

    def begin(self) -> Program:
        B, rows, x = self.opened()
        found = self.begin_mass(B, x)
        width = rows.length(self.s)
        if self.soft:
            inverse = found.get("mass") or self.inverse_mass(B, x)
            v = [row[0] for row in self.mass.solve(inverse, [[p] for p in x["P"]])]
            Z = [[g * a for g in rows.columns("gamma")[0]] for a in v]
        else:
            v = self.velocity(B, rows, x)
            Z = [self._along(rows, [a] * width) for a in v]
            found["V"] = [a for a in v for _ in range(width)]
        found |= {"Z": [y for row in Z for y in row], "scale": rows.packed([abs(x["h"][0] * a) for a in v])}
        return self.begun(B, x, found)

    def pieces(self) -> dict[str, Program]:
        if self.soft:
            return {"first": self._softly(True), "again": self._softly(False), "land": self._land_soft()}
        return {"first": self._hard(True), "again": self._hard(False), "land": self._land_hard()}

    def hard_pieces(self) -> dict[str, Program]:
        return {"hard": self._hard(True, marching=True)} | ({"harder": self._hard(False)} if self.soft else {})

    # ---- at the nodes

    def _nodes(self, x: Values, rows: Rows, Z: Sequence[Row], V: Sequence[Row] | None) -> list[Values]:
        (times,) = rows.columns("times 0")
        return [
            {"t": [self.time(x, time)], "q": [a + (row[g] + b) for a, row, b in zip(x["Q"], Z, x["lost"], strict=True)],
             "v": [row[g] for row in V] if V else [0.0] * self.n, "params": x["params"], "inputs": self.driving(x, g)}
            for g, time in enumerate(times)
        ]  # fmt: skip

    def _given(self, B: Builder, nodes: Sequence[Values], *names: str) -> list[list[Row]]:
        program = self.step.terms[0].program.select(*names)
        found = [B.at(program, at) for at in nodes]
        return [[[at[name][j] for at in found] for j in range(self.n)] for name in names]

    def _weighed(self, rows: Rows, row: Row) -> Row:
        return [a * w for a, w in zip(row, rows.columns("weights 0")[0], strict=True)]

    def _along(self, rows: Rows, row: Row) -> Row:
        """Σ_j N_ij w_j x_j for every node i."""
        return rows.product("places", self._weighed(rows, row))

    # ---- forces alone

    def _kicks(self, B: Builder, rows: Rows, x: Values, Z: Sequence[Row]) -> list[Row]:
        (f,) = self._given(B, self._nodes(x, rows, Z, None), "f")
        return [self._weighed(rows, row) for row in f]

    def _placed(
        self, B: Builder, rows: Rows, x: Values, kicks: Sequence[Row], P: Sequence[Value], table: str = "A"
    ) -> list[Row]:
        """γ M⁻¹p + M⁻¹ A w f."""
        (gamma,), inverse = rows.columns("gamma"), self.inverse_mass(B, x)
        u = [row[0] for row in self.mass.solve(inverse, [[p] for p in P])]
        pushed = self.mass.solve(inverse, [rows.product(table, row) for row in kicks])
        return [[a + g * b for a, g in zip(row, gamma, strict=True)] for row, b in zip(pushed, u, strict=True)]

    def _softly(self, first: bool) -> Program:
        B, rows, x = self.opened()
        Z = self.by_coordinate(x["Z"])
        new = self._placed(B, rows, x, self._kicks(B, rows, x, Z), x["P"])
        moves = [[a - b for a, b in zip(*of, strict=True)] for of in zip(new, Z, strict=True)]
        after = judged(rows, x, moves, new, first=first, patience=SOFT, lands=True)
        after |= {"stiff": [0.0]} if first else {}
        return self.iterated(B, x, after | {"Z": [y for row in new for y in row]}, first)

    def _land_soft(self) -> Program:
        B, rows, x = self.opened()
        Z = self.by_coordinate(x["Z"])
        kicks = self._kicks(B, rows, x, Z)
        (beta,), (gamma,) = rows.columns("beta"), rows.columns("gamma")
        impulse = rows.sums(kicks)
        late = rows.sums([[a * b for a, b in zip(row, beta, strict=True)] for row in kicks])
        late = [a + x["h"][0] * b for a, b in zip(late, x["lost p"], strict=True)]
        u, v = (numbers(rows, y, self.n) for y in (x["p"], late))
        solved = self.mass.solve(self.inverse_mass(B, x), [[a, b] for a, b in zip(u, v, strict=True)])
        # h u as the sum of two products with many digits (`kick_tables`).
        whole, part = rows.number(beta, 0), rows.number(gamma, 0)
        # Where derivatives were needed M⁻¹ A w f magnifies the last bits of Z, by (h ω)²; V has had its own increments.
        own = rows.sums([self._weighed(rows, row) for row in self.by_coordinate(x["V"])])
        move = rows.packed([whole * a + (part * a + b) for a, b in solved])
        move = [x["stiff"][0].where(a, b) for a, b in zip(own, move, strict=True)]
        out = self.landed(B, rows, x, move, impulse, rows.packed([size(row) for row in Z]))
        P = numbers(rows, out["p"], self.n)
        ahead = self._placed(B, rows, x, kicks, P, "ahead A")
        out = self.scaled(rows, x, out, ahead)
        return self.closed(B, x, out | {"Z": [y for row in ahead for y in row]})

    def solution(self, B: Builder, rows: Rows, x: Values) -> tuple[list[Row], Row]:
        Z = self.by_coordinate(x["Z"])
        if not self.soft:
            return self._hard_solution(B, rows, x, Z, self.by_coordinate(x["V"]))
        kicks, inverse = self._kicks(B, rows, x, Z), self.inverse_mass(B, x)
        P = [[p + a for a in rows.product("places", row)] for p, row in zip(x["P"], kicks, strict=True)]
        V = self.mass.solve(inverse, P)
        return [rows.product("lift", self._weighed(rows, row)) for row in V], rows.sums(kicks)

    def _hard_solution(
        self, B: Builder, rows: Rows, x: Values, Z: Sequence[Row], V: Sequence[Row]
    ) -> tuple[list[Row], Row]:
        (f,) = self._given(B, self._nodes(x, rows, Z, V), "f")
        impulse = rows.packed([total(numbers(rows, self._weighed(rows, row), self.s)) for row in f])
        return [rows.product("lift", self._weighed(rows, row)) for row in V], impulse

    # ---- with derivatives

    def _hard(self, first: bool, marching: bool = False) -> Program:
        B, rows, x = self.opened()
        n, twice = self.n, not first and not self.soft
        if marching:
            V = tamed(self, rows, x, self._marched(B, rows, x), x["h"][0])
            Z = [self._along(rows, row) for row in V]
        else:
            Z, V = self.by_coordinate(x["Z"]), self.by_coordinate(x["V"])
        E = shifted.eliminated(self.step, rows, B, self._middle(rows, x, V)) if first else x["E"]
        nodes = self._nodes(x, rows, Z, V)
        f, m = self._given(B, nodes, "f", "m")
        # p − m first: near the root it has next to no rounding (`step.form`).
        gaps = [
            [a + (p - b) for a, b in zip(self._along(rows, g), y, strict=True)]
            for g, y, p in zip(f, m, x["P"], strict=True)
        ]
        masses = [self.mass.inverted(B, at) for at in nodes] if n <= DENSE else []

        def by_masses(given: Sequence[Row]) -> list[Row]:
            if not masses:
                return list(given)
            solve = self.mass.multiply if self.side else self.mass.solve
            solved = [solve(M, [[row[g]] for row in given]) for g, M in enumerate(masses)]
            return [[at[j][0] for at in solved] for j in range(n)]

        gaps = by_masses(gaps)
        names = ("out", "led") if self.side and twice else ("out",)
        moves, *ways = shifted.solved(self.step, rows, E, gaps, *names)
        if twice:
            led = ways[0] if ways else [self._along(rows, row) for row in moves]
            left = self._left(B, rows, nodes, gaps, moves, led, by_masses)
            (second,) = shifted.solved(self.step, rows, E, left, "out")
            moves = [[a + b for a, b in zip(*of, strict=True)] for of in zip(moves, second, strict=True)]
        V = [[a + b for a, b in zip(*of, strict=True)] for of in zip(V, moves, strict=True)]
        new = [self._along(rows, row) for row in V]
        moved = [[a - b for a, b in zip(*of, strict=True)] for of in zip(new, Z, strict=True)]
        after = judged(rows, x, moved, new, first=first, patience=PATIENCE, corrected=twice)
        after |= {"Z": [y for row in new for y in row], "V": [y for row in V for y in row]}
        after |= {"E": E} if first else {}
        after |= {"stiff": [1.0]} if self.soft else {}
        if (real := self._real_shift) is not None:
            width = len(E) // (2 * len(moving(self.step)) ** 2)
            entries = [rows.number(E[k : k + width], real) for k in range(0, len(E), 2 * width)]
            pivots = pivots_of(square(entries))
            refuse(after, prod(pivots[1:], start=pivots[0]) < 0.0)
        return self.iterated(B, x, after, first, marching)

    @property
    def _real_shift(self) -> int | None:
        """Which λ is real, where X⁻¹M is known: det X has the sign of det M for h → 0, and another one beyond a fold or
        a pole. Of pairs of λ the determinants are squares.
        """
        real = np.flatnonzero(self.nodes.shift[1] == 0.0)
        return int(real[0]) if self.step.checked and self.n <= DENSE and len(real) == 1 else None

    def _middle(self, rows: Rows, x: Values, V: Sequence[Row]) -> Values:
        """What the node reads in the middle of the step."""
        every = [[rows.number(row, i) for i in range(self.s)] for row in V]
        place, speed = ([dot(table, row) for row in every] for table in self.nodes.middle.tolist())
        h, count = x["h"][0], len(self.step.method.table.c)
        middle = self._inputs_by_node(rows, x)[count // 2 * self.step.channels :][: self.step.channels]
        return {"t": [self.time(x, h * 0.5)], "q": [a + h * b for a, b in zip(x["Q"], place, strict=True)], "v": speed,
                "params": x["params"], "inputs": middle}  # fmt: skip

    def _left(
        self, B: Builder, rows: Rows, nodes: Sequence[Values], gaps: Sequence[Row], moves: Sequence[Row],
        led: Sequence[Row], by_masses: Any,
    ) -> list[Row]:  # fmt: skip
        """What increments of V and Z leave of the equations, by the derivatives at every node."""
        n = self.n
        momenta: list[Row] = [[] for _ in range(n)]
        forces: list[Row] = [[] for _ in range(n)]
        for g, at in enumerate(nodes):
            f_q, f_v, m_q, m_v = slopes_at(self.step, B, at)
            dZ, dV = [row[g] for row in led], [row[g] for row in moves]
            for j in range(n):
                o = slice(j * n, j * n + n)
                own = dot(m_q[o], dZ)
                momenta[j].append(own if self.n <= DENSE else own + dot(m_v[o], dV))
                forces[j].append(dot(f_q[o], dZ) + dot(f_v[o], dV))
        changes = by_masses(
            [
                [a - b for a, b in zip(m, self._along(rows, f), strict=True)]
                for m, f in zip(momenta, forces, strict=True)
            ]
        )
        own_mass = self.n <= DENSE
        return [
            [a - (b + c if own_mass else c) for a, b, c in zip(*of, strict=True)]
            for of in zip(gaps, moves, changes, strict=True)
        ]

    def _marched(self, B: Builder, rows: Rows, x: Values) -> list[Row]:
        """V at the nodes, by RK4 from node to node: the prediction that no last step leads astray."""
        inputs = self._inputs_by_node(rows, x)[: self.step.channels]
        found = marched(self, B, x, inputs, self.step.method.table.c.tolist())
        return [rows.packed([v[j] for _, v in found]) for j in range(self.n)]

    def _land_hard(self) -> Program:
        B, rows, x = self.opened()
        z, impulse = self._hard_solution(B, rows, x, self.by_coordinate(x["Z"]), self.by_coordinate(x["V"]))
        move = rows.packed([rows.number(row, self.s - 1) for row in z])
        out = self.landed(B, rows, x, move, impulse, rows.packed([size(row) for row in z]))
        ahead, memory, choice = self.foreseen(rows, x, out, z)
        if self.s > WHOLE:
            Z, V = ([apply(rows, ahead.cut(name, choice), row) for row in memory] for name in ("ahead", "faster"))
        else:
            z = [ahead.propose(row, choice) for row in memory]
            Z, V = ([apply(rows, rows.columns(name), row) for row in z] for name in ("q 0", "v 0"))
        out = self.scaled(rows, x, out, Z)
        out |= {"Z": [y for row in Z for y in row], "V": [y for row in V for y in row]}
        return self.closed(B, x, out)

    # ---- from Python

    def put(self, x: Mapping[str, FloatArray], lane: int, z: FloatArray, impulse: FloatArray, h: float) -> None:
        table = stencils(self.step.samples(self.step.terms[0]), h)
        for name, gather in (("Z", table.gather["q"]), ("V", table.gather["v"])):
            self.write(x[name], lane, (gather @ z).T)
        x["stiff"][:, slice(None) if self.side else lane] = 1.0
