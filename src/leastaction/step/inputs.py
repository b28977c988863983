"""Inputs: what drives a system from outside, number by number, at the points of the steps of a run.

An input u enters the force, F(t, q, v, u). A step sees it at the nodes of its method, u_i at t_k + c_i h, and nowhere
else: the node's Program gets these numbers as it gets parameters, but they change from node to node. They come from

    held      one value for each step, u_i = u_k                                             (steps, …)
    at nodes  a value for each node of each step, u_i = u_ki                                 (steps, r, …)
    samples   a function of time, u_i = u(t_k + c_i h)                                       la.Samples

With smooth u at the nodes, or by smooth samples, the order of the method stays. A step that is cut short, as where an
event lies in it, sees the polynomial through the values of the whole step, or the samples at its own nodes. A held
value is a polynomial of degree zero. Where "previous" samples jump at the end of a step, the step sees the value
before the jump, and the next step the value after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Composition, Galerkin, Method
from leastaction.methods.quadrature import lagrange
from leastaction.numbers.notation import BINARY_NUMBER, to_texts
from leastaction.numbers.rounding import Digits, Reals, all_finite
from leastaction.reading import entry, integer, listing, mapping, text
from leastaction.step.samples import RULES, SLACK, Samples

Array = NDArray[Any]
Shapes = Mapping[str, tuple[int, ...]]

SAME = 1e-9  # part of a step: times so near each other are the same
INSIDE = 2.0**-20  # part of a step: samples that jump are evaluated so far from its ends
MOST_CHANNELS = 10_000


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


@dataclass(frozen=True, eq=False)
class Inputs(Mapping[str, Any]):
    """The inputs of a run, by name what was given for each: an array, or `la.Samples`.

    shapes   of each input, in the order of their numbers
    parts    of B trajectories, or of all with B = 1: values (B, K, 1, size) that are held, or (B, K, r, size) at nodes,
             or samples of values (B, m, size)
    t0, h    where step 0 begins, and how long a step is
    c        the nodes of the method, where values at nodes are given
    many     whether they are those of an ensemble
    """

    shapes: Shapes
    parts: Mapping[str, Array | Samples]
    t0: Any
    h: Any
    c: Array
    reals: Reals
    many: bool = False

    def __getitem__(self, name: str) -> Any:
        part = self.parts[name]
        held = not isinstance(part, Samples) and part.shape[2] == 1
        values = _values(part)[:, :, 0] if held else _values(part)
        values = values.reshape(*values.shape[:-1], *self.shapes[name])
        each = self.many and (len(values) > 1 or not (held or isinstance(part, Samples)))
        own = values if each else values[0]
        return Samples.of(part.times, own, part.rule) if isinstance(part, Samples) else own

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def batch(self) -> int:
        """For how many trajectories inputs are given; with 1, one set serves all."""
        return max((len(_values(part)) for part in self.parts.values()), default=1)

    @property
    def sampled(self) -> bool:
        return any(isinstance(part, Samples) for part in self.parts.values())

    @property
    def steady(self) -> bool:
        """Whether the inputs are constant within a step."""
        return all(not isinstance(part, Samples) and part.shape[2] == 1 for part in self.parts.values())

    def part(self, begin: int, end: int) -> Inputs:
        """The inputs of some trajectories."""
        parts: dict[str, Array | Samples] = {}
        for name, part in self.parts.items():
            own = _values(part)[begin:end] if len(_values(part)) > 1 else _values(part)
            parts[name] = Samples.of(part.times, own, part.rule) if isinstance(part, Samples) else own
        return replace(self, parts=parts)

    def alone(self, i: int) -> Inputs:
        """The inputs of one trajectory of an ensemble."""
        return replace(self.part(i, i + 1), many=False)

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes: not the table, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_table"}

    def along(self, t: Any, h: Any, first: int, count: int, c: Array) -> Array:
        """The inputs in steps first … first + count of a run that begins at t with steps h: (B, count, len(c) or 1,
        channels).
        """
        offset = float((t - self.t0) / self.h)
        if h == self.h and abs(offset - round(offset)) <= SAME:
            begin, table = first + round(offset), self._table
            if table is not None and begin >= 0 and begin + count <= table.shape[1]:
                return table[:, begin : begin + count]
        times = t + self.reals.array(np.arange(first, first + count)) * h
        return np.stack([self.nodes(times, h, c, np.full(count, i)) for i in range(self.batch)])

    @cached_property
    def _table(self) -> Array | None:
        """All numbers that are given step by step, (B, K, r or 1, channels); None where there are samples."""
        arrays = [part for part in self.parts.values() if not isinstance(part, Samples)]
        if self.sampled:
            return None
        steps, points = min(array.shape[1] for array in arrays), max(array.shape[2] for array in arrays)
        cut = [np.broadcast_to(x[:, :steps], (self.batch, steps, points, x.shape[3])) for x in arrays]
        return np.ascontiguousarray(np.concatenate(cut, axis=3))

    def nodes(self, t: Array, h: Any, c: Array, who: NDArray[np.intp] | None = None) -> Array:
        """The inputs at the points t + c_i h of steps of any length within those of the run, (K, len(c), channels).

        h may be one length or (K,); `who` tells the trajectory of each. The middle of a step decides to which step of
        the run it belongs.
        """
        h = np.broadcast_to(np.asarray(h, dtype=t.dtype), t.shape)
        k = np.floor(((t + h / 2 - self.t0) / self.h).astype(float)).astype(int)
        found = []
        for part in self.parts.values():
            own = _rows_of(part, t, who)
            if isinstance(part, Samples):
                inner = np.clip(c, INSIDE, 1 - INSIDE) if part.rule == "previous" else c
                places = np.asarray(t[:, None] + h[:, None] * inner)
                found.append(part.at(places, axis=1, who=np.broadcast_to(own[:, None], places.shape)))
                continue
            step = np.clip(k, 0, part.shape[1] - 1)
            begin = ((t - self.t0) - self.reals.array(step) * self.h) / self.h
            values, places = part[own, step], begin[:, None] + (h / self.h)[:, None] * c
            between = self._between(values, places)
            if values.shape[1] == len(c):  # rounding of times does not change the values of whole steps
                whole = (abs(begin.astype(float)) <= SAME) & (abs((h / self.h - 1).astype(float)) <= SAME)
                between = np.where(whole[:, None, None], values, between)
            found.append(between)
        return np.concatenate(found, axis=2)

    def instant(self, t: Array, who: NDArray[np.intp] | None = None) -> Array:
        """The inputs at times, (K, channels): in the step that begins there; at the end of a run in the last step."""
        k = np.floor(((t - self.t0) / self.h).astype(float) + SAME).astype(int)
        found = []
        for part in self.parts.values():
            own = _rows_of(part, t, who)
            if isinstance(part, Samples):
                found.append(part.at(t, axis=1, who=own))
            else:
                step = np.clip(k, 0, part.shape[1] - 1)
                place = ((t - (self.t0 + self.reals.array(step) * self.h)) / self.h)[:, None]
                found.append(self._between(part[own, step], place)[:, 0])
        return np.concatenate(found, axis=1)

    def _between(self, values: Array, places: Array) -> Array:
        """Values (K, r, size) of K steps at places (K, points) in these: on the polynomial through those at nodes."""
        if values.shape[1] == 1:
            return np.broadcast_to(values, (*places.shape, values.shape[2]))
        return np.einsum("kij,kjm->kim", lagrange(self.c, places), values)

    def record(self) -> dict[str, Any]:
        """What a file's header says about the inputs: the rule of each that has samples."""
        return {name: part.rule if isinstance(part, Samples) else None for name, part in self.parts.items()}

    def arrays(self) -> dict[str, Array]:
        """The arrays that a file has beside its header; numbers with more digits than float64 are text."""
        found = {f"input_{k}": _values(part) for k, part in enumerate(self.parts.values())}
        found |= {f"input_times_{k}": x.times for k, x in enumerate(self.parts.values()) if isinstance(x, Samples)}
        if isinstance(self.reals, Digits):
            found = {name: np.array(to_texts(values), dtype=str) for name, values in found.items()}
        return found


