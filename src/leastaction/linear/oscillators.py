"""Many oscillators q̈ + c q̇ + ω² q = f side by side: the step of a method as a 2 × 2 matrix for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leastaction.methods import Method

FloatArray = NDArray[np.float64]


def propagators(method: Method, h: float, omega: FloatArray, c: FloatArray) -> FloatArray:
    """The steps of any method without load, (K, 2, 2) on (q, p)."""
    one = np.broadcast_to(np.eye(2), (len(omega), 2, 2))
    for part in method.parts:
        one = steps(method.root, part * h, omega, c)[0] @ one
    return one


def steps(method: Method, h: float, omega: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """W (K, 2, 2) and G (K, 2, r) with (q, p) ↦ W (q, p) + G f, f at the nodes of the step; masses are one."""
    form = method.linear_form()
    x2, hc = (h * omega) ** 2, h * c
    N = form.A - hc[:, None, None] * form.D - x2[:, None, None] * form.B
    right = np.zeros((len(omega), len(form.A), 2 + len(form.w)))  # from q, from h p, and from h² f
    right[:, :, 0] = x2[:, None] * form.beta
    right[:, :, 1] = form.start
    right[:, :, 2:] = -form.load
    z = np.linalg.solve(N, right)
    dq = form.end @ z
    hdp = -x2[:, None] * (form.mean @ z) - hc[:, None] * dq
    hdp[:, 0] -= x2
    hdp[:, 2:] += form.w
    both = np.stack([dq, hdp / h], axis=1) * np.r_[1.0, h, np.full(len(form.w), h * h)]
    return both[:, :, :2] + np.eye(2), both[:, :, 2:]
