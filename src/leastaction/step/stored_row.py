"""What is stored of a state: q and p of some degrees of freedom, and the derivatives that are carried along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Row:
    """The numbers of one stored state: q, p, and D, a row of 2n numbers for each quantity that varies.

    n        degrees of freedom
    dofs     those stored, in this order
    varied   by how many quantities derivatives are carried: none, the state (2n), or the P parameters and h too
    """

    n: int
    dofs: NDArray[np.int64]
    varied: int = 0

    @staticmethod
    @lru_cache(maxsize=64)
    def whole(n: int, varied: int = 0) -> Row:
        """All degrees of freedom."""
        return Row(n, np.arange(n), varied)

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """The places in (q, p) of the numbers that are stored."""
        return np.concatenate([self.dofs, self.n + self.dofs]).astype(np.int64)

    @cached_property
    def width(self) -> int:
        return len(self.columns) + self.varied * 2 * self.n

    @property
    def whole_width(self) -> int:
        """The width of all that a row may hold: the whole state, and the derivatives."""
        return (1 + self.varied) * 2 * self.n

    def kept(self, states: NDArray[Any]) -> NDArray[Any]:
        """The part that rows keep of whole states with their derivatives, (…, whole_width)."""
        if self.output is None:
            return states
        return np.concatenate([states[..., self.columns], states[..., 2 * self.n :]], axis=-1)

    @cached_property
    def output(self) -> NDArray[np.int64] | None:
        """The degrees of freedom stored, where not all are, in their order."""
        return None if np.array_equal(self.dofs, np.arange(self.n)) else self.dofs

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parts of a row by name, with the shape of each."""
        n, extra = self.n, self.varied - 2 * self.n
        shapes: dict[str, tuple[int, ...]] = {"q": (len(self.dofs),), "p": (len(self.dofs),)}
        if self.varied:
            shapes["tangent"] = (2 * n, 2 * n)
        if extra > 0:
            shapes["sensitivity"] = (2 * n, extra)
        return shapes

    def part(self, name: str, rows: NDArray[Any]) -> NDArray[Any]:
        """One part of rows (…, width), a view: ∂(q, p)/∂(q₀, p₀) is `tangent`, ∂(q, p)/∂(w, h) `sensitivity`."""
        size = len(self.dofs)
        if name in ("q", "p"):
            return rows[..., :size] if name == "q" else rows[..., size : 2 * size]
        D = rows[..., 2 * size :].reshape(*rows.shape[:-1], self.varied, 2 * self.n).swapaxes(-1, -2)
        return D[..., : 2 * self.n] if name == "tangent" else D[..., 2 * self.n :]

    def directions(self) -> NDArray[np.float64]:
        """D at the start of a run, (varied, 2n): the identity, and zero for parameters and h."""
        return np.eye(self.varied, 2 * self.n)
