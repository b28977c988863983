"""Frames, drawings, packed numbers and looks: what pages are made of, before a browser sees them."""

import collections
import itertools
import json
import math
import struct
import sys

import numpy as np
import pytest

import leastaction as la
from leastaction.errors import measuring
from leastaction.results import looks
from leastaction.results.inside_steps import states
from leastaction.results.looks import Look
from leastaction.results.viewer.bodies import mesh
from leastaction.results.viewer.drawing import drawing, hint, plain
from leastaction.results.viewer.frames import STRAIGHT, frames
from leastaction.results.viewer.pack import Pack
from leastaction.results.viewer.page import bundle
from leastaction.results.viewer.scene import SceneOptions, extremes, scene
from linear_systems import chain
from systems import catalogued

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


ENCOUNTERS = ("arenstorf", "butterfly", "moth", "pythagorean", "yin-yang")


def problem_path(name, method="simpson", parts=50, periods=2.0, **options):
    problem = catalogued(name)
    period = problem.period if problem.period and math.isfinite(problem.period) else 1.0
    return la.integrate(
        problem.system, method, problem.q0, problem.p0, h=period / parts, t_end=periods * period, **options
    )


def no_pairs(path):
    return lambda t, q, p: q[:, None, :]


@pytest.mark.parametrize("method", ["simpson", "P8N8Q16Gau", "rk4"])
@pytest.mark.parametrize("every", [1, 7])
def test_frames_lie_on_the_path(method, every):
    """Frames are states of the method's own polynomial at their times; stored ones are kept as they are."""
    path = problem_path("double-pendulum", method, parts=20, every=every)
    found = frames(path, 20000, no_pairs(path))
    assert found.whole
    np.testing.assert_allclose(found.q, path(found.t), atol=1e-13)
    np.testing.assert_allclose(np.diff(found.t)[:-1], found.dt, rtol=1e-9)
    assert found.t[0] == path.t[0] and found.t[-1] == path.t[-1]
    for stored, t in zip(path.q, path.t, strict=True):
        assert (np.abs(found.t - t) > 1e-9).all() or (found.q[np.abs(found.t - t).argmin()] == stored).all()


def test_momenta_between_states_are_those_of_the_motion():
    problem = catalogued("pendulum")
    path = la.integrate(problem.system, "P8N8Q16Gau", problem.q0, problem.p0, h=0.1, t_end=3)
    found = frames(path, 20000, no_pairs(path))
    assert len(found) > 4 * len(path)
    np.testing.assert_allclose(found.p, problem.exact(found.t)[1], atol=1e-5)
    low = la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=0.02, t_end=3)
    times = np.linspace(0, 3, 1001)
    np.testing.assert_allclose(states(low, times)[1], problem.exact(times)[1], atol=2e-3)


def test_frames_are_no_more_than_needed_nor_allowed():
    path = problem_path("double-pendulum", parts=5000, periods=3)
    few = frames(path, 100_000, no_pairs(path))
    assert few.whole and 200 < len(few) < len(path) / 4
    middle = (few.t[1:] + few.t[:-1]) / 2
    straight = (few.q[1:] + few.q[:-1]) / 2
    assert np.abs(path(middle) - straight).max() < 2 * STRAIGHT * np.ptp(path.q, axis=0).max()
    tight = frames(path, 64, no_pairs(path))
    assert len(tight) <= 66 and not tight.whole


