"""What the methods keep: the symplectic form, time reversal, and Noether's momenta, all to round-off.

The derivative Φ′ of a step is taken by central differences of order eight with δ = 10⁻². Their own
error, about 10⁻¹³ from round-off (ε/δ) and δ⁸ times the ninth derivative, is the floor of the symplectic defect.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import leastaction as la
from systems import NAMES, case
from thrift import rest_slow

METHODS = ["midpoint", "stormer-verlet", "simpson", "P2N2Q2Lob", "P3N3Q6Gau", "P5N6Q10Lob"]
DELTA = 1e-2
STENCIL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
DEFECT = 1e-11  # a hundred times the floor of the differences


def symplectic_defect(system, method, q, p, h, params=None, t0=0.0):
    """‖Φ′ᵀ J Φ′ − J‖ of one step, state ordered (q, p)."""
    n = len(q)
    y = np.concatenate([q, p])

    def phi(x):
        path = la.integrate(system, method, x[:n], x[n:], h=h, steps=1, t0=t0, params=params)
        return np.concatenate([path.q[1], path.p[1]])

    def column(e):
        return sum(w * (phi(y + k * DELTA * e) - phi(y - k * DELTA * e)) for k, w in STENCIL.items()) / DELTA

    D = np.stack([column(e) for e in np.eye(2 * n)], axis=1)
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    return abs(D.T @ J @ D - J).max()


def reversal_error(system, method, q, p, h, params=None, t0=0.0, steps=10):
    """|Φ_{−h} Φ_h − 1| over some steps there and back."""
    there = la.integrate(system, method, q, p, h=h, steps=steps, t0=t0, params=params)
    back = la.integrate(system, method, there.q[-1], there.p[-1], h=-h, steps=steps, t0=there.t[-1], params=params)
    assert back.t[-1] == pytest.approx(t0, abs=1e-14)
    return max(abs(back.q[-1] - q).max(), abs(back.p[-1] - p).max())


@pytest.mark.parametrize("method", rest_slow(METHODS, ["stormer-verlet", "simpson", "P3N3Q6Gau"]))
@pytest.mark.parametrize("name", NAMES)
def test_symplectic_and_reversible(name, method):
    """Φ_h′ᵀ J Φ_h′ = J and Φ_{−h} Φ_h = 1, at a start that is not zero for the time-dependent one."""
    system, q0, v0 = case(name)
    q, p = np.array(q0), system.momentum(q0, v0, 0.4)
    assert symplectic_defect(system, method, q, p, 0.2, t0=0.4) < DEFECT
    assert reversal_error(system, method, q, p, 0.1, t0=0.4) < 2e-14


@pytest.mark.parametrize("form", ["hamilton", "lagrange"])
def test_rk4_is_neither(form):
    """The measures above detect a method that is neither symplectic nor reversible."""
    system, q0, v0 = case("inseparable")
    q, p = np.array(q0), system.momentum(q0, v0)
    assert symplectic_defect(system, la.rk4(form), q, p, 0.2) > 1e3 * DEFECT
    assert reversal_error(system, la.rk4(form), q, p, 0.1) > 1e-10


@pytest.mark.parametrize("name", ["inseparable", "driven-pendulum"])
def test_backward_run_is_the_inverse_of_the_forward_run(name):
    """A run that starts with h < 0 is undone by one with h > 0."""
    system, q0, v0 = case(name)
    q, p = np.array(q0), system.momentum(q0, v0)
    assert reversal_error(system, "P3N4Q6Lob", q, p, -0.1) < 2e-14


def polar_kepler(q, v):
    return 0.5 * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) + 1 / q[0]


def three_bodies(q, v):
    """On a line, bound to each other."""
    x, y, z = q[0] - q[1], q[1] - q[2], q[2] - q[0]
    T = 0.5 * (v[0] ** 2 + 2 * v[1] ** 2 + 3 * v[2] ** 2) + 0.2 * np.sin(x) * (v[0] - v[1]) ** 2
    return T - 0.5 * x**2 - 0.25 * y**4 + np.cos(z)


@pytest.mark.parametrize("method", ["midpoint", "simpson", "P3N3Q6Gau", "P4N5Q8Lob"])
class TestNoether:
    """Momenta of symmetries over 10⁴ steps; a random walk of that many roundings is about a hundred ε."""

    STEPS = 10_000

    def test_cyclic_coordinate(self, method):
        """∂L/∂φ = 0 makes the impulse of φ zero, so p_φ keeps every bit."""
        path = la.integrate(
            la.Lagrangian(polar_kepler, n=2), method, [1.0, 0.0], v0=[0.1, 1.1], h=0.05, steps=self.STEPS
        )
        assert (path.p[:, 1] == path.p[0, 1]).all()

    def test_translations(self, method):
        """L depends on differences of q alone: Σ p."""
        system, q0, v0 = la.Lagrangian(three_bodies, n=3), [0.3, -0.2, 0.5], [0.5, 0.2, -0.1]
        path = la.integrate(system, method, q0, v0=v0, h=0.05, steps=self.STEPS)
        total = path.p.sum(axis=1)
        assert abs(total - total[0]).max() < 5e-15

    def test_rotations(self, method):
        """L is invariant under rotations of space: q × p."""
        system, q0, v0 = case("kepler-3d")
        path = la.integrate(system, method, q0, v0=v0, h=0.05, steps=self.STEPS)
        momentum = np.cross(path.q, path.p)
        assert abs(momentum - momentum[0]).max() < 5e-14


def coefficients(*shape):
    return arrays(float, shape, elements=st.floats(-1, 1, width=32))


def random_lagrangian(q, v, B, C, a, w, d):
    """½ v·M(q)v + A(q)·v − V(q) with M = 1 + S Sᵀ, S = B + C sin(q), A and V trigonometric, V bounded by a quartic."""
    S = B + C * np.sin(q)
    u = S.T @ v
    A = d * np.cos(q[::-1] + 0.3)
    return 0.5 * (v @ v + u @ u) + A @ v + a @ np.cos(w @ q) - 0.1 * np.sum(q**4)


RANDOM = st.fixed_dictionaries(
    {
        "B": coefficients(2, 2),
        "C": coefficients(2, 2),
        "a": coefficients(3),
        "w": coefficients(3, 2),
        "d": coefficients(2),
    }
)
STATES = arrays(float, 2, elements=st.floats(-1, 1, width=32))
FEW = settings(max_examples=15)


@pytest.fixture(scope="module")
def random_system():
    """All random Lagrangians of this form at once: their coefficients are parameters, so nothing recompiles."""
    zero = {"B": np.zeros((2, 2)), "C": np.zeros((2, 2)), "a": np.zeros(3), "w": np.zeros((3, 2)), "d": np.zeros(2)}
    return la.Lagrangian(random_lagrangian, n=2, params=zero)


@pytest.mark.parametrize("method", rest_slow(["simpson", "P3N3Q6Gau", "P4N4Q6Lob"], ["simpson", "P3N3Q6Gau"]))
def test_random_lagrangians(random_system, method):
    """Symplectic and reversible whatever the Lagrangian."""

    @FEW
    @given(params=RANDOM, q=STATES, p=STATES)
    def check(params, q, p):
        assert symplectic_defect(random_system, method, q, p, 0.1, params) < DEFECT
        assert reversal_error(random_system, method, q, p, 0.05, params) < 2e-14

    check()


def random_invariant(q, v, m, k, a):
    """Two particles in the plane, invariant under rotations: only lengths, products and areas of q and v enter."""
    x, y, u, w = q[:2], q[2:], v[:2], v[2:]
    area = x[0] * u[1] - x[1] * u[0]
    mixed = x @ y
    T = 0.5 * (2 + m[0] * np.sin(x @ x)) * u @ u + 0.5 * (2 + m[1] * np.cos(mixed)) * w @ w + 0.3 * m[2] * u @ w
    return T + k[0] * area * np.cos(y @ y) + a[0] * np.cos(mixed) - a[1] * (x @ x) / 2 - 0.1 * (y @ y) ** 2 - x @ x


@pytest.mark.parametrize("method", ["simpson", pytest.param("P5N5Q10Gau", marks=pytest.mark.slow)])
def test_random_invariant_lagrangians(method):
    """x × p_x + y × p_y is kept for any choice of coefficients."""
    system = la.Lagrangian(random_invariant, n=4, params={"m": np.zeros(3), "k": np.zeros(1), "a": np.zeros(2)})

    @FEW
    @given(
        params=st.fixed_dictionaries({"m": coefficients(3), "k": coefficients(1), "a": coefficients(2)}),
        q=arrays(float, 4, elements=st.floats(-1, 1, width=32)),
        v=arrays(float, 4, elements=st.floats(-1, 1, width=32)),
    )
    def check(params, q, v):
        path = la.integrate(system, method, q, v0=v, h=0.05, steps=1000, params=params)
        Q, P = path.q, path.p
        momentum = Q[:, 0] * P[:, 1] - Q[:, 1] * P[:, 0] + Q[:, 2] * P[:, 3] - Q[:, 3] * P[:, 2]
        assert abs(momentum - momentum[0]).max() < 2e-14

    check()


def test_an_invariant_lagrangian_with_a_coupling_that_is_all_but_none():
    """The velocities of the others set the first coordinate in motion, in the first iteration by 10⁻³⁴ of them only."""
    zero = {"m": np.zeros(3), "k": np.zeros(1), "a": np.zeros(2)}
    system, params = la.Lagrangian(random_invariant, n=4, params=zero), zero | {"m": np.array([0, 1, 5.2907536e-34])}
    path = la.integrate(system, "P5N5Q10Gau", [0.0, 1, 1, 1], v0=np.zeros(4), h=0.05, steps=1000, params=params)
    Q, P = path.q, path.p
    momentum = Q[:, 0] * P[:, 1] - Q[:, 1] * P[:, 0] + Q[:, 2] * P[:, 3] - Q[:, 3] * P[:, 2]
    assert abs(momentum - momentum[0]).max() < 2e-14
