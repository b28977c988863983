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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods.quadrature import lagrange
from leastaction.numbers.notation import to_texts
from leastaction.numbers.rounding import Digits, Reals
from leastaction.step.samples import SAME, Samples

Array = NDArray[Any]
Shapes = Mapping[str, tuple[int, ...]]

INSIDE = 2.0**-20  # part of a step: samples that jump are evaluated so far from its ends


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
        values = numbers_of(part)[:, :, 0] if held else numbers_of(part)
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
        return max((len(numbers_of(part)) for part in self.parts.values()), default=1)

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
            own = numbers_of(part)[begin:end] if len(numbers_of(part)) > 1 else numbers_of(part)
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
        found = {f"input_{k}": numbers_of(part) for k, part in enumerate(self.parts.values())}
        found |= {f"input_times_{k}": x.times for k, x in enumerate(self.parts.values()) if isinstance(x, Samples)}
        if isinstance(self.reals, Digits):
            found = {name: np.array(to_texts(values), dtype=str) for name, values in found.items()}
        return found


def numbers_of(part: Array | Samples) -> Array:
    return part.values if isinstance(part, Samples) else part


def _rows_of(part: Array | Samples, t: Array, who: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Which of the trajectories' values count at each of the times."""
    return np.zeros(len(t), np.intp) if who is None or len(numbers_of(part)) == 1 else who
