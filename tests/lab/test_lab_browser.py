"""The lab as a user meets it: started by the command, in a real browser."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import leastaction as la
from browser import CHROMIUM, Browser
from processes import PATIENCE

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; as root on Debian `make browser` installs it"
)

LAB = "document.getElementById('view').lab"
HOSTILE = "<img src=x onerror=alert(1)>"
OWN = f"""
import numpy as np
import leastaction as la

system = la.Lagrangian(lambda q, v, **w: 0.5 * v @ v - 0.5 * sum(w.values()) * q @ q, n=2,
                       params={{{HOSTILE!r}: 1.0, "k": 1.0}})
system.name = {HOSTILE!r}
q0, v0 = [1.0, 0.0], [0.0, 0.5]

def draw(q):
    return [(0, 0), (q[0], q[1])], [(0, 1, "spring")]
"""


class Running:
    """`leastaction lab` as a process of its own, and its address."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "leastaction", "lab", "--no-browser", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line + self.process.communicate(timeout=PATIENCE)[1]
        self.address = found[0]

    def end(self) -> tuple[int, str]:
        """Ctrl-C; its exit code and its complaints."""
        self.process.send_signal(signal.SIGINT)
        _, complaints = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, complaints


@pytest.fixture(scope="module")
def lab():
    running = Running()
    yield running
    code, complaints = running.end()
    said = [line for line in complaints.splitlines() if not line.startswith("leastaction: compil")]
    assert not said and code in (0, 130)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def idle(browser) -> None:
    """Until everything asked for is answered and drawn."""
    browser.wait(f"{LAB}?.answered > 0 && !{LAB}.busy && !{LAB}.wanted")


def opened(browser, lab, fragment="", **look) -> Browser:
    browser.look(**({"width": 1440, "height": 900} | look))
    browser.open("about:blank")
    browser.open(lab.address + (f"#{fragment}" if fragment else ""))
    idle(browser)
    return browser


def change(browser, script) -> None:
    """Do something, and wait until the lab has answered it."""
    before = browser.evaluate(f"{LAB}.answered")
    browser.evaluate(f"void ({script})")
    browser.wait(f"{LAB}.answered > {before}")
    idle(browser)


def slider(name) -> str:
    return f"[...document.querySelectorAll('.panel .row')].find(r => r.firstChild.textContent === {json.dumps(name)})"


def slide(browser, name, part) -> None:
    change(
        browser,
        f"(r => {{ const s = r.querySelector('input[type=range]'); s.value = {part};"
        f" s.dispatchEvent(new Event('input', {{bubbles: true}})); }})({slider(name)})",
    )


def enter(browser, name, text) -> None:
    browser.evaluate(
        f"(r => {{ const b = r.querySelector('.number'); b.value = {json.dumps(text)};"
        f" b.dispatchEvent(new Event('change', {{bubbles: true}})); }})({slider(name)})"
    )


def button(text) -> str:
    return f"[...document.querySelectorAll('button')].find(b => b.textContent === {json.dumps(text)}).click()"


def state(browser):
    return browser.evaluate(f"JSON.parse(JSON.stringify({LAB}.state))")


def shown(browser, t, run=0):
    """q at a time, as the view has it."""
    return browser.evaluate(f"{LAB}.view.scene.coordinates.map((_, j) => {LAB}.view.q({run}, j, {t}))")


def computed(told, run=0):
    """The path of a state of the lab."""
    system = la.problems.get(told["subject"]).system
    one, end = told["runs"][run], told["after"] + told["span"]
    return la.integrate(system, one["method"], told["q0"], v0=told["v0"], h=one["h"], t_end=end, params=told["params"])


@pytest.mark.parametrize(
    "look",
    [
        {},
        {"dark": True},
        {"width": 390, "height": 844, "phone": True},
        {"width": 360, "height": 740, "phone": True, "dark": True},
    ],
    ids=["desktop", "dark", "phone", "dark phone"],
)
def test_the_lab_opens(browser, lab, look):
    opened(browser, lab, **look)
    assert browser.complaints == []
    assert {urlsplit(address).netloc for address in browser.addresses if address.startswith("http")} == {
        urlsplit(lab.address).netloc
    }
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate("document.querySelector('.message').hidden")
    np.testing.assert_allclose(shown(browser, 3.0), computed(state(browser))(3.0), atol=1e-3)


