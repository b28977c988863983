"""Which constants of its system a run has kept. Where forces act, their impulse and work are subtracted first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np

from leastaction.analysis import figures
from leastaction.docstrings import described
from leastaction.numbers.arrays import FloatArray
from leastaction.printing import freedom, table
from leastaction.results.impulses import accumulated
from leastaction.results.path import Path

if TYPE_CHECKING:
    from leastaction.analysis.symmetries import Symmetries, Symmetry

ROUND_OFF = 16 * np.finfo(float).eps  # times the root of the number of steps: what a sum of roundings may reach


@described
@dataclass(frozen=True, eq=False)
class Kept:
    """One constant of the motion along a run.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> path = la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.05, steps=100)
    >>> kept = la.analysis.symmetries(kepler.system).check(path)[0]
    >>> kept.name, kept.exactly
    ('rotation in the plane (q0, q1)', True)
    """

    name: Annotated[str, "What it is."]
    values: Annotated[FloatArray, "shape (K,)", "J less what a force brought: p·ξ(q) − ∫ F·ξ dt, or E − W."]
    size: Annotated[float, "How large its terms are: max Σ |p_i (A q + b)_i|; of the energy, max |p·v| + |L|."]
    drift: Annotated[float, "max |J − J₀| / size."]
    exactly: Annotated[bool, "Whether the drift is round-off."]


@dataclass(frozen=True, eq=False)
class Conservation(figures.Drawn, picture=figures.draw_conservation):
    """Which constants of the motion a run preserved, and how well. `la.analysis.Symmetries.check` gives it.

    It is a sequence of `la.analysis.Kept`, by place or by name. `plot` draws |J − J₀| / size of each over time.

    Examples
    --------
    >>> import leastaction as la
    >>> kepler = la.problems.get("kepler")
    >>> path = la.integrate(kepler.system, "simpson", kepler.q0, kepler.p0, h=0.05, steps=100)
    >>> la.analysis.symmetries(kepler.system).check(path)["energy"].exactly  # bounded, but no round-off
    False
    """

    path: Annotated[Path, "The run."]
    kept: Annotated[tuple[Kept, ...], "One entry for each constant."]

    def __iter__(self) -> Iterator[Kept]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int | str) -> Kept:
        """One constant, by place or by name."""
        if isinstance(index, int):
            return self.kept[index]
        for one in self.kept:
            if one.name == index:
                return one
        raise KeyError(f"no constant is called {index!r}; there are {[one.name for one in self.kept]}")

    def __repr__(self) -> str:
        rows = [
            [one.name, f"{one.values[0]:.6g}", f"{one.drift:.1e}", "to round-off" if one.exactly else "no"]
            for one in self.kept
        ]
        path = self.path
        head = f"{path.method.name} on {path.system.name}, h = {path.h:g}, t = {path.t[0]:g} … {path.t[-1]:g}"
        less = " (less what the force brought)" if path.system.forced else ""
        return f"{head}\n" + table([f"constant of the motion{less}", "J₀", "drift", "preserved"], rows)


def check(found: Symmetries, path: Path) -> Conservation:
    """Every symmetry's momentum map, and the energy if L does not depend on time, along a run.

    A force changes a momentum by its impulse along the symmetry and the energy by its work. These are subtracted, and
    the rest is judged. A variational integrator keeps the rest of a momentum to round-off; RK4 keeps the momenta of
    affine symmetries only up to its order.
    """
    if path.system.n != found.system.n:
        raise ValueError(
            f"the path belongs to another system: it has {freedom(path.system.n)}, "
            f"{found.system.name} has {found.system.n}"
        )
    kept, forced = [], found.system.forced
    for symmetry in found:
        moved = _moved(symmetry, path.q)
        momentum = symmetry.momentum(path.q, path.p)
        if forced:
            momentum = momentum - accumulated(path, partial(_moved, symmetry))
        kept.append(_kept(symmetry.name, momentum, np.abs(path.p * moved).sum(axis=1), path))
    if found.energy:
        energy = path.energy()
        kinetic = np.einsum("ki,ki->k", path.p, path.velocity())
        size = np.abs(kinetic) + np.abs(kinetic - energy)
        kept.append(_kept("energy", energy - path.work() if forced else energy, size, path))
    return Conservation(path, tuple(kept))


def _moved(symmetry: Symmetry, q: FloatArray, v: FloatArray | None = None) -> FloatArray:
    """ξ(q) = A q + b, for each row of q."""
    return np.asarray(q @ symmetry.A.T + symmetry.b)


def _kept(name: str, values: FloatArray, sizes: FloatArray, path: Path) -> Kept:
    size = float(sizes.max())
    away = float(np.abs(values - values[0]).max())
    drift = away / size if size > 0 else away
    steps = max(1, round((path.t[-1] - path.t[0]) / path.h))
    return Kept(name, values, size, drift, bool(drift <= ROUND_OFF * np.sqrt(steps)))
