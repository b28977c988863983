"""The measurements behind choices that docs/design.md states: `python benchmarks/choices.py`."""

from __future__ import annotations

import ctypes
import random
import time
from unittest import mock

import numpy as np

import leastaction as la
from leastaction.backends.backend import backend
from leastaction.backends.fused import programs
from leastaction.kernel import compile as kernel
from leastaction.kernel.lower import lower
from leastaction.program import Builder, Program
from leastaction.trace import derivatives, trace

METHODS = ("midpoint", "P2N2Q4Gau", "P4N4Q8Gau")


def chain(q, v, g):
    """Pendulums in a row, positions as running sums."""
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return 0.5 * np.sum(x**2 + y**2) + g * np.sum(np.cumsum(np.cos(q)))


def textbook_chain(q, v, g):
    """The same as the double sum of cos(q_i − q_j) that textbooks print."""
    n = len(q)
    T = sum((n - max(i, j)) * v[i] * v[j] * np.cos(q[i] - q[j]) for i in range(n) for j in range(n))
    return 0.5 * T + g * sum((n - i) * np.cos(q[i]) for i in range(n))


def casadi_length(program: Program) -> tuple[int, float]:
    """Instructions of CasADi's gradient and Hessian of the same L, inputs and outputs not counted, and seconds."""
    import casadi

    unary = {"neg": lambda x: -x, "sq": lambda x: x * x, "sin": casadi.sin, "cos": casadi.cos}
    binary = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}
    x = casadi.SX.sym("x", program.input_size)
    values = []
    for op, *args in program.code:
        if op == "input":
            values.append(x[args[0]])
        elif op == "const":
            values.append(casadi.SX(float(args[0])))
        else:
            values.append((unary | binary)[op](*(values[a] for a in args)))
    clock = time.perf_counter()
    H, g = casadi.hessian(values[program.output("L")[0]], x[: program.input_size - 1])
    f = casadi.Function("f", [x], casadi.cse([H, g]))
    seconds = time.perf_counter() - clock
    counted = range(f.n_instructions())
    return sum(f.instruction_id(k) not in (casadi.OP_INPUT, casadi.OP_OUTPUT) for k in counted), seconds


def hessians() -> None:
    print("\n### Hessians of chains of 50 pendulums\n\n| form | CasADi, s | CasADi, length | here, s | here, length |")
    print("|---|---|---|---|---|")
    for fn in (chain, textbook_chain):
        L = trace(fn, 50, {"g": ()}, False)
        clock = time.perf_counter()
        ours = derivatives(L, second=True)
        seconds = time.perf_counter() - clock
        length = sum(op[0] != "input" for op in ours.code)
        theirs, their_seconds = casadi_length(L)
        print(f"| {fn.__name__} | {their_seconds:.2f} | {theirs} | {seconds:.2f} | {length} |", flush=True)


def random_program(length: int) -> Program:
    rng = random.Random(1)
    B = Builder([("q", 10)])
    v = B.input("q")
    while len(B.code) < length:
        a, b = rng.choice(v[-200:]), rng.choice(v[-2000:])
        v.append(B.op(rng.choice(["add", "sub", "mul"]), a, b) if rng.random() < 0.97 else B.op("sin", a))
    return B.build(y=v[-500:] + v[1000::20])


def effort() -> None:
    program = random_program(30_000)
    print(f"\n### Compiling {len(program.code)} instructions\n")
    print("| passes, selection | compile, s | run, µs |\n|---|---|---|")
    lowered = lower(program, "kernel")
    for passes, selection in ((2, 2), (0, 2), (0, 0)):
        clock = time.perf_counter()
        with mock.patch.object(kernel.cache, "load", lambda name: None):
            code = kernel._linked(lambda: lowered.text, "kernel", f"{time.time()}", kernel.Effort(passes, selection))
        seconds = time.perf_counter() - clock
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code["kernel"])
        x, y, w = np.full(10, 1e-3), np.zeros(program.output_size), np.zeros(lowered.work + 1)
        best = np.inf
        for _ in range(300):
            clock = time.perf_counter()
            run(x.ctypes.data, y.ctypes.data, w.ctypes.data)
            best = min(best, time.perf_counter() - clock)
        print(f"| {passes}, {selection} | {seconds:.2f} | {best * 1e6:.1f} |", flush=True)


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    return T + m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))


