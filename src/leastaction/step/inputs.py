"""Inputs: what drives a system from outside, number by number, at the points of the steps of a run.

An input u enters the force, F(t, q, v, u). A step sees it at the nodes of its method, u_i at t_k + c_i h, and nowhere
else: these numbers are given to the node's Program as the parameters are, but they change from step to step and from
node to node. They come from

    held      one value for each step, u_i = u_k                                             (steps, …)
    at nodes  a value for each node of each step, u_i = u_ki                                 (steps, r, …)
    samples   a function of time, u_i = u(t_k + c_i h)                                       la.Samples

With smooth u at the nodes, or by smooth samples, the order of the method stays. A step that is cut short, as where an
event lies in it, sees the held value; for values at nodes, it sees the polynomial through those of the whole step; and
for samples the function itself, at the nodes of the cut step. Where "previous" samples jump at the end of a step, the
step sees the value before the jump, and the next step the value after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods.quadrature import lagrange
from leastaction.numbers.notation import BINARY_NUMBER, to_texts
from leastaction.numbers.rounding import Digits, Reals, all_finite
from leastaction.reading import entry, integer, listing, mapping, text
from leastaction.step.samples import RULES, SLACK, Samples

Array = NDArray[Any]

SAME = 1e-9  # part of a step: times so near each other are the same
INSIDE = 2.0**-20  # part of a step: samples that jump are evaluated so far from its ends
HELD, NODES, SAMPLES = "held", "nodes", "samples"
MOST_CHANNELS = 10_000


def shapes_of(inputs: Mapping[str, Any] | None) -> dict[str, tuple[int, ...]]:
    """The shape of each input, as a system is told them: an integer is the length of a vector, () a number."""
    if not isinstance(inputs, Mapping | None):
        raise TypeError(f"inputs must map names to shapes, as in inputs={{'u': 1}}; got {inputs!r}")
    found = {}
    for name, given in (inputs or {}).items():
        shape = (given,) if isinstance(given, int | np.integer) and not isinstance(given, bool) else given
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"an input's name must be that of an argument of the force; got {name!r}")
        fits = isinstance(shape, tuple) and all(
            isinstance(k, int | np.integer) and not isinstance(k, bool) and k > 0 for k in shape
        )
        if not fits:
            raise ValueError(
                f"the shape of input {name!r} must be a positive integer, the length of a vector, or a tuple of them, "
                f"() for a number; got {given!r}"
            )
        found[name] = tuple(map(int, shape))
    return found


def size_of(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=int))


@dataclass(frozen=True, eq=False)
class Channel:
    """One input of B trajectories, or of all with B = 1.

    kind     held, values (B, K, 1, size); at nodes, (B, K, r, size); or samples, of values (B, m, size)
    """

    kind: str
    values: Array | Samples

    @property
    def batch(self) -> int:
        return len(self.values.values if isinstance(self.values, Samples) else self.values)

    @property
    def steps(self) -> int | None:
        """How many steps the input lasts; None for samples."""
        return None if isinstance(self.values, Samples) else self.values.shape[1]

    def part(self, begin: int, end: int) -> Channel:
        if self.batch == 1:
            return self
        if not isinstance(self.values, Samples):
            return replace(self, values=self.values[begin:end])
        own = self.values
        return replace(self, values=Samples.of(own.times, own.values[begin:end], own.rule))


@dataclass(frozen=True, eq=False)
class Inputs(Mapping[str, Any]):
    """The inputs of a run, by name what was given for each: an array, or `la.Samples`.

    shapes   of each input, in the order of their numbers
    t0, h    where step 0 begins, and how long a step is
    c        the nodes of the method, where values at nodes are given
    many     whether they are those of an ensemble
    """

    shapes: Mapping[str, tuple[int, ...]]
    parts: Mapping[str, Channel]
    t0: Any
    h: Any
    c: Array
    reals: Reals
    many: bool = False

    def __getitem__(self, name: str) -> Any:
        channel, shape = self.parts[name], self.shapes[name]
        if isinstance(channel.values, Samples):
            times, values = channel.values.times, channel.values.values
            values = values.reshape(*values.shape[:2], *shape)
            own = values if self.many and len(values) > 1 else values[0]
            return Samples.of(times, own, channel.values.rule)
        B, K, r, _ = channel.values.shape
        if channel.kind == HELD:
            values = channel.values.reshape(B, K, *shape)
            return values if self.many and B > 1 else values[0]
        values = channel.values.reshape(B, K, r, *shape)
        return values if self.many else values[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def channels(self) -> int:
        """How many numbers all inputs are at one instant."""
        return sum(map(size_of, self.shapes.values()))

    @property
    def batch(self) -> int:
        """For how many trajectories inputs are given; with 1, one set serves all."""
        return max((channel.batch for channel in self.parts.values()), default=1)

    @property
    def steps(self) -> int | None:
        """How many steps the inputs last; None if their times decide that."""
        return min((k for channel in self.parts.values() if (k := channel.steps) is not None), default=None)

    @property
    def sampled(self) -> bool:
        return any(channel.kind == SAMPLES for channel in self.parts.values())

    @property
    def steady(self) -> bool:
        """Whether the inputs are constant within a step."""
        return all(channel.kind == HELD for channel in self.parts.values())

    def part(self, begin: int, end: int) -> Inputs:
        """The inputs of some trajectories."""
        return replace(self, parts={name: channel.part(begin, end) for name, channel in self.parts.items()})

    def alone(self, i: int) -> Inputs:
        """The inputs of one trajectory of an ensemble."""
        return replace(self.part(i, i + 1), many=False)

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes: not the table, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_table"}

    # ------------------------------------------------------------------------------------------ at the points of steps

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
        lengths = times * 0 + h
        found = [self._of_all(channel, times, lengths, c) for channel in self.parts.values()]
        shape = self.batch, count, len(c)
        return np.concatenate([np.broadcast_to(x, (*shape, x.shape[3])) for x in found], axis=3)

    def _of_all(self, channel: Channel, t: Array, h: Array, c: Array) -> Array:
        """One input of all trajectories, (B, K, len(c), size)."""
        if isinstance(channel.values, Samples):
            return np.moveaxis(channel.values.at(_places(channel.values, t, h, c), axis=1), 2, 0)
        return np.stack([self._at(channel, t, h, c, np.full(len(t), i)) for i in range(channel.batch)])

    @cached_property
    def _table(self) -> Array | None:
        """All numbers that are given step by step, (B, K, r or 1, channels); None where there are samples."""
        if self.sampled:
            return None
        arrays = [channel.values for channel in self.parts.values() if not isinstance(channel.values, Samples)]
        if len(arrays) == 1:
            return np.ascontiguousarray(arrays[0])
        steps, points = min(array.shape[1] for array in arrays), max(array.shape[2] for array in arrays)
        cut = [np.broadcast_to(x[:, :steps], (self.batch, steps, points, x.shape[3])) for x in arrays]
        return np.ascontiguousarray(np.concatenate(cut, axis=3))

    def nodes(self, t: Array, h: Any, c: Array, who: NDArray[np.intp] | None = None) -> Array:
        """The inputs at the points t + c_i h of steps of any length within those of the run, (K, len(c), channels).

        h may be one length or (K,); `who` tells the trajectory of each. The middle of a step decides to which step of
        the run it belongs.
        """
        lengths = np.broadcast_to(np.asarray(h, dtype=t.dtype), t.shape)
        whose = np.zeros(len(t), np.intp) if who is None else who
        return np.concatenate([self._at(channel, t, lengths, c, whose) for channel in self.parts.values()], axis=2)

    def _at(self, channel: Channel, t: Array, h: Array, c: Array, who: NDArray[np.intp]) -> Array:
        own = who if channel.batch > 1 else np.zeros_like(who)
        if isinstance(channel.values, Samples):
            places = _places(channel.values, t, h, c)
            return channel.values.at(places, axis=1, who=np.broadcast_to(own[:, None], places.shape))
        k = np.floor(((t + h / 2 - self.t0) / self.h).astype(float)).astype(int)
        k = np.clip(k, 0, channel.values.shape[1] - 1)
        values = channel.values[own, k]
        if channel.kind == HELD:
            return np.asarray(np.broadcast_to(values, (len(t), len(c), values.shape[2])))
        begin = ((t - self.t0) - self.reals.array(k) * self.h) / self.h
        weights = lagrange(self.c, begin[:, None] + (h / self.h)[:, None] * c)
        between = np.einsum("kij,kjm->kim", weights, values)
        if len(c) != len(self.c):
            return between
        whole = (np.abs(begin.astype(float)) <= SAME) & (np.abs((h / self.h - 1).astype(float)) <= SAME)
        return np.where(whole[:, None, None], values, between)

    def instant(self, t: Array, who: NDArray[np.intp] | None = None) -> Array:
        """The inputs at times, (K, channels): in the step that begins there; at the end of a run in the last step."""
        nothing = t * 0
        k = np.floor(((t - self.t0) / self.h).astype(float) + SAME)
        last = np.inf if self.steps is None else self.steps - 1
        within = self.t0 + self.reals.array(np.clip(k, 0, last)) * self.h
        whose = np.zeros(len(t), np.intp) if who is None else who
        found = []
        for channel in self.parts.values():
            if channel.kind == SAMPLES:
                found.append(self._at(channel, t, nothing, np.zeros(1), whose)[:, 0])
            else:
                place = ((t - within) / self.h)[:, None]
                found.append(self._in_step(channel, within, place, whose))
        return np.concatenate(found, axis=1)

    def _in_step(self, channel: Channel, t: Array, place: Array, who: NDArray[np.intp]) -> Array:
        """One input at one place of each of the run's steps that begin at t."""
        if channel.kind == HELD:
            return self._at(channel, t, t * 0 + self.h, np.zeros(1), who)[:, 0]
        values = self._at(channel, t, t * 0 + self.h, self.c, who)
        return np.einsum("kj,kjm->km", lagrange(self.c, place)[:, 0], values)

    # -------------------------------------------------------------------------------------------------------- on disk

    def record(self) -> dict[str, Any]:
        """What a file's header says about the inputs."""
        rules = {n: x.values.rule if isinstance(x.values, Samples) else None for n, x in self.parts.items()}
        return {name: [channel.kind, rules[name]] for name, channel in self.parts.items()}

    def arrays(self) -> dict[str, Array]:
        """The arrays that a file has beside its header; numbers with more digits than float64 are text."""
        found: dict[str, Array] = {}
        for k, channel in enumerate(self.parts.values()):
            if isinstance(channel.values, Samples):
                found |= {f"input_{k}": channel.values.values, f"input_times_{k}": channel.values.times}
            else:
                found[f"input_{k}"] = channel.values
        if isinstance(self.reals, Digits):
            found = {name: np.array(to_texts(values), dtype=str) for name, values in found.items()}
        return found


