"""FirstOrder: a reduced system y' = f(y), with the problem it comes from as its exact solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.numbers.formulas import DOUBLES, MPFS, Arithmetic, by_components
from leastaction.numbers.precision import mpmath_digits
from leastaction.numbers.rounding import to_float, to_mpf


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """y' = f(y).

    names         of the components of y
    rhs(y)        f, y of shape (n,) or (K, n); rhs(y, digits=N) takes and gives mpmath numbers with N digits
    y0            initial values as doubles; exact_y0 exactly, as SymPy numbers
    exact(t)      y at the times t, (n,) or (K, n); exact(t, digits=N)
    exact_params  constants in f
    """

    names: tuple[str, ...]
    exact_y0: tuple[Any, ...]
    exact_params: Mapping[str, Any]
    formula: Callable[[Arithmetic, Any, Any], Any] = field(repr=False)
    exact: Callable[..., NDArray[Any]] = field(repr=False)

    @property
    def y0(self) -> NDArray[np.float64]:
        return np.array([to_float(y) for y in self.exact_y0])

    def rhs(self, y: ArrayLike, digits: int | None = None) -> NDArray[Any]:
        if digits is None:
            return self._at(DOUBLES, self._doubles, y)
        with mpmath_digits(digits):
            c = SimpleNamespace(**{name: MPFS(to_mpf(value)) for name, value in self.exact_params.items()})
            return self._at(MPFS, c, y)

    @cached_property
    def _doubles(self) -> SimpleNamespace:
        return SimpleNamespace(**{name: to_float(value) for name, value in self.exact_params.items()})

    def _at(self, x: Arithmetic, c: Any, y: ArrayLike) -> NDArray[Any]:
        return by_components(x, lambda z: self.formula(x, c, z), y)
