"""One step of many trajectories at once, as Programs without branches, for the SIMD lanes.

They do for each lane what `stepping.loops.newton` and `stepping.loops.galerkin` do for one trajectory. What a lane
has decided (it has converged, it has failed, it has been stopped) is a number among its state that selects
between the old values and the new, so lanes that still iterate do not change those that are done.

fresh, chord   one Newton iteration (`leastaction.many.newton`)
advance        the compensated sums q + z^s, p + impulse; the prediction of the next step, and what of it does not
               depend on z; energy and events at its start
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leastaction.discrete import solve
from leastaction.lagrangian import Lagrangian
from leastaction.many.newton import Blocks, Iteration, chord_program, fresh_program, iteration, largest
from leastaction.methods import Galerkin, Table
from leastaction.program import Builder, Program
from leastaction.stepping import layout

# Newton iterations for the velocity at the end of a step, from the polynomial's, where L is not quadratic in v. The
# energy's error is the square of the velocity's, since ∂(p·v − L)/∂v = 0, so these are plenty.
VELOCITY_ITERATIONS = 3
# Of what the last predictions missed, for the next one.
DIFFERENCES = 3
# They are added where they have come so near, in lengths of the last two steps. Farther away they lead to other roots.
NEAR = 1 / 16


@dataclass(frozen=True)
class LanePrograms:
    """The three kernels, which work in place: their inputs are a lane's state, and their outputs parts of it by name.

    Beside the state `advance` gives, where there are events, `crossed` and what the step began with.
    """

    fresh: Program
    chord: Program
    advance: Program


def lane_programs(
    system: Lagrangian, method: Galerkin, event: Program | None = None, energy: bool = False
) -> LanePrograms:
    """The kernels of a method on a system, with event functions g(t, q, p) and the range of the energy if wanted."""
    n, s = system.n, method.s
    N = n * s
    one = iteration(system, method)
    events = event.output_size if event else 0
    memory = (  # for the prediction
        [("modes", N), ("degree", 2)]
        if s > layout.WHOLE_POLYNOMIAL
        else [("started", 1), ("prolonged", N), ("missed", DIFFERENCES * N), ("errors", DIFFERENCES + 1)]
    )
    blocks = [
        ("t", 1), ("h", 1), ("params", system.point.inputs[-1][1]), ("alive", 1), ("directions", events),
        ("invariants", one.before.output_size), ("slopes", n * N), ("factors", len(one.pattern)),
        ("q", n), ("p", n), ("carry", 2 * n),
        *memory,
        ("g", events), ("lowest", int(energy)), ("highest", int(energy)), ("length", 1), ("reach", 1),
        ("z", N), ("impulse", n), ("scale", 1), ("before", 1), ("doubt", 1),
        ("fresh", 1), ("chord", 1), ("iterations", 1), ("trouble", 1),
    ]  # fmt: skip
    return LanePrograms(
        fresh_program(one, blocks), chord_program(one, blocks), _advance(system, method, one, blocks, event, energy)
    )


def _advance(
    system: Lagrangian, method: Galerkin, one: Iteration, blocks: Blocks, event: Program | None, energy: bool
) -> Program:
    """From a step that is solved to the next; t is already that of its end."""
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    n, table = system.n, method.table
    zero, z = B.const(0.0), x["z"]
    (ok,) = x["alive"]

    def where_ok(values: Sequence[int], name: str) -> list[int]:
        return [B.select(ok, new, old) for new, old in zip(values, x[name], strict=True)]

    state, carry = [], []
    for a, increment, c in zip([*x["q"], *x["p"]], [*z[-n:], *x["impulse"]], x["carry"], strict=True):
        # Knuth's two-sum: what rounding leaves over is carried to the next step.
        b = B.add(increment, c)
        total = B.add(a, b)
        rounded = B.sub(total, a)
        carry.append(B.add(B.sub(a, B.sub(total, rounded)), B.sub(b, rounded)))
        state.append(total)
    q, p = where_ok(state[:n], "q"), where_ok(state[n:], "p")
    (t,) = x["t"]
    inputs = {**x, "q": q, "p": p}

    prediction = _predict(B, table, n, x)
    start = prediction.pop("z")
    outputs: dict[str, list[int]] = {
        "q": q,
        "p": p,
        "carry": where_ok(carry, "carry"),
        **{name: where_ok(values, name) for name, values in prediction.items()},
        **B.inline(one.before, **{name: inputs[name] for name, _ in one.before.inputs}),
    }
    if event is not None:
        g = B.inline(event, t=[t], q=q, p=p, params=x["params"])["g"]
        crossed = zero
        for old, new, direction in zip(x["g"], g, x["directions"], strict=True):
            crossed = B.add(crossed, _crossing(B, old, new, direction))
        outputs["g"] = where_ok(g, "g")
        outputs["crossed"] = [B.op("if", ok, crossed)]
        outputs["began"] = [*x["g"], *x["q"], *x["p"], *z]
    if energy:
        E = _energy(B, system, table, t, q, p, z, x["h"][0], x["params"])
        outputs["lowest"] = where_ok([B.op("min", x["lowest"][0], E)], "lowest")
        outputs["highest"] = where_ok([B.op("max", x["highest"][0], E)], "highest")
    start, tiny = where_ok(start, "z"), B.const(layout.TINY)
    length = largest(B, z, tiny)
    outputs |= {
        "length": [length],
        "reach": [B.select(ok, B.scale(3.0, B.op("max", length, x["length"][0])), x["reach"][0])],
        "z": start,
        "impulse": x["impulse"],
        "scale": [largest(B, start, tiny)],
        "before": [zero],
        "doubt": [zero],
        "fresh": [ok],
        "chord": [zero],
        "iterations": [zero],
        "trouble": [zero],
    }
    return B.build(**outputs)


def _predict(B: Builder, table: Table, n: int, x: dict[str, list[int]]) -> dict[str, list[int]]:
    """What to remember of the step just solved, and z of the next one predicted: the last step's polynomial, prolonged.

    For large s it is cut to the degree that would have predicted this step best, as in `stepping.loops.galerkin`.
    """
    s, z = len(table.d) - 1, x["z"]
    modes = [B.sum(B.scale(table.modes[i, v], z[v * n + j]) for v in range(s)) for i in range(s) for j in range(n)]
    if s > layout.WHOLE_POLYNOMIAL:
        degree, started = x["degree"]
        degree = B.select(started, _best_degree(B, table, n, z, x["modes"]), degree)
        kept = [B.op("lt", B.const(float(i)), degree) for i in range(s) for _ in range(n)]
        cut = [B.op("if", keep, mode) for keep, mode in zip(kept, modes, strict=True)]
        return {"modes": modes, "degree": [degree, B.const(1.0)], "z": _prolonged(B, table, n, cut)}
    return _corrected(B, x, _prolonged(B, table, n, modes))


def _prolonged(B: Builder, table: Table, n: int, modes: Sequence[int]) -> list[int]:
    """z of the next step by the polynomial with these velocity modes."""
    s = len(table.d) - 1
    return [B.sum(B.scale(table.growth[m, i], modes[i * n + j]) for i in range(s)) for m in range(s) for j in range(n)]


def _corrected(B: Builder, x: dict[str, list[int]], prolonged: list[int]) -> dict[str, list[int]]:
    """A prediction corrected by what the last ones missed.

    The prolonged polynomial misses step k by e_k = z_k − G z_{k−1}. That varies slowly from step to step, so it is
    itself extrapolated by backward differences: e_{k+1} ≈ e_k + ∇e_k + ∇²e_k. How many of them to add, none to
    three, is what has predicted best lately: by the largest error, older ones counting half as much with every step.
    Steps so coarse that even the best was far off are predicted by the polynomial alone, as in single runs.
    """
    N, zero = len(prolonged), B.const(0.0)
    (started,) = x["started"]
    miss = [B.op("if", started, B.sub(a, b)) for a, b in zip(x["z"], x["prolonged"], strict=True)]
    missed, errors, added = [], list[int](), [zero] * N
    use, least = added, zero
    for k in range(DIFFERENCES + 1):
        errors.append(B.op("max", largest(B, miss), B.scale(0.5, x["errors"][k])))
        better = B.op("lt", errors[k], least) if k else B.const(1.0)
        use = [B.select(better, a, b) for a, b in zip(added, use, strict=True)]
        least = B.op("min", errors[k], least) if k else errors[k]
        if k < DIFFERENCES:
            missed += miss
            added = [B.add(a, b) for a, b in zip(added, miss, strict=True)]
            miss = [B.sub(a, b) for a, b in zip(miss, x["missed"][k * N : (k + 1) * N], strict=True)]
    near = B.op("le", least, B.scale(NEAR, largest(B, x["z"], x["length"][0])))
    predicted = [B.add(a, B.op("if", near, b)) for a, b in zip(prolonged, use, strict=True)]
    return {"started": [B.const(1.0)], "prolonged": prolonged, "missed": missed, "errors": errors, "z": predicted}


def _best_degree(B: Builder, table: Table, n: int, z: Sequence[int], modes: Sequence[int]) -> int:
    """The degree to which the last step's polynomial should have been cut to predict this one best."""
    s = len(table.d) - 1
    errors = [B.const(0.0)] * s
    for m in range(s):
        for j in range(n):
            moved = B.const(0.0)
            for i in range(s):
                moved = B.add(moved, B.scale(table.growth[m, i], modes[i * n + j]))
                errors[i] = B.op("max", errors[i], B.op("abs", B.sub(moved, z[m * n + j])))
    best, least = B.const(1.0), errors[0]
    for i in range(1, s):
        better = B.op("lt", errors[i], least)
        best, least = B.select(better, B.const(i + 1.0), best), B.select(better, errors[i], least)
    return best


