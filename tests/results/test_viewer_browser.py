"""Pages that play, as a reader meets them, in a real browser: desktop, phone, dark, print."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import leastaction as la
from browser import CHROMIUM, Browser
from systems import catalogued
from thrift import rest_slow

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; as root on Debian `make browser` installs it"
)

SCREENS = {
    "desktop": {},
    "phone": {"width": 390, "height": 844, "phone": True},
    "dark": {"dark": True},
    "dark phone": {"width": 360, "height": 740, "phone": True, "dark": True},
}
VIEW = "document.getElementById('view').motion"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def run(name, method="simpson", h=0.02, t_end=10.0):
    problem = catalogued(name)
    return la.integrate(problem.system, method, problem.q0, problem.p0, h=h, t_end=t_end)


@pytest.fixture(scope="module")
def paths():
    return {
        "pendulums": run("double-pendulum"),
        "top": run("lagrange-top", h=0.002, t_end=2.0),
        "driven": run("driven-oscillator", h=0.05, t_end=40.0),
        "kepler": run("kepler", "P4N4Q8Gau", h=0.3, t_end=20.0),
    }


@pytest.fixture(scope="module")
def pages(paths, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in [*paths, "two", "cloud", "plain"]}
    for name, path in paths.items():
        path.to_html(files[name])
    paths["pendulums"].to_html(files["two"], beside=[run("double-pendulum", "rk4", 0.05)])
    problem = catalogued("double-pendulum")
    starts = problem.q0 + np.linspace(0, 0.3, 50)[:, None]
    la.ensemble(problem.system, "simpson", starts, problem.p0, h=0.02, steps=400).to_html(files["cloud"])

    def chain(q, v):
        return 0.5 * (v @ v) - 0.5 * np.sum((q[1:] - q[:-1]) ** 2) - 0.5 * (q @ q)

    la.integrate(la.Lagrangian(chain, n=5), "simpson", np.arange(5) / 5, np.zeros(5), h=0.1, steps=100).to_html(
        files["plain"]
    )
    return files


def opened(browser, file, screen="desktop") -> Browser:
    browser.look(**SCREENS[screen])
    browser.open(file)
    browser.wait(f"{VIEW}?.paint")
    return browser


def frame(browser) -> None:
    """Until the next picture is drawn."""
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def seek(browser, t) -> None:
    browser.evaluate(f"({VIEW}.clock.pause(), {VIEW}.clock.seek({t}))")
    frame(browser)


@pytest.mark.parametrize("screen", rest_slow(SCREENS, ["desktop"]))
@pytest.mark.parametrize("name", ["pendulums", "top", "driven", "kepler", "two", "cloud", "plain"])
def test_pages_load_and_play(browser, pages, name, screen):
    """No complaint on the console, nothing asked of a network, something drawn on every canvas, and it moves."""
    opened(browser, pages[name], screen)
    assert browser.evaluate(f"{VIEW}.clock.playing")
    before = browser.evaluate(f"{VIEW}.clock.t")
    browser.wait(f"{VIEW}.clock.t !== {before}")
    drawn = browser.evaluate(
        "[...document.querySelectorAll('canvas')].map(c => c.getContext('2d').getImageData(0, 0, c.width, c.height)"
        ".data.some(x => x > 0))"
    )
    assert len(drawn) >= 4 and all(drawn)
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.complaints == []
    assert browser.requested <= {"file", "data"}


CONTRAST = """(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const linear = x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const light = c => { const [r, g, b] = rgb(c).map(x => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  return [...document.querySelectorAll('h1, h2, p, span, output, button, figcaption, b')].filter(e =>
    e.textContent.trim() && e.offsetParent).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)]; })
    .sort((a, b) => a[0] - b[0])[0]; })()"""


@pytest.mark.parametrize("screen", SCREENS)
def test_text_stands_out_from_its_ground(browser, pages, screen):
    worst, where = opened(browser, pages["two"], screen).evaluate(CONTRAST)
    assert worst > 4.5, where


@pytest.mark.parametrize("name", ["pendulums", "kepler"])
def test_the_canvas_shows_the_path(browser, pages, paths, name):
    """At many times the masses are where the path says: by the page's own scale, and by the colour of the pixels."""
    path = paths[name]
    l = path.params.get("l1")
    opened(browser, pages[name])
    for t in np.linspace(0.05, 9.9, 13):
        seek(browser, t)
        q = path(t)
        if l is None:
            masses = [q]
        else:
            upper = np.array([l * np.sin(q[0]), -l * np.cos(q[0])])
            masses = [upper, upper + l * np.array([np.sin(q[1]), -np.cos(q[1])])]
        for i, place in enumerate(masses, 1):
            told = browser.evaluate(f"{VIEW}.stageList[0].places[{i}].slice(0, 2)")
            middle = browser.evaluate(f"{VIEW}.stageList[0].toScreen({place.tolist()}).slice(0, 2)")
            np.testing.assert_allclose(told, middle, atol=0.4)
            pixel = browser.evaluate(
                f"[...{VIEW}.stageList[0].canvas.getContext('2d').getImageData("
                f"Math.round({middle[0]}), Math.round({middle[1]}), 1, 1).data]"
            )
            colour = browser.evaluate(f"{VIEW}.scene.runs[0].colour")
            assert pixel[:3] == [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    # one metre is as long across as it is high, and down is down
    x, y = (np.array(browser.evaluate(f"{VIEW}.stageList[0].toScreen({p}).slice(0, 2)")) for p in ([1, 0], [0, 1]))
    origin = np.array(browser.evaluate(f"{VIEW}.stageList[0].toScreen([0, 0]).slice(0, 2)"))
    assert (x - origin)[0] == pytest.approx(-(y - origin)[1]) and (x - origin)[0] > 0


def test_numbers_beside_the_curves_are_those_of_the_path(browser, pages, paths):
    opened(browser, pages["pendulums"])
    for t in (0.0, 3.3, 10.0):
        seek(browser, t)
        shown = browser.evaluate("[...document.querySelectorAll('.legend b')].map(e => e.textContent)")
        found = [
            float(text.replace("−", "-").replace("·10", "e").translate(str.maketrans("⁻⁰¹²³", "-0123")))
            for text in shown
        ]
        np.testing.assert_allclose(found, paths["pendulums"](t), atol=2e-4)
        assert browser.evaluate(f"{VIEW}.readout.value") == f"t = {t:.2f} s"


def test_play_pause_and_speed(browser, pages):
    opened(browser, pages["pendulums"])
    browser.click(".play")
    frame(browser)
    stopped = browser.evaluate(f"{VIEW}.clock.t")
    frame(browser)
    assert browser.evaluate(f"{VIEW}.clock.t") == stopped
    assert browser.evaluate("document.querySelector('.play').getAttribute('aria-label')") == "play"
    browser.click(".play")
    browser.wait(f"{VIEW}.clock.t !== {stopped}")
    speed = browser.evaluate(f"{VIEW}.clock.speed")
    browser.click("button[aria-label=faster]")
    assert browser.evaluate(f"{VIEW}.clock.speed") == 2 * speed
    for _ in range(3):
        browser.click("button[aria-label=slower]")
    assert browser.evaluate(f"{VIEW}.clock.speed") == speed / 4
    frame(browser)
    assert browser.evaluate(f"{VIEW}.speed.value") == "×0.25"


def test_the_motion_begins_again_after_its_end(browser, pages):
    opened(browser, pages["pendulums"])
    browser.evaluate(f"{VIEW}.clock.seek(9.99)")
    browser.wait(f"{VIEW}.clock.t < 5")


def test_keyboard(browser, pages):
    opened(browser, pages["pendulums"])
    t = f"{VIEW}.clock.t"
    browser.press(" ")
    assert not browser.evaluate(f"{VIEW}.clock.playing")
    browser.press("Home")
    assert browser.evaluate(t) == 0
    browser.press("ArrowRight")
    assert browser.evaluate(t) == pytest.approx(0.05)
    browser.press("ArrowRight", shift=True)
    assert browser.evaluate(t) == pytest.approx(1.05)
    browser.press("ArrowLeft")
    assert browser.evaluate(t) == pytest.approx(1.0)
    browser.press("End")
    assert browser.evaluate(t) == 10
    browser.press("l")
    assert browser.evaluate(f"{VIEW}.log") is True
    browser.press("t")
    assert browser.evaluate(f"{VIEW}.trails.value") == "long"
    browser.press(" ")
    assert browser.evaluate(f"{VIEW}.clock.playing")
    assert browser.complaints == []


def test_every_control_can_be_reached_by_the_keyboard(browser, pages):
    opened(browser, pages["pendulums"])
    names = browser.evaluate(
        "[...document.querySelectorAll('button, select, input')].filter(e => e.offsetParent).map(e =>"
        " [e.tabIndex, e.getAttribute('aria-label') || e.title || e.textContent])"
    )
    assert len(names) > 8 and all(place >= 0 and name for place, name in names)


def test_sliding_in_time(browser, pages):
    """By the slider, and by a press in a chart; all pictures follow."""
    opened(browser, pages["pendulums"])
    left, top, width, height = browser.evaluate(
        "(b => [b.x, b.y, b.width, b.height])(document.querySelector('.time').getBoundingClientRect())"
    )
    browser.drag((left + 0.1 * width, top + height / 2), (left + 0.5 * width, top + height / 2))
    frame(browser)
    assert browser.evaluate(f"{VIEW}.clock.t") == pytest.approx(5, abs=0.2)
    assert not browser.evaluate(f"{VIEW}.clock.playing")
    for chart in ("qChart", "eChart"):
        x, y, t = browser.evaluate(
            f"(c => {{ const b = c.canvas.getBoundingClientRect(); return [b.x + c.X(2), b.y + b.height / 2, 2]; }})"
            f"({VIEW}.{chart})"
        )
        browser.evaluate(f"{VIEW}.clock.seek(7)")
        browser.drag((x + 30, y), (x, y))
        frame(browser)
        assert browser.evaluate(f"{VIEW}.clock.t") == pytest.approx(t, abs=0.05)
        assert float(browser.evaluate("document.querySelector('.time').value")) == pytest.approx(0.2, abs=0.01)


def test_space_is_right_handed_and_seen_from_above(browser, pages):
    """From above, x turns to y against the clock; z is up; what is nearer hides what is farther."""
    opened(browser, pages["top"])
    x, y, z, o = (
        np.array(browser.evaluate(f"{VIEW}.stageList[0].toScreen({p})"))
        for p in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0])
    )
    x, y, z = (p - o for p in (x, y, z))
    assert -(x[0] * y[1] - x[1] * y[0]) > 0  # the screen's y goes down
    assert z[1] < 0 and abs(z[0]) < 1e-9
    assert z[2] < 0  # higher is nearer


