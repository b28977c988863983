"""Symplecticity and reversibility of a step, measured by its exact derivative and by going back.

A step Φ is symplectic where Φ'ᵀ J Φ' = J, J = ((0, 1), (−1, 0)), and symmetric (for even L also reversible) where
Φ_{−h} Φ_h = id. Both hold for every member of the family, whatever the system and h: the defects are round-off.

With forces a step stays symmetric, but the motion itself is not symplectic any more (friction contracts volumes), so
that its defect would say nothing about the method: such a system is refused. A force of t alone is allowed.

Where constraints hold, the step is a map of their manifold, and is symplectic there: uᵀ(Φ'ᵀ J Φ' − J) w = 0 for all
directions u, w tangent to g = 0 and ġ = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.docstrings import documented
from leastaction.integrate import integrate
from leastaction.linear import Quadratic
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.numbers.arrays import FloatArray
from leastaction.printing import table
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.projection import tangent_basis


def symplectic_matrix(n: int) -> FloatArray:
    """J = ((0, 1), (−1, 0)) of n degrees of freedom.

    Parameters
    ----------
    n : int
        Degrees of freedom.

    Examples
    --------
    >>> import leastaction as la
    >>> la.analysis.symplectic_matrix(1)
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    return np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


@documented()
def symplectic_defect(
    system: Lagrangian | Quadratic, method: str | Method, q: ArrayLike, p: ArrayLike, h: float, *, steps: int = 1,
    t0: float = 0.0, params: Mapping[str, Any] | None = None,
) -> float:  # fmt: skip
    """‖Φ'ᵀ J Φ' − J‖ (Frobenius) of one step or several: round-off where the method is symplectic.

    Where constraints hold, it is measured on their manifold.

    Parameters
    ----------
    system : Lagrangian or Quadratic
        A system whose force, if any, depends on t alone: friction is not symplectic.
    {method, state, h, steps, t0, params}

    Raises
    ------
    ValueError
        A force depends on q or v.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> la.analysis.symplectic_defect(pendulum, "simpson", [1.0], [0.5], h=0.3) < 1e-14
    True
    >>> la.analysis.symplectic_defect(pendulum, "rk4", [1.0], [0.5], h=0.3) > 1e-6
    True
    """
    _require_symplectic(system)
    path = integrate(system, method, q, p, h=h, steps=steps, t0=t0, params=params, every=steps, tangent=True)
    assert path.tangent is not None
    D = path.tangent[-1]
    J = symplectic_matrix(system.n)
    defect = D.T @ J @ D - J
    if system.m:
        N = tangent_basis(
            cast(Lagrangian, system.expanded()), float(path.t[0]), path.q[0], path.p[0], system.values(params)
        )
        defect = N.T @ defect @ N
    return float(np.linalg.norm(defect))


def _require_symplectic(system: Lagrangian | Quadratic) -> None:
    """Refuse systems whose exact motion is not symplectic."""
    if system.forced_by_state:
        raise ValueError(
            f"a force that depends on q or v acts on {system.name}, so the exact motion is not symplectic, and a "
            "defect would say nothing about the method. Ask for the defect without the force; la.tangent gives the "
            "derivative of the forced motion"
        )


@documented()
def reversibility_defect(
    system: Lagrangian | Quadratic, method: str | Method, q: ArrayLike, p: ArrayLike, h: float, *, steps: int = 1,
    t0: float = 0.0, params: Mapping[str, Any] | None = None,
) -> float:  # fmt: skip
    """‖Φ_{−h} Φ_h − id‖ (Euclidean) at (q, p): how far steps forward and the same steps back lead away.

    Parameters
    ----------
    system : Lagrangian or Quadratic
        What moves.
    {method, state, h, steps, t0, params}

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> la.analysis.reversibility_defect(pendulum, "simpson", [1.0], [0.5], h=0.3) < 1e-14
    True
    """
    there = integrate(system, method, q, p, h=h, steps=steps, t0=t0, params=params, every=steps)
    back = integrate(
        system, method, there.q[-1], there.p[-1], h=-h, steps=steps, t0=t0 + steps * h, params=params, every=steps
    )
    return float(np.linalg.norm(np.concatenate([back.q[-1] - there.q[0], back.p[-1] - there.p[0]])))


@dataclass(frozen=True, eq=False)
class Structure(figures.Drawn, picture=figures.draw_structure):
    """Symplectic and reversibility defects of methods over h. `la.analysis.structure` gives it.

    `plot` draws both defects over h: a slope where a method lacks the property, round-off where it has it.
    """

    methods: Annotated[tuple[Method, ...], "The rows."]
    h: Annotated[FloatArray, "shape (K,)", "The columns."]
    symplectic: Annotated[FloatArray, "shape (methods, K)", "Defects of Φ'ᵀ J Φ' = J."]
    reversibility: Annotated[FloatArray, "shape (methods, K)", "Defects of Φ_{−h} Φ_h = id."]

    def __repr__(self) -> str:
        rows = [
            [chosen.name, f"{h:g}", f"{self.symplectic[i, k]:.2e}", f"{self.reversibility[i, k]:.2e}"]
            for i, chosen in enumerate(self.methods)
            for k, h in enumerate(self.h)
        ]
        return table(["method", "h", "‖Φ'ᵀJΦ' − J‖", "‖Φ₋ₕΦₕ − id‖"], rows)


@documented()
def structure(
    system: Lagrangian | Quadratic, methods: str | Method | Sequence[str | Method], q: ArrayLike, p: ArrayLike,
    h: ArrayLike, *, params: Mapping[str, Any] | None = None,
) -> Structure:  # fmt: skip
    """Measure the symplectic and the reversibility defect of one step, for methods and steps h.

    Parameters
    ----------
    system : Lagrangian or Quadratic
        As for `la.analysis.symplectic_defect`.
    methods : str, method or sequence of them
        Which methods.
    q, p : array_like, shape (n,)
        The state before the step.
    h : array_like
        Steps.
    {params}

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> la.analysis.structure(pendulum, "simpson", [1.0], [0.5], [0.1, 0.2]).symplectic.shape
    (1, 2)
    """
    _require_symplectic(system)
    names = [methods] if not isinstance(methods, Sequence) or isinstance(methods, str) else list(methods)
    chosen = tuple(method_named(name) for name in names)
    steps = np.atleast_1d(np.asarray(h, float))
    defects = [
        [[defect(system, m, q, p, float(x), params=params) for x in steps] for m in chosen]
        for defect in (symplectic_defect, reversibility_defect)
    ]
    return Structure(chosen, steps, np.array(defects[0]), np.array(defects[1]))
