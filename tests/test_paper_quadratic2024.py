"""Table 2 of the quadratic paper: 96 numbers, recomputed."""

import numpy as np
import pytest

import leastaction as la
from leastaction.papers.quadratic2024 import DISAGREEMENTS, TABLE_2, table_2
from leastaction.problems import linear_double_pendulum as pendulum

CELLS = table_2()


def test_the_table_is_complete():
    assert len(TABLE_2) == 24
    assert len(CELLS) == 96
    assert len(DISAGREEMENTS) == 11


@pytest.mark.parametrize(
    "cell", CELLS, ids=[f"{c.method}-{c.variable}-{c.periods}t-{['10', '20', '40', 'order'][c.column]}" for c in CELLS]
)
def test_cell(cell):
    """Every cell agrees to one unit of its third digit, unless a reason is known why it cannot."""
    assert cell.agrees == (cell.reason is None), cell


def test_cells_cut_to_four_decimals_are_that():
    for cell in CELLS:
        if cell.reason and cell.reason.startswith("cut"):
            assert np.floor(cell.computed * 1e4) / 1e4 == pytest.approx(cell.published, abs=1e-12)


def test_the_misprinted_exponent_gives_the_printed_order():
    row = TABLE_2[10, "p", "newmark"]
    assert 0.5 * np.log2(row[0] / (row[2] / 10)) == pytest.approx(row[3], abs=0.005)


def test_the_spoiled_cells_give_the_printed_orders_and_contradict_a_longer_run():
    for variable in "pq":
        row = TABLE_2[10, variable, "rk4"]
        assert 0.5 * np.log2(row[0] / row[2]) == pytest.approx(row[3], abs=0.006)
    assert TABLE_2[100, "p", "rk4"][2] < TABLE_2[10, "p", "rk4"][2]


def test_exact_solution_of_section_5():
    """Equations (49) to (51) solve (48), and agree with the modes computed."""
    system = pendulum.system()
    t = np.linspace(0, 20, 101)
    q, p = pendulum.exact(t)
    modal_q, modal_p = system.exact(pendulum.Q0, pendulum.P0, t)
    np.testing.assert_allclose(q, modal_q, atol=1e-12)
    np.testing.assert_allclose(p, modal_p, atol=1e-12)
    np.testing.assert_allclose(system.modes.omega[::-1], pendulum.frequencies(), rtol=1e-13)


def test_energy_error_of_simpson_drops_by_four_orders_per_tenth_of_the_step():
    """Figure 5: of the order 10⁻³ with h = 0.1 t̄, bounded, and 10⁴ times less with h = 0.01 t̄."""
    errors = []
    for h in (0.1, 0.01):
        energy = la.integrate(pendulum.system(), "simpson", pendulum.Q0, pendulum.P0, h=h, t_end=100).energy()
        errors.append(np.abs(energy / energy[0] - 1).max())
    assert 1e-4 < errors[0] < 1e-2
    assert errors[0] / errors[1] == pytest.approx(1e4, rel=0.2)
