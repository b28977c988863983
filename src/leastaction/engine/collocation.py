"""Tables of steps that are collocation by a rule of Gauss: degree s, s nodes.

The velocities V_j at the nodes can be the unknowns in place of the z^ν, and the equations of a step become those of a
Runge–Kutta method,

    Z_i = Σ_j N_ij w_j V_j,      m(q + Z_i, V_i) = P_i = p + Σ_j N_ij w_j f(q + Z_j, V_j),      w_j = h b_j,
    q⁺ = q + Σ_j w_j V_j,        p⁺ = p + Σ_j w_j f_j .

A step is symplectic if N_ij + N_ji = 1, whatever the rounding of N. So of each pair the larger number is rounded, and
the other one is 1 minus it, which is exact.

Linearised with the same derivatives at all nodes the equations fall apart by the eigenvalues λ of N_ij b_j = T λ T⁻¹
(`shifted`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lagrange_basis, rounded
from leastaction.numbers.precision import mpmath_digits
from leastaction.step.rows import Table

FloatArray = NDArray[np.float64]


def collocates(method: Galerkin) -> bool:
    """Whether steps are collocation by a rule of Gauss."""
    return len(method.table.c) == method.s and method.rule.order >= 2 * method.s


@dataclass(frozen=True, eq=False)
class Collocation:
    """Tables of the velocities at the nodes.

    places    N
    lift      from w_j V_j to the z^ν, (s, s)
    middle    from V_j to Z/h and V in the middle of the step, (2, s)
    shift     λ, of conjugate pairs the one with a positive imaginary part: real and imaginary parts, (2, S)
    into      rows of T⁻¹ for these, (2, S, s)
    out       from solutions to velocities, (2, s, S): real parts times the first, imaginary ones times the second
    led       from solutions to places over h in the same way: N b out
    """

    places: FloatArray
    lift: FloatArray
    middle: FloatArray
    shift: FloatArray
    into: FloatArray
    out: FloatArray
    led: FloatArray

    def parted(self) -> dict[str, Table]:
        """Tables for shifted systems, real and imaginary parts apart; those of λ and `led` are times h."""
        found: dict[str, Table] = {}
        for k, part in enumerate(("re", "im")):
            found |= {f"shift {part}": partial(np.multiply, self.shift[k][:, None]), f"into {part}": self.into[k]}
            found |= {f"led {part}": partial(np.multiply, self.led[k]), f"out {part}": self.out[k]}
        return found

    def paired(self, lanes: int) -> dict[str, Table]:
        """The same with real parts in one half of a vector and imaginary ones in the other; none where half a vector
        does not hold all of them.
        """
        half, S = lanes // 2, self.shift.shape[1]
        if half < S:
            return {}

        def both(re: FloatArray, im: FloatArray) -> FloatArray:
            found = np.zeros((lanes, re.shape[1]))
            found[:S], found[half : half + S] = re, im
            return found

        ones, (re, im) = np.ones((S, 1)), self.shift[:, :, None]
        out, led = (both(*(part.T for part in table)).T for table in (self.out, self.led))
        return {
            "shift re": partial(np.multiply, both(re, re)), "shift im": partial(np.multiply, both(im, im)),
            "led": partial(np.multiply, led), "into": both(*self.into), "out": out, "signs": both(-ones, ones),
        }  # fmt: skip


@lru_cache(maxsize=64)
def collocation(method: Galerkin) -> Collocation:
    """The tables of a method whose steps are collocation."""
    s, table = method.s, method.exact_table(40)
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
    by_parts = T[:, keep] * np.where(shift.imag > 0, 2.0, 1.0)[keep]
    # Vectors may have any length: an entry that is 1 needs no product.
    largest = np.abs(by_parts).argmax(axis=0), np.arange(by_parts.shape[1])
    leading = by_parts[largest]
    by_parts, into = by_parts / leading, np.linalg.inv(T)[keep] * leading[:, None]
    by_parts[largest] = 1.0
    out = np.stack([by_parts.real, -by_parts.imag])
    return Collocation(
        places, lift, rounded(middle.tolist()), np.stack([shift[keep].real, shift[keep].imag]),
        np.stack([into.real, into.imag]), out, (places * method.table.b) @ out,
    )  # fmt: skip
