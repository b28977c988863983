"""Tables in which rounding must not break an identity: steps are symplectic by these, whatever the rounding."""

from fractions import Fraction

import numpy as np
import pytest

import leastaction as la
from leastaction.engine.collocation import collocation
from leastaction.engine.kick_tables import kick_tables


def exact(table: np.ndarray) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(table)


@pytest.mark.parametrize("name", ["P1N1Q2Gau", "P2N3Q4Lob", "P3N4Q6Lob", "P8N8Q16Gau", "P6N8Q14Lob", "P16N16Q32Gau"])
def test_kicks_lead_to_places_that_are_symplectic_and_of_the_method(name):
    """A_ij + γ_j is symmetric and γ + β = h (Suris), in float64 without any error, whatever h is."""
    method = la.method(name)
    tables, table, nodes = kick_tables(method), method.table, range(len(method.table.c))
    for h in (0.08, 0.1, -0.37, 1 / 3, 2.0, 300.0):
        gamma, beta = (exact(tables[which](h))[:, 0] for which in ("gamma", "beta"))
        A = exact(tables["A"](h))
        assert all(A[i, j] + gamma[j] == A[j, i] + gamma[i] for i in nodes for j in nodes)
        assert (gamma + beta == Fraction(h)).all()
        assert np.allclose(tables["gamma"](h)[:, 0], h * table.c, rtol=0, atol=4e-16 * abs(h))
        # z = h S⁻¹ (l(c)ᵀ w) with S = Σ b l′ l′ᵀ: places of the kicks of a free particle of mass one.
        S = (table.dl[:, 1:].T * table.b) @ table.dl[:, 1:]
        last = table.l[:, 1:] @ np.linalg.solve(S, np.eye(method.s)[-1])  # what p adds
        T = table.l[:, 1:] @ np.linalg.solve(S, table.l[:, 1:].T)
        assert np.allclose(last, table.c, rtol=0, atol=1e-12)
        assert np.allclose(tables["A"](h), h * (table.c[:, None] - T), rtol=0, atol=1e-12 * abs(h))


@pytest.mark.parametrize("s", range(1, 13))
def test_collocation_is_symplectic_whatever_its_rounding(s):
    """N_ij + N_ji = 1 without rounding; N b integrates polynomials; λ are the eigenvalues of N b."""
    method = la.galerkin(s, la.gauss(s))
    table, found = method.table, collocation(method)
    assert (found.places + found.places.T == 1).all()
    A = found.places * table.b
    for k in range(s):
        np.testing.assert_allclose(A @ table.c**k, table.c ** (k + 1) / (k + 1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.middle[0].sum(), 0.5, rtol=1e-14)
    np.testing.assert_allclose(found.middle[1] @ table.c, 0.5, rtol=1e-13)
    shift, into, out = found.shift[0] + 1j * found.shift[1], found.into[0] + 1j * found.into[1], found.out
    x = shift[:, None] * into
    np.testing.assert_allclose(out[0] @ x.real + out[1] @ x.imag, A, rtol=0, atol=1e-8)  # it costs iterations alone
    velocities = np.random.default_rng(s).normal(size=s)
    z = found.lift @ (table.b * velocities)
    np.testing.assert_allclose(table.dl[:, 1:] @ z, velocities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(table.l[:, 1:] @ z, A @ velocities, rtol=0, atol=1e-14)
