"""Term: a small Lagrangian, applied to every row of a table of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.program import Program
from leastaction.systems.lagrangian import Lagrangian

MOST_COORDINATES = 2**31 - 64  # an index has 32 bits

Table = NDArray[np.int64]


class Term:
    """One summand of a large Lagrangian: Σ over rows of fn(q[row], v[row], …).

    Parameters
    ----------
    fn : callable, optional
        A plain NumPy function ``fn(q, v, …)`` or ``fn(t, q, v, …)`` of the k coordinates that a row names. Left out
        for a term that is a force, a Rayleigh function or a constraint alone.
    over : array_like of int, shape (R, k) or (R,)
        The table. Row r names the coordinates q[0] … q[k − 1] of the function. (R,) means (R, 1).
    params : mapping, optional
        Names and values: a number for all rows, an array (R, …) with one entry for each row, or an array (1, …) that
        all rows share.
    force : callable, optional
        ``F(q, v, …)`` or ``F(t, q, v, …)``, which returns k generalised forces.
    dissipation : callable, optional
        A Rayleigh function ``D(q, v, …)`` or ``D(t, q, v, …)``. It adds the force −∂D/∂v.
    constraints : callable, optional
        ``g(q, …)`` or ``g(t, q, …)``, which returns numbers held at zero, fewer than k.

    Attributes
    ----------
    rows : int
        R.
    width : int
        k, the coordinates of a row.

    Examples
    --------
    >>> import leastaction as la
    >>> spring = la.Term(lambda q, v, k: -0.5 * k * (q[1] - q[0]) ** 2, over=[[0, 1], [1, 2]], params={"k": [1.0, 4.0]})
    >>> spring.rows, spring.width
    (2, 2)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        over: ArrayLike,
        params: Mapping[str, Any] | None = None,
        force: Callable[..., Any] | None = None,
        dissipation: Callable[..., Any] | None = None,
        constraints: Callable[..., Any] | None = None,
    ) -> None:
        name = getattr(fn or force or dissipation or constraints, "__name__", "a term")
        self.table = _table(over, name)
        self.given = deepcopy(dict(params or {}))
        local = {key: _of_one_row(key, value, len(self.table), name) for key, value in self.given.items()}
        if fn is None:
            if force is None and dissipation is None and constraints is None:
                raise TypeError(
                    "a Term needs a function fn(q, v, …) that returns its part of L, or force=, dissipation= or "
                    "constraints="
                )
            fn = _nothing
        made = Lagrangian(fn, self.width, local, force=force, dissipation=dissipation, constraints=constraints)
        self._set(made, name)

    @classmethod
    def from_programs(
        cls,
        program: Program,
        table: Table,
        params: Mapping[str, Any],
        name: str,
        force: Program | None,
        constraints: Program | None,
    ) -> Term:
        """A term from the Programs of L, of the force and of the constraints, as a file keeps them."""
        term = cls.__new__(cls)
        term.table, term.given = _table(table, name), dict(params)
        local = {key: _of_one_row(key, value, len(term.table), name) for key, value in term.given.items()}
        term._set(Lagrangian.from_program(program, term.width, local, name, force, constraints), name)
        return term

    def _set(self, local: Lagrangian, name: str) -> None:
        self.local, self.name = local, name
        # An array with an entry for each row has one more dimension than what the function sees.
        self.own = {key: np.ndim(self.given[key]) > 0 and np.shape(self.given[key])[0] != 1 for key in self.given}

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    def width(self) -> int:
        """Coordinates in a row."""
        return self.table.shape[1]

    def __repr__(self) -> str:
        return f"Term({self.name}, {self.rows} rows of {self.width})"


def _nothing(q: Any, v: Any, **params: Any) -> float:
    """The Lagrangian of a force or a constraint alone."""
    return 0.0


def _table(over: ArrayLike, name: str) -> Table:
    """The table, checked."""
    try:
        table = np.asarray(over)
    except ValueError:
        raise ValueError(f"over= of {name} must be a table of integers, all rows equally long; got {over!r}") from None
    if table.ndim == 1 and table.size:
        table = table[:, None]
    if table.size == 0:
        raise ValueError(f"over= of {name} is empty: a term needs at least one row, and a row at least one coordinate")
    if table.ndim != 2:
        raise ValueError(f"over= of {name} must have shape (rows, coordinates of a row); got {table.shape}")
    if table.dtype.kind not in "iu":
        raise TypeError(
            f"over= of {name} must hold integers, the numbers of coordinates; got {table.dtype}. Convert with "
            "np.asarray(rows, int)"
        )
    low, high = int(table.min()), int(table.max())
    if low < 0 or high > MOST_COORDINATES:
        row, column = np.argwhere((table < 0) | (table > MOST_COORDINATES))[0]
        raise ValueError(
            f"over= of {name} names coordinate {table[row, column]} in row {row}; they are counted from 0 to n − 1"
        )
    ordered = np.sort(table, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        raise ValueError(
            f"over= of {name} names a coordinate twice in row {twice[0]}: {table[twice[0]].tolist()}. A function of "
            "one coordinate less says the same"
        )
    return np.ascontiguousarray(table, np.int64)


def _of_one_row(key: str, value: Any, rows: int, name: str) -> Any:
    """A parameter as the function of one row sees it."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return value
    length = np.shape(value)[0]
    if length not in (1, rows):
        raise ValueError(
            f"parameter {key!r} of {name} has shape {np.shape(value)}: give a number for all rows, an array with one "
            f"entry for each of the {rows}, or an array with a first dimension of 1 that all share"
        )
    return value[0]
