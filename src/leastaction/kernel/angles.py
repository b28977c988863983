"""Sines and cosines of sums and differences, from those of the two angles, where these are computed anyway.

    sin(x ± y) = sin x cos y ± cos x sin y,      cos(x ± y) = cos x cos y ∓ sin x sin y

Several lanes find sin x and cos x together, for little more than one of them (`trigonometry`). So four products stand
for a third pair: of the equations of a double pendulum, sin(q₁ − q₂) and cos(q₁ − q₂) beside sin q₁ and sin q₂. The
error is some ε of the products, as much as rounding the places x and y to float64 does. Where angles are beyond all
bounds, rounding x ± y is the larger error, and steps in trouble shall not depend on who solves them: so this is done in
bounded kernels alone.
"""

from __future__ import annotations

from leastaction.program import Instruction, Program

PAIR = ("sin", "cos")
SUMS = ("add", "sub")


def by_addition(program: Program) -> Program:
    """The same program, where sines and cosines of sums of angles follow from those of the angles."""
    code = program.code
    angles = {args[0] for op, *args in code if op in PAIR}
    sums = {k for k in angles if code[k][0] in SUMS and set(code[k][1:]) <= angles}
    sums = {k for k in sums if not sums & set(code[k][1:])}
    if not sums:
        return program
    written: list[Instruction] = []
    places: list[int] = []
    known: dict[Instruction, int] = {}

    def write(*instruction: object) -> int:
        place = known.setdefault(instruction, len(written))
        if place == len(written):
            written.append(instruction)
        return place

    for k, (op, *args) in enumerate(code):
        if op not in PAIR:
            places.append(len(written))
            written.append(code[k] if op in ("input", "const") else (op, *(places[a] for a in args)))
        elif args[0] not in sums:
            places.append(write(op, places[args[0]]))
        else:
            kind, x, y = code[args[0]]
            (sx, cx), (sy, cy) = ([write(each, places[a]) for each in PAIR] for a in (x, y))
            first, second = ((sx, cy), (cx, sy)) if op == "sin" else ((cx, cy), (sx, sy))
            joined = kind if op == "sin" else SUMS[kind == "add"]
            places.append(write(joined, write("mul", *first), write("mul", *second)))
    results = tuple(places[k] for k in program.results)
    found = Program(program.inputs, program.outputs, tuple(written), results)
    return found.select(*(name for name, _ in program.outputs))
