"""How what a Term gives depends on time and on the parameters w: what the tangent map by w and h needs."""

from __future__ import annotations

from functools import lru_cache

from leastaction.program import Builder, Program
from leastaction.step.form import Term
from leastaction.trace import derivatives


@lru_cache(maxsize=32)
def sensitivity(term: Term) -> Program:
    """The inputs of a term ↦ f_t, f_params, and so on: block f_params row by row ∂f_j/∂w_k.

    Each number given is differentiated as if it were L(t, q, v, params); multipliers stand behind the parameters.
    """
    program = term.program
    sizes = {"t": 1, "q": 0, "v": 0, "multipliers": 0, "params": 0} | dict(program.inputs)
    blocks = [("t", 1), ("q", sizes["q"]), ("v", sizes["v"]), ("params", sizes["params"] + sizes["multipliers"])]
    whole = Builder(program.inputs)
    read = {name: whole.input(name) if name in dict(program.inputs) else [] for name in sizes}
    time = read["t"] or [whole.const(0.0)]
    outputs: dict[str, list[int]] = {}
    for name, size in program.outputs:
        for j in range(size):
            B = Builder(blocks)
            t, q, v, params = (B.input(block) for block, _ in blocks)
            given = {
                "t": t,
                "q": q,
                "v": v,
                "params": params[: sizes["params"]],
                "multipliers": params[sizes["params"] :],
            }
            at = B.inline(program, **{block: given[block] for block, _ in program.inputs})
            slope = derivatives(B.build(L=[at[name][j]]), second=False, parameters=True)
            inputs = {"t": time, "q": read["q"], "v": read["v"], "params": read["params"] + read["multipliers"]}
            found = whole.inline(slope, **inputs)
            outputs.setdefault(f"{name}_t", []).extend(found["Lt"])
            outputs.setdefault(f"{name}_params", []).extend(found["Lw"][: sizes["params"]])
    return whole.build(**outputs)
