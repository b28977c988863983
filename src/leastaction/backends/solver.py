"""The memory in which the native loops solve a Step: tables and kernels of its terms, and room to work in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.fused.mass import inverse_of, mass_of, middle_of
from leastaction.backends.fused.nodes import nodes_of
from leastaction.backends.fused.uniqueness import one_root
from leastaction.backends.fused.work import work
from leastaction.backends.layout import APART, KRYLOV, MOST_THREADS, SHIFTS, SOLVER, TEAM, TERM
from leastaction.backends.points import place_of_rest
from leastaction.backends.records import Memory
from leastaction.backends.shift_tables import pattern_of, shift_vectors
from leastaction.backends.sparse import add_sparse
from leastaction.backends.summands import Assembly, Rows, Strips, padded
from leastaction.kernel import Native, compile_program, native_lanes
from leastaction.methods import Galerkin
from leastaction.program import Builder, Program, Value, indices
from leastaction.step.constraints import rate
from leastaction.step.cyclic import barrier
from leastaction.step.form import Samples, Step, Term, samples, stencils, with_rest
from leastaction.step.kronecker import short_pivots
from leastaction.step.prediction import Prediction, prediction
from leastaction.step.verdict import verdict_program

FloatArray = NDArray[np.float64]

BLOCKS_IN, BLOCKS_OUT = ("q", "v", "multipliers"), ("f", "m", "g")
MOST_CHORDS = 40
FIXED, MOVING, LAST = range(3)  # as in `loops.swift_chords`, which only Numba may import
NOTHING = 1e-30  # an entry of a table that is zero but for its rounding
TALLY = tuple(field.name for field in SOLVER.fields if field.kind == "tally")
JUDGES = ("soft", "fresh", "kept", "shifted")  # the verdicts that a solver asks for
ATTEMPT = 2.5  # shifted chords that fail must cost so many times less than Newton's iteration
MOST_VECTORS, MOST_ROOM = 30, 2**27  # of a Krylov space, and numbers of it
STIFF_CHORDS = 8  # mass chords of a sum that cost about as much as to factorise and solve


@dataclass
class Solvers:
    """Records of solvers in one memory, and the kernels they call: these live as long as this object."""

    memory: Memory = field(default_factory=Memory)
    kernels: list[Native] = field(default_factory=list)
    terms: dict[int, int] = field(default_factory=dict)  # of each solver, where its terms are
    chords: dict[int, int] = field(default_factory=dict)  # of each solver, how many chords cost as much as Newton
    scratch: int = 1  # doubles that the kernels need to work in
    pushed: int = 1  # and the doubles for what a direction changes
    rows: list[tuple[Strips, list[int]]] = field(default_factory=list)  # sums over rows, and where their parts are
    team: int | None = None  # where the record of the threads is that share the work of a sum

    def copy(self) -> Solvers:
        """The same, in a memory of its own."""
        return Solvers(
            self.memory.copy(), self.kernels.copy(), self.terms.copy(), self.chords.copy(), self.scratch, self.pushed,
            self.rows.copy(), self.team,
        )  # fmt: skip

    def duplicate(self) -> Solvers:
        """The same in a memory that is laid out, with numbers of its own."""
        return replace(self, memory=self.memory.duplicate())

    def compiled(self, program: Program, lanes: int, in_place: bool = False, rarely: bool = False) -> int:
        """The address of a program's kernel."""
        kernel = compile_program(program, lanes, in_place=in_place, rarely=rarely)
        if self.memory.I.size and kernel.work > self.scratch:
            raise RuntimeError(f"a kernel needs {kernel.work} numbers to work in, and {self.scratch} are laid out")
        self.kernels.append(kernel)
        self.scratch = max(self.scratch, kernel.work)
        return kernel.address

    def add(self, step: Step, lanes: int) -> int:
        """Lay out the solver of a step for one trajectory or W of them; returns where its record is."""
        fields = self._solver(step, lanes)
        place = self.memory.add((SOLVER, fields))
        self.terms[place], self.chords[place] = fields["terms"], fields["chords"]
        return place

    def _solver(self, step: Step, lanes: int) -> dict[str, Any]:
        W, n, s = native_lanes(), step.n, step.s
        components = n + step.multipliers
        width = -(-s // W) if lanes == 1 else s
        square, unknowns = -(-(s + 1) * s // W), components * s
        terms = [self._term(step, term, term.program, term.slopes, lanes, width, square) for term in step.terms]
        place = self.memory.add(*((TERM, record) for record, _ in terms))
        value_cost, slope_cost = (sum(cost[k] for _, cost in terms) for k in (0, 1))
        mass = mass_of(step)
        soft, soft_cost = place, value_cost
        if mass.separable:
            node = step.terms[0]
            force = node.program.select("f")
            record, cost = self._term(step, node, force, None, lanes, width, square)
            soft, soft_cost = self.memory.add((TERM, record)), cost[0]
        soft_cost += n * width * s + (n * width if mass.diagonal else n * n * width)
        slope_cost += unknowns**3 / (2 * W)
        kept_cost = value_cost + unknowns**2
        newton_chords = _chords(slope_cost / kept_cost)
        soft_chords = _chords((2 * slope_cost + kept_cost) * lanes / soft_cost)  # Newton solves each trajectory alone
        ahead, node = ahead_of(step.method), step.terms[0]
        shifts, shift_chords = self._shifts(step, lanes, slope_cost, value_cost)
        judges = _judges(soft_chords, newton_chords, shift_chords, step.checked, mass.separable)
        end, m = step.end, step.multipliers
        point, certain, wall = with_rest(node.slopes, node.rest), one_root(step), _barrier(step) if lanes == 1 else None
        numbers = {
            "coordinates": n, "n": n, "components": components, "multipliers": m, "s": s, "lanes": lanes,
            "across": lanes, "summed": 0, "width": width, "square": square, "stride": width * W // lanes,
            "unknowns": unknowns, "lead": -(-unknowns // W) * W,
            "mass_lead": -(-n // (2 * W)) * 2 * W, "params": step.params, "channels": step.channels,
            "given": step.params + step.driven, "terms": place, "soft": soft,
            "term_count": len(terms), "separable": mass.separable, "constant": mass.constant,
            "diagonal": mass.diagonal, "has_chord": not step.multipliers, "explicit": 0, "early": -1, "late": -1,
            "timed": 0, "swift": 0, "sparse": -1, "team": -1, "shifts": shifts, "kernels": -1, "stiff": shifts >= 0,
            "krylov": -1,
            "kinds": 0,
            "checked": step.checked, "branching": step.branching, "chords": soft_chords,
            "mass": self.compiled(mass.program, lanes, rarely=True), "point": self.compiled(point, 1, rarely=True),
            "rest": place_of_rest(point),
            "barrier": 0 if wall is None else self.compiled(wall, 1, rarely=True),
            "one_root": 0 if certain is None or lanes > 1 else self.compiled(certain, 1, rarely=True),
            "end": 0 if end is None else self.compiled(end.program, 1),
            "linear_end": end is not None and end.linear,
            **self._rules(judges, ahead, lanes),
        }  # fmt: skip
        points = max(record["points"] for record, _ in terms)
        dense = lanes == 1
        sizes = {
            "W": W, "room": n, "dense": dense, "full": dense and not mass.diagonal, "saddled": n + m if m else 0,
            "point_outputs": point.output_size, "end_outputs": 0 if end is None else end.slopes.output_size,
            "scaled": max(4 * padded(points) if dense else points * W, ahead.candidates * W),
            "b": max(numbers["lead"], numbers["mass_lead"], 4 * width * W),
        }  # fmt: skip
        table, middle = step.method.table, middle_of(step.method)
        return {
            **numbers, **dict.fromkeys(TALLY, 0), "kind": [], **sizes, "unit": 1,
            "h": [np.nan], "K_h": [np.nan], "inverse": inverse_of(step.method),
            "short": short_pivots(step.method), "middle": middle,
            "slope": table.slope[1:], "d": table.d, "at_nodes": [] if wall is None else table.l[:, 1:],
        }  # fmt: skip

    def _rules(self, judges: Iterable[Program], ahead: Prediction, lanes: int) -> dict[str, int]:
        """The kernels of the verdicts, of so many lanes, and of the prediction; and what a prediction remembers."""
        found = {f"judge_{name}": self.compiled(judge, lanes) for name, judge in zip(JUDGES, judges, strict=True)}
        stages = ("assess", native_lanes()), ("choose", lanes), ("propose", native_lanes())
        for name, own in stages:
            found[name] = self.compiled(getattr(ahead, f"{name}_program"), own, in_place=True)
        return found | {"memory": ahead.memory, "candidates": ahead.candidates, "record": ahead.record}

    def _shifts(self, step: Step, lanes: int, newton_cost: float, value_cost: float) -> tuple[int, int]:
        """The place of the record of the shifts into which a step of one trajectory separates, or −1 where an attempt
        that fails costs too much; and how many shifted chords cost as much as Newton's iteration.

        An attempt factorises once, and after three chords their contraction tells whether to go on.
        """
        n, s, W = step.n, step.s, native_lanes()
        if lanes > 1 or step.multipliers:
            return -1, 1
        pattern = pattern_of(step)
        tables, width = shift_vectors(step.method, W), -(-s // W)
        groups, entries = len(tables["gamma"]), len(pattern.column)
        count = tables["out"].shape[1]
        factors = work(step.terms[0].slopes) + 4 * groups * (pattern.products + entries)
        one = value_cost + groups * (4 * entries + 2 * s * n) + 2 * n * width * count
        attempt = factors + 3 * one
        if attempt > 2 * newton_cost / ATTEMPT:
            return -1, 1
        record = {
            "count": count, "groups": groups, "entries": entries, "order": pattern.order, "begin": pattern.begin,
            "column": pattern.column, "diagonal": pattern.diagonal, **tables, "n": n, "W": W,
        }  # fmt: skip
        return self.memory.add((SHIFTS, record)), _chords(2 * newton_cost / one)

    def _term(
        self, step: Step, term: Term, program: Program, slopes: Program | None, lanes: int, width: int, square: int
    ) -> tuple[dict[str, Any], tuple[float, float]]:
        """The record of a term, and what its values and its derivatives cost, in operations on vectors."""
        W, n, s = native_lanes(), step.n, step.s
        samples = step.samples(term)
        r = len(samples.tau)
        groups = -(-r // W) if lanes == 1 else r
        dense = slopes if slopes is not None and lanes == 1 else None
        used = {args[0] for code in (program, dense) if code is not None for op, *args in code.code if op == "input"}
        sizes = dict(program.inputs)

        def first(block: str) -> int:
            return program.input_slice(block).start

        shift = {"q": 0, "v": 0, "multipliers": n, "f": 0, "m": 0, "g": n}
        gather = _ranges(
            (first(block) + k, shift[block] + k, a, int(block == "q"))
            for a, block in enumerate(BLOCKS_IN)
            for k in range(sizes.get(block, 0))
            if first(block) + k in used
        )
        scatter = _ranges(
            (program.output_slice(block).start + j, shift[block] + j, b)
            for b, block in enumerate(BLOCKS_OUT)
            for j in range(dict(program.outputs).get(block, 0))
        )
        reads = [
            [max(first(block) + k - shift[block], 0) if block in sizes else 0 for k in range(n + step.multipliers)]
            for block in BLOCKS_IN
        ]
        entries, pairs = _entries(dense, shift) if dense is not None else ([], [])
        kernel = self.compiled(program, W)
        outputs = program.output_size if dense is None else max(program.output_size, dense.output_size)
        record = {
            "points": r, "groups": groups, "kernel": kernel,
            "slopes": 0 if dense is None else self.compiled(dense, W),
            "coefficients": self.compiled(_coefficients(samples), 1),
            "inputs": program.input_size, "outputs": program.output_size,
            "slope_outputs": 0 if dense is None else dense.output_size,
            "gathers": len(gather), "scatters": len(scatter), "entries": len(entries), "pairs": len(pairs),
            "time": first("t") if first("t") in used else -1,
            "params": first("params") if used.intersection(range(first("params"), first("params") + sizes["params"]))
            else -1,
            "driven": first("inputs") if sizes.get("inputs") else -1,
            "rows": -1, "pushed": -1, "gather": gather, "scatter": scatter, "entry": entries, "pair": pairs,
            "reads": reads, "role": [],
            **{name: _first(dense, block) for name, block in (("by_time", "f_t"), ("by_params", "f_w"))},
            "W": W, "s": s, "width": width, "square": square, "results": outputs,
        }  # fmt: skip
        if dense is not None:
            self.pushed = max(self.pushed, groups * (dense.output_size + program.input_size) * W)
        gathered, scattered = (sum(count for *_, count in ranges) for ranges in (gather, scatter))
        moves = gathered * groups * s + scattered * width * r
        value_cost = groups * work(program) + moves
        if slopes is None:
            return record, (value_cost, 0.0)
        derivatives = sum(slopes.code[k] != ("const", 0.0) for k in slopes.results) - scattered
        return record, (value_cost, groups * work(slopes) + moves + derivatives * square * r)

    def add_sum(self, sums: Assembly, method: Galerkin, stiff: bool, newton: bool) -> int:
        """Lay out the solver of one trajectory of a sum, its coordinates side by side; returns where its record is.

        stiff    with ∂f/∂q, for the shifted chord
        newton   with the derivatives of every point, along a direction, for Newton's iteration
        """
        W, n, s = native_lanes(), sums.n, method.s
        vectors, found, ahead = padded(n) // W, samples(method), ahead_of(method)
        components = padded(sums.size) // W
        records = [self._sum_term(sums, found, s, sums.gradient.rows, "fm", sums.pushed if newton else None)]
        if sums.m:
            pushed = sums.pushed_reactions if newton else None
            records.append(self._sum_term(sums, samples(method, "controls"), s, sums.reactions, "g", pushed))
        both = soft = self.memory.add(*((TERM, record) for record in records))
        plain = sums.separable and sums.mass.diagonal and not sums.m
        if sums.separable and not sums.m:
            soft = self.memory.add((TERM, self._sum_term(sums, found, s, sums.forces, "f")))
        sparse = self._sum_matrices(sums, method, stiff) if stiff or not plain else -1
        ends = {float(c): i for i, c in enumerate(found.tau)}
        explicit = s == 1 and set(ends) <= {0.0, 1.0} and plain
        chords = STIFF_CHORDS if stiff and not sums.m else MOST_CHORDS
        checked = method.branch == "followed"
        judges = _judges(chords, chords, chords, checked, sums.separable)
        numbers = {
            "coordinates": n, "n": vectors, "components": components, "multipliers": sums.m, "s": s, "lanes": 1,
            "across": W,
            "summed": 1, "checked": checked, "branching": checked and not sums.m and not sums.linear, "end": 0,
            "linear_end": 0,
            "width": s, "square": 1, "stride": s * W, "unknowns": 0, "lead": 0, "mass_lead": 0, "params": 0,
            "channels": 0, "given": 0, "terms": both,
            "soft": soft, "term_count": len(records), "separable": sums.separable, "constant": sums.mass.constant,
            "diagonal": sums.mass.diagonal, "has_chord": not sums.m, "explicit": explicit, "early": ends.get(0.0, -1),
            "late": ends.get(1.0, -1), "timed": sums.timed, "swift": plain, "sparse": sparse, "shifts": -1,
            "kernels": -1, "stiff": stiff, "krylov": self._krylov(components * s, components) if newton else -1,
            "kinds": int(sums.kinds.max()) + 1, "chords": chords,
            "mass": 0, "point": 0, "rest": 0, "one_root": 0, "barrier": 0,
            **self._rules(judges, ahead, 1),
        }  # fmt: skip
        numbers["team"] = self.team = self._team(sums, method)
        unused = ("at_values", "V", "argument", "reached", "left", "end_at", "end_values", "values", "at", "t",
                  "mass_inverses", "weight", "move", "fastest", "saddle", "end_move", "pushed", "length")  # fmt: skip
        all_n = vectors * W
        sizes = {
            "W": W, "room": all_n, "dense": 0, "full": 0, **dict.fromkeys(unused, 1),
            "scaled": max(len(found.tau), ahead.candidates) * W, "b": s * W, "M": all_n, "noise": all_n,
            "scale": components * W, "unit": 2 * max(W, numbers["kinds"]),
        }  # fmt: skip
        kind: Any = np.concatenate([sums.kinds, np.zeros(all_n - n, int)]) if numbers["kinds"] > 1 else []
        table = method.table
        place = self.memory.add(
            (SOLVER, {
                **numbers, **dict.fromkeys(TALLY, 0), **dict.fromkeys(("mass_pivots", "end_pivots"), 0), "kind": kind,
                **sizes, "h": [np.nan], "K_h": [np.nan],
                "inverse": inverse_of(method), "short": short_pivots(method), "middle": middle_of(method),
                "slope": table.slope[1:], "d": table.d, "at_nodes": [],
            })
        )  # fmt: skip
        self.terms[place], self.chords[place] = both, chords
        return place

    def _krylov(self, rows: int, components: int) -> int:
        """The record of Newton's iteration of a sum; where it is."""
        W = native_lanes()
        most = max(4, min(MOST_VECTORS, MOST_ROOM // (rows * W)))
        return self.memory.add(
            (KRYLOV, {
                "most": most, "rows": rows * W, "scales": components * W,
            })
        )  # fmt: skip

    def _team(self, sums: Assembly, method: Galerkin) -> int:
        """The record of the threads that share a sum's work; where it is."""
        W, cells, lines = native_lanes(), sums.cells.phases[1], np.zeros(MOST_THREADS * APART)
        ahead, points = ahead_of(method), len(samples(method).tau)
        tally = [field.name for field in TEAM.fields if field.kind == "tally"]
        return self.memory.add(
            (TEAM, {
                "helpers": 0, "nap": 0, "nap_time": 0,
                "width": max(points, ahead.candidates) * W, **dict.fromkeys(tally, 0),
                "ticket": lines, "done": lines, **dict.fromkeys(("stop", "broken"), APART), "W": W, "s": method.s,
                "cells": cells, "kinds": 2 * max(W, int(sums.kinds.max()) + 1), "candidates": ahead.candidates,
            })
        )  # fmt: skip

    def _sum_matrices(self, sums: Assembly, method: Galerkin, stiff: bool) -> int:
        """The record of a sum's sparse matrices; where it is."""
        blocks = sums.matrices if stiff else sums.mass
        places = {block: self._rows(Rows(strips)) for block, strips in blocks.strips.items()}
        if sums.m:
            places["rates"] = self._rows(sums.of_rows(rate, held=True))
        still = not any(summand.node.depends("m_v", "v") for summand in sums.summands)
        return add_sparse(self.memory, blocks, places, method, still)

    def _rows(self, rows: Rows) -> int:
        """The record of a sum over rows; where it is."""
        place, laid = rows.lay_out(self.memory)
        self.rows += laid
        return place

    def _sum_term(
        self, sums: Assembly, found: Samples, s: int, rows: Rows, blocks: str, pushed: Rows | None = None
    ) -> dict[str, Any]:
        """The record of the sums over rows of f, of f and m, or of reactions and constraints, as a term.

        A point is t, q, v, and with `pushed` dq, dv.
        """
        W = native_lanes()
        r, vectors, components = len(found.tau), padded(sums.n) // W, padded(sums.size) // W
        room = components + 1
        gather, scatter = [(1, 0, 0, 1, vectors)], [(0, 0, 0, vectors)]
        if blocks == "fm":
            gather, scatter = [*gather, (1 + room, 0, 1, 0, vectors)], [*scatter, (room, 0, 1, vectors)]
        if blocks == "g":
            held = components - vectors
            gather.append((1 + vectors, vectors, 2, 0, held))
            scatter.append((vectors, vectors, 2, held))
        inputs, outputs = 1 + (2 if pushed is None else 4) * room, len(blocks) * room
        return {
            "points": r, "groups": r, "kernel": 0, "slopes": 0,
            "coefficients": self.compiled(_coefficients(found), 1), "inputs": inputs, "outputs": outputs,
            "slope_outputs": 0, "gathers": len(gather), "scatters": len(scatter), "entries": 0, "pairs": 0,
            "time": 0, "params": -1, "driven": -1, "rows": self._rows(rows),
            "pushed": -1 if pushed is None else self._rows(pushed),
            "gather": gather, "scatter": scatter, "entry": [], "pair": [], "reads": [],
            "role": _roles(found), "by_time": 0, "by_params": 0,
            "W": W, "s": s, "width": s, "square": 1, "results": outputs,
        }  # fmt: skip

    def add_sensitive(self, step: Step, slopes: Sequence[Program]) -> int:
        """Lay out the terms once more, their kernels with derivatives by time and parameters; returns where."""
        W = native_lanes()
        width, square = -(-step.s // W), -(-(step.s + 1) * step.s // W)
        terms = zip(step.terms, slopes, strict=True)
        records = [self._term(step, term, term.program, given, 1, width, square)[0] for term, given in terms]
        return self.memory.add(*((TERM, record) for record in records))

    def finish(self) -> Solvers:
        """Lay memory out, when all kernels have told what they need."""
        self.memory.finish(scratch=self.scratch, pushed_scratch=self.pushed)
        return self


def _roles(found: Samples) -> list[int]:
    """When the force at each point is evaluated; see `loops.swift_chords`."""
    ends = found.l.copy()
    ends[:, -1] -= 1.0
    moves, counts = (np.abs(table).max(axis=1) > NOTHING for table in (found.l, ends))
    return [(MOVING if counted else LAST) if moved else FIXED for moved, counted in zip(moves, counts, strict=True)]


def _ranges(entries: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Entries (place, component, …) of a table that follow each other, as one entry with their number behind it."""
    found: list[tuple[int, ...]] = []
    for place, component, *kind in entries:
        if found and found[-1][2:-1] == tuple(kind):
            first, begin, *_, count = found[-1]
            if (first + count, begin + count) == (place, component):
                found[-1] = (first, begin, *kind, count + 1)
                continue
        found.append((place, component, *kind, 1))
    return found


def _first(slopes: Program | None, block: str) -> int:
    """Where a block begins among the numbers given, 0 if there is none."""
    return slopes.output_slice(block).start if slopes is not None and block in dict(slopes.outputs) else 0


def _judges(soft: int, newton: int, shifted: int, checked: bool, separable: bool) -> list[Program]:
    """The verdicts on mass chords, on Newton's iteration with a fresh Jacobian and with a kept one, and on shifted
    chords; of each, how many chords cost as much as a fresh Jacobian.
    """
    return [
        verdict_program(False, soft, checked, sided=True, steady=not separable),
        verdict_program(True, newton, checked),
        verdict_program(False, newton, checked),
        verdict_program(False, shifted, checked, steady=True),
    ]


def _barrier(step: Step) -> Program | None:
    """The energy of cyclic coordinates, where steps have the form in which these can be left out."""
    return barrier(step) if step.checked and nodes_of(step.method) is not None else None


def _chords(ratio: float) -> int:
    return max(1, min(MOST_CHORDS, int(ratio)))


def _entries(slopes: Program, shift: dict[str, int]) -> tuple[list[tuple[int, ...]], list[tuple[int, int]]]:
    """The derivatives that are not zero: (which number, row's component, column's component, pair of stencils)."""
    entries: list[tuple[int, ...]] = []
    pairs: list[tuple[int, int]] = []
    sizes, outputs = dict(slopes.inputs), dict(slopes.outputs)
    for b, out in enumerate(BLOCKS_OUT):
        for a, block in enumerate(BLOCKS_IN):
            if f"{out}_{block}" not in outputs:
                continue
            begin, width = slopes.output_slice(f"{out}_{block}").start, sizes[block]
            pairs.append((b, a))
            for i in range(outputs[f"{out}_{block}"]):
                if slopes.code[slopes.results[begin + i]] != ("const", 0.0):
                    entries.append((begin + i, shift[out] + i // width, shift[block] + i % width, len(pairs) - 1))
    return entries, pairs


def _coefficients(samples: Samples) -> Program:
    """h ↦ the stencils: times, weights, then gather's and scatter's coefficients, block by block."""
    B = Builder([("h", 1)])
    table = stencils(samples, Value(B, B.input("h")[0]))
    blocks = [table.times, table.weights]
    blocks += [table.gather[name] for name in BLOCKS_IN] + [table.scatter[name] for name in BLOCKS_OUT]
    return B.build(all=[k for block in blocks for k in indices(np.asarray(block).ravel().tolist(), B)])


@lru_cache(maxsize=64)
def ahead_of(method: Galerkin) -> Prediction:
    """The prediction with the method's table in float64."""
    return prediction(method.table.modes, method.table.growth)