def fusing() -> None:
    print("\n### One trajectory: fused Newton, or chords with the points side by side, µs per step\n")
    print("| system | method | unknowns | Newton | side by side |\n|---|---|---|---|---|")
    swinging = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "l": 0.25, "g": 9.81})
    kepler = la.problems.get("kepler")
    for name, system, start, h in (
        ("double pendulum", swinging, {"q0": [0.8, 1.0], "v0": [0, 0]}, 0.01),
        ("Kepler", kepler.system, {"q0": kepler.q0, "p0": kepler.p0}, 0.05),
    ):
        for s in (1, 2, 3, 4, 6, 8):
            times: dict[int, float] = {}
            for limit in (100, 0) * 5:
                with mock.patch.multiple(programs, MOST_DEGREE=limit, MOST_INSTRUCTIONS=10**6):
                    backend.cache_clear()
                    path = la.integrate(system, f"P{s}N{s}Q{2 * s}Gau", h=h, steps=10_000, every=10_000, **start)
                times[limit] = min(times.get(limit, np.inf), path.stats["run_time"] / 1e4)
            row = f"{name} | P{s}N{s}Q{2 * s}Gau | {2 * s} | {times[100] * 1e6:.2f} | {times[0] * 1e6:.2f}"
            print(f"| {row} |", flush=True)
    backend.cache_clear()


def passes() -> None:
    """Kernels of steps with LLVM's first level of passes, as they are compiled, and with the third."""
    print("\n### Passes of LLVM, the first level beside the third\n")
    print("| system, P8N8Q16Gau | compile: first, s | third, s | a step: first, µs | third, µs |\n" + "|---" * 5 + "|")
    swinging = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "l": 0.25, "g": 9.81})
    cases = {"double pendulum": (swinging, {"q0": [0.8, 1.0], "v0": [0, 0]}, 0.05)}
    for name, h in (("kepler", 0.1), ("outer-solar-system", 600.0), ("henon-heiles", 0.3)):
        problem = la.problems.get(name)
        cases[name] = problem.system, {"q0": problem.q0, "p0": problem.p0}, h
    for name, (system, start, h) in cases.items():
        compiled, stepped = np.full((2, 2), np.inf)
        for k, level in enumerate((kernel.STRAIGHT, kernel.BEST) * 9):
            with (
                mock.patch.object(kernel, "STRAIGHT", level),
                mock.patch.object(kernel.cache, "load", lambda name: None),
            ):
                for cleared in (kernel._recent, kernel._held):
                    cleared.clear()
                backend.cache_clear()
                clock = time.process_time()
                la.integrate(system, "P8N8Q16Gau", h=h, steps=1, **start)
                compiled[k % 2] = min(compiled[k % 2], time.process_time() - clock)
                path = la.integrate(system, "P8N8Q16Gau", h=h, steps=20_000, every=20_000, **start)
            stepped[k % 2] = min(stepped[k % 2], path.stats["run_time"] / 2e4 * 1e6)
        cells = [f"{x:.2f}" for x in compiled] + [f"{x:.3f}" for x in stepped]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    backend.cache_clear()


def branch() -> None:
    """Coarse steps whose root differs from the root that continuation in h finds."""
    print("\n### Roots of coarse steps, 400 double pendulums with l = 1 let go anywhere, 40 steps each\n")
    print("| method | h | steps, single runs | continued | other roots | steps, lanes | continued | other roots |")
    print("|---|---|---|---|---|---|---|---|")
    system = la.Lagrangian(double_pendulum, n=2, params={"m": 1.0, "l": 1.0, "g": 9.81})
    Q = np.random.default_rng(0).uniform(-3, 3, (400, 2))

    def others(q: np.ndarray, p: np.ndarray) -> tuple[int, int]:
        """Steps, and how many of them end elsewhere than the same step found by continuation, as first steps are."""
        found = np.isfinite(q[:, 1:]).all(axis=2)
        first = la.ensemble(system, method, q[:, :-1][found], p[:, :-1][found], h=h, steps=1)
        away = np.abs(first.q[:, 1] - q[:, 1:][found]).max(axis=1)
        return int(found.sum()), int((~(away < 1e-6)).sum())

    def one(start: np.ndarray) -> la.Path:
        try:
            return la.integrate(system, method, start, [0, 0], h=h, steps=40)
        except la.StepFailed as failure:
            return failure.path

    for method, hs in (
        ("midpoint", (0.05, 0.1)),
        ("simpson", (0.1, 0.2)),
        ("P3N3Q6Gau", (0.2, 0.3)),
        ("P4N4Q8Gau", (0.3, 0.4)),
    ):
        for h in hs:
            paths = [one(start) for start in Q]
            q, p = np.full((2, len(Q), 41, 2), np.nan)
            for i, path in enumerate(paths):
                q[i, : len(path)], p[i, : len(path)] = path.q, path.p
            steps, wrong = others(q, p)
            continued = sum(path.stats["continued"] for path in paths) / steps
            lanes = la.ensemble(system, method, Q, [0, 0], h=h, steps=40)
            lane_steps, lane_wrong = others(lanes.q, lanes.p)
            share = lanes.stats["continued"] / lane_steps
            print(
                f"| {method} | {h} | {steps} | {continued:.1%} | {wrong} | {lane_steps} | {share:.1%} | {lane_wrong} |",
                flush=True,
            )


