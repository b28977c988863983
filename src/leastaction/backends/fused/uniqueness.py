"""Whether the root of a step is the only one in a box around it, however stiff the step is: then nothing is in doubt.

Of a separable step, M q̈ = f(t, q) with a constant, symmetric M and a symmetric f_q = −K, let K₀ be K where the step
begins, and let K differ from K₀ within a box by E, |E_jk| ≤ ρ_jk (`program.enclosure`). Two roots in the box differ at
the nodes by x with

    x = h² T(h²M⁻¹K₀) (M⁻¹E) x,        T(y) = gather_q (A − y B)⁻¹ load    (`step.kronecker`),

E at each node another one. For all members of the family whose A − y B is regular, each node measured by the root of
its weight,

    1/‖T(y)‖ ≥ 2 + c y    for all y ≥ −1,

with c = 1, 0.6, 0.5, 0.4 for Gauss' rules with s = 1, 2, 3, 4, down to 0.1 with s = 16, and c = 0 for Lobatto's
(`firmness`, less a little). Let S = 2M + c h²K₀. Where M = 1, as it is in some coordinates, S commutes with T, and
‖S T‖ ≤ 1. So y = S^½ x has y = (S T) (S^−½ h²E S^−½) y. By Gershgorin's theorem ±E ≤ D, where D is diagonal and has the
sums of the rows of ρ. So if

    h² D < 2M + c h²K₀    and    h² K₀ > −M

as matrices, both by the signs of pivots, then y = 0: there is one root. K₀ may be as large as it likes, and what
changes may be as large as a part of K₀: stiff springs, whether linear or not, leave nothing in doubt.

Which box. The statement holds of any, so it is asked of the root that an iteration has found, wherever that began: the
box is BEYOND times as wide, in every coordinate, as the step and as the latest steps, at their nodes. Neither a
prediction nor the velocity says how wide: where h ω is large, both lead many times as far as the motion goes. Both
inequalities hold for all shorter steps, too, and none of their equations is singular in the box. So the root is
connected with that of h → 0, unless that has left the box on its way. The latest steps tell how far that may lead.

Systems without a constant part of f_q are not asked: where forces are all waves, or all gravitation, either steps are
short or E is as large as K.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from leastaction.backends.fused.elimination import multiplications, slopes_of, square
from leastaction.backends.fused.mass import mass_of
from leastaction.methods import Galerkin
from leastaction.program import Builder, Program, Value
from leastaction.program.enclosure import enclosed
from leastaction.step.form import Step, samples, stencils
from leastaction.step.kronecker import kronecker_of

READ = ("t", "q", "params")
BEYOND = 2.0
LEAST = 2.0  # of 1/‖T(y)‖ where y is small …
SURELY = 0.98  # … and what is left of c for what lies between the numbers y that are tried
ROUNDED = 1.002  # ‖T‖ of Lobatto's rules comes near ½ for y → ∞
FIRMEST = 1e6  # y beyond which y T(y) has its limit …
FALLING = 1e-3  # … if c is more than this: else T does not fall like 1/y
MOST_INSTRUCTIONS = 12000


@lru_cache(maxsize=64)
def one_root(step: Step) -> Program | None:
    """(t, h, q, way, params) ↦ `unique`, 1 or 0; None where it cannot be told, or would be too long to tell."""
    if not step.checked or step.multipliers or not mass_of(step).separable or firmness(step.method) is None:
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
    B = Builder([("t", 1), ("h", 1), ("q", n), ("way", n), ("params", step.params)])
    (h,), nothing, c = B.values("h"), B.number(0.0), firmness(step.method)
    assert c is not None
    read, wide = B.blocks(), BEYOND * nearness(step.method)
    read |= {"t_radius": [abs(h)], "q_radius": [a * wide for a in read["way"]]}
    found, given = (
        B.at(program, {name: read.get(name, [nothing] * size) for name, size in program.inputs})
        for program in (slopes, mass.program)
    )
    masses = given["m_v"]
    M = [[masses[j] if j == k else nothing for k in range(n)] for j in range(n)] if mass.diagonal else square(masses)
    force, radius = (square(found[name]) for name in ("f_q", "f_q_radius"))
    curved = [[a - h * h * b for a, b in zip(*rows, strict=True)] for rows in zip(M, force, strict=True)]
    varied = [[a * LEAST - h * h * (b * c) for a, b in zip(*rows, strict=True)] for rows in zip(M, force, strict=True)]
    for j, row in enumerate(varied):
        row[j] = row[j] - h * h * sum(radius[j])
    unique = _definite(B, curved)
    if step.branching:
        unique = unique & _definite(B, varied)
    return B.finished(unique=[unique])


def _definite(B: Builder, matrix: Sequence[Sequence[Value]]) -> Value:
    """Whether all pivots of a symmetric matrix, of which half is read, are positive."""
    rows, found = [list(row) for row in matrix], B.number(1.0)
    for k, pivot in enumerate(row[j] for j, row in enumerate(rows)):
        found = found & (pivot > 0.0)
        below = [i for i in range(k + 1, len(rows)) if rows[i][k].known != 0]
        inverse = 1.0 / pivot if below else pivot
        for i in below:
            factor = rows[i][k] * inverse
            for j in below[: below.index(i) + 1]:
                rows[i][j] = rows[i][j] - factor * rows[j][k]
    return found


def nearness(method: Galerkin) -> float:
    """How far nodes are from where the step begins, at most, if control points are no farther than one; not counted
    where it is more: of the midpoint rule a half.
    """
    return min(1.0, float(np.abs(stencils(samples(method), 1).gather["q"]).sum(axis=1).max()))


@lru_cache(maxsize=64)
def firmness(method: Galerkin) -> float | None:
    """c of a method; None where 1/‖T(y)‖ ≥ 2 + c y does not hold for all y ≥ −1, however small c is."""
    small = kronecker_of(method)
    gather, root = stencils(samples(method), 1).gather["q"], np.sqrt(small.w)
    if not np.all(small.w > 0):
        return None
    y = np.concatenate([np.linspace(-1.0, 1.0, 41), np.geomspace(1.0, FIRMEST, 241)[1:]])
    system = small.A - y[:, None, None] * small.B
    if np.any(np.linalg.cond(system) > 1 / np.finfo(float).eps):
        return None
    T = root[:, None] * (gather @ np.linalg.solve(system, small.load)) / root
    inverse = 1 / np.linalg.norm(T, 2, axis=(1, 2))
    c = SURELY * float(np.min((inverse[y > 0] - LEAST) / y[y > 0]))
    c = c if c > FALLING else 0.0
    return c if np.all(inverse * ROUNDED >= LEAST + c * y) else None


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