def _places(samples: Samples, t: Array, h: Array, c: Array) -> Array:
    """The times at which samples are evaluated: at the points of steps; samples that jump, inside the steps."""
    inner = np.clip(c, INSIDE, 1 - INSIDE) if samples.rule == "previous" else c
    return np.asarray(t[:, None] + h[:, None] * inner)


# ------------------------------------------------------------------------------------------------------ what was given


def read_inputs(
    given: Mapping[str, Any] | None,
    shapes: Mapping[str, tuple[int, ...]],
    name: str,
    reals: Reals,
    t0: Any,
    h: Any,
    steps: int,
    points: Array,
    nodes: Array | str,
    many: bool,
) -> Inputs | None:
    """What a run was given, checked; None where the system has no inputs.

    points   where in a step the method looks, in parts of h
    nodes    the nodes for which values may be given, or why there are none
    """
    if not isinstance(given, Mapping | None):
        raise TypeError(f"inputs must map names to values, as in inputs={{'u': U}}; got {given!r}")
    unknown = [key for key in given or {} if key not in shapes]
    missing = [key for key in shapes if key not in (given or {})]
    if unknown:
        has = f"it has {', '.join(map(repr, shapes))}" if shapes else "la.Lagrangian(…, force=F, inputs={…}) has"
        raise ValueError(f"{name} has no input {unknown[0]!r}; {has}")
    if missing:
        raise ValueError(
            f"{name} is driven by {', '.join(map(repr, missing))}: give inputs={{{missing[0]!r}: U}}, an array of "
            f"shape {_wanted(shapes[missing[0]], steps)}, held in each step, or la.Samples(times, values, rule)"
        )
    if not shapes:
        return None
    assert given is not None
    parts = {key: _channel(key, given[key], shape, reals, steps, nodes, many) for key, shape in shapes.items()}
    c = points if isinstance(nodes, str) else nodes
    found = Inputs(dict(shapes), parts, t0, h, c, reals, many)
    sizes = {key: channel.batch for key, channel in parts.items() if channel.batch > 1}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the inputs are those of different numbers of trajectories: {sizes}")
    check_span(found, steps, points)
    return found


