"""The cases on which `judge.py` compares two states of the library, through public names alone.

A system stands with its starts: `start(x)` is a state for every x in [0, 1]; x = 0 is that of the only trajectory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import leastaction as la

System = tuple[Any, Callable[[float], Mapping[str, Any]]]
Options = Callable[[int], dict[str, Any]]  # of la.integrate, by the number of steps


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], System]
    method: Any
    h: float
    options: Options = lambda steps: {}
    lanes: int = 0  # trajectories side by side; 0: one, alone
    call: Mapping[str, Any] | None = None  # what is timed is a whole call of la.integrate, of this length
    most: int = 10**7  # steps of a run: later ones cannot be solved
    quick: bool = False  # of those that --quick takes

    def start(self) -> Callable[[int, int], Any]:
        """A function (steps, stored) ↦ path: so many steps, or calls, of which so many states are stored."""
        system, start = self.make()
        method = self.method() if callable(self.method) else self.method
        if self.lanes:
            states = [start(k / self.lanes) for k in range(self.lanes)]
            begin = {name: np.array([state[name] for state in states]) for name in states[0]}
        else:
            begin = dict(start(0.0))

        def run(steps: int, stored: int = 1) -> Any:
            how = {"h": self.h, "every": max(1, steps // stored), **self.options(steps), **begin}
            if self.lanes:
                return la.ensemble(system, method, steps=steps, **how)
            if self.call is None:
                return la.integrate(system, method, steps=steps, **how)
            for _ in range(steps):
                path = la.integrate(system, method, **how | {"every": 1}, **self.call)
            return path

        return run


# Systems -------------------------------------------------------------------------------------------------------------


def of(name: str, **settings: Any) -> Callable[[], System]:
    """A problem of the catalogue; its neighbours have other momenta."""

    def make() -> System:
        problem = la.problems.get(name, **settings)
        return problem.system, lambda x: {"q0": problem.q0, "p0": problem.p0 * (1 + 0.02 * x)}

    return make


def double_pendulum(q, v, m, l, g):
    T = m * l**2 * (v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    V = -m * g * l * (2 * np.cos(q[0]) + np.cos(q[1]))
    return T - V


def swinging(a: float, b: float, **terms: Any) -> Callable[[], System]:
    """A double pendulum let go at angles (a, b)."""

    def make() -> System:
        params = {"m": 1.0, "l": 0.25, "g": 9.81, **({"c": 1e-6, "u": 1e-4} if terms else {})}
        if "inputs" in terms:
            del params["u"]
        system = la.Lagrangian(double_pendulum, n=2, params=params, **terms)
        return system, lambda x: {"q0": [a + 0.1 * x, b - 0.1 * x], "v0": [0.0, 0.0]}

    return make


def joints(t, q, v, c, u):
    """Friction in both joints, and a motor in the first."""
    slip = v[1] - v[0]
    return np.array([-c * v[0] + c * slip + u * np.sin(2 * t), -c * slip])


def steady(q, v, c, u):
    slip = v[1] - v[0]
    return np.array([-c * v[0] + c * slip + u, -c * slip])


def hanging(n: int) -> Callable[[], System]:
    """A chain of n pendulums in their angles: a dense mass."""

    def chain(q, v, g):
        x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
        return 0.5 * np.sum(x**2 + y**2) + g * np.sum(np.cumsum(np.cos(q)))

    def make() -> System:
        system = la.Lagrangian(chain, n=n, params={"g": 9.81})
        return system, lambda x: {"q0": np.linspace(0.5, 1.0 + 0.1 * x, n), "v0": np.zeros(n)}

    return make


def springs(n: int, k: float) -> Callable[[], System]:
    """Masses between walls; springs that harden."""

    def L(q, v, k):
        d = np.concatenate([q[:1], np.diff(q), -q[-1:]])
        return 0.5 * v @ v - 0.5 * k * np.sum(d**2) - 0.25 * np.sum(d**4)

    q0 = np.random.default_rng(1).normal(0, 0.1, n)
    return lambda: (la.Lagrangian(L, n=n, params={"k": k}), lambda x: {"q0": q0 * (1 + x), "v0": np.zeros(n)})


def coupled(n: int, firm: float) -> Callable[[], System]:
    """Pendulums side by side; with h = 0.5, h times the highest frequency is `firm`."""

    def L(q, v, k):
        return 0.5 * v @ v + np.sum((1 + 0.1 * np.sin(np.arange(n))) * np.cos(q)) - 0.5 * k * np.sum(np.diff(q) ** 2)

    def make() -> System:
        system = la.Lagrangian(L, n=n, params={"k": firm**2})
        return system, lambda x: {"q0": np.full(n, 0.5 + 0.1 * x), "v0": np.zeros(n)}

    return make


def random_springs(n: int, s: int, firm: float, quartic: bool) -> Callable[[], System]:
    """Springs between random pairs and a dense mass; `firm` is about the highest frequency."""

    def make() -> System:
        rng = np.random.default_rng([n, s])
        A, pairs = rng.standard_normal((n, n)), rng.integers(0, n, (2 * n, 2))
        i, j = pairs[pairs[:, 0] != pairs[:, 1]].T.tolist()
        M, k = np.eye(n) + 0.5 * A @ A.T / n, rng.uniform(0.2, 1, len(i)) * firm**2 / 6

        def L(q, v):
            d = q[i] - q[j]
            V = 0.05 / firm * np.sum(k * d**4) + 0.1 * np.sum(q**2) if quartic else 0.7 * np.sum(np.sin(q))
            return 0.5 * v @ M @ v - 0.5 * np.sum(k * d**2) - V

        q0, v0 = rng.uniform(-1, 1, (2, n))
        return la.Lagrangian(L, n=n), lambda x: {"q0": q0 * (1 - 0.1 * x), "v0": v0}

    return make


def points(q, v, m1, m2, g):
    return 0.5 * m1 * (v[:2] @ v[:2]) + 0.5 * m2 * (v[2:] @ v[2:]) - g * (m1 * q[1] + m2 * q[3])


def rods(q, l1, l2):
    return np.array([q[:2] @ q[:2] - l1**2, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - l2**2])


def plane() -> System:
    """The double pendulum as two points on two rods."""
    system = la.Lagrangian(points, 4, {"m1": 1.0, "m2": 2.0, "g": 9.81, "l1": 1.0, "l2": 0.7}, constraints=rods)

    def start(x: float) -> dict[str, Any]:
        a, b = 0.3 + 0.1 * x, 0.2
        q0 = [np.sin(a), -np.cos(a), np.sin(a) + 0.7 * np.sin(b), -np.cos(a) - 0.7 * np.cos(b)]
        return {"q0": q0, "v0": [0.0] * 4}

    return system, start


def lattice(n: int) -> Callable[[], System]:
    """The chain of Fermi, Pasta, Ulam and Tsingou as a sum over rows."""

    def make() -> System:
        i, k = np.arange(n - 1), np.arange(n)
        spring = lambda q, v: -0.5 * (q[1] - q[0]) ** 2 - 0.25 * (q[1] - q[0]) ** 4  # noqa: E731
        terms = [
            la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(n)),
            la.Term(spring, over=np.stack([i, i + 1], 1)),
            la.Term(lambda q, v: -0.5 * q[0] ** 2, over=[0, n - 1]),
        ]
        q0 = 0.5 * np.sin(np.pi * n * 0.3 * (k + 1) / (n + 1)) + 0.2 * np.sin(0.37 * k)
        return la.Lagrangian.sum(terms, n=n), lambda x: {"q0": q0 * (1 + 0.1 * x), "p0": np.zeros(n)}

    return make


def rods_of_terms(count: int) -> Callable[[], System]:
    """A chain of rods in Cartesian coordinates, as terms with constraints."""

    def make() -> System:
        xy = np.arange(2 * count).reshape(count, 2)
        pairs, rod = np.concatenate([xy[:-1], xy[1:]], axis=1), lambda q: (q[2:] - q[:2]) @ (q[2:] - q[:2])
        terms = [
            la.Term(lambda q, v: 0.5 * (v @ v) - 9.81 * q[1], over=xy),
            la.Term(over=xy[:1], constraints=lambda q: (q @ q - 1) / 2),
            la.Term(over=pairs, constraints=lambda q: (rod(q) - 1) / 2),
        ]
        angles = np.pi / 6 + 0.3 * np.sin(np.arange(count))
        q = np.stack([np.cumsum(np.sin(angles)), -np.cumsum(np.cos(angles))], axis=1).ravel()
        system = la.Lagrangian.sum(terms, n=2 * count)
        q0, v0 = la.project(system, q, np.zeros(2 * count))
        return system, lambda x: {"q0": q0, "v0": v0}

    return make


def bodies(count: int) -> Callable[[], System]:
    """A cluster of equal masses, all pairs."""

    def make() -> System:
        rng = np.random.default_rng(0)
        Q, V = rng.normal(0, 1, (count, 3)), rng.normal(0, 0.3, (count, 3))
        ball = la.problems.n_body(np.full(count, 1 / count), Q, V, softening=0.05)
        return ball.system, lambda x: {"q0": ball.q0, "p0": ball.p0}

    return make


def linear(n: int) -> Callable[[], System]:
    def make() -> System:
        K = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
        q0 = np.sin(np.arange(n))
        return la.Quadratic(np.eye(n), K), lambda x: {"q0": q0, "p0": np.zeros(n)}

    return make


def distance(q):
    return np.sqrt(q @ q)


def between(q):
    """The pace of Arenstorf's orbit, by the distances from earth and moon."""
    mu = 0.012277471
    return np.sqrt((q[0] + mu) ** 2 + q[1] ** 2) * np.sqrt((q[0] - 1 + mu) ** 2 + q[1] ** 2)


