"""Every public name has a page in the reference, and a docstring in NumPy's convention with an example that runs.

(The examples themselves run as doctests of the modules.)
"""

import inspect
import re
import sys
from pathlib import Path

import pytest

import leastaction as la

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

from _extensions import reference

NAMES = reference.public()
CLASSES = {name: thing for name, thing in NAMES.items() if inspect.isclass(thing)}
# Their public face is what their docstrings list; other methods serve the package's own modules.
INSIDE = (
    "Lagrangian",
    "Quadratic",
    "Term",
    "Path",
    "Propagator",
    "Galerkin",
    "Composition",
    "Quadrature",
    "RungeKutta4",
)
INSIDE += ("Modes", "Happened", "Load", "Samples", "StoredPath", "Advice")
METHODS = {
    f"{name}.{method}": getattr(cls, method) for name, cls in CLASSES.items() for method in reference.methods(cls)
}


def test_every_public_name_stands_in_the_reference():
    pages = reference.pages()
    listed = "".join(pages[page] for page in ("leastaction.rst", "analysis.rst", "linear.rst", "problems.rst"))
    for name in la.__all__:
        if name not in ("analysis", "linear", "problems", "__version__"):
            assert f":py:obj:`leastaction.{name} <" in listed, name
    for name in NAMES:
        assert f"api/{name}.rst" in pages and f":py:obj:`{name} <" in listed, name


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name):
    """Its own, or, of what comes back from a call, that of the function which gives it."""
    given = re.search(r"`la\.([\w.]+)` (gives|makes) it", " ".join(reference.sections(NAMES[name])[""]))
    makers = [NAMES[f"leastaction.{given[1]}"]] if given and f"leastaction.{given[1]}" in NAMES else []
    told = "".join(line for one in (NAMES[name], *makers) for line in reference.sections(one).get("Examples", []))
    assert ">>>" in told, f"{name} has no example"


@pytest.mark.parametrize("name", [*(name for name in NAMES if name not in CLASSES), *METHODS])
def test_a_function_tells_what_it_takes_and_gives(name):
    function = (NAMES | METHODS)[name]
    told, signature = reference.sections(function), inspect.signature(function)
    asked = [p for p in signature.parameters if p not in ("self", "cls")]
    described = "\n".join(line for line in told.get("Parameters", []) if line and not line.startswith(" "))
    words = set(described.replace(",", " ").replace(":", " ").replace("*", " ").split())
    assert not [p for p in asked if p not in words], f"{name} does not describe these: {set(asked) - words}"
    gives = "Returns" in told or reference.returned(function) or signature.return_annotation in ("None", None)
    assert gives, f"{name} does not say what it returns"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_tells_what_it_has(name):
    cls, told = CLASSES[name], reference.sections(CLASSES[name])
    if "Parameters" not in told and not issubclass(cls, Exception) and cls is not la.EnergyRange:
        assert "Attributes" in told, f"{name} lists no attributes"
    for method in reference.methods(cls):
        assert callable(getattr(cls, method)) and inspect.getdoc(getattr(cls, method)), f"{name}.{method}"
    if name.rpartition(".")[2] not in INSIDE and not issubclass(cls, Exception):
        own = [m for m, f in vars(cls).items() if not m.startswith("_") and inspect.isroutine(inspect.unwrap(f))]
        assert set(own) <= set(reference.methods(cls)), f"{name} does not list {set(own) - set(reference.methods(cls))}"
