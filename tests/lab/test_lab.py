"""The lab without a browser: what the lab answers, what it refuses, and who is let in."""

import json
import struct

import numpy as np
import pytest

import leastaction as la
from leastaction.lab.answers import Answers, pull, run_all, step
from leastaction.lab.server import application
from leastaction.lab.settings import settings
from leastaction.lab.subjects import Subjects, of_problem, of_system
from systems import catalogued
from thrift import rest_slow

testclient = pytest.importorskip("starlette.testclient")

TOKEN = "a-token-for-tests"


def read(message: bytes):
    """A binary message: the scene, and the buffers it refers to."""
    length = struct.unpack("<Q", message[:8])[0]
    head = json.loads(message[8 : 8 + length])
    buffers, place = [], 8 + length
    for size in head["lengths"]:
        buffers.append(message[place : place + size])
        place += size + -size % 8
    return head["scene"], buffers


def asked(what="run", **changes):
    usual = {
        "what": what,
        "subject": "double-pendulum",
        "params": {"m1": 1.5},
        "q0": [1.0, 1.5],
        "v0": [0.0, 0.2],
        "runs": [{"method": "simpson", "h": 0.01}],
        "after": 0,
        "span": 8.0,
    }
    return usual | changes


@pytest.fixture(scope="module")
def lab():
    return Answers(Subjects())


def answer(lab, request):
    return read(lab.answer(request))


def test_a_run_is_the_path(lab):
    """The points sent are those of the path that la.integrate gives."""
    scene, buffers = answer(lab, asked())
    run = scene["runs"][0]
    told = run["q"]
    levels = np.frombuffer(buffers[told["u2"]], "<u2").reshape(told["rows"], told["cols"])
    q = np.array(told["lo"]) + (np.array(told["hi"]) - told["lo"]) * levels / 65534
    system = catalogued("double-pendulum").system
    path = la.integrate(system, "simpson", [1.0, 1.5], v0=[0.0, 0.2], h=0.01, t_end=8.0, params={"m1": 1.5})
    times = np.append(run["begin"] + run["dt"] * np.arange(run["count"] - 1), run["end"])
    np.testing.assert_allclose(q, path(times), atol=1e-4)
    energy = run["curves"][0]
    assert energy["largest"] == pytest.approx(np.abs(path.energy() / path.energy()[0] - 1).max(), rel=1e-9)
    assert scene["h"] == [0.01] and scene["notes"] == []


def test_what_comes_before_is_computed_and_not_shown(lab):
    scene, buffers = answer(lab, asked(after=50.0, span=2.0))
    run = scene["runs"][0]
    assert run["begin"] == pytest.approx(50, abs=0.011) and run["end"] == 52
    t = np.frombuffer(buffers[run["curves"][0]["t"]["f8"]], "<f8")
    assert t[0] == 0 and t[-1] == 52


