"""How what a Term gives depends on time and on the parameters w: what the tangent map by w and h needs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from leastaction.program import Builder, Program
from leastaction.step.form import Term
from leastaction.trace import jacobian


@lru_cache(maxsize=32)
def sensitivity(term: Term) -> Program:
    """The inputs of a term ↦ f_t, f_params, and so on: block f_params row by row ∂f_j/∂w_k; zeros for a t not read."""
    program = term.program
    read = [name for name in ("t", "params") if name in dict(program.inputs)]
    slopes = jacobian(program, *read)
    B = Builder(program.inputs)
    found = B.at(slopes, B.blocks())
    outputs: dict[str, list[Any]] = {}
    for name, size in program.outputs:
        outputs[f"{name}_t"] = found.get(f"{name}_t", [0.0] * size)
        outputs[f"{name}_params"] = found.get(f"{name}_params", [])
    return B.finished(**outputs)
