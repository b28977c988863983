"""What an ensemble can compute while it runs, so that its states need not be stored.

EnergyRange     the lowest and the highest energy over all steps
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EnergyRange:
    """For ``reduce=`` of `la.ensemble`: the lowest and the highest energy over all steps of each trajectory.

    The result is an array of shape (B, 2) in `paths.reduced`. No state has to be stored for it.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> E = {"E": la.EnergyRange()}
    >>> paths = la.ensemble(pendulum, "simpson", [[0.5], [1.0]], [0.0], h=0.1, steps=500, final_only=True, reduce=E)
    >>> low, high = paths.reduced["E"].T
    >>> bool((high - low < 1e-6).all())
    True
    """


Reduction = EnergyRange


def wanted(reduce: Mapping[str, Reduction] | None) -> tuple[str, ...]:
    """The names under which the range of the energy is wanted, checked."""
    if reduce is not None and not isinstance(reduce, Mapping):
        raise TypeError(
            f"reduce must be a mapping of names to reductions, such as {{'E': la.EnergyRange()}}; got {reduce!r}"
        )
    for name, reduction in (reduce or {}).items():
        if not isinstance(reduction, EnergyRange):
            raise TypeError(f"reduce[{name!r}] must be la.EnergyRange(); got {reduction!r}. Events go into events=")
    return tuple(reduce or ())