def test_two_methods(lab):
    runs = [{"method": "simpson", "h": 0.01}, {"method": "rk4", "h": 0.02}]
    scene, _ = answer(lab, asked(runs=runs))
    assert [run["method"] for run in scene["runs"]] == ["simpson", "rk4"]
    assert scene["runs"][0]["colour"] != scene["runs"][1]["colour"]
    alike, _ = answer(lab, asked(runs=[{"method": "midpoint", "h": 0.01}, {"method": "stormer-verlet", "h": 0.01}]))
    assert [run["dash"] for run in alike["runs"]] == [False, True]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"subject": "no-such-thing"}, "there is no system"),
        ({"subject": None}, "there is no system"),
        ({"subject": "__import__('os')"}, "there is no system"),
        ({"params": {"m9": 1.0}}, "has no parameter 'm9'"),
        ({"params": {"m1": "1; import os"}}, "m1 must be a number"),
        ({"params": {"m1": float("nan")}}, "m1 must be a number"),
        ({"params": [1]}, "params must be"),
        ({"q0": [1.0]}, "q₀ must be 2 numbers"),
        ({"q0": "ab"}, "q₀ must be 2 numbers"),
        ({"q0": [1.0, None]}, "q₀ must be a number"),
        ({"v0": [1.0, True]}, "velocity must be a number"),
        ({"runs": []}, "expected one or 2 runs"),
        ({"runs": [{"method": "simpson", "h": 0.1}] * 3}, "expected one or 2 runs"),
        ({"runs": ["simpson"]}, "a run is a method"),
        ({"runs": [{"method": "simpsonn", "h": 0.1}]}, "unknown method"),
        ({"runs": [{"method": "P41N41Q82Gau", "h": 0.1}]}, "too large for the lab"),
        ({"runs": [{"method": "P999999999N999999999Q2Gau", "h": 0.1}]}, ""),
        ({"runs": [{"method": 5, "h": 0.1}]}, "by its name"),
        ({"runs": [{"method": "simpson", "h": 0}]}, "must be positive"),
        ({"runs": [{"method": "simpson", "h": -0.1}]}, "must be positive"),
        ({"runs": [{"method": "simpson", "h": 1e-9}]}, "too many for the lab"),
        ({"runs": [{"method": "simpson", "tol": 1e-30}]}, "between 1e-13 and 1"),
        ({"runs": [{"method": "simpson", "h": 0.1, "paced": "yes"}]}, "paced or not"),
        ({"runs": [{"method": "simpson", "tol": 1e-6, "paced": True}]}, "take h, not a tolerance"),
        ({"runs": [{"method": "rk4", "h": 0.1, "paced": True}]}, "pace"),
        ({"span": 0}, "must be positive"),
        ({"after": -1}, "not negative"),
        ({"span": 1e300}, "too many for the lab"),
        ({"what": "eval"}, "does not know this request"),
        ({"drag": {"point": 99, "to": [0, 0]}}, "the point must be one of 0 … 2"),
        ({"drag": {"point": 1, "to": [0]}}, "the place must be 2 numbers"),
        ({"drag": 3}, "a drag is a point"),
    ],
)
def test_bad_requests_get_words(lab, changes, words):
    scene, _ = answer(lab, asked(**changes))
    assert words in scene["error"] and scene["error"]


@pytest.mark.parametrize("request_", [None, 3, "run", [], {"what": ["run"]}, {"what": "run"}])
def test_requests_of_any_shape_get_words(lab, request_):
    assert answer(lab, request_)[0]["error"]


def test_a_run_that_ends_early_is_shown_so_far(lab):
    request = asked(subject="kepler", params={}, q0=[1.0, 0.0], v0=[0.0, 0.0], runs=[{"method": "simpson", "h": 0.05}])
    scene, _ = answer(lab, request)
    assert "error" not in scene and len(scene["notes"]) == 1
    assert scene["runs"][0]["end"] < 8


def test_motion_that_leaves_all_bounds(lab):
    request = asked(subject="henon-heiles", params={}, q0=[2.0, 2.0], v0=[3.0, 0.0], runs=[{"method": "rk4", "h": 0.3}])
    scene, _ = answer(lab, request)
    assert "error" not in scene and scene["notes"]


def test_pulling_a_point(lab):
    """The point goes where it is pulled, or as near as it can come."""
    l = catalogued("double-pendulum").params["l1"]
    target = [0.9 * l, -1.2 * l]
    q = answer(lab, asked(drag={"point": 2, "to": target}))[0]["q0"]
    np.testing.assert_allclose([l * np.sin(q).sum(), -l * np.cos(q).sum()], target, atol=1e-3 * l)
    far = answer(lab, asked(drag={"point": 2, "to": [5 * l, 0]}))[0]["q0"]
    assert l * np.sin(far).sum() > 1.9 * l  # stretched out towards it
    upper = answer(lab, asked(drag={"point": 1, "to": [0, -l]}))[0]["q0"]
    assert upper[0] == pytest.approx(0, abs=2e-3) and upper[1] == pytest.approx(1.5)