def _values(part: Array | Samples) -> Array:
    return part.values if isinstance(part, Samples) else part


def _rows_of(part: Array | Samples, t: Array, who: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Which of the trajectories' values count at each of the times."""
    return np.zeros(len(t), np.intp) if who is None or len(_values(part)) == 1 else who


def _shared_batch(inputs: Inputs) -> Inputs:
    sizes = {name: len(_values(part)) for name, part in inputs.parts.items() if len(_values(part)) > 1}
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
    found = _shared_batch(Inputs(dict(shapes), parts, t0, h, points if isinstance(nodes, str) else nodes, reals, many))
    check_span(found, steps, points)
    return found


def check_span(inputs: Inputs, steps: int, points: Array) -> None:
    """Refuse inputs that end before the run does."""
    for name, part in inputs.parts.items():
        if isinstance(part, Samples):
            ends = [inputs.t0, inputs.t0 + steps * inputs.h]
            ends += [t + x * inputs.h for t in (ends[0], ends[1] - inputs.h) for x in (min(points), max(points))]
            low, high, slack = min(ends), max(ends), SLACK * (part.end - part.start)
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
    return _shared_batch(Inputs(dict(shapes), parts, t0, h, c, reals, many))


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


def shapes_from(record: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of a system's inputs, from a file's header."""
    found = {}
    for name, shape in mapping(record, "inputs").items():
        sizes = (integer(k, f"the shape of input {name!r}", 1, MOST_CHANNELS) for k in listing(shape, "a shape"))
        found[text(name, "an input's name")] = tuple(sizes)
    return shapes_of(found)


def flat(inputs: Mapping[str, Any] | Array | None, shapes: Shapes, count: int, name: str) -> Any:
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
