"""Holonomic constraints: m numbers g(t, q) held at zero, by reactions Gᵀλ, G = ∂g/∂q.

    d/dt ∂L/∂v − ∂L/∂q = F + Gᵀλ,        g(t, q) = 0.

What a step needs of them is written here once, as Programs: the reaction and g at the control points, a Term, and the
equations by which both g = 0 and ġ = G v + g_t = 0 hold where a step ends, an End (`step.form`).
"""

from __future__ import annotations

from leastaction.program import Builder, Program
from leastaction.step.form import End, Term
from leastaction.trace import derivatives, jacobian


def reaction(constraints: Program, *, second: bool = True, parameters: bool = False) -> Program:
    """(t, q, multipliers, params) ↦ f = Gᵀλ, g; if `second` f_q, f_multipliers, g_q; with `parameters` f_t, g_t, f_w,
    g_w too.

    Everything is a derivative of λ·g: by q it is Gᵀλ, by λ it is g.
    """
    sizes = dict(constraints.inputs)
    n, m, P = sizes["q"], constraints.output_size, sizes["params"]
    B = Builder([("t", 1), ("q", n), ("v", m), ("params", P)])
    at = {name: B.input(name) for name, _ in B.inputs}
    g = B.inline(constraints, **{name: at[name] for name, _ in constraints.inputs})["g"]
    product = B.build(L=[B.sum(B.mul(a, b) for a, b in zip(at["v"], g, strict=True))])
    found = derivatives(product, second, parameters)
    B = Builder([("t", 1), ("q", n), ("multipliers", m), ("params", P)])
    (t,), q, multipliers, params = (B.input(name) for name, _ in B.inputs)
    d = B.inline(found, t=[t], q=q, v=multipliers, params=params)
    outputs = {"f": d["Lq"], "g": d["Lv"]}
    if second:
        Gt = d["Lqv"]
        outputs |= {"f_q": d["Lqq"], "f_multipliers": Gt}
        outputs["g_q"] = [Gt[k * m + i] for i in range(m) for k in range(n)]
    if parameters:
        outputs |= {"f_t": d["Lqt"], "g_t": d["Lvt"], "f_w": d["Lqw"], "g_w": d["Lvw"]}
    return B.build(**outputs)


def held(constraints: Program) -> Term:
    """The Term of constraints at the control points."""
    return Term(reaction(constraints, second=False), reaction(constraints), at="controls")


def rate(constraints: Program) -> Program:
    """(t, q, v, params) ↦ c = ġ = G v + g_t."""
    n = dict(constraints.inputs)["q"]
    slopes = jacobian(constraints, "t", "q")
    B = Builder([("t", 1), ("q", n), ("v", n), ("params", dict(constraints.inputs)["params"])])
    v = B.input("v")
    at = B.inline(slopes, **{name: B.input(name) for name, _ in constraints.inputs})
    along = (B.sum(B.mul(a, b) for a, b in zip(at["g_q"][k : k + n], v, strict=True)) for k in _rows(at["g_q"], n))
    return B.build(c=[B.add(a, b) for a, b in zip(along, at["g_t"], strict=True)])


def geometry(constraints: Program) -> Program:
    """(t, q, v, params) ↦ g, c = ġ, G row by row, and `bend`, what g̈ is without acceleration: g̈ = G a + bend."""
    n = dict(constraints.inputs)["q"]
    moving = jacobian(rate(constraints), "t", "q", "v")
    B = Builder(moving.inputs)
    inputs = {name: B.input(name) for name, _ in B.inputs}
    at, v = B.inline(moving, **inputs), inputs["v"]
    g = B.inline(constraints, **{name: inputs[name] for name, _ in constraints.inputs})["g"]
    along = (B.sum(B.mul(a, b) for a, b in zip(at["c_q"][k : k + n], v, strict=True)) for k in _rows(at["c_q"], n))
    return B.build(g=g, c=at["c"], G=at["c_v"], bend=[B.add(a, b) for a, b in zip(along, at["c_t"], strict=True)])


def end(constraints: Program, node: Program, sensitive: Program) -> End:
    """The End of a step, from the Programs of a node of the Lagrangian, with derivatives by q and v and with all."""
    moving = jacobian(rate(constraints), "q", "v", "t", "params")
    sizes = dict(node.inputs) | {"multipliers": constraints.output_size}

    def write(node: Program, whole: bool) -> Program:
        B = Builder([(name, sizes[name]) for name in ("t", "q", "v", "multipliers", "params")])
        given = {name: B.input(name) for name, _ in B.inputs}

        def at(program: Program) -> dict[str, list[int]]:
            """The other numbers that a node reads do not enter its momentum."""
            return B.inline(program, **{name: given.get(name, [B.const(0.0)] * size) for name, size in program.inputs})

        momentum, push = at(node), at(reaction(constraints, second=whole, parameters=whole))
        motion = at(moving)
        outputs = {"e": "m", "c": "c", "e_v": "m_v", "c_v": "c_v"}
        if whole:
            outputs |= {"e_q": "m_q", "c_q": "c_q", "m_q": "m_q", "e_t": "m_t", "c_t": "c_t", "m_t": "m_t"}
            outputs |= {"e_w": "m_w", "c_w": "c_params", "m_w": "m_w"}
        found = {}
        for name, block in outputs.items():
            values = (motion if name.startswith("c") else momentum)[block]
            pull = push.get(name.replace("e", "f", 1)) if name.startswith("e") else None
            found[name] = values if pull is None else [B.sub(a, b) for a, b in zip(values, pull, strict=True)]
        return B.build(**found)

    return End(write(node, False), write(sensitive, True), not node.depends("m_v", "v"))


def _rows(matrix: list[int], n: int) -> range:
    """Where the rows of a matrix of n columns begin."""
    return range(0, len(matrix), n)
