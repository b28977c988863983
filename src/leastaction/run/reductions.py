"""What an ensemble can compute while it runs, so that its states need not be stored.

EnergyRange     the lowest and the highest energy over all steps
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class EnergyRange:
    """The lowest and the highest energy over all steps of each trajectory: an array (B, 2)."""


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
