"""What constraints cost: `python benchmarks/constraints.py` (needs gcc). Times are those of the processor.

1. The double pendulum in the plane (n = 4, m = 2), Störmer–Verlet, against RATTLE written by hand in C (`rattle.c`).
   Both iterate to round-off: C until Σ|g|/2 < 10⁻¹⁵ or grows, from the last multipliers; here by the verdict of every
   step. C adds plainly and looks at nothing but g; here sums are compensated, and a wrong root or a singular place is
   noticed. Our time is that of `la.integrate` as a whole, so that steps are many.
2. The same system by methods of all orders, against its two angles.
3. Work and precision against SciPy's DOP853 on the accelerations, with Baumgarte's stabilisation, and against IDA of
   SUNDIALS (scikit-sundae, of the dependency group bench; left out where it is not there) on the equations of index 2
   by Gear, Gupta and Leimkuhler, their residual compiled by Numba.
4. A chain of N links in the plane (n = 2N, m = N): microseconds a step.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import leastaction as la

HERE = Path(__file__).parent
STEPS, TURNS, H = 200_000, 7, 0.005
MANY = 5 * STEPS  # of RATTLE
VALUES = {"m1": 1.0, "m2": 2.0, "g": 9.81, "l1": 1.0, "l2": 0.7}


def points(q, v, m1, m2, g):
    return 0.5 * m1 * (v[:2] @ v[:2]) + 0.5 * m2 * (v[2:] @ v[2:]) - g * (m1 * q[1] + m2 * q[3])


def rods(q, l1, l2):
    return np.array([q[:2] @ q[:2] - l1**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - l2**2])


def angles(q, v, m1, m2, g, l1, l2):
    T = 0.5 * (m1 + m2) * l1**2 * v[0] ** 2 + 0.5 * m2 * l2**2 * v[1] ** 2
    T = T + m2 * l1 * l2 * v[0] * v[1] * np.cos(q[0] - q[1])
    return T + (m1 + m2) * g * l1 * np.cos(q[0]) + m2 * g * l2 * np.cos(q[1])


PLANE = la.Lagrangian(points, 4, VALUES, constraints=rods)
ANGLES = la.Lagrangian(angles, 2, VALUES)


def places(a, b):
    return np.array([np.sin(a), -np.cos(a), np.sin(a) + 0.7 * np.sin(b), -np.cos(a) - 0.7 * np.cos(b)])


def seconds(run) -> float:
    """The least time of the processor of some runs."""
    run()
    found = []
    for _ in range(TURNS):
        clock = time.process_time()
        run()
        found.append(time.process_time() - clock)
    return min(found)


def run(system, method, q0, h=H, steps=STEPS):
    return la.integrate(system, method, q0=q0, v0=np.zeros(system.n), h=h, steps=steps, every=steps)


def against_c() -> None:
    print("1. RATTLE, n = 4, m = 2, µs a step")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rattle"
        subprocess.run(["gcc", "-O3", "-march=native", "-o", program, HERE / "rattle.c", "-lm"], check=True)
        for h in (H, 4 * H, 10 * H):
            lines = [
                subprocess.run([program, str(MANY), str(h)], check=True, capture_output=True, text=True).stdout.split()
                for _ in range(TURNS)
            ]
            against_line(h, min(float(line[0]) for line in lines), np.array(lines[0][1:5], float), lines[0][5])


def against_line(h: float, theirs: float, end, miss: str) -> None:
    """One step against the time of the C program, the state it reached, and its largest |g|."""
    ours = seconds(lambda: run(PLANE, "stormer-verlet", places(0.3, 0.2), h, MANY))
    path = run(PLANE, "stormer-verlet", places(0.3, 0.2), h, MANY)
    apart, g = np.abs(path.q[-1] - end).max(), np.abs(rods(path.q[-1], 1.0, 0.7)).max()
    lanes, steps = 64, MANY // 50
    q0 = np.array([places(0.3 + 0.001 * k, 0.2) for k in range(lanes)])
    both = seconds(
        lambda: la.ensemble(PLANE, "stormer-verlet", q0=q0, v0=np.zeros((lanes, 4)), h=h, steps=steps, every=steps)
    )
    print(f"   h = {h:g}: C by hand {1e6 * theirs / MANY:.3f}, |g| = {miss}")
    print(f"   leastaction {1e6 * ours / MANY:.3f}, × {ours / theirs:.2f}, |g| = {g:.1e}; apart by {apart:.1e}")
    print(
        f"   leastaction, 64 trajectories in lanes {1e6 * both / steps / lanes:.3f}, × {both / lanes * 50 / theirs:.2f}"
    )


def against_angles() -> None:
    print("2. µs a step: two points with two rods, and two angles")
    for method in ("stormer-verlet", "simpson", "P3N3Q6Gau", "P4N4Q8Gau", "P8N8Q16Gau"):
        steps = STEPS if method != "P8N8Q16Gau" else STEPS // 20
        plane = seconds(lambda method=method, steps=steps: run(PLANE, method, places(0.3, 0.2), 0.01, steps))
        free = seconds(lambda method=method, steps=steps: run(ANGLES, method, [0.3, 0.2], 0.01, steps))
        print(f"   {method}: {1e6 * plane / steps:.2f}, {1e6 * free / steps:.2f}, × {plane / free:.1f}")


def against_scipy() -> None:
    span, q0 = 20.0, places(1.0, 0.5)
    exact = la.integrate(PLANE, "P8N8Q16Gau", q0=q0, v0=np.zeros(4), h=0.005, t_end=span, every=4000)
    M = np.array([1.0, 1.0, 2.0, 2.0])

    def rate(t, y, strength=5.0):
        q, v = y[:4], y[4:]
        d, w = q[2:] - q[:2], v[2:] - v[:2]
        G = 2 * np.array([[q[0], q[1], 0, 0], [-d[0], -d[1], d[0], d[1]]])
        bend = 2 * np.array([v[:2] @ v[:2], w @ w])
        f = np.array([0, -9.81, 0, -9.81])
        miss = 2 * strength * (G @ v) + strength**2 * rods(q, 1.0, 0.7)
        push = np.linalg.solve(G @ (G / M).T, -(bend + G @ f + miss))
        return np.concatenate([v, f + (G.T @ push) / M])

    print(f"3. error of q at t = {span:g}, seconds, |g| at the end")
    for method, h in (("simpson", 0.01), ("P3N3Q6Gau", 0.02), ("P4N4Q8Gau", 0.025), ("P6N6Q12Gau", 0.04)):
        steps = round(span / h)
        spent = seconds(lambda method=method, h=h, steps=steps: run(PLANE, method, q0, h, steps))
        path = run(PLANE, method, q0, h, steps)
        error, g = np.abs(path.q[-1] - exact.q[-1]).max(), np.abs(rods(path.q[-1], 1.0, 0.7)).max()
        print(f"   {method}, h = {h:g}: {error:.1e}, {spent:.4f}, {g:.0e}")
    for tolerance in (1e-6, 1e-9, 1e-12):
        clock = time.process_time()
        start = np.concatenate([q0, np.zeros(4)])
        found = solve_ivp(rate, (0, span), start, "DOP853", rtol=tolerance, atol=tolerance)
        spent = time.process_time() - clock
        error, g = np.abs(found.y[:4, -1] - exact.q[-1]).max(), np.abs(rods(found.y[:4, -1], 1.0, 0.7)).max()
        print(f"   SciPy DOP853 with Baumgarte, {tolerance:.0e}: {error:.1e}, {spent:.4f}, {g:.0e}")
    against_ida(q0, span, exact.q[-1])


def against_ida(q0, span, exact) -> None:
    """y = (q, v, λ, μ): q̇ = v + Gᵀμ, M v̇ = f + Gᵀλ, g = 0, G v = 0; multipliers do not count in the step's error."""
    try:
        from sksundae.ida import IDA
    except ImportError:
        print("   IDA: not here (pip install scikit-sundae)")
        return
    from numba import njit

    @njit
    def residual(y, rate, out):
        dx, dy = y[2] - y[0], y[3] - y[1]
        wx, wy = y[6] - y[4], y[7] - y[5]
        for part in range(2):  # the velocities, and the accelerations
            a, b = 2 * y[10 - 2 * part], 2 * y[11 - 2 * part]
            push = (a * y[0] - b * dx, a * y[1] - b * dy, b * dx, b * dy)
            for j in range(4):
                mass = 1.0 if part == 0 or j < 2 else 2.0
                pull = y[4 + j] if part == 0 else (-9.81 * mass if j % 2 else 0.0)
                out[4 * part + j] = mass * rate[4 * part + j] - pull - push[j]
        out[8], out[9] = y[0] ** 2 + y[1] ** 2 - 1.0, dx**2 + dy**2 - 0.49
        out[10], out[11] = 2 * (y[0] * y[4] + y[1] * y[5]), 2 * (dx * wx + dy * wy)

    v0 = np.zeros(4)
    start = np.concatenate([q0, v0, PLANE.multipliers(q0, v0), np.zeros(2)])
    rate = np.concatenate([v0, PLANE.acceleration(q0, v0), np.zeros(4)])
    residual(start, rate, np.zeros(12))  # compile it
    for tolerance in (1e-6, 1e-9, 1e-12):
        solver = IDA(
            lambda t, y, yp, res: residual(y, yp, res), rtol=tolerance, atol=[tolerance] * 8 + [1e10] * 4,
            algebraic_idx=[8, 9, 10, 11], max_num_steps=10**7,
        )  # fmt: skip
        clock = time.process_time()
        found = solver.solve(np.array([0.0, span]), start, rate)
        spent = time.process_time() - clock
        end = found.y[-1, :4]
        error, g = np.abs(end - exact).max(), np.abs(rods(end, 1.0, 0.7)).max()
        print(f"   IDA, {tolerance:.0e}: {error:.1e}, {spent:.4f}, {g:.0e}{'' if found.success else ', failed'}")


def chains() -> None:
    print("4. chains of N links, simpson: µs a step, and a link")
    for count in (5, 10, 20, 40, 80):
        problem = la.problems.get("chain", count=count, theta0="pi/6")
        steps = max(20, 4000 // count)
        clock = time.process_time()
        path = la.integrate(problem.system, "simpson", q0=problem.q0, p0=problem.p0, h=0.001, steps=1)
        compiling = time.process_time() - clock
        path = la.integrate(problem.system, "simpson", q0=problem.q0, p0=problem.p0, h=0.001, steps=20)
        clock = time.process_time()
        la.integrate(problem.system, "simpson", q0=path.q[-1], p0=path.p[-1], h=0.001, steps=1)
        first = time.process_time() - clock
        clock = time.process_time()
        la.integrate(problem.system, "simpson", q0=path.q[-1], p0=path.p[-1], h=0.001, steps=steps, every=steps)
        spent = (time.process_time() - clock - first) / (steps - 1)
        print(f"   {count}: {1e6 * spent:.0f}, {1e6 * spent / count:.1f}; first {compiling:.1f} s")


if __name__ == "__main__":
    against_c()
    against_angles()
    against_scipy()
    chains()