@pytest.mark.parametrize(("method", "per_turn"), [("P4N4Q8Gau", 200), ("P8N8Q16Gau", 12)])
@pytest.mark.parametrize("direction", [1, -1])
def test_frames_of_paced_paths(method, per_turn, direction):
    """Frames equally spaced in time show the motion itself, forwards and backwards."""
    problem = la.problems.get("kepler", eccentricity="0.6")
    h, t_end = direction * 2 * np.pi / per_turn, direction * 3 * problem.period
    path = la.integrate(problem.system, method, problem.q0, problem.p0, h=h, t_end=t_end, pace=lambda q: np.sqrt(q @ q))
    found = frames(path, 20_000, lambda t, q, p: q)
    assert found.whole and np.allclose(np.diff(found.t[:-1]), found.dt)
    np.testing.assert_allclose(found.q, path(found.t), atol=2e-3)
    energy = problem.system.energy(found.q, found.p)
    np.testing.assert_allclose(energy, path.energy()[0], rtol=2e-2)


def test_impacts_are_not_smoothed():
    """A ball on a floor, with and without a pace: no frame is below it."""
    ball = la.Lagrangian(lambda q, v: 0.5 * v @ v - 9.81 * q[1], n=2)
    for pace in (None, lambda q: 1 + 0 * q[1]):
        floor = {"floor": la.Impact(lambda q: q[1])}
        path = la.integrate(ball, "simpson", [0.0, 1.0], v0=[1.0, 0.0], h=0.05, t_end=3, events=floor, pace=pace)
        found = frames(path, 5000, lambda t, q, p: q)
        assert found.q[:, 1].min() > -1e-9
        np.testing.assert_allclose(found.q, path(found.t), atol=1e-9)


def test_backward_and_short_paths():
    problem = catalogued("kepler")
    back = la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=-0.05, steps=100)
    found = frames(back, 5000, no_pairs(back))
    assert found.dt < 0 and found.t[-1] == back.t[-1] == -5.0
    np.testing.assert_allclose(found.q, back(found.t), atol=1e-13)
    for steps in (1, 2):
        short = la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=0.05, steps=steps)
        assert scene([short], SceneOptions(), Pack())["runs"][0]["count"] >= 2


@pytest.mark.parametrize("name", la.problems.names())
def test_every_problem_brings_its_drawing(name):
    """The drawing works on one state and on many alike, and the page can be made."""
    with measuring():  # close encounters want shorter steps than these
        path = problem_path(name, parts=3000 if name in ENCOUNTERS else 50, periods=0.1 if name in ENCOUNTERS else 2.0)
    seen = looks.look(path.system)
    assert not seen.unknown and seen.draw is not None and len(seen.names) == len(seen.momenta) == path.system.n
    made = drawing(None, seen, path.system.n, path.params, (0.0, path.q[0], path.p[0]))
    together = made.points(path.t, path.q, path.p)
    alone = np.stack(
        [made.points(*(x[k : k + 1] for x in (path.t, path.q, path.p)))[0] for k in range(0, len(path), 9)]
    )
    np.testing.assert_allclose(together[::9], alone, atol=1e-14)
    made_scene = scene([path], SceneOptions(), Pack())
    assert made_scene["runs"][0]["dim"] == together.shape[2]
    for kept in seen.invariants.values():
        values = kept(path.q, path.p, path.params)
        assert values.shape == (len(path),)


def test_looks_belong_to_the_lagrangian_not_to_the_name():
    """A system that is called like a problem but is another one has a plain look; a loaded path keeps its look."""

    def pendulum(q, v, g):
        return 0.5 * v[0] ** 2 + g * np.cos(q[0])

    assert looks.look(la.Lagrangian(pendulum, n=1, params={"g": 9.81})).unknown
    assert not looks.look(catalogued("pendulum").system).unknown


def test_a_loaded_path_keeps_its_look(tmp_path):
    problem_path("pendulum").save(tmp_path / "run.npz")
    assert looks.look(la.Path.load(tmp_path / "run.npz").system).title == "Nonlinear pendulum"


