"""Plots: sections, invariants, spectra; units; paths that share axes; the same method in the same colour everywhere."""

import csv
import gc
import math
import weakref

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.methods import family
from leastaction.papers import style
from leastaction.results.colours import COLOURS, colour, line
from leastaction.results.sections import crossings, strobe
from systems import catalogued


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def run(name, method="simpson", h=0.05, t_end=20.0, **options):
    problem = catalogued(name)
    return la.integrate(problem.system, method, problem.q0, problem.p0, h=h, t_end=t_end, **options)


def test_a_section_is_where_the_coordinate_passes():
    path = run("henon-heiles", "P4N4Q8Gau", 0.1, 300.0)
    found = crossings(path, 0, 0.05, direction=1)
    assert len(found) > 20
    np.testing.assert_allclose(found.q[:, 0], 0.05, atol=1e-9)
    assert (path.system.velocity(found.q, found.p)[:, 0] > 0).all()
    np.testing.assert_allclose(path.system.energy(found.q, found.p), path.energy()[0], rtol=1e-4)
    falling, either = crossings(path, 0, 0.05, -1), crossings(path, 0, 0.05, 0)
    assert len(either) == len(found) + len(falling)
    # the same as an ensemble finds on its way
    problem = catalogued("henon-heiles")
    events = {"s": la.Event(lambda q, p: q[0] - 0.05, direction=1)}
    paths = la.ensemble(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, h=0.1, t_end=300.0, events=events)
    section = paths.events["s"]
    assert section.count[0] == len(found)
    np.testing.assert_allclose(found.t, section.t[0], atol=1e-6)
    np.testing.assert_allclose(found.p, section.p[0], atol=1e-4)


def test_sections_of_angles_are_taken_modulo_a_turn():
    """A pendulum that turns over passes its lowest point in every turn, and its highest never counts."""
    problem = la.problems.get("double-pendulum", q0=(3, 2))
    path = la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=0.005, t_end=60)
    found = crossings(path, 0, 0.0, direction=0)
    assert len({round(x / (2 * math.pi)) for x in found.q[:, 0]}) > 1
    np.testing.assert_allclose(np.sin(found.q[:, 0]), 0, atol=1e-6)
    assert (np.cos(found.q[:, 0]) > 0).all()


def test_sections_do_not_depend_on_the_unit_of_length():
    """A length may change by more than π in a step: only angles come back at the other side of the picture."""
    kepler = catalogued("kepler")
    metres = la.integrate(kepler.system, "P4N4Q8Gau", kepler.q0, kepler.p0, h=0.1, t_end=100)
    system = la.Lagrangian(lambda q, v: 0.5e-6 * (v @ v) + 1 / np.sqrt(q @ q * 1e-6), n=2)
    millimetres = la.integrate(system, "P4N4Q8Gau", kepler.q0 * 1e3, kepler.p0 * 1e-3, h=0.1, t_end=100)
    small, large = crossings(metres, 1, 0.0), crossings(millimetres, 1, 0.0)
    assert len(small) == len(large) > 10
    np.testing.assert_allclose(large.t, small.t, atol=1e-9)


def test_backward_runs_have_sections_too():
    problem = catalogued("henon-heiles")
    path = la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=-0.05, steps=2000)
    assert len(crossings(path)) > 5
    times = strobe(path, 7.0).t
    np.testing.assert_allclose(times, -7.0 * np.arange(15))


def test_a_stroboscopic_section_follows_the_exact_motion():
    path, problem = run("driven-oscillator", "P4N4Q8Gau", 0.1, 100.0), catalogued("driven-oscillator")
    found = strobe(path, 2.5)
    q, p = problem.exact(found.t)
    np.testing.assert_allclose(found.q, q, atol=1e-4)
    np.testing.assert_allclose(found.p, p, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pendulum", {}, "two degrees of freedom"),
        ("kepler", {"coordinate": 2}, "must be one of 0 … 1"),
        ("kepler", {"direction": 2}, "direction must be"),
        ("kepler", {"show": 5}, "show must be one of"),
        ("kepler", {"period": -1.0}, "period must be a positive number"),
    ],
)
def test_sections_that_cannot_be(name, options, message):
    with pytest.raises(ValueError, match=message):
        run(name, t_end=2.0).plot("section", **options)


def test_plot_section():
    ax = run("henon-heiles").plot("section")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("y", "py")
    assert "x = 0, rising" in ax.get_title(loc="right")
    driven = run("driven-oscillator", t_end=100.0).plot("section")
    assert len(driven.get_lines()[0].get_xdata()) == int(100 / (2 * math.pi / 2**0.5)) + 1
    with pytest.raises(TypeError, match="takes no option 'value'"):
        run("kepler").plot("energy", value=1)


