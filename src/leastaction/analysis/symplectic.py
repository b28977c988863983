"""Symplecticity and reversibility of a step, measured by its exact derivative and by going back.

A step Φ is symplectic where Φ'ᵀ J Φ' = J, J = ((0, 1), (−1, 0)), and symmetric (for even L also reversible) where
Φ_{−h} Φ_h = id. Both hold for every member of the family, whatever the system and h: the defects are round-off.

With forces a step stays symmetric, but the motion itself is not symplectic any more (friction contracts volumes), so
that its defect would say nothing of the method: it is refused. A force that depends on t alone does no harm.

Where constraints hold, the step is a map of their manifold, and is symplectic there: uᵀ(Φ'ᵀ J Φ' − J) w = 0 for all
directions u, w tangent to g = 0 and ġ = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.analysis.tables import table
from leastaction.integrate import integrate
from leastaction.lagrangian import Lagrangian
from leastaction.linear import Quadratic
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.projection import tangent_basis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]


def symplectic_matrix(n: int) -> FloatArray:
    """J = ((0, 1), (−1, 0)), (2n, 2n)."""
    return np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


def symplectic_defect(
    system: Lagrangian | Quadratic,
    method: str | Method,
    q: ArrayLike,
    p: ArrayLike,
    h: float,
    *,
    steps: int = 1,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
) -> float:
    """‖Φ'ᵀ J Φ' − J‖ (Frobenius) of one step from (q, p), or of several; where constraints hold, on their manifold.

    >>> pendulum = Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> symplectic_defect(pendulum, "simpson", [1.0], [0.5], h=0.3) < 1e-14
    True
    >>> symplectic_defect(pendulum, "rk4", [1.0], [0.5], h=0.3) > 1e-6
    True
    """
    _require_symplectic(system)
    path = integrate(system, method, q, p, h=h, steps=steps, t0=t0, params=params, every=steps, tangent=True)
    assert path.tangent is not None
    D = path.tangent[-1]
    J = symplectic_matrix(system.n)
    defect = D.T @ J @ D - J
    if system.m:
        assert isinstance(system, Lagrangian)
        N = tangent_basis(system, float(path.t[0]), path.q[0], path.p[0], system.values(params))
        defect = N.T @ defect @ N
    return float(np.linalg.norm(defect))


def _require_symplectic(system: Lagrangian | Quadratic) -> None:
    """Refuse systems whose exact motion is not symplectic."""
    force = system.force if isinstance(system, Lagrangian) else None
    if (force is not None and force.depends("F", "q", "v")) or (isinstance(system, Quadratic) and system.C is not None):
        raise ValueError(
            f"a force acts on {system.name} that depends on q or v: its exact motion is not symplectic, so that a "
            "defect says nothing of the method. Ask for the defect without the force; la.tangent gives the derivative "
            "of the forced motion itself"
        )


def reversibility_defect(
    system: Lagrangian | Quadratic,
    method: str | Method,
    q: ArrayLike,
    p: ArrayLike,
    h: float,
    *,
    steps: int = 1,
    t0: float = 0.0,
    params: Mapping[str, Any] | None = None,
) -> float:
    """‖Φ_{−h} Φ_h − id‖ (Euclidean) at (q, p), after one step forward and one back, or several."""
    there = integrate(system, method, q, p, h=h, steps=steps, t0=t0, params=params, every=steps)
    back = integrate(
        system, method, there.q[-1], there.p[-1], h=-h, steps=steps, t0=t0 + steps * h, params=params, every=steps
    )
    return float(np.linalg.norm(np.concatenate([back.q[-1] - there.q[0], back.p[-1] - there.p[0]])))


@dataclass(frozen=True, eq=False)
class Structure:
    """Symplectic and reversibility defects of methods over h; arrays (methods, steps)."""

    methods: tuple[Method, ...]
    h: FloatArray
    symplectic: FloatArray
    reversibility: FloatArray

    def __repr__(self) -> str:
        rows = [
            [chosen.name, f"{h:g}", f"{self.symplectic[i, k]:.2e}", f"{self.reversibility[i, k]:.2e}"]
            for i, chosen in enumerate(self.methods)
            for k, h in enumerate(self.h)
        ]
        return table(["method", "h", "‖Φ'ᵀJΦ' − J‖", "‖Φ₋ₕΦₕ − id‖"], rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Both defects over h; slopes where a method is not symplectic or not symmetric, round-off where it is."""
        from leastaction.analysis.figures import plot_structure

        return plot_structure(self, ax)


def structure(
    system: Lagrangian | Quadratic,
    methods: str | Method | Sequence[str | Method],
    q: ArrayLike,
    p: ArrayLike,
    hs: ArrayLike,
    *,
    params: Mapping[str, Any] | None = None,
) -> Structure:
    """The symplectic and the reversibility defect of one step from (q, p), for methods and steps h."""
    _require_symplectic(system)
    names = [methods] if not isinstance(methods, Sequence) or isinstance(methods, str) else list(methods)
    chosen = tuple(method_named(name) for name in names)
    h = np.atleast_1d(np.asarray(hs, float))
    defects = [
        [[defect(system, m, q, p, float(x), params=params) for x in h] for m in chosen]
        for defect in (symplectic_defect, reversibility_defect)
    ]
    return Structure(chosen, h, np.array(defects[0]), np.array(defects[1]))
