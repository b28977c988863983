"""Sums over rows of tables: the strips of each term, what is summed at one point, and matrices that are such sums.

Numbers of all coordinates lie one after the other in arrays of `padded(n)`, with a vector between one and the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.engine.sum_strips import Part, cut
from leastaction.kernel import Native, Strip, Write, compile_strip, native_lanes
from leastaction.kernel.guarded import guarded
from leastaction.kernel.loops import Loop
from leastaction.kernel.script import JOB, jobs_alone
from leastaction.program import Program
from leastaction.step.form import Summand

FloatArray = NDArray[np.float64]
ZERO = ("const", 0.0)


def padded(n: int) -> int:
    """n, rounded up to whole vectors."""
    W = native_lanes()
    return -(-n // W) * W


@dataclass(frozen=True, eq=False)
class Strips:
    """One Program over the rows of one table: kernels, tables, and whose parameters they need."""

    summand: Summand
    parts: tuple[Part, ...]
    kernels: tuple[Native, ...]

    @classmethod
    def of(
        cls,
        summand: Summand,
        program: Program,
        writes: Sequence[Write],
        further: NDArray[np.int64] | None = None,
        cells: NDArray[np.int64] | None = None,
    ) -> Strips:
        """The strips of a program whose numbers are added where `writes` says.

        Columns `further`, behind the coordinates, name other places. Rows may be cut into cells.
        """
        table = summand.rows if further is None else np.concatenate([summand.rows, further], axis=1)
        parts = tuple(cut(table, cells))
        own = tuple((summand.pitch > 0).tolist())
        kernels = [compile_strip(Strip(program, tuple(writes), own, table.shape[1], part.pattern)) for part in parts]
        return cls(summand, parts, tuple(kernels))

    @classmethod
    def adding(cls, summand: Summand, program: Program, writes: Mapping[Write, int], *where: Any) -> list[Strips]:
        """The strips of those values of a program that are not zero; none where all are."""
        kept = {write: k for write, k in writes.items() if program.code[k] != ZERO}
        return [cls.of(summand, program.with_outputs(all=[*kept.values()]), [*kept], *where)] if kept else []


class JobList:
    """The jobs of a sum over rows, cell by cell, and the parameters of their rows."""

    def __init__(self, strips: Sequence[Strips]) -> None:
        self.strips = strips
        self.pieces = sorted(
            (cell, e, part, *piece)
            for e, one in enumerate(strips)
            for part in range(len(one.parts))
            for cell, *piece in one.parts[part].pieces()
        )
        self.table = np.zeros((len(self.pieces), len(JOB)), np.int64)

    def given(self, params: FloatArray) -> tuple[NDArray[np.int64], Any]:
        """The table of jobs with these parameters, and the arrays whose addresses it has."""
        arrays = {}
        for e, one in enumerate(self.strips):
            first, pitch = one.summand.first, one.summand.pitch
            common = np.append(params[first[pitch == 0]], 0.0)
            own = list(zip(first[pitch > 0].tolist(), pitch[pitch > 0].tolist(), strict=True))
            for k, part in enumerate(one.parts):
                rows = np.maximum(part.rows, 0)
                given = np.concatenate([np.zeros(0), *(params[a + b * rows] for a, b in own), np.zeros(1)])
                arrays[e, k] = given, common, len(rows)
        table = self.table.copy()
        for job, (_, e, k, address, count, lacking, before) in zip(table, self.pieces, strict=True):
            given, common, size = arrays[e, k]
            kernel = self.strips[e].kernels[k].address
            job[:] = kernel, address, count, lacking, given.ctypes.data + 8 * before, size, common.ctypes.data
        return table, arrays


class Evaluation:
    """A sum over rows with parameters of its own, to be called from Python."""

    def __init__(self, n: int, strips: Sequence[Strips], sizes: tuple[int, int]) -> None:
        self.n, self.sizes = n, sizes
        self.jobs = JobList(strips)
        self._params: FloatArray | None = None
        self._kept: Any = None

    def __call__(self, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is added to the two arrays at this point."""
        if self._params is None or not np.array_equal(self._params, params):
            self._kept, self._params = self.jobs.given(params), params.copy()
        table, _ = self._kept
        W, room = native_lanes(), padded(self.n)
        arrays = [guarded((size + W,), "a sum's") for size in (room, room, *map(padded, self.sizes))]
        arrays[0][: len(q)], arrays[1][: len(v)] = q, v
        point = np.array([float(t)])
        _loop()(table, len(table), point, *arrays)
        return arrays[2][: self.sizes[0]], arrays[3][: self.sizes[1]]


