"""One step of a linear system as a matrix, on flint numbers.

    (q_{k+1} − q_k, p_{k+1} − p_k) = W (q_k, p_k) + G (f(t_1), …, f(t_r))

For small dense systems in float64 the matrix is correct to twice the working precision: a fixed matrix repeats its
rounding error in every step, so that energies would drift like the number of steps. W is therefore kept as an
unevaluated sum of two float64 matrices; what is left is the random rounding of the state. Runs at N digits use the same
matrix at their own precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from numpy.typing import NDArray

from leastaction.methods import Composition, Galerkin, Method, RungeKutta4
from leastaction.numbers.conversion import ball_array, balls, identity
from leastaction.numbers.precision import flint_bits
from leastaction.step.form import Samples, samples
from leastaction.step.kronecker import kronecker

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
    """z^1 … z^s, stacked, and p_{k+1} − p_k, as matrices of (q_k, p_k, f(t_1), …, f(t_r)); and the nodes; in flint
    numbers.
    """

    z: Any
    dp: Any
    c: list[Any]


def operator(method: Method, h: float, M: FloatArray, K: FloatArray, C: FloatArray | None) -> Operator:
    """The step of the method on M q̈ + C q̇ + K q = f(t), small dense matrices."""
    with flint_bits(PRECISION):
        mass, stiffness = _matrix(M), _matrix(K)
        damping = _matrix(np.zeros_like(M) if C is None else C)
        step = step_matrices(method, arb(h), mass, stiffness, damping)
        n, z, dp = len(M), step.z, step.dp
        high = np.vstack([_float(z)[-n:], _float(dp)])
        low = np.vstack([_float(z - _matrix(_float(z)))[-n:], _float(dp - _matrix(_float(dp)))])
        polynomial = _float(z).reshape(-1, n, z.ncols())
        c = np.array([float(x) for x in step.c])
    return Operator(high[:, : 2 * n].copy(), low[:, : 2 * n].copy(), high[:, 2 * n :].copy(), polynomial, c)


def step_matrices(method: Method, h: Any, M: Any, K: Any, C: Any) -> StepMatrices:
    """The step of the method, at flint's working precision."""
    if isinstance(method, Composition):
        return _composed(method, h, M, K, C)
    return _galerkin(method, h, M, K, C) if isinstance(method, Galerkin) else _rk4(method, h, M, K, C)


def _composed(method: Composition, h: Any, M: Any, K: Any, C: Any) -> StepMatrices:
    """The steps of a composition one after the other; z at the end alone, the loads of all nodes in their order."""
    factors = balls(method.factors(round(ctx.prec * DIGITS_PER_BIT) + 2))
    made: dict[float, StepMatrices] = {}
    n, nodes = M.nrows(), 0
    steps = []
    for part, factor in zip(method.parts.tolist(), factors, strict=True):
        if part not in made:  # factors repeat
            made[part] = step_matrices(method.root, (h * factor).mid(), M, K, C)
        steps.append(made[part])
        nodes += len(made[part].c)
    one, zero = identity(n), arb_mat(n, n)

    def unit(k: int) -> Any:
        return _blocks([[one if i == k else zero for i in range(2 + nodes)]])

    q, p, offset, before = unit(0), unit(1), arb(0), 0
    c: list[Any] = []
    for factor, step in zip(factors, steps, strict=True):
        r = len(step.c)
        given = _stacked([q, p, *(unit(2 + before + i) for i in range(r))])
        q = (q + arb_mat(step.z.tolist()[-n:]) * given).mid()
        p = (p + step.dp * given).mid()
        c += [(offset + factor * x).mid() for x in step.c]
        offset, before = offset + factor, before + r
    return StepMatrices((q - unit(0)).mid(), (p - unit(1)).mid(), c)


def _stacked(parts: list[Any]) -> Any:
    return arb_mat([row for part in parts for row in part.tolist()])


def _galerkin(method: Galerkin, h: Any, M: Any, K: Any, C: Any) -> StepMatrices:
    """The equations of `step.kronecker`, solved."""
    exact = samples(method, digits=round(ctx.prec * DIGITS_PER_BIT) + 2)
    form = kronecker(Samples(*(ball_array(x) for x in (exact.tau, exact.w, exact.l, exact.dl))))
    s, n = method.s, M.nrows()
    one, zero = identity(n), arb_mat(n, n)
    left = [
        [M * form.A[v, m] - C * (h * form.D[v, m]) - K * (h * h * form.B[v, m]) for m in range(s)] for v in range(s)
    ]
    right = [
        [K * (h * h * form.beta[v]), one * h if v == s - 1 else zero, *(one * (-h * h * x) for x in row)]
        for v, row in enumerate(form.load)
    ]
    try:
        z = _blocks(left).mid().solve(_blocks(right).mid(), algorithm="approx").mid()
    except ZeroDivisionError:
        raise ArithmeticError(f"the equations of a step of {method.name} are singular for this h") from None
    rows = z.tolist()
    increments = [arb_mat(rows[v * n : (v + 1) * n]) for v in range(s)]
    mean = sum(
        (increment * weight for increment, weight in zip(increments, form.mean, strict=True)), arb_mat(n, z.ncols())
    )
    direct = _blocks([[K * -h, zero, *(one * (h * x) for x in form.w)]])
    return StepMatrices(z, (K * (mean * -h) - C * increments[-1] + direct).mid(), list(form.tau))


def _rk4(method: RungeKutta4, h: Any, M: Any, K: Any, C: Any) -> StepMatrices:
    """The stages of q̇ = M⁻¹p, ṗ = −Kq − C M⁻¹p + f(t), each a matrix of (q_k, p_k, f at the nodes)."""
    n, nodes = M.nrows(), method.nodes
    one, zero = identity(n), arb_mat(n, n)

    def unit(k: int) -> Any:
        return _blocks([[one if i == k else zero for i in range(2 + len(nodes))]])

    M_inverse = M.solve(one, algorithm="approx").mid()
    rates: list[tuple[Any, Any]] = []

    def moved(start: Any, of: int, weights: Sequence[Fraction]) -> Any:
        total = start
        for weight, rate in zip(weights, rates, strict=True):
            total = total + rate[of] * (h * weight.numerator / weight.denominator)
        return total

    for c, a in zip(method.c, method.a, strict=True):
        v = M_inverse * moved(unit(1), 1, a)
        rates.append((v, unit(2 + nodes.index(c)) - K * moved(unit(0), 0, a) - C * v))
    z, dp = (moved(arb_mat(n, n * (2 + len(nodes))), of, method.b).mid() for of in (0, 1))
    return StepMatrices(z, dp, [arb(x.numerator) / x.denominator for x in nodes])


def _matrix(a: FloatArray) -> Any:
    return arb_mat([[arb(float(x)) for x in row] for row in a])


def _float(a: Any) -> FloatArray:
    return np.array([float(x.mid()) for x in a.entries()]).reshape(a.nrows(), a.ncols())


def _blocks(blocks: list[list[Any]]) -> Any:
    rows = (zip(*(block.tolist() for block in row), strict=True) for row in blocks)
    return arb_mat([list(chain.from_iterable(parts)) for row in rows for parts in row])
