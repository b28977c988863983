"""What a user gives for a system, checked: functions, the number of coordinates, parameters, constraints, inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.numbers.rounding import FLOAT64, Reals, all_finite
from leastaction.program import Program
from leastaction.reading import integer, listing, mapping, text

FloatArray = NDArray[np.float64]

MOST_CHANNELS = 10_000  # of an input
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


def shapes_of(inputs: Mapping[str, Any] | None) -> dict[str, tuple[int, ...]]:
    """The shape of each input, as a system is told them: an integer is the length of a vector, () a number."""
    if not isinstance(inputs, Mapping | None):
        raise TypeError(f"inputs must map names to shapes, as in inputs={{'u': 1}}; got {inputs!r}")
    found = {}
    for name, given in (inputs or {}).items():
        shape = given if isinstance(given, tuple) else (given,)
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"an input's name must be that of an argument of the force; got {name!r}")
        if not all(isinstance(k, int | np.integer) and not isinstance(k, bool) and k > 0 for k in shape):
            raise ValueError(
                f"the shape of input {name!r} must be a positive integer, the length of a vector, or a tuple of them, "
                f"() for a number; got {given!r}"
            )
        found[name] = tuple(map(int, shape))
    return found


def size_of(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int))


def shapes_from(record: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of a system's inputs, from a file's header."""
    found = {}
    for name, shape in mapping(record, "inputs").items():
        sizes = (integer(k, f"the shape of input {name!r}", 1, MOST_CHANNELS) for k in listing(shape, "a shape"))
        found[text(name, "an input's name")] = tuple(sizes)
    return shapes_of(found)


def flat(inputs: Given, shapes: Mapping[str, tuple[int, ...]], count: int, name: str) -> Any:
    """Values of all inputs at so many states, (count, channels): by name, one for all or a row for each."""
    if isinstance(inputs, np.ndarray):
        size = sum(map(size_of, shapes.values()))
        if inputs.shape[-1:] != (size,):
            raise ValueError(f"the flat array of {name}'s inputs has {size} columns; got shape {inputs.shape}")
        return np.broadcast_to(inputs, (count, size))
    given = dict(inputs or {})
    if set(given) != set(shapes):
        what = f"has the inputs {', '.join(map(repr, shapes))}" if shapes else "has no inputs"
        raise ValueError(f"{name} {what}: give values of just these, by name; got {sorted(given) or 'none'}")
    rows = [np.zeros((count, 0))]
    for key, shape in shapes.items():
        value = np.asarray(given[key], float)
        if value.shape not in (shape, (count, *shape)):
            raise ValueError(f"input {key!r} has shape {shape}, or ({count}, …) with a row for each; got {value.shape}")
        rows.append(np.broadcast_to(value, (count, *shape)).reshape(count, size_of(shape)))
    return np.concatenate(rows, axis=1)
