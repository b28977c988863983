"""Is every frequency below a bound? Decided without eigenvalues, against eigenvalues; matrices made by scikit-fem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, eye_array

import leastaction as la
from leastaction.linear import definite
from leastaction.linear.stability import require_stable
from linear_systems import definite as random_definite
from linear_systems import semidefinite
from thrift import rest_slow

skfem = pytest.importorskip("skfem")
helpers = pytest.importorskip("skfem.helpers")
elasticity = pytest.importorskip("skfem.models.elasticity")

NEAR = [1.5, 1 + 1e-2, 1 + 1e-6, 1 + 1e-10, 1 - 1e-10, 1 - 1e-6, 1 - 1e-2, 0.5]


def solid(mesh, element):
    """M (consistent) and K of an elastic body that floats freely."""
    basis = skfem.Basis(mesh, skfem.ElementVector(element))
    K = skfem.asm(elasticity.linear_elasticity(*elasticity.lame_parameters(1.0, 0.3)), basis)
    M = skfem.asm(skfem.BilinearForm(lambda u, v, w: helpers.dot(u, v)), basis)
    return csr_array(M), csr_array(K)


def plate():
    """M and K of a thin plate that floats freely, by Morley's triangles: displacements and rotations."""
    basis = skfem.Basis(skfem.MeshTri().refined(3), skfem.ElementTriMorley())
    K = skfem.asm(skfem.BilinearForm(lambda u, v, w: helpers.ddot(helpers.dd(u), helpers.dd(v))), basis)
    M = skfem.asm(skfem.BilinearForm(lambda u, v, w: u * v), basis)
    return csr_array(M), csr_array(K)


def mast():
    line, section = np.linspace(0, 20, 41), np.linspace(0, 1, 3)
    return solid(skfem.MeshHex.init_tensor(line, section, section), skfem.ElementHex1())


def lumped(pair):
    M, K = pair
    return diags_array(np.asarray(M.sum(axis=1)).ravel()).tocsr(), K


MODELS = {
    "tetrahedra, consistent": lambda: solid(skfem.MeshTet().refined(2), skfem.ElementTetP1()),
    "tetrahedra, lumped": lambda: lumped(solid(skfem.MeshTet().refined(2), skfem.ElementTetP1())),
    "mast, consistent": mast,
    "mast, lumped": lambda: lumped(mast()),
    "plate": plate,
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_every_way_decides_as_the_eigenvalues_do(model, monkeypatch):
    """A factorisation and the whole decision, from far above λ_max to far below, and to ten digits of it."""
    M, K = model()
    n = M.shape[0]
    M, K = (M + M.T) / 2, (K + K.T) / 2
    largest = eigh(K.toarray(), M.toarray(), eigvals_only=True, subset_by_index=[n - 1, n - 1])[0]
    monkeypatch.setattr(definite, "DENSE_CHECK", 10)  # use Lanczos' process as large matrices do
    for share in NEAR:
        A = share * largest * M - K
        assert definite.positive_definite(A) == definite.positive_definite(A.toarray()) == (share > 1)
        assert definite.has_cholesky(A) == (share > 1)
        if A.diagonal().min() > 0 and share < 1:
            assert not definite.dominant(A)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), share=st.sampled_from(NEAR))
@settings(max_examples=60)
def test_random_pencils(seed, n, share):
    rng = np.random.default_rng(seed)
    M, K = random_definite(rng, n), semidefinite(rng, n, max(1, n - 2))
    omega = np.sqrt(share * eigh(K, M, eigvals_only=True)[-1])
    for system in (la.Quadratic(M, K), la.Quadratic(csr_array(M), csr_array(K))):
        assert system.below(omega) == (share > 1)


