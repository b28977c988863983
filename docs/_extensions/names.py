"""The default role: `text` is code, and a link where the text is a public name such as `la.integrate`."""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from _extensions.reference import escaped, returned, sections

# How names are written in text, and what they are called in the reference.
OWNERS = {
    "la.": "leastaction.",
    "leastaction.": "leastaction.",
    "analysis.": "leastaction.analysis.",
    "linear.": "leastaction.linear.",
    "problems.": "leastaction.problems.",
    "path.": "leastaction.Path.",
    "paths.": "leastaction.Paths.",
    "Path.": "leastaction.Path.",
    "Paths.": "leastaction.Paths.",
    "Lagrangian.": "leastaction.Lagrangian.",
    "Quadratic.": "leastaction.Quadratic.",
    "system.": "leastaction.Lagrangian.",
}
NAME = re.compile(rf"({'|'.join(map(re.escape, OWNERS))})([A-Za-z_][\w.]*)")


class Name(SphinxRole):
    """Code that may be a link."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        code = nodes.literal(self.rawtext, self.text)
        return [reference_to(self.text, code) or code], []


def reference_to(text: str, code: nodes.literal) -> pending_xref | None:
    """A link to the public name with which a text begins, if it begins with one."""
    match = NAME.match(text)
    if match is None:
        return None
    target = OWNERS[match[1]] + match[2].rstrip(".")
    return pending_xref(text, code, refdomain="py", reftype="obj", reftarget=target, optional=True)


def link_code(app: Sphinx, doctree: nodes.document) -> None:
    """Code in the text of a Markdown page is a link where it is a public name, as in docstrings."""
    for code in list(doctree.findall(nodes.literal)):
        if not isinstance(code.parent, pending_xref | nodes.reference | nodes.title) and "xref" not in code["classes"]:
            link = reference_to(code.astext(), code.deepcopy())
            if link is not None:
                code.parent.replace(code, link)


def leave_as_code(app: Sphinx, env: Any, node: pending_xref, inner: nodes.Element) -> nodes.Node | None:
    return inner if node.get("optional") else None


def mend(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Also unlink what numpydoc links in lists of attributes: they have no entry of their own."""
    lines[:] = [re.sub(r":obj:`(\w+) <\.\w+>`", r"**\1**", line) for line in escaped(lines)]


def drop_methods(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """The Methods section says which methods are public; on the page the methods themselves follow."""
    if "Methods" in lines:
        begin = lines.index("Methods")
        heads = [k for k in range(begin + 2, len(lines) - 1) if lines[k + 1] and set(lines[k + 1]) == {"-"}]
        del lines[begin : heads[0] if heads else len(lines)]


def tell_returns(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A function whose docstring does not say what comes back has it in its annotation."""
    if what in ("function", "method") and (kind := returned(thing)):
        lines += ["", "Returns", "-------", re.sub(r"NDArray\[\w+\]|FloatArray", "ndarray", kind), ""]


def hide_constructor(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, None] | None:
    """Of classes that only come back from calls: nobody calls them."""
    return ("", None) if signature and inspect.isclass(thing) and "Parameters" not in sections(thing) else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("name", Name())
    app.connect("doctree-read", link_code)
    app.connect("missing-reference", leave_as_code)
    app.connect("autodoc-process-docstring", drop_methods, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", tell_returns, priority=100)
    app.connect("autodoc-process-docstring", mend, priority=900)  # after numpydoc
    app.connect("autodoc-process-signature", hide_constructor)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