def linkage(q0, **changes):
    """A four-bar linkage whose start need not be on its constraints."""
    v0 = [float(x) for x in of_problem("four-bar-linkage").v0]
    return asked(subject="four-bar-linkage", params={}, q0=q0, v0=v0, span=1.0, **changes)


def test_sliders_move_a_linkage_along_its_constraints(lab):
    """A start beside the constraints is replaced by the nearest one on them, positions and velocities."""
    subject = of_problem("four-bar-linkage")
    q0 = [float(x) for x in subject.q0]
    scene, _ = answer(lab, linkage([q0[0] + 0.3, *q0[1:]]))
    assert "error" not in scene and not scene["notes"]
    q, v = la.project(subject.system, [q0[0] + 0.3, *q0[1:]], subject.v0)
    np.testing.assert_allclose(scene["q0"], q, rtol=1e-12)
    np.testing.assert_allclose(scene["v0"], v, rtol=1e-12)
    assert abs(np.asarray(scene["q0"]) - q0).max() > 0.05
    again = linkage([q0[0] + 0.3, *q0[1:]])
    script = answer(lab, again | {"what": "code"})[0]["code"]
    assert repr(scene["q0"][0]) in script
    assert "error" in answer(lab, linkage([1e9, -1e9, 5.0, 5.0]))[0]


def test_a_linkage_can_be_pulled(lab):
    """The crank's end, on a circle about the origin, goes to where this circle is nearest to the mouse."""
    subject = of_problem("four-bar-linkage")
    q0 = np.array(subject.q0)
    crank = np.hypot(*q0[:2])
    start = np.arctan2(q0[1], q0[0])
    to = 1.7 * crank * np.array([np.cos(start + 0.6), np.sin(start + 0.6)])
    scene, _ = answer(lab, linkage(q0.tolist(), drag={"point": 1, "to": to.tolist()}))
    assert "error" not in scene
    assert np.hypot(*scene["q0"][:2]) == pytest.approx(crank, rel=1e-12)
    # no farther than the mouse by angle, and much nearer than before
    angle = np.arctan2(scene["q0"][1], scene["q0"][0]) - start
    assert angle == pytest.approx(0.6, abs=0.05)


def test_steps_by_pace(lab):
    """Close encounters that equal steps lose are shown, and the script computes the same."""
    told, _ = answer(lab, {"what": "subject", "subject": "moth"})
    assert told["paced"] and told["paces"] and not told["constrained"]
    problem = catalogued("moth")
    v0 = problem.system.velocity(problem.q0, problem.p0)
    request = asked(
        subject="moth",
        params={},
        q0=problem.q0.tolist(),
        v0=v0.tolist(),
        runs=[{"method": "P4N4Q8Gau", "h": 0.1, "paced": True}],
        span=10.0,
    )
    scene, _ = answer(lab, request)
    assert "error" not in scene and not scene["notes"]
    path = la.integrate(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, h=0.1, t_end=10.0, pace="auto")
    assert scene["steps"] == [len(path) - 1]
    assert "pace='auto'" in answer(lab, request | {"what": "code"})[0]["code"]
    constrained, _ = answer(lab, {"what": "subject", "subject": "four-bar-linkage"})
    assert constrained["constrained"] and not constrained["paces"]


def test_pulling_what_does_not_move():
    q = np.array([0.3])
    np.testing.assert_array_equal(pull(lambda q: np.zeros(2), q, np.ones(2)), q)


