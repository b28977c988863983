"""Where inside a step an event function is zero, for many steps at once.

A step's curve gives (q, p) at τ ∈ [0, 1]; the root of g along it is enclosed by the Illinois variant of the
secant method (Dahlquist and Björck, Numerical Methods, 6.2), every fourth time by bisection. All steps are treated
alike and independently, so the result for one does not depend on the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.dense import lagrange
from leastaction.lagrangian import Lagrangian
from leastaction.methods import Galerkin
from leastaction.program import Program

FloatArray = NDArray[np.float64]
Curve = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # τ (K,) ↦ q, p (K, n)

MOST_ITERATIONS = 200
GROWS = 2.0  # where g is so many times larger than at both ends of the step it has no zero but a pole


def galerkin_curve(
    system: Lagrangian,
    method: Galerkin,
    h: float,
    t: FloatArray,
    q: FloatArray,
    p: FloatArray,
    z: FloatArray,
    params: FloatArray,
) -> Curve:
    """q(τ) = q_k + Σ z^ν l_ν(τ) and p(τ) = p_k + h Σ_i f(q_i, v_i) ∫₀^τ λ_i; z is (K, s, n)."""
    table, n, count = method.table, system.n, len(t)
    r = len(table.c)
    nodes_q = q[:, None, :] + np.einsum("iv,kvj->kij", table.l[:, 1:], z)
    nodes_v = np.einsum("iv,kvj->kij", table.dl[:, 1:], z) / h
    nodes_t = t[:, None] + h * table.c
    given = np.broadcast_to(params[:, None, :], (count, r, params.shape[1]))
    rows = np.concatenate([nodes_t[:, :, None], nodes_q, nodes_v, given], axis=2).reshape(count * r, -1)
    force = points.evaluate(system.node.select("f"), rows).reshape(count, r, n)
    # λ_i = Σ_j a_ji P_j(2σ − 1), and P_j integrates to (P_{j+1} − P_{j−1})/(2(2j + 1)).
    a = np.linalg.inv(legendre.legvander(2 * table.c - 1, r - 1))

    def curve(tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        P = legendre.legvander(2 * tau - 1, r)
        integrals = [tau] + [(P[:, j + 1] - P[:, j - 1]) / (2 * (2 * j + 1)) for j in range(1, r)]
        # Not a product of matrices, whose last bits depend on how many rows there are.
        weights = np.einsum("kj,ji->ki", np.stack(integrals, axis=1), a)
        basis = lagrange(table.d, tau)[:, 1:]
        return q + np.einsum("kv,kvj->kj", basis, z), p + h * np.einsum("ki,kij->kj", weights, force)

    return curve


def hermite_curve(
    h: float, left: FloatArray, right: FloatArray, left_rate: FloatArray, right_rate: FloatArray
) -> Curve:
    """The cubic through states (q, p) and their rates at both ends of each step, all (K, 2n)."""

    def curve(tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = tau[:, None]
        y = (
            left
            + (3 * x**2 - 2 * x**3) * (right - left)
            + h * (x - 2 * x**2 + x**3) * left_rate
            + h * (x**3 - x**2) * right_rate
        )
        n = y.shape[1] // 2
        return y[:, :n], y[:, n:]

    return curve


def roots(
    program: Program, event: NDArray[np.int64], curve: Curve, h: float, t: FloatArray, params: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Time, q and p where the event function of each step (an index into the program's g) crosses zero.

    NaN where it does not: at a pole g changes its sign too, but grows on the way there. A warning says so.
    """
    rows = np.arange(len(t))

    def g(tau: FloatArray) -> FloatArray:
        q, p = curve(tau)
        rows_of_g = np.concatenate([(t + tau * h)[:, None], q, p, params], axis=1)
        return points.evaluate(program, rows_of_g)[rows, event]

    a, b = np.zeros(len(t)), np.ones(len(t))
    ga, gb = g(a), g(b)
    largest = np.maximum(np.abs(ga), np.abs(gb))
    side = np.zeros(len(t))  # which end was kept by the last steps: halve its value when it stays
    for iteration in range(MOST_ITERATIONS):
        open_ = (b - a > 4e-16) & (ga != 0) & (gb != 0)
        if not open_.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.where(iteration % 4 == 3, 0.5, ga / (ga - gb))
        x = np.where(np.isfinite(x), np.clip(x, 0.0, 1.0), 0.5)
        x = a + x * (b - a)
        gx = g(x)
        left = open_ & (np.sign(gx) == np.sign(ga))
        right = open_ & ~left
        gb = np.where(left & (side == 1), 0.5 * gb, gb)
        ga = np.where(right & (side == -1), 0.5 * ga, ga)
        a, ga = np.where(left, x, a), np.where(left, gx, ga)
        b, gb = np.where(right, x, b), np.where(right, gx, gb)
        side = np.where(left, 1.0, np.where(right, -1.0, side))
    size_a, size_b = np.abs(g(a)), np.abs(g(b))
    tau = np.where(size_a < size_b, a, b)
    q, p = curve(tau)
    when = t + tau * h
    no_zero = ~(np.fmin(size_a, size_b) <= GROWS * largest)
    if no_zero.any():
        warnings.warn(
            f"an event function changes its sign near t = {when[no_zero][0]:.6g} without a zero: it has a pole there, "
            "or is not a number. That is counted, but is no crossing: its time is NaN. Write g without the pole, as "
            "its numerator alone",
            RuntimeWarning,
            stacklevel=2,
        )
        when, q, p = (np.where(no_zero if x.ndim == 1 else no_zero[:, None], np.nan, x) for x in (when, q, p))
    return when, q, p
