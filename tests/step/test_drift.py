"""The energy of many orbits over long times: is it a random walk, or does it drift?

If roundings are independent, the mean of what the energies of a start's neighbours (`orbits`) have moved by is zero
within its standard error, which their scatter tells. A bias moves them all to one side. `benchmarks/judge_roots.py`
prints slopes.
"""

import numpy as np
import pytest

from leastaction.step.verdict import ACCEPTABLE, EPS, NEGLIGIBLE, verdict_program
from orbits import slopes
from rungs import solved_by


def significance(name, method, h, **sizes):
    """The largest slope of a start in standard errors."""
    found, errors, _ = slopes(name, method, h, **sizes)
    return np.max(abs(found) / errors)


def test_separable_steps_whose_inverse_is_round_do_not_drift():
    """Products of h with sums that end with p let the energy drift by 1.2·10⁻⁴ ε a step, 13 standard errors."""
    assert significance("oscillators", "P8N8Q16Gau", 0.05, steps=50_000, starts=2, neighbours=128) < 4


SEPARABLE = ("oscillators", "anharmonic", "henon-heiles", "pendulum")


def test_separable_steps_end_with_the_forces_at_the_last_place():
    """Forces before the last increment let the energy drift by up to 3·10⁻⁴ ε a step, 20 standard errors."""
    assert significance("anharmonic", "P8N8Q16Gau", 0.125, steps=50_000, starts=4, neighbours=64) < 4


def test_steps_that_land_early_do_not_drift():
    """One trajectory alone lands after one iteration where the prediction was good enough."""
    assert significance("pendulum", "P8N8Q16Gau", 0.05, steps=50_000, starts=2, neighbours=32, alone=True) < 4


def test_what_sums_have_left_over_belongs_to_the_state():
    """Where forces are evaluated without it, energies end 4.1 ε from where they began, in place of 3.1 (± 0.15)."""
    _, _, walk = slopes("anharmonic", "P8N8Q16Gau", 0.05, steps=50_000, starts=4, neighbours=64, alone=True)
    assert walk.mean() < 3.6


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.1, 0.05, 0.02])
@pytest.mark.parametrize("name", SEPARABLE)
def test_steps_that_land_early_do_not_drift_for_long(name, h):
    assert significance(name, "P8N8Q16Gau", h, steps=300_000, starts=4, neighbours=32, alone=True) < 4


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.125, 0.1, 0.0971, 0.05])
@pytest.mark.parametrize("name", SEPARABLE)
def test_separable_steps_do_not_drift(name, h):
    """The probability that the largest of four slopes of a random walk exceeds four standard errors is 3·10⁻⁴."""
    assert significance(name, "P8N8Q16Gau", h, steps=10**6, starts=4, neighbours=64) < 4


@pytest.mark.parametrize("alone", [False, True])
def test_shares_of_h_are_the_same_numbers_wherever_they_stand(alone):
    """h c_i rounded apart from the c_i of the tables let the energy of Kepler's orbits with a near pericentre drift by
    1.3·10⁻³ ε a step, 12 standard errors.
    """
    assert significance("kepler", "P8N8Q16Gau", 0.08, steps=40_000, starts=4, neighbours=64, alone=alone) < 4


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.1, 0.09, 0.08, 0.07])
@pytest.mark.parametrize("alone", [False, True])
def test_eccentric_orbits_do_not_drift(alone, h):
    """At h = 0.1 products h u, of which many lie half way between two numbers, were seen beside the shares of h."""
    assert significance("kepler", "P8N8Q16Gau", h, steps=400_000, starts=4, neighbours=64, alone=alone) < 4


def test_nodes_subtract_momenta_from_p_first():
    """Impulses added to p before momenta were subtracted let the energy drift by up to 7·10⁻⁴ ε a step, 15 standard
    errors.
    """
    assert significance("charge", "P8N8Q16Gau", 0.1, steps=25_000, starts=4, neighbours=64) < 4


@pytest.mark.slow
@pytest.mark.parametrize("h", [0.125, 0.1, 0.0971, 0.05])
def test_charges_in_magnetic_fields_do_not_drift(h):
    assert significance("charge", "P8N8Q16Gau", h, steps=300_000, starts=4, neighbours=64) < 4


def test_what_the_last_increment_adds_to_the_impulse_is_not_lost():
    """Added behind the sum of the forces, it was rounded away: the energy of a double pendulum drifted by 1.9·10⁻⁴ ε a
    step, 7 standard errors.
    """
    with solved_by("newton"):
        assert significance("double-pendulum", "P8N8Q16Gau", 0.1, steps=6000, starts=3, neighbours=16) < 4


@pytest.mark.parametrize(("before", "rate", "ends"), [(1e-12, 1e-3, 0), (1e-12, 1e-4, 1), (2e-11, 1, 1), (5e-12, 1, 0)])
def test_the_size_of_roundings_does_not_end_shifted_chords(before, rate, ends):
    """What is left of 10⁻¹² after two chords that shrink by 10⁻³ is 10⁻¹⁸, however long the rounding of the second."""
    program = verdict_program(False, 10, steady=True)
    given = dict.fromkeys(dict(program.inputs), 0.0)
    given |= {"before": before, "rate": rate, "iterations": 2.0, "sound": 1.0}
    given |= {"negligible": NEGLIGIBLE * EPS, "acceptable": ACCEPTABLE}
    for size in (1e-17, 1e-16, 1.7e-15):
        found = program(*(np.array([value]) for value in (given | {"size": size}).values()))
        assert found["solved"] == [ends]


@pytest.mark.slow
def test_rounding_does_not_choose_where_shifted_chords_end():
    """Where the size of increments that are rounding ended the iteration, the energy drifted by up to 4.8·10⁻⁴ ε a
    step, 10 standard errors.
    """
    with solved_by("shifted"):
        assert significance("charge", "P8N8Q16Gau", 0.1, steps=20_000, starts=3, neighbours=128) < 4


def test_constraints_know_what_rounding_took_from_places():
    """With g at rounded places the energy of a mass on a rod drifted by up to 2.9·10⁻⁴ ε a step, 22 standard errors."""
    assert significance("rod", "P8N8Q16Gau", 0.05, steps=20_000, starts=3, neighbours=64) < 4


RUNGS = [
    ("chord", "henon-heiles", 0.1),
    ("chord", "henon-heiles", 0.05),
    ("chord", "double-pendulum", 0.1),
    ("shifted", "henon-heiles", 0.1),
    ("shifted", "double-pendulum", 0.1),
    ("newton", "henon-heiles", 0.1),
    ("newton", "double-pendulum", 0.1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "name", "h"), RUNGS)
def test_rungs_of_the_loops_do_not_drift(how, name, h):
    """They did, by up to 1.9·10⁻⁴ ε a step."""
    with solved_by(how):
        assert significance(name, "P8N8Q16Gau", h, steps=30_000, starts=3, neighbours=32) < 4
