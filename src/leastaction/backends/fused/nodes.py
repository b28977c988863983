"""The equations of a step by the velocities at its nodes: of polynomials of degree s with Gauss' rule of s nodes.

The velocities V_j can be the unknowns in place of the z^ν, and the equations of a step become those of a Runge–Kutta
method,

    Z_i = Σ_j N_ij w_j V_j,      m(q + Z_i, V_i) = P_i = p + Σ_j N_ij w_j f(q + Z_j, V_j),      w_j = h b_j,
    q⁺ = q + Σ_j w_j V_j,        p⁺ = p + Σ_j w_j f_j .

A step is symplectic if N_ij + N_ji = 1, whatever the rounding of N: so of each pair the larger number is rounded, and
the other one is 1 minus it, which is exact. Since nodes lie symmetrically, N_ij + N_i′j′ = 1, too, where i′ is the node
opposite to i. So N = ½ + S takes half as many products, with sums and differences of opposite numbers (`summed`): with
a_ij = (S_ij + S_ij′)/2 for i in the first half of the step,

    Σ_j N_ij x_j  = ½ Σ_j x_j + Σ_j a_ij (x_j + x_j′) − Σ_j a_ji (x_j − x_j′),
    Σ_j N_i′j x_j = ½ Σ_j x_j − Σ_j a_ij (x_j + x_j′) − Σ_j a_ji (x_j − x_j′),      j in the first half,

and a node in the middle counts in the first sums once. Any rounding of a gives a symplectic step.

Linearised with the same derivatives at all nodes the equations fall apart by the eigenvalues λ of N_ij b_j = T λ T⁻¹
(`shifted_systems`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import add, sub

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lagrange_basis, rounded
from leastaction.numbers.precision import mpmath_digits
from leastaction.step.rows import Row, combine, total

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Tables of the velocities at the nodes.

    places    N
    folded    a, (s/2, s/2), with a column S_im behind it where there is a node m in the middle
    lift      from w_j V_j to the z^ν, (s, s)
    middle    from V_j to Z/h and V in the middle of the step, (2, s)
    shift     λ, of conjugate pairs the one with a positive imaginary part: real and imaginary parts, (2, S)
    into      rows of T⁻¹ for these, (2, S, s)
    out       from solutions to velocities, (2, s, S): real parts times the first, imaginary ones times the second
    led       from solutions to places over h in the same way: N b out
    """

    places: FloatArray
    folded: FloatArray
    lift: FloatArray
    middle: FloatArray
    shift: FloatArray
    into: FloatArray
    out: FloatArray
    led: FloatArray


def collocates(method: Galerkin) -> bool:
    """Whether steps are collocation by a rule of Gauss."""
    return len(method.table.c) == method.s and method.rule.order >= 2 * method.s


def shift_count(method: Galerkin) -> int:
    """How many shifts a step falls apart into: half of s, and more where rounding makes real numbers of a pair."""
    nodes = nodes_of(method)
    return (method.s + 1) // 2 if nodes is None else nodes.shift.shape[1]


@lru_cache(maxsize=64)
def nodes_of(method: Galerkin) -> Nodes | None:
    """The tables of a method, or None where its steps are not collocation by a rule of Gauss."""
    if not collocates(method):
        return None
    s, table = method.s, method.exact_table(40)
    with mpmath_digits(60):
        l, dl = (mpmath.matrix([list(row[1:]) for row in table[name]]) for name in ("l", "dl"))
        by_velocity = dl**-1
        weighed = by_velocity * mpmath.diag([1 / b for b in table["b"]])
        N = l * weighed
        half = s // 2
        folded = [[(N[i, j] + N[i, s - 1 - j] - 1) / 2 for j in range(half)] for i in range(half)]
        folded = [[*row, *(N[i, j] - 0.5 for j in range(half, s - half))] for i, row in enumerate(folded)]
        larger = [[float(max(N[i, j], 1 - N[i, j])) for j in range(s)] for i in range(s)]
        first = [[bool(2 * N[i, j] >= 1) for j in range(s)] for i in range(s)]
        values, slopes = lagrange_basis(list(table["d"]), [mpmath.mpf("0.5")])
        middle = mpmath.matrix([values[0][1:], slopes[0][1:]]) * by_velocity
    places = np.where(first, larger, 1.0 - np.array(larger))
    lift = np.array([*rounded(weighed.tolist())[:-1], [1.0] * s])
    shift, T = np.linalg.eig(places * method.table.b)
    keep = shift.imag >= 0
    by_parts = T[:, keep] * np.where(shift.imag > 0, 2.0, 1.0)[keep]
    # Vectors may have any length: an entry that is 1 needs no product.
    largest = np.abs(by_parts).argmax(axis=0), np.arange(by_parts.shape[1])
    leading = by_parts[largest]
    by_parts, into = by_parts / leading, np.linalg.inv(T)[keep] * leading[:, None]
    by_parts[largest] = 1.0
    out = np.stack([by_parts.real, -by_parts.imag])
    return Nodes(
        places,
        rounded(folded).reshape(half, s - half),
        lift,
        rounded(middle.tolist()),
        np.stack([shift[keep].real, shift[keep].imag]),
        np.stack([into.real, into.imag]),
        out,
        (places * method.table.b) @ out,
    )


def summed(nodes: Nodes, x: Row) -> Row:
    """Σ_j N_ij x_j for every node i, where every number is a value."""
    half = len(x) // 2
    if half == 0:
        return [y * 0.5 for y in x]
    opposite = list(zip(x[:half], x[: -half - 1 : -1], strict=True))
    sums = [a + b for a, b in opposite] + x[half : len(x) - half]
    even = combine(nodes.folded.T.tolist(), sums)
    odd = combine(nodes.folded.tolist(), [a - b for a, b in opposite])
    whole = total(sums) * 0.5
    along = [whole - y for y in odd]
    first, last = ([step(a, b) for a, b in zip(along, even, strict=False)] for step in (add, sub))
    return first + along[half:] + last[::-1]