@pytest.mark.parametrize("method", ["simpson", "midpoint", "P4N4Q8Gau", "rk4"])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_a_tolerance_gives_a_step(method, tol):
    """Over one period the motion differs from a much better one by about the tolerance, and by no more."""
    request = asked(subject="pendulum", params={}, q0=[1.5], v0=[0.0], runs=[{"method": method, "tol": tol}])
    wanted = settings(Subjects(), request)
    h = step(wanted, wanted.runs[0])
    problem = la.problems.get("pendulum", theta0="1.5")
    path = la.integrate(problem.system, method, problem.q0, problem.p0, h=h, t_end=problem.period)
    error = np.abs(path.q - problem.exact(path.t)[0]).max() / 3
    assert 0.01 * tol < error < 2 * tol


def test_a_section_lies_on_its_plane_and_goes_on(lab):
    """Points of Hénon and Heiles's section at their energy; asked again with the state reached, new ones come."""
    problem = catalogued("henon-heiles")
    v0 = problem.system.velocity(problem.q0, problem.p0)
    request = asked("section", subject="henon-heiles", params={}, q0=problem.q0.tolist(), v0=v0.tolist(), span=10.0)
    request |= {"runs": [{"method": "simpson", "h": 0.05}], "coordinate": 0, "show": 1}
    found = []
    for _ in range(2):
        scene, buffers = answer(lab, request)
        y, py = (np.frombuffer(buffers[scene[name]["f8"]], "<f8") for name in ("x", "y"))
        assert len(y) > 250
        px2 = 2 / 8 - py**2 - y**2 + 2 * y**3 / 3  # from the energy, with x = 0
        assert (px2 > 0).all()
        found.append(y)
        request["state"] = scene["state"]
    assert scene["state"]["t"] == pytest.approx(4000) and not np.isin(found[1], found[0]).any()
    assert scene["labels"] == ["y", "py"]


def test_a_section_of_a_driven_system(lab):
    request = asked("section", subject="driven-oscillator", params={}, q0=[1.0], v0=[0.0])
    request |= {"runs": [{"method": "simpson", "h": 0.02}], "show": 0}
    scene, buffers = answer(lab, request)
    problem = catalogued("driven-oscillator")
    x = np.frombuffer(buffers[scene["x"]["f8"]], "<f8")
    times = 2 * np.pi / problem.params["nu"] * np.arange(len(x))
    np.testing.assert_allclose(x, problem.exact(times)[0][:, 0], atol=1e-4)
    assert scene["state"]["t"] == pytest.approx(times[-1] + times[1])
    refused, _ = answer(lab, asked("section", subject="pendulum", params={}, q0=[1.0], v0=[0.0]))
    assert "two degrees of freedom" in refused["error"]


@pytest.mark.parametrize("subject", ["double-pendulum", "kepler", "driven-oscillator"])
def test_exported_code_computes_the_same(lab, subject, tmp_path, monkeypatch):
    """About ten lines, which give the lab's path to the bit."""
    told, _ = answer(lab, {"what": "subject", "subject": subject})
    request = asked(
        subject=subject,
        params={one["key"]: one["value"] * 1.1 for one in told["params"]},
        q0=[one["value"] + 0.05 for one in told["q0"]],
        v0=[one["value"] for one in told["v0"]],
        runs=[{"method": "simpson", "h": told["h"]}, {"method": "P3N3Q6Gau", "tol": 1e-6}],
        span=told["span"],
    )
    code = answer(lab, request | {"what": "code"})[0]["code"]
    assert len(code.splitlines()) <= 11
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code, names)
    paths, _ = run_all(settings(Subjects(), request))
    for name, path in zip(("path", "other"), paths, strict=True):
        np.testing.assert_array_equal(names[name].q, path.q)
    assert (tmp_path / f"{subject}.html").is_file()


def test_exported_page(lab):
    scene, _ = answer(lab, asked("html"))
    assert scene["html"].startswith("<!doctype html>") and scene["name"] == "double-pendulum.html"


OF_EACH_KIND = ["arenstorf", "double-pendulum", "driven-oscillator", "four-bar-linkage", "kepler-3d", "lagrange-top"]


