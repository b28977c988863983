"""What the figures share: a method's mark, orders between steps, and the path of a top's axis in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.papers.style import line
from leastaction.papers.top2025.runs import library_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[Any]

VISIBLE = 0.01  # of a curve's range: about the width of a line at page width
REFERENCE: dict[str, Any] = {"color": "#bbbbbb", "linewidth": 3}  # a curve under the points that should follow it


def mark(method: str, name: str, **changes: Any) -> dict[str, Any]:
    """How a method is drawn on this problem, labelled as in the paper."""
    return line(library_name(method, name)) | {"label": method} | changes


def points(method: str, name: str, **changes: Any) -> dict[str, Any]:
    """A method's states alone, hollow, so that those of another are seen through them."""
    return mark(method, name, linestyle="none", markerfacecolor="none", **changes)


def slopes(h: FloatArray, error: FloatArray) -> list[float]:
    """The order between neighbouring steps."""
    return [float(order) for order in np.diff(np.log(error)) / np.diff(np.log(h))]


def listed(orders: Sequence[float]) -> str:
    """Orders as words, in the sequence of the steps.

    >>> listed([1.98, 2.0])
    '1.98, 2.00'
    """
    return ", ".join(f"{order:.2f}" for order in orders)


def order_line(ax: Axes, h: FloatArray, error: FloatArray, order: int) -> None:
    """A dotted line of this slope below the points, its order at the upper end; h falls."""
    at = 0.4 * error[-1] * (h / h[-1]) ** order
    ax.plot(h, at, color="#888888", linestyle=":", linewidth=1, zorder=0)
    ax.annotate(f"$h^{order}$", (h[0], at[0]), textcoords="offset points", xytext=(5, -4), color="#666666", fontsize=9)


def step_axis(ax: Axes, h: FloatArray, labels: Sequence[str] | None = None) -> None:
    """Ticks at the steps themselves."""
    ax.set_xticks(h, labels or [f"{x:.3g}" for x in h])
    ax.set_xticks([], minor=True)


def in_space(phi: FloatArray, theta: FloatArray, length: float) -> FloatArray:
    """The point of the axis at this distance from the fixed point, Euler angles Z X Z: (K, 3)."""
    return length * np.stack([np.sin(theta) * np.sin(phi), -np.sin(theta) * np.cos(phi), np.cos(theta)], axis=-1)


def axis_path(t: FloatArray, phi: FloatArray, theta: FloatArray, length: float) -> Figure:
    """The centre of mass on its sphere, in three dimensions and from above; t, in periods, by colour."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection
    from mpl_toolkits.mplot3d.art3d import Line3DCollection  # type: ignore[import-untyped]

    track = in_space(phi, theta, length)
    figure = plt.figure(figsize=(7, 3.9), layout="none")  # placed by hand: no layout engine knows a 3-D label's width
    space: Any = figure.add_axes((-0.02, 0.0, 0.5, 1.0), projection="3d")
    above = figure.add_axes((0.64, 0.31, 0.35, 0.35 * 7 / 3.9))
    scale = figure.add_axes((0.64, 0.13, 0.35, 0.025))
    turns, heights = np.meshgrid(np.linspace(0, 2 * np.pi, 37), np.linspace(0, theta.max(), 8))
    space.plot_wireframe(*np.moveaxis(in_space(turns, heights, length), -1, 0), color="#cccccc", linewidth=0.4)
    pairs = np.stack([track[:-1], track[1:]], axis=1)
    space.add_collection3d(Line3DCollection(list(pairs), array=t[:-1], cmap="viridis", linewidth=1.6))
    lines = above.add_collection(LineCollection(list(pairs[:, :, :2]), array=t[:-1], cmap="viridis", linewidth=1.4))
    space.plot(*np.stack([np.zeros(3), track[0]]).T, color="#444444", linewidth=2.5)
    space.plot(*track[:1].T, marker="o", color="#444444")
    above.plot(*track[0, :2], marker="o", color="#444444")
    above.annotate(
        "start", (track[0, 0], track[0, 1]), textcoords="offset points", xytext=(-6, 6), ha="right", fontsize=9
    )
    reach = 1.05 * length * np.sin(theta.max())
    space.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(0, 1.02 * length))
    space.set_box_aspect((2 * reach, 2 * reach, 1.02 * length), zoom=0.92)
    space.set(xlabel="$X$ (m)", ylabel="$Y$ (m)", zlabel="$Z$ (m)")
    space.view_init(elev=24, azim=-60)
    space.locator_params(nbins=4)
    space.tick_params(labelsize=8)
    above.locator_params(nbins=4)
    lines.set_clim(t[0], t[-1])
    above.set(
        xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="$X$ (m), seen from above", ylabel="$Y$ (m)"
    )
    figure.colorbar(lines, cax=scale, label="time (nutation periods)", orientation="horizontal")
    return figure