def check_span(inputs: Inputs, steps: int, points: Array) -> None:
    """Refuse inputs that end before the run does."""
    for name, channel in inputs.parts.items():
        if isinstance(channel.values, Samples):
            ends = [inputs.t0, inputs.t0 + steps * inputs.h]
            ends += [t + x * inputs.h for t in (ends[0], ends[1] - inputs.h) for x in (min(points), max(points))]
            low, high, known = min(ends), max(ends), channel.values
            slack = SLACK * (known.end - known.start)
            if low < known.start - slack or high > known.end + slack:
                raise ValueError(
                    f"the samples of input {name!r} reach from t = {known.start:g} to {known.end:g}, the run from "
                    f"{float(low):g} to {float(high):g}: give samples for all of it"
                )
        elif channel.steps is not None and channel.steps < steps:
            raise ValueError(
                f"input {name!r} lasts {channel.steps} steps, the run {steps}: give a value for each, an array of "
                f"shape {_wanted(inputs.shapes[name], steps)}"
            )


def _wanted(shape: tuple[int, ...], steps: Any, r: int | None = None, many: bool = False) -> str:
    parts = [*(["B"] if many else []), steps, *([] if r is None else [r]), *shape]
    return f"({', '.join(map(str, parts))}{',' if len(parts) == 1 else ''})"


