"""Any precision, measured: against mpmath written by hand, against the number of digits, against the degree.

    python benchmarks/precision.py

The comparator is Simpson's method for the double pendulum as one writes it with mpmath: residual and
Jacobian by hand with mpf, mpmath.lu_solve, Newton from the last step's parabola until the next
increment would be negligible. Same equations, same prediction, same tolerance, side by side. Times are CPU times.
"""

from __future__ import annotations

import time

import mpmath
import numpy as np
from mpmath import mpf

import leastaction as la
from leastaction.numbers.rounding import Digits

Q0, P0, H = ["pi/6", "1/3"], [0, 0], "1/100"


def double_pendulum(q, v, g):
    """Two equal masses on two equal rods, m = l = 1."""
    kinetic = v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return kinetic + g * (2 * np.cos(q[0]) + np.cos(q[1]))


SYSTEM = la.Lagrangian(double_pendulum, n=2, params={"g": "9.81"})


class ByHand:
    """Simpson's method with mpmath: unknowns are the increments to the middle and to the end of a step."""

    c = (mpf(0), mpf(1) / 2, mpf(1))
    # Values and slopes of the three parabolas at the three nodes.
    l = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    dl = ((-3, 4, -1), (-1, 0, 1), (1, -4, 3))

    def __init__(self, q, p, h, g):
        self.q, self.p, self.h, self.g = q, p, h, g
        self.b = (mpf(1) / 6, mpf(2) / 3, mpf(1) / 6)
        v = self.velocity()
        self.z = [h * v[0] / 2, h * v[1] / 2, h * v[0], h * v[1]]
        self.iterations = 0

    def velocity(self):
        c = mpmath.cos(self.q[0] - self.q[1])
        determinant = 2 - c * c
        return [(self.p[0] - c * self.p[1]) / determinant, (2 * self.p[1] - c * self.p[0]) / determinant]

    def derivatives(self, q, v):
        """L_q, L_v and the second derivatives that are not zero."""
        c, s = mpmath.cos_sin(q[0] - q[1])
        c0, s0 = mpmath.cos_sin(q[0])
        c1, s1 = mpmath.cos_sin(q[1])
        twist = v[0] * v[1] * s
        Lq = (-twist - 2 * self.g * s0, twist - self.g * s1)
        Lv = (2 * v[0] + c * v[1], v[1] + c * v[0])
        bend = v[0] * v[1] * c
        Lqq = ((-bend - 2 * self.g * c0, bend), (bend, -bend - self.g * c1))
        Lqv = ((-s * v[1], -s * v[0]), (s * v[1], s * v[0]))
        Lvv = ((mpf(2), c), (c, mpf(1)))
        return Lq, Lv, Lqq, Lqv, Lvv

    def newton(self, z):
        """dz, and the impulse and its change by dz."""
        h, b, l, dl = self.h, self.b, self.l, self.dl
        R = mpmath.matrix(4, 1)
        J = mpmath.matrix(4, 4)
        impulse, slope = [mpf(0), mpf(0)], mpmath.matrix(2, 4)
        R[0], R[1] = self.p
        for i in range(3):
            q = [self.q[j] + l[i][1] * z[j] + l[i][2] * z[2 + j] for j in range(2)]
            v = [(dl[i][1] * z[j] + dl[i][2] * z[2 + j]) / h for j in range(2)]
            Lq, Lv, Lqq, Lqv, Lvv = self.derivatives(q, v)
            for j in range(2):
                impulse[j] += h * b[i] * Lq[j]
                for n in range(2):
                    R[2 * n + j] += b[i] * (h * l[i][n] * Lq[j] + dl[i][n] * Lv[j])
                for m in (1, 2):
                    for k in range(2):
                        force = h * b[i] * (l[i][m] * Lqq[j][k] + dl[i][m] / h * Lqv[j][k])
                        momentum = b[i] * (l[i][m] * Lqv[k][j] + dl[i][m] / h * Lvv[j][k])
                        slope[j, 2 * (m - 1) + k] += force
                        for n in range(2):
                            J[2 * n + j, 2 * (m - 1) + k] += l[i][n] * force + dl[i][n] * momentum
        dz = mpmath.lu_solve(J, -R)
        return dz, [impulse[j] + sum(slope[j, k] * dz[k] for k in range(4)) for j in range(2)]

    def step(self):
        z, before = list(self.z), None
        while True:
            dz, impulse = self.newton(z)
            self.iterations += 1
            z = [a + b for a, b in zip(z, dz, strict=True)]
            size, scale = max(abs(x) for x in dz), max(abs(x) for x in z)
            if size <= mpmath.eps * scale / 1000:
                break
            if before is not None and size * (size / before) ** 2 <= mpmath.eps * scale / 1000:
                break
            before = size
        self.q = [a + b for a, b in zip(self.q, z[2:], strict=True)]
        self.p = [a + b for a, b in zip(self.p, impulse, strict=True)]
        # The parabola prolonged: q(τ) at τ = 3/2 and 2, from its values at 0, 1/2 and 1.
        self.z = [(3 * z[2 + j] - 3 * z[j] + z[2 + j]) - z[2 + j] for j in range(2)]
        self.z += [(-8 * z[j] + 6 * z[2 + j]) - z[2 + j] for j in range(2)]


