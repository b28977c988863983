"""Pictures of a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leastaction.path import Path

# Okabe and Ito's palette, safe for every kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_path(path: Path, what: str = "configuration", ax: Axes | None = None) -> Axes:
    """Draw a path: "configuration" (q over t), "phase" (p over q) or "energy" (its error over t)."""
    kinds = {"configuration": _configuration, "phase": _phase, "energy": _energy}
    if what not in kinds:
        raise ValueError(f"expected one of {', '.join(map(repr, kinds))}; got {what!r}")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    ax.set_prop_cycle(color=COLOURS)
    kinds[what](path, ax)
    ax.set_title(f"{path.system.name}, {path.method.name}, h = {float(path.h):g}", fontsize="medium", loc="left")
    return ax


def _label(ax: Axes, n: int) -> None:
    if 1 < n <= len(COLOURS):
        ax.legend(frameon=False, ncols=min(n, 4))


def _configuration(path: Path, ax: Axes) -> None:
    for j in range(path.q.shape[1]):
        ax.plot(path.t, path.q[:, j], label=f"$q_{{{j}}}$", linewidth=1)
    ax.set(xlabel="time $t$", ylabel="position $q$")
    _label(ax, path.q.shape[1])


def _phase(path: Path, ax: Axes) -> None:
    for j in range(path.q.shape[1]):
        ax.plot(path.q[:, j], path.p[:, j], label=f"$(q_{{{j}}}, p_{{{j}}})$", linewidth=1)
    ax.set(xlabel="position $q$", ylabel="momentum $p$")
    _label(ax, path.q.shape[1])


def _energy(path: Path, ax: Axes) -> None:
    energy = path.energy()
    scale = abs(energy[0]) or 1.0
    ax.plot(path.t, (energy - energy[0]) / scale, linewidth=1)
    largest = float(np.abs(energy - energy[0]).max() / scale)
    ax.set(xlabel="time $t$", ylabel="energy error" if energy[0] == 0 else "relative energy error")
    ax.set_title(f"largest {largest:.1e}", fontsize="medium", loc="right")