def test_plot_invariants():
    ax = run("kepler").plot("invariants")
    labels = [line_.get_label() for line_ in ax.get_lines()]
    assert labels == ["energy", "angular momentum", "laplace runge lenz x", "laplace runge lenz y"]
    assert ax.get_lines()[1].get_ydata().max() < 1e-13  # Noether: kept by the method
    assert ax.get_lines()[0].get_ydata().max() > 1e-8

    def kepler(q, v):
        return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)

    own = la.integrate(la.Lagrangian(kepler, n=2), "simpson", [1.0, 0.0], [0.0, 1.2], h=0.05, steps=100)
    assert [line_.get_label() for line_ in own.plot("invariants").get_lines()] == ["energy", "q0 p1 − q1 p0"]
    with pytest.raises(ValueError, match="conserves nothing that is known"):
        run("driven-oscillator").plot("invariants")


def test_plot_spectrum_finds_the_frequencies():
    """The two modes of the linear double pendulum, with their amplitudes."""
    problem = catalogued("linear-double-pendulum")
    path = la.integrate(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, h=0.05, t_end=200.03)
    ax = path.plot("spectrum")
    assert ax.get_xlabel() == "frequency (Hz)" and ax.get_ylabel() == "amplitude of $q$ (rad)"
    f, amplitude = (np.asarray(x) for x in ax.get_lines()[0].get_data())
    peaks = f[1:-1][(amplitude[1:-1] > amplitude[2:]) & (amplitude[1:-1] > amplitude[:-2]) & (amplitude[1:-1] > 0.05)]
    omega = 2 * math.pi * np.sqrt(2 + np.array([-1, 1]) * 2**0.5)
    np.testing.assert_allclose(peaks, omega / (2 * math.pi), atol=0.01)
    with pytest.raises(ValueError, match="at least 8 states"):
        run("pendulum", t_end=0.1).plot("spectrum")


def test_units_are_told_where_they_are_known():
    path = run("double-pendulum", t_end=2.0)
    assert path.plot("configuration").get_xlabel() == "time $t$ (s)"
    assert path.plot("configuration").get_ylabel() == "position $q$ (rad)"
    assert path.plot("phase").get_ylabel() == "momentum $p$ (kg m²/s)"
    assert run("kepler").plot().get_xlabel() == "time $t$"


def test_the_energy_of_driven_systems_changes():
    assert "energy change" in run("driven-oscillator").plot("energy").get_ylabel()
    assert "energy error" in run("kepler").plot("energy").get_ylabel()


def test_paths_that_share_axes_are_told_apart():
    _, ax = plt.subplots()
    for method, h in (("simpson", 0.05), ("rk4", 0.05), ("simpson", 0.1)):
        run("kepler", method, h).plot("energy", ax)
    lines = ax.get_lines()
    assert [one.get_color() for one in lines[:2]] == [colour("simpson"), colour("rk4")]
    assert len({one.get_color() for one in lines}) == 3  # a colour is not given twice
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(set(labels)) == 3 and labels[1] == "rk4, h = 0.05"
    assert ax.get_title(loc="left") == "kepler" and ax.get_title(loc="right") == ""


def test_coordinates_of_paths_that_share_axes():
    _, ax = plt.subplots()
    run("kepler").plot(ax=ax)
    assert [one.get_color() for one in ax.get_lines()] == list(COLOURS[:2])
    run("kepler", "rk4").plot(ax=ax)
    assert [one.get_color() for one in ax.get_lines()] == [colour("simpson")] * 2 + [colour("rk4")] * 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        *("P2N3Q4Lob: x", "P2N3Q4Lob: y"),
        *("rk4: x", "rk4: y"),
    ]
    ax.clear()
    run("kepler").plot(ax=ax)
    assert [one.get_color() for one in ax.get_lines()] == list(COLOURS[:2])


@pytest.mark.parametrize("what", ["configuration", "energy", "phase", "section"])
def test_no_two_curves_of_paths_that_share_axes_look_alike(what):
    """Of one method with two steps, of two methods of one degree, of two runs that differ in their start alone."""
    _, ax = plt.subplots()
    for method, h in (("simpson", 0.05), ("simpson", 0.1), ("P2N2Q4Gau", 0.05), ("simpson", 0.05)):
        run("kepler", method, h).plot(what, ax)
    looks = [(one.get_color(), str(one.get_linestyle())) for one in ax.get_lines()]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(set(looks)) == len(looks) == len(set(labels)) == len(labels)
    assert any("h = 0.05, run 2" in label for label in labels)