@pytest.mark.parametrize("touch", [False, True])
def test_space_is_turned_by_mouse_or_touch(browser, pages, paths, touch):
    opened(browser, pages["top"], "phone" if touch else "desktop")
    seek(browser, 0.5)
    before = browser.evaluate(f"{VIEW}.stageList[0].places.map(p => p.slice())")
    x, y = browser.middle(".stage canvas")
    if touch:
        browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        for k in range(1, 6):
            browser.call("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": x + 15 * k, "y": y + 6 * k}])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    else:
        browser.drag((x, y), (x + 75, y + 30))
    frame(browser)
    after = browser.evaluate(f"{VIEW}.stageList[0].places.map(p => p.slice())")
    assert abs(np.array(after) - np.array(before)).max() > 5
    # turned, not bent: distances in space stay (screen and depth, in the units of the picture)
    scale, size = browser.evaluate(
        f"(s => [s.scale, Math.hypot(...s.frame.low.map((x, d) => s.frame.high[d] - x)) / 2])({VIEW}.stageList[0])"
    )
    for state in (before, after):
        points = np.array(state) / [scale, scale, 1 / size]
        assert np.linalg.norm(points[1] - points[0]) == pytest.approx(1, rel=2e-3)


def test_choices(browser, pages):
    """Coordinates hidden and shown, another phase portrait, trails."""
    opened(browser, pages["pendulums"])
    assert browser.evaluate(f"{VIEW}.qChart.series.length") == 2
    browser.click(".chip")
    assert browser.evaluate(f"{VIEW}.qChart.series.length") == 1
    browser.click(".chip")
    assert browser.evaluate(f"{VIEW}.qChart.series.length") == 2
    browser.evaluate(f"({VIEW}.phaseSelect.value = 1, {VIEW}.phaseSelect.dispatchEvent(new Event('change')))")
    frame(browser)
    assert browser.evaluate(f"{VIEW}.pChart.xLabel") == "θ₂ (rad)"
    seek(browser, 8)
    counts = {}
    for trail in ("none", "short", "all"):
        browser.evaluate(f"{VIEW}.setTrail('{trail}')")
        frame(browser)
        counts[trail] = browser.evaluate(
            f"(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((x, i) => i % 4 == 3 && x > 0)"
            f".length)({VIEW}.stageList[0].canvas)"
        )
    assert counts["none"] < min(counts["short"], counts["all"])


