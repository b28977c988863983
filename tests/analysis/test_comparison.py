"""Which methods are the same map, and which are the fastest."""

import numpy as np
import pytest

import leastaction as la
from leastaction.analysis import efficiency, equivalences, same_map
from systems import catalogued


@pytest.mark.parametrize("s", range(1, 7))
def test_gauss_with_as_many_nodes_as_the_degree_is_collocation(s):
    found = equivalences(la.galerkin(s, la.gauss(s)))
    assert found.gauss and found.lobatto_pair == "no" and not found.twins
    assert "Gauss collocation" in repr(found)


@pytest.mark.parametrize("r", range(2, 7))
def test_lobatto_members_are_the_pair_always_or_for_constant_mass(r):
    rule = la.lobatto(r)
    assert equivalences(la.galerkin(r, rule)).lobatto_pair == "always"
    lower = equivalences(la.galerkin(r - 1, rule))
    assert lower.lobatto_pair == "constant mass" and not lower.gauss
    assert lower.twins == (la.galerkin(r, rule),)
    if r > 2:
        assert equivalences(la.galerkin(r - 2, rule)).lobatto_pair == "no"


@pytest.mark.parametrize("s", [1, 2, 3])
def test_more_gauss_nodes_make_another_method(s):
    found = equivalences(la.galerkin(s, la.gauss(s + 1)))
    assert not found.gauss and found.lobatto_pair == "no" and not found.twins
    assert "neither" in repr(found)


def test_same_map():
    found = same_map("P3N4Q6Lob", "P4N4Q6Lob")
    assert found.constant_mass and not found.always and not found
    assert (found.difference > 1e-20).all() and (found.constant_mass_difference < 1e-38).all()
    assert same_map("simpson", "P2N3Q4Lob").always
    assert not same_map("simpson", "P2N2Q4Gau").constant_mass
    assert same_map("rk4", "rk4-lagrange").constant_mass
    assert "different maps" in repr(same_map("rk4", "simpson"))


def test_the_midpoint_rule_and_verlet_by_their_formulas():
    """Implicit midpoint and leapfrog, written out, against the members that are said to be them."""

    def force(q):
        return -np.sin(q)

    system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    q, p, h = 0.7, 0.4, 0.2
    half = p + h / 2 * force(q)
    after = q + h * half
    path = la.integrate(system, "stormer-verlet", [q], [p], h=h, steps=1)
    np.testing.assert_allclose([path.q[1, 0], path.p[1, 0]], [after, half + h / 2 * force(after)], rtol=1e-15)
    path = la.integrate(system, "midpoint", [q], [p], h=h, steps=1)
    middle = (q + path.q[1, 0]) / 2
    np.testing.assert_allclose(path.p[1, 0], p + h * force(middle), rtol=1e-15)
    np.testing.assert_allclose(path.q[1, 0], q + h * (p + path.p[1, 0]) / 2, rtol=1e-15)


def test_equivalences_are_of_the_family():
    with pytest.raises(ValueError, match="same_map"):
        equivalences("rk4")


def test_efficiency_has_errors_and_times():
    problem = catalogued("kepler")
    result = efficiency(problem, ["simpson", "P4N4Q8Gau"], [0.05, 0.1, 0.2], t_end=6, repeats=2)
    assert (result.h == [0.2, 0.1, 0.05]).all()
    assert result.error.shape == result.time.shape == (2, 3)
    assert (np.diff(result.error, axis=1) < 0).all() and (result.time > 0).all() and result.noise >= 1
    assert result.fastest(1e-6)[0] == la.method("P4N4Q8Gau")  # the only one that gets there
    assert "P2N3Q4Lob" in repr(result)
    with pytest.raises(ValueError, match="no run reached"):
        result.fastest(1e-30)
    with pytest.raises(TypeError, match="list of methods"):
        efficiency(problem, "simpson", [0.1], t_end=1)


def test_a_failed_run_is_left_out():
    result = efficiency(catalogued("kepler-galerkin"), ["P1N3Q4Lob"], [1.0, 0.01], t_end=25, repeats=1)
    assert np.isnan(result.time[0, 0]) and np.isfinite(result.time[0, 1])


def test_figures():
    import matplotlib.pyplot as plt

    same_map("P1N2Q2Lob", "P2N2Q2Lob").plot()
    result = efficiency(catalogued("pendulum"), ["simpson", "midpoint"], [0.1, 0.05], t_end=1, repeats=1)
    assert len(result.plot().lines) == 2
    plt.close("all")