def quartic_chain(n: int, quartic: float, summed: bool) -> la.Lagrangian:
    """Masses in a row, springs with the potential ½ d² + ¼ b d⁴, as a sum over rows or as one Lagrangian."""

    def potential(d):
        return 0.5 * d**2 + 0.25 * quartic * d**4

    if not summed:
        return la.Lagrangian(lambda q, v: 0.5 * v @ v - np.sum(potential(np.diff(q))), n=n)
    i = np.arange(n)
    masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=i[:, None])
    springs = la.Term(lambda q, v: -potential(q[1] - q[0]), over=np.stack([i[:-1], i[1:]], axis=1))
    return la.Lagrangian.sum([masses, springs], n=n)


def coarse() -> None:
    """Iterations of coarse steps, which are found without their predictions."""
    print("\n### Coarse steps of quartic chains, 60 steps: iterations, and steps continued\n")
    print("| chain | b | h ω | " + " | ".join(METHODS) + " |\n" + "|---" * (3 + len(METHODS)) + "|")
    for n, summed in ((1000, True), (30, False)):
        start = {"q0": 0.1 * np.sin(6 * np.pi * np.arange(n) / n), "v0": 0.1 * np.cos(np.arange(n)), "steps": 60}
        for fast, quartic in ((0.3, 1.0), (1.0, 1.0), (5.0, 0.1), (5.0, 10.0), (20.0, 0.1)):
            one, cells = quartic_chain(n, quartic, summed), []
            for method in METHODS:
                stats = la.integrate(one, method, **start, h=fast / 2).stats
                cells.append(f"{stats['newton_iterations']}, {stats['continued']}")
            print(f"| {'sum of' if summed else 'dense,'} {n} | {quartic} | {fast} | " + " | ".join(cells) + " |")


def records() -> None:
    """One loop, y ← A y again and again, whose memory is a record: NumPy's record types, as Numba knows them, and ours.

    Numba's record has the lengths of its arrays in its type, so a loop is compiled for every size; ours reads them.
    """
    import numba

    from leastaction.backends.loops.machine import native, reader
    from leastaction.backends.records import Record

    made = Record.of("Powers", number={"n": ""}, reals={"A": ("n, n", ""), "y": ("n", ""), "z": ("n", "")})
    read = reader(made)

    def powers(S, times):
        for _ in range(times):
            for i in range(S.n):
                S.z[i] = 0.0
                for j in range(S.n):
                    S.z[i] += S.A[i * S.n + j] * S.y[j]
            for i in range(S.n):
                S.y[i] = S.z[i]

    plain = native(powers)

    @native
    def ours(I, D, times):
        plain(read(I, D, 0), times)

    def seconds(call) -> float:
        clock = time.process_time()
        call()
        return time.process_time() - clock

    pointers = numba.types.CPointer(numba.int64), numba.types.CPointer(numba.float64)
    print("\n### A loop whose memory is a record, seconds to compile\n\n| n | Numba's record | ours |\n|---|---|---|")
    for n in (2, 3, 8, 50):
        dtype = np.dtype([("n", "i8"), ("A", "f8", (n * n,)), ("y", "f8", (n,)), ("z", "f8", (n,))])
        theirs, kind = numba.njit(powers), numba.from_dtype(dtype)
        found = [
            seconds(lambda theirs=theirs, kind=kind: theirs.compile((kind, numba.int64))),
            seconds(lambda: ours.compile((*pointers, numba.int64))),
        ]
        print(f"| {n} | " + " | ".join(f"{x:.3f}" for x in found) + " |")


if __name__ == "__main__":
    hessians()
    effort()
    fusing()
    passes()
    branch()
    coarse()
    records()
