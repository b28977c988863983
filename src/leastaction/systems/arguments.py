"""What a user gives for a system, checked: functions, the number of coordinates, parameters, constraints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.numbers.rounding import FLOAT64, Reals, all_finite
from leastaction.program import Program

FloatArray = NDArray[np.float64]

MOST_COORDINATES = 10_000  # of a Lagrangian that is written out: its derivatives would take hours

Params = Mapping[str, Any] | FloatArray  # by name, or all of them as the flat array of `values`
Given = Mapping[str, Any] | FloatArray | None  # inputs by name, or all of them as one flat array, or rows of it


def takes_time(fn: Callable[..., Any], params: Mapping[str, Any], reads: Sequence[str] = ("q", "v")) -> bool:
    """Whether the function is fn(t, q, v, …) or fn(q, v, …): the number of arguments that are no parameters decides."""
    try:
        arguments = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return False
    free = [a for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD) and a.name not in params]
    required = [a.name for a in free if a.default is a.empty]
    return len(required) > len(reads) and required[0] in ("t", "time")


def degrees(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n, the number of degrees of freedom, must be a positive integer; got {n!r}")
    if n > MOST_COORDINATES:
        raise ValueError(
            f"a Lagrangian that is written out has at most {MOST_COORDINATES} coordinates; got n = {n}. Write L as a "
            "sum over rows of a table, la.Lagrangian.sum([la.Term(fn, over=rows), …], n=…)"
        )
    return int(n)


def coordinate_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The names of n coordinates, or none; those of columns of a table, with momenta, time and energy, must differ."""
    found = tuple(names or ())
    if found and not (len(found) == n and all(isinstance(name, str) and name for name in found)):
        raise ValueError(f"names must be {n} words, one for each coordinate; got {names!r}")
    if len({"t", "energy", *found, *(f"p_{name}" for name in found)}) != 2 + 2 * len(found):
        raise ValueError(f"names must differ from each other, from t, energy and the momenta p_name; got {names!r}")
    return found


def values_of(params: Mapping[str, Any], reals: Reals = FLOAT64) -> dict[str, NDArray[Any]]:
    """Parameters as arrays of numbers, checked."""
    checked = {}
    for name, value in params.items():
        try:
            array = reals.array(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"parameter {name!r} must be a number or an array of numbers; got {value!r} ({error})"
            ) from None
        if not all_finite(array):
            raise ValueError(f"parameter {name!r} must be finite; got {value!r}")
        checked[name] = array
    return checked


def fewer(constraints: Program | None, n: int) -> Program | None:
    """The constraints, if they are fewer than the coordinates."""
    m = 0 if constraints is None else constraints.output_size
    if m >= n:
        raise ValueError(
            f"{m} constraints on n = {n} coordinates leave nothing free to move: m must be less than n. Leave out "
            "those that follow from others, or add the coordinates that move"
        )
    return constraints


class Parameters:
    """A system whose parameters have names and default values."""

    name: str
    _given: dict[str, Any]  # the parameters as they were given
    _defaults: dict[str, NDArray[Any]]  # as arrays of floats

    @property
    def given(self) -> dict[str, Any]:
        """Names and default values of the parameters, as they were given."""
        return dict(self._given)

    @property
    def params(self) -> dict[str, Any]:
        """Names and default values of the parameters."""
        return self.named(self.values())

    def named(self, values: NDArray[Any]) -> dict[str, Any]:
        """The flat array of `values`, by name."""
        named, start = {}, 0
        for name, default in self._defaults.items():
            block = values[start : start + default.size].reshape(default.shape)
            named[name] = block.item() if default.shape == () else block.copy()
            start += default.size
        return named

    def values(self, params: Params | None = None, reals: Reals = FLOAT64) -> NDArray[Any]:
        """The parameters as one flat array, defaults replaced by what `params` brings."""
        if isinstance(params, np.ndarray):
            if params.shape != self._flat.shape:
                raise ValueError(
                    f"the flat array of {self.name}'s parameters has shape {self._flat.shape}, got {params.shape}"
                )
            return params
        if not isinstance(params, Mapping | None):
            raise TypeError(f"params must map names to values, as in dict(m=1.0); got {params!r}")
        if not params and reals is FLOAT64:
            return self._flat.copy()
        merged = dict(self._defaults) if reals is FLOAT64 else values_of(self._given, reals)
        for name, value in values_of(params or {}, reals).items():
            if name not in merged:
                raise ValueError(f"{self.name} has no parameter {name!r}; it has {sorted(merged) or 'none'}")
            if value.shape != merged[name].shape:
                raise ValueError(f"parameter {name!r} has shape {merged[name].shape}, got {value.shape}")
            merged[name] = value
        return np.concatenate([reals.array([]), *(value.ravel() for value in merged.values())])

    @cached_property
    def _flat(self) -> FloatArray:
        """The defaults of the parameters, one after the other."""
        return np.concatenate([np.zeros(0), *(value.ravel() for value in self._defaults.values())])


def states_of(
    n: int, q: ArrayLike, other: ArrayLike, t: ArrayLike, name: str
) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    """q and another array as (K, n), the times as (K,), and whether a single state was given."""
    Q, X, T = (np.asarray(x, float) for x in (q, other, t))
    for label, array in (("q", Q), (name, X)):
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            raise ValueError(f"{label} must have shape ({n},) or (K, {n}); got {array.shape}")
    if Q.shape != X.shape:
        raise ValueError(f"q and {name} must have the same shape; got {Q.shape} and {X.shape}")
    single = Q.ndim == 1
    Q, X = np.atleast_2d(Q), np.atleast_2d(X)
    if T.shape not in ((), (1,), (len(Q),)):
        wanted = "one number" if single else f"one number or {len(Q)}, one for each state"
        raise ValueError(f"t must be {wanted}; got shape {T.shape}")
    T = np.broadcast_to(T, (len(Q),))
    return np.ascontiguousarray(Q), np.ascontiguousarray(X), np.ascontiguousarray(T), single
