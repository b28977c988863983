"""The equations of a step by the velocities at its nodes: of polynomials of degree s with Gauss' rule of s nodes.

The velocities V_j can be the unknowns in place of the z^ν, and the equations of a step become those of a Runge–Kutta
method,

    Z_i = Σ_j N_ij w_j V_j,      m(q + Z_i, V_i) = P_i = p + Σ_j N_ij w_j f(q + Z_j, V_j),      w_j = h b_j,
    q⁺ = q + Σ_j w_j V_j,        p⁺ = p + Σ_j w_j f_j .

A step is symplectic if N_ij + N_ji = 1, whatever the rounding of N: so of each pair the larger number is rounded, and
the other one is 1 minus it, which is exact. Linearised with the same derivatives at all nodes the equations fall apart
by the eigenvalues λ of N_ij b_j = T λ T⁻¹ (`shifts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lagrange_basis, rounded
from leastaction.numbers.precision import mpmath_digits

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Tables of the velocities at the nodes.

    places    N
    lift      from w_j V_j to the z^ν, (s, s)
    middle    from V_j to Z/h and V in the middle of the step, (2, s)
    shift     λ, of conjugate pairs the one with a positive imaginary part: real and imaginary parts, (2, S)
    into      rows of T⁻¹ for these, (2, S, s)
    out       from solutions to velocities, (2, s, S): real parts times the first, imaginary ones times the second
    """

    places: FloatArray
    lift: FloatArray
    middle: FloatArray
    shift: FloatArray
    into: FloatArray
    out: FloatArray


@lru_cache(maxsize=64)
def nodes_of(method: Galerkin) -> Nodes | None:
    """The tables of a method, or None where its steps are not collocation by a rule of Gauss."""
    s, table = method.s, method.exact_table(40)
    if len(table["c"]) != s or method.rule.order < 2 * s:
        return None
    with mpmath_digits(60):
        l, dl = (mpmath.matrix([list(row[1:]) for row in table[name]]) for name in ("l", "dl"))
        by_velocity = dl**-1
        weighed = by_velocity * mpmath.diag([1 / b for b in table["b"]])
        N = l * weighed
        larger = [[float(max(N[i, j], 1 - N[i, j])) for j in range(s)] for i in range(s)]
        first = [[bool(2 * N[i, j] >= 1) for j in range(s)] for i in range(s)]
        values, slopes = lagrange_basis(list(table["d"]), [mpmath.mpf("0.5")])
        middle = mpmath.matrix([values[0][1:], slopes[0][1:]]) * by_velocity
    places = np.where(first, larger, 1.0 - np.array(larger))
    lift = np.array([*rounded(weighed.tolist())[:-1], [1.0] * s])
    shift, T = np.linalg.eig(places * method.table.b)
    keep = shift.imag >= 0
    out = T[:, keep] * np.where(shift.imag > 0, 2.0, 1.0)[keep]
    into = np.linalg.inv(T)[keep]
    return Nodes(
        places,
        lift,
        rounded(middle.tolist()),
        np.stack([shift[keep].real, shift[keep].imag]),
        np.stack([into.real, into.imag]),
        np.stack([out.real, -out.imag]),
    )