def test_the_top_keeps_its_length():
    path = problem_path("lagrange-top")
    made = drawing(None, looks.look(path.system), 3, path.params, (0.0, path.q[0], path.p[0]))
    points = made.points(path.t, path.q, path.p)
    np.testing.assert_allclose(np.linalg.norm(points[:, 1], axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(points[:, 1, 2], np.cos(path.q[:, 1]), rtol=1e-14)
    hub = points[:, 2]
    np.testing.assert_allclose(np.linalg.norm(points[:, 3:] - hub[:, None], axis=2), 0.36, rtol=1e-13)
    np.testing.assert_allclose(np.einsum("kid,kd->ki", points[:, 3:] - hub[:, None], points[:, 1]), 0, atol=1e-14)


def own(fn, params=None, n=2):
    path = problem_path("double-pendulum")
    return drawing(fn, looks.look(path.system), n, params or path.params, (0.0, path.q[0], path.p[0])), path


def test_drawings_take_what_they_name():
    def draw(q, t, l1, p):
        return [(0, 0, t), (l1 * q[0], q[1], p[0])], [(0, 1, "spring")]

    made, path = own(draw)
    points = made.points(path.t, path.q, path.p)
    assert points.shape == (len(path), 2, 3) and made.links == ((0, 1, "spring"),) and made.trails == (1,)
    np.testing.assert_array_equal(points[:, 0, 2], path.t)
    np.testing.assert_array_equal(points[:, 1, 2], path.p[:, 0])


def test_drawings_that_are_not_written_for_arrays_are_called_state_by_state():
    def draw(angles):
        return np.array([[math.sin(angles[0]), -math.cos(angles[0])] if angles[0] > 0 else [0.0, -1.0]])

    made, path = own(draw)
    points = made.points(path.t, path.q, path.p)
    right = np.where(path.q[:, :1] > 0, np.stack([np.sin(path.q[:, 0]), -np.cos(path.q[:, 0])], axis=1), [0.0, -1.0])
    np.testing.assert_array_equal(points[:, 0], right)


def test_drawings_that_would_be_wrong_on_arrays_are_noticed():
    made, path = own(lambda q: [(q[0] / len(np.atleast_1d(q[0])), q[1])])
    np.testing.assert_array_equal(made.points(path.t, path.q, path.p)[:, 0], path.q)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (3, "draw= must be a function"),
        (lambda q: 5, "must give points"),
        (lambda q: [(1, 2, 3, 4)], "two or three numbers"),
        (lambda q: [], "two or three numbers"),
        (lambda q: ([(0, 0), (1, 1)], [(0, 2)]), "a link joins some of the points 0 … 1"),
        (lambda q: ([(0, 0), (1, 1)], [(0, 1, "rubber")]), "a link is one of 'rod', 'spring', 'thread'"),
        (lambda q, mass: [(0, 0)], "draw= asks for 'mass'"),
    ],
)
def test_bad_drawings_say_what_is_wrong(draw, message):
    with pytest.raises((TypeError, ValueError), match=message):
        own(draw)


@pytest.mark.parametrize(
    ("n", "shape"), [(1, (1, 2)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (6, (3, 2)), (5, (5, 2)), (40, (40, 2))]
)
def test_without_a_drawing_the_coordinates_are_drawn(n, shape):
    made = plain(looks.Look(), n)
    q = np.random.default_rng(n).standard_normal((3, n))
    assert made.points(np.zeros(3), q, q + 1).shape == (3, *shape)


def test_packed_numbers_come_back():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 3)) * [1, 1e6, 1e-6] + [0, 1e7, 0]
    X[7, 1] = np.nan
    pack = Pack()
    told = pack.coarse(X)
    levels = np.frombuffer(pack.buffers[told["u2"]], "<u2").reshape(100, 3)
    lo, hi = np.array(told["lo"]), np.array(told["hi"])
    back = np.where(levels == 65535, np.nan, lo + (hi - lo) * levels / 65534)
    assert np.isnan(back[7, 1]) and np.isnan(back).sum() == 1
    assert (np.nanmax(np.abs(back - X), axis=0) <= 0.51 / 65534 * (hi - lo)).all()


