"""The motions that benchmarks/peers.py compares on, and their equations for programs that take no Lagrangian.

A field is written once, for any arithmetic: `x` has sin, cos, inverse_cube(r²) = r⁻³ and number(c), a constant of the
problem, and y is a sequence of components. It serves heyoka's expressions, JAX, and SciPy (through SymPy and Numba).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import leastaction as la

SAMPLES = 4  # times at which the error is measured; the last is the end, whose binary fractions are exact


@dataclass(frozen=True)
class Motion:
    """A problem, how long it is followed, and its equations y' = field(x, y), y(0) = start, whose first n are q."""

    name: str
    problem: Any
    span: float  # over which errors are measured
    timed: float  # over which times are measured, where the step is the program's own choice
    stage: float  # steps of PsNsQ2sGau are at most s times this
    reference: tuple[int, int]  # degree and number of steps of the run at many digits
    field: Callable[[Any, Sequence[Any]], list[Any]]
    start: NDArray[np.float64]
    masses: tuple[float, ...] = ()  # of bodies that attract each other with G, for REBOUND
    G: float = 1.0

    def exact_start(self, number: Callable[[float], Any]) -> list[Any]:
        """The same start with velocities p/m that are not rounded: what the doubles q, p, m mean."""
        if not self.masses:
            return [number(value) for value in self.start]
        dimensions = self.n // len(self.masses)
        q, p, m = self.problem.q0, self.problem.p0, np.repeat(self.masses, dimensions)
        return [*map(number, q), *(number(a) / number(b) for a, b in zip(p, m, strict=True))]

    @property
    def n(self) -> int:
        return self.problem.system.n

    @property
    def times(self) -> NDArray[np.float64]:
        return self.span * np.arange(1, SAMPLES + 1) / SAMPLES

    def error(self, q: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
        """The largest error of a coordinate at any of the times, relative to its largest value, or to 1 if less."""
        return float((np.abs(q - exact) / np.maximum(1, np.abs(exact).max(axis=0))).max())


def attraction(masses: Sequence[float], G: float, dimensions: int) -> Callable[[Any, Sequence[Any]], list[Any]]:
    """y = (q, v) of bodies that attract each other."""

    def field(x: Any, y: Sequence[Any]) -> list[Any]:
        mu = [x.number(G) * x.number(m) for m in masses]
        count = dimensions * len(mu)
        q, v = [y[i] for i in range(count)], [y[i] for i in range(count, 2 * count)]
        terms: list[list[Any]] = [[] for _ in range(count)]
        for i, j in combinations(range(len(mu)), 2):
            d = [q[dimensions * j + k] - q[dimensions * i + k] for k in range(dimensions)]
            w = x.inverse_cube(sum(z * z for z in d[1:]) + d[0] * d[0])
            for k, z in enumerate(d):
                terms[dimensions * i + k].append(mu[j] * (w * z))
                terms[dimensions * j + k].append(-mu[i] * (w * z))
        return v + [sum(each[1:], each[0]) for each in terms]

    return field


def bodies(name: str, masses: Sequence[float], G: float, dimensions: int, **options: Any) -> Motion:
    problem = la.problems.get(name)
    field = attraction(masses, G, dimensions)
    start = np.concatenate([problem.q0, problem.p0 / np.repeat(masses, dimensions)])
    return Motion(name, problem, field=field, start=start, masses=tuple(masses), G=G, **options)


def kepler() -> Motion:
    def field(x: Any, y: Sequence[Any]) -> list[Any]:
        w = x.inverse_cube(y[0] * y[0] + y[1] * y[1])
        return [y[2], y[3], -(w * y[0]), -(w * y[1])]

    problem = la.problems.get("kepler")
    start = np.concatenate([problem.q0, problem.p0])
    return Motion("kepler", problem, 32.0, 640.0, 0.05, (16, 320), field, start)


def outer_solar_system() -> Motion:
    params = la.problems.get("outer-solar-system").params
    masses = [value for key, value in params.items() if key != "G"]
    return bodies("outer-solar-system", masses, params["G"], 3, span=1e5, timed=1e6, stage=160.0, reference=(12, 280))


def pleiades() -> Motion:
    return bodies(
        "pleiades", [float(m) for m in range(1, 8)], 1.0, 2, span=3.0, timed=3.0, stage=1 / 300, reference=(12, 1500)
    )


def pendulum(name: str, span: float, reference: tuple[int, int]) -> Motion:
    problem = la.problems.get(name)

    def field(x: Any, y: Sequence[Any]) -> list[Any]:
        l, g = x.number(problem.params["l1"]), x.number(problem.params["g"])
        q1, q2, p1, p2 = y[0], y[1], y[2], y[3]
        c = x.cos(q1 - q2)
        det = l * l * (2.0 - c * c)
        v1, v2 = (p1 - c * p2) / det, (2.0 * p2 - c * p1) / det
        s = l * l * v1 * v2 * x.sin(q1 - q2)
        return [v1, v2, -s - 2.0 * g * l * x.sin(q1), s - g * l * x.sin(q2)]

    start = np.concatenate([problem.q0, problem.p0])
    return Motion(name, problem, span, 200.0, 0.04, reference, field, start)


def henon_heiles() -> Motion:
    def field(x: Any, y: Sequence[Any]) -> list[Any]:
        return [y[2], y[3], -y[0] - 2.0 * (y[0] * y[1]), y[1] * y[1] - y[1] - y[0] * y[0]]

    problem = la.problems.get("henon-heiles")
    start = np.concatenate([problem.q0, problem.p0])
    return Motion("henon-heiles", problem, 100.0, 2000.0, 0.4, (16, 240), field, start)


def lagrange_top() -> Motion:
    """p_φ and p_ψ are constants, so that y = (φ, θ, ψ, p_θ)."""
    problem = la.problems.get("lagrange-top")
    p_theta = problem.p0[1]

    def field(x: Any, y: Sequence[Any]) -> list[Any]:
        m, g, l, I, I3 = (x.number(problem.params[name]) for name in ("m", "g", "l", "I", "I3"))
        p_phi, _, p_psi = (x.number(float(p)) for p in problem.p0)
        mu = m * g * l
        c, s = x.cos(y[1]), x.sin(y[1])
        rate = (p_phi - p_psi * c) / (I * (s * s))
        return [rate, y[3] / I, p_psi / I3 - c * rate, (mu + I * (rate * rate) * c - p_psi * rate) * s]

    return Motion("lagrange-top", problem, 10.0, 100.0, 0.05, (16, 400), field, np.concatenate([problem.q0, [p_theta]]))


def motions() -> dict[str, Motion]:
    """All of them, by name."""
    found = (
        kepler(),
        outer_solar_system(),
        pleiades(),
        pendulum("double-pendulum", 20.0, (16, 600)),
        pendulum("double-pendulum-chaotic", 4.0, (16, 800)),
        henon_heiles(),
        lagrange_top(),
    )
    return {motion.name: motion for motion in found}
