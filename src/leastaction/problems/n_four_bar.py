"""N four-bar loops in a row: a benchmark whose motion passes through singular configurations.

N + 1 uniform bars stand on the ground at (i l, 0), and N more join their upper ends r_i. With w_i = ṙ_i

    L = Σ_i m w_i²/6 + Σ_i m (w_i² + w_i·w_{i+1} + w_{i+1}²)/6 − m g (Σ_i y_i/2 + Σ_i (y_i + y_{i+1})/2),
    |r_i − (i l, 0)|² = l²,     |r_{i+1} − r_i|² = l² .

Twice in a turn all bars lie in one line: there rows of ∂g/∂q depend on each other, and each loop could go on as a
parallelogram or cross over. The smooth motion stays parallel, r_i = (i l, 0) + l (sin ψ, −cos ψ), and ψ is that of
`pendulum` with ω² = (g/l) ((N + 1)/2 + N)/((N + 1)/3 + N): a closed form.
"""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from leastaction.numbers.formulas import Arithmetic
from leastaction.problems import pendulum
from leastaction.problems.problem import Count, Data, ExactMotion, Number, Parts, Positive, catalogued


def lagrangian(q: Any, v: Any, m: Any, g: Any) -> Any:
    r, w = q.reshape(-1, 2), v.reshape(-1, 2)
    kinetic = m * (w**2).sum() / 6
    height = m * r[:, 1].sum() / 2
    for i in range(len(r) - 1):
        kinetic = kinetic + m * (w[i] @ w[i] + w[i] @ w[i + 1] + w[i + 1] @ w[i + 1]) / 6
        height = height + m * (r[i][1] + r[i + 1][1]) / 2
    return kinetic - g * height


def bars(q: Any, l: Any) -> Any:
    r = q.reshape(-1, 2)
    standing = [(r[i][0] - i * l) ** 2 + r[i][1] ** 2 - l**2 for i in range(len(r))]
    return standing + [(r[i + 1] - r[i]) @ (r[i + 1] - r[i]) - l**2 for i in range(len(r) - 1)]


@catalogued(
    "N four-bar loops",
    "Parallelograms in a row that pass through singular configurations: a benchmark.",
    "M. González, D. Dopico, U. Lugrís, J. Cuadrado, Multibody System Dynamics 16 (2006) 179–190",
)
def n_four_bar(m: Positive = 1, g: Positive = "9.81", l: Positive = 1, u0: Number = 1, count: Count = 1) -> Parts:
    """With so many loops, upright, the upper ends moving with the speed u0."""
    ends = [sp.Rational(1, 3) + sp.Rational(joined, 2) for joined in [1, *[2] * int(count - 1), 1]]
    return Parts(
        lagrangian=lagrangian,
        constraints=bars,
        q0=tuple(x for i in range(int(count) + 1) for x in (i * l, l)),
        p0=tuple(x for part in ends for x in (m * part * u0, 0)),
        solution=solution,
    )


def solution(d: Data) -> ExactMotion:
    """The motion that follows from the angle ψ, which is π at the start."""
    m, g, l = (d.params[name] for name in ("m", "g", "l"))
    size = len(d.q0) // 2
    ends = [mpmath.mpf(1) / 3 + mpmath.mpf(joined) / 2 for joined in [1, *[2] * (size - 2), 1]]
    loops = size - 1
    inertia, weight = mpmath.mpf(size) / 3 + loops, mpmath.mpf(size) / 2 + loops
    speed = d.p0[0] / (m * ends[0])
    data = {"m": inertia * m * l**2, "omega": mpmath.sqrt(g * weight / (l * inertia))}
    angle = pendulum.solution(Data((mpmath.pi,), (-data["m"] * speed / l,), data))

    def at(x: Arithmetic, t: Any) -> Any:
        if mpmath.isfinite(angle.period):
            _, t = x.turns(t, angle.period)
        (psi,), (spin,) = angle.at(x, t)
        sine, cosine, pace = x(l) * x.sin(psi), x(l) * x.cos(psi), spin / x(data["m"])
        places = [(x(i * l) + sine, -cosine) for i in range(size)]
        momenta = [(x(m * part) * pace * cosine, x(m * part) * pace * sine) for part in ends]
        return tuple(z for place in places for z in place), tuple(z for push in momenta for z in push)

    return ExactMotion(at, angle.period)
