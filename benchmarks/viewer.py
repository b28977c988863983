"""How fast motion is shown: `python benchmarks/viewer.py`, with Chromium on the machine.

1. A page of 10⁵ states: seconds to write it, and its size.
2. That page playing in headless Chromium: frames a second, and what one costs the page's own thread.
3. The lab, a double pendulum, 60 s of motion: from a slider's event to the new picture, while nothing plays and while
   the motion plays.

Other work on the machine disturbs all of these numbers. So the load is printed, and best values beside the usual ones;
also the processor time of browser and lab together, which depends less on the load. On an idle machine, work that is
done one part after another takes no longer than this time.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from measured import table

import leastaction as la
from browser import CHROMIUM, Browser

ROWS: list[list[str]] = []  # of the table
VIEW = "document.getElementById('view').motion"
LAB = "document.getElementById('view').lab"

PLAY = f"""(async seconds => {{
  const view = {VIEW}, costs = [], draw = view.draw.bind(view);
  view.draw = () => {{ const t = performance.now(); draw(); costs.push(performance.now() - t); }};
  view.clock.play();
  await new Promise(done => setTimeout(done, 500));
  const stamps = [];
  const begin = performance.now();
  while (performance.now() - begin < seconds * 1000) stamps.push(await new Promise(requestAnimationFrame));
  costs.sort((a, b) => a - b);
  const gaps = stamps.slice(1).map((t, k) => t - stamps[k]);
  let best = 0;  // frames in the best second
  for (let i = 0, j = 0; j < stamps.length; j++) {{
    while (stamps[j] - stamps[i] > 1000) i++;
    best = Math.max(best, j - i);
  }}
  const late = gaps.filter(gap => gap > 25).length;
  return {{ fps: 1000 * gaps.length / (stamps.at(-1) - stamps[0]), best, late, frames: gaps.length,
           cost: costs[costs.length >> 1], dear: costs[Math.floor(costs.length * 0.95)] }};
}})"""

SLIDE = f"""(async (playing, count) => {{
  const lab = {LAB};
  lab.state.span = 60; lab.state.runs[0].h = 0.01; lab.build(); lab.changed();
  while (lab.busy) await new Promise(done => setTimeout(done, 20));
  playing ? lab.view.clock.play() : lab.view.clock.pause();
  lab.latency = [];
  const row = [...document.querySelectorAll('.panel .row')].find(r => r.firstChild.textContent === 'θ₁');
  const slider = row.querySelector('input');
  for (let i = 0; i < count; i++) {{
    slider.value = 0.3 + 0.4 * i / count;
    slider.dispatchEvent(new Event('input', {{ bubbles: true }}));
    while (lab.busy) await new Promise(done => setTimeout(done, 5));
    await new Promise(done => setTimeout(done, 60));
  }}
  return lab.latency;
}})"""


def processor(*roots: int) -> dict[int, float]:
    """Seconds of processor time of these processes and all that they started, where the system tells it."""
    found, parents = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # ended meanwhile
            continue
        fields = text.rpartition(")")[2].split()
        pid = int(stat.parent.name)
        parents[pid], found[pid] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    mine = {}
    for pid, seconds in found.items():
        above = pid
        while above not in roots and above in parents:
            above = parents[above]
        if above in roots:
            mine[pid] = seconds
    return mine


def since(before: dict[int, float], *roots: int) -> float:
    """Seconds of processor time since then, of the processes that are still there."""
    now = processor(*roots)
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in now.items()) if now else float("nan")


def load() -> str:
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def page(folder: Path) -> Path:
    problem = la.problems.get("double-pendulum")
    path = la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=0.005, steps=100_000 - 1)
    file, seconds = folder / "run.html", []
    for _ in range(7):
        clock = time.perf_counter()
        path.to_html(file)
        seconds.append(time.perf_counter() - clock)
    what = f"`to_html` of {len(path)} states, {file.stat().st_size / 1e6:.2f} MB"
    ROWS.append([what, f"{statistics.median(seconds):.2f} s", f"{min(seconds):.2f} s", "", load()])
    return file


def playing(browser: Browser, file: Path, seconds: float) -> None:
    for name, screen in (("1280 × 900", {}), ("phone, 390 × 844 at 2×", {"width": 390, "height": 844, "phone": True})):
        browser.look(**screen)
        browser.open(file)
        browser.wait(f"{VIEW}?.paint")
        before = processor(browser.pid)
        found = browser.evaluate(f"{PLAY}({seconds})")
        cores = since(before, browser.pid) / (seconds + 0.5)
        assert not browser.complaints, browser.complaints
        spent = (
            f"{1e3 * cores / found['fps']:.1f} ms a frame in all of Chromium, {found['cost']:.1f} in the page's thread"
        )
        usual = f"{found['fps']:.1f} frames a second"
        ROWS.append([f"that page playing, {name}", usual, f"{found['best']} in its best second", spent, load()])


def sliding(browser: Browser, count: int) -> None:
    command = [sys.executable, "-m", "leastaction", "lab", "double-pendulum", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        browser.look()
        browser.open(found[0])
        browser.wait(f"{LAB}?.answered > 0")
        for plays in (False, True):
            before = processor(browser.pid, process.pid)
            latency = browser.evaluate(f"{SLIDE}({str(plays).lower()}, {count})")
            each = 1e3 * since(before, browser.pid, process.pid) / len(latency)
            what = f"lab, double pendulum, 60 s: slider to new picture, {'playing' if plays else 'paused'}"
            usual = f"{statistics.median(latency):.0f} ms, 90 % below {sorted(latency)[int(0.9 * len(latency))]:.0f}"
            ROWS.append([what, usual, f"{min(latency):.0f} ms", f"{each:.0f} ms, browser and lab", load()])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=8.0, help="how long to play (default: 8)")
    options.add_argument("--count", type=int, default=60, help="how many times to move the slider (default: 60)")
    options.add_argument("--quick", action="store_true", help="half as long, and keep nothing")
    given = options.parse_args()
    if given.quick:
        given.seconds, given.count = given.seconds / 2, given.count // 2
    with tempfile.TemporaryDirectory() as name:
        file = page(Path(name))
        if CHROMIUM is None:
            sys.exit("no Chromium on this machine: nothing to play it in")
        browser = Browser(Path(name) / "profile")
        try:
            playing(browser, file, given.seconds)
            sliding(browser, given.count)
        finally:
            browser.close()
    table("viewer", "How fast motion is shown", ["what", "usual", "best", "processor time", "load"], ROWS)


if __name__ == "__main__":
    main()