def wall(q):
    return q[0] + 0.2


def with_(**options: Any) -> Options:
    return lambda steps: options


def event(function: Callable[..., Any], **how: Any) -> Options:
    return lambda steps: {"events": {"x": la.Event(function, **how)}}


def held(steps: int) -> dict[str, Any]:
    return {"inputs": {"u": 1e-4 * np.sin(0.02 * np.arange(steps))}}


def sampled(steps: int) -> dict[str, Any]:
    times = np.linspace(0.0, 0.01 * steps + 1.0, steps // 10 + 10)
    return {"inputs": {"u": la.Samples(times, 1e-4 * np.sin(2 * times))}}


# The table -----------------------------------------------------------------------------------------------------------


def gauss(s: int) -> str:
    return f"P{s}N{s}Q{2 * s}Gau"


def all_cases() -> list[Case]:
    C = Case
    kepler, outer, henon = of("kepler"), of("outer-solar-system"), of("henon-heiles")
    wide, usual = swinging(2.0, 2.5), swinging(np.pi / 4, np.pi / 3)
    driven = swinging(0.6, 0.4, force=steady, inputs={"u": ()})
    turn = 2 * np.pi / 240
    prototype = [
        C("double pendulum, Simpson, 0.01", wide, "simpson", 0.01, quick=True),
        C("double pendulum, P4, 0.02", wide, gauss(4), 0.02, quick=True),
        C("double pendulum, P4, 0.1", swinging(1.0, 1.2), gauss(4), 0.1, quick=True),
        C("Kepler, P8, 0.2", kepler, gauss(8), 0.2, quick=True),
        C("Hénon–Heiles, Störmer–Verlet, 0.05", henon, "stormer-verlet", 0.05, quick=True),
        C("outer planets, P8, 400 d", outer, gauss(8), 400.0, quick=True),
        C("Lagrange top, P4, 0.01", of("lagrange-top"), gauss(4), 0.01, quick=True),
        C("chain of 10, Simpson, 0.002", hanging(10), "simpson", 0.002, quick=True),
        C("stiff springs, n = 10, P3, 0.02", springs(10, 1e4), gauss(3), 0.02, quick=True),
        C("16 double pendulums, P4, 0.02", wide, gauss(4), 0.02, lanes=16, quick=True),
    ]
    readme = [
        C("README: double pendulum, Simpson", usual, "simpson", 0.01, quick=True),
        *(C(f"Kepler, P{s}, {s} × 1/240 orbit", kepler, gauss(s), s * turn) for s in (4, 6, 8, 12, 16)),
        *(C(f"outer planets, P{s}, {s} × 75 d", outer, gauss(s), s * 75.0) for s in (4, 8, 12, 16)),
        C("Pleiades, P8, 1/400", of("pleiades"), gauss(8), 1 / 400, most=1150),
        C("Pleiades, P12, 1/300", of("pleiades"), gauss(12), 1 / 300, most=860),
        C("chaotic double pendulum, P8, 0.05", of("double-pendulum-chaotic"), gauss(8), 0.05),
        C("top with cusps, P8, 0.04", of("lagrange-top-cusps"), gauss(8), 0.04),
        *(
            C(f"degree: double pendulum, {m}", usual, m, 0.01, quick=m == "rk4")
            for m in (*map(gauss, (1, 2, 3, 6, 8, 12, 14)), *("stormer-verlet", "rk4", "rk4-lagrange"), "P3N4Q6Lob")
        ),
        C("chain of 20, Simpson, 0.001", hanging(20), "simpson", 0.001, quick=True),
        C("chain of 50, Simpson, 0.001", hanging(50), "simpson", 0.001),
        C("chain of 20, P4, 0.01", hanging(20), gauss(4), 0.01),
    ]
    growth = [
        *(
            C(f"soft springs, n = {n}, P{s}", coupled(n, 1.0), gauss(s), 0.5, quick=n == 20)
            for n, s in ((5, 3), (20, 4), (60, 2))
        ),
        *(
            C(f"stiff springs, n = {n}, P{s}", coupled(n, 30.0), gauss(s), 0.5, quick=n == 20)
            for n, s in ((5, 3), (20, 4), (60, 2))
        ),
    ]
    growth += [
        C(f"random springs, n = {n}, P{s}", random_springs(n, s, 30.0, False), gauss(s), 1.0)
        for n, s in ((5, 2), (12, 7))
    ]
    growth += [C("random quartic springs, n = 6, P4", random_springs(6, 4, 10.0, True), gauss(4), 1.0)]
    constrained = [
        C("rods, Störmer–Verlet, 0.005", plane, "stormer-verlet", 0.005, quick=True),
        C("rods, Simpson, 0.01", plane, "simpson", 0.01),
        *(C(f"rods, P{s}, 0.01", plane, gauss(s), 0.01, quick=s == 4) for s in (2, 3, 4, 8)),
        C("chain of 10 rods, Simpson, 0.001", of("chain", count=10, theta0="pi/6"), "simpson", 0.001, quick=True),
        C("slider-crank, P3, 0.01", of("slider-crank"), gauss(3), 0.01),
        C("chain of 300 rods, terms, Simpson, 0.002", rods_of_terms(300), "simpson", 0.002),
    ]
    forced = [
        C("no force, Simpson, 0.01", swinging(0.6, 0.4), "simpson", 0.01),
        C("no force, P8, 0.01", swinging(0.6, 0.4), gauss(8), 0.01),
        C("van der Pol, P4, 0.05", of("van-der-pol"), gauss(4), 0.05, quick=True),
        C("van der Pol, P8, 0.2", of("van-der-pol"), gauss(8), 0.2),
        C("damped driven pendulum, P3, 0.02", of("damped-driven-pendulum"), gauss(3), 0.02),
        C("friction and motor, Simpson, 0.01", swinging(0.6, 0.4, force=joints), "simpson", 0.01),
        C("friction and motor, P8, 0.01", swinging(0.6, 0.4, force=joints), gauss(8), 0.01),
        C("torque, P4, 0.01", swinging(0.6, 0.4, force=steady), gauss(4), 0.01),
        C("input held, P4, 0.01", driven, gauss(4), 0.01, held, quick=True),
        C("torque, Simpson, 0.01", swinging(0.6, 0.4, force=steady), "simpson", 0.01),
        C("input sampled, Simpson, 0.01", driven, "simpson", 0.01, sampled),
    ]
    period = {"t_end": la.problems.get("arenstorf").period}
    paced, eccentric = with_(pace=distance), of("kepler", eccentricity="0.9")
    others = [
        C("Kepler e = 0.9, pace, P8", eccentric, gauss(8), 0.15, paced, quick=True),
        C("Kepler e = 0.99, pace auto", of("kepler", eccentricity="0.99"), gauss(8), 0.00024, with_(pace="auto")),
        C(
            "a call: Arenstorf, one period",
            of("arenstorf"),
            gauss(8),
            0.1,
            with_(pace=between),
            call=period,
            quick=True,
        ),
        C("tangent: double pendulum, P4", usual, gauss(4), 0.02, with_(tangent=True), quick=True),
        C("tangent: Kepler, P8", kepler, gauss(8), 0.1, with_(tangent="all")),
        C("event: double pendulum, Simpson", usual, "simpson", 0.01, event(lambda q, p: q[0] - 50)),
        C("event met: double pendulum, P4", usual, gauss(4), 0.02, event(lambda q, p: q[0]), quick=True),
        C("impacts: double pendulum, Simpson", usual, "simpson", 0.01, with_(events={"w": la.Impact(wall)})),
        C("Yoshida of Verlet, Hénon–Heiles", henon, lambda: la.compose("verlet", "yoshida"), 0.05, quick=True),
        C("Suzuki of Simpson, double pendulum", usual, lambda: la.compose("simpson", "suzuki"), 0.02),
        C("lattice of 1,000, Störmer–Verlet", lattice(1000), "stormer-verlet", 0.1, quick=True),
        C("lattice of 1,000, Simpson", lattice(1000), "simpson", 0.1, quick=True),
        C("lattice of 10⁵, Störmer–Verlet", lattice(10**5), "stormer-verlet", 0.1),
        C("lattice of 10⁵, Simpson", lattice(10**5), "simpson", 0.1),
        C("300 bodies, Störmer–Verlet", bodies(300), "stormer-verlet", 1e-3),
        C("M and K, n = 100, P3", linear(100), gauss(3), 0.1),
        C("32 digits: double pendulum, Simpson", usual, "simpson", 0.01, with_(digits=32), quick=True),
        C("32 digits: Kepler, P8", kepler, gauss(8), 0.2, with_(digits=32)),
        C("1,000 members: double pendulum, Simpson", usual, "simpson", 0.01, lanes=1000, quick=True),
        C("1,000 members: Hénon–Heiles, P4, 0.2", henon, gauss(4), 0.2, lanes=1000),
        C("a call: one step, double pendulum, Simpson", usual, "simpson", 0.01, call={"steps": 1}, quick=True),
        C("a call: one step, Kepler, P8", kepler, gauss(8), 0.2, call={"steps": 1}),
    ]
    return [*prototype, *readme, *growth, *constrained, *forced, *others]


def in_lanes(case: Case) -> list[Case]:
    """The case with 16 and with 64 trajectories side by side; none of a case that has no lanes of its own."""
    if case.lanes or case.call or "digits" in case.options(1) or "of 10⁵" in case.name:
        return []
    return [replace(case, name=f"{case.name}, {count} lanes", lanes=count) for count in (16, 64)]
