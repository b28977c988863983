"""The derivative of single steps of RK4, many at once, by differentiating its stages.

A stage k = Y(t, y, w) and its argument y = y₀ + a h k_before vary together:

    dk = Y_y dy + Y_w dw + Y_t dt,     dy = dy₀ + a h dk_before + a k_before dh.

With the force f and the momentum m of a node, Hamilton's equations are (q, p)˙ = (v, f) with v = v(t, q, p), and
dv = m_v⁻¹ (dp − m_q dq − m_w dw − m_t dt); the Euler–Lagrange equations are (q, v)˙ = (v, a), where a solves
g(t, q, v, w; a) = f − m_q v − m_t − m_v a = 0, so that m_v da = g_q dq + g_v dv + g_w dw + g_t dt, and the momenta come
in and out by p = m.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends import points
from leastaction.methods import RungeKutta4
from leastaction.program import Program

if TYPE_CHECKING:
    from leastaction.systems.lagrangian import Lagrangian

FloatArray = NDArray[np.float64]

STAGES = tuple((float(c), float(b)) for c, b in zip(RungeKutta4.c, RungeKutta4.b, strict=True))  # c_i = a_{i,i−1}, b_i


def one_steps(
    system: Lagrangian,
    method: RungeKutta4,
    t: FloatArray,
    states: FloatArray,
    h: float,
    params: FloatArray,
    index: NDArray[np.int64] | None,
    inputs: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Derivatives of K single steps from rows (q, p) at times t: by the state, (K, 2n, 2n), and by w and h, (K, 2n, E).

    index    the number of each step in its run, on which dt/dh depends; None: no derivatives by w and h, E = 0
    inputs   at the stages of each step, (K, 4, channels)
    """
    n, K = system.n, len(states)
    P = len(params) if index is not None else -1
    C = 2 * n + P + 1
    varied = _Varied(n, P, C)
    d = np.zeros((K, 2 * n, C))
    d[:, :, : 2 * n] = np.eye(2 * n)
    q, v = states[:, :n], system.velocity(states[:, :n], states[:, n:], t, params)
    hamilton = method.form == "hamilton"
    y = states.copy() if hamilton else np.concatenate([q, v], axis=1)
    k_number = np.zeros(K) if index is None else index.astype(float)
    driven = np.zeros((K, len(STAGES), 0)) if inputs is None else inputs
    if not hamilton:
        d[:, n:] = _Second(system, t, q, v, params, driven[:, 0]).velocities(d, k_number, varied)
    total, d_total = np.zeros_like(y), np.zeros_like(d)
    rate, d_rate = np.zeros_like(y), np.zeros_like(d)
    field = _hamilton if hamilton else _lagrange
    for stage, (c, b) in enumerate(STAGES):
        d_y = d + c * h * d_rate
        if P >= 0:
            d_y[:, :, -1] += c * rate
        given = params, driven[:, stage]
        rate, d_rate = field(system, t + c * h, y + c * h * rate, *given, d_y, k_number + c, varied)
        total += b * rate
        d_total += b * d_rate
    after, d_after = y + h * total, d + h * d_total
    if P >= 0:
        d_after[:, :, -1] += total
    if not hamilton:
        end = t + h
        at = _Second(system, end, after[:, :n], after[:, n:], params, driven[:, -1])
        d_after[:, n:] = at.m_q @ d_after[:, :n] + at.m_v @ d_after[:, n:] + varied.of(at.m_w, at.m_t, k_number + 1)
    return d_after[:, :, : 2 * n], d_after[:, :, 2 * n :]


class _Varied:
    """Where the columns of the parameters and of h are."""

    def __init__(self, n: int, P: int, C: int) -> None:
        self.n, self.P, self.C = n, P, C

    def of(self, by_w: FloatArray, by_t: FloatArray, when: FloatArray) -> FloatArray:
        """by_w dw + by_t dt, (K, n, C): dt = when · dh."""
        result = np.zeros((len(by_t), self.n, self.C))
        if self.P >= 0:
            result[:, :, 2 * self.n : 2 * self.n + self.P] = by_w
            result[:, :, -1] = by_t * when[:, None]
        return result


class _Second:
    """The force f and the derivatives of f and m at K points, as arrays of matrices."""

    def __init__(
        self, system: Lagrangian, t: FloatArray, q: FloatArray, v: FloatArray, params: FloatArray, inputs: FloatArray
    ) -> None:
        n, K = system.n, len(q)
        at = _evaluate(system.sensitive_node, t, q, v, params, inputs)
        self.f, self.f_t, self.m_t = at["f"], at["f_t"], at["m_t"]
        self.f_q, self.f_v, self.m_q, self.m_v = (at[x].reshape(K, n, n) for x in ("f_q", "f_v", "m_q", "m_v"))
        self.f_w, self.m_w = (at[name].reshape(K, n, len(params)) for name in ("f_w", "m_w"))

    def velocities(self, d: FloatArray, when: FloatArray, varied: _Varied) -> FloatArray:
        """dv of v(t, q, p) for d = (dq, dp)."""
        n = varied.n
        return np.linalg.solve(self.m_v, d[:, n:] - self.m_q @ d[:, :n] - varied.of(self.m_w, self.m_t, when))


def _evaluate(
    program: Program, t: FloatArray, q: FloatArray, v: FloatArray, params: FloatArray, *further: FloatArray
) -> dict[str, Any]:
    """The program at K points, with further rows behind the parameters."""
    rows = np.broadcast_to(params, (len(q), len(params)))
    result = points.evaluate(program, np.concatenate([t[:, None], q, v, rows, *further], axis=1))
    return {name: result[:, program.output_slice(name)] for name, _ in program.outputs}


def _hamilton(
    system: Lagrangian,
    t: FloatArray,
    y: FloatArray,
    params: FloatArray,
    inputs: FloatArray,
    d: FloatArray,
    when: FloatArray,
    varied: _Varied,
) -> tuple[FloatArray, FloatArray]:
    n = system.n
    q = y[:, :n]
    v = system.velocity(q, y[:, n:], t, params)
    at = _Second(system, t, q, v, params, inputs)
    dv = at.velocities(d, when, varied)
    dp = at.f_q @ d[:, :n] + at.f_v @ dv + varied.of(at.f_w, at.f_t, when)
    return np.concatenate([v, at.f], axis=1), np.concatenate([dv, dp], axis=1)


def _lagrange(
    system: Lagrangian,
    t: FloatArray,
    y: FloatArray,
    params: FloatArray,
    inputs: FloatArray,
    d: FloatArray,
    when: FloatArray,
    varied: _Varied,
) -> tuple[FloatArray, FloatArray]:
    n, K = system.n, len(y)
    q, v = y[:, :n], y[:, n:]
    a = system.acceleration(q, v, t, params, inputs if inputs.shape[1] else None)
    m_v = _evaluate(system.node, t, q, v, params, inputs)["m_v"].reshape(K, n, n)
    by = _evaluate(system.acceleration_slopes, t, q, v, params, inputs, a)
    g_q, g_v, g_w = (
        by[f"g_{name}"].reshape(K, n, size) for name, size in (("q", n), ("v", n), ("params", len(params)))
    )
    right = g_q @ d[:, :n] + g_v @ d[:, n:] + varied.of(g_w, by["g_t"], when)
    return np.concatenate([v, a], axis=1), np.concatenate([d[:, n:], np.linalg.solve(m_v, right)], axis=1)