def by_hand(digits, steps):
    """Seconds, states and iterations of the comparator, at the working precision of the library."""
    reals = Digits(digits)
    with reals.working():
        q, p, h, g = reals.array(Q0), reals.array(P0), reals.array(H).item(), reals.array("9.81").item()
        solver = ByHand(list(q), list(p), h, g)
        clock = time.process_time()
        for _ in range(steps):
            solver.step()
        return time.process_time() - clock, [*solver.q, *solver.p], solver.iterations


def library(digits, steps, method="simpson"):
    """The same for the library, preparation and first step included."""
    clock = time.process_time()
    path = la.integrate(SYSTEM, method, Q0, P0, h=H, steps=steps, digits=digits)
    return time.process_time() - clock, [*path.q[-1], *path.p[-1]], path.stats.get("newton_iterations", 0)


def main() -> None:
    print(f"Double pendulum, h = 1/100. mpmath {mpmath.__version__} with backend {mpmath.libmp.BACKEND}.\n")
    print("Simpson, side by side (the best of three of each):")
    print(
        f"{'digits':>7} {'mpmath µs/step':>15} {'here µs/step':>13} {'ratio':>6} {'iterations':>12} {'difference':>11}"
    )
    library(64, 5)
    for digits, steps in ((30, 50), (64, 50), (200, 30), (1000, 10)):
        runs = [(by_hand(digits, steps), library(digits, steps)) for _ in range(3)]
        theirs, ours = min(a[0] for a, _ in runs), min(b[0] for _, b in runs)
        (_, x, i), (_, y, k) = runs[0]
        with mpmath.workdps(digits + 9):
            difference = mpmath.nstr(max(abs(a - b) for a, b in zip(x, y, strict=True)), 2)
        counts = f"{i / steps:.1f} / {k / steps:.1f}"
        print(
            f"{digits:7d} {theirs / steps * 1e6:15.0f} {ours / steps * 1e6:13.0f} {theirs / ours:6.1f} "
            f"{counts:>12} {difference:>11}"
        )
    print("\nCost of a step in µs, against digits and degree (PsNsQ2sGau):")
    degrees = (1, 2, 3, 4, 6, 8, 10)
    print(f"{'digits':>7}" + "".join(f"{f's = {s}':>9}" for s in degrees))
    for digits in (30, 64, 100, 200, 500, 1000):
        row = [min(library(digits, 30, f"P{s}N{s}Q{2 * s}Gau")[0] for _ in range(2)) / 30 * 1e6 for s in degrees]
        print(f"{digits:7d}" + "".join(f"{x:9.0f}" for x in row))


if __name__ == "__main__":
    main()