@pytest.mark.parametrize("name", rest_slow([*la.problems.names()], OF_EACH_KIND))
def test_every_problem_opens(lab, name):
    """Its own start gives a run, without a note, and every control has a range for its value."""
    told, _ = answer(lab, {"what": "subject", "subject": name})
    controls = told["params"] + told["q0"] + told["v0"]
    assert all(one["low"] <= one["value"] <= one["high"] for one in controls)
    values = {key: [one["value"] for one in told[key]] for key in ("q0", "v0")}
    scene, _ = answer(
        lab,
        asked(
            subject=name,
            params={},
            runs=[{"method": told["method"], "h": told["h"], "paced": told["paced"]}],
            span=told["span"],
        )
        | values,
    )
    assert "error" not in scene and not scene["notes"]
    problem = catalogued(name)
    p0 = problem.system.momentum(values["q0"], values["v0"])
    np.testing.assert_allclose(p0, problem.p0, rtol=1e-12, atol=1e-15)


def test_an_own_system():
    def fn(q, v, k):
        return 0.5 * v @ v - 0.5 * k * q @ q

    system = la.Lagrangian(fn, n=2, params={"k": 2.0})
    shelf = Subjects(of_system(system, [1.0, 0.0], v0=[0.0, 1.0], draw=lambda q: [(0, 0), (q[0], q[1])], name="mine"))
    hello, _ = answer(Answers(shelf), {"what": "hello"})
    assert hello["subjects"][0] == ["own", "mine"]
    request = asked(subject="own", params={"k": 3.0}, q0=[1.0, 0.0], v0=[0.0, 1.0])
    scene, _ = answer(Answers(shelf), request)
    assert scene["title"] == "mine" and scene["runs"][0]["fixed"] == [[0.0, 0.0], None]
    with pytest.raises(ValueError, match="give p0 or v0"):
        of_system(system, [1.0, 0.0])
    with pytest.raises(TypeError, match=r"la\.Lagrangian"):
        of_system(la.Quadratic(np.eye(2), np.eye(2)), [1.0, 0.0], v0=[0.0, 0.0])
    with pytest.raises(ValueError, match="2 numbers each"):
        of_system(system, [1.0], v0=[0.0])


def test_inputs_are_held_at_their_sliders(tmp_path, monkeypatch):
    """A system that is driven from outside: each entry of an input has a slider, and the script holds it too."""

    def cart(q, v):
        return 0.5 * v @ v - 0.5 * q @ q

    system = la.Lagrangian(cart, n=2, force=lambda q, v, u, w: [u[0], u[1] + w], inputs={"u": 2, "w": ()})
    lab = Answers(Subjects(of_system(system, [0.0, 0.0], v0=[0.0, 0.0])))
    told, _ = answer(lab, {"what": "subject", "subject": "own"})
    assert [one["key"] for one in told["params"]] == ["u₀", "u₁", "w"] and not told["paces"]
    assert all(one["low"] < one["value"] == 0 < one["high"] for one in told["params"])
    request = asked(subject="own", params={"u₀": 2.0, "w": -1.0}, q0=[0.0, 0.0], v0=[0.0, 0.0])
    scene, _ = answer(lab, request)
    assert "error" not in scene and not scene["notes"]
    wanted = settings(lab.subjects, request)
    (path,), _ = run_all(wanted)
    # a constant force moves the middle of the swing: q = f (1 − cos t)
    np.testing.assert_allclose(path.q, (1 - np.cos(path.t))[:, None] * [2.0, -1.0], atol=1e-6)
    names = {"system": system}
    monkeypatch.chdir(tmp_path)
    exec(answer(lab, request | {"what": "code"})[0]["code"], names)
    np.testing.assert_array_equal(names["path"].q, path.q)
    assert "has no parameter 'u₂'" in answer(lab, request | {"params": {"u₂": 1.0}})[0]["error"]


