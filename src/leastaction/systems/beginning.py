"""Whether a trajectory can begin: p and v of its start, or why it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import DegenerateLagrangianError
from leastaction.numbers.rounding import all_finite


def check_start(
    system: Any,
    t: Any,
    q: NDArray[Any],
    p: NDArray[Any] | None,
    v: NDArray[Any] | None,
    params: NDArray[Any],
    inputs: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """p and v where a trajectory begins, or why it cannot; `system` may be a Lagrangian at another precision."""
    if p is None:
        system.check_regular(q, v, t, params)
        p = system.momentum(q, v, t, params)
    else:
        try:
            v = system.velocity(q, p, t, params)
        except DegenerateLagrangianError:
            system.check_regular(q, 0 * q, t, params)
            raise
        system.check_regular(q, v, t, params)
    if not all_finite(p):
        raise ValueError(f"the momentum is not finite at the start, q = {q}, v = {v}: p = {p}")
    if not all_finite(np.array(system.energy(q, p, t, params))):
        raise ValueError(f"L is not finite at the start, q = {q}, v = {v}: the motion begins outside its domain")
    a = system.acceleration(q, v, t, params) if inputs is None else system.acceleration(q, v, t, params, inputs)
    if not all_finite(a):
        raise ValueError(f"the acceleration is not finite at the start, q = {q}, v = {v}: {a}")
    assert v is not None
    return p, v
