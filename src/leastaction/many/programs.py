"""One step of many trajectories at once, as Programs without branches, for the SIMD lanes.

They do for each lane what `stepping.loops.newton` and `stepping.loops.galerkin` do for one trajectory. What a lane
has decided (it has converged, it has failed, it has been stopped) is a number among its state that selects
between the old values and the new, so lanes that still iterate do not change those that are done.

solve     one Newton iteration: z ← z + dz, and whether to go on
advance   the compensated sums q + z^s, p + impulse; the prediction of the next step; energy and events at its start
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leastaction.discrete import newton_program, solve
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Galerkin, Table
from leastaction.program import Builder, Program
from leastaction.stepping import layout

# Newton iterations for the velocity at the end of a step, from the polynomial's, where L is not quadratic in v. The
# energy's error is the square of the velocity's, since ∂(p·v − L)/∂v = 0, so these are plenty.
VELOCITY_ITERATIONS = 3


@dataclass(frozen=True)
class LanePrograms:
    """The two kernels; `inputs` of both are a lane's state, and their outputs parts of it, in the same order."""

    solve: Program
    advance: Program


def lane_programs(
    system: Lagrangian, method: Galerkin, event: Program | None = None, energy: bool = False
) -> LanePrograms:
    """The kernels of a method on a system, with event functions g(t, q, p) and the range of the energy if wanted."""
    n, s = system.n, method.s
    count = system.point.inputs[-1][1]
    blocks = [
        ("t", 1), ("h", 1), ("params", count), ("alive", 1), ("directions", event.output_size if event else 0),
        ("q", n), ("p", n), ("carry", 2 * n), ("modes", n * s), ("degree", 2),
        ("g", event.output_size if event else 0), ("lowest", int(energy)), ("highest", int(energy)),
        ("z", n * s), ("impulse", n), ("reach", 1), ("scale", 1), ("before", 1), ("contraction", 1), ("active", 1),
        ("status", 1), ("left", 1), ("iterations", 1), ("trouble", 1),
    ]  # fmt: skip
    return LanePrograms(_solve(system, method, blocks), _advance(system, method, blocks, event, energy))


def _solve(system: Lagrangian, method: Galerkin, blocks: Sequence[tuple[str, int]]) -> Program:
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    newton = newton_program(system.point.select("Lq", "Lv", "Lqq", "Lqv", "Lvv"), method.table, system.n)
    step = B.inline(newton, **{name: x[name] for name, _ in newton.inputs})
    (active,), (before,), (iterations,), (contraction,) = (
        x[name] for name in ("active", "before", "iterations", "contraction")
    )
    new = [B.add(z, dz) for z, dz in zip(x["z"], step["dz"], strict=True)]
    size = _largest(B, step["dz"])
    scale = _largest(B, new, x["scale"][0])
    total = B.sum(step["dz"])
    finite = B.op("eq", B.sub(total, total), B.const(0.0))
    iteration = B.add(iterations, B.const(1.0))
    first = B.op("eq", iterations, B.const(0.0))
    rate = B.div(size, before)
    following = B.mul(size, B.op("sq", rate))
    floor, tiny = B.scale(layout.ACCEPTABLE, scale), B.scale(layout.NEGLIGIBLE, scale)
    small, nothing = B.op("le", size, floor), B.op("le", size, tiny)
    later = B.op("lt", B.const(0.0), iterations)
    second = B.op("and", B.op("eq", iterations, B.const(1.0)), B.op("not", small))
    stalled = B.op("and", B.op("lt", B.const(0.5), rate), small)
    done = B.op("or", nothing, B.op("and", later, B.op("or", B.op("le", following, tiny), stalled)))
    done = B.op("and", finite, done)
    last = B.op("le", B.const(float(layout.MOST_ITERATIONS)), iteration)
    exhausted = B.op("and", finite, B.op("and", last, B.op("not", done)))
    ended = B.op("or", B.op("not", finite), B.op("or", done, last))
    momentum = B.sum(step["impulse"])
    sound = B.op("and", finite, B.op("or", B.op("not", done), B.op("eq", B.sub(momentum, momentum), B.const(0.0))))
    status = B.select(sound, _if(B, exhausted, layout.NOT_CONVERGED), B.const(float(layout.NOT_FINITE)))
    # Astray: the first increment is longer than thrice the last step's, or the root is twice as far as that.
    reach = x["reach"][0]
    off = B.op("and", first, B.op("lt", reach, size))
    ratio = B.select(off, B.const(layout.ASTRAY), B.select(second, B.op("max", contraction, rate), contraction))
    far = B.op("lt", B.scale(2.0, reach), scale)
    lost = B.op("or", B.op("not", B.op("le", ratio, B.const(layout.ON_THE_BRANCH))), B.op("ne", status, B.const(0.0)))
    lost = B.op("or", far, lost)
    left = B.select(exhausted, B.div(size, scale), B.op("if", B.op("not", nothing), B.div(following, scale)))

    def where_active(values: Sequence[int], name: str) -> list[int]:
        return [B.select(active, new, old) for new, old in zip(values, x[name], strict=True)]

    return B.build(
        z=where_active(new, "z"),
        impulse=where_active(step["impulse"], "impulse"),
        reach=[reach],
        scale=where_active([scale], "scale"),
        before=where_active([size], "before"),
        contraction=where_active([ratio], "contraction"),
        active=[B.op("and", active, B.op("not", ended))],
        status=where_active([status], "status"),
        left=where_active([left], "left"),
        iterations=where_active([iteration], "iterations"),
        trouble=where_active([B.op("if", ended, lost)], "trouble"),
    )