def test_bounds_beyond_the_range_of_squares():
    for system in (la.Quadratic([1.0, 2.0], [[1.0, 0.1], [0.1, 1.0]]), la.Quadratic([1.0, 2.0], [1.0, 3.0])):
        assert system.below(np.inf) and system.below(1e200) and not system.below(1e-200) and not system.below(0.0)
    free = la.Quadratic([1.0, 2.0], [0.0, 0.0])
    assert free.below(1e-300) and free.below(1.0) and not free.below(0.0)


def test_zero_pivots_are_not_positive():
    """[[1, 1], [1, 1]] beside others: singular; and [[0, 1], [1, 0]], which elimination cannot even begin."""
    for block in ([[1.0, 1.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]):
        A = eye_array(400).tolil()
        A[200:202, 200:202] = block
        for a in (csr_array(A.tocsr()), A.toarray()):
            assert not definite.positive_definite(a)
    for rows in (
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]],
    ):
        assert not definite.has_cholesky(csr_array(rows))


def test_a_chain_is_decided_by_dominance_alone(monkeypatch):
    """No factorisation of 100,000 masses whose frequencies reach 2, for any h up to 10⁻⁷ below the limit."""
    n = 100_000
    K = diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    system = la.Quadratic(np.ones(n), K)
    monkeypatch.setattr(definite, "has_cholesky", lambda a: pytest.fail("a factorisation"))
    for share in (0.1, 0.9, 1 - 1e-7):
        require_stable(la.linear.Propagator(system, "stormer-verlet", share * 1.0))
    with pytest.raises(la.UnstableStepError, match=r"above 1\.98"):
        require_stable(la.linear.Propagator(system, "stormer-verlet", 1.01))


@pytest.mark.parametrize("damping", [None, la.linear.Rayleigh(0.01, 1e-4)], ids=["undamped", "Rayleigh"])
def test_a_large_mesh_takes_one_factorisation_at_most(damping, monkeypatch):
    """And no eigenvalue: 1,800 masses and springs of random strength."""
    n = 1800
    rng = np.random.default_rng(1)
    k = rng.uniform(0.5, 2.0, n + 1)
    K = diags_array([-k[1:-1], k[:-1] + k[1:], -k[1:-1]], offsets=[-1, 0, 1]).tocsr()
    M = rng.uniform(0.5, 2.0, n)
    system = la.Quadratic(M, K, C=damping)
    top = np.sqrt(eigh(K.toarray() / np.sqrt(np.outer(M, M)), eigvals_only=True, subset_by_index=[n - 1, n - 1])[0])
    assert system.omega_max == pytest.approx(top, rel=1e-8)
    counted = []
    decide = definite.has_cholesky
    monkeypatch.setattr(definite, "has_cholesky", lambda a: counted.append(1) or decide(a))
    monkeypatch.setattr(la.Quadratic, "omega_max", property(lambda self: pytest.fail("an eigenvalue was asked for")))
    monkeypatch.setattr(la.Quadratic, "modes", lambda self, k=None: pytest.fail("modes were asked for"))
    for share, stable in ((0.5, True), (0.999, True), (1.01, False)):
        counted.clear()
        propagator = la.linear.Propagator(system, "stormer-verlet", share * 2 / top)
        if stable:
            require_stable(propagator)
        else:
            with pytest.raises(la.UnstableStepError, match=r"system\.stable_step"):
                require_stable(propagator)
        assert len(counted) <= (1 if damping is None else 2)


