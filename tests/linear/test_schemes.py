"""The paper's matrices: equations (11) to (32) and Propositions 1 to 7."""

import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_array

import leastaction as la
from leastaction.linear import members, newmark, simpson_first, simpson_L, simpson_second
from leastaction.linear.shifts import shifts
from leastaction.methods import family
from leastaction.papers.quadratic2024 import tables as pendulum
from linear_systems import definite, matrices, semidefinite, sparse, state

MEMBERS = [m.name for m in family(3, 4)] + ["P4N4Q8Gau", "P5N5Q10Gau", "P5N6Q10Lob", "P8N8Q16Gau", "P8N9Q16Lob"]


def canonical(n: int) -> np.ndarray:
    I, O = np.eye(n), np.zeros((n, n))
    return np.block([[O, -I], [I, O]])


@pytest.fixture
def MK() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return definite(rng, 4), semidefinite(rng, 4, 4)


def test_newmark_is_equations_9_and_11(MK):
    M, K = MK
    h = 0.3
    scheme = newmark(M, K, h)
    np.testing.assert_array_equal(scheme.X, 2 / h * M)
    np.testing.assert_array_equal(scheme.Y, h / 2 * K)
    q, p = state(4)
    p1, q1 = np.split(scheme.Phi @ np.r_[p, q], 2)
    np.testing.assert_allclose((p1 - p) / h, -K @ (q + q1) / 2, atol=1e-13)
    np.testing.assert_allclose((p + p1) / 2, M @ (q1 - q) / h, atol=1e-13)


def test_simpsons_equations_18_and_25_and_the_two_variants_agree(MK):
    M, K = MK
    h = 0.4
    q, p = state(4)
    first, second = simpson_first(M, K, h), simpson_second(M, K, h)
    mid, p1, q1 = np.split(first.Phi @ np.r_[p, q], 3)
    np.testing.assert_allclose(M @ (4 * (q - 2 * mid + q1) / h**2) + K @ mid, 0, atol=1e-11)
    np.testing.assert_allclose((p1 - p) / h, -K @ (q / 6 + 2 * mid / 3 + q1 / 6), atol=1e-13)
    np.testing.assert_allclose((p + p1) / 2, (M - h**2 / 12 * K) @ (q1 - q) / h, atol=1e-13)
    np.testing.assert_allclose(simpson_L(M, K, h) @ mid, (q + q1) / 2, atol=1e-14)
    np.testing.assert_allclose(second.Phi, first.Phi[4:], rtol=1e-13, atol=1e-13)


@settings(max_examples=40)
@given(matrices())
def test_propositions_1_to_6_definiteness_and_symplecticity(MK):
    """Within (40), X and Y are symmetric, X positive definite, Y positive (semi)definite, and ΦᵀJΦ = J."""
    M, K = MK
    bound = np.linalg.eigvalsh(K)[-1] / np.linalg.eigvalsh(M)[0]  # k/μ ≥ ω²_max
    h = 0.9 * np.sqrt(8 / bound) if bound > 0 else 1.0
    J = canonical(len(M))
    for scheme in (newmark(M, K, h), simpson_second(M, K, h)):
        for name, block in (("X", scheme.X), ("Y", scheme.Y)):
            np.testing.assert_array_equal(block, block.T)
            lowest, *_, top = (*np.linalg.eigvalsh(block), np.linalg.eigvalsh(block)[-1])
            assert lowest > 0 if name == "X" else lowest >= -1e-13 * abs(top)
        Phi = scheme.Phi
        np.testing.assert_allclose(Phi.T @ J @ Phi, J, atol=1e-10 * np.abs(Phi).max() ** 2)


def test_proposition_3_Y_is_symmetric_before_it_is_made_so(MK):
    M, K = MK
    h = 0.5
    KL = K @ np.linalg.inv(simpson_L(M, K, h))
    np.testing.assert_allclose(KL, KL.T, atol=1e-13)