def _channel(
    name: str, given: Any, shape: tuple[int, ...], reals: Reals, steps: int, nodes: Array | str, many: bool
) -> Channel:
    d, size = len(shape), size_of(shape)
    if isinstance(given, Samples):
        return Channel(SAMPLES, _sampled(name, given.rounded(reals), shape, many))
    if callable(given):
        raise TypeError(
            f"input {name!r} must be an array or la.Samples; got the function {given!r}. Write a known function of "
            "time into the force, F(t, q, v, …), without an input; or give la.Samples(times, values) of it"
        )
    try:
        values = reals.array(given)
    except (TypeError, ValueError) as error:
        raise TypeError(f"input {name!r} must be an array of numbers, or la.Samples; got {given!r} ({error})") from None
    shown = f"an array of shape {_wanted(shape, steps)}, held in each step"
    if not isinstance(nodes, str):
        shown += f", of shape {_wanted(shape, steps, len(nodes))}, at the nodes of the method"
    if many:
        shown = (
            f"for all trajectories {shown.split(', of shape')[0]}, for each its own {_wanted(shape, steps, None, True)}"
        )
        if not isinstance(nodes, str):
            shown += f", and at the nodes of the method {_wanted(shape, steps, len(nodes), True)}, B = 1 for all"
    if values.shape[values.ndim - d :] != shape or not 1 <= values.ndim - d <= (3 if many else 2):
        hint = f". An input of length 1 is a vector: write U[:, None] for it, or declare inputs={{{name!r}: ()}}"
        raise ValueError(
            f"input {name!r}, of shape {shape}, takes {shown}, or la.Samples; got an array of shape {values.shape}"
            + (hint if shape == (1,) and values.ndim == 1 else "")
        )
    if not all_finite(values):
        raise ValueError(f"input {name!r} must be finite; some of its numbers are NaN or infinite")
    axes = values.ndim - d
    held = axes == 1 or (many and axes == 2)
    if not many or axes == 1:
        values = values[None]
    if held:
        return Channel(HELD, values.reshape(*values.shape[:2], 1, size))
    if isinstance(nodes, str):
        raise ValueError(f"input {name!r} has values at nodes, shape {values.shape[1:]}: {nodes}")
    if values.shape[2] != len(nodes):
        raise ValueError(
            f"input {name!r} takes {shown}; got {values.shape[2]} values in a step, while the method has "
            f"{len(nodes)} nodes"
        )
    return Channel(NODES, values.reshape(*values.shape[:2], len(nodes), size))


