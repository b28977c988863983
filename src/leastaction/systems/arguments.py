"""What a user gives for a system, checked: functions, the number of coordinates, parameters, constraints."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
