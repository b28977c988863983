"""Ensembles of linear systems whose matrices differ from trajectory to trajectory."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from seeds import generator

N, B = 4, 7
M = np.diag([2.0, 1, 1, 3]) + 0.2
K = 3 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)


def noisy(A):
    """Symmetric matrices near A, one for each trajectory."""
    noise = 0.05 * generator().standard_normal((B, N, N))
    return A + (noise + noise.transpose(0, 2, 1)) / 2


@pytest.mark.parametrize("method", ["simpson", "P2N2Q4Gau", "yoshida(P1N2Q2Lob)", "rk4"])
@pytest.mark.parametrize("further", [{}, {"C": 0.1 * np.eye(N), "f": [0.1, 0, 0, -0.2]}])
def test_each_trajectory_has_the_motion_of_its_own_system(method, further):
    Ms, Ks = noisy(M), noisy(K)
    q0, v0 = np.ones(N), np.zeros(N)
    how = {"v0": v0, "h": 0.05, "steps": 60, "every": 20}
    paths = la.ensemble(la.Quadratic(M, K, **further), method, q0, params={"M": Ms, "K": Ks}, **how)
    for b in range(B):
        one = la.integrate(la.Quadratic(Ms[b], Ks[b], **further), method, q0, **how)
        np.testing.assert_allclose(paths.q[b], one.q, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(paths.p[b], one.p, rtol=1e-11, atol=1e-12)


def test_digits_and_archives(tmp_path):
    pytest.importorskip("zarr")
    system = la.Quadratic([["3/2", 0], [0, 1]], [[2, "1/3"], ["1/3", 1]])
    given = {"v0": [0, 0], "h": "1/10", "params": {"K": [[[2, 0], [0, 1]], [[2, "1/3"], ["1/3", 1]]]}}
    paths = la.ensemble(system, "simpson", [1, 2], steps=10, digits=30, **given)
    one = la.integrate(system, "simpson", [1, 2], v0=[0, 0], h="1/10", steps=10, digits=30)
    assert max(abs(paths.q[1] - one.q).ravel()) < 1e-28
    la.ensemble(system, "simpson", [1, 2], steps=4, store=tmp_path / "a.zarr", **given)
    whole = la.ensemble(system, "simpson", [1, 2], steps=10, **given)
    np.testing.assert_array_equal(np.asarray(la.resume(tmp_path / "a.zarr", steps=6).q), whole.q)


def test_it_is_still_called_quadratic():
    paths = la.ensemble(
        la.Quadratic(M, K), "simpson", np.ones(N), np.zeros(N), h=0.1, steps=2, params={"K": [K, 2 * K]}
    )
    assert repr(paths).startswith("Paths(2 trajectories of quadratic, P2N3Q4Lob")


def test_what_is_refused():
    system, start = la.Quadratic(M, K), (np.ones(N), np.zeros(N))
    with pytest.raises(la.UnstableStepError, match="trajectory 1: P2N3Q4Lob is not stable"):
        la.ensemble(system, "simpson", *start, h=0.8, steps=2, params={"K": [K, 40 * K]})
    with pytest.warns(la.EnergyWarning, match="do not keep their energy"):
        la.ensemble(system, "simpson", *start, h=0.8, steps=2, params={"K": [K, 40 * K]}, allow_unstable=True)
    for params, words in (
        ({"M": [M, -M]}, "trajectory 1: M must be positive definite"),
        ({"K": [K, np.triu(K)]}, "trajectory 1: K must be symmetric"),
        ({"k": [K]}, "has M, K, of which each trajectory may have its own; got 'k'"),
        ({"M": [M, M], "K": [K, K, K]}, "batch sizes differ"),
    ):
        with pytest.raises(ValueError, match=words):
            la.ensemble(system, "simpson", *start, h=0.1, steps=2, params=params)
    with pytest.raises(ValueError, match="must be constant"):
        la.ensemble(la.Quadratic(M, K, f=lambda t: [t, 0, 0, 0]), "simpson", *start, h=0.1, steps=2, params={"K": [K]})
    with pytest.raises(ValueError, match="up to 32 degrees of freedom"):
        large = la.Quadratic(np.ones(40), np.eye(40))
        la.ensemble(large, "simpson", np.ones(40), np.zeros(40), h=0.1, steps=2, params={"K": [np.eye(40)]})