def test_messages_are_aligned():
    pack = Pack()
    told = {"a": pack.coarse(np.arange(5.0)), "b": pack.fine([1.5, 2.5]), "worst": math.inf, "name": HOSTILE}
    data = pack.to_bytes(told)
    length = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8 : 8 + length])
    assert (8 + length) % 8 == 0 and head["lengths"] == [10, 16] and head["scene"]["worst"] is None
    assert np.frombuffer(data[8 + length + 16 :], "<f8").tolist() == [1.5, 2.5]
    assert "<" not in pack.to_text(told) and json.loads(pack.to_text(told))["scene"]["name"] == HOSTILE


def test_thinned_curves_keep_their_extremes():
    rng = np.random.default_rng(2)
    t, y = np.arange(100_003.0), rng.standard_normal(100_003)
    some, kept = extremes(t, y, 500)
    assert len(some) <= 1100 and kept.min() == y.min() and kept.max() == y.max()
    assert some[0] == 0 and some[-1] == t[-1] and (np.diff(some) > 0).all()
    assert (y[some.astype(int)] == kept).all()


def test_the_energy_of_driven_systems_changes():
    def curve(path):
        return scene([path], SceneOptions(), Pack())["runs"][0]["curves"][0]["name"]

    assert "energy change" in curve(problem_path("driven-oscillator"))
    assert "energy error" in curve(problem_path("kepler"))
    damped = la.Quadratic(np.eye(2), np.eye(2), C=0.1 * np.eye(2))
    assert "energy change" in curve(la.integrate(damped, "midpoint", [1.0, 0.0], [0.0, 0.0], h=0.1, steps=50))


def test_momenta_of_own_systems_are_found():
    def kepler(q, v):
        return 0.5 * (v @ v) + 1 / np.sqrt(q @ q)

    path = la.integrate(la.Lagrangian(kepler, n=2), "simpson", [1.0, 0.0], [0.0, 1.2], h=0.05, steps=200)
    curves = scene([path], SceneOptions(), Pack())["runs"][0]["curves"]
    assert [curve["name"] for curve in curves[1:]] == ["q0 p1 − q1 p0"]
    assert curves[1]["largest"] < 1e-13


