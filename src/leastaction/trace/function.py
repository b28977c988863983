"""trace: a Lagrangian or a force written as a plain NumPy function → its Program."""

from __future__ import annotations

import inspect
import linecache
import numbers
import random
import reprlib
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from leastaction.errors import TraceError
from leastaction.numbers.notation import exact
from leastaction.program import Program, finite
from leastaction.trace.algebra import Algebra
from leastaction.trace.numpy_view import numpy_seen
from leastaction.trace.scalar import ACTIVE, Array, Scalar, active, apply, lift, plain


@dataclass(frozen=True)
class Role:
    """What a traced function is for: the block of its output, its name for people, and how many numbers it returns.

    size    None: one number, not an array; ANY: one or more
    reads   what of the state it reads
    """

    block: str
    called: str
    size: int | None = None
    reads: tuple[str, ...] = ("q", "v")


ANY = 0
DRAWS = 16  # a coin that falls on the same side so often is not seen, once in 65,536 times
LAGRANGIAN = Role("L", "the Lagrangian")
EVENT = Role("g", "the function")
CONSTRAINTS = Role("g", "the constraint", ANY, ("q",))


def trace(
    fn: Callable[..., Any],
    n: int,
    params: Mapping[str, tuple[int, ...]],
    time: bool,
    role: Role = LAGRANGIAN,
    takes: Collection[str] | None = None,
    inputs: Mapping[str, tuple[int, ...]] | None = None,
) -> Program:
    """The Program L(t, q, v, params) of fn(q, v, **params), or of fn(t, q, v, **params) if `time`.

    `params` gives the shape of each parameter; the block "params" holds them one after the other, each in C order.
    `takes` names the parameters that the function takes; without `takes` it takes all. Of q and v there are those that
    the role reads. `inputs` gives the shapes of inputs; where there are some, the block "inputs" stands behind that of
    the parameters.

    The function is traced twice, and refused if it returns something else the second time, as with random numbers. It
    is traced DRAWS times more if the generators that all share have drawn numbers, which may be the same twice.
    """
    drawn = _drawn()
    builder, results = _traced(fn, n, params, time, role, takes, inputs)
    for _ in range(1 if _drawn() == drawn else DRAWS):
        again, same = _traced(fn, n, params, time, role, takes, inputs)
        if repr((builder.code, results)) != repr((again.code, same)):
            raise TraceError(
                f"{role.called} returned another result when it was called again with the same arguments: it reads "
                "random numbers, the time of day or what it has changed itself, and would be frozen as it was once. "
                "Draw such numbers before and give them as params="
            )
    return builder.build(**{role.block: results})


