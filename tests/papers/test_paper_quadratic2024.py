"""The quadratic paper: the 96 numbers of Table 2, the claims of its captions, its errata.

tests/data/quadratic2024.json holds the cells as this code computed them.
"""

import json
import re
from decimal import Decimal
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import leastaction as la
from leastaction.linear import newmark, simpson_second
from leastaction.papers.model import Options
from leastaction.papers.quadratic2024 import PAPER, errata, figures
from leastaction.papers.quadratic2024 import tables as paper
from leastaction.papers.quadratic2024.tables import DISAGREEMENTS, P0, Q0, TABLE_2
from leastaction.papers.style import style

matplotlib.use("Agg")

CELLS = paper.table_2(Options())
STORED = json.loads((Path(__file__).parents[1] / "data" / "quadratic2024.json").read_text(encoding="utf-8"))


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


def test_cells_are_as_stored():
    """Round-off over 40 000 steps is the only difference between machines."""
    assert {f"{cell.row}, {cell.column}": cell.computed for cell in CELLS} == pytest.approx(STORED, rel=1e-7, abs=1e-7)


def test_cells_that_disagree():
    assert {cell.note != "" for cell in CELLS if not cell.agrees} == {True}
    assert sum(cell.agrees for cell in CELLS) == 85


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
    np.testing.assert_allclose(system.modes().omega[::-1], paper.frequencies(), rtol=1e-13)


def test_energy_error_of_simpson_drops_by_four_orders_per_tenth_of_the_step():
    """Figure 5: of the order 10⁻³ with h = 0.1 t̄, bounded, and 10⁴ times less with h = 0.01 t̄."""
    errors = []
    for h in (0.1, 0.01):
        energy = la.integrate(paper.system(), "simpson", Q0, P0, h=h, t_end=100).energy()
        errors.append(np.abs(energy / energy[0] - 1).max())
    assert 1e-4 < errors[0] < 1e-2
    assert errors[0] / errors[1] == pytest.approx(1e4, rel=0.2)


@pytest.mark.parametrize("figure", PAPER.figures, ids=[figure.number for figure in PAPER.figures])
def test_claims_of_the_captions(figure, tmp_path):
    import matplotlib.pyplot as plt

    with style():
        drawing = figure.draw(Options())
        drawing.figure.savefig(tmp_path / "figure.png")
        plt.close(drawing.figure)
    assert drawing.figure.get_size_inches()[0] == 7
    assert drawing.claims
    assert [claim for claim in drawing.claims if not claim.holds] == []


def test_figures_are_those_of_the_paper():
    assert [figure.number for figure in PAPER.figures] == list("234567")


@pytest.mark.parametrize("statement", PAPER.statements, ids=[s.place for s in PAPER.statements])
def test_statements(statement):
    claim = statement.check(Options())
    assert claim.holds, claim.measured


def test_the_propositions_need_their_conditions():
    """Beyond (40), where it is sharp (one degree of freedom), Y_s is not positive definite and the scheme unstable."""
    M, K = np.eye(1), np.eye(1)
    for h, stable in ((0.999 * 8**0.5, True), (1.001 * 8**0.5, False)):
        scheme = simpson_second(M, K, h)
        assert (scheme.Y[0, 0] > 0) == stable
        assert (np.abs(np.linalg.eigvals(scheme.Phi)).max() < 1 + 1e-9) == stable


def test_every_entry_stands_in_both_versions():
    assert all("Both versions" in erratum.either for erratum in PAPER.errata)


@pytest.mark.parametrize("erratum", PAPER.errata, ids=[erratum.place for erratum in PAPER.errata])
def test_evidence_is_a_sentence_with_numbers(erratum):
    evidence = erratum.evidence()
    assert evidence.endswith(".")
    assert any(letter.isdigit() for letter in evidence)
    assert not re.search(r"\b(nan|inf)\b", evidence)


def test_the_action_takes_the_first_step_too():
    """∫ L dt = ½ [q·p]: Simpson's sum over all steps converges to it with order 4, the printed one lacks a step."""
    q, p = paper.exact(1.0)
    off = [abs(errata.discrete_actions(mesh).sum() - q @ p / 2) for mesh in (20, 40, 80)]
    assert off[0] / off[1] == pytest.approx(16, rel=0.2)
    assert off[1] / off[2] == pytest.approx(16, rel=0.1)
    assert abs(errata.discrete_actions(80)[1:].sum() - q @ p / 2) > 100 * off[2]


@pytest.mark.parametrize("make", [newmark, simpson_second])
def test_middle_matrix_of_proposition_1_has_the_other_sign(make):
    system = paper.system(m2=0.7)
    scheme, Z = make(system.M, system.K, 0.13), np.zeros((2, 2))
    A = np.linalg.inv(scheme.A)
    np.testing.assert_allclose(
        A.T @ errata.J @ A, np.block([[Z, -scheme.xi], [scheme.xi, Z]]), atol=1e-13 * np.abs(scheme.xi).max()
    )


def test_stiffest_over_lightest_bounds_the_largest_frequency():
    """k/μ ≥ ω²_max for any M and K; equality needs a vector that is extreme for both."""
    for m2 in (0.1, 1.0, 10.0):
        system = paper.system(m2=m2)
        assert np.linalg.eigvalsh(system.K)[-1] / np.linalg.eigvalsh(system.M)[0] > 1.05 * system.omega_max**2


def test_forming_the_matrix_costs_digits_of_the_conserved_form():
    """Figure 6: multiplying by Φ_s drifts by nearly 10⁻¹⁵ in a hundred t̄, as printed; steps without it stay below."""
    for mesh in (10, 100):
        formed, not_formed = (np.abs(figures.phi_errors(mesh, 100, by_matrix)).max() for by_matrix in (True, False))
        assert not_formed < formed < 1e-14
