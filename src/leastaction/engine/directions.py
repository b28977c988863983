"""Derivatives carried along: what a small change of the beginning, of a parameter or of h becomes, step by step.

With R(z; q, p, w, h) = 0 the equations of a step, q⁺ = q + z^s and p⁺ = p + I(z; q, w, h) (`step.form`), a direction
(dq, dp, dw, dh) is carried to

    dz = −(∂R/∂z)⁻¹ (R_q dq + R_p dp + R_w dw + R_h dh),    dq⁺ = dq + dz^s,    dp⁺ = dp + dI .

R and I are sums over points of what the Programs give there, so their derivatives by the unknowns, by q, by w and by h
are sums of the Programs' derivatives, each with what it reads changes by. h changes the nodes' times, t₀ + (k + c_i) h,
the velocities, by −v_i/h, and the weights h w_i; in l_ν′/h · h w_i the last two changes cancel.

Where there are constraints dp⁺ is what the step's own equations give, dp⁻, carried through the End: with
(e_v, −Gᵀ; G, 0) (dv, dμ) = (dp⁻, 0) − (e, c)_q dq⁺ − (e, c)_t dt⁺ − (e, c)_w dw it is m_q dq⁺ + m_v dv + m_t dt⁺ +
m_w dw.

Directions lie side by side in the lanes of vectors, in as many groups as it takes. Unit vectors, one of each lane, tell
which direction varies which parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.engine.newton_equations import GIVEN, READ
from leastaction.engine.sparsity import elimination_length, order_of, slopes_of
from leastaction.program import Builder, Program, Value
from leastaction.program.elimination import by_rows, factors, short_dot, substitute
from leastaction.step.form import Step, stencils
from leastaction.step.rows import Row, Rows, Table, combine
from leastaction.step.sensitivity import sensitivity

if TYPE_CHECKING:
    from leastaction.engine.form import Form, Values


def vary_length(step: Step, varied: int, lanes: int) -> float:
    """About how many instructions `vary` has."""
    n, N = step.n, step.s * (step.n + step.multipliers)
    points = [len(step.samples(term).tau) for term in step.terms]
    nodes = sum(-(-r // lanes) * len(term.slopes.code) for r, term in zip(points, step.terms, strict=True))
    full = 1.0 if step.multipliers else float(slopes_of(step).mean())
    sums = full * (N + n) * (N + varied - n) * sum(2 + 2 * -(-r // lanes) for r in points)
    eliminated = N**3 / 3 if step.multipliers else elimination_length(step)
    whole = nodes + sums + 2 * eliminated + -(-varied // lanes) * 6 * N * (N + n) * full**0.5
    return whole / 2 if step.multipliers else whole  # half of the saddle's entries are zero


def vary_tables(step: Step, lanes: int) -> dict[str, Table]:
    """The stencils of h = 1, a column for each unknown, and unit vectors."""
    found: dict[str, Table] = {"units": np.eye(lanes)}
    for e, term in enumerate(step.terms):
        table = stencils(step.samples(term), 1.0)
        found |= {f"varied t {e}": table.times[:, None], f"varied w {e}": table.weights[:, None]}
        found |= {f"varied {name} {e}": table.gather[name] for name in READ}
        found |= {f"varied {name} {e}": table.scatter[name] for name in ("f", "g")}
        found[f"varied m {e}"] = table.scatter["m"]
    return found


def vary_padded(step: Step) -> frozenset[str]:
    """What lanes without a point read: the last point, with no weight."""
    return frozenset(f"varied {name} {e}" for name in ("t", *READ) for e in range(len(step.terms)))


def vary(form: Form) -> Program:
    """The state of a step that is solved ↦ directions after it, and `earlier`, those before."""
    B, rows, x = form.opened()
    step, n, s, m = form.step, form.n, form.s, form.step.multipliers
    N, P = s * (n + m), step.params if form.varied > 2 * n else -1
    further = P + 1  # columns by the parameters and by h
    slopes, push = _slopes(form, B, rows, x, further)
    equations, unknowns = order_of(step)
    inverse = factors([[slopes[i][j] for j in unknowns] for i in equations])
    end = _End(form, B, rows, x, push, further) if step.end is not None else None
    where = [unknowns.index(i) for i in range(N)]

    def solve(right: Sequence[Any]) -> list[Any]:
        solved = substitute(inverse, [right[i] for i in equations])
        return [solved[i] for i in where]

    units = [column[0] for column in rows.columns("units")]
    found: list[Any] = []
    for g in range(-(-form.varied // form.lanes)):
        d = x["directions"][g * 2 * n : (g + 1) * 2 * n]
        dq, dp = d[:n], d[n:]
        own = [(g * form.lanes + lane - 2 * n, unit) for lane, unit in enumerate(units)]
        seeds = [(e, unit) for e, unit in own if 0 <= e < further]

        def along(row: Sequence[Any], dz: Sequence[Any], dq: Any = dq, seeds: Any = seeds) -> Any:
            given = row[N : N + n] if not len(dz) else [*row[: N + n]]
            total = short_dot(given, [*dz, *dq])
            for e, unit in seeds:
                total = total + row[N + n + e] * unit
            return total

        right = [-along(row, []) for row in slopes[:N]]
        for j in range(n):
            right[(s - 1) * n + j] = right[(s - 1) * n + j] + dp[j]
        dz = solve(right)
        # Once more for what is left: elimination without pivoting loses up to half of the digits.
        left = [a - short_dot(row[:N], dz) for a, row in zip(right, slopes[:N], strict=True)]
        dz = [a + b for a, b in zip(dz, solve(left), strict=True)]
        dq = [a + b for a, b in zip(dq, dz[(s - 1) * n : s * n], strict=True)]
        dp = [a + along(row, dz) for a, row in zip(dp, slopes[N:], strict=True)]
        found += [*dq, *(dp if end is None else end.along(dq, dp, seeds))]
    return B.finished(directions=found, earlier=x["directions"])


def _slopes(form: Form, B: Builder, rows: Rows, x: Values, further: int) -> tuple[list[list[Value]], list[Any]]:
    """The derivatives of (R, I), row by row, by the unknowns, by q, and by parameters and h; and I itself."""
    step, n, s, m = form.step, form.n, form.s, form.step.multipliers
    N, sizes = s * (n + m), {"q": n, "v": n, "multipliers": m, "f": n, "m": n, "g": m}
    h, z = x["h"][0], form.unknowns(B, rows, x)
    faster, period = 1.0 / h, x["period"][0]
    sums: dict[tuple[int, int], Row] = {}
    push = [B.number(0.0)] * n

    def add(row: int, column: int, values: Row) -> None:
        there = [a if isinstance(a, Value) else B.number(a) for a in values]
        if any(a.known != 0 for a in there):
            have = sums.get((row, column), [])
            both = [a + b for a, b in zip(have, there, strict=False)]
            sums[row, column] = [*both, *have[len(both) :], *there[len(both) :]]

    for e, term in enumerate(step.terms):
        tables = {name: rows.columns(f"varied {name} {e}") for name in (*READ, "f", "g", "m", "t", "w")}
        (times,), (weights,) = tables["t"], tables["w"]
        motion: dict[str, list[Row]] = {}
        for block in READ:
            begin, size = s * n if block == "multipliers" else 0, sizes[block]
            motion[block] = [combine(tables[block], [z[begin + v * size + k] for v in range(s)]) for k in range(size)]
        motion["v"] = [[faster * a for a in row] for row in motion["v"]]
        found = []
        for g, time in enumerate(times):
            read = {block: [row[g] for row in own] for block, own in motion.items()}
            read |= {"t": [form.time(x, h * time)], "q": [a + b for a, b in zip(x["Q"], read["q"], strict=True)],
                     "params": x["params"], "inputs": form.driving(x, g) if term.at == "nodes" else []}  # fmt: skip
            found.append(B.at(term.slopes, read) | (B.at(sensitivity(term), read) if further else {}))
        # When a point is, in periods, which time changes by with h.
        when = [x["t"][0] + x["offset"][0] + (h * time) / period for time in times] if further else []
        for out in GIVEN:
            if out not in found[0]:
                continue
            weight = {"f": [h * w for w in weights], "m": weights, "g": [1.0] * len(weights)}[out]
            scatter = tables[out]

            def taken(name: str, k: int, weight: Row = weight, found: list[Any] = found) -> Row:
                return [w * at[name][k] for w, at in zip(weight, found, strict=True)]

            for j in range(sizes[out]):
                columns: dict[int, Row] = {}

                def change(column: int, values: Row, columns: dict[int, Row] = columns) -> None:
                    have = columns.get(column)
                    columns[column] = values if have is None else [a + b for a, b in zip(have, values, strict=True)]

                for block in READ:
                    if f"{out}_{block}" not in found[0]:
                        continue
                    size, begin = sizes[block], s * n if block == "multipliers" else 0
                    for k in range(size):
                        slope = taken(f"{out}_{block}", j * size + k)
                        if all(isinstance(a, Value) and a.known == 0 for a in slope):
                            continue
                        if block == "q":
                            change(N + k, slope)
                        if block == "v" and further:
                            change(
                                N + n + further - 1,
                                [-(a * b) / period for a, b in zip(slope, motion["v"][k], strict=True)],
                            )
                        own = [faster * a for a in slope] if block == "v" else slope
                        for v, coefficients in enumerate(tables[block]):
                            change(begin + v * size + k, [c * a for c, a in zip(coefficients, own, strict=True)])
                for k in range(further - 1):
                    change(N + n + k, taken(f"{out}_params", j * (further - 1) + k))
                if further:
                    later = taken(f"{out}_t", j)
                    change(N + n + further - 1, [a * b for a, b in zip(later, when, strict=True)])
                    if out == "f":
                        change(N + n + further - 1, [a / period for a in taken("f", j)])
                for column, values in columns.items():
                    for v in range(s):
                        which = s * n + v * m + j if out == "g" else v * n + j
                        add(which, column, [c * a for c, a in zip(scatter[v], values, strict=True)])
                    if out == "f":
                        add(N + j, column, values)
                if out == "f":
                    push[j] = push[j] + rows.number(rows.sums([taken("f", j)]), 0)
    totals = rows.sums([*sums.values()])
    known = {place: rows.number(totals, k) for k, place in enumerate(sums)}
    zero = B.number(0.0)
    slopes = [[known.get((i, j), zero) for j in range(N + n + further)] for i in range(N + n)]
    return slopes, push


class _End:
    """The derivatives of the End of a step, of an L that is quadratic in v."""

    def __init__(self, form: Form, B: Builder, rows: Rows, x: Values, push: Sequence[Any], further: int) -> None:
        step, n, m = form.step, form.n, form.step.multipliers
        assert step.end is not None
        z = form.unknowns(B, rows, x)
        self.n, self.further = n, further
        at: Values = {"t": [form.time(x, x["h"][0])], "multipliers": [0.0] * m, "params": x["params"],
              "q": [a + z[(form.s - 1) * n + j] for j, a in enumerate(x["Q"])]}  # fmt: skip
        p = [a + b for a, b in zip(x["P"], push, strict=True)]
        zero = B.number(0.0)
        still = B.at(step.end.program, at | {"v": [zero] * n})
        M, G = by_rows(still["e_v"], n), by_rows(still["c_v"], n)
        saddle = [[*M[j], *(-row[j] for row in G)] for j in range(n)] + [[*row, *[zero] * m] for row in G]
        self.inverse = factors(saddle)
        right = [a - b for a, b in zip(p, still["e"], strict=True)] + [-c for c in still["c"]]
        solved = substitute(self.inverse, right)
        self.at = B.at(step.end.slopes, at | {"v": solved[:n], "multipliers": solved[n:]})
        self.when = x["t"][0] + x["offset"][0] + x["h"][0] / x["period"][0]

    def along(self, dq: Sequence[Any], dp: Sequence[Any], seeds: Sequence[tuple[int, Any]]) -> list[Any]:
        """dp⁺ from dq⁺ and dp⁻."""
        n, at, P = self.n, self.at, self.further - 1

        def given(name: str, j: int) -> Any:
            total = short_dot(at[f"{name}_q"][j * n : (j + 1) * n], dq)
            for e, unit in seeds:
                slope = at[f"{name}_w"][j * P + e] if e < P else self.when * at[f"{name}_t"][j]
                total = total + slope * unit
            return total

        right = [a - given("e", j) for j, a in enumerate(dp)] + [-given("c", i) for i in range(len(at["c"]))]
        dv = substitute(self.inverse, right)[:n]
        return [given("m", j) + short_dot(at["e_v"][j * n : (j + 1) * n], dv) for j in range(n)]