@lru_cache(maxsize=1)
def _loop() -> Loop:
    """The native loop over jobs."""
    return Loop("jobs", "inddddd", jobs_alone())


class Blocks:
    """Matrices that are sums over rows: blocks of derivatives, as m_v, at the coordinates of each row, on one pattern.

    row, column   of each entry that may not be zero, by rows; the pattern is symmetric and has the diagonal
    diagonal      whether the matrix has no entries beside the diagonal
    """

    def __init__(
        self, n: int, summands: Sequence[Summand], *blocks: str, held: Sequence[Summand] = (), size: int = 0,
        whole: bool = False,
    ) -> None:  # fmt: skip
        self.n, self.size = n, max(n, size)
        self.unknowns = np.concatenate([np.arange(n), np.arange(padded(n), self.size)])
        parts = [(block, summand, _entries(summand.node, block)) for block in blocks for summand in summands]
        for block in blocks:
            for summand in held:
                begin = int(np.searchsorted(summand.rows[0], padded(n)))  # the multipliers come last
                mixed = block == "m_v"
                found = _entries(summand.node, "f_q")
                parts.append((block, summand, [e for e in found if (e[0] < begin) ^ (e[1] < begin) == mixed]))
        parts = [part for part in parts if part[2]]
        self.diagonal = not whole and all(a == b for _, _, entries in parts for a, b, _ in entries)
        N = self.size
        keys = [
            np.stack([summand.rows[:, a] * N + summand.rows[:, b] for a, b, _ in own], axis=1)
            for _, summand, own in parts
        ]
        self.keys = self.unknowns * (N + 1)
        if not self.diagonal:
            found_keys = _distinct(np.concatenate([self.keys, *(key.ravel() for key in keys)]))
            self.keys = _distinct(np.concatenate([found_keys, found_keys % N * N + found_keys // N]))
        self.row, self.column = self.keys // N, self.keys % N
        self.strips: dict[str, list[Strips]] = {block: [] for block in blocks}
        for (block, summand, own), key in zip(parts, keys, strict=True):
            k = summand.rows.shape[1]
            program = summand.node.with_outputs(all=[value for _, _, value in own])
            writes = [Write("f", k + i) for i in range(len(own))]
            self.strips[block].append(Strips.of(summand, program, writes, np.searchsorted(self.keys, key)))
        self.constant = not any(summand.node.depends(block, "t", "q", "v") for block in blocks for summand in summands)

    @cached_property
    def _evaluations(self) -> dict[str, Evaluation]:
        sizes = (len(self.keys), 1)
        return {block: Evaluation(self.size, strips, sizes) for block, strips in self.strips.items()}

    def entries(self, block: str, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> FloatArray:
        """The entries of a block at a point."""
        return self._evaluations[block](t, q, v, params)[0]

    def matrix(self, block: str, t: float, q: FloatArray, v: FloatArray, params: FloatArray) -> Any:
        """The matrix at a point: its diagonal, if that is all, or a sparse array."""
        entries = self.entries(block, t, q, v, params)
        if self.diagonal:
            return entries
        from scipy.sparse import csc_array

        return csc_array((entries, (self.row, self.column)), shape=(self.n, self.n))


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each key once, in their order; NumPy's own way is slower for many."""
    keys = np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


def _entries(node: Program, block: str) -> list[tuple[int, int, int]]:
    """Row, column and value of the derivatives in a block that are not zero."""
    k = dict(node.inputs)["q"]
    found = [(i // k, i % k, value) for i, value in enumerate(node.output(block))]
    return [entry for entry in found if node.code[entry[2]] != ZERO]