def _advance(
    system: Lagrangian, method: Galerkin, blocks: Sequence[tuple[str, int]], event: Program | None, energy: bool
) -> Program:
    B = Builder(blocks)
    x = {name: B.input(name) for name, _ in blocks}
    n, table = system.n, method.table
    zero, z = B.const(0.0), x["z"]
    ok = B.op("and", x["alive"][0], B.op("eq", x["status"][0], zero))

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
    t = B.add(x["t"][0], x["h"][0])

    modes, predicted, degree = _predict(B, table, n, z, x["modes"], x["degree"])
    outputs: dict[str, list[int]] = {
        "q": q,
        "p": p,
        "carry": where_ok(carry, "carry"),
        "modes": where_ok(modes, "modes"),
        "degree": where_ok(degree, "degree"),
    }
    crossed = zero
    outputs["g"] = []
    if event is not None:
        g = B.inline(event, t=[t], q=q, p=p, params=x["params"])["g"]
        for old, new, direction in zip(x["g"], g, x["directions"], strict=True):
            crossed = B.add(crossed, _crossing(B, old, new, direction))
        outputs["g"] = where_ok(g, "g")
    outputs["lowest"], outputs["highest"] = [], []
    if energy:
        E = _energy(B, system, table, t, q, p, z, x["h"][0], x["params"])
        outputs["lowest"] = where_ok([B.op("min", x["lowest"][0], E)], "lowest")
        outputs["highest"] = where_ok([B.op("max", x["highest"][0], E)], "highest")
    start = where_ok(predicted, "z")
    outputs |= {
        "z": start,
        "impulse": x["impulse"],
        "reach": [B.select(ok, B.scale(3.0, _largest(B, z)), x["reach"][0])],
        "scale": [_largest(B, start)],
        "before": [zero],
        "contraction": [zero],
        "active": [ok],
        "status": x["status"],
        "left": [zero],
        "iterations": [zero],
        "trouble": [zero],
        "crossed": [B.op("if", ok, crossed)],
    }
    return B.build(**outputs)


def _predict(
    B: Builder, table: Table, n: int, z: Sequence[int], last_modes: Sequence[int], last: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """The modes of the step just solved, the next one predicted, and the degree used with 1 for "there was a step"."""
    s = len(table.d) - 1
    modes = [B.sum(B.scale(table.modes[i, v], z[v * n + j]) for v in range(s)) for i in range(s) for j in range(n)]
    degree = last[0]
    if s > layout.WHOLE_POLYNOMIAL:
        # The degree that would have predicted this step best.
        errors = [B.const(0.0)] * s
        for m in range(s):
            for j in range(n):
                moved = B.const(0.0)
                for i in range(s):
                    moved = B.add(moved, B.scale(table.growth[m, i], last_modes[i * n + j]))
                    errors[i] = B.op("max", errors[i], B.op("abs", B.sub(moved, z[m * n + j])))
        best, least = B.const(1.0), errors[0]
        for i in range(1, s):
            better = B.op("lt", errors[i], least)
            best, least = B.select(better, B.const(i + 1.0), best), B.select(better, errors[i], least)
        degree = B.select(last[1], best, degree)
    predicted = []
    for m in range(s):
        for j in range(n):
            terms = [B.scale(table.growth[m, i], modes[i * n + j]) for i in range(s)]
            if s > layout.WHOLE_POLYNOMIAL:
                terms = [B.op("if", B.op("lt", B.const(float(i)), degree), term) for i, term in enumerate(terms)]
            predicted.append(B.sum(terms))
    return modes, predicted, [degree, B.const(1.0)]


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


def _largest(B: Builder, values: Sequence[int], start: int | None = None) -> int:
    largest = B.const(0.0) if start is None else start
    for value in values:
        largest = B.op("max", largest, B.op("abs", value))
    return largest


def _if(B: Builder, condition: int, value: int) -> int:
    return B.op("if", condition, B.const(float(value)))
