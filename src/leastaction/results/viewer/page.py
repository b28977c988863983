"""One HTML file with everything in it. It asks for nothing from a network, and says so to the browser (its CSP)."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from importlib import resources

SELF, NONE = "'self'", "'none'"
PARTS = ("data.js", "clock.js", "ticks.js", "chart.js", "stage.js", "view.js")  # in the order of their imports


@cache
def asset(name: str, package: str = "leastaction.results.viewer") -> str:
    return resources.files(package).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def bundle(*more: str, package: str = "leastaction.results.viewer") -> str:
    """The viewer's modules, then those of another package, as one script without imports and exports."""
    sources = [asset(name) for name in PARTS] + [asset(name, package) for name in more]
    text = "\n".join(sources)
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export (default )?", "", text, flags=re.MULTILINE)


def page(title: str, script: str, style: str, data: str, *, connect: bool = False) -> str:
    """A page whose only code is `script`: the browser runs nothing else, whatever the data hold.

    data     JSON without the character <; the script finds it in the element "data"
    connect  whether the page may send requests to the server it came from
    """
    script, style = f"\n{script}\n", f"\n{style}\n"
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:; "
        f"connect-src {SELF if connect else NONE}; base-uri 'none'; form-action 'none'"
    )
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        "<link rel='icon' href='data:,'>\n"
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n"
        "<body>\n<div id='view'></div>\n"
        "<noscript>This page plays a motion, which needs JavaScript.</noscript>\n"
        f"<script type='application/json' id='data'>{data}</script>\n"
        f"<script type='module'>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
