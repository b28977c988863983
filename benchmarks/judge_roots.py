"""Two states of the library side by side: wrong roots of long steps, and the drift of energy.

    python benchmarks/judge_roots.py OLD NEW [--only roots drift] [--cases WORD …] [--cpu …] [--quick] [--seed 0]

**Roots.** Runs of a few steps from random starts, alone and in lanes: random waves with other parameters in every run,
random Lagrangians as the tests make them, and problems of the catalogue. Every step is judged by itself, from the state
where it began: its root has to be the one that is connected with the motion at h → 0. That root is followed here from
h = 0 in parts that shrink until Newton's iteration contracts well (`followed`), by NumPy and derivatives of its own
(`Jet`): of the library it uses nothing. What is counted, by h ω:

    other    another root than the connected one
    beyond   a root, where the connected one has ended in a fold or a pole
    failed   no root, where the connected one exists
    none     no root, where none is connected

ω is the largest absolute eigenvalue of the linearised motion: at the state where the step begins, and in a second table
the largest one at this state and at the nodes of the connected root.

**Drift.** Slopes of the energy error in 10⁻⁶ ε a step, of systems and starts of tests/helpers/orbits.py: the largest of
the starts with its standard error, and the mean of (slope/error)², which is near 1 without drift; and the mean size of
the random walk at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from judge import HERE, Side, seeded
from numpy.polynomial import Legendre
from numpy.typing import NDArray

TESTS = Path(__file__).parents[1] / "tests" / "helpers"
STEPS = 10  # of a run
LONG = (0.25, 0.6, 1.2, 2.5, 5.0)  # h times the median of ω at the starts
BINS = (0.0, 0.3, 1.0, 2.0, 4.0, 8.0, np.inf)
METHODS = ("midpoint", "simpson", "P2N2Q4Gau", "P3N3Q6Gau", "P3N4Q6Lob", "P4N4Q8Gau", "P8N8Q16Gau")
KINDS = ("steps", "other", "beyond", "failed", "none")
APART = 1e-6  # roots that differ by more, relative to the state, are different ones
USUAL, FINE = (1 / 16, 0.05), (1 / 1024, 0.003)  # of a part Newton's second increment to the first one, and this one
SHORTEST = 1e-6  # part of h: there the connected root ends

Array = NDArray[Any]


# The connected root --------------------------------------------------------------------------------------------------


class Jet(np.lib.mixins.NDArrayOperatorsMixin):
    """A function of N variables at many points: values f (…), gradients g (…, N), Hessians H (…, N, N)."""

    def __init__(self, f: Array, g: Array, H: Array) -> None:
        self.f, self.g, self.H = f, g, H

    def chain(self, f: Array, first: Array, second: Array) -> Jet:
        one, two = np.asarray(first)[..., None], np.asarray(second)[..., None, None]
        return Jet(f, one * self.g, one[..., None] * self.H + two * (self.g[..., :, None] * self.g[..., None, :]))

    def times(self, other: Jet) -> Jet:
        a, b = self, other
        cross = a.g[..., :, None] * b.g[..., None, :]
        H = a.f[..., None, None] * b.H + b.f[..., None, None] * a.H + cross + np.swapaxes(cross, -1, -2)
        return Jet(a.f * b.f, a.f[..., None] * b.g + b.f[..., None] * a.g, H)

    def power(self, k: float) -> Jet:
        x = self.f
        return self.chain(x**k, k * x ** (k - 1.0), k * (k - 1) * x ** (k - 2.0) if k != 1 else 0 * x)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any) -> Any:
        name, jets = ufunc.__name__, [x for x in given if isinstance(x, Jet)]
        for k, x in enumerate(given):
            if isinstance(x, np.ndarray) and x.dtype == object:
                return np.array([ufunc(*given[:k], y, *given[k + 1 :]) for y in x])
        if len(given) == 1:
            return CHAIN[name](self)
        a, b = given
        if name == "power":
            return a.power(float(b))
        if name == "divide":
            return (
                a.times(b.power(-1.0)) if len(jets) == 2 else b.power(-1.0) * a if isinstance(b, Jet) else a * (1 / b)
            )
        if name == "subtract":
            return a + (-1.0) * b
        if name == "add":
            if len(jets) == 2:
                return Jet(a.f + b.f, a.g + b.g, a.H + b.H)
            return Jet(jets[0].f + (b if isinstance(a, Jet) else a), jets[0].g, jets[0].H)
        if len(jets) == 2:
            return a.times(b)
        number = np.asarray(b if isinstance(a, Jet) else a, float)
        return Jet(number * jets[0].f, number[..., None] * jets[0].g, number[..., None, None] * jets[0].H)


def _tanh(x: Jet) -> Jet:
    y = np.tanh(x.f)
    return x.chain(y, 1 - y * y, -2 * y * (1 - y * y))


CHAIN: dict[str, Callable[[Jet], Jet]] = {
    "negative": lambda x: (-1.0) * x,
    "square": lambda x: x.power(2.0),
    "sqrt": lambda x: x.power(0.5),
    "sin": lambda x: x.chain(np.sin(x.f), np.cos(x.f), -np.sin(x.f)),
    "cos": lambda x: x.chain(np.cos(x.f), -np.sin(x.f), -np.cos(x.f)),
    "exp": lambda x: x.chain(np.exp(x.f), np.exp(x.f), np.exp(x.f)),
    "log": lambda x: x.chain(np.log(x.f), 1 / x.f, -1 / x.f**2),
    "tanh": _tanh,
}
for _name, _rule in CHAIN.items():
    setattr(Jet, _name, _rule)  # NumPy calls these for the entries of arrays of objects


class Table(NamedTuple):
    """A member PsNrQu: weights b, basis functions l and derivatives dl at its nodes, (r, s + 1); control points d."""

    b: Array
    l: Array
    dl: Array
    d: Array


@cache
def table(name: str) -> Table:
    name = {"midpoint": "P1N1Q2Gau", "simpson": "P2N3Q4Lob"}.get(name, name)
    s, r, _, family = re.fullmatch(r"P(\d+)N(\d+)Q(\d+)(Gau|Lob)", name).groups()  # type: ignore[union-attr]
    s, r = int(s), int(r)
    if family == "Gau":
        x, b = np.polynomial.legendre.leggauss(r)
    else:
        P = Legendre.basis(r - 1)
        x = np.concatenate([[-1.0], P.deriv().roots().real, [1.0]])
        b = 2 / (r * (r - 1) * P(x) ** 2)
    d = (1 - np.cos(np.pi * np.arange(s + 1) / s)) / 2  # any distinct points from 0 to 1 give the same method
    basis = [Legendre.fit(d, row, s, domain=[0, 1]) for row in np.eye(s + 1)]
    c = (1 + x) / 2
    return Table(b / 2, np.stack([f(c) for f in basis], 1), np.stack([f.deriv()(c) for f in basis], 1), d)


class Motion:
    """L(q, v) at many states, each with its own parameters."""

    def __init__(self, L: Callable[..., Any], n: int, params: dict[str, Any]) -> None:
        self.L, self.n, self.params = L, n, params

    def of(self, which: Array) -> Motion:
        return Motion(self.L, self.n, {k: x[which] if np.ndim(x) else x for k, x in self.params.items()})

    def derivatives(self, q: Array, v: Array) -> tuple[Array, ...]:
        """L_q, L_v and the Hessian by (q, v), for states (B, r, n)."""
        n, one, none = self.n, np.eye(2 * self.n), np.zeros((2 * self.n, 2 * self.n))
        x = np.empty(2 * n, dtype=object)
        x[:] = [Jet((q if i < n else v)[..., i % n], one[i], none) for i in range(2 * n)]
        params = {k: np.moveaxis(w, 0, -1)[..., None] if np.ndim(w) else w for k, w in self.params.items()}
        L = self.L(x[:n], x[n:], **params)
        g, H = (np.broadcast_to(z, q.shape[:2] + z.shape[2:]) for z in (L.g, L.H))
        return g[..., :n], g[..., n:], H

    def velocity(self, q: Array, p: Array) -> Array:
        v = np.zeros_like(q)
        for _ in range(8):
            _, Lv, H = (x[:, 0] for x in self.derivatives(q[:, None], v[:, None]))
            v = v + np.linalg.solve(H[:, self.n :, self.n :], (p - Lv)[..., None])[..., 0]
        return v

    def omega(self, q: Array, v: Array) -> Array:
        """The largest |eigenvalue| of the linearised motion of (q, p), (B, r)."""
        n, (_, _, H) = self.n, self.derivatives(q, v)
        Lqq, Lqv, Lvq, inverse = H[..., :n, :n], H[..., :n, n:], H[..., n:, :n], np.linalg.inv(H[..., n:, n:])
        top = np.concatenate([-inverse @ Lvq, inverse], -1)
        bottom = np.concatenate([Lqq - Lqv @ inverse @ Lvq, Lqv @ inverse], -1)
        return np.abs(np.linalg.eigvals(np.nan_to_num(np.concatenate([top, bottom], -2)))).max(-1)


def followed(
    motion: Motion, method: str, q: Array, p: Array, h: Array, rule: tuple[float, float]
) -> tuple[Array, Array, Array, Array]:
    """(q⁺, p⁺, exists, ω) of the connected roots of B steps; ω the largest one at the start and the nodes.

    The unknowns are w^m = (q^m − q)/h, for which the equations have a limit for h → 0, w^m = d_m v:

        p δ_ν0 + Σ_i b_i (h l_ν(c_i) L_q + l_ν′(c_i) L_v)(q + h Σ_m l_m(c_i) w^m, Σ_m l_m′(c_i) w^m) = 0,  ν = 0 … s−1.
    """
    (contracts, short), (b, l, dl, d) = rule, table(method)
    B, n, s = *q.shape, len(d) - 1
    v = motion.velocity(q, p)
    w, tau, part = v[:, None] * d[1:, None], np.zeros(B), np.full(B, 1 / 16)
    ahead, sense = np.zeros_like(w), np.zeros(B)

    def equations(which: Array, w: Array, now: Array) -> tuple[Array, Array, Array]:
        """R, J, and the derivative of R by τ, where the step is τ h."""
        k = (h[which] * now)[:, None, None]
        shift = np.einsum("im,bmn->bin", l[:, 1:], w)
        x, u = q[which, None] + k * shift, np.einsum("im,bmn->bin", dl[:, 1:], w)
        Lq, Lv, H = motion.of(which).derivatives(x, u)
        weights = b[:, None] * np.stack([l[:, :-1], dl[:, :-1]])  # (2, r, s)
        R = k * np.einsum("iv,bin->bvn", weights[0], Lq) + np.einsum("iv,bin->bvn", weights[1], Lv)
        R[:, 0] += p[which]
        k = k[..., None, None]
        rows = k * weights[0][..., None, None] * H[:, :, None, :n] + weights[1][..., None, None] * H[:, :, None, n:]
        moved = np.einsum("bivnk,bik->bvn", rows[..., :n], shift)  # by the places, which move with τ
        by = h[which, None, None] * (np.einsum("iv,bin->bvn", weights[0], Lq) + moved)
        J = np.einsum("bivnk,im->bvnmk", rows[..., :n], l[:, 1:]) * k
        J += np.einsum("bivnk,im->bvnmk", rows[..., n:], dl[:, 1:])
        return R.reshape(-1, s * n, 1), J.reshape(-1, s * n, s * n), by.reshape(-1, s * n, 1)

    def solved(J: Array, R: Array) -> tuple[Array, Array]:
        """−J⁻¹R and the sign of det J; a matrix that is singular or not finite has the sign 0."""
        good = np.isfinite(J).all((1, 2)) & np.isfinite(R).all((1, 2))
        J = np.where(good[:, None, None], J, np.eye(s * n))
        signs = np.linalg.slogdet(J)[0] * good
        J = np.where((signs == 0)[:, None, None], np.eye(s * n), J)
        return -np.linalg.solve(J, np.where(good[:, None, None], R, 0.0)).reshape(-1, s, n), signs

    everyone = np.arange(B)
    _, J, by = equations(everyone, w, tau)
    ahead, sense = solved(J, by)
    going = everyone
    while len(going):
        then = np.minimum(1.0, tau[going] + part[going])
        new = w[going] + (then - tau[going])[:, None, None] * ahead[going]
        fine, before, done = np.ones(len(going), bool), np.full(len(going), short), np.zeros(len(going), bool)
        for _ in range(6):
            R, J, by = equations(going, new, then)
            dw, signs = solved(J, R)
            size, reach = (h[going] * then * np.abs(x).max((1, 2)) for x in (dw, new))
            floor = 1e-12 * (1 + np.abs(q[going]).max(1) + reach)
            fine &= (signs == sense[going]) & (size <= np.maximum(before, floor))
            new, before, done = new + np.where(fine, 1.0, 0.0)[:, None, None] * dw, contracts * size, size <= floor
            if (done | ~fine).all():
                break
        fine &= done
        along, _ = solved(J, by)
        at = going[fine]
        w[at], tau[at], ahead[at] = new[fine], then[fine], along[fine]
        part[at] *= 1.5
        part[going[~fine]] /= 4
        going = going[(tau[going] < 1) & (part[going] > SHORTEST)]
    k = (h * tau)[:, None, None]
    x, u = q[:, None] + k * np.einsum("im,bmn->bin", l[:, 1:], w), np.einsum("im,bmn->bin", dl[:, 1:], w)
    Lq, Lv, _ = motion.derivatives(x, u)
    after = h[:, None] * np.einsum("i,bin->bn", b * l[:, -1], Lq) + np.einsum("i,bin->bn", b * dl[:, -1], Lv)
    largest = motion.omega(np.concatenate([q[:, None], x], 1), np.concatenate([v[:, None], u], 1))
    return q + h[:, None] * w[:, -1], after, tau >= 1, largest.max(1)


# Families of systems -------------------------------------------------------------------------------------------------


class Family(NamedTuple):
    """Lagrangians with n coordinates; `draw` gives parameters, q and v of B runs."""

    name: str
    L: Callable[..., Any]
    n: int
    draw: Callable[[np.random.Generator, int], tuple[dict[str, Array], Array, Array]]


def waves(kind: str, n: int, count: int = 3) -> Family:
    """A potential of random waves or of quartic springs; a mass that depends on q; a magnetic term."""

    def phase(q, k, f, j):
        return sum((k[j, i] * q[i] for i in range(n)), 0.0) + f[j]

    def L(q, v, a, k, f):
        if kind == "quartic":
            V = sum(0.25 * a[j] * phase(q, k, f, j) ** 4 for j in range(count))
        else:
            V = sum(a[j] * np.cos(phase(q, k, f, j)) for j in range(count))
        T = sum(0.5 * v[i] ** 2 for i in range(n))
        if kind == "mass":
            T = T + sum(0.3 * np.sin(phase(q, k, f, 0) + i) * v[i] ** 2 for i in range(n))
        if kind == "magnetic":
            T = T + sum(a[i] * np.sin(q[(i + 1) % n] + f[i]) * v[i] for i in range(n))
        return T - V

    def draw(rng, B):
        given = {"a": rng.uniform(0.2, 1.0, (B, count)), "k": rng.normal(0, 1.5, (B, count, n))}
        return given | {"f": rng.uniform(0, 2 * np.pi, (B, count))}, *rng.normal(0, 1.0, (2, B, n))

    return Family(f"{kind} of {n}", L, n, draw)


def families(seed: int) -> Iterator[Family]:
    """All of them. The library is needed for the catalogue's Lagrangians alone."""
    import leastaction as la

    sys.path[:0] = [str(TESTS)]
    from orbits import top
    from random_lagrangians import Words, random_lagrangian

    for kind, n in (
        ("waves", 1),
        ("waves", 2),
        ("waves", 3),
        ("mass", 2),
        ("magnetic", 2),
        ("quartic", 2),
        ("mass", 1),
    ):
        yield waves(kind, n)
    for k in range(3):
        n = 1 + k
        L = random_lagrangian(np.random.default_rng([seed, k]), n)
        yield Family(
            f"random {k}", partial(L, Words(np)), n, lambda rng, B, n=n: ({}, *rng.uniform(-1.5, 1.5, (2, B, n)))
        )
    for name, spread in (("pendulum", 2.0), ("henon-heiles", 0.3), ("kepler", 0.15), ("charged-particle", 1.0)):
        yield catalogued(la.problems.get(name), spread)
    yield catalogued(la.problems.get("double-pendulum"), 1.5, 6.0)
    yield Family("top", top, 3, lambda rng, B: ({}, *(rng.normal(x, 0.3, (B, 3)) for x in ([0.7, 0, 0], [0, 0.3, 4]))))


