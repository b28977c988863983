"""The finite-element example, on its coarse mesh (needs scikit-fem)."""

import sys
from pathlib import Path

import numpy as np
import pytest

import leastaction as la

pytest.importorskip("skfem")
sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.cantilever_fem import DENSITY, LENGTH, SMALL, WIDTH, YOUNG, cantilever, draw, reference


@pytest.fixture(scope="module")
def model():
    return cantilever(*SMALL)


def test_the_mast_is_a_beam(model):
    """Mass, less what the clamped nodes take (½ + ⅙ of an element), and the frequency √(E I/(ρ A)) (1.8751/L)²."""
    assert model.lumped.sum() / 3 == pytest.approx(DENSITY * LENGTH * WIDTH**2 * (1 - 2 / 3 / SMALL[0]), rel=1e-9)
    exact = reference(model, la.Quadratic(model.lumped, model.K), count=6)
    omega = (1.8751 / LENGTH) ** 2 * np.sqrt(YOUNG * WIDTH**2 / (12 * DENSITY))
    assert exact.omega[0] == pytest.approx(omega, rel=0.25)  # two linear elements across are too stiff, by a fifth


@pytest.mark.parametrize("mass", ["lumped", "M"])
def test_newmark_and_gauss_follow_the_tip(model, mass, tmp_path):
    """Both masses, against the lowest modes; Gauss with a tenth of Newmark's steps is as good."""
    system = la.Quadratic(getattr(model, mass), model.K)
    exact = reference(model, system)
    assert exact.missing < 1e-5
    rest, scale = np.zeros(system.n), abs(model.bent[model.tip])
    for name, steps in (("newmark", 500), ("P2N2Q4Gau", 50), ("P4N4Q8Gau", 20)):
        path = la.integrate(system, name, model.bent, rest, h=exact.period / steps, steps=steps, output=[model.tip])
        assert np.abs(path.q[:, 0] - exact.tip(path.t)).max() < 5e-3 * scale
    limit = system.stable_step("simpson")
    path = la.integrate(system, "simpson", model.bent, rest, h=0.95 * limit, steps=200, output=[model.tip])
    assert np.abs(path.q[:, 0] - exact.tip(path.t)).max() < 1e-6 * scale
    with pytest.raises(la.UnstableStepError):
        la.integrate(system, "simpson", model.bent, rest, h=1.05 * limit, steps=1)


def test_the_picture_is_drawn(model, tmp_path):
    draw(model, [(0.0, model.bent), (1.0, -model.bent)], str(tmp_path / "mast.png"))
    assert (tmp_path / "mast.png").stat().st_size > 10_000