def test_runs_that_would_take_too_long_are_refused(lab, monkeypatch):
    monkeypatch.setattr("leastaction.lab.answers.LONGEST", 1e-3)
    scene, _ = answer(lab, asked(runs=[{"method": "P20N20Q40Gau", "h": 1e-4}], span=25.0))
    assert "the lab allows 0.001: take a larger h" in scene["error"]
    scene, _ = answer(lab, asked())
    assert "error" not in scene  # short ones are not even tried


def test_a_drawing_that_raises_is_told():
    system = la.Lagrangian(lambda q, v: 0.5 * v @ v - 0.5 * q @ q, n=2)
    shelf = Subjects(of_system(system, [1.0, 0.0], v0=[0.0, 1.0], draw=lambda q: {}["nothing"]))
    scene, _ = answer(Answers(shelf), asked(subject="own", params={}, q0=[1.0, 0.0], v0=[0.0, 1.0]))
    assert "nothing" in scene["error"]


# ---- who is let in


@pytest.fixture(scope="module")
def client():
    app = application(Subjects(), TOKEN, "double-pendulum")
    with testclient.TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def test_the_token_is_needed(client):
    assert client.get("/").status_code == 403
    assert client.get("/", params={"token": "wrong"}).status_code == 403
    assert client.get("/", params={"token": "wröng"}).status_code == 403
    page = client.get("/", params={"token": TOKEN})
    assert page.status_code == 200 and TOKEN not in page.text
    hello = {"what": "hello"}
    assert client.post("/ask", json=hello).status_code == 403
    assert client.post("/ask", json=hello, headers={"X-Token": "wrong"}).status_code == 403
    assert client.post("/ask", json=hello, params={"token": TOKEN}).status_code == 403
    assert client.post("/ask", json=hello, headers={"X-Token": TOKEN}).status_code == 200


def test_other_hosts_are_refused(client):
    """A page elsewhere whose name was made to point here does not get in (DNS rebinding)."""
    headers = {"X-Token": TOKEN, "Host": "evil.example"}
    assert client.post("/ask", json={"what": "hello"}, headers=headers).status_code == 400
    assert client.get("/", params={"token": TOKEN}, headers={"Host": "evil.example"}).status_code == 400


def test_no_permission_for_other_origins(client):
    asks = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answered = client.options("/ask", headers=asks | {"Access-Control-Request-Headers": "x-token"})
    assert not any(name.startswith("access-control") for name in answered.headers)


def test_bodies_that_are_too_long_or_no_json(client):
    headers = {"X-Token": TOKEN}
    assert client.post("/ask", content=b"x" * 70_000, headers=headers).status_code == 413
    assert client.post("/ask", content=b"{", headers=headers).status_code == 400
    assert client.post("/ask", content=b"[" * 60_000, headers=headers).status_code == 400
    assert client.post("/ask", content=b"\xff\xfe", headers=headers).status_code == 400
    assert client.get("/ask", headers=headers).status_code == 405
    assert client.get("/../../etc/passwd", headers=headers).status_code == 404
    assert "error" not in read(client.post("/ask", json={"what": "hello"}, headers=headers).content)[0]


def test_pages_are_not_kept_nor_framed(client):
    headers = client.get("/", params={"token": TOKEN}).headers
    assert headers["cache-control"] == "no-store" and headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"


# ---- the widget


def test_the_widget_answers():
    pytest.importorskip("anywidget")
    from leastaction.lab import widget

    made = [widget("kepler"), widget("kepler")][1]  # again and again
    assert made.first == "kepler" and "export default" in made._esm and "import {" not in made._esm
    sent = []
    made.send = lambda content, buffers=None: sent.append((content, buffers))
    made._handle_custom_msg({"id": 7, "asked": {"what": "subject", "subject": "kepler"}}, [])
    made._handle_custom_msg({"nothing": 1}, [])
    ((content, buffers),) = sent
    assert content == {"id": 7} and read(bytes(buffers[0]))[0]["title"] == "Kepler problem"
    with pytest.raises(ValueError, match="there is no system"):
        widget("keppler")
