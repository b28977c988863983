"""A step takes new terms without a line of the library: a force at the nodes, a constraint at the control points, a
chart of rotations in place of q + z.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import leastaction as la
from leastaction.engine.rescue import Rescue
from leastaction.program import Builder
from leastaction.step.form import Step, Term, stencils, step_of

PENDULUM = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
POINT = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 2.0 * q[1], n=2)


def damped(term, c):
    """The pendulum's term with the force −c v on top of ∂L/∂q."""

    def with_force(program, slopes):
        B = Builder(program.inputs)
        x = {name: B.input(name) for name, _ in B.inputs}
        at = B.inline(program, **x)
        at["f"] = [B.sub(at["f"][0], B.scale(c, x["v"][0]))]
        if slopes:
            at["f_v"] = [B.sub(at["f_v"][0], B.const(c))]
        return B.build(**at)

    return Term(with_force(term.program, False), with_force(term.slopes, True))


def circle():
    """|q|² = 1 at the control points: f = ∂g/∂qᵀ λ and g itself."""

    def write(slopes):
        B = Builder([("t", 1), ("q", 2), ("multipliers", 1), ("params", 0)])
        q, (a,) = B.input("q"), B.input("multipliers")
        twice = [B.scale(2.0, x) for x in q]
        out = {
            "f": [B.mul(x, a) for x in twice],
            "g": [B.sub(B.add(B.mul(q[0], q[0]), B.mul(q[1], q[1])), B.const(1.0))],
        }
        if slopes:
            double, zero = B.scale(2.0, a), B.const(0.0)
            out |= {"f_q": [double, zero, zero, double], "f_multipliers": twice, "g_q": twice}
        return B.build(**out)

    return Term(write(False), write(True), at="controls")


def solved(step, q, p, h, params=()):
    """The unknowns of a step, and p⁺, by Newton's iteration on its equations."""
    equations, z = Rescue(None, step, np.asarray(params)).equations, np.zeros((step.s, step.n + step.multipliers))
    z[:, : step.n] = h * np.outer(step.method.table.d[1:], p)
    for _ in range(20):
        R, J, impulse, _ = equations(0.0, q, p, h, z, np.zeros(0))
        dz, N = -np.linalg.solve(J, R), step.s * step.n
        z = z + np.hstack([dz[:N].reshape(step.s, -1), dz[N:].reshape(step.s, -1)])
    return z, p + impulse


@pytest.mark.parametrize("name", ["midpoint", "simpson", "P3N3Q6Gau", "P4N5Q8Lob"])
def test_a_force_is_one_more_summand(name):
    """One step of the damped pendulum solves the discrete Lagrange–d'Alembert equations, written out here."""
    c, h, method = 0.3, 0.2, la.method(name)
    step = Step(1, method, (damped(PENDULUM.terms[0], c),))
    z, p_end = solved(step, np.array([0.7]), np.array([0.4]), h)
    table = method.table
    q, v = 0.7 + table.l[:, 1:] @ z[:, 0], table.dl[:, 1:] @ z[:, 0] / h
    f = -np.sin(q) - c * v
    for nu in range(1, method.s):
        assert abs(h * table.b @ (table.l[:, nu] * f + table.dl[:, nu] / h * v)) < 1e-15
    assert abs(0.4 + h * table.b @ (table.l[:, 0] * f + table.dl[:, 0] / h * v)) < 1e-15
    assert abs(p_end[0] - 0.4 - h * table.b @ f) < 1e-15


@pytest.mark.parametrize("name", ["stormer-verlet", "simpson", "P3N4Q6Lob"])
def test_a_constraint_is_one_more_term(name):
    """Rows and multipliers at the control points: the solution stays on the circle, and obeys the other equations."""
    method = la.method(name)
    step = Step(2, method, (*step_of(POINT, method).terms, circle()), multipliers=1)
    h, q, p, s = 0.1, np.array([1.0, 0.0]), np.array([0.0, 0.3]), method.s
    z, _ = solved(step, q, p, h)
    places = q + z[:, :2]
    np.testing.assert_allclose((places**2).sum(axis=1), 1.0, rtol=0, atol=1e-15)
    # The equations of the free point, and the constraint's forces h β_ν 2 q^ν λ^ν as `stencils` weigh them.
    free, *_ = Rescue(None, step_of(POINT, method), np.zeros(0)).equations(0.0, q, p, h, z[:, :2], np.zeros(0))
    controls = stencils(step.samples(step.terms[1]), h)
    force = 2.0 * np.vstack([q, places])[:s] * z[:, 2:]
    pushed = np.einsum("i,iv,ij->vj", controls.weights[:s], controls.scatter["f"][:s], force).ravel()
    np.testing.assert_allclose(free + pushed, 0.0, rtol=0, atol=1e-15)


TURN, WEIGHT = np.diag([2.0, 3.0, 5.0]), 1.5  # a body's moments of inertia; its weight times its lever arm


def body(z, w, R):
    """L of a heavy body that turns about a point, R ⊕ z = R cay(z), where R is given, and w = ż."""
    omega = 2 / (1 + z @ z) * (w - np.cross(z, w))
    up = R.reshape(3, 3)[2]  # the vertical, as the body sees it at R, and then at R ⊕ z
    up = up + 2 / (1 + z @ z) * (np.cross(z, np.cross(z, up)) - np.cross(z, up))
    return 0.5 * omega @ TURN @ omega - WEIGHT * up[2]


def hat(x):
    """The matrix of x ×."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def recentred(R, z, p):
    """R ⊕ z as the new R, and the momentum there: p = AᵀM with ω = A(z) w and A(0) = 2."""
    x, scale = hat(z), 2 / (1 + z @ z)
    return R @ (np.eye(3) + scale * (x + x @ x)), np.zeros(3), 2 * np.linalg.solve(scale * (np.eye(3) - x).T, p)


@pytest.mark.parametrize(("name", "order"), [("midpoint", 2), ("P2N2Q4Gau", 4), ("P3N4Q6Lob", 6)])
def test_a_retraction_is_another_program_of_the_node(name, order):
    """Rotations: the place is R ⊕ z = R cay(z), with R among what is given, and R moves on between some steps.
    Equations and solvers are those of any step, and the order is the method's.
    """
    step = step_of(la.Lagrangian(body, n=3, params={"R": np.eye(3).ravel()}), la.method(name))
    begin = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    begin = begin * np.linalg.det(begin)

    def run(R, M, steps, h):
        """R and M, the momentum that the body sees, after some steps; every five steps, R is where the body is."""
        z, p = np.zeros(3), 2 * M
        for k in range(steps):
            increments, p = solved(step, z, p, h, R.ravel())
            z = z + increments[-1]
            if k % 5 == 4:
                R, z, p = recentred(R, z, p)
        return R, p / 2

    momentum, errors = np.array([1.0, -2.0, 4.0]), []
    begun = np.concatenate([begin.ravel(), momentum])
    exact = solve_ivp(heavy, (0.0, 1.0), begun, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    for steps in (20, 40):
        R, M = run(begin, momentum, steps, 1.0 / steps)
        errors.append(np.abs(np.concatenate([R.ravel(), M]) - exact).max())
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.2


def heavy(t, y):
    """Euler's equations: Ṙ = R ω×, Ṁ = M × ω + W u × e₃, where u is the vertical that the body sees."""
    R, M = y[:9].reshape(3, 3), y[9:]
    omega = np.linalg.solve(TURN, M)
    torque = WEIGHT * np.cross(R[2], [0.0, 0.0, 1.0])
    return np.concatenate([(R @ hat(omega)).ravel(), np.cross(M, omega) + torque])