def test_two_runs_are_told_apart(browser, pages):
    opened(browser, pages["two"])
    assert browser.evaluate(f"{VIEW}.stageList.length") == 2
    labels = browser.evaluate("[...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    assert labels == ["simpson, h = 0.02", "rk4, h = 0.05"]
    colours = browser.evaluate(f"{VIEW}.scene.runs.map(r => r.colour)")
    assert len(set(colours)) == 2


@pytest.mark.parametrize("name", ["pendulums", "two"])
def test_nothing_is_bent_on_paper(browser, pages, name):
    """Canvases are drawn for the sizes they have on paper, sharper, in dark ink."""
    opened(browser, pages[name], "dark")
    browser.evaluate(f"{VIEW}.print(true)")
    for width, height, across, high in browser.evaluate(
        "[...document.querySelectorAll('canvas')].map(c => [c.width, c.height, c.clientWidth, c.clientHeight])"
    ):
        assert width == pytest.approx(3 * across, abs=1) and height == pytest.approx(3 * high, abs=1)
    assert browser.evaluate(f"{VIEW}.paint.ink") == "#1b1f24"
    browser.evaluate(f"{VIEW}.print(false)")
    assert browser.evaluate(f"{VIEW}.paint.ink") == "#e7eaee"


@pytest.mark.parametrize("screen", ["desktop", "dark"])
def test_print(browser, pages, screen):
    """A still with the curves, on white, one page; afterwards the screen is as before."""
    opened(browser, pages["pendulums"], screen)
    seek(browser, 3)
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.evaluate("getComputedStyle(document.querySelector('.bar')).display") == "none"
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    browser.look(**SCREENS[screen])
    frame(browser)
    assert browser.evaluate("getComputedStyle(document.querySelector('.bar')).display") == "flex"
    assert browser.complaints == []


def test_hostile_names_are_text(browser, tmp_path):
    """Markup in the names of a system, of parameters and of a drawing's axes is shown, never run."""

    def fn(q, v, **params):
        return 0.5 * v @ v - 0.5 * sum(params.values()) * q @ q

    system = la.Lagrangian(fn, n=2, params={HOSTILE: 1.0, "__proto__": 1.0, "constructor": 2.0})
    system.name = HOSTILE
    path = la.integrate(system, "simpson", [1.0, 0.0], [0.0, 1.0], h=0.1, steps=40)
    path.to_html(tmp_path / "hostile.html")
    opened(browser, tmp_path / "hostile.html")
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
    assert HOSTILE in browser.evaluate("document.querySelector('.facts').textContent")
    assert browser.evaluate("document.title") == f"{HOSTILE} · leastaction"
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.scripts.length") == 2
    assert browser.complaints == []


def test_no_other_script_runs(browser, pages):
    """The page's policy stops what is injected, and every connection."""
    opened(browser, pages["pendulums"])
    browser.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = true';"
        " document.body.append(s); })()"
    )
    assert browser.evaluate("window.ran") is None
    assert browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 'there', () => 'refused')") == "refused"


