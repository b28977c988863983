"""Step resonance: at which h does the energy of a long run degrade?

A symplectic step keeps the energy error bounded, and of the size h^p, as long as h is away from resonances with the
system's own frequencies (where hω is near a multiple of π: the thin gaps of `stability`) and from the end of the branch
of solutions that begins at h = 0. Over a scan of h three signs show where this bound fails: the error grows during the
run, the error stands out from the errors at neighbouring h, or a step cannot be solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.analysis import figures
from leastaction.docstrings import documented
from leastaction.errors import StepFailed, measuring
from leastaction.integrate import integrate
from leastaction.methods import Method
from leastaction.methods import method as method_named
from leastaction.numbers.arrays import FloatArray
from leastaction.printing import table
from leastaction.results.path import Path
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.protocol import require_lagrangian

GROWS = 1.8  # the second half's error over the first's: about 1 if bounded, 2 for a steady drift
STANDS_OUT = 10.0  # times what the neighbours have
NEIGHBOURS = 5  # on each side


@dataclass(frozen=True, eq=False)
class Resonance(figures.Drawn, picture=figures.draw_resonance):
    """Energy errors of long runs over h. `la.analysis.resonance` gives it.

    `plot` draws the energy error over h; degraded steps in colour, failed ones as lines.
    """

    system: Lagrangian
    method: Method
    t_end: float
    h: Annotated[FloatArray, "shape (K,)", "The steps."]
    error: Annotated[FloatArray, "shape (K,)", "max |E − E₀|, relative to the largest |p·v|; inf where a step failed."]
    growth: Annotated[FloatArray, "shape (K,)", "The error in the second half of the run over that in the first."]
    excess: Annotated[FloatArray, "shape (K,)", "The error over the errors at neighbouring h; nan at the ends."]
    continued: Annotated[FloatArray, "shape (K,)", "The part of steps whose root was found by continuation in h."]
    remark: Annotated[tuple[str, ...], '"", "grows", "stands out", "failed", or several of these.']

    @property
    def degraded(self) -> FloatArray:
        """The steps h with a remark."""
        return self.h[[bool(remark) for remark in self.remark]]

    def __repr__(self) -> str:
        head = f"{self.method.name} on {self.system.name} over t = {self.t_end:g}: "
        head += f"{len(self.degraded)} of {len(self.h)} steps h show degraded energy"
        rows = []
        for remark, group in groupby(range(len(self.h)), key=lambda k: self.remark[k]):
            k = list(group)
            if remark:
                ends = f"{self.h[k[0]]:.6g}" + (f" … {self.h[k[-1]]:.6g}" if len(k) > 1 else "")
                rows.append([ends, f"{self.error[k].max():.2e}", f"{self.continued[k].max():.0%}", remark])
        return head + ("\n" + table(["h", "energy error", "continued", ""], rows) if rows else "")


@documented()
def resonance(
    system: Lagrangian, method: str | Method, q0: ArrayLike, p0: ArrayLike | None = None,
    h: Sequence[float] | FloatArray | None = None, *, v0: ArrayLike | None = None, t_end: float,
    params: Mapping[str, Any] | None = None,
) -> Resonance:  # fmt: skip
    """Run a system with each of many steps h, and say at which the energy degrades.

    Parameters
    ----------
    system : Lagrangian
        A system without forces that does not depend on time.
    {method}
    {start}
    h : sequence of float
        At least two positive steps.
    t_end : float
        Until when each run goes.
    {params}

    Raises
    ------
    ValueError
        A force acts, or there are fewer than two steps.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> scan = la.analysis.resonance(pendulum, "simpson", [1.0], [0.0], h=[0.1, 0.2, 0.3], t_end=50)
    >>> len(scan.degraded)
    0
    """
    require_lagrangian(system, "resonance")
    if system.forced:
        raise ValueError(
            f"a force acts on {system.name} and its work changes the energy, so a change of the energy shows no "
            "resonance. Scan the system without its force, or look at path.energy() - path.work()"
        )
    chosen = method_named(method)
    steps = np.sort(np.atleast_1d(np.asarray([] if h is None else h, float)))
    if steps.ndim != 1 or len(steps) < 2 or not (steps > 0).all():
        raise ValueError("h must be two or more positive steps")
    start = {"q0": q0, "p0": p0, "v0": v0, "params": params}
    error, growth, continued = np.array([_run(system, chosen, start, float(x), t_end) for x in steps]).T
    excess = np.array([_excess(error, k) for k in range(len(steps))])
    remarks = []
    for k in range(len(steps)):
        found = {
            "failed": np.isinf(error[k]),
            "grows": growth[k] > GROWS,
            "stands out": excess[k] > STANDS_OUT and np.isfinite(error[k]),
        }
        remarks.append(", ".join(name for name, holds in found.items() if holds))
    return Resonance(system, chosen, float(t_end), steps, error, growth, excess, continued, tuple(remarks))


def _run(
    system: Lagrangian, chosen: Method, start: Mapping[str, Any], h: float, t_end: float
) -> tuple[float, float, float]:
    try:
        with measuring():
            path = integrate(system, chosen, **start, h=h, t_end=t_end)
    except StepFailed as failure:
        return np.inf, np.nan, _continued(failure.path)
    with np.errstate(over="ignore", invalid="ignore"):
        energy = path.energy()
        kinetic = float(np.abs(np.einsum("ki,ki->k", path.p[:2], path.velocity()[:2])).max())
        away = np.abs(energy - energy[0]) / (max(kinetic, abs(float(energy[0]))) or 1.0)
    if not np.isfinite(away).all():
        return np.inf, np.nan, _continued(path)
    half = (len(away) + 1) // 2
    floor = 64 * np.finfo(float).eps  # growth of round-off is no resonance
    growth = (away[half:].max(initial=0.0) + floor) / (away[:half].max() + floor)
    return float(away.max()), float(growth), _continued(path)


def _continued(path: Path) -> float:
    return float(path.stats.get("continued", 0)) / max(1, path.stats["steps"])


def _excess(error: FloatArray, k: int) -> float:
    """The error over the larger of the medians to either side, so that a steep but smooth rise does not count."""
    sides = [error[max(0, k - NEIGHBOURS) : k], error[k + 1 : k + 1 + NEIGHBOURS]]
    medians = [np.median(side[np.isfinite(side)]) for side in sides if np.isfinite(side).any()]
    if len(medians) < 2 or not np.isfinite(error[k]) or not max(medians) > 0:
        return float("nan")
    return float(error[k] / max(medians))
