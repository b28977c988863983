"""The inputs that a run is given, or that a file keeps, checked (`step.inputs`)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from leastaction.methods import Composition, Galerkin, Method
from leastaction.numbers.notation import BINARY_NUMBER
from leastaction.numbers.rounding import Digits, Reals, all_finite
from leastaction.reading import entry, mapping
from leastaction.step.inputs import Array, Inputs, Shapes, numbers_of
from leastaction.step.samples import RULES, SAME, Samples
from leastaction.systems.arguments import size_of


def _of_one_batch(inputs: Inputs) -> Inputs:
    sizes = {name: len(numbers_of(part)) for name, part in inputs.parts.items() if len(numbers_of(part)) > 1}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the inputs are those of different numbers of trajectories: {sizes}")
    return inputs


def points_of(method: Method, reals: Reals) -> tuple[Array, Array | str]:
    """The places in a step, in parts of h, that a method evaluates; the nodes that may have own values, or why none."""
    if isinstance(method, Composition):
        parts = np.array([float(x) for x in method.parts])
        begins = np.concatenate([[0.0], np.cumsum(parts)[:-1]])
        points = (begins[:, None] + parts[:, None] * method.root.nodes).ravel()
        return points, (
            f"{method.name} is a composition, whose steps go forth and back over each other. Give values that are held "
            "in each whole step, or la.Samples"
        )
    if not isinstance(method, Galerkin):
        return np.unique(method.nodes), (
            f"the stages of {method.name} are at the start, twice in the middle and at the end of a step, so that each "
            "step would share values with the next. Give values that are held in each step, or la.Samples"
        )
    if reals.digits is None:
        return method.table.c, method.table.c
    c = np.array(method.exact_table(reals.digits + 10)["c"], dtype=object)
    return c, c


def read_inputs(
    given: Mapping[str, Any] | None, system: Any, method: Method, reals: Reals, t0: Any, h: Any, steps: int, many: bool
) -> Inputs | None:
    """What a run was given, checked; None where the system has no inputs."""
    shapes: Shapes = system.inputs
    if given:
        system.check_inputs()
    if not isinstance(given, Mapping | None):
        raise TypeError(f"inputs must map names to values, as in inputs={{'u': U}}; got {given!r}")
    if unknown := [key for key in given or {} if key not in shapes]:
        has = f"it has {', '.join(map(repr, shapes))}" if shapes else "la.Lagrangian(…, force=F, inputs={…}) has"
        raise ValueError(f"{system.name} has no input {unknown[0]!r}; {has}")
    if missing := [key for key in shapes if key not in (given or {})]:
        raise ValueError(
            f"{system.name} is driven by {', '.join(map(repr, missing))}: give inputs={{{missing[0]!r}: U}}, an array "
            f"of shape {_wanted(shapes[missing[0]], steps)}, held in each step, or la.Samples(times, values, rule)"
        )
    if not given:
        return None
    points, nodes = points_of(method, reals)
    parts = {key: _part(key, given[key], shape, reals, steps, nodes, many) for key, shape in shapes.items()}
    found = _of_one_batch(Inputs(dict(shapes), parts, t0, h, points if isinstance(nodes, str) else nodes, reals, many))
    check_span(found, steps, points)
    return found


def check_span(inputs: Inputs, steps: int, points: Array) -> None:
    """Refuse inputs that end before the run does."""
    for name, part in inputs.parts.items():
        if isinstance(part, Samples):
            ends = [inputs.t0, inputs.t0 + steps * inputs.h]
            ends += [t + x * inputs.h for t in (ends[0], ends[1] - inputs.h) for x in (min(points), max(points))]
            low, high, slack = min(ends), max(ends), SAME * (part.end - part.start)
            if low < part.start - slack or high > part.end + slack:
                raise ValueError(
                    f"the samples of input {name!r} reach from t = {part.start:g} to {part.end:g}, the run from "
                    f"{float(low):g} to {float(high):g}: give samples for all of it"
                )
        elif part.shape[1] < steps:
            raise ValueError(
                f"input {name!r} lasts {part.shape[1]} steps, the run {steps}: give a value for each, an array of "
                f"shape {_wanted(inputs.shapes[name], steps)}"
            )


def _wanted(shape: tuple[int, ...], *ahead: Any) -> str:
    parts = [str(k) for k in (*ahead, *shape)]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _part(
    name: str, given: Any, shape: tuple[int, ...], reals: Reals, steps: int, nodes: Array | str, many: bool
) -> Array | Samples:
    """One input as `Inputs.parts` has it, checked."""
    size, r = size_of(shape), 0 if isinstance(nodes, str) else len(nodes)
    if isinstance(given, Samples):
        samples = given.rounded(reals)
        m, values = len(samples.times), samples.values
        each = many and values.shape[1:] == (m, *shape)
        if values.shape != (m, *shape) and not each:
            own = f", or {_wanted(shape, 'B', m)} for each trajectory its own" if many else ""
            raise ValueError(
                f"input {name!r}, of shape {shape}, takes samples with values of shape {_wanted(shape, m)}{own}; got "
                f"{values.shape}"
            )
        return Samples.of(samples.times, values.reshape(len(values) if each else 1, m, size), samples.rule)
    if callable(given):
        raise TypeError(
            f"input {name!r} must be an array or la.Samples; got the function {given!r}. Write a known function of "
            "time into the force, F(t, q, v, …), without an input; or give la.Samples(times, values) of it"
        )
    try:
        values = reals.array(given)
    except (TypeError, ValueError) as error:
        raise TypeError(f"input {name!r} must be an array of numbers, or la.Samples; got {given!r} ({error})") from None
    ahead = ("B",) if many else ()
    shown = f"an array of shape {_wanted(shape, steps)}, held in each step"
    shown += f", or {_wanted(shape, 'B', steps)} for each trajectory its own" if many else ""
    shown += f", or of shape {_wanted(shape, *ahead, steps, r)}, at the nodes of the method" if r else ""
    axes = values.ndim - len(shape)
    if values.shape[max(axes, 0) :] != shape or not 1 <= axes <= (3 if many else 2):
        hint = f". An input of length 1 is a vector: write U[:, None] for it, or declare inputs={{{name!r}: ()}}"
        raise ValueError(
            f"input {name!r}, of shape {shape}, takes {shown}, or la.Samples; got an array of shape {values.shape}"
            + (hint if shape == (1,) and values.ndim == 1 else "")
        )
    if not all_finite(values):
        raise ValueError(f"input {name!r} must be finite; some of its numbers are NaN or infinite")
    if not many or axes == 1:
        values = values[None]
    if axes == 1 or (many and axes == 2):
        return values.reshape(*values.shape[:2], 1, size)
    if isinstance(nodes, str):
        raise ValueError(f"input {name!r} has values at nodes, shape {values.shape[1:]}: {nodes}")
    if values.shape[2] != r:
        raise ValueError(
            f"input {name!r} takes {shown}; got {values.shape[2]} values in a step, while the method has {r} nodes"
        )
    return values.reshape(*values.shape[:2], r, size)


def from_record(
    record: Any, arrays: Mapping[str, Any], shapes: Shapes, t0: Any, h: Any, c: Array, reals: Reals, many: bool
) -> Inputs | None:
    """The inputs that a file keeps. Everything in it is checked."""
    if not shapes:
        return None
    found = mapping(record, "inputs")
    if list(found) != list(shapes):
        raise ValueError(f"inputs must be those of the system, {list(shapes)}; got {list(found)}")
    parts: dict[str, Array | Samples] = {}
    for k, (name, shape) in enumerate(shapes.items()):
        values, rule, size = _numbers(arrays, f"input_{k}", reals), found[name], size_of(shape)
        ends = [(1, size), (len(c), size)] if rule is None else [(size,)]
        if rule not in (None, *RULES) or values.shape[2:] not in ends:
            raise ValueError(f"input {name!r}: {rule!r} of shape {values.shape} is none of this run")
        parts[name] = values
        if rule is not None:
            times = _numbers(arrays, f"input_times_{k}", reals)
            if times.shape != values.shape[1:2] or len(times) < 2 or not all(a < b for a, b in pairwise(times)):
                raise ValueError(f"the times of input {name!r} must be {values.shape[1:2]}, at least two, and ascend")
            parts[name] = Samples.of(times, values, rule)
    return _of_one_batch(Inputs(dict(shapes), parts, t0, h, c, reals, many))


def _numbers(arrays: Mapping[str, Any], name: str, reals: Reals) -> Array:
    found = np.asarray(entry(arrays, name))
    if found.dtype.kind != ("U" if isinstance(reals, Digits) else "f") or not found.size:
        raise ValueError(f"{name} must hold numbers of the run; got {found.dtype} of shape {found.shape}")
    if found.dtype.kind == "U" and not all(BINARY_NUMBER.fullmatch(str(x)) for x in found.flat):
        raise ValueError(f"{name} must hold binary numbers as text, such as 0x1a2bp-52")
    values = reals.array(found)
    if not all_finite(values):
        raise ValueError(f"{name} must be finite")
    return values
