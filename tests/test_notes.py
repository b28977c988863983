"""States that loops note on their way: those that rows would hold, whatever the stepper and however it is asked."""

import numpy as np
import pytest

import leastaction as la
from leastaction.backends.galerkin import GalerkinStepper
from leastaction.backends.rows import Row
from leastaction.backends.stepper import Start
from leastaction.run import drive

AFTER = [1, 2, 5, 11, 12, 30]


def fput(count):
    rows = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    return la.Lagrangian.sum(
        [
            la.Term(lambda q, v: 0.5 * v[0] ** 2, over=np.arange(count)[:, None]),
            la.Term(lambda q, v: -0.5 * (q[1] - q[0]) ** 2 - 0.1 * (q[1] - q[0]) ** 4, over=rows),
        ],
        n=count,
    )


KEPLER, PENDULUM = la.problems.get("kepler"), la.problems.get("double-pendulum")
CASES = {
    "side by side": (KEPLER.system, "P8N8Q16Gau", 1),
    "fused": (KEPLER.system, "simpson", 1),
    "loops": (la.problems.get("outer-solar-system").system, "P4N4Q8Gau", 1),
    "lanes": (PENDULUM.system, "simpson", 4),
    "explicit": (KEPLER.system, "stormer-verlet", 1),
    "explicit sum": (fput(21), "stormer-verlet", 1),
    "sum": (fput(21), "P2N2Q4Gau", 1),
}


@pytest.mark.parametrize("case", CASES)
def test_noted_states_are_those_of_the_rows(case):
    system, name, lanes = CASES[case]
    method, n = la.method(name), system.n
    rng = np.random.default_rng(0)
    size = 1 if lanes == 1 else 6
    q = 1.0 + np.arange(n) + 0.1 * rng.normal(size=(size, n))
    p = 0.1 * rng.normal(size=(size, n))
    params = np.tile(system.values(), (size, 1))
    if lanes == 1:
        q, p, params = q[0], p[0], params[0]
    start = Start(0.0, q, p, np.zeros_like(q), 0.01, params)
    rows = np.zeros((size, 31, 2 * n))
    plain = GalerkinStepper(system, method, start, Row.whole(n), lanes)
    assert plain.advance(30, 1, 0, rows) == 30
    noting = GalerkinStepper(system, method, start, Row.whole(n), lanes)
    found = []
    for piece in (1, 10, 19):  # in pieces that end with a noted state, and between two
        wanted = [k for k in AFTER if noting.done < k <= noting.done + piece]
        assert noting.note(wanted)
        noting.advance(piece, 0, 0, np.zeros((size, 1, 2 * n)))
        found.append(noting.noted())
    assert np.array_equal(np.concatenate(found, axis=1), rows[:, AFTER])
    assert np.array_equal(noting.at(), plain.at())


def test_what_is_looked_at_does_not_depend_on_the_clock(monkeypatch):
    """A pace that vanishes on the way: the energy is found wrong at the same times, in short pieces and in long."""
    given = {"q0": [1.0, 0.0], "v0": [0.0, 1.0], "h": 0.1, "t_end": 3.0, "pace": lambda q: q[0] - 0.5}
    found = []
    for seconds in (1e-9, 10.0):
        monkeypatch.setattr(drive, "PIECE_SECONDS", seconds)
        with pytest.warns(la.EnergyWarning):
            path = la.integrate(KEPLER.system, "P4N4Q8Gau", **given)
        found.append(path.stats["energy_lost"])
    assert found[0] == found[1]
