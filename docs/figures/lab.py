"""Draws lab.png, the figure of viewer.md and the README: the lab after 10,000 periods, in a headless Chromium."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))

from PIL import Image

from browser import Browser

LAB = "document.getElementById('view').lab"
PRESS = "[...document.querySelectorAll('button')].find(b => b.textContent === '10,000 periods').click()"


def main() -> None:
    command = [sys.executable, "-m", "leastaction", "lab", "pendulum", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    file = Path(__file__).with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(Path(profile))
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            browser.look(width=1360, height=820)
            browser.open(found[0])
            browser.wait(f"{LAB}?.answered > 0 && !{LAB}.busy")
            browser.evaluate(f"void ({PRESS})")
            browser.wait(f"{LAB}.answered > 1 && !{LAB}.busy")
            browser.evaluate(f"({LAB}.view.clock.pause(), {LAB}.view.clock.step(0.066))")
            time.sleep(0.5)
            browser.screenshot(file)
        finally:
            browser.close()
            process.send_signal(signal.SIGINT)
            process.wait()
    Image.open(file).quantize(128).save(file, optimize=True)


if __name__ == "__main__":
    main()
