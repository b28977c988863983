"""How the derivative of a run passes an impact.

A direction changes the state dy, the time ds at which a step begins, and the parameters dw. With Φ_l the step of length
l, its derivatives A = ∂Φ/∂y, b = ∂Φ/∂l, c = ∂Φ/∂s, W = ∂Φ/∂w, and J the jump of the momentum:

    to the wall      dy₁ = A dy + b dτ + c ds + W dw,   dτ such that  g_t (ds + dτ) + g_y·dy₁ + g_w·dw = 0,
    at the wall      dy₂ = J_y dy₁ + J_t (ds + dτ) + J_w dw,
    to the next      the same step with ds ← ds + dτ, and dl ← −dτ: the steps of the run end when they did.

In the limit of small steps J_y, b and the bracket for dτ make up the saltation matrix of the literature (Leine and
Nijmeijer, *Dynamics and Bifurcations of Non-Smooth Mechanical Systems*, 2004, section 7); here they are derivatives of
what the method computes, so that the whole is the derivative of the run to the last bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.events.kinds import Watch
from leastaction.program import Builder, Program, dot
from leastaction.program.elimination import by_rows, solve, square
from leastaction.trace import derivatives

# (t, q, p), length, number, everything ↦ D after a step of this length that has this number: the derivative by the
# state and, if everything is wanted, also by the parameters and the length of steps.
Single = Callable[[NDArray[Any], Any, int, bool], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Direction:
    """Changes along C directions: of the state, (C, 2n), of the time, (C,), of the parameters, (C, P), and of the
    length of the run's steps, (C,).
    """

    state: NDArray[Any]
    time: NDArray[Any]
    params: NDArray[Any]
    longer: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Saltation:
    """The derivatives of steps and impacts of one run, in its numbers.

    single     the derivatives of a step
    evaluate   a Program of (t, q, p, params) at a row (t, q, p), with the parameters of the run
    """

    system: Any
    watch: Watch
    params: int
    single: Single
    evaluate: Callable[[Program, NDArray[Any]], NDArray[Any]]

    def stepped(self, start: NDArray[Any], length: Any, along: Direction, longer: NDArray[Any]) -> NDArray[Any]:
        """dy at the end of a step from (t, q, p), whose length changes by `longer`, (C,)."""
        if len(along.state) == 2 * self.system.n and not (longer.any() or along.time.any()):
            return along.state @ self.single(start, length, 0, False)
        by_state, by_length, by_time, by_params = self._step(start, length)
        return (
            along.state @ by_state
            + np.outer(longer, by_length)
            + np.outer(along.time, by_time)
            + along.params @ by_params
        )

    def thrown(self, start: NDArray[Any], length: Any, event: int, at: NDArray[Any], along: Direction) -> Direction:
        """The directions just after an impact, which happens `length` after the start of a step; `at` is the state (t,
        q, p) before the impact.
        """
        n = self.system.n
        waiting = np.zeros(len(along.time))
        arriving = self.stepped(start, length, along, waiting)
        faster = self._step(start, length)[1]
        g = self.evaluate(self.watch.gradient, at)
        blocks = {name: g[self.watch.gradient.output_slice(name)] for name, _ in self.watch.gradient.outputs}
        g_y = np.concatenate([blocks["g_q"].reshape(-1, n)[event], blocks["g_p"].reshape(-1, n)[event]])
        g_t, g_w = blocks["g_t"][event], blocks["g_w"].reshape(len(self.watch), self.params)[event]
        missed = g_t * along.time + arriving @ g_y + along.params @ g_w
        later = -missed / (g_t + faster @ g_y)
        state, time = arriving + np.outer(later, faster), along.time + later
        rows = self.evaluate(self._jumps[event], at).reshape(n, -1)  # the derivatives of each p⁺_j by t, q, p, w
        after = state.copy()
        after[:, n:] = np.outer(time, rows[:, 0]) + state @ rows[:, 1 : 1 + 2 * n].T
        after[:, n:] += along.params @ rows[:, 1 + 2 * n :].T
        return Direction(after, time, along.params, along.longer)

    def _step(self, start: NDArray[Any], length: Any) -> tuple[NDArray[Any], ...]:
        """∂Φ by state (2n, 2n), length (2n,), time (2n,) and parameters (P, 2n), each row a direction."""
        D, n = self.single(start, length, 0, True), self.system.n
        # If the step has number 1, its start also moves with h, and ∂/∂h contains ∂/∂t once: the difference is ∂/∂t.
        later = self.single(start, length, 1, True) if self.system.depends_on_time else D
        return D[: 2 * n], D[-1], later[-1] - D[-1], D[2 * n : -1]

    @cached_property
    def _jumps(self) -> dict[int, Program]:
        """For each impact: (t, q, p, params) ↦ the derivatives of each p⁺_j by t, q, p, w."""
        impacts = (k for k, item in enumerate(self.watch.items) if item.restitution is not None)
        return {event: self._jump(event) for event in impacts}

    def _jump(self, event: int) -> Program:
        """Derivatives of p⁺ = p − (1 + e) (∇g·v + g_t)/(∇g·M⁻¹∇g) ∇g; L is quadratic in v: v = M⁻¹(p − L_v(v = 0))."""
        n, P = self.system.n, self.params
        B = Builder([("t", 1), ("q", n), ("v", n), ("params", P)])  # the block "v" holds p
        x, p = B.blocks(), B.values("v")
        e = self.watch.items[event].restitution
        assert e is not None
        g = B.at(self.watch.gradient, x | {"p": p})
        gradient = g["g_q"][event * n : (event + 1) * n]
        still = x | {"v": [0.0] * n}
        at = B.at(self.system.hessian.select("Lv", "Lvv"), still)
        G = by_rows(B.at(self.system.geometry.select("G"), still)["G"], n) if self.system.m else []
        moving = [a - b for a, b in zip(p, at["Lv"], strict=True)]
        v, free, *pulled = solve(square(at["Lvv"]), [moving, gradient, *G])
        impulse, along = gradient, free
        if G:  # the part that the constraints take up: see `impact`
            (part,) = solve([[dot(row, pull) for pull in pulled] for row in G], [[dot(row, free) for row in G]])
            for y, row, pull in zip(part, G, pulled, strict=True):
                impulse = [a - y * b for a, b in zip(impulse, row, strict=True)]
                along = [a - y * b for a, b in zip(along, pull, strict=True)]
        size = -(1.0 + e) * (dot(gradient, v) + g["g_t"][event]) / dot(gradient, along)
        whole, results = Builder(B.inputs), []
        for a, b in zip(p, impulse, strict=True):
            slopes = derivatives(B.finished(L=[a + size * b]), second=False, parameters=True)
            found = whole.at(slopes, whole.blocks())
            results += [*found["Lt"], *found["Lq"], *found["Lv"], *found["Lw"]]
        return whole.finished(all=results)