@pytest.mark.parametrize("name", ["kepler", "lagrange-top"])
def test_pages_are_written_whole(name, tmp_path):
    path = problem_path(name)
    path.to_html(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text("utf-8")
    assert text.count("<script") == 2 and "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert [file.name for file in tmp_path.iterdir()] == ["run.html"]
    with pytest.raises(FileNotFoundError, match="no folder"):
        path.to_html(tmp_path / "nowhere" / "run.html")
    with pytest.raises(ValueError, match="megabytes"):
        path.to_html(tmp_path / "run.html", megabytes=0)


def test_size_is_bounded(tmp_path):
    """A long run, and an ensemble, fit in what is allowed, whatever they hold."""
    path = problem_path("double-pendulum", parts=200, periods=300)
    for megabytes in (0.1, 0.5):
        path.to_html(tmp_path / "run.html", megabytes=megabytes)
        assert (tmp_path / "run.html").stat().st_size < megabytes * 1e6 + 250_000
    problem = catalogued("kepler")
    starts = problem.q0 * np.linspace(1, 1.2, 3000)[:, None]
    paths = la.ensemble(problem.system, "simpson", starts, problem.p0, h=0.05, steps=400)
    paths.to_html(tmp_path / "cloud.html", megabytes=0.5)
    assert (tmp_path / "cloud.html").stat().st_size < 750_000


def test_other_systems_and_precisions(tmp_path):
    """Chains with some degrees of freedom stored, many degrees, runs of 30 digits, stored runs."""
    system = chain(20)
    path = la.integrate(system, "midpoint", np.linspace(0, 1, 20), np.zeros(20), h=0.1, steps=50, output=[3, 17])
    assert [one["q"] for one in scene([path], SceneOptions(), Pack())["coordinates"]] == ["q₃", "q₁₇"]
    whole = la.integrate(system, "midpoint", np.linspace(0, 1, 20), np.zeros(20), h=0.1, steps=50)
    made = scene([whole], SceneOptions(), Pack())
    assert made["hidden"] == 8 and made["stage"]["what"] == "all coordinates"
    digits = problem_path("pendulum", parts=16, periods=1, digits=30)
    assert "30 digits" in scene([digits], SceneOptions(), Pack())["runs"][0]["facts"]
    problem = catalogued("kepler")
    stored = la.integrate(
        problem.system, "simpson", problem.q0, problem.p0, h=0.05, steps=99, store=tmp_path / "k.zarr"
    )
    stored.to_html(tmp_path / "k.html")


def test_failed_trajectories_end_in_the_cloud():
    problem = catalogued("kepler")
    p0 = np.array([problem.p0, 0 * problem.p0])  # the second falls into the centre
    paths = la.ensemble(problem.system, "simpson", problem.q0, p0, h=0.05, steps=200)
    assert paths.failed.tolist() == [False, True]
    assert "1 failed" in paths._repr_html_()


def test_stored_ensembles_and_final_states(tmp_path):
    problem = catalogued("kepler")
    starts = problem.q0 * np.linspace(1, 1.2, 20)[:, None]
    stored = la.ensemble(problem.system, "simpson", starts, problem.p0, h=0.05, steps=40, store=tmp_path / "k.zarr")
    stored.to_html(tmp_path / "k.html")
    last = la.ensemble(problem.system, "simpson", starts, problem.p0, h=0.05, steps=40, final_only=True)
    last.to_html(tmp_path / "last.html")


def test_large_systems_have_a_small_page(tmp_path):
    path = la.integrate(chain(3000), "midpoint", np.linspace(0, 1, 3000), np.zeros(3000), h=0.1, steps=30)
    path.to_html(tmp_path / "chain.html")
    assert (tmp_path / "chain.html").stat().st_size < 500_000


def test_in_a_notebook_the_page_has_a_frame_of_its_own():
    text = problem_path("pendulum")._repr_html_()
    assert text.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts"' in text
    assert "<script" not in text and text.count("<") == 2


def test_pages_may_begin_later(tmp_path):
    path = problem_path("double-pendulum", parts=100, periods=50)
    run = scene([path], SceneOptions(begin=40.0), Pack())["runs"][0]
    assert run["begin"] == pytest.approx(40.0, abs=0.011) and run["end"] == 50.0
    path.to_html(tmp_path / "run.html", begin=40.0)


def test_paths_beside_each_other_are_of_one_system(tmp_path):
    with pytest.raises(ValueError, match="of one system"):
        problem_path("pendulum").to_html(tmp_path / "x.html", beside=[problem_path("kepler")])


def test_show_opens_a_browser(monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)))
    problem_path("pendulum").show()
    assert opened[0].startswith("file://") and opened[0].endswith("motion.html")
    assert "no browser could be opened" in capsys.readouterr().err


def test_a_hostile_name_stays_text():
    def fn(q, v, k):
        return 0.5 * v @ v - 0.5 * k * q @ q

    system = la.Lagrangian(fn, n=2, params={"k": 1.0})
    system.name = HOSTILE
    path = la.integrate(system, "simpson", [1.0, 0.0], [0.0, 1.0], h=0.1, steps=20)
    from leastaction.results.viewer import path_page

    text = path_page(path)
    assert "<script>alert" not in text and "<img" not in text


def test_the_script_is_one_module_without_imports():
    text = bundle()
    assert "import {" not in text and "\nexport " not in text and "innerHTML" not in text and "eval(" not in text


