"""The lab in a notebook's cell: the same page and the same desk, joined by the notebook's own messages."""

from __future__ import annotations

from typing import Any

from leastaction.lab.desk import Desk
from leastaction.lab.subjects import OWN, Shelf, of_system
from leastaction.results.viewer.page import asset, bundle

LAB = "leastaction.lab"


def widget(what: Any = "double-pendulum", *, q0: Any = None, p0: Any = None, v0: Any = None, draw: Any = None) -> Any:
    """A widget of a problem by its name, or of a system with its start."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError("the widget needs anywidget: pip install 'leastaction[lab]'") from None

    if isinstance(what, str):
        shelf, first = Shelf(), what
    else:
        shelf, first = Shelf(of_system(what, q0, p0, v0, draw)), OWN
    shelf.get(first)
    desk = Desk(shelf)

    class Lab(anywidget.AnyWidget):
        _esm = f"{bundle('lab.js', 'widget.js', package=LAB)}\nexport default {{ render }};\n"
        _css = asset("view.css") + asset("lab.css", LAB)
        first = traitlets.Unicode("").tag(sync=True)

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.on_msg(self._asked)

        def _asked(self, _: Any, content: Any, buffers: Any) -> None:
            if isinstance(content, dict) and "id" in content:
                found = desk.answer(content.get("asked"))
                self.send({"id": content["id"]}, [found])

    return Lab(first=first)
