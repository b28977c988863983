"""The step of a method on a linear system: what is left of the method are small matrices.

On M q̈ + C q̇ + K q = F(t) a step has the unknowns z_1 … z_s, the increments of q at the control points of a polynomial
or h times the velocities at the stages of a Runge–Kutta method. They solve

    Σ_μ (A_νμ M − h D_νμ C − h² B_νμ K) z_μ = h start_ν p + h² β_ν K q − h² Σ_i load_νi F(t_i),      ν, μ = 1 … s,

and with t_i = t + τ_i h, β_ν = Σ_i load_νi the step is

    q⁺ = q + Σ_μ end_μ z_μ,    p⁺ = p − h K (q + Σ_μ mean_μ z_μ) − C (q⁺ − q) + h Σ_i w_i F(t_i).

A polynomial, q(τ) = q + Σ_ν l_ν(τ) z_ν, with the rule (τ, w):

    A = Σ_i w_i l_ν′ l_μ′,   load_νi = w_i (l_ν(τ_i) − δ_νs),   D = load l′,   B = load l,   mean = w l,   start = end =
    e_s.

Σ_i w_i l_μ′(τ_i) is 1 for μ = s and 0 for the others, since r ≥ s nodes integrate a derivative (degree s − 1) exactly.
A is symmetric and positive definite. Stages Q_i = q + Σ_j a_ij z_j, P_i = p + h Σ_j a_ij F_j, M z_i = h P_i, weights b:

    A = 1,   load = −a,   D = −a,   B = −a a,   mean = b a,   start = (1, …, 1),   end = b.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.methods.quadrature import rounded

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A, B, D (s, s); start, end, beta, mean (s,); load (s, r); the nodes tau and their weights w (r,).

    momentum    (s + 1,), where p is a polynomial of degree s on the step, M v at the nodes (r = s Gauss nodes): p⁺ is
                momentum_0 p + M Σ_μ momentum_μ z_μ / h; else None
    """

    A: Array
    B: Array
    D: Array
    start: Array
    end: Array
    beta: Array
    mean: Array
    load: Array
    tau: Array
    w: Array
    momentum: Array | None = None

    def in_floats(self) -> LinearForm:
        """The same, each number rounded once."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        return LinearForm(*(None if x is None else rounded(x) for x in found.values()))  # type: ignore[arg-type]


def of_polynomial(tau: Array, w: Array, l: Array, dl: Array, gauss: bool) -> LinearForm:
    """Of the basis at the nodes, l and dl (r, s), in the arithmetic of these arrays."""
    s = l.shape[1]
    end = np.array([w[0] * 0 + int(k == s - 1) for k in range(s)])
    load = (w[:, None] * (l - end)).T
    momentum = None
    if gauss:
        x = [tau[0] * 0, *tau]
        ahead = np.array([np.prod([(1 - y) / (node - y) for y in x if y != node]) for node in x])
        momentum = np.concatenate([ahead[:1], ahead[1:] @ dl])
    return LinearForm(
        (w[:, None] * dl).T @ dl, load @ l, load @ dl, end, end, load.sum(axis=1), w @ l, load, tau, w, momentum
    )


def of_stages(c: Array, a: Array, b: Array) -> LinearForm:
    """Of a Runge–Kutta method's tableau."""
    one = np.array([[int(i == j) for j in range(len(c))] for i in range(len(c))], dtype=object)
    return LinearForm(one, -a @ a, -a, one.sum(axis=0), b, -a.sum(axis=1), b @ a, -a, c, b)
