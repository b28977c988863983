"""The equations of a step in rows, one for each coordinate, from gradients alone: R and the impulse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leastaction.engine.increment_tables import middle_of
from leastaction.program import Builder, Value
from leastaction.step.form import Step
from leastaction.step.rows import Row, Rows, apply, combine, total


def equations(step: Step, rows: Rows, B: Builder, x: dict[str, list[Value]], z: Sequence[Row]) -> tuple[list[Row], Row]:
    """R_ν = Σ_i h b_i (l_ν′(c_i)/h m_i + l_ν(c_i) f_i) − δ_νs p, and the impulse Σ_i h b_i f_i."""
    n, width = step.n, rows.length(step.s)
    R: list[Row] = [[0.0] * width for _ in range(n)]
    impulse: Row = [0.0] * n
    for e, term in enumerate(step.terms):
        (times,), (weights,) = rows.columns(f"times {e}"), rows.columns(f"weights {e}")
        gather = {block: rows.columns(f"{block} {e}") for block in ("q", "v")}
        q = [[a + y for y in apply(rows, gather["q"], row)] for a, row in zip(x["q"], z, strict=True)]
        v = [apply(rows, gather["v"], row) for row in z]
        given: list[dict[str, list[Value]]] = []
        for g, time in enumerate(times):
            read = {"t": [x["t"][0] + time], "q": [y[g] for y in q], "v": [y[g] for y in v], "params": x["params"]}
            read["inputs"] = _inputs(step, rows, x, g)
            given.append(B.at(term.ordered, read))
        for block in ("f", "m"):
            if block not in given[0]:
                continue
            scatter = rows.columns(f"{block} {e}")
            for j in range(n):
                row = [at[block][j] * w for at, w in zip(given, weights, strict=True)]
                numbers = [rows.number(row, i) for i in range(len(scatter))]
                if block == "f":
                    impulse[j] = impulse[j] + total(numbers)
                R[j] = [a + b for a, b in zip(R[j], combine(scatter, numbers), strict=True)]
    (end,) = rows.columns("end")
    return [_minus(row, end, p) for row, p in zip(R, x["p"], strict=True)], impulse


def _inputs(step: Step, rows: Rows, x: dict[str, list[Value]], g: int) -> list[Value]:
    """The inputs at the g-th point, or at the points in the g-th vector: they lie node by node, or row by row."""
    count, values = step.channels, x["inputs"]
    if not count:
        return []
    return values[g :: len(values) // count] if rows.side_by_side else values[g * count : (g + 1) * count]


def _minus(row: Row, end: Row, p: Value) -> Row:
    """A row without p in its last place."""
    return [a - c * p if isinstance(c, Value) or c != 0 else a for a, c in zip(row, end, strict=True)]


def in_the_middle(step: Step, rows: Any, t: Value, h: Value, q: Sequence[Value], z: Sequence[Row]) -> dict[str, Row]:
    """t, q and v in the middle of the step that z predicts."""
    at, slope = middle_of(step.method).tolist()
    numbers = [[rows.number(row, v) for v in range(step.s)] for row in z]
    return {
        "t": [t + h * 0.5],
        "q": [a + sum(c * x for c, x in zip(at, row, strict=True)) for a, row in zip(q, numbers, strict=True)],
        "v": [sum(c * x for c, x in zip(slope, row, strict=True)) / h for row in numbers],
    }
