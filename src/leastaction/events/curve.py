"""The motion inside steps as polynomials of x = 2τ − 1 ∈ [−1, 1], in float64: where events are looked for.

An event is a zero of g on the curve τ ↦ Φ_{τh}(q_k, p_k), the ends of steps of the length τh. `through_steps` is the
polynomial of degree 12 through this curve at Chebyshev's points, whatever the method, the system and the precision:
ten steps of other lengths tell more than the step's own polynomial, which is far less accurate inside than at its end.
`off` bounds the distance of the curve from this polynomial: twice the distance that is measured between the points.

`through_states` is a cheaper polynomial for a first look: the cubic through four states at the ends of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Flow = Callable[[NDArray[np.intp], FloatArray], NDArray[Any]]  # (steps, τ) ↦ states (q, p) after steps of length τh

DEGREE = 12
MEASURED = (2, 6, 10)  # measured between the points of these numbers and the points before them
SAFETY = 2.0
UNTOLD = 16.0
FURTHER = 1e-6  # how far beyond the end of a step events are looked for, x ≤ 1 + FURTHER: more than rounding of time
AROUND = 5  # states at the ends of steps: four for a cubic, and one more to see how its leading coefficient changes


@dataclass(frozen=True, eq=False)
class Curve:
    """K steps: coefficients (K, 2n, degree + 1) of (q, p); `off`, how far the motion may be from them, (K, 2n); and
    `steeper`, how many times as far its derivative by x may be.
    """

    t: FloatArray
    h: FloatArray
    coefficients: FloatArray
    off: FloatArray
    steeper: float

    @property
    def degree(self) -> int:
        return self.coefficients.shape[2] - 1

    def boxes(self, rows: NDArray[np.intp], centre: FloatArray, half: FloatArray) -> tuple[FloatArray, ...]:
        """Over x = centre ± half: (q, p) in the middle and its radius, without `off`; and the same for d/dx (q, p)."""
        d = self.degree
        i, j = np.meshgrid(np.arange(d + 1), np.arange(d + 1), indexing="ij")
        binomials = np.array([[comb(a, b) for b in range(d + 1)] for a in range(d + 1)], float)
        shift = binomials * centre[:, None, None] ** np.maximum(i - j, 0)
        moved = np.einsum("kci,kij->kcj", self.coefficients[rows], shift)
        size = np.abs(moved) * half[:, None, None] ** np.arange(d + 1)
        slope = moved[:, :, 1:] * np.arange(1, d + 1)
        slope_size = np.abs(slope) * half[:, None, None] ** np.arange(d)
        return moved[:, :, 0], size[:, :, 1:].sum(axis=2), slope[:, :, 0], slope_size[:, :, 1:].sum(axis=2)


def through_steps(t: FloatArray, h: FloatArray, begin: NDArray[Any], end: NDArray[Any], flow: Flow) -> Curve:
    """The curves of steps between two states, (K, 2n) each, by steps of other lengths.

    The derivative of a polynomial of degree d is at most d² times as large as the polynomial (Markov), and the
    remainder is nearly a polynomial of degree 13.
    """
    tau, inverse, between, powers = _points()
    count, inner = len(t), len(tau)
    asked = np.concatenate([tau, between])
    found = flow(np.repeat(np.arange(count), len(asked)), np.tile(asked, count)).astype(float)
    found = found.reshape(count, len(asked), -1)
    states = np.concatenate([begin.astype(float)[:, None], found[:, :inner], end.astype(float)[:, None]], axis=1)
    coefficients = np.einsum("ji,kic->kcj", inverse, states)
    missed = np.abs(found[:, inner:] - np.einsum("mj,kcj->kmc", powers, coefficients)).max(axis=1)
    off = SAFETY * missed + 1e-15 * np.abs(coefficients).sum(axis=2)
    lost = np.isnan(off)
    return Curve(t, h, np.where(lost[:, :, None], 0.0, coefficients), np.where(lost, np.inf, off), (DEGREE + 1.0) ** 2)


@lru_cache(maxsize=1)
def _points() -> tuple[FloatArray, ...]:
    """Inner Chebyshev points as τ; values at all of them ↦ coefficients of powers of x; places between them as τ, and
    the powers of x there.
    """
    import mpmath

    with mpmath.workdps(40):
        x = [-mpmath.cos(mpmath.pi * k / DEGREE) for k in range(DEGREE + 1)]
        tau = [float((1 + place) / 2) for place in x]
        x = [2 * mpmath.mpf(place) - 1 for place in tau]  # the points as rounded to float64
        inverse = mpmath.matrix([[place**j for j in range(DEGREE + 1)] for place in x]) ** -1
        exact = np.array([[float(inverse[j, k]) for k in range(DEGREE + 1)] for j in range(DEGREE + 1)])
    between = np.array([(tau[k - 1] + tau[k]) / 2 for k in MEASURED])
    return np.array(tau[1:-1]), exact, between, (2 * between - 1)[:, None] ** np.arange(DEGREE + 1)


def through_states(t: FloatArray, h: float, states: FloatArray, first: int) -> Curve:
    """The curves of the steps from number `first` on, three or more, between equally spaced `states` (K, 2n). Each
    curve is the cubic through the two states of the step and the two before it. Later states are not used, so that a
    step has the same curve whichever steps are looked at together.

    With c the leading coefficient and Δc its change since the step before, the next term of the error is 1.9 |Δc|.
    `off` is twice |c| + 2 |Δc|; where that is more than half of all the other terms together, the states are too far
    apart to tell, and `off` is taken sixteen times.
    """
    step = np.arange(first, len(states) - 1)
    around = states[step[:, None] + np.arange(2 - AROUND, 2)]
    coefficients = np.einsum("ji,kic->kcj", _cubic(), around[:, 1:])
    before = np.einsum("i,kic->kc", _cubic()[-1], around[:, :-1])
    off = SAFETY * (np.abs(coefficients[:, :, -1]) + 2 * np.abs(coefficients[:, :, -1] - before))
    off[off > np.abs(coefficients[:, :, 1:]).sum(axis=2) / 2] *= UNTOLD
    return Curve(t[step], np.full(len(step), h), coefficients, off, float(AROUND - 1))


@lru_cache(maxsize=1)
def _cubic() -> FloatArray:
    """Values at four equally spaced places, the last two being the ends of a step ↦ coefficients of powers of x."""
    return np.linalg.inv(np.vander(2.0 * np.arange(3 - AROUND, 2) - 1, increasing=True))