def test_sliders_recompute(browser, lab):
    opened(browser, lab)
    for name, part in (("θ₁", 0.62), ("m2", 0.5), ("dθ₂/dt", 0.7), ("h", 0.4), ("l1", 0.3)):
        slide(browser, name, part)
        told = state(browser)
        np.testing.assert_allclose(shown(browser, 2.0), computed(told)(2.0), atol=1e-3)
    assert told["q0"][0] == pytest.approx(-np.pi + 0.62 * 2 * np.pi, abs=0.01)
    enter(browser, "g", "3.5")
    idle(browser)
    np.testing.assert_allclose(shown(browser, 2.0), computed(state(browser))(2.0), atol=1e-3)
    assert state(browser)["params"]["g"] == 3.5
    assert browser.complaints == []


def test_only_the_latest_is_asked_for(browser, lab):
    """A slider that moves faster than the answers come leaves no queue, and ends where it stands."""
    opened(browser, lab)
    before = browser.evaluate(f"{LAB}.answered")
    browser.evaluate(
        f"(async () => {{ const s = {slider('θ₁')}.querySelector('input'); for (let i = 0; i <= 200; i++) {{"
        " s.value = 0.5 + 0.0004 * i; s.dispatchEvent(new Event('input', {bubbles: true}));"
        " if (i % 20 === 0) await new Promise(done => setTimeout(done, 1)); } })()"
    )
    idle(browser)
    assert browser.evaluate(f"{LAB}.answered") - before < 100
    np.testing.assert_allclose(shown(browser, 1.0), computed(state(browser))(1.0), atol=1e-3)


def test_bad_input_gets_a_message_and_the_lab_lives_on(browser, lab):
    opened(browser, lab)
    message = "document.querySelector('.message').textContent"
    enter(browser, "m1", "heavy")
    assert "m1 must be a number" in browser.evaluate(message)
    assert browser.evaluate(f"{slider('m1')}.querySelector('.number').getAttribute('aria-invalid')") == "true"
    enter(browser, "h", "1e-12")
    browser.wait(f"{message}.includes('too many')")
    enter(browser, "h", "0.01")
    browser.wait("document.querySelector('.message').hidden")
    method = "document.querySelector('.method')"
    for name, words in (("no-such-method", "unknown method"), (HOSTILE, "unknown method"), ("x" * 300, "by its name")):
        change(browser, f"({method}.value = {json.dumps(name)}, {method}.dispatchEvent(new Event('change')))")
        assert words in browser.evaluate(message)
        assert browser.evaluate("document.querySelectorAll('.message img').length") == 0
    change(browser, f"({method}.value = 'P3N3Q6Gau', {method}.dispatchEvent(new Event('change')))")
    assert browser.evaluate("document.querySelector('.message').hidden")
    assert browser.evaluate(f"{LAB}.view.scene.runs[0].method") == "P3N3Q6Gau"
    assert browser.complaints == []


def test_a_motion_that_fails_is_shown_as_far_as_it_goes(browser, lab):
    opened(browser, lab, "system=kepler&v0=0,0")
    assert "simpson" in browser.evaluate("document.querySelector('.message').textContent")
    assert browser.evaluate(f"{LAB}.view.scene.runs[0].end") < 10


@pytest.mark.parametrize("width", [1400, 420])
def test_messages_stand_above_the_pictures_each_on_its_line(browser, lab, width):
    opened(browser, lab, "system=kepler&v0=0,0&run=simpson~h~0.05&run=midpoint~h~0.05", width=width)
    message = "document.querySelector('.message')"
    lines = browser.evaluate(f"{message}.innerText").splitlines()
    assert [line.split(":")[0] for line in lines] == ["simpson", "midpoint"]
    bottom = browser.evaluate(f"{message}.getBoundingClientRect().bottom")
    assert bottom <= browser.evaluate("document.querySelector('.stages').getBoundingClientRect().top")


