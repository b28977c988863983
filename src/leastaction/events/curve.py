"""The motion inside steps as polynomials of x = 2τ − 1 ∈ [−1, 1], in float64: where events are looked for.

For a member of the family q is the step's own polynomial, and the momentum is what its forces at the nodes add up to,

    p(τ) = p_k + h Σ_i f_i ∫₀^τ λ_i + τ (J − h Σ_i b_i f_i),

λ_i the Lagrange basis at the nodes and J the impulse, so that p(1) = p_{k+1}; the last bracket is zero for
interpolatory rules. Elsewhere q and p are the cubics through four states at the ends of steps.

An event is found on another curve, the end of a step of the length τh (`locate`). `off` bounds the distance of the
two: twice what is measured at two places of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.events.check import midpoint_coefficients
from leastaction.methods import Galerkin

FloatArray = NDArray[np.float64]
Flow = Callable[[NDArray[np.intp], FloatArray], FloatArray]  # (steps, τ) ↦ states (q, p) after steps of length τh

MEASURED = (0.27, 0.74)  # not where the error of a low degree has its zeros
SAFETY = 2.0
AROUND = 4  # states at the ends of steps through which a cubic goes


@dataclass(frozen=True, eq=False)
class Curve:
    """K steps: coefficients (K, 2n, degree + 1) of (q, p), and how far the motion may be off, (K, 2n)."""

    t: FloatArray
    h: float
    coefficients: FloatArray
    off: FloatArray

    @property
    def degree(self) -> int:
        return self.coefficients.shape[2] - 1

    def at(self, rows: NDArray[np.intp], tau: FloatArray) -> FloatArray:
        """The states (q, p), (len(rows), 2n)."""
        powers = (2 * tau - 1)[:, None] ** np.arange(self.degree + 1)
        return np.einsum("kij,kj->ki", self.coefficients[rows], powers)

    def measured(self, flow: Flow) -> Curve:
        """The same curve, and how far the motion is off."""
        rows = np.arange(len(self.t))
        off = np.zeros(self.off.shape)
        for tau in MEASURED:
            at = np.full(len(rows), tau)
            off = np.maximum(off, np.abs(flow(rows, at).astype(float) - self.at(rows, at)))
        off = np.where(np.isnan(off), np.inf, SAFETY * off + 1e-15 * np.abs(self.coefficients[:, :, 0]))
        return Curve(self.t, self.h, self.coefficients, off)

    def boxes(self, rows: NDArray[np.intp], centre: FloatArray, half: FloatArray) -> tuple[FloatArray, ...]:
        """Over x = centre ± half: (q, p) in the middle and its radius, without `off`; and the same of d/dx (q, p)."""
        d = self.degree
        i, j = np.meshgrid(np.arange(d + 1), np.arange(d + 1), indexing="ij")
        binomials = np.array([[comb(a, b) for b in range(d + 1)] for a in range(d + 1)], float)
        shift = binomials * centre[:, None, None] ** np.maximum(i - j, 0)
        moved = np.einsum("kci,kij->kcj", self.coefficients[rows], shift)
        size = np.abs(moved) * half[:, None, None] ** np.arange(d + 1)
        slope = moved[:, :, 1:] * np.arange(1, d + 1)
        slope_size = np.abs(slope) * half[:, None, None] ** np.arange(d)
        return moved[:, :, 0], size[:, :, 1:].sum(axis=2), slope[:, :, 0], slope_size[:, :, 1:].sum(axis=2)


def galerkin_curve(
    system: Any, method: Galerkin, t: FloatArray, h: float, states: FloatArray, z: FloatArray, impulse: FloatArray,
    params: FloatArray, inputs: FloatArray,
) -> Curve:  # fmt: skip
    """The curve of steps from `states` (K, 2n), with z (K, s, n), the impulses (K, n), parameters (K, P) and inputs at
    the nodes, (K, r, channels).
    """
    table, n, count = method.table, system.n, len(t)
    r, s = len(table.c), method.s
    q, p = states[:, :n], states[:, n:]
    coefficients = np.zeros((count, 2 * n, max(s, r) + 1))
    coefficients[:, :n, : s + 1] = np.einsum("jv,kvi->kij", midpoint_coefficients(method), z)
    coefficients[:, :n, 0] += q
    nodes = [
        np.broadcast_to((t[:, None] + h * table.c)[:, :, None], (count, r, 1)),
        q[:, None, :] + np.einsum("iv,kvj->kij", table.l[:, 1:], z),
        np.einsum("iv,kvj->kij", table.dl[:, 1:], z) / h,
        np.broadcast_to(params[:, None], (count, r, params.shape[1])),
        inputs,
    ]
    rows = np.concatenate(nodes, axis=2).reshape(count * r, -1)
    force = h * points.evaluate(system.node.select("f"), rows).reshape(count, r, n)
    coefficients[:, n:, : r + 1] = np.einsum("ji,kic->kcj", _integrals(method), force)
    rest = (impulse - np.einsum("i,kic->kc", table.b, force)) / 2
    coefficients[:, n:, 0] += p + rest
    coefficients[:, n:, 1] += rest
    return Curve(t, h, coefficients, np.zeros((count, 2 * n)))


@lru_cache(maxsize=64)
def _integrals(method: Galerkin) -> FloatArray:
    """∫₀^τ λ_i as polynomials of x, (r + 1, r): ½ ∫_{−1}^x."""
    x = 2 * method.table.c - 1
    basis = np.linalg.inv(np.vander(x, increasing=True))
    r = len(x)
    integral = np.zeros((r + 1, r))
    integral[1:] = basis / (2 * np.arange(1, r + 1)[:, None])
    integral[0] = -((-1.0) ** np.arange(1, r + 1)) @ integral[1:]
    return integral


def neighbours_curve(t: FloatArray, h: float, states: FloatArray, first: int) -> Curve:
    """The curves of the steps `first` … of those between equally spaced `states` (K, 2n), each the polynomial through
    the two states of the step and the two before it, or as many as there are: what comes after it is not asked, so that
    a step has the same curve in whatever company it is looked at. `off` is the size of the leading coefficient.
    """
    step = np.arange(first, len(states) - 1)
    coefficients = np.zeros((len(step), states.shape[1], AROUND))
    off = np.zeros((len(step), states.shape[1]))
    for size in range(2, AROUND + 1):
        some = np.flatnonzero(np.minimum(step + 2, AROUND) == size)
        around = states[step[some][:, None] + np.arange(2 - size, 2)]
        coefficients[some, :, :size] = np.einsum("ji,kic->kcj", _through(size), around)
        off[some] = np.abs(coefficients[some, :, size - 1])
    return Curve(t[step], h, coefficients, off)


@lru_cache(maxsize=16)
def _through(size: int) -> FloatArray:
    """Values at equally spaced places, the last two the ends of a step ↦ coefficients of powers of x on that step."""
    return np.linalg.inv(np.vander(2.0 * np.arange(2 - size, 2) - 1, increasing=True))
