"""Tables of a member for iterations on the increments z^ν at its control points.

The equations of a step, linearised with the same derivatives at all points, are

    (A ⊗ M − h² B ⊗ f_q) dz = −h R,      A_νμ = Σ_i b_i l_ν′(c_i) l_μ′(c_i),      B_νμ = Σ_i b_i l_ν(c_i) l_μ(c_i) .

With A⁻¹B = V γ V⁻¹ they fall apart into systems of the size of the mechanics (`shifts_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Galerkin
from leastaction.methods.quadrature import lagrange_basis, rounded
from leastaction.numbers.precision import mpmath_digits
from leastaction.step import prediction
from leastaction.step.form import Samples, Stencils, Step, samples, stencils
from leastaction.step.rows import Table

FloatArray = NDArray[np.float64]

# What the tables of a term are made of, by name.
STENCILS: dict[str, Callable[[Stencils], NDArray[Any]]] = {
    "times": lambda of: of.times[:, None],
    "weights": lambda of: of.weights[:, None],
    "q": lambda of: of.gather["q"],
    "v": lambda of: of.gather["v"],
    "f": lambda of: of.scatter["f"].T,
    "m": lambda of: of.scatter["m"].T,
}


def stencil_tables(step: Step) -> dict[str, Table]:
    """Of term e of a step: "times e", "weights e", gather "q e" and "v e", scatter "f e" and "m e"."""

    def table(samples: Samples, name: str, h: Any) -> NDArray[Any]:
        return STENCILS[name](stencils(samples, h))

    of = [step.samples(term) for term in step.terms]
    return {f"{name} {e}": partial(table, samples, name) for e, samples in enumerate(of) for name in STENCILS}


def tables(step: Step) -> dict[str, Table]:
    """The stencils, the prediction's tables, −h A⁻¹ ("solve"), and the place of z^s ("end")."""
    table, inverse = step.method.table, inverse_of(step.method)
    return {
        **prediction.tables(table.modes, table.growth),
        "solve": lambda h: inverse * -h,
        "end": np.eye(step.s)[:, -1:],
        **stencil_tables(step),
    }


def padded(step: Step) -> frozenset[str]:
    """The tables by which points are found: lanes without a point repeat the last point."""
    return frozenset(f"{name} {e}" for e in range(len(step.terms)) for name in ("times", "q", "v"))


@lru_cache(maxsize=64)
def inverse_of(method: Galerkin) -> FloatArray:
    """A⁻¹, every entry rounded once."""
    table = method.exact_table(40)
    with mpmath_digits(60):
        dl = mpmath.matrix([list(row[1:]) for row in table["dl"]])
        inverse = (dl.T * mpmath.diag(list(table["b"])) * dl) ** -1
        rows = [[(inverse[i, j] + inverse[j, i]) / 2 for j in range(method.s)] for i in range(method.s)]
    return np.array([[float(x) for x in row] for row in rows])


@lru_cache(maxsize=64)
def middle_of(method: Galerkin) -> FloatArray:
    """l_ν(½) and l_ν′(½), ν = 1 … s."""
    values, slopes = lagrange_basis(list(method.exact_table()["d"]), [mpmath.mpf("0.5")])
    return rounded([values[0][1:], slopes[0][1:]])


@lru_cache(maxsize=64)
def shifts_of(method: Galerkin) -> dict[str, FloatArray]:
    """γ, of conjugate pairs the one with a positive imaginary part, and α, the diagonal of V⁻¹A⁻¹QV with
    Q_νμ = Σ_i b_i l_ν′(c_i) l_μ(c_i), for forces that depend on v; `into`, rows of V⁻¹A⁻¹, which take equations to
    right-hand sides; `out`, which takes solutions to increments. Real and imaginary parts lie side by side.
    """
    table = stencils(samples(method), 1)
    Q = (table.weights[:, None] * table.scatter["m"]).T @ table.gather["q"]
    gamma, V, keep, out = _decoupled(method)
    into = np.linalg.solve(V, inverse_of(method).astype(V.dtype))
    alpha = np.diagonal(into @ Q @ V)
    return _parts(gamma=gamma[keep], alpha=alpha[keep], into=into[keep], out=out)


@lru_cache(maxsize=64)
def held_of(method: Galerkin) -> dict[str, FloatArray]:
    """The same of constraints: `into_held` takes g to right-hand sides, `out_held` solutions to multipliers. The
    equations have h² W ⊗ Gᵀ dλ beside A ⊗ M dz, and G dz^ν = −g^ν.
    """
    controls = stencils(samples(method, "controls"), 1)
    W = (controls.weights[:, None] * controls.scatter["f"]).T @ controls.gather["multipliers"]
    _, V, keep, out = _decoupled(method)
    reactions = np.linalg.solve(W, np.linalg.solve(inverse_of(method), out))
    return _parts(into_held=np.linalg.inv(V)[keep], out_held=reactions)


def _decoupled(method: Galerkin) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[Any]]:
    """γ, V, which γ are kept, and the matrix from solutions to increments."""
    table = stencils(samples(method), 1)
    B = (table.weights[:, None] * table.scatter["f"]).T @ table.gather["q"]
    gamma, V = np.linalg.eig(inverse_of(method) @ B)
    keep = gamma.imag >= 0
    return gamma, V, keep, V[:, keep] * np.where(gamma.imag > 0, 2.0, 1.0)[keep]


def _parts(**of: NDArray[Any]) -> dict[str, FloatArray]:
    """Real and imaginary parts, side by side."""
    return {name: np.stack([x.real, x.imag], axis=-1) for name, x in of.items()}