def _energy(
    B: Builder,
    system: Lagrangian,
    table: Table,
    t: int,
    q: Sequence[int],
    p: Sequence[int],
    z: Sequence[int],
    h: int,
    params: Sequence[int],
) -> int:
    """E = p·v − L with L_v(t, q, v) = p, v from the polynomial's velocity by Newton."""
    n = system.n
    first = system.hessian.select("Lv", "Lvv")
    v = [B.div(B.sum(B.scale(table.slope[m + 1], zj) for m, zj in enumerate(z[j::n])), h) for j in range(n)]
    for _ in range(VELOCITY_ITERATIONS if _depends_on_v(first) else 1):
        at = B.inline(first, t=[t], q=q, v=v, params=params)
        rows = [at["Lvv"][j * n : (j + 1) * n] for j in range(n)]
        (dv,) = solve(B, rows, [[B.sub(a, b) for a, b in zip(p, at["Lv"], strict=True)]])
        v = [B.add(a, b) for a, b in zip(v, dv, strict=True)]
    L = B.inline(system.program, t=[t], q=q, v=v, params=params)["L"][0]
    return B.sub(B.sum(B.mul(a, b) for a, b in zip(p, v, strict=True)), L)


def _depends_on_v(program: Program) -> bool:
    """Whether L_vv changes with v."""
    velocities = program.input_slice("v")
    reached = [False] * len(program.code)
    for k, (op, *args) in enumerate(program.code):
        if op == "input":
            reached[k] = velocities.start <= args[0] < velocities.stop
        elif op != "const":
            reached[k] = any(reached[a] for a in args)
    return any(reached[k] for k in program.output("Lvv"))


def _crossing(B: Builder, old: int, new: int, direction: int) -> int:
    """1 if g went through zero in the direction wanted: up (+1), down (−1), or either (0)."""
    zero = B.const(0.0)
    up = B.op("and", B.op("lt", old, zero), B.op("le", zero, new))
    down = B.op("and", B.op("lt", zero, old), B.op("le", new, zero))
    up, down = B.op("and", up, B.op("le", zero, direction)), B.op("and", down, B.op("le", direction, zero))
    return B.op("or", up, down)