@pytest.mark.parametrize(
    ("name", "beta"),
    rest_slow(
        [(name, beta) for name in ("plate", "mast, lumped") for beta in (0.0, 1e-6)],
        [("plate", 0.0), ("plate", 1e-6), ("mast, lumped", 0.0)],
    ),
)
def test_plates_and_masts_take_two_factorisations_at_most(name, beta, monkeypatch):
    """As large ones do it: Lanczos' process and a factorisation; no eigenvalue before a run."""
    (M, K), damping = MODELS[name](), la.linear.Rayleigh(0.01, beta) if beta else None
    system = la.Quadratic((M + M.T) / 2, (K + K.T) / 2, C=damping)
    limit = la.Quadratic(system.M, system.K).stable_step("simpson")
    counted = []
    decide = definite.has_cholesky
    monkeypatch.setattr(definite, "has_cholesky", lambda a: counted.append(1) or decide(a))
    monkeypatch.setattr(definite, "DENSE_CHECK", 10)
    for share, stable in ((0.5, True), (0.999, True), (1.01, False)):
        counted.clear()
        propagator = la.linear.Propagator(system, "simpson", share * limit)
        if stable:
            with monkeypatch.context() as patch:
                patch.setattr(la.Quadratic, "omega_max", property(lambda self: pytest.fail("an eigenvalue")))
                require_stable(propagator)
        else:
            with pytest.raises(la.UnstableStepError):
                require_stable(propagator)
        assert len(counted) <= 2


def test_large_dense_matrices_are_decided_by_a_factor():
    n = 1600
    K = np.diag(np.full(n, 2.0)) - np.eye(n, k=1) - np.eye(n, k=-1)
    la.Quadratic(np.eye(n) + 0.1 * K, K)
    bad = K.copy()
    bad[800, 801] = bad[801, 800] = -2.5
    with pytest.raises(ValueError, match="K must not be indefinite"):
        la.Quadratic(np.ones(n), bad)
    with pytest.raises(ValueError, match="M must be positive definite"):
        la.Quadratic(bad, K)


@pytest.mark.parametrize("name", MODELS)
def test_lowest_modes(name, monkeypatch):
    """modes(k) by shift and inversion against all modes; rigid ones are exactly zero."""
    M, K = MODELS[name]()
    system = la.Quadratic((M + M.T) / 2, (K + K.T) / 2)
    every = system.modes()
    monkeypatch.setattr(definite, "DENSE_CHECK", 10)
    monkeypatch.setattr("leastaction.linear.system.ALL_MODES", 10)
    found = system.modes(12)
    rigid = 3 if name == "plate" else 6
    assert (found.omega[:rigid] == 0).all() and (found.omega[rigid:] > 0).all()
    np.testing.assert_allclose(found.omega, every.omega[:12], rtol=1e-9)
    np.testing.assert_allclose(found.shape.T @ found.dual, np.eye(12), atol=1e-10)
    size = abs(system.K) @ abs(found.shape)
    assert (abs(system.K @ found.shape - found.dual * found.omega**2) < 1e-8 * size.max()).all()
    assert system.omega_max == pytest.approx(every.omega[-1], rel=1e-8)
    dense = la.Quadratic(system.M.toarray(), system.K.toarray())
    np.testing.assert_allclose(dense.modes(12).omega, every.omega[:12], rtol=1e-9)


def test_lowest_modes_of_a_long_chain():
    """ω_j = 2 sin(jπ/2(n + 1)) from 10⁻⁵ on, in 10⁵ masses: the ratio of λ_max and λ_1 is 10¹⁰."""
    n = 100_000
    K = diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    found = la.Quadratic(np.ones(n), K).modes(5)
    np.testing.assert_allclose(found.omega, 2 * np.sin(np.arange(1, 6) * np.pi / 2 / (n + 1)), rtol=1e-6)


def test_modes_say_what_they_need():
    system = la.Quadratic(np.ones(2000), diags_array(np.arange(1.0, 2001)).tocsr())
    assert system.modes(3).omega == pytest.approx(np.sqrt([1, 2, 3]))
    for k in (0, -1, 1.5, True, 1500):
        with pytest.raises(ValueError, match="lowest k of n = 2000"):
            system.modes(k)
    with pytest.raises(ValueError, match=r"modes\(k\)"):
        system.modes()
    with pytest.raises(ValueError, match="any basis is a basis of modes"):
        la.Quadratic(np.ones(2000), csr_array((2000, 2000))).modes(2)
    assert len(la.Quadratic([1.0, 1.0], [1.0, 4.0]).modes(1).omega) == 1
