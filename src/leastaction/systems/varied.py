"""Linear systems whose matrices differ from trajectory to trajectory, for ensembles: noise in M and K.

A Quadratic system has one matrix for its steps. With a matrix for each trajectory there is nothing to share, so the
system is run as the Lagrangian ½ v·Mv − ½ q·Kq, with M and K as parameters, in lanes like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leastaction.errors import UnstableStepError
from leastaction.linear import Quadratic
from leastaction.linear.forcing import Constant
from leastaction.linear.stability import require_stable
from leastaction.methods import Method
from leastaction.numbers.rounding import FLOAT64, to_float
from leastaction.systems.lagrangian import Lagrangian

MOST_VARIED = 32  # degrees of freedom of linear systems whose matrices vary from trajectory to trajectory


def varied(
    system: Quadratic, method: str | Method, h: Any, params: Mapping[str, Any], allow_unstable: bool
) -> Lagrangian:
    """The Quadratic system as a Lagrangian whose parameters are M, K and, if the system has them, C and a constant f.
    Each trajectory may have its own values: given matrices are checked like the system's, and h is checked for each.
    """
    if system.n > MOST_VARIED:
        raise ValueError(
            f"an ensemble whose trajectories have matrices of their own can have up to {MOST_VARIED} degrees of "
            f"freedom; this system has {system.n}. Run one la.Quadratic after the other"
        )
    if system.f is not None and not isinstance(system.f, Constant):
        raise ValueError(
            "in an ensemble whose trajectories have matrices of their own the load f must be constant, or none"
        )
    M, K, C = system.exact_matrices(FLOAT64)
    own: dict[str, Any] = {"M": system.unrounded.get("M", M), "K": system.unrounded.get("K", K)}
    if C is not None:
        own["C"] = C
    if isinstance(system.f, Constant):
        own["f"] = system.f.value
    full = {name: np.diag(a) if name != "f" and np.ndim(a) == 1 else a for name, a in own.items()}
    if unknown := [name for name in params if name not in full]:
        raise ValueError(f"this Quadratic system has {', '.join(full)}, of which each trajectory may have its own; got "
                         f"{unknown[0]!r}")  # fmt: skip
    made = Lagrangian(
        lambda q, v, M, K: (v @ M @ v - q @ K @ q) / 2,
        n=system.n,
        params=full,
        force=_FORCES.get(("C" in full, "f" in full)),
    )
    made.name = system.name
    given = {name: np.asarray(params.get(name, full[name]), dtype=object) for name in ("M", "K", "C") if name in full}
    sizes = {len(a) for a in given.values() if a.ndim == 3} or {1}
    for b in range(max(sizes) if len(sizes) == 1 else 0):  # the run refuses unlike sizes
        one = {name: (a[b] if a.ndim == 3 else a).tolist() for name, a in given.items()}
        try:
            single = Quadratic(one["M"], one["K"], C=one.get("C"))
        except ValueError as error:
            raise ValueError(f"trajectory {b}: {error}") from None
        if not allow_unstable:
            try:
                require_stable(single.propagator(method, to_float(h)))
            except UnstableStepError as error:
                raise UnstableStepError(f"trajectory {b}: {error}") from None
    return made


_FORCES: dict[tuple[bool, bool], Callable[..., Any]] = {
    (True, False): lambda q, v, C: -C @ v,
    (False, True): lambda q, v, f: f,
    (True, True): lambda q, v, C, f: f - C @ v,
}