@pytest.mark.parametrize("name", ["double-pendulum", "kepler"])
def test_the_drawing_can_be_pulled(browser, lab, name):
    """The mass that is held follows the mouse, q₀ follows it, and the motion starts from there."""
    opened(browser, lab, f"system={name}")
    browser.evaluate(f"({LAB}.view.clock.pause(), {LAB}.view.clock.seek(0))")
    last = "places.length - 1"
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    x, y = browser.evaluate(
        f"(s => {{ const b = s.canvas.getBoundingClientRect(), p = s.places[s.{last}];"
        f" return [b.x + p[0], b.y + p[1]]; }})({LAB}.view.stageList[0])"
    )
    before = state(browser)["q0"]
    browser.mouse("mouseMoved", x, y, buttons=0)
    browser.mouse("mousePressed", x, y)
    for k in range(1, 7):
        browser.mouse("mouseMoved", x - 9 * k, y + 2 * k)
    idle(browser)
    # while it is held, the scale stays, and the mass is under the mouse
    held = browser.evaluate(f"(s => s.places[s.{last}].slice(0, 2))({LAB}.view.stageList[0])")
    corner = browser.evaluate("(b => [b.x, b.y])(document.querySelector('canvas').getBoundingClientRect())")
    np.testing.assert_allclose(held, [x - 54 - corner[0], y + 12 - corner[1]], atol=2)
    target = browser.evaluate(
        f"{LAB}.view.stageList[0].target([{x - 54} - document.querySelector('canvas').getBoundingClientRect().x,"
        f" {y + 12} - document.querySelector('canvas').getBoundingClientRect().y])"
    )
    browser.mouse("mouseReleased", x - 54, y + 12, buttons=0)
    idle(browser)
    told = state(browser)
    assert told["q0"] != before and browser.evaluate(f"{LAB}.view.clock.playing")
    q = np.array(told["q0"])
    l = told["params"].get("l1")
    place = q if l is None else l * np.array([np.sin(q).sum(), -np.cos(q).sum()])
    np.testing.assert_allclose(place, target, atol=0.02)
    np.testing.assert_allclose(shown(browser, 0.0), q, atol=1e-3)
    boxes = [
        float(browser.evaluate(f"{slider(name)}.querySelector('.number').value"))
        for name in browser.evaluate(f"{LAB}.subject.q0.map(one => one.name)")
    ]
    np.testing.assert_allclose(boxes, q, rtol=1e-4, atol=1e-4)


def test_a_slider_moves_a_linkage(browser, lab):
    """What a slider asks for is put back on the constraints, and all sliders show where the linkage is."""
    opened(browser, lab, "system=four-bar-linkage")
    before = state(browser)
    slide(browser, "xA", 0.62)
    told = state(browser)
    system = la.problems.get("four-bar-linkage").system
    q, v = la.project(system, told["q0"], told["v0"])
    np.testing.assert_allclose(q, told["q0"], rtol=1e-9)
    np.testing.assert_allclose(v, told["v0"], rtol=1e-9)
    assert told["q0"][2] != before["q0"][2]
    box = float(browser.evaluate(f"{slider('xB')}.querySelector('.number').value"))
    assert box == pytest.approx(told["q0"][2], rel=1e-5)
    np.testing.assert_allclose(shown(browser, 0.0), told["q0"], atol=1e-3)
    assert browser.complaints == [] and browser.evaluate("document.querySelector('.message').hidden")


def test_steps_by_pace(browser, lab):
    """A close encounter opens with a pace, and its link restores it."""
    problem = la.problems.get("moth")
    first = {"h": 0.05, "t_end": 2 * problem.period, "pace": "auto"}
    la.integrate(problem.system, "P4N4Q8Gau", problem.q0, problem.p0, **first)  # compiled before the lab is asked
    opened(browser, lab, "system=moth")
    told = state(browser)
    run = told["runs"][0]
    assert run["by"] == "pace"
    assert browser.evaluate("document.querySelector('.message').hidden")
    address = browser.evaluate("location.hash")
    assert "pace" in address
    opened(browser, lab, address.lstrip("#"))
    assert state(browser)["runs"][0]["by"] == "pace" and state(browser)["q0"] == told["q0"]
    asked = {"h": run["h"], "t_end": told["span"], "pace": "auto"}
    path = la.integrate(problem.system, run["method"], told["q0"], v0=told["v0"], **asked)
    np.testing.assert_allclose(shown(browser, 7.0), path(7.0), atol=5e-3)


def test_two_methods_side_by_side(browser, lab):
    opened(browser, lab)
    change(browser, button("compare with another method"))
    assert browser.evaluate(f"{LAB}.view.stageList.length") == 2
    told = state(browser)
    assert [run["method"] for run in told["runs"]] == ["simpson", "rk4"]
    for run in (0, 1):
        np.testing.assert_allclose(shown(browser, 5.0, run), computed(told, run)(5.0), atol=1e-3)
    change(browser, "document.querySelector('button[aria-label=\"no comparison\"]').click()")
    assert browser.evaluate(f"{LAB}.view.stageList.length") == 1


