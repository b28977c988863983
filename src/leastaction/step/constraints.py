"""Holonomic constraints: m numbers g(t, q) held at zero, by reactions Gᵀλ, G = ∂g/∂q.

    d/dt ∂L/∂v − ∂L/∂q = F + Gᵀλ,        g(t, q) = 0.

What a step needs of them is written here once, as Programs: the reaction and g at the control points, a Term, and the
equations by which both g = 0 and ġ = G v + g_t = 0 hold where a step ends, an End (`step.form`).
"""

from __future__ import annotations

from leastaction.program import Builder, Program, Value, dot
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
    product = B.finished(L=[dot(B.values("v"), B.at(constraints, B.blocks())["g"])])
    B = Builder([("t", 1), ("q", n), ("multipliers", m), ("params", P)])
    d = B.at(derivatives(product, second, parameters), B.blocks() | {"v": B.values("multipliers")})
    outputs = {"f": d["Lq"], "g": d["Lv"]}
    if second:
        Gt = d["Lqv"]
        outputs |= {"f_q": d["Lqq"], "f_multipliers": Gt}
        outputs["g_q"] = [Gt[k * m + i] for i in range(m) for k in range(n)]
    if parameters:
        outputs |= {"f_t": d["Lqt"], "g_t": d["Lvt"], "f_w": d["Lqw"], "g_w": d["Lvw"]}
    return B.finished(**outputs)


def held(constraints: Program) -> Term:
    """The Term of constraints at the control points."""
    return Term(reaction(constraints, second=False), reaction(constraints), at="controls")


def rate(constraints: Program) -> Program:
    """(t, q, v, params) ↦ c = ġ = G v + g_t."""
    n = dict(constraints.inputs)["q"]
    slopes = jacobian(constraints, "t", "q")
    B = Builder([("t", 1), ("q", n), ("v", n), ("params", dict(constraints.inputs)["params"])])
    at = B.at(slopes, B.blocks())
    return B.finished(c=_along(at["g_q"], B.values("v"), at["g_t"]))


def squares(constraints: Program) -> Program:
    """(t, q, v, params) ↦ Σ_j G_ij² v_j of each constraint."""
    n = dict(constraints.inputs)["q"]
    B = Builder([("t", 1), ("q", n), ("v", n), ("params", dict(constraints.inputs)["params"])])
    G, v = B.at(jacobian(constraints, "q"), B.blocks())["g_q"], B.values("v")
    return B.finished(squares=[dot([a * a for a in G[k : k + n]], v) for k in range(0, len(G), n)])


def geometry(constraints: Program) -> Program:
    """(t, q, v, params) ↦ g, c = ġ, G row by row, and `bend`, what g̈ is without acceleration: g̈ = G a + bend."""
    moving = jacobian(rate(constraints), "t", "q", "v")
    B = Builder(moving.inputs)
    at, g = B.at(moving, B.blocks()), B.at(constraints, B.blocks())["g"]
    return B.finished(g=g, c=at["c"], G=at["c_v"], bend=_along(at["c_q"], B.values("v"), at["c_t"]))


def end(constraints: Program, node: Program, sensitive: Program) -> End:
    """The End of a step, from the Programs of a node of the Lagrangian, with derivatives by q and v and with all."""
    moving = jacobian(rate(constraints), "q", "v", "t", "params")
    sizes = dict(node.inputs) | {"multipliers": constraints.output_size}

    def write(node: Program, whole: bool) -> Program:
        B = Builder([(name, sizes[name]) for name in ("t", "q", "v", "multipliers", "params")])

        def at(program: Program) -> dict[str, list[Value]]:
            """The other numbers that a node reads do not enter its momentum."""
            return B.at(program, {name: [0.0] * size for name, size in program.inputs} | B.blocks())

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
            found[name] = values if pull is None else [a - b for a, b in zip(values, pull, strict=True)]
        return B.finished(**found)

    return End(write(node, False), write(sensitive, True), not node.depends("m_v", "v"))


def _along(matrix: list[Value], v: list[Value], more: list[Value]) -> list[Value]:
    """A matrix, row by row, times v, and more."""
    return [dot(matrix[j * len(v) : (j + 1) * len(v)], v) + a for j, a in enumerate(more)]
