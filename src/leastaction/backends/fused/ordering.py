"""Another order of a kernel's instructions: where one long chain has to wait, others are done meanwhile.

A processor looks ahead, but not far. `prompt` writes each instruction where it can begin, if none had to wait for a
place.
"""

from __future__ import annotations

from leastaction.program import Program
from leastaction.program.ordering import GIVEN, in_order

LATENCY = {
    "div": 13,
    "max": 2,
    "min": 2,
    "maximum": 3,
    "minimum": 3,
    "if": 2,
    "select": 2,
    "abs": 1,
    "and": 1,
    "or": 1,
    "not": 1,
    "neg": 0,
}
USUAL = 4  # cycles from operands to result, of all others


def prompt(program: Program) -> Program:
    """The same program, each instruction as early as its operands are there."""
    code, ready = program.code, [0] * len(program.code)
    for k, (op, *args) in enumerate(code):
        if op not in GIVEN:
            ready[k] = max(ready[a] for a in args) + LATENCY.get(op, USUAL)
    return in_order(program, sorted((k for k, (op, *_) in enumerate(code) if op not in GIVEN), key=ready.__getitem__))