def test_the_lesson_of_the_papers(browser, lab):
    """After 10,000 periods Simpson's pendulum swings as it did, and RK4's hangs nearly still; the page says so."""
    opened(browser, lab, "system=pendulum")
    change(browser, button("10,000 periods"))
    said = browser.evaluate("document.querySelector('.message').textContent")
    assert said.count("the energy has changed") == 1 and "rk4" in said
    begin = browser.evaluate(f"{LAB}.view.scene.runs[0].begin")
    assert begin > 10_000
    reach = browser.evaluate(f"{LAB}.view.scene.runs.map(run => Math.max(...run.q.values) - Math.min(...run.q.values))")
    assert reach[0] > 3 and reach[1] < 0.5
    largest = browser.evaluate(f"{LAB}.view.scene.runs.map(run => run.curves[0].largest)")
    assert largest[0] < 1e-2 < 0.9 < largest[1]


def test_a_tolerance_instead_of_a_step(browser, lab):
    opened(browser, lab)
    by = "document.querySelector('.run select')"
    change(browser, f"({by}.value = 'tol', {by}.dispatchEvent(new Event('change')))")
    loose = browser.evaluate(f"{LAB}.view.scene.h[0]")
    enter(browser, "tol", "1e-9")
    browser.wait(f"{LAB}.view.scene.h[0] < {loose} / 2")
    assert "h = " in browser.evaluate("document.querySelector('.found').textContent")


def test_a_section_fills_while_it_runs(browser, lab):
    opened(browser, lab, "system=henon-heiles")
    browser.evaluate("document.querySelector('.fill').click()")
    browser.wait(f"{LAB}.section.x.length > 100")
    first = browser.evaluate(f"{LAB}.section.x.length")
    browser.wait(f"{LAB}.section.x.length > {first}")
    y, py = np.array(browser.evaluate(f"[{LAB}.section.x.slice(0, 1000), {LAB}.section.y.slice(0, 1000)]"))
    assert (2 / 8 - py**2 - y**2 + 2 * y**3 / 3 > 0).all()  # inside the energy's bound
    slide(browser, "y", 0.6)  # another motion: the points begin anew
    browser.wait(f"{LAB}.section.on && {LAB}.section.x.length > 100")
    again = np.array(browser.evaluate(f"{LAB}.section.x.slice(0, 50)"))
    assert not np.isin(again, y).any()
    browser.evaluate("document.querySelector('.fill').click()")
    assert browser.evaluate(f"{LAB}.section.on") is False
    assert browser.complaints == []


def test_links_restore_a_state(browser, lab):
    opened(browser, lab, "system=kepler")
    slide(browser, "dy/dt", 0.8)
    change(browser, button("compare with another method"))
    slide(browser, "k", 0.45)
    told, fragment = state(browser), browser.evaluate("location.hash.slice(1)")
    opened(browser, lab)
    assert state(browser)["subject"] == "double-pendulum"
    opened(browser, lab, fragment)
    again = state(browser)
    for key in ("subject", "params", "q0", "v0", "after", "span"):
        assert again[key] == told[key]
    assert [(run["method"], run["h"]) for run in again["runs"]] == [(run["method"], run["h"]) for run in told["runs"]]
    np.testing.assert_allclose(shown(browser, 3.0), computed(told)(3.0), atol=1e-3)


@pytest.mark.parametrize(
    "fragment",
    [
        "system=nothing",
        "system=kepler&q0=a,b",
        "system=kepler&q0=1",
        f"system={HOSTILE}",
        "system=kepler&p.k=NaN",
        "%%%",
    ],
)
def test_spoiled_links_get_a_message(browser, lab, fragment):
    browser.look()
    browser.open("about:blank")
    browser.open(f"{lab.address}#{fragment}")
    if fragment == "%%%":
        idle(browser)
        assert state(browser)["subject"] == "double-pendulum"
    else:
        browser.wait("document.querySelector('.message')?.textContent")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.complaints == []


def test_code_and_page_to_keep(browser, lab, tmp_path):
    opened(browser, lab)
    slide(browser, "θ₂", 0.7)
    browser.evaluate(f"void ({button('Python')})")
    code = browser.wait("document.querySelector('dialog pre')?.textContent")
    names: dict = {}
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        exec(code, names)
    finally:
        os.chdir(before)
    np.testing.assert_array_equal(names["path"].q, computed(state(browser)).q)
    browser.evaluate(f"void ({button('close')})")
    browser.wait("!document.querySelector('dialog')")
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    browser.evaluate(f"void ({button('save as HTML')})")
    html = browser.wait(f"{LAB}.saved")
    (tmp_path / "kept.html").write_text(html, "utf-8")
    browser.open(tmp_path / "kept.html")
    browser.wait("document.getElementById('view').motion?.paint")
    assert browser.complaints == [] and browser.requested <= {"file", "data"}


