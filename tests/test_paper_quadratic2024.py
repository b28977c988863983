"""Table 2 of the quadratic paper: 96 numbers, recomputed."""

from decimal import Decimal

import numpy as np
import pytest

import leastaction as la
from leastaction.papers import quadratic2024 as paper
from leastaction.papers.model import Options
from leastaction.papers.quadratic2024 import DISAGREEMENTS, P0, Q0, TABLE_2

CELLS = paper.table_2(Options())


def within_one_unit(cell) -> bool:
    """±1 in the third digit printed (of the second decimal, for an order)."""
    printed = Decimal(cell.published)
    unit = Decimal("0.01") if cell.column == "order" else Decimal(1).scaleb(printed.adjusted() - 2)
    return abs(Decimal(cell.computed) - printed) <= unit


def test_the_table_is_complete():
    assert len(TABLE_2) == 24
    assert len(CELLS) == 96
    assert sum(bool(cell.note) for cell in CELLS) == len(DISAGREEMENTS) == 11


@pytest.mark.parametrize("cell", CELLS, ids=[f"{c.row}, {c.column}" for c in CELLS])
def test_cell(cell):
    """Every cell agrees to one unit of its third digit, unless a reason is known why it cannot."""
    assert within_one_unit(cell) == (not cell.note), cell


def test_cells_cut_to_four_decimals_are_that():
    for cell in CELLS:
        if cell.note.startswith("cut"):
            assert np.floor(cell.computed * 1e4) / 1e4 == pytest.approx(float(cell.published), abs=1e-12)


def printed(*key) -> list[float]:
    return [float(x) for x in TABLE_2[key]]


def test_the_misprinted_exponent_gives_the_printed_order():
    first, _, last, order = printed(10, "p", "Newmark")
    assert 0.5 * np.log2(first / (last / 10)) == pytest.approx(order, abs=0.005)


def test_the_spoiled_cells_give_the_printed_orders_and_contradict_a_longer_run():
    for variable in "pq":
        first, _, last, order = printed(10, variable, "RK4")
        assert 0.5 * np.log2(first / last) == pytest.approx(order, abs=0.006)
    assert printed(100, "p", "RK4")[2] < printed(10, "p", "RK4")[2]


def test_exact_solution_of_section_5():
    """Equations (49) to (51) solve (48), and agree with the modes computed."""
    system = paper.system()
    t = np.linspace(0, 20, 101)
    q, p = paper.exact(t)
    modal_q, modal_p = system.exact(Q0, P0, t)
    np.testing.assert_allclose(q, modal_q, atol=1e-12)
    np.testing.assert_allclose(p, modal_p, atol=1e-12)
    np.testing.assert_allclose(system.modes.omega[::-1], paper.frequencies(), rtol=1e-13)


def test_energy_error_of_simpson_drops_by_four_orders_per_tenth_of_the_step():
    """Figure 5: of the order 10⁻³ with h = 0.1 t̄, bounded, and 10⁴ times less with h = 0.01 t̄."""
    errors = []
    for h in (0.1, 0.01):
        energy = la.integrate(paper.system(), "simpson", Q0, P0, h=h, t_end=100).energy()
        errors.append(np.abs(energy / energy[0] - 1).max())
    assert 1e-4 < errors[0] < 1e-2
    assert errors[0] / errors[1] == pytest.approx(1e4, rel=0.2)
