"""The tangent map: the exact derivative of one step or many, by the state, the parameters and h.

Φ' comes from the linearised discrete equations (`leastaction.engine.directions`), not from differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.docstrings import documented
from leastaction.integrate import integrate
from leastaction.methods import Method
from leastaction.numbers.arrays import FloatArray
from leastaction.printing import freedom
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import require_lagrangian


@dataclass(frozen=True, eq=False)
class Tangent(figures.Drawn, picture=figures.draw_tangent):
    """Where some steps lead, and the derivative of that. `la.tangent` gives it.

    `plot` draws Φ' as a matrix: how each part of the state before moves each part of the state after.
    """

    q: Annotated[FloatArray, "shape (n,)", "Positions after the steps."]
    p: Annotated[FloatArray, "shape (n,)", "Momenta after the steps."]
    state: Annotated[FloatArray, "shape (2n, 2n)", "Φ' = ∂(q, p)_after / ∂(q, p)_before."]
    params: Annotated[Mapping[str, FloatArray], "∂(q, p)_after / ∂w of each parameter w, q and p before fixed."]
    h: Annotated[FloatArray, "shape (2n,)", "∂(q, p)_after / ∂h, where every step grows."]

    def __repr__(self) -> str:
        names = "".join(f", {name}" for name in self.params)
        with np.printoptions(precision=6, suppress=True):
            return f"Tangent of {freedom(len(self.q))}, by the state{names} and h\n{self.state}"


@documented()
def tangent(
    system: Lagrangian, method: str | Method, q: ArrayLike, p: ArrayLike, h: float, *, steps: int = 1, t0: float = 0.0,
    params: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None,
) -> Tangent:  # fmt: skip
    """The exact derivative of some steps, by the state, the parameters and h.

    It comes from the linearised discrete equations, not from differences.

    Parameters
    ----------
    system : Lagrangian
        What moves.
    {method, state, h, steps, t0, params}
    inputs : mapping of str to array_like, optional
        Of a system with inputs, the values in each step, as for `la.integrate`.

    Raises
    ------
    StepFailed
        A step cannot be solved.
    TypeError
        The system is not a Lagrangian.

    Examples
    --------
    >>> import leastaction as la
    >>> free = la.Lagrangian(lambda q, v, m: 0.5 * m * v[0] ** 2, n=1, params={"m": 2.0})
    >>> step = la.tangent(free, "midpoint", [0.0], [1.0], h=0.5)
    >>> step.state
    array([[1.  , 0.25],
           [0.  , 1.  ]])
    >>> step.params["m"], step.h
    (array([-0.125,  0.   ]), array([0.5, 0. ]))
    """
    require_lagrangian(
        system,
        "la.tangent, which varies parameters,",
        "For the derivative by the state alone, la.integrate(..., tangent=True) takes all systems",
    )
    path = integrate(
        system, method, q, p, h=h, steps=steps, t0=t0, params=params, inputs=inputs, every=steps, tangent="all"
    )
    assert path.tangent is not None and path.sensitivity is not None
    named, column = {}, 0
    for name, value in system.params.items():
        shape = np.shape(value)
        size = int(np.prod(shape, dtype=int))
        named[name] = path.sensitivity[-1, :, column : column + size].reshape(2 * system.n, *shape)
        column += size
    return Tangent(path.q[-1], path.p[-1], path.tangent[-1], named, path.sensitivity[-1, :, -1])
