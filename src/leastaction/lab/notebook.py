"""The lab in a notebook's cell: the same page and the same answers, joined by the notebook's own messages."""

from __future__ import annotations

from typing import Any

from leastaction.lab.answers import Answers
from leastaction.lab.subjects import OWN, Subjects, of_system
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
        subjects, first = Subjects(), what
    else:
        subjects, first = Subjects(of_system(what, q0, p0, v0, draw)), OWN
    subjects.get(first)
    answers = Answers(subjects)

    class Lab(anywidget.AnyWidget):
        _esm = f"{bundle('lab.js', 'widget.js', package=LAB)}\nexport default {{ render }};\n"
        _css = asset("view.css") + asset("lab.css", LAB)
        first = traitlets.Unicode("").tag(sync=True)

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.on_msg(self._asked)

        def _asked(self, _: Any, content: Any, buffers: Any) -> None:
            if isinstance(content, dict) and "id" in content:
                found = answers.answer(content.get("asked"))
                self.send({"id": content["id"]}, [found])

    return Lab(first=first)