def _sampled(name: str, samples: Samples, shape: tuple[int, ...], many: bool) -> Samples:
    """Samples with values (B, m, size)."""
    m, values = len(samples.times), samples.values
    alone, own = values.shape == (m, *shape), many and values.shape[1:] == (m, *shape)
    if not alone and not own:
        each = f", or (B, {', '.join(map(str, (m, *shape)))}) for each trajectory its own" if many else ""
        raise ValueError(
            f"input {name!r}, of shape {shape}, takes samples with values of shape {_wanted(shape, m)}{each}; got "
            f"{values.shape}"
        )
    return Samples.of(samples.times, values.reshape(1 if alone else len(values), m, size_of(shape)), samples.rule)


def from_record(
    record: Any, arrays: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], t0: Any, h: Any, c: Array,
    reals: Reals, many: bool,
) -> Inputs | None:  # fmt: skip
    """The inputs that a file keeps. Everything in it is checked."""
    if not shapes:
        return None
    found = mapping(record, "inputs")
    if list(found) != list(shapes):
        raise ValueError(f"inputs must be those of the system, {list(shapes)}; got {list(found)}")
    parts = {}
    for k, (name, shape) in enumerate(shapes.items()):
        kind, rule = listing(found[name], f"input {name!r}", 2)
        values = _numbers(arrays, f"input_{k}", reals)
        size = size_of(shape)
        if kind == SAMPLES and rule in RULES and values.ndim == 3 and values.shape[2] == size:
            times = _numbers(arrays, f"input_times_{k}", reals)
            if times.shape != values.shape[1:2]:
                raise ValueError(f"input {name!r} has {len(times)} times for values of shape {values.shape}")
            if not all(a < b for a, b in pairwise(times)) or len(times) < 2:
                raise ValueError(f"the times of input {name!r} must be at least two, and ascending")
            parts[name] = Channel(SAMPLES, Samples.of(times, values, rule))
            continue
        points = 1 if kind == HELD else len(c)
        if kind not in (HELD, NODES) or values.ndim != 4 or values.shape[2:] != (points, size):
            raise ValueError(f"input {name!r}: {text(kind, 'its kind')!r} of shape {values.shape} is none of this run")
        parts[name] = Channel(kind, values)
    if len({x.batch for x in parts.values() if x.batch > 1}) > 1:
        raise ValueError("the inputs are those of different numbers of trajectories")
    return Inputs(dict(shapes), parts, t0, h, c, reals, many)


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
        found[text(name, "an input's name")] = tuple(
            integer(k, f"the shape of input {name!r}", 1, MOST_CHANNELS) for k in listing(shape, "a shape")
        )
    return shapes_of(found)


def flat(inputs: Mapping[str, Any] | Array | None, shapes: Mapping[str, tuple[int, ...]], count: int, name: str) -> Any:
    """Values of all inputs at so many states, (count, channels): by name, one for all or a row for each."""
    size = sum(map(size_of, shapes.values()))
    if isinstance(inputs, np.ndarray):
        if inputs.shape[-1:] != (size,):
            raise ValueError(f"the flat array of {name}'s inputs has {size} columns; got shape {inputs.shape}")
        return np.broadcast_to(inputs, (count, size))
    given = dict(inputs or {})
    if set(given) != set(shapes):
        what = f"has the inputs {', '.join(map(repr, shapes))}" if shapes else "has no inputs"
        raise ValueError(f"{name} {what}: give values of just these, by name; got {sorted(given) or 'none'}")
    rows: Sequence[Array] = [_rows(key, np.asarray(given[key], float), shape, count) for key, shape in shapes.items()]
    return np.concatenate([np.zeros((count, 0)), *rows], axis=1)


def _rows(name: str, value: Array, shape: tuple[int, ...], count: int) -> Array:
    if value.shape not in (shape, (count, *shape)):
        raise ValueError(f"input {name!r} has shape {shape}, or ({count}, …) with a row for each; got {value.shape}")
    return np.broadcast_to(value, (count, *shape)).reshape(count, size_of(shape))