@pytest.mark.slow
def test_a_closed_tab_and_ten_open_ones(lab, tmp_path):
    """Pages closed while they wait for an answer, and ten that ask at once: each gets its own."""
    browser = Browser(tmp_path / "profile")
    try:
        for _ in range(3):
            opened(browser, lab)
            browser.evaluate(f"void {button('10,000 periods')}")
            browser.open("about:blank")  # gone before the answer comes
        extra = [
            browser.call_browser("Target.createTarget", url=f"{lab.address}#system=pendulum&q0=0.{k}")
            for k in range(1, 10)
        ]
        opened(browser, lab, "system=kepler")
        slide(browser, "dy/dt", 0.75)
        np.testing.assert_allclose(shown(browser, 3.0), computed(state(browser))(3.0), atol=1e-3)
        for k, tab in enumerate(extra, 1):
            with browser.tab(tab["targetId"]):
                idle(browser)
                assert shown(browser, 0.0) == pytest.approx([0.1 * k], abs=1e-3)
        for tab in extra:
            browser.call_browser("Target.closeTarget", targetId=tab["targetId"])
        slide(browser, "k", 0.5)
        assert browser.complaints == []
    finally:
        browser.close()


def test_without_the_token_nothing_is_shown(browser, lab):
    browser.look()
    browser.open("about:blank")
    browser.open(lab.address.split("?")[0])
    assert "with its token" in browser.evaluate("document.body.textContent")
    browser.open(lab.address[:-1] + ("A" if lab.address[-1] != "A" else "B"))
    assert "with its token" in browser.evaluate("document.body.textContent")


def test_the_loopback_address_alone_is_bound(lab):
    where = urlsplit(lab.address)
    assert where.hostname == "127.0.0.1"
    for address in (
        "127.0.0.2",
        *{info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)},
    ):
        if address == "127.0.0.1":
            continue
        with socket.socket() as door:
            door.settimeout(2)
            assert door.connect_ex((address, where.port)) != 0


def test_a_file_of_ones_own(browser, tmp_path):
    (tmp_path / "mine.py").write_text(OWN, "utf-8")
    running = Running(str(tmp_path / "mine.py"))
    try:
        opened(browser, running)
        assert browser.evaluate(f"{LAB}.subject.title") == "mine"
        assert HOSTILE in browser.evaluate("document.querySelector('.panel').textContent")
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        slide(browser, "k", 0.6)
        assert browser.evaluate(f"{LAB}.view.scene.stage.links") == [[0, 1, "spring"]]
        assert browser.complaints == []
    finally:
        code, complaints = running.end()
    said = [line for line in complaints.splitlines() if not line.startswith("leastaction: compil")]
    assert not said and code in (0, 130)


def test_a_link_from_an_earlier_lab(browser):
    running = Running("--link", "http://127.0.0.1:1/?token=old#system=kepler&q0=0.5,0&v0=0,1.5")
    try:
        opened_address = running.address
        browser.look()
        browser.open("about:blank")
        browser.open(opened_address)
        idle(browser)
        assert state(browser)["q0"] == [0.5, 0] and state(browser)["subject"] == "kepler"
    finally:
        running.end()


def test_the_widget_is_the_same_lab(browser, lab, tmp_path):
    """The widget's script with a notebook's model that hands its questions to a desk here."""
    pytest.importorskip("anywidget")
    from leastaction.lab import widget

    made = widget("kepler")
    page = (
        "<!doctype html><meta charset='utf-8'><link rel='icon' href='data:,'><style>" + made._css + "</style><body>"
        "<div id='cell'></div><script type='module'>"
        + made._esm.replace("export default { render };", "")
        + """
const model = { asked: [], heard: null, get: name => "kepler", on: (what, f) => { model.heard = f; }, off: () => {},
                send: message => model.asked.push(message) };
window.model = model;
render({ model, el: document.getElementById("cell") });
</script></body>"""
    )
    (tmp_path / "cell.html").write_text(page, "utf-8")
    browser.look()
    browser.open(tmp_path / "cell.html")
    sent = []
    made.send = lambda content, buffers: sent.append((content["id"], bytes(buffers[0])))
    root = "document.querySelector('.la-widget').lab"
    for _ in range(3):  # hello, the subject, the run
        asked = browser.wait("model.asked.shift()")
        made._handle_custom_msg(asked, [])
        number, data = sent.pop()
        browser.evaluate(f"model.heard({{id: {number}}}, [new DataView(Uint8Array.from({list(data)}).buffer)])")
    browser.wait(f"{root}.answered > 0")
    assert browser.evaluate(f"{root}.view.scene.title") == "Kepler problem"
    assert browser.evaluate("document.querySelector('.la-widget .message').hidden")
    assert browser.complaints == []
