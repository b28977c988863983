"""Tables of paths and ensembles, and the names of coordinates: given once, used wherever they are shown."""

import csv
import json

import numpy as np
import pytest
import sympy

import leastaction as la
from leastaction.results.viewer import path_page

NAMES = ("theta1", "theta2")
COLUMNS = ["theta1", "theta2", "p_theta1", "p_theta2"]


def double_pendulum(q, v, l, g):
    T = l**2 * (v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * np.cos(q[0] - q[1]))
    return T + g * l * (2 * np.cos(q[0]) + np.cos(q[1]))


@pytest.fixture(scope="module")
def system():
    return la.Lagrangian(double_pendulum, 2, {"l": 0.25, "g": 9.81}, names=NAMES)


@pytest.fixture(scope="module")
def path(system):
    return la.integrate(system, "simpson", [2.0, 2.5], v0=[0, 0], h=0.01, steps=50)


@pytest.fixture(scope="module")
def paths(system):
    starts = np.array([2.0, 2.5]) + np.linspace(0, 0.3, 7)[:, None]
    return la.ensemble(system, "simpson", starts, v0=[0, 0], h=0.01, steps=50)


def read(file):
    return list(csv.reader(file.read_text("utf-8").splitlines()))


def test_names_stand_in_every_table(path, tmp_path):
    path.to_csv(tmp_path / "run.csv")
    assert read(tmp_path / "run.csv")[0] == ["t", *COLUMNS, "energy"]
    frame = path.to_pandas()
    assert frame.index.name == "t" and list(frame.columns) == [*COLUMNS, "energy"]
    assert (frame["p_theta2"].to_numpy() == path.p[:, 1]).all() and (frame.index == path.t).all()
    assert (path.to_xarray().q.sel(dof="theta2") == path.q[:, 1]).all()


def test_names_stand_in_pictures_and_pages(path):
    import matplotlib.pyplot as plt

    for what, shown in (
        ("configuration", NAMES),
        ("history", NAMES),
        ("phase", ("theta1, p_theta1", "theta2, p_theta2")),
    ):
        assert tuple(line.get_label() for line in path.plot(what).get_lines()) == shown
    plt.close("all")
    page = path_page(path)
    assert all(json.dumps(word) in page for word in COLUMNS)


def test_names_stay_with_files_and_archives_and_parts(system, path, tmp_path):
    path.save(tmp_path / "run.npz")
    assert la.Path.load(tmp_path / "run.npz").system.names == NAMES
    stored = la.integrate(
        system, "simpson", [2.0, 2.5], v0=[0, 0], h=0.01, steps=5, output=[1], store=tmp_path / "run.zarr"
    )
    assert list(la.open(tmp_path / "run.zarr").to_pandas().columns) == ["theta2", "p_theta2"]
    assert stored.to_xarray().dof.item() == "theta2"
    paced = la.integrate(system, "simpson", [2.0, 2.5], v0=[0, 0], h=0.01, steps=3, pace=lambda q: 1 + q[0] ** 2)
    assert list(paced.to_pandas().columns)[:2] == list(NAMES) and paced.pace.system.names[:2] == NAMES


def test_names_of_other_systems(tmp_path):
    x, vx = sympy.symbols("x vx")
    assert la.Lagrangian.from_sympy((vx**2 - x**2) / 2, [x], [vx], names=["x"]).names == ("x",)
    masses = la.Term(lambda q, v: 0.5 * v[0] ** 2, over=[0, 1])
    for system in (la.Lagrangian.sum([masses], 2, names=["a", "b"]), la.Quadratic([1.0, 1.0], [1.0, 2.0], names="ab")):
        path = la.integrate(system, "simpson", [1.0, 2.0], [0.0, 0.5], h=0.1, steps=2)
        path.save(tmp_path / "run.npz")
        assert list(la.Path.load(tmp_path / "run.npz").to_pandas().columns) == ["a", "b", "p_a", "p_b", "energy"]


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", ""], ["a", 1], ["a", "t"], ["a", "p_a"], ["energy", "x"]])
def test_names_that_would_be_unclear_are_refused(names):
    with pytest.raises(ValueError, match="names must"):
        la.Lagrangian(double_pendulum, 2, {"l": 1.0, "g": 1.0}, names=names)


def test_some_degrees_of_freedom_under_other_names(path, paths, tmp_path):
    path.to_csv(tmp_path / "run.csv", dofs=[1], names=["lower"])
    rows = read(tmp_path / "run.csv")
    assert rows[0] == ["t", "lower", "p_lower", "energy"]
    assert [float(row[1]) for row in rows[1:]] == path.q[:, 1].tolist()
    assert list(paths.to_pandas(dofs=[-1, 0], names={0: "upper"}).columns)[:2] == ["theta2", "upper"]
    with pytest.raises(ValueError):
        path.to_csv(tmp_path / "run.csv", names=["one"])


def test_a_table_of_an_ensemble(paths, tmp_path):
    frame = paths.to_pandas()
    assert frame.index.names == ["trajectory", "t"] and len(frame) == 7 * 51
    assert (frame.loc[3].to_numpy()[:, :2] == paths.q[3]).all()
    assert (frame["energy"].to_numpy().reshape(7, 51) == paths.energy()).all()
    paths.to_csv(tmp_path / "runs.csv")
    rows = read(tmp_path / "runs.csv")
    assert rows[0] == ["trajectory", "t", *COLUMNS, "energy"] and rows[-1][0] == "6"
    assert np.array(rows[1:], float).tobytes() == frame.reset_index().to_numpy(float).tobytes()


def test_a_table_keeps_digits_and_needs_pandas(system, monkeypatch):
    import sys

    path = la.integrate(system, "simpson", [2, 2.5], v0=[0, 0], h="0.01", steps=2, digits=30)
    assert path.to_pandas()["theta1"].iloc[-1] == path.q[-1, 0]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"leastaction\[pandas\]"):
        path.to_pandas()


def test_trajectories_of_an_ensemble_are_drawn_over_each_other(paths):
    import matplotlib.pyplot as plt

    ax = paths.plot("configuration", most=3)
    lines = ax.get_lines()
    assert len(lines) == 6 and ax.get_title("left").endswith("3 of 7 trajectories")
    for line, q in zip(lines[::2], paths.q[[0, 3, 6], :, 0], strict=True):
        assert {q[0], q[-1]} <= set(line.get_ydata())
    assert len({line.get_color() for line in lines}) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(NAMES)
    with pytest.raises(ValueError, match="expected one of"):
        paths.plot("motion")
    plt.close("all")


def test_an_ensemble_says_its_shape_in_words(paths):
    assert "7 trajectories" in repr(paths) and "each 51 states of 2 degrees of freedom" in repr(paths)
