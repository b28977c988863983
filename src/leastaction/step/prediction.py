"""Where the iteration of the next step begins: the last step's polynomial, prolonged and corrected.

With modes the Legendre coefficients of the last step's velocity, growth · modes is its polynomial over the next step.
Extrapolation magnifies a mode of degree j by about 5.8^j, so for s > WHOLE the polynomial is cut to the degree that would
have predicted the step just solved best. Up to WHOLE it is taken whole and misses step k by e_k = z_k − (prediction).
That varies slowly from step to step, so it is itself extrapolated by backward differences: e_{k+1} ≈ e_k + ∇e_k + ∇²e_k.
How many of them to add, none to three, is what has predicted best lately: by the largest error, older ones counting half as
much with every step. Steps so coarse that even the best was far off are predicted by the polynomial alone: there the
differences lead to other roots.

Errors are counted in lengths of the last two steps, coordinate by coordinate, so that units do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leastaction.methods import Table
from leastaction.program import Value

WHOLE = 3  # up to this degree the last polynomial is extrapolated whole
DIFFERENCES = 3  # of what the last predictions missed
NEAR = 1 / 16  # they are added where they have come so near, in lengths of the last two steps

Rows = list[list[Any]]  # [ν][j]: increments at the control points


def memory(s: int, n: int) -> list[tuple[str, int]]:
    """The blocks of numbers that a prediction keeps from step to step."""
    if s > WHOLE:
        return [("modes", s * n), ("degree", 1), ("started", 1)]
    return [("started", 1), ("prolonged", s * n), ("missed", DIFFERENCES * s * n), ("errors", DIFFERENCES + 1)]


def predict(table: Table, z: Rows, length: Sequence[Value], x: Mapping[str, Sequence[Value]]) -> dict[str, Any]:
    """From the step just solved: z of the next one, (s, n), and the new contents of the memory x."""
    s, n = len(z), len(z[0])
    modes = _apply(table.modes, z)
    (started,) = x["started"]
    if s <= WHOLE:
        return _corrected(z, _apply(table.growth, modes), [1 / size for size in length], x)
    before = [x["modes"][i * n : i * n + n] for i in range(s)]
    degree = started.where(_best_degree(table, z, before, [1 / size for size in length]), x["degree"][0])
    cut = [[Value(y.B, y.B.op("if", (degree > float(i)).k, y.k)) for y in row] for i, row in enumerate(modes)]
    return {"z": _apply(table.growth, cut), "modes": _flat(modes), "degree": [degree], "started": [1.0]}


def _apply(matrix: Any, rows: Rows) -> Rows:
    return [[_sum(float(a) * row[j] for a, row in zip(line, rows, strict=True)) for j in range(len(rows[0]))] for line in matrix]


def _sum(terms: Any) -> Any:
    total: Any = 0.0
    for term in terms:
        total = total + term
    return total


def _flat(rows: Rows) -> list[Any]:
    return [x for row in rows for x in row]


def _largest(rows: Rows, unit: Sequence[Value]) -> Value:
    """max |x| over all control points and coordinates, each coordinate in its unit."""
    found: Any = None
    for j, one in enumerate(unit):
        size: Any = None
        for row in rows:
            size = abs(row[j]) if size is None else size.op("max", abs(row[j]))
        found = size * one if found is None else found.op("max", size * one)
    return found


def _best_degree(table: Table, z: Rows, modes: Rows, unit: Sequence[Value]) -> Value:
    """The degree to which the last step's polynomial should have been cut to predict this one best."""
    s, n = len(z), len(z[0])
    moved: Rows = [[0.0] * n for _ in range(s)]
    best: Any = None
    least: Any = None
    for i in range(s):
        moved = [[y + float(table.growth[m, i]) * modes[i][j] for j, y in enumerate(row)] for m, row in enumerate(moved)]
        error = _largest([[a - b for a, b in zip(*pair, strict=True)] for pair in zip(moved, z, strict=True)], unit)
        if best is None:
            best, least = error * 0.0 + 1.0, error
            continue
        better = error < least
        best, least = better.where(i + 1.0, best), better.where(error, least)
    return best


def _corrected(z: Rows, prolonged: Rows, unit: Sequence[Value], x: Mapping[str, Sequence[Value]]) -> dict[str, Any]:
    s, n = len(z), len(z[0])
    (started,) = x["started"]

    def rows(block: Sequence[Value], k: int = 0) -> Rows:
        return [list(block[(k * s + i) * n : (k * s + i + 1) * n]) for i in range(s)]

    def each(f: Any, *arrays: Rows) -> Rows:
        return [[f(*entries) for entries in zip(*lines, strict=True)] for lines in zip(*arrays, strict=True)]

    miss = each(lambda a, b: started.op("if", a - b), z, rows(x["prolonged"]))
    missed: list[Any] = []
    errors: list[Value] = []
    added: Rows = [[0.0] * n for _ in range(s)]
    use, least = added, started * 0.0
    for k in range(DIFFERENCES + 1):
        errors.append(_largest(miss, unit).op("max", x["errors"][k] * 0.5))
        better = errors[k] < least if k else None
        use = added if better is None else each(better.where, added, use)
        least = errors[k] if k == 0 else errors[k].op("min", least)
        if k < DIFFERENCES:
            missed += _flat(miss)
            added = each(lambda a, b: a + b, added, miss)
            miss = each(lambda a, b: a - b, miss, rows(x["missed"], k))
    near = least <= NEAR
    predicted = each(lambda a, b: a + near.op("if", b), prolonged, use)
    return {
        "z": predicted, "started": [1.0], "prolonged": _flat(prolonged), "missed": missed, "errors": errors,
    }  # fmt: skip
