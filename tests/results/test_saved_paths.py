"""Ensembles in one file: what is read back is what was saved, to the last bit, and damaged files are refused."""

import json

import numpy as np
import pytest

import leastaction as la


def pendulum(q, v, g):
    return 0.5 * v[0] ** 2 + g * np.cos(q[0])


def system():
    return la.Lagrangian(pendulum, 1, {"g": 9.81}, names=["theta"])


STARTS = np.array([[0.5], [1.0], [2.0]])


def plain():
    return la.ensemble(system(), "simpson", STARTS, [0.0], h=0.05, steps=20, reduce={"E": la.EnergyRange()})


def stopped():
    turn = {"turn": la.Event(lambda q, p: p[0]), "deep": la.Event(lambda q, p: q[0] - 0.7, stop=True)}
    return la.ensemble(system(), "P4N4Q8Gau", STARTS, [0.0], h=0.05, t_end=3.0, events=turn)


def thrown():
    wall = {"wall": la.Impact(lambda q: q[0] + 0.3, restitution=0.8)}
    return la.ensemble(system(), "P4N4Q8Gau", STARTS, [0.0], h=0.05, t_end=3.0, events=wall)


def failed():
    falling = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + 1 / q[0], 1)
    return la.ensemble(falling, "midpoint", [[1.0], [5.0]], [0.0], h=0.05, steps=40)


def paced():
    kepler = la.problems.get("kepler")
    q0 = kepler.q0 * np.array([[1.0], [1.1]])
    return la.ensemble(kepler.system, "P4N4Q8Gau", q0, kepler.p0, h=0.05, t_end=2.0, pace=lambda q: np.sqrt(q @ q))


def exact():
    return la.ensemble(system(), "simpson", STARTS, [0.0], h="0.05", steps=3, digits=30)


def driven():
    pushed = la.Lagrangian(pendulum, 1, {"g": 9.81}, force=lambda q, v, u: u, inputs={"u": 1})
    return la.ensemble(
        pushed, "simpson", STARTS, [0.0], h=0.05, steps=4, inputs={"u": np.arange(12.0).reshape(3, 4, 1)}
    )


def last_only():
    return la.ensemble(system(), "simpson", STARTS, [0.0], h=0.05, steps=20, final_only=True, tangent=True)


def of_terms():
    terms = [la.Term(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, over=[0, 1])]
    return la.ensemble(la.Lagrangian.sum(terms, 2), "simpson", np.ones((2, 2)), [0.0, 0.0], h=0.1, steps=3)


def same(a, b):
    return (np.asarray(a) == np.asarray(b)) | ((np.asarray(a) != np.asarray(a)) & (np.asarray(b) != np.asarray(b)))


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")
@pytest.mark.parametrize(
    "made", [plain, stopped, thrown, failed, paced, exact, driven, last_only, of_terms], ids=lambda made: made.__name__
)
def test_what_is_read_back_is_what_was_saved(made, tmp_path):
    paths = made()
    paths.save(tmp_path / "runs.npz")
    again = la.Paths.load(tmp_path / "runs.npz")
    assert repr(again) == repr(paths) and again.stats.keys() == paths.stats.keys()
    for name in ("t", "q", "p", "values", "status", "steps", "failed", "end_time"):
        assert same(getattr(again, name), getattr(paths, name)).all()
    for name in paths.last:
        assert same(again.last[name], paths.last[name]).all()
    assert again.events.keys() == paths.events.keys() and again.reduced.keys() == paths.reduced.keys()
    assert all(same(again.events[name].table(), found.table()).all() for name, found in paths.events.items())
    assert all((again.reduced[name] == found).all() for name, found in paths.reduced.items())
    for one, other in zip(again, paths, strict=True):
        assert (one.q == other.q).all() and (one.energy() == other.energy()).all() and one.params == other.params
        if len(other) > 2:
            middle = (other.t[0] + other.t[1]) / 2
            assert (one(middle) == other(middle)).all()


def test_a_csv_is_a_table_without_energies(tmp_path):
    plain().save(tmp_path / "runs.csv")
    assert (tmp_path / "runs.csv").read_text("utf-8").startswith("trajectory,t,theta,p_theta\n0,0.0,0.5,")


def changed(file, **arrays):
    """The same file with other arrays; `header` holds entries of the header."""
    with np.load(file) as data:
        kept = dict(data)
    header = json.loads(str(kept["header"])) | arrays.pop("header", {})
    np.savez(file, **kept | arrays | {"header": np.array(json.dumps(header))})


@pytest.mark.parametrize(
    "damage",
    [
        {"q": np.zeros((3, 20, 1))},
        {"p": np.zeros((3, 21, 1), np.float32)},
        {"status": np.array([0, 0, 77], np.int8)},
        {"steps": np.array([1, 2, -3])},
        {"values": np.zeros((3, 2))},
        {"last_q": np.zeros((2, 1))},
        {"reduced_0": np.zeros(3)},
        {"header": {"format": "leastaction path 1"}},
        {"header": {"names": ["a", "b"]}},
        {"header": {"names": "x"}},
        {"header": {"method": "nothing"}},
        {"header": {"events": [["turn", False]]}},
        {"header": {"paced": {}}},
    ],
)
def test_damaged_files_are_refused(damage, tmp_path):
    plain().save(tmp_path / "runs.npz")
    changed(tmp_path / "runs.npz", **damage)
    with pytest.raises(ValueError, match=r"runs\.npz is not a path saved by leastaction, or is damaged"):
        la.Paths.load(tmp_path / "runs.npz")


def test_a_path_and_paths_are_told_apart(tmp_path):
    plain().save(tmp_path / "runs.npz")
    with pytest.raises(ValueError, match="expected 'leastaction path 1'"):
        la.Path.load(tmp_path / "runs.npz")
    plain()[0].save(tmp_path / "one.npz")
    with pytest.raises(ValueError, match="expected 'leastaction paths 1'"):
        la.Paths.load(tmp_path / "one.npz")
