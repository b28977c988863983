"""Accelerations of stiff linear systems: a beam whose frequencies lie up to seven orders of magnitude apart."""

import numpy as np
import pytest

import leastaction as la
from linear_systems import shaken_beam
from thrift import rest_slow

H = 0.002


def second_differences(x, h):
    """q̈ from five values: error h⁴ q⁽⁶⁾/90, and for frequencies up to 100 a part (100 h)⁴/90 of q̈: 2·10⁻⁵."""
    return (-(x[4:] + x[:-4]) + 16 * (x[3:-1] + x[1:-3]) - 30 * x[2:-2]) / (12 * h * h)


@pytest.mark.parametrize("method", ["newmark", "P2N2Q4Gau", "P4N4Q8Gau"])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("n", rest_slow([40, 200, 600, 2000], [40, 600]))
def test_accelerations_are_second_differences(n, general, method):
    """At the tip, to the error that is promised, 10⁻³ of the largest. What is Newmark's own error is in both."""
    rest = np.zeros(n)
    path = la.integrate(shaken_beam(n, general=general), method, rest, rest, h=H, t_end=4)
    tip = path.acceleration([n - 2])[:, 0]
    expected = second_differences(path.q[:, n - 2], H)
    size = np.abs(expected).max()
    # Newmark has M a + C v + K q = f at the ends of steps; its q̈ is off by (hω)²/12, 1e-3 for ω = 60.
    bound = 3e-3 if method == "newmark" else 1e-3
    assert np.abs(tip[2:-2] - expected).max() < bound * size


@pytest.mark.parametrize("s", [1, 2, 3, 4])
def test_accelerations_do_not_depend_on_the_mesh(s):
    """Finite elements of 20 and of 1000 parts have the same lowest modes to 10⁻⁵, and so the same accelerations."""
    found = []
    for n in (40, 2000):
        path = la.integrate(shaken_beam(n), f"P{s}N{s}Q{2 * s}Gau", np.zeros(n), np.zeros(n), h=0.005, t_end=5, every=5)
        found.append(path.acceleration([n - 2])[:, 0])
    assert np.abs(found[0] - found[1]).max() < 1e-3 * np.abs(found[0]).max()


def test_all_accelerations_of_a_stiff_beam_balance_in_the_mean():
    """Against f − C v − K q, projected on the lowest eight modes, where rounding of q is not multiplied."""
    n = 600
    system = shaken_beam(n)
    path = la.integrate(system, "P3N3Q6Gau", np.zeros(n), np.zeros(n), h=0.005, t_end=2, every=20)
    modes = system.modes(8)
    force = system.external_force(path.q, path.velocity(), path.t) @ modes.shape
    expected = force - modes.omega**2 * (path.q @ modes.dual)
    np.testing.assert_allclose(path.acceleration() @ modes.dual, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize("method", ["newmark", "P2N2Q4Gau"])
def test_accelerations_of_all_coordinates_are_second_differences(method, damped):
    """To a few thousandths of the largest; rounding of stiff modes, which undamped ones keep, is in none of them."""
    n = 2000
    beam = shaken_beam(n)
    system = beam if damped else la.Quadratic(beam.M, beam.K, f=beam.f)
    path = la.integrate(system, method, np.zeros(n), np.zeros(n), h=H, t_end=2)
    expected = second_differences(path.q, H)
    assert np.abs(path.acceleration()[2:-2] - expected).max() < 5e-3 * np.abs(expected).max()


def test_accelerations_of_a_coordinate_that_hardly_moves_are_right_or_refused():
    """At the foot, where they are 10⁻⁴ of those at the tip, rounding of an undamped beam is larger than they are."""
    n = 600
    beam = shaken_beam(n)
    system = la.Quadratic(beam.M, beam.K, f=beam.f)
    for method in ("newmark", "P2N2Q4Gau", "P4N4Q8Gau"):
        path = la.integrate(system, method, np.zeros(n), np.zeros(n), h=H, t_end=4)
        expected = second_differences(path.q[:, 2], H)
        try:
            foot = path.acceleration([2])[2:-2, 0]
        except ValueError as error:
            assert "not known" in str(error)
        else:
            assert np.abs(foot - expected).max() < 1e-2 * np.abs(expected).max()


@pytest.mark.parametrize("amplitude", [1e-2, 1.0])
def test_quick_modes_of_the_motion_are_kept(amplitude):
    """A mode thousands of times as quick as the first, with as large an acceleration or a part of it: no rounding."""
    from scipy.linalg import eigh

    n = 200
    beam = shaken_beam(n)
    squares, shapes = eigh(beam.K.toarray(), beam.M.toarray())
    slow, quick, tip = shapes[:, 0] / shapes[-2, 0], shapes[:, 30] / shapes[-2, 30], n - 2
    w0, w1 = np.sqrt(squares[[0, 30]])
    start = slow + amplitude * (w0 / w1) ** 2 * quick
    path = la.integrate(la.Quadratic(beam.M, beam.K), "P4N4Q8Gau", start, np.zeros(n), h=0.05 / w1, steps=200)
    expected = -(w0**2) * (np.cos(w0 * path.t) + amplitude * np.cos(w1 * path.t))
    assert np.abs(path.acceleration([tip])[:, 0] - expected).max() < 1e-3 * w0**2


def test_accelerations_that_nobody_can_know_are_refused():
    """With few stored states of a stiff beam the equation at the tip is all that there is."""
    n = 6000
    system = shaken_beam(n, lumped=True)
    path = la.integrate(system, "newmark", np.zeros(n), np.zeros(n), h=0.005, t_end=0.5, output=system.around([n - 2]))
    with pytest.raises(ValueError, match=r"not known: rounding .* error of about .* store whole states"):
        path.acceleration([n - 2])


def test_a_stiff_beam_at_rest_under_its_weight_stays_at_rest():
    """a is zero to what h lets anybody see, and is not refused."""
    n = 600
    beam = shaken_beam(n)
    weight = np.asarray(beam.M @ np.tile([1.0, 0.0], n // 2))
    from scipy.sparse.linalg import spsolve

    bent = spsolve(beam.K.tocsc(), weight)
    system = la.Quadratic(beam.M, beam.K, C=beam.C, f=weight)
    path = la.integrate(system, "P2N2Q4Gau", bent, np.zeros(n), h=0.01, t_end=2, every=10)
    assert np.abs(path.acceleration()[:, ::2]).max() < 1e-3