def test_outside_40_Y_loses_its_definiteness_but_not_its_symmetry():
    M, K = np.eye(1), np.eye(1)
    assert simpson_second(M, K, 0.99 * np.sqrt(8)).Y > 0 > simpson_second(M, K, 1.01 * np.sqrt(8)).Y


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_has_the_form_34(name, MK):
    """Symmetric X and Y give the library's step, its symplecticity and φ."""
    M, K = MK
    h = 0.2
    scheme, system = members(name, M, K, h), la.Quadratic(M, K)
    q, p = state(4)
    p1, q1 = np.split(scheme.Phi @ np.r_[p, q], 2)
    dq, dp = system.propagator(name, h).increments(q, p)
    np.testing.assert_allclose(q1, q + dq, atol=2e-11)  # inverting A costs digits; the library inverts nothing
    np.testing.assert_allclose(p1, p + dp, atol=2e-11)
    assert scheme.phi(p, q) == pytest.approx(system.conserved(q, p, name, h), rel=1e-10)
    assert scheme.phi(p1, q1) == pytest.approx(scheme.phi(p, q), rel=1e-11)
    np.testing.assert_allclose(np.linalg.inv(scheme.zeta), np.linalg.inv(scheme.X) + np.linalg.inv(scheme.Y), rtol=1e-8)


def test_members_contains_newmark_and_simpson(MK):
    M, K = MK
    for name, scheme in (("newmark", newmark(M, K, 0.3)), ("simpson", simpson_second(M, K, 0.3))):
        member = members(name, M, K, 0.3)
        np.testing.assert_allclose(member.X, scheme.X, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(member.Y, scheme.Y, rtol=1e-12, atol=1e-12)


def test_schemes_take_what_quadratic_takes():
    M, K = [1.0, 2.0], [[2.0, -1.0], [-1.0, 2.0]]
    for make in (newmark, simpson_first, simpson_second, simpson_L, partial(members, "P3N3Q6Gau")):
        whole = make(np.diag(M), np.array(K), 0.1)
        for forms in ((M, K), (csr_array(np.diag(M)), csr_array(K))):
            again = make(*forms, 0.1)
            np.testing.assert_array_equal(getattr(again, "Phi", again), getattr(whole, "Phi", whole))


def test_rk4_has_no_X_and_Y(MK):
    with pytest.raises(ValueError, match="not symmetric"):
        members("rk4", *MK, 0.1)
    with pytest.raises(ValueError, match="PsNrQu"):
        la.Quadratic(*MK).conserved(np.ones(4), np.ones(4), "rk4", 0.1)


def test_newmark_conserves_the_energy():
    """Section 6.3: exactly, as all members PsNsQ2sGau do, since they conserve every quadratic invariant."""
    system = pendulum.system()
    path = la.integrate(system, "newmark", pendulum.Q0, pendulum.P0, h=0.1, steps=1000)
    energy = path.energy()
    assert np.abs(energy / energy[0] - 1).max() < 2e-14


@pytest.mark.slow
@pytest.mark.parametrize("name", ["newmark", *MEMBERS])
def test_phi_over_100_000_steps(name):
    """Newmark's energy and everyone's φ: the random walk of rounding, √N units in the last place, and no drift."""
    system = pendulum.system()
    path = la.integrate(system, name, pendulum.Q0, pendulum.P0, h=0.1, steps=100_000, every=100)
    phi = np.array([system.conserved(q, p, name, 0.1) for q, p in zip(path.q, path.p, strict=True)])
    walk = 10 * np.finfo(float).eps * np.sqrt(100_000)
    assert np.abs(phi / phi[0] - 1).max() < walk
    if name == "newmark" or re.fullmatch(r"P(\d+)N\1Q\d+Gau", name):
        energy = path.energy()
        assert np.abs(energy / energy[0] - 1).max() < walk


@pytest.mark.slow
@pytest.mark.parametrize("name", ["newmark", "simpson", "P2N2Q4Gau", "P4N4Q8Gau", "P6N6Q12Gau", "P8N9Q16Lob"])
def test_phi_of_the_solved_steps_over_100_000_steps(name):
    """Solved with the same factors again and again, the error repeats: a unit per solve, times the amplification."""
    system = sparse(pendulum.system())
    path = la.integrate(system, name, pendulum.Q0, pendulum.P0, h=0.1, steps=100_000, every=1000)
    phi = np.array([system.conserved(q, p, name, 0.1) for q, p in zip(path.q, path.p, strict=True)])
    small = shifts(la.method(name).linear_form(), 0.1)
    assert np.abs(phi / phi[0] - 1).max() < 100_000 * np.finfo(float).eps * small.amplification * len(small.gamma)
