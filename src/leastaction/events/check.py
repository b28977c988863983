"""What native code asks after every step: could an event lie in it?

With x = 2τ − 1 ∈ [−1, 1] the polynomial of a step is q(x) = Σ_j a_j x^j, so that

    |q(x) − a₀| ≤ Σ_{j≥1} |a_j| + α,      |v(x) − 2a₁/h| ≤ (2/h) (Σ_{j≥2} j |a_j| + (s + 1) α).

α stands for the terms of degree s + 1 and more, which the polynomial does not have. The leading coefficient changes
from one step to the next by about (s + 1) times the next coefficient, and α is all of that change. Where there is no
step before (its coefficients count as zero), and with nodes that do not see the highest degree (u < 2s − 1), α is the
leading coefficient itself.

The momentum follows from the impulse J of the step and a ball of forces f over the box of (t, q, v), of radius ρ: both
f and its mean J/h are in the ball (inputs move as far as they are apart at the nodes), so that

    |p(x) − (p + J/2)| ≤ |J|/2 + h ρ/2.

All three are taken a little larger, for the motion just beyond the end of the step: an event that is there by the
rounding of time belongs to the step. On the box of (t, q, p) each event function is enclosed (`enclosure`): if its ball
does not contain zero, there is no event. `isolate` looks closely at all other steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events.curve import FURTHER
from leastaction.events.kinds import Watch
from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lagrange_basis, rounded
from leastaction.numbers.precision import mpmath_bits
from leastaction.program import Builder, Program, Value
from leastaction.program.enclosure import ROUNDING, radii

FloatArray = NDArray[np.float64]


@lru_cache(maxsize=64)
def midpoint_coefficients(method: Galerkin) -> FloatArray:
    """A with a_j = Σ_ν A_jν z^ν (and q, for j = 0), j = 0 … s, ν = 1 … s."""
    import mpmath

    s = method.s
    with mpmath_bits(BITS):
        points = [mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * s + 2)) for k in range(s + 1)]
        values, _ = lagrange_basis(list(method.exact_table()["d"]), [(1 + x) / 2 for x in points])
        vander = mpmath.matrix([[x**j for j in range(s + 1)] for x in points])
        coefficients = vander**-1 * mpmath.matrix(values)
        return rounded([[coefficients[j, v] for v in range(1, s + 1)] for j in range(s + 1)])


def sees_degree(method: Galerkin) -> bool:
    """Whether the quadrature sees the highest degree of the polynomial: then α is a difference of coefficients."""
    return method.rule.order >= 2 * method.s - 1


BITS = 300  # for coefficients: one that is zero must be seen to be zero
HALF = 0.5 * (1 + 1e-9)  # one half and a little more, for the rounding of radii

INPUTS = ("t", "h", "q", "p", "z", "impulse", "last", "params", "inputs")


class _Step:
    """A step as values of a Builder: boxes that contain its polynomials."""

    def __init__(self, watch: Watch, system: Any, method: Galerkin) -> None:
        n, s = system.n, method.s
        params = dict(watch.program.inputs)["params"]
        sizes = (1, 1, n, n, s * n, n, n, params, len(method.table.c) * system.channels)
        self.B = B = Builder(list(zip(INPUTS, sizes, strict=True)))
        self.given = given = {name: B.values(name) for name in INPUTS}
        (self.h,), q, p, z, impulse = (given[name] for name in ("h", "q", "p", "z", "impulse"))
        h = self.h
        A = midpoint_coefficients(method).tolist()
        a = [[_dot(A[j], [z[v * n + i] for v in range(s)]) for i in range(n)] for j in range(s + 1)]
        self.lead = a[s]
        off = [abs(now) for now in self.lead]
        if sees_degree(method):
            off = [abs(now - before) for now, before in zip(self.lead, given["last"], strict=True)]
        q_mid, p_mid = [q[i] + a[0][i] for i in range(n)], [p[i] + 0.5 * impulse[i] for i in range(n)]
        t_mid = given["t"][0] + 0.5 * h
        longer = (1.0 + FURTHER) ** (s + 1)  # all that the step reaches beyond its end, too
        moved = [_sum([abs(a[j][i]) for j in range(1, s + 1)]) + off[i] for i in range(n)]
        spread = [moved[i] * longer + _rounding(q_mid[i]) for i in range(n)]
        bend = [_sum([j * abs(a[j][i]) for j in range(2, s + 1)] + [(s + 1.0) * off[i]]) for i in range(n)]
        per = 2.0 / h
        self.box: dict[str, list[Value]] = {
            "t": [t_mid], "t_radius": [abs(h) * (0.5 * longer) + _rounding(t_mid)], "q": q_mid, "q_radius": spread,
            "v": [a[1][i] * per for i in range(n)], "v_radius": [x * abs(per) for x in bend],
            "p": p_mid, "p_radius": [Value(B, B.const(0.0))] * n,
            "params": given["params"], "dt": [h * 0.5], "dq": a[1], "dq_radius": bend,
        }  # fmt: skip
        if watch.by_momentum:
            moving = ("t", "q", "v", "inputs") if system.channels else ("t", "q", "v")
            force = radii(system.node.select("f"), moving)
            self.box |= _inputs_box(given["inputs"], system.channels)
            half = [abs(h) * (HALF * longer) * radius for radius in _inlined(B, force, self.box)["f_radius"]]
            self.box["p_radius"] = [abs(impulse[i]) * (0.5 * longer) + half[i] + _rounding(p_mid[i]) for i in range(n)]
            self.box["dp"] = [impulse[i] * 0.5 for i in range(n)]
            self.box["dp_radius"] = [2.0 * x for x in half]
        else:
            self.box["dp"] = self.box["dp_radius"] = self.box["p_radius"]

    @property
    def end(self) -> dict[str, list[Value]]:
        """The end of the step, and what its rounding may be."""
        given, n = self.given, len(self.given["q"])
        z, end = given["z"], {"t": [given["t"][0] + self.h]}
        end["q"] = [given["q"][i] + z[len(z) - n + i] for i in range(n)]
        end["p"] = [given["p"][i] + given["impulse"][i] for i in range(n)]
        off = {f"{name}_radius": [_rounding(x) for x in values] for name, values in end.items()}
        return end | off | {"params": given["params"]}

    def ends(self, watch: Watch) -> tuple[list[Value], list[Value]]:
        """The event functions at both ends of the step."""
        begin, after = (_inlined(self.B, watch.program, at)["g"] for at in (self.given, self.end))
        return begin, after

    def near(self, watch: Watch, begin: list[Value], end: list[Value]) -> list[Value]:
        """For each event: 1 if its function may be zero in the step. The end of a run that is not reached by rounding
        alone is reached, too: the next step might begin behind it, and the run would have no end.
        """
        g, last = (_inlined(self.B, watch.bounds, at) for at in (self.box, self.end))
        return [
            ~(x * y > 0.0) | ~(off < abs(y)) if item.monotone else ~(radius < abs(value))
            for item, value, radius, x, y, off in zip(
                watch.items, g["g"], g["g_radius"], begin, end, last["g_radius"], strict=True
            )
        ]


def _inputs_box(values: list[Value], channels: int) -> dict[str, list[Value]]:
    """A box of the inputs in the step: around the middle of their values at the nodes, its radius their spread."""
    middle, radius = [], []
    for j in range(channels):
        own = values[j::channels]
        low, high = own[0], own[0]
        for value in own[1:]:
            low, high = low.op("min", value), high.op("max", value)
        middle.append((low + high) * 0.5)
        radius.append(high - low + _rounding(middle[-1]))
    return {"inputs": middle, "inputs_radius": radius} if channels else {}


@lru_cache(maxsize=64)
def check_program(watch: Watch, system: Any, method: Galerkin) -> Program:
    """(t, h, q, p, z, impulse, last, params, inputs) ↦ doubt, urgent, before, lead: doubt and urgent are 1 or 0; lead
    are the leading coefficients, which are `last` at the next step. `last` is zero if there is no step before. A kernel
    that writes lead over `last` still gives `last`, as `before`.
    """
    step = _Step(watch, system, method)
    B = step.B
    doubts = step.near(watch, *step.ends(watch))
    urgent = [doubt for doubt, item in zip(doubts, watch.items, strict=True) if item.urgent]
    before, lead = ([x.k for x in values] for values in (step.given["last"], step.lead))
    return B.build(doubt=[_any(B, doubts).k], urgent=[_any(B, urgent).k], before=before, lead=lead)


@lru_cache(maxsize=64)
def survey_program(watch: Watch, system: Any, method: Galerkin) -> Program:
    """The same inputs ↦ for each event begin, end: its function at both ends; near: 1 if the function may be zero in
    the step; turning: 1 if its rate may be zero too, so that the signs at the ends are not enough.

    The rate of the momentum is a force, as is its mean J/h: they differ by twice the radius ρ.
    """
    step = _Step(watch, system, method)
    B = step.B
    begin, end = step.ends(watch)
    rate = _inlined(B, watch.rate_bounds, step.box)
    turning = [
        Value(B, B.const(0.0)) if item.monotone else ~(radius < abs(value))
        for item, value, radius in zip(watch.items, rate["rate"], rate["rate_radius"], strict=True)
    ]
    found = {"begin": begin, "end": end, "near": step.near(watch, begin, end), "turning": turning}
    return B.build(**{name: [x.k for x in values] for name, values in found.items()})


def _rounding(x: Value) -> Value:
    """More than what the run may carry beyond the last digit of x."""
    return abs(x) * (2 * ROUNDING)


def _inlined(B: Builder, program: Program, at: dict[str, list[Value]]) -> dict[str, list[Value]]:
    found = B.inline(program, **{name: [x.k for x in at[name]] for name, _ in program.inputs})
    return {name: [Value(B, k) for k in values] for name, values in found.items()}


def _sum(terms: list[Value]) -> Value:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _dot(row: list[float], x: list[Value]) -> Value:
    return _sum([coefficient * value for coefficient, value in zip(row, x, strict=True) if coefficient])


def _any(B: Builder, values: list[Value]) -> Value:
    found = Value(B, B.const(0.0))
    for value in values:
        found = found | value
    return found
