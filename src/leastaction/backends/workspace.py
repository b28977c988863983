"""The memory of a run, laid out once for all runs alike: solvers, kernels, and the record that the loop reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.backends.backend import Backend
from leastaction.backends.layout import COUNTS, KERNELS, PLACES, RUN, SOLVER
from leastaction.backends.solver import Solvers, ahead_of
from leastaction.kernel import Native, compile_program, native_lanes
from leastaction.program import Program
from leastaction.step.prediction import WHOLE

if TYPE_CHECKING:
    from leastaction.step.stored_row import Row

FloatArray = NDArray[np.float64]

NEVER = 2**62  # the step after which a state is stored that is never to be stored
# After a step for which chords failed, the following steps begin with Newton: so many steps, divided by the number of
# chords that cost about as much as Newton.
RESTING = 64
FIRM = 16  # after a step that stiff chords solved, so many begin with them
PACKED = ("q", "p")  # with points side by side in vectors, these have coordinates side by side
MOST_LOOKS = 256  # steps in which an event may lie that are looked at together, of one trajectory …
FEWEST_LOOKS = 8  # … and of each of many
MOST_KEPT, MOST_LAID = 2**16, 8  # doubles of a memory laid out once for all runs alike, and how many such are kept


@dataclass(frozen=True, eq=False)
class Check:
    """What is asked after every step: whether an event may lie in it (`events.check`).

    ends        of one trajectory that looks for nothing but its end: the function (t, q, p, params) ↦ g of the end …
    direction   … and whether it grows, 1, or falls, −1
    """

    program: Program
    ends: Program | None = None
    direction: int = 0

    @property
    def key(self) -> tuple[str, bool, int]:
        """What tells this check from others."""
        return self.program.digest, self.ends is None, self.direction


@dataclass(frozen=True, eq=False)
class Laid:
    """The memory of a run, laid out: solvers and the record of the run at a place.

    rows              values of a group's state and what lies behind it
    look_size, looks  numbers that a check reads, and room for how many
    """

    solvers: Solvers
    place: int
    groups: int
    rows: int
    look_size: int
    looks: int
    kernels: dict[str, Native]  # they live as long as this object


def laid_out(backend: Backend, size: int, row: Row, check: Check | None) -> Laid:
    """The memory for so many trajectories, to be duplicated: small ones are laid out once for all runs alike."""
    key = size, row.columns.tobytes(), row.varied, None if check is None else check.key
    found = backend.laid.get(key)
    if found is None:
        found = _laid_out(backend, size, row, check)
        if len(found.solvers.memory.D) <= MOST_KEPT:
            if len(backend.laid) >= MOST_LAID:
                backend.laid.clear()
            backend.laid[key] = found
    return found


def _laid_out(backend: Backend, size: int, row: Row, check: Check | None) -> Laid:
    step, L, places = backend.step, backend.lanes, backend.places
    n, s = step.n, step.s
    groups = -(-size // L)
    solvers, solver, alone = backend.solvers()
    kernels = backend.kernels
    at = {name: place.start for name, place in places.items()}
    T = backend.stride
    if backend.fused and backend.spread == 1:
        z_coordinate, z_control = T, n * T
        held = (s * n * T, T, step.multipliers * T)
    else:
        z_coordinate = (places["z"].stop - places["z"].start) // (n + step.multipliers) * T
        z_control = T // backend.spread
        held = (n * z_coordinate, z_coordinate, z_control)
    looks: dict[str, Any] = {
        "check": 0, "look_size": 0, "look_last": 0, "looks": 0, "look_sources": [], "doubt": 1, "ending": 0,
        "direction": 0, **dict.fromkeys(("end_look", "end_found", "end_work"), 1),
    }  # fmt: skip
    rows = backend.size
    if check is not None:
        sources = _sources(backend, check.program, z_coordinate, z_control)
        rows += n + 1  # the leading coefficients of the last step, and h
        # The leading coefficients of this step replace those of the last one where they stand.
        blocks = ("state", backend.size * T // L), ("lead", n), ("rest", (n + 1) * T // L - n)
        if check.ends is None:
            asked = compile_program(check.program.reading(sources, blocks), L, in_place=True)
        else:  # the loop asks for the end alone
            asked = compile_program(check.ends)
            looks |= {"ending": asked.address, "direction": check.direction, "end_look": asked.inputs,
                      "end_found": asked.outputs, "end_work": asked.work}  # fmt: skip
        kernels = {**kernels, "check": asked}
        inputs, room = len(sources), max(FEWEST_LOOKS, MOST_LOOKS // size)
        looks |= {"check": asked.address, "look_size": inputs, "look_last": check.program.input_slice("last").start,
                  "looks": room, "look_sources": sources, "doubt": check.program.output_size * L}  # fmt: skip
    place = solvers.memory.add(
        (RUN, {
            "fused": backend.fused,
            **{name: kernels[name].address if name in kernels else 0 for name in KERNELS},
            "solver": solver, "alone": alone, "lanes": L, "stride": T, "groups": groups, "size": rows,
            **{name: at.get(name, 0) for name in PLACES},
            "z_coordinate": z_coordinate, "z_control": z_control,
            **dict(zip(("held", "held_multiplier", "held_control"), held, strict=True)),
            "coordinate": 1 if backend.spread > 1 else T,
            "lifted": s <= WHOLE or check is not None or backend.energy or row.varied > 0,
            **{f"{name}_wanted": at.get(name, 0) for name in ("inner", "outer", "fresh", "kept")},
            "handed": at["started"] + 1 if "leap" in kernels else places["carry"].stop,
            "patience": backend.patience if groups == 1 else 0, "firm": FIRM,
            "jacobian": at.get("slopes", 0),
            "jacobian_size": places["factors"].stop - at["slopes"] if "factors" in places else 0,
            "every": NEVER, "skipped": 0, "rows": 0, "width": row.width,
            "kept_count": len(row.columns), "kept_numbers": backend.numbers(row.columns),
            "n": backend.room, "s": s, "param_count": backend.params, "inputs": at.get("inputs", 0),
            "channels": step.channels, "nodes": len(step.method.table.c), "trajectories": size,
            "vectors": -(-len(step.method.table.c) // T) if backend.spread > 1 else 0,
            **driven_by(np.zeros((0, 0, 0))), "table_first": 0,
            "resting": max(1, RESTING // _chords(backend, solvers, solver)),
            "columns": row.varied,
            **_sensitive(backend, solvers, alone, row.varied), **looks, **_aside(backend),
            "end": 0, "most": 0, "looked": [0] * (groups * L), "halted": [0] * groups, "who": list(range(groups * L)),
            "candidates": ahead_of(backend.method).candidates * native_lanes(), "sensitive_h": [np.nan],
        })
    )  # fmt: skip
    solvers.finish()
    if backend.unit_tables is not None:
        solvers.memory.I[solvers.memory.number(alone, SOLVER, "kernels")] = place
    return Laid(solvers, place, groups, rows, looks["look_size"], looks["looks"], kernels)


def driven_by(table: FloatArray) -> dict[str, int]:
    """What a record tells of a table of inputs, (trajectories or 1, steps, nodes or 1, …)."""
    pitches = [0 if length == 1 else pitch // 8 for length, pitch in zip(table.shape, table.strides, strict=True)]
    names = ("table_trajectory", "table_step", "table_node")
    return {"table": table.ctypes.data, **dict(zip(names, pitches, strict=False))}


def _sources(how: Backend, check: Program, z_coordinate: int, z_control: int) -> list[int]:
    """Where in a lane of a group's state the numbers are that a check reads, in its order."""
    n, T, channels, r = how.step.n, how.stride, how.step.channels, len(how.step.method.table.c)
    found = {name: np.arange(place.start, place.stop) * T for name, place in how.places.items()}
    found |= {"last": how.size * T + np.arange(n) * how.lanes, "h": np.array([how.size + n]) * T}
    if how.spread > 1:
        found |= {name: found[name][0] + np.arange(n) for name in (*PACKED, "impulse")}
    controls = np.arange(how.step.s)[:, None]
    found["z"] = found["z"][:1] + controls * z_control + np.arange(n) * z_coordinate
    if channels and how.spread > 1:  # the nodes side by side
        nodes, vectors = np.arange(r)[:, None], -(-r // T)
        found["inputs"] = found["inputs"][:1] + (np.arange(channels) * vectors + nodes // T) * T + nodes % T
    return [int(place) // how.lanes for name, size in check.inputs for place in found[name].ravel()[:size]]


def _aside(backend: Backend) -> dict[str, Any]:
    """What kernels need that solve single steps: a state, of which all but tables is as before a first step."""
    found: dict[str, Any] = {"table_rows": 0, "unit_tables": 0, "powers": [], "single_counts": 0}
    if backend.unit_tables is None:
        return {**found, "aside": 1, "aside_work": 1}
    unit, powers = backend.unit_tables
    state, places = np.zeros((backend.size, backend.stride)), backend.places
    state[places["tables"]], state[places["alive"]] = unit, 1.0
    return {
        "table_rows": len(powers), "unit_tables": unit.ctypes.data, "powers": powers, "single_counts": COUNTS,
        "aside": state.ravel(),
        "aside_work": max(kernel.work for kernel in backend.kernels.values()),
    }  # fmt: skip


def _chords(backend: Backend, solvers: Solvers, solver: int) -> int:
    """How many chords cost about as much as to solve a step by Newton."""
    programs = backend.programs
    return programs.chords if programs is not None else solvers.chords[solver]


def _sensitive(backend: Backend, solvers: Solvers, alone: int, columns: int) -> dict[str, int]:
    """The terms along whose derivatives so many directions are carried."""
    step = backend.step
    found = {"sensitive": solvers.terms[alone], "end_slopes": 0}
    if columns > 2 * step.n:
        found["sensitive"] = solvers.add_sensitive(step, backend.system.sensitive_terms)
    if columns and step.end is not None:
        found["end_slopes"] = solvers.compiled(step.end.slopes, 1)
    return found
