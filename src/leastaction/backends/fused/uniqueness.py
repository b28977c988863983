"""Whether a step has one root within reach, however stiff it is: then nothing is in doubt.

Of a separable step, M q̈ = f(t, q) with a constant, symmetric M and a symmetric f_q = −K, let K₀ be K where the step
begins, and let K differ from K₀ within reach by E, |E_jk| ≤ ρ_jk (`program.enclosure`). Two roots of the equations
differ at the nodes by x with

    x = h² T(h²M⁻¹K₀) (M⁻¹E) x,        T(y) = gather_q (A − y B)⁻¹ load    (`step.kronecker`),

E at each node another one. For all members of the family whose A − y B is regular the norm of T(y), each node measured
by the root of its weight, is at most ½ for all y ≥ −1: that of Gauss' rules is at most a third, that of Lobatto's comes
near ½ for y → ∞. By Gershgorin's theorem ±E ≤ D, where D is diagonal and has the sums of the rows of ρ. So if

    h² D < M    and    h² K₀ > −M

as matrices, both by the signs of pivots, then x = 0: there is one root. Both hold for all shorter steps, too, and none
of their equations is singular within reach, so the root is connected with that of h → 0, unless that has been beyond
reach on its way. K₀ may be as large as it likes: stiff springs that are linear, or nearly so, leave nothing in doubt.

The box in which K is enclosed is BEYOND times as wide as the verdict lets a root be. Systems without a constant part
of f_q are not asked: where forces are all waves, or all gravitation, either steps are short or E is as large as K.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from leastaction.backends.fused.elimination import multiplications, pivots_of, slopes_of
from leastaction.backends.fused.mass import mass_of
from leastaction.program import Builder, Program, Value
from leastaction.program.enclosure import enclosed
from leastaction.step.form import Step, samples, stencils
from leastaction.step.kronecker import kronecker_of
from leastaction.step.verdict import FAR

READ = ("t", "q", "params")
BEYOND = 2.0
MOST_NORM = 0.501  # of T(y), y ≥ −1
FIRMEST = 1e6  # y beyond which T has its limit
MOST_INSTRUCTIONS = 8000


@lru_cache(maxsize=64)
def one_root(step: Step) -> Program | None:
    """(t, h, q, reach, params) ↦ `unique`, 1 or 0; None where it cannot be told, or would be too long to tell."""
    if not step.checked or step.multipliers or not mass_of(step).separable or not _bounded(step):
        return None
    n, slopes = step.n, step.terms[0].slopes
    stiffness = slopes.with_outputs(f_q=slopes.output("f_q"))
    entries = stiffness.output("f_q")
    symmetric = all(entries[j * n + k] == entries[k * n + j] for j in range(n) for k in range(j))
    others = [name for name, _ in stiffness.inputs if name not in READ]
    if not symmetric or stiffness.depends("f_q", *others) or not any(_constant_parts(stiffness)):
        return None
    if multiplications(slopes_of(step)) > MOST_INSTRUCTIONS:
        return None
    program = _written(step, enclosed(stiffness, ("t", "q")))
    return program if len(program.code) <= MOST_INSTRUCTIONS else None


def _written(step: Step, slopes: Program) -> Program:
    """The same; `slopes` are f_q and its radii."""
    n, mass = step.n, mass_of(step)
    B = Builder([("t", 1), ("h", 1), ("q", n), ("reach", n), ("params", step.params)])
    (h,), nothing = B.values("h"), Value(B, B.const(0.0))
    read = {name: B.input(name) for name in READ}
    read |= {"t_radius": [abs(h).k], "q_radius": [(a * (BEYOND * FAR)).k for a in B.values("reach")]}
    found, given = (
        B.inline(program, **{name: read.get(name, [nothing.k] * size) for name, size in program.inputs})
        for program in (slopes, mass.program)
    )
    masses = [Value(B, k) for k in given["m_v"]]
    M = [[masses[j] if j == k else nothing for k in range(n)] for j in range(n)] if mass.diagonal else _rows(masses, n)
    force, radius = (_rows([Value(B, k) for k in found[name]], n) for name in ("f_q", "f_q_radius"))
    curved = [[a - h * h * b for a, b in zip(*rows, strict=True)] for rows in zip(M, force, strict=True)]
    varied = [[a - (h * h * sum(radius[j])) if j == k else a for k, a in enumerate(row)] for j, row in enumerate(M)]
    unique = _definite(B, curved) & _definite(B, varied)
    return B.build(unique=[unique.k])


def _rows(values: Sequence[Value], n: int) -> list[list[Value]]:
    return [list(values[j * n : (j + 1) * n]) for j in range(n)]


def _definite(B: Builder, matrix: Sequence[Sequence[Value]]) -> Value:
    """Whether all pivots of a symmetric matrix are positive."""
    found = Value(B, B.const(1.0))
    for pivot in pivots_of(B, [[entry.k for entry in row] for row in matrix]):
        found = found & (Value(B, pivot) > 0.0)
    return found


def _bounded(step: Step) -> bool:
    """Whether the norm of T(y) is at most ½ for all y ≥ −1."""
    small = kronecker_of(step.method)
    gather, root = stencils(samples(step.method), 1).gather["q"], np.sqrt(small.w)
    if not np.all(small.w > 0):
        return False
    for y in np.concatenate([np.linspace(-1.0, 1.0, 41), np.geomspace(1.0, FIRMEST, 241)]):
        system = small.A - y * small.B
        if np.linalg.cond(system) > 1 / np.finfo(float).eps:
            return False
        T = gather @ np.linalg.solve(system, small.load)
        if np.linalg.norm(root[:, None] * T / root, 2) > MOST_NORM:
            return False
    return True


def _constant_parts(program: Program) -> list[bool]:
    """Of each output whether one of its summands is not zero and does not depend on q."""
    moving = set(range(*program.input_slice("q").indices(program.input_size)))
    depends, parts = [], list[bool]()
    for op, *args in program.code:
        if op in ("input", "const"):
            depends.append(op == "input" and args[0] in moving)
            parts.append(not depends[-1] and args[0] != 0.0 if op == "const" else not depends[-1])
            continue
        depends.append(any(depends[a] for a in args))
        if not depends[-1] or op in ("add", "sub", "neg"):
            parts.append(any(parts[a] for a in args))
        else:
            parts.append(op in ("mul", "div") and all(parts[a] or not depends[a] for a in args))
    return [parts[k] for k in program.results]