def catalogued(problem: Any, spread: float, speed: float | None = None) -> Family:
    """A problem of the catalogue; starts are spread about its own."""
    n, v0 = len(problem.q0), problem.system.velocity(problem.q0, problem.p0)

    def draw(rng, B):
        return {}, rng.normal(problem.q0, spread, (B, n)), rng.normal(v0, speed or spread, (B, n))

    return Family(problem.name, partial(problem.system.fn, **problem.params), n, draw)


# One state of the library --------------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """Steps that the library did, from (q, p) to `end` = (q⁺, p⁺), NaN where it failed."""

    alone: Array  # or in lanes
    h: Array
    run: Array  # the row of its parameters
    q: Array
    p: Array
    end: Array

    def of(self, which: Array) -> Steps:
        return Steps(*(x[which] for x in self))


def done(family: Family, method: str, seed: int, B: int) -> tuple[Motion, Steps, Counter[str]]:
    """All steps of the library's runs by a method, and how many were continued."""
    import leastaction as la

    rng = np.random.default_rng([seed, *family.name.encode(), *method.encode()])
    params, q0, v0 = family.draw(rng, B)
    motion = Motion(family.L, family.n, params)
    usual = float(np.median(motion.omega(q0[:, None], v0[:, None])))
    p0 = motion.derivatives(q0[:, None], v0[:, None])[1][:, 0]
    system = la.Lagrangian(family.L, n=family.n, params={k: x[0] for k, x in params.items()})
    continued: Counter[str] = Counter()
    found = []

    def single(i: int, h: float) -> Any:
        try:
            own = {k: x[i] for k, x in params.items()}
            return la.integrate(system, method, q0[i], p0[i], params=own, h=h, steps=STEPS)
        except la.StepFailed as failure:
            return failure.path

    for h in (x / usual for x in LONG):
        paths = la.ensemble(system, method, q0, p0, params=params, h=h, steps=STEPS, threads=1)
        few = [single(i, h) for i in range(max(2, B // 4))]
        q, p = np.full((2, B + len(few), STEPS + 1, family.n), np.nan)
        q[:B], p[:B] = paths.q, paths.p
        for i, path in enumerate(few):
            q[B + i, : len(path.q)], p[B + i, : len(path.p)] = path.q, path.p
        continued["lanes"] += int(paths.stats.get("continued", 0))
        continued["alone"] += int(sum(path.stats.get("continued", 0) for path in few))
        state = np.concatenate([q, p], 2)
        run, step = np.nonzero((np.abs(state[:, :-1]) < 1e3).all(2))  # the others are far away, or after a failure
        given = run >= B, np.full(len(run), h), run % B, q[run, step], p[run, step], state[run, step + 1]
        found.append(Steps(*given))
    return motion, Steps(*map(np.concatenate, zip(*found, strict=True))), continued


def verdicts(motion: Motion, method: str, steps: Steps, rule: tuple[float, float]) -> tuple[Array, Array]:
    """Which of KINDS each step is, and the largest ω in it."""
    q, p, exists, largest = followed(motion.of(steps.run), method, steps.q, steps.p, steps.h, rule)
    far = np.abs(steps.end - np.concatenate([q, p], 1)).max(1) >= APART * (1 + np.abs(steps.end).max(1))
    return np.where(np.isfinite(steps.end).all(1), np.where(exists, far, 2), np.where(exists, 3, 4)), largest


def judged(words: list[str], seed: int, quick: bool) -> dict[str, Any]:
    """Counts by way, by ω and by bin; the wrong roots below h ω = 1."""
    counts: Counter[str] = Counter()
    worst: list[str] = []
    for k, family in enumerate(families(seed)):
        for method in METHODS[k % 3 :: 3][:2] if quick and not words else METHODS:
            if words and not any(word in f"{family.name}, {method}" for word in words):
                continue
            motion, steps, continued = done(family, method, seed, 12 if quick else 48)
            with np.errstate(all="ignore"):
                here = motion.of(steps.run)
                omega = here.omega(steps.q[:, None], here.velocity(steps.q, steps.p)[:, None])[:, 0]
                what, largest = verdicts(motion, method, steps, USUAL)
                odd = np.nonzero(what)[0]  # a fold is jumped over by the usual rule in some 2 of 10⁴ long steps
                what[odd], largest[odd] = verdicts(motion, method, steps.of(odd), FINE)
            ways = np.where(steps.alone, "alone", "lanes")
            for by, size in (("state", steps.h * omega), ("step", steps.h * largest)):
                for way, k, kind in zip(ways, np.searchsorted(BINS, size) - 1, what, strict=True):
                    counts.update([f"{way} {by} {k} steps", *([f"{way} {by} {k} {KINDS[kind]}"] if kind else [])])
            counts.update({f"{way} continued": count for way, count in continued.items()})
            for i in np.nonzero(((what == 1) | (what == 2)) & (steps.h * largest < 1))[0]:
                start = f"h = {steps.h[i]!r}, q = {steps.q[i].tolist()}, p = {steps.p[i].tolist()}, run {steps.run[i]}"
                worst.append(f"{KINDS[what[i]]}: {family.name}, {method}, {ways[i]}, {start}")
            print(family.name, method, file=sys.stderr, flush=True)
    return {"counts": counts, "worst": worst}


# The drift -----------------------------------------------------------------------------------------------------------

DRIFTS = (
    *(("oscillators", h) for h in (0.1, 0.05)),
    *(("anharmonic", h) for h in (0.125, 0.05)),
    *(("henon-heiles", h) for h in (0.1, 0.05)),
    *(("pendulum", h) for h in (0.125, 0.05)),
    *(("kepler", h) for h in (0.1, 0.08)),
    *((name, 0.1) for name in ("charge", "uniform", "double-pendulum", "top", "forced", "paced", "sum")),
    ("rod", 0.05),
)


def drifts(words: list[str], quick: bool) -> list[list[Any]]:
    sys.path[:0] = [str(TESTS)]
    from orbits import slopes

    rows = []
    for alone in (False, True):
        for name, h in DRIFTS:
            title = f"{name}, h = {h}, {'alone' if alone else 'lanes'}"
            if (words and not any(word in title for word in words)) or (alone and name == "sum"):
                continue  # a sum has no lanes
            slow = name in ("rod", "sum", "paced", "forced")
            sizes = {
                "steps": 10_000 if quick or (alone and slow) else 100_000,
                "neighbours": 16 if alone or quick else 64,
            }
            slope, error, walk = slopes(name, "P8N8Q16Gau", h, starts=4, alone=alone, **sizes)
            k = int(np.argmax(np.abs(slope)))
            chi = float(((slope / error) ** 2).mean())
            rows.append([title, f"{slope[k] * 1e6:.0f} ± {error[k] * 1e6:.0f}", f"{chi:.1f}", f"{walk.mean():.1f}"])
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


# Both states ---------------------------------------------------------------------------------------------------------


def show_roots(answers: list[dict[str, Any]]) -> None:
    for by, title in (("state", "at the state"), ("step", "in the step")):
        print(
            f"\n| way | h ω {title} | " + " | ".join(f"{kind}: old / new" for kind in KINDS) + " |\n" + "|---" * 7 + "|"
        )
        for way in ("alone", "lanes"):
            for k, least in enumerate(BINS[:-1]):
                cells = [
                    " / ".join(f"{x['counts'].get(f'{way} {by} {k} {kind}', 0)}" for x in answers) for kind in KINDS
                ]
                if cells[0] != "0 / 0":
                    print(f"| {way} | {least:g} to {BINS[k + 1]:g} | " + " | ".join(cells) + " |")
    for way in ("alone", "lanes"):
        print(f"\ncontinued, {way}: " + " / ".join(f"{x['counts'].get(f'{way} continued', 0)}" for x in answers))
    for word, answer in zip(("old", "new"), answers, strict=True):
        for line in answer["worst"][:20]:
            print(f"- {word}, {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", metavar="OLD NEW")
    parser.add_argument("--only", nargs="+", choices=("roots", "drift"), default=["roots", "drift"])
    parser.add_argument("--cases", nargs="*", default=[], help="parts of “family, method” or of “system, h = …, way”")
    parser.add_argument("--cpu", help="for LEASTACTION_CPU, such as x86-64-v3")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--of", choices=("roots", "drift"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.of:
        warnings.simplefilter("ignore")
        found = (
            judged(given.cases, given.seed, given.quick) if given.of == "roots" else drifts(given.cases, given.quick)
        )
        print(json.dumps(found))
        return
    if len(given.checkouts) != 2:
        parser.error(f"expected two checkouts, OLD and NEW, got {len(given.checkouts)}")
    sides = [Side(checkout, given.cpu) for checkout in given.checkouts]
    options = ["--seed", str(given.seed), *(["--quick"] * given.quick), "--cases", *given.cases]
    for what in given.only:
        answers = [
            json.loads(side.call("--of", what, *options, cache=seeded(side.seed, HERE / "roots"), file=__file__))
            for side in sides
        ]
        if what == "roots":
            show_roots(answers)
        else:
            print("\n| system | slope, 10⁻⁶ ε a step: old | new | χ² | walk, ε |\n|---|---|---|---|---|")
            for old, new in zip(*answers, strict=True):
                print(f"| {old[0]} | {old[1]} | {new[1]} | {old[2]} / {new[2]} | {old[3]} / {new[3]} |")


if __name__ == "__main__":
    main()