def colours(file):
    return {pixel for _, pixel in Image.open(file).convert("RGB").getcolors(1 << 20)}


def test_the_notebook_frame_plays(browser, paths, tmp_path):
    """In an ordinary page, as in a notebook, the frame runs its script and the page around it stays its own."""
    file = tmp_path / "cell.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'><body>{paths['kepler']._repr_html_()}</body>", "utf-8")
    browser.look()
    browser.open(file)
    shot = tmp_path / "cell.png"
    for _ in range(100):
        frame(browser)
        browser.screenshot(shot)
        if (0xCC, 0x79, 0xA7) in colours(shot):  # the planet, in the colour of s = 4
            break
    else:
        raise AssertionError("nothing is drawn in the frame")
    assert browser.complaints == []


@pytest.mark.parametrize("width", rest_slow([360, 600, 1000], [360]))
@pytest.mark.parametrize("name", ["pendulums", "top", "two", "plain"])
def test_a_page_in_a_frame_fits_without_a_scroll_bar(browser, pages, name, width):
    opened(browser, pages[name])
    browser.look(width=width, height=544)
    browser.evaluate("void document.getElementById('view').classList.add('framed')")
    frame(browser)
    assert browser.evaluate("document.documentElement.scrollHeight") <= 544
    assert browser.evaluate("document.querySelector('.stage').clientHeight") > 150
    assert browser.evaluate("document.querySelector('.bar').getBoundingClientRect().bottom") <= 544.5


def test_clouds_are_drawn_where_the_trajectories_are(browser, pages):
    opened(browser, pages["cloud"])
    seek(browser, 4.0)
    problem = catalogued("double-pendulum")
    starts = problem.q0 + np.linspace(0, 0.3, 50)[:, None]
    paths = la.ensemble(problem.system, "simpson", starts, problem.p0, h=0.02, steps=200)
    l = problem.params["l1"]
    q = paths.q[:, -1]
    right = l * np.stack([np.sin(q).sum(axis=1), -np.cos(q).sum(axis=1)], axis=1)
    run_ = f"{VIEW}.scene.runs[0]"
    k = browser.evaluate(f"{VIEW}.stageList[0].now[0] + Math.round({VIEW}.stageList[0].now[1])")
    shown = browser.evaluate(f"(p => Array.from(p.values.slice({k} * p.cols, ({k} + 1) * p.cols)))({run_}.points)")
    np.testing.assert_allclose(np.reshape(shown, (50, 2)), right, atol=2e-4)


def test_facts_tell_how_it_was_computed(browser, pages):
    facts = opened(browser, pages["kepler"]).evaluate(
        "[...document.querySelectorAll('.facts span')].map(e => e.textContent)"
    )
    assert facts[0] == "P4N4Q8Gau" and facts[-1] == "k = 1"
    assert json.dumps(facts).count("h = ") == 1
