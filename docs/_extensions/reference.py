"""The reference: one page for every public name, and the pages that list them.

Which methods of a class are public stands in its docstring: the names of its Methods section. Results of the analysis
have no other methods, and no such section.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import leastaction as la
from leastaction.events import Happened
from leastaction.linear.modal import Modes
from leastaction.methods import Composition, Galerkin, RungeKutta4
from leastaction.methods.quadrature import Quadrature
from leastaction.problems.problem import Problem
from leastaction.results.stored_path import StoredPath
from leastaction.run.advice import Advice

# Which names stand together, in the order in which one meets them.
GROUPS: dict[str, tuple[str, list[str]]] = {
    "Systems": ("What moves.", ["Lagrangian", "Term", "Quadratic", "Samples", "const", "project"]),
    "Runs": ("From a system to its motion.", ["integrate", "ensemble", "advise", "tangent", "open", "resume", "cite"]),
    "Results": (
        "What a run gives back.",
        ["Path", "Paths", "results.stored_path.StoredPath", "events.Happened", "run.advice.Advice"],
    ),
    "Events": ("What may happen on the way.", ["Event", "Impact", "EnergyRange"]),
    "Methods": (
        "How a step is made.",
        [
            "method", "galerkin", "compose", "rk4", "discrete_lagrangian",
            "gauss", "lobatto", "radau", "chebyshev", "clenshaw_curtis", "rule",
            "methods.Galerkin", "methods.Composition", "methods.RungeKutta4", "methods.quadrature.Quadrature",
        ],
    ),
    "Errors and warnings": (
        "What can go wrong, each with a name of its own.",
        [
            "StepFailed", "RestingContact", "UnstableStepError", "ConstraintError", "DegenerateLagrangianError",
            "TraceError", "StoreError", "EnergyWarning", "ChartWarning",
        ],
    ),
}  # fmt: skip
# Classes that only come back from calls: no part of `la.__all__`, and yet in people's hands.
RETURNED = {
    "leastaction.results.stored_path.StoredPath": StoredPath,
    "leastaction.events.Happened": Happened,
    "leastaction.run.advice.Advice": Advice,
    "leastaction.methods.Galerkin": Galerkin,
    "leastaction.methods.Composition": Composition,
    "leastaction.methods.RungeKutta4": RungeKutta4,
    "leastaction.methods.quadrature.Quadrature": Quadrature,
    "leastaction.linear.modal.Modes": Modes,
    "leastaction.problems.problem.Problem": Problem,
}
MODULES = {"analysis": la.analysis, "linear": la.linear, "problems": la.problems}


def public() -> dict[str, Any]:
    """Every public name of the reference with what it is; a name that stands in two modules stands once."""
    found: dict[str, Any] = {}
    for name in la.__all__:
        if name not in MODULES and name != "__version__":
            found[f"leastaction.{name}"] = getattr(la, name)
    for module, content in MODULES.items():
        for name in content.__all__:
            if not any(getattr(content, name) is other for other in found.values()):
                found[f"leastaction.{module}.{name}"] = getattr(content, name)
    return found | RETURNED


def sections(thing: Any) -> dict[str, list[str]]:
    """The sections of a docstring in NumPy's convention: each heading with its lines."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line, under in zip(lines, [*lines[1:], ""], strict=True):
        if line and under and set(under) == {"-"} and len(under) == len(line):
            heading = line
            found[heading] = []
        elif not (line and set(line) == {"-"}):
            found[heading].append(line)
    return found


def methods(cls: type) -> list[str]:
    """The public methods of a class: those that its docstring lists; of a result of the analysis, all of them."""
    if cls.__module__.startswith("leastaction.analysis."):
        return [name for name, _ in inspect.getmembers(cls, inspect.isroutine) if not name.startswith("_")]
    listed = [line for line in sections(cls).get("Methods", []) if line and not line.startswith(" ")]
    return re.findall(r"[A-Za-z]\w*", re.sub(r"\(.*?\)", "", ", ".join(listed)))


def returned(function: Any) -> str:
    """What a function returns, by its annotation, where its docstring does not tell more; "" where neither does."""
    if "Returns" in sections(function):
        return ""
    annotation = inspect.signature(inspect.unwrap(function)).return_annotation
    return annotation if isinstance(annotation, str) and annotation not in ("None", "Any") else ""


def summary(thing: Any) -> str:
    """The first sentence of a docstring, as RST that needs no escape."""
    first = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return escaped([first])[0]


def escaped(lines: list[str]) -> list[str]:
    """RST in which |x| is an absolute value, not a substitution; literal blocks, code and examples stay."""
    found, literal, indent = [], False, 0
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if literal and line.strip() and depth <= indent:
            literal = False
        if not literal and not line.lstrip().startswith((">>>", "...", "..")):
            parts = line.split("`")
            line = "`".join(part if k % 2 else part.replace("|", "\\|") for k, part in enumerate(parts))
        found.append(line)
        if line.rstrip().endswith("::"):
            literal, indent = True, depth
    return found


def page(name: str, thing: Any) -> str:
    """One name."""
    short = name.rpartition(".")[2]
    head = f"{short}\n{'=' * len(short)}\n\n"
    if not inspect.isclass(thing):
        return f"{head}.. autofunction:: {name}\n"
    members = methods(thing)
    listed = f"   :members: {', '.join(members)}\n" if members else ""
    return f"{head}.. autoclass:: {name}\n{listed}"


def listing(names: list[str]) -> str:
    """A list of names with what each is for, and the pages behind it."""
    rows = "".join(f"   * - :py:obj:`{name} <{name}>`\n     - {summary(public()[name])}\n" for name in names)
    tree = "".join(f"   api/{name}\n" for name in names)
    return f".. list-table::\n   :widths: 35 65\n\n{rows}\n.. toctree::\n   :hidden:\n\n{tree}\n"


def pages() -> dict[str, str]:
    """Every page of the reference of names, by its file."""
    names = public()
    found = {f"api/{name}.rst": page(name, thing) for name, thing in names.items()}
    text = "leastaction\n===========\n\n``import leastaction as la``\n\n"
    for group, (what, members) in GROUPS.items():
        text += f"{group}\n{'-' * len(group)}\n\n{what}\n\n{listing([f'leastaction.{name}' for name in members])}"
    found["leastaction.rst"] = text
    for module, content in MODULES.items():
        own = [name for name in names if name.startswith(f"leastaction.{module}.")]
        head = f"leastaction.{module}"
        first = (inspect.getdoc(content) or "").split("\n\n")[0]
        found[f"{module}.rst"] = f"{head}\n{'=' * len(head)}\n\n{first}\n\n{listing(own)}"
    return found