@pytest.mark.parametrize("ending", ["gif", "mp4"])
def test_films(ending, tmp_path):
    if ending == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    for name in ("double-pendulum", "lagrange-top"):
        file = tmp_path / f"{name}.{ending}"
        problem_path(name).animate(file, seconds=0.4, fps=10, dpi=40)
        data = file.read_bytes()
        assert data.startswith(b"GIF89a") if ending == "gif" else b"ftyp" in data[:16]


def test_every_frame_of_a_gif_shows_where_the_motion_is(tmp_path):
    from PIL import Image

    problem_path("pendulum").animate(tmp_path / "run.gif", seconds=1, dpi=40)
    with Image.open(tmp_path / "run.gif") as film:
        assert (film.n_frames, film.info["duration"]) == (20, 50)
        frames = []
        for k in range(film.n_frames):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    assert all(np.abs(a - b).max() > 50 for a, b in itertools.pairwise(frames))
    assert np.median(frames[0]) == 255


def test_a_film_without_ffmpeg_says_what_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'leastaction\[film\]'"):
        problem_path("pendulum").animate(tmp_path / "run.mp4")


@pytest.mark.parametrize("kind, axes", [("disc", 2), ("box", 2), ("box", 3), ("ellipsoid", 3)])
def test_meshes_of_bodies_close_and_have_a_mark(kind, axes):
    shape = mesh(kind, axes)
    assert len(shape.faces) == len(shape.shades) and len(set(shape.shades)) > 1
    edges = collections.Counter(
        frozenset(map(tuple, shape.vertices[[a, b]].round(9)))
        for face in shape.faces
        for a, b in itertools.pairwise([*face, face[0]])
    )
    if axes == 3:  # each edge belongs to two faces; at the poles of an ellipsoid an edge is a point
        assert {count for edge, count in edges.items() if len(edge) == 2} == {2}
    centre, *ends = np.array([[1.0, 2, 3], [3, 2, 3], [1, 5, 3], [1, 2, 3.5]][: axes + 1])
    placed = shape.placed(np.array([centre, *ends]))
    reach = np.array([2, 3, 0.5 if axes == 3 else 0])
    assert np.allclose(placed.min(axis=0), centre - reach) and np.allclose(placed.max(axis=0), centre + reach)


def test_bodies_reach_into_the_picture_and_their_corners_are_no_dots():
    def draw(q):
        return [(q[0], 0), (q[0] + 2, 0), (q[0], 1), (9, 0)], [(0, 1, 2, "disc"), (0, 3)]

    made = drawing(draw, Look(), 1, {}, (0.0, np.zeros(1), np.zeros(1)))
    points = made.points(np.zeros(3), np.array([[0.0], [1.0], [2.0]]), np.zeros((3, 1)))
    assert made.loose == {1, 2} and made.trails == (0,) and made.links == ((0, 3, "rod"),)
    assert made.corners(points).tolist() == [[-2, -1], [4, 1]]


def test_a_plain_page_shows_the_code_of_a_drawing():
    from leastaction.results.viewer import path_page

    path = la.integrate(la.Lagrangian(lambda q, v: v @ v / 2, n=2), "midpoint", [0.5, 0.0], [1.0, 0.0], h=0.1, steps=4)
    assert "path.show(draw=draw)" in path_page(path)
    assert "path.show(draw=draw)" not in path_page(path, lambda q: [(q[0], q[1])])
    names: dict = {"np": np}
    exec(hint(2, "print"), names | {"print": lambda draw: names.update(draw=draw)})
    assert path_page(path, names["draw"])


def test_films_that_cannot_be(tmp_path):
    path = problem_path("pendulum")
    with pytest.raises(ValueError, match=r"a film is one of \.mp4"):
        path.animate(tmp_path / "run.png")
    with pytest.raises(FileNotFoundError, match="no folder"):
        path.animate(tmp_path / "nowhere" / "run.gif")
    with pytest.raises(ValueError, match="must be positive"):
        path.animate(tmp_path / "run.gif", seconds=-1)
