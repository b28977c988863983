"""The lab: a page on this machine where sliders move the motion. `leastaction lab`, or `lab.widget()` in a notebook."""

from __future__ import annotations

from typing import Any

__all__ = ["serve", "widget"]


def serve(*arguments: Any, **options: Any) -> None:
    """Open the lab in the browser, until Ctrl-C: see `leastaction.lab.server.serve`."""
    from leastaction.lab.server import serve

    serve(*arguments, **options)


def widget(what: Any = "double-pendulum", **options: Any) -> Any:
    """The lab as a Jupyter widget, of a problem by its name or of a system with q0= and v0= or p0=."""
    from leastaction.lab.notebook import widget

    return widget(what, **options)
