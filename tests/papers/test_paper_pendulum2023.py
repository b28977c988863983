"""The pendulum paper: the 24 numbers of Table 1, the claims of its captions, its errata."""

import re

import matplotlib
import numpy as np
import pytest

from leastaction.papers import pendulum2023 as paper
from leastaction.papers.model import Options
from leastaction.papers.pendulum2023 import PAPER
from leastaction.papers.style import style

matplotlib.use("Agg")

# Errors with 50, 100 and 200 steps, as computed by this project.
STORED = {
    "Newmark, momentum": (2.93326455e-2, 7.32299584e-3, 1.83011117e-3),
    "Simpson, momentum": (6.08558263e-6, 3.78190649e-7, 2.36099993e-8),
    "Newmark, state": (5.26466003e-3, 1.31686059e-3, 3.29176101e-4),
    "Simpson, state": (1.04968574e-6, 6.51374242e-8, 4.06381873e-9),
    "Newmark, relative energy": (9.05576290e-4, 2.29046859e-4, 5.72853378e-5),
    "Simpson, relative energy": (1.30476139e-6, 8.41928149e-8, 5.25452104e-9),
}


def test_table_1():
    """Round-off, 10⁻¹⁵ of quantities up to 10, is a 10⁻⁵th of the smallest errors at most; every cell is reproduced."""
    cells = paper.table_1(Options())
    assert len(cells) == 24
    assert [cell for cell in cells if not cell.agrees] == []
    for cell in cells:
        if cell.column != "order":
            stored = STORED[cell.row][paper.MESHES.index(int(cell.column.split()[0]))]
            assert cell.computed == pytest.approx(stored, rel=1e-5), cell


@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda figure: figure.number)
def test_claims_of_the_captions(figure):
    import matplotlib.pyplot as plt

    with style():
        drawing = figure.draw(Options())
        drawing.figure.canvas.draw()
        plt.close(drawing.figure)
    assert drawing.claims and all(claim.holds for claim in drawing.claims)


@pytest.mark.parametrize("statement", PAPER.statements, ids=lambda statement: f"{statement.place}")
def test_statements(statement):
    claim = statement.check(Options())
    assert claim.holds, claim.measured


@pytest.mark.parametrize("erratum", PAPER.errata, ids=lambda erratum: erratum.place)
def test_evidence_is_a_sentence_with_numbers(erratum):
    evidence = erratum.evidence()
    assert evidence.endswith(".")
    assert any(letter.isdigit() for letter in evidence)
    assert not re.search(r"\b(nan|inf)\b", evidence)


def test_the_second_derivative_is_meant():
    """At any h, (10) is the derivative of Newmark's step with V″ = ∂²V/∂q² only; its determinant is one with both."""
    import leastaction as la

    problem = la.problems.get("pendulum")
    for h in (0.01, 0.1, 0.3):
        exact = la.tangent(problem.system, "newmark", problem.q0, problem.p0, h).state[::-1, ::-1]
        right, printed = (paper.newmark_derivative(h, c) for c in (paper.stiffness, paper.force))
        np.testing.assert_allclose(right, exact, atol=1e-13 * np.abs(exact).max())
        assert np.abs(printed - exact).max() > h
        assert np.linalg.det(printed) == pytest.approx(1, abs=1e-13)


def test_sign_of_the_derivative_by_the_middle():
    rng = np.random.default_rng(3)
    for q in rng.uniform(-2, 2, (5, 3)):
        exact, printed, right = paper.middle_derivatives(*q)
        assert right == pytest.approx(exact, rel=1e-12)
        assert abs(printed - exact) > 0.1


def test_the_action_takes_the_first_step_too():
    """Simpson's sum over all steps converges to the action with order 4; the printed one lacks a step."""
    off = [abs(paper.discrete_actions(n).sum() - paper.exact_action()) for n in (10, 20, 40)]
    assert off[0] / off[1] == pytest.approx(16, rel=0.05)
    assert off[1] / off[2] == pytest.approx(16, rel=0.02)
    assert abs(paper.discrete_actions(40)[1:].sum() - paper.exact_action()) > 1e4 * off[2]
