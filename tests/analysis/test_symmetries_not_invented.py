"""Symmetries are not invented where L is flat, or where it decides by a condition that no sample has met."""

import numpy as np
import pytest

import leastaction as la
from leastaction.analysis import identities, symmetries
from seeds import generator
from thrift import rest_slow

Q1 = ("translation of q1",)
BOTH = ("joint translation of q0, q1",)
ROTATION = ("rotation in the plane (q0, q1)",)

FLAT = {
    "a well far away": (lambda q, v: 0.5 * v @ v - np.exp(-((q[0] - 20) ** 2)), Q1),
    "a well beyond float64": (lambda q, v: 0.5 * v @ v - np.exp(-((q[0] - 200) ** 2)), Q1),
    "a narrow well": (lambda q, v: 0.5 * v @ v - np.exp(-1e4 * (q[0] - 20) ** 2), Q1),
    "a narrow well beyond all samples": (lambda q, v: 0.5 * v @ v - np.exp(-1e4 * (q[0] - 1e9) ** 2), Q1),
    "a wall": (lambda q, v: 0.5 * v @ v - np.where(q[0] > 50, (q[0] - 50) ** 2, 0.0), Q1),
    "a step": (lambda q, v: 0.5 * v @ v - np.where(q[0] > 50, 1.0, 0.0), Q1),
    "a step beyond all samples": (lambda q, v: 0.5 * v @ v - np.where(q[0] > 1e9, 1.0, 0.0), Q1),
    "a stair": (lambda q, v: 0.5 * v @ v - np.floor(q[0] / 1e6), Q1),
    "a step in the distance": (lambda q, v: 0.5 * v @ v - np.where(q[0] - q[1] > 50, 1.0, 0.0), BOTH),
    "a far bond": (lambda q, v: 0.5 * v @ v - np.exp(-((q[0] - q[1] - 20) ** 2)), BOTH),
    "a round wall": (lambda q, v: 0.5 * v @ v - np.where(q @ q > 2500, (q @ q - 2500) ** 2, 0.0), ROTATION),
    "a round step": (lambda q, v: 0.5 * v @ v - np.where(q @ q > 2500, 1.0, 0.0), ROTATION),
    "a sign": (lambda q, v: 0.5 * v @ v - np.sign(q[0] - 1e7), Q1),
}


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("seed", rest_slow([0, 1], [0]))
def test_what_is_flat_near_the_origin_is_no_symmetry(name, seed):
    L, names = FLAT[name]
    found = symmetries(la.Lagrangian(L, n=2), seed=seed)
    assert found.names == names and found.energy


def test_candidates_say_where_they_were_seen():
    found = symmetries(la.Lagrangian(FLAT["a narrow well beyond all samples"][0], n=2))
    assert "translation of q0" in [symmetry.name for symmetry in found.candidates]
    assert "not proven, but true at" in repr(found) and "away from the origin" in repr(found)
    assert found.sampled in repr(found)


def test_a_pulse_in_time_is_no_invariance():
    def pulse(t, q, v):
        return 0.5 * v @ v - np.exp(-((t - 20) ** 2)) * q[0]

    found = symmetries(la.Lagrangian(pulse, n=1))
    assert not found.energy and not len(found)


def test_time_that_cancels_is_an_invariance():
    def turning(t, q, v):
        return 0.5 * v @ v * (np.sin(t) ** 2 + np.cos(t) ** 2)

    assert symmetries(la.Lagrangian(turning, n=1)).energy


def test_points_are_drawn_where_the_motion_is():
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v + np.log(q[0] - 1e4) + np.log(1e4 + 2 - q[0]), n=2)
    path = la.integrate(system, "simpson", [1e4 + 1, 0.0], [0.3, 0.1], h=0.01, steps=100)
    found = symmetries(system, path=path)
    assert found.names == Q1
    with pytest.raises(ValueError, match="either path= or scale="):
        symmetries(system, path=path, scale=2.0)


def random_invariant(rng):
    """A Lagrangian with a known translation: of coordinates whose weighted differences alone occur."""
    direction = rng.integers(1, 4, 3).astype(float)
    a, b = rng.normal(size=2)

    def L(q, v):
        x, y = q[0] / direction[0] - q[1] / direction[1], q[1] / direction[1] - q[2] / direction[2]
        kinetic = 0.5 * v @ v * (2 + np.sin(x) * np.cos(y))
        return kinetic - np.exp(-((x - 30) ** 2)) + a * np.sqrt(1 + y * y) + np.where(x > 40, b * x**2, 0.0)

    return la.Lagrangian(L, n=3), direction


def test_random_lagrangians_with_one_translation():
    rng = generator()
    for _ in range(5):
        system, direction = random_invariant(rng)
        found = symmetries(system)
        assert len(found) == 1 and not found[0].A.any()
        assert np.abs(np.cross(found[0].b, direction)).max() < 1e-9


def test_identities_modulo_a_prime_agree_with_what_they_stand_for():
    """sin² + cos², parity, cosh² − sinh², tan, exp: what must vanish does; what must not, does not."""
    from leastaction.trace import trace

    vanish = [
        lambda q, v: np.sin(q[0]) ** 2 + np.cos(q[0]) ** 2 - 1,
        lambda q, v: np.sin(q[0] - q[1]) + np.sin(q[1] - q[0]),
        lambda q, v: np.cosh(q[0]) ** 2 - np.sinh(q[0]) ** 2 - 1,
        lambda q, v: np.tan(q[0]) * np.cos(q[0]) - np.sin(q[0]),
        lambda q, v: np.exp(q[0] - q[1]) * np.exp(q[1] - q[0]) - 1,
        lambda q, v: (q[0] + q[1]) ** 3 - q[0] ** 3 - 3 * q[0] ** 2 * q[1] - 3 * q[0] * q[1] ** 2 - q[1] ** 3,
        lambda q, v: np.where(q[0] > 0, q[1], v[0]) - np.where(q[0] > 0, q[1], 0.0) - np.where(q[0] > 0, 0.0, v[0]),
    ]
    stay = [
        lambda q, v: np.sin(q[0]) ** 2 + np.cos(q[1]) ** 2 - 1,
        lambda q, v: 1e-300 * np.exp(-(q[0] ** 2)),
        lambda q, v: np.where(q[0] > 0, q[1], 0.0),
        lambda q, v: np.hypot(q[0], q[1]) - q[0],
    ]
    points = np.random.default_rng(1).integers(1, identities.P, (50, 5)).astype(np.uint64)
    for functions, wanted in ((vanish, False), (stay, True)):
        for f in functions:
            assert identities.evaluate(trace(f, 2, {}, False), points).any() == wanted


@pytest.mark.parametrize("far", [100.0, 1e4, 1e9])
def test_no_reflection_or_exchange_is_invented(far):
    for well in (
        lambda x: np.exp(-((x - far) ** 2)),
        lambda x: np.maximum(x - far, 0) ** 2,
        lambda x: np.where(x > far, x, 0.0),
    ):
        found = symmetries(la.Lagrangian(lambda q, v, well=well: 0.5 * v @ v - well(q[0]), n=2))
        assert [one.name for one in found.discrete] == ["reflection of q1"]