def test_paths_of_two_systems_are_named_by_them():
    _, ax = plt.subplots()
    for name in ("kepler", "henon-heiles"):
        run(name).plot("energy", ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["kepler, P2N3Q4Lob", "henon-heiles, P2N3Q4Lob"]
    assert ax.get_title(loc="left") == "kepler, henon-heiles"


def test_the_legend_of_many_curves_names_the_paths():
    _, ax = plt.subplots()
    for method in ("simpson", "midpoint"):
        run("pleiades", method, 0.01, t_end=0.1).plot(ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["P2N3Q4Lob", "P1N1Q2Gau"]


def test_axes_and_paths_are_let_go():
    figure, ax = plt.subplots()
    path = run("kepler")
    path.plot("energy", ax)
    path.plot("energy", ax)
    gone = weakref.ref(path), weakref.ref(ax)
    plt.close(figure)
    del figure, ax, path
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_one_colour_and_marker_for_each_degree():
    """In every picture; the papers' figures included. RK4's are its own."""
    for member in family(6):
        assert colour(member) == colour(f"P{member.s}N{member.s}Q{2 * member.s}Gau") != colour("rk4")
        assert style.line(member)["color"] == colour(member)
        assert (
            line(member)["marker"]
            == line(f"P{member.s}N{member.s}Q{2 * member.s}Gau")["marker"]
            != line("rk4")["marker"]
        )
    degrees = [f"P{s}N{s}Q{2 * s}Gau" for s in range(1, 7)]
    assert len({colour(name) for name in degrees}) == len({line(name)["marker"] for name in degrees}) == 6
    marks = {(line(member)["color"], line(member)["marker"], line(member)["linestyle"]) for member in family(6, 7)}
    assert len(marks) == 2 * 6  # Gauss and Lobatto are told apart without colours
    assert run("kepler").plot("energy").get_lines()[0].get_color() == colour("simpson")


def test_to_csv(tmp_path):
    path = run("kepler", every=3)
    path.to_csv(tmp_path / "run.csv")
    rows = list(csv.reader((tmp_path / "run.csv").read_text("utf-8").splitlines()))
    assert rows[0] == ["t", "q0", "q1", "p0", "p1", "energy"]
    table = np.array([[float(x) for x in row] for row in rows[1:]])
    right = np.concatenate([path.t[:, None], path.q, path.p, path.energy()[:, None]], axis=1)
    assert table.tobytes() == right.tobytes()
    with pytest.raises(FileNotFoundError, match="no folder"):
        path.to_csv(tmp_path / "nowhere" / "run.csv")


def test_to_csv_keeps_every_digit(tmp_path):
    path = run("kepler", t_end=1.0, digits=40)
    path.to_csv(tmp_path / "run.csv")
    row = list(csv.reader((tmp_path / "run.csv").read_text("utf-8").splitlines()))[-1]
    with path.reals.working():
        assert mpmath.mpf(row[1]) == path.q[-1, 0]


def test_to_csv_of_some_degrees_of_freedom(tmp_path):
    system = la.Quadratic(np.eye(3), np.diag([1.0, 2.0, 3.0]))
    path = la.integrate(system, "midpoint", [1.0, 0.0, 1.0], [0.0, 0.0, 0.0], h=0.1, steps=3, output=[2])
    path.to_csv(tmp_path / "run.csv")
    assert (tmp_path / "run.csv").read_text("utf-8").splitlines()[0] == "t,q2,p2"


def test_ensembles_to_xarray():
    problem = catalogued("kepler")
    paths = la.ensemble(
        problem.system, "simpson", [problem.q0, 1.1 * problem.q0], problem.p0, h=0.05, steps=20, every=5
    )
    data = paths.to_xarray()
    assert data.q.dims == ("trajectory", "t", "dof") and data.energy.dims == ("trajectory", "t")
    np.testing.assert_array_equal(data.q.values, paths.q)
    np.testing.assert_array_equal(data.energy.values, paths.energy())


@pytest.mark.parametrize("what", ["configuration", "phase"])
def test_long_steps_are_drawn_as_curves(what):
    """Thirty states of order 24 are a motion, not a polygon: between them the curve is the method's polynomial."""
    problem = catalogued("kepler")
    path = la.integrate(problem.system, "P12N12Q24Gau", problem.q0, problem.p0, h=0.7, t_end=20)
    line = path.plot(what).lines[0]
    x, y = line.get_data()
    stored = (path.t, path.q[:, 0]) if what == "configuration" else (path.q[:, 0], path.p[:, 0])
    assert len(x) > 8 * len(path)
    assert all(np.isin(some, all_of).all() for some, all_of in zip(stored, (x, y), strict=True))
    if what == "configuration":
        assert np.abs(y - path(x)[:, 0]).max() < 1e-12


def test_long_runs_and_kept_states_are_drawn_as_stored():
    problem = catalogued("kepler")
    path = la.integrate(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, h=0.05, t_end=20, every=10)
    assert len(path.plot().lines[0].get_xdata()) == len(path)