def _drawn() -> Any:
    """The states of NumPy's and Python's shared generators."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 — which a function may use
    return name, np.asarray(keys).tobytes(), rest, random.getstate()


def _traced(
    fn: Callable[..., Any],
    n: int,
    params: Mapping[str, tuple[int, ...]],
    time: bool,
    role: Role,
    takes: Collection[str] | None,
    inputs: Mapping[str, tuple[int, ...]] | None,
) -> tuple[Algebra, list[int]]:
    """The program being written, and the values that the function returned."""
    shapes = {"params": params} | ({"inputs": inputs} if inputs else {})
    sizes = {name: int(np.prod(shape, dtype=int)) for some in shapes.values() for name, shape in some.items()}
    given = [(block, sum(sizes[name] for name in some)) for block, some in shapes.items()]
    builder = Algebra((("t", 1), *((name, n) for name in role.reads), *given))
    blocks = {name: _array(builder, name) for name, _ in builder.inputs}
    values = {}
    for block, some in shapes.items():
        start, wanted = 0, takes if block == "params" else named(fn, some)
        for name, shape in some.items():
            own = blocks[block][start : start + sizes[name]].reshape(shape)
            if wanted is None or name in wanted:
                values[name] = own[()] if shape == () else own
            start += sizes[name]
    positional = ("t", *role.reads) if time else role.reads
    arguments = blocks | {"t": blocks["t"][0]}
    _check_signature(fn, positional, tuple(values), role)
    with active(builder), numpy_seen():
        try:
            result = fn(*(arguments[name] for name in positional), **values)
            return builder, _results(builder, result, role)
        except Exception as error:
            raise TraceError(_explain(fn, n, {**params, **(inputs or {})}, error)) from error


def named(fn: Callable[..., Any], names: Collection[str]) -> Collection[str]:
    """Those of the names that are arguments of a function; all names, if the function takes any name."""
    try:
        arguments = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return names
    if any(a.kind is a.VAR_KEYWORD for a in arguments.values()):
        return names
    return [
        name for name in names if name in arguments and arguments[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    ]


def const(x: str | int | Fraction) -> float | Scalar:
    """An exact number for use inside a Lagrangian.

    A float in a Lagrangian means its exact binary value, at any precision: 9.81 is not 981/100. ``la.const("9.81")``
    is. Outside a Lagrangian the result is the nearest float.

    Parameters
    ----------
    x : str, int or Fraction
        A decimal number, a ratio such as "1/3", or "pi".

    Examples
    --------
    >>> import leastaction as la
    >>> la.const("9.81"), la.const("1/3")
    (9.81, 0.3333333333333333)
    """
    builder = ACTIVE.get()
    if x == "pi":
        return np.pi if builder is None else apply("acos", -1)
    try:
        number = exact(x)
    except (TypeError, ValueError) as error:
        raise ValueError(f"const takes a decimal number, a ratio 'a/b' or 'pi', got {x!r}: {error}") from None
    if not isinstance(number, Fraction):
        raise ValueError(f"const takes a decimal number, a ratio 'a/b' or 'pi', got {x!r}")
    return float(number) if builder is None else Scalar(builder, builder.const(number))


def _array(builder: Algebra, name: str) -> Array:
    values = builder.input(name)
    block = np.empty(len(values), dtype=object)
    block[:] = [Scalar(builder, k) for k in values]
    return block.view(Array)


def _check_signature(fn: Callable[..., Any], positional: tuple[str, ...], names: tuple[str, ...], role: Role) -> None:
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    ordinary = [a for a in signature.parameters.values() if a.kind is a.POSITIONAL_OR_KEYWORD and a.name not in names]
    if "t" not in positional and (frozen := [a.name for a in ordinary if a.name in ("t", "time")]):
        raise TraceError(
            f"time is the first argument, without a default: write fn(t, {', '.join(positional)}, …); in "
            f"{getattr(fn, '__name__', 'fn')}{signature} {frozen[0]!r} would be a constant. If it is a parameter, give "
            "its value in params"
        )
    try:
        signature.bind(*positional, **dict.fromkeys(names))
    except TypeError as error:
        raise TraceError(
            f"{role.called} will be called as fn({', '.join((*positional, *(f'{p}=…' for p in names)))}), "
            f"but is {getattr(fn, '__name__', 'fn')}{signature}: {error} "
            f"(time, if {role.block} depends on it, is a first argument called t)"
        ) from None


def _results(builder: Algebra, result: Any, role: Role) -> list[int]:
    """The numbers that a function returned: one, or an array of `role.size`."""
    if result is None:
        raise TraceError("the function returned None; a `return` is missing")
    if role.size is None:
        if isinstance(result, np.ndarray) and result.size == 1:
            result = plain(result).item()
        if isinstance(result, (np.ndarray, list, tuple)):
            shape = np.shape(result)
            advice = "give an event for each component" if role is EVENT else "sum it?"
            raise TraceError(f"the function returned an array of shape {shape}; {role.block} is one number: {advice}")
        return [_scalar(builder, result, role)]
    wanted = f"{role.called} has n = {role.size} components, one for each coordinate"
    if role.size == ANY:
        wanted = f"{role.called} is made of one or more numbers that are held at zero"
    if isinstance(result, (np.ndarray, list, tuple)):
        entries = list(result)
        if np.ndim(result) != 1 or len(entries) != (role.size or max(1, len(entries))):
            raise TraceError(f"the function returned an array of shape {np.shape(result)}; {wanted}")
    elif role.size in (1, ANY):
        entries = [result]
    else:
        raise TraceError(f"the function returned {reprlib.repr(result)}; {wanted}: return np.array([…])")
    return [_scalar(builder, x, role) for x in entries]


def _scalar(builder: Algebra, result: Any, role: Role) -> int:
    if role is EVENT and (isinstance(result, bool | np.bool_) or getattr(result, "logical", False)):
        raise TraceError(
            "the function returned true or false, and an event is where a number changes its sign: for x > 1 return "
            "x − 1"
        )
    if not isinstance(result, (Scalar, numbers.Real, np.bool_)):
        kind = f"{role.block} is a real number" if role.size is None else f"{role.called} is made of real numbers"
        raise TraceError(f"the function returned {reprlib.repr(result)} of type {type(result).__name__}; {kind}")
    index = lift(builder, result)
    number = builder.constant(index)
    if number is not None and not finite(number):
        raise TraceError(f"the function returned {number}")
    return index


def _explain(fn: Callable[..., Any], n: int, params: Mapping[str, tuple[int, ...]], error: Exception) -> str:
    """Where in the user's function it happened, what happened, and what the function was given."""
    place = ""
    home = (getattr(fn, "__module__", None) or "").partition(".")[0]
    for frame, number in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        if module.startswith(home) and not module.startswith(__package__):
            line = linecache.getline(frame.f_code.co_filename, number).strip()
            place = f"{frame.f_code.co_name}, line {number}: " + (f"`{line}`\n" if line else "")
    what = str(error) if isinstance(error, TraceError) else f"{type(error).__name__}: {error}"
    note = ""
    if isinstance(error, (IndexError, ValueError)):
        note = (
            f"\n(q and v have n = {n} entries" + "".join(f", {p} has shape {s}" for p, s in params.items() if s) + ")"
        )
    elif isinstance(error, TypeError) and "dtype('O')" in what:
        # `from numpy import array` took the original before the trace
        note = "\n(an array of traced values was made by other means than np.array: write np.array, with the np.)"
    return f"{place}{what}{note}"
