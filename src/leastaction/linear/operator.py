"""One step of a linear system as a matrix, on flint numbers.

    (q_{k+1} − q_k, p_{k+1} − p_k) = W (q_k, p_k) + G (f(t_1), …, f(t_r))

For small dense systems in float64 the matrix is correct to twice the working precision: a fixed matrix repeats its
rounding error in every step, so that energies would drift like the number of steps. W is therefore kept as an
unevaluated sum of two float64 matrices; what is left is the random rounding of the state. Runs at N digits use the same
matrix at their own precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from numpy.typing import NDArray

from leastaction.methods import LinearForm, Method
from leastaction.numbers.conversion import ball_array, balls, identity
from leastaction.numbers.precision import flint_bits

FloatArray = NDArray[np.float64]

PRECISION = 256  # bits: twice float64, and as much again for the conditioning of M and K
DIGITS_PER_BIT = 0.30103


@dataclass(frozen=True, eq=False)
class Operator:
    """W = W + W_low and G as above; Z maps (q_k, p_k, f(t_1), …) to the s increments of the step's polynomial.

    W, W_low (2n, 2n); G (2n, r n); Z (s, n, (2 + r) n); c the nodes (r,).
    """

    W: FloatArray
    W_low: FloatArray
    G: FloatArray
    Z: FloatArray
    c: FloatArray


@dataclass(frozen=True, eq=False)
class StepMatrices:
    """z_1 … z_s, stacked, q_{k+1} − q_k and p_{k+1} − p_k, as matrices of (q_k, p_k, f(t_1), …, f(t_r)); and the nodes;
    in flint numbers.
    """

    z: Any
    dq: Any
    dp: Any
    c: list[Any]


def operator(method: Method, h: float, M: FloatArray, K: FloatArray, C: FloatArray | None) -> Operator:
    """The step of the method on M q̈ + C q̇ + K q = f(t), small dense matrices."""
    with flint_bits(PRECISION):
        mass, stiffness = _matrix(M), _matrix(K)
        damping = _matrix(np.zeros_like(M) if C is None else C)
        step = step_matrices(method, arb(h), mass, stiffness, damping)
        n, z, change = len(M), step.z, (step.dq, step.dp)
        high = np.vstack([_float(x) for x in change])
        low = np.vstack([_float(x - _matrix(_float(x))) for x in change])
        polynomial = _float(z).reshape(-1, n, z.ncols())
        c = np.array([float(x) for x in step.c])
    return Operator(high[:, : 2 * n].copy(), low[:, : 2 * n].copy(), high[:, 2 * n :].copy(), polynomial, c)


def step_matrices(method: Method, h: Any, M: Any, K: Any, C: Any) -> StepMatrices:
    """The steps of the method one after the other, at flint's working precision: of a composition z at the end alone,
    and the loads of all nodes in their order.
    """
    digits = round(ctx.prec * DIGITS_PER_BIT) + 2
    factors, form = balls(method.factors(digits)), method.root.linear_form(digits)
    made: dict[float, StepMatrices] = {}
    for part, factor in zip(method.parts.tolist(), factors, strict=True):
        if part not in made:  # factors repeat
            made[part] = _single(method, form, (h * factor).mid(), M, K, C)
    steps = [made[part] for part in method.parts.tolist()]
    if len(steps) == 1:
        return steps[0]
    n, nodes = M.nrows(), sum(len(step.c) for step in steps)
    one, zero = identity(n), arb_mat(n, n)

    def unit(k: int) -> Any:
        return _blocks([[one if i == k else zero for i in range(2 + nodes)]])

    q, p, offset, before = unit(0), unit(1), arb(0), 0
    c: list[Any] = []
    for factor, step in zip(factors, steps, strict=True):
        r = len(step.c)
        given = _stacked([q, p, *(unit(2 + before + i) for i in range(r))])
        q = (q + step.dq * given).mid()
        p = (p + step.dp * given).mid()
        c += [(offset + factor * x).mid() for x in step.c]
        offset, before = offset + factor, before + r
    dq = (q - unit(0)).mid()
    return StepMatrices(dq, dq, (p - unit(1)).mid(), c)


def _stacked(parts: list[Any]) -> Any:
    return arb_mat([row for part in parts for row in part.tolist()])


def _single(method: Method, form: LinearForm, h: Any, M: Any, K: Any, C: Any) -> StepMatrices:
    """The equations of `methods.linear_form`, solved."""
    A, B, D, start, end, beta, mean, load, tau, w = (
        ball_array(x)
        for x in (form.A, form.B, form.D, form.start, form.end, form.beta, form.mean, form.load, form.tau, form.w)
    )
    s, n = len(A), M.nrows()
    one = identity(n)
    left = [[M * A[v, m] - C * (h * D[v, m]) - K * (h * h * B[v, m]) for m in range(s)] for v in range(s)]
    right = [
        [K * (h * h * beta[v]), one * (h * start[v]), *(one * (-h * h * x) for x in row)] for v, row in enumerate(load)
    ]
    try:
        z = _blocks(left).mid().solve(_blocks(right).mid(), algorithm="approx").mid()
    except ZeroDivisionError:
        raise ArithmeticError(f"the equations of a step of {method.name} are singular for this h") from None
    rows = z.tolist()
    increments = [arb_mat(rows[v * n : (v + 1) * n]) for v in range(s)]

    def combined(weights: Any) -> Any:
        return sum((x * weight for x, weight in zip(increments, weights, strict=True)), arb_mat(n, z.ncols()))

    dq = combined(end)
    direct = _blocks([[K * -h, arb_mat(n, n), *(one * (h * x) for x in w)]])
    dp = K * (combined(mean) * -h) - C * dq + direct
    return StepMatrices(z, dq.mid(), dp.mid(), list(tau))


def _matrix(a: FloatArray) -> Any:
    return arb_mat([[arb(float(x)) for x in row] for row in a])


def _float(a: Any) -> FloatArray:
    return np.array([float(x.mid()) for x in a.entries()]).reshape(a.nrows(), a.ncols())


def _blocks(blocks: list[list[Any]]) -> Any:
    rows = (zip(*(block.tolist() for block in row), strict=True) for row in blocks)
    return arb_mat([list(chain.from_iterable(parts)) for row in rows for parts in row])
