"""Small dense systems: one step as a matrix, correct to twice the working precision.

    (q_{k+1} − q_k, p_{k+1} − p_k) = W (q_k, p_k) + G (f(t_1), …, f(t_r))

A fixed matrix repeats its rounding error in every step, so that energies would drift like the number of steps. W is
therefore computed with python-flint and kept as an unevaluated sum of two float64 matrices; what is left is the random
rounding of the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from leastaction.methods import Galerkin, Method
from leastaction.working import flint_bits

FloatArray = NDArray[np.float64]

PRECISION = 256  # bits: twice float64, and as much again for the conditioning of M and K


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


def operator(method: Method, h: float, M: FloatArray, K: FloatArray, C: FloatArray | None) -> Operator:
    """The step of the method on M q̈ + C q̇ + K q = f(t), small dense matrices."""
    with flint_bits(PRECISION):
        mass, stiffness = _matrix(M), _matrix(K)
        damping = _matrix(np.zeros_like(M) if C is None else C)
        if isinstance(method, Galerkin):
            z, dp, c = _galerkin(method, arb(h), mass, stiffness, damping)
        else:
            z, dp, c = _rk4(arb(h), mass, stiffness, damping)
        n = len(M)
        step = np.vstack([_float(z)[-n:], _float(dp)])
        low = np.vstack([_float(z - _matrix(_float(z)))[-n:], _float(dp - _matrix(_float(dp)))])
        polynomial = _float(z).reshape(-1, n, z.ncols())
    return Operator(step[:, : 2 * n].copy(), low[:, : 2 * n].copy(), step[:, 2 * n :].copy(), polynomial, c)


def _galerkin(method: Galerkin, h: Any, M: Any, K: Any, C: Any) -> tuple[Any, Any, FloatArray]:
    """z^1 … z^s, stacked, and p_{k+1} − p_k, as matrices of (q_k, p_k, f(t_1), …): the equations of `weak`."""
    digits = int(PRECISION * 0.30103)
    table = method.exact_table(digits)
    s, r, n = method.s, method.rule.r, M.nrows()
    b = [arb(x) for x in table["b"]]
    l, dl = ([[arb(x) for x in row] for row in table[name]] for name in ("l", "dl"))

    def weighted(f: list[list[Any]], g: list[list[Any]], mu: int, nu: int) -> Any:
        return sum((b[i] * f[i][mu] * g[i][nu] for i in range(r)), arb(0))

    beta = [sum((b[i] * l[i][mu] for i in range(r)), arb(0)) for mu in range(s + 1)]
    identity = _matrix(np.eye(n))
    left = [
        M * weighted(dl, dl, mu, nu) - C * (h * weighted(l, dl, mu, nu)) - K * (h * h * weighted(l, l, mu, nu))
        for mu in range(s)
        for nu in range(1, s + 1)
    ]
    right = [
        [
            K * (h * h * beta[mu]),
            identity * (-h if mu == 0 else 0),
            *(identity * (-h * h * b[i] * l[i][mu]) for i in range(r)),
        ]
        for mu in range(s)
    ]
    z = _blocks([[left[mu * s + nu] for nu in range(s)] for mu in range(s)]).solve(_blocks(right))
    rows = z.tolist()
    z_nu = [arb_mat(rows[nu * n : (nu + 1) * n]) for nu in range(s)]
    mean = sum((z_nu[nu] * beta[nu + 1] for nu in range(s)), z_nu[0] * 0)
    zero = identity * 0
    dp = K * (mean * -h) - C * z_nu[-1] + _blocks([[K * -h, zero, *(identity * (h * b[i]) for i in range(r))]])
    return z, dp, method.table.c


def _rk4(h: Any, M: Any, K: Any, C: Any) -> tuple[Any, Any, FloatArray]:
    """The four stages of q̇ = M⁻¹p, ṗ = −Kq − C M⁻¹p + f(t), each a matrix of (q_k, p_k, f(t), f(t + h/2), f(t + h))."""
    n = M.nrows()
    identity = _matrix(np.eye(n))
    zero = identity * 0
    q, p = _blocks([[identity, zero, zero, zero, zero]]), _blocks([[zero, identity, zero, zero, zero]])
    f = [_blocks([[zero, zero, *(identity if i == j else zero for j in range(3))]]) for i in range(3)]
    M_inverse = M.inv()

    def rate(q: Any, p: Any, f: Any) -> tuple[Any, Any]:
        v = M_inverse * p
        return v, f - K * q - C * v

    k1 = rate(q, p, f[0])
    k2 = rate(q + k1[0] * (h / 2), p + k1[1] * (h / 2), f[1])
    k3 = rate(q + k2[0] * (h / 2), p + k2[1] * (h / 2), f[1])
    k4 = rate(q + k3[0] * h, p + k3[1] * h, f[2])
    z, dp = ((a + b * 2 + c * 2 + d) * (h / 6) for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
    return z, dp, np.array([0.0, 0.5, 1.0])


def _matrix(a: FloatArray) -> Any:
    return arb_mat([[arb(float(x)) for x in row] for row in a])


def _float(a: Any) -> FloatArray:
    return np.array([float(x.mid()) for x in a.entries()]).reshape(a.nrows(), a.ncols())


def _blocks(blocks: list[list[Any]]) -> Any:
    rows = (zip(*(block.tolist() for block in row), strict=True) for row in blocks)
    return arb_mat([list(chain.from_iterable(parts)) for row in rows for parts in row])
