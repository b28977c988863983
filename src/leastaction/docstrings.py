"""What many functions take, told once: a line `{name, …}` of a docstring stands for the entries of these parameters."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PARAMETERS = {
    "ax": """ax : matplotlib axes, optional
    Where to draw. Without `ax` a new figure is made.""",
    "at": """at : {"nodes", "end"}, default "nodes"
    The largest error over the run, or the error at t_end.""",
    "beside": """beside : sequence of Path, optional
    Other paths of the same system, shown beside this one.""",
    "case": """system : Lagrangian, Quadratic, Sum or Problem
    What moves. A problem of `la.problems` brings its start, and its exact solution where one is known.
q0 : array_like, shape (n,), optional
    Positions at the start. With a problem and no start of your own, the steps h may stand in this place.
p0, v0 : array_like, shape (n,), optional
    Momenta or velocities at the start.""",
    "columns": """dofs : array_like of int, optional
    The degrees of freedom shown. Without `dofs`: all that are stored.
names : sequence of str or mapping of int to str, optional
    Names of these degrees of freedom, or {number: name}. Without `names`: those of the system.""",
    "digits": """digits : int, optional
    Decimal digits of the arithmetic. Without `digits` float64. Orders of 8 and more show with 40 digits or so.""",
    "digits_correct": """digits : int, default 17
    How many digits are to be correct.""",
    "draw": """draw : callable, optional
    How to draw the system, as for `Path.to_html`.""",
    "ends": """q0, q1 : array_like, shape (n,)
    The ends of the step.
t : number, default 0
    The time at q0.""",
    "file": """file : path
    The file to write.""",
    "h": """h : float
    The step.""",
    "inputs": """inputs : mapping of str to array_like, optional
    Values of the inputs of a system that has some, by name: the shape of the input, the same for all states, or
    (K, …), one for each.""",
    "linear_states": """q, p, v : array_like, shape (n,) or (…, n)
    Positions, and momenta or velocities: one state, or one in each row.
t : number or array_like, default 0
    The time, of which a load is a function.
params
    Without effect: those of `la.Lagrangian` have it.""",
    "matrices": """M, K : array_like or sparse array, shape (n, n) or (n,)
    Mass and stiffness.
h : float
    The step.""",
    "method": """method : str or method
    The method.""",
    "method_facts": """name, order, symmetric
    Its name in the literature, its order, and whether a step of −h undoes a step of h.""",
    "moved": """system : Lagrangian, Quadratic or Sum
    What moves.""",
    "names": """names : sequence of str, optional
    Names of the coordinates, such as ``["theta1", "theta2"]``: tables, plots, pages and files use them.""",
    "params": """params : mapping, optional
    Values of parameters, in place of the defaults.""",
    "r": """r : int
    Number of points, at least 1; at least 2 where both ends are among them.""",
    "rule": """rule : {"previous", "linear", "cubic"}, default "cubic"
    How samples are joined, as for `la.Samples`.""",
    "start": """q0 : array_like, shape (n,)
    Positions at the start.
p0, v0 : array_like, shape (n,), optional
    Momenta or velocities at the start. Give one of them.""",
    "states_p": """q, p : array_like, shape (n,) or (K, n)
    Positions and momenta of one state or of K states.""",
    "states_v": """q, v : array_like, shape (n,) or (K, n)
    Positions and velocities of one state or of K states.""",
    "state": """q, p : array_like, shape (n,)
    The state before the steps.""",
    "steps": """steps : int, default 1
    How many steps.""",
    "t_end": """t_end : number, optional
    Until when. Without `t_end`: the period of the problem.""",
    "t": """t : number or array_like of shape (K,), default 0
    The time.""",
    "t0": """t0 : number, default 0
    The time at the start.""",
    "x": """x : array_like
    hω.""",
}


def described(cls: type[T]) -> type[T]:
    """Complete the docstring of a class by its fields, ``h: Annotated[FloatArray, "shape (K,)", "Steps."]``, and its
    properties: each becomes an entry of the section Attributes.
    """
    if cls.__doc__:
        entries = []
        for name, annotation in inspect.get_annotations(cls).items():
            if annotation.startswith("Annotated["):
                kind, *told = ast.parse(annotation, mode="eval").body.slice.elts
                *shape, text = (one.value for one in told)
                entries.append((name, [_kind(ast.unparse(kind)), *shape], text))
        for name, member in vars(cls).items():
            if isinstance(member, property) and member.__doc__:
                entries.append((name, [_kind(member.fget.__annotations__["return"])], member.__doc__))
        head, *sections = re.split(r"\n\n(?=\w+\n---)", inspect.cleandoc(cls.__doc__))
        own = [f"{name} : {', '.join(kind)}\n    {text}" for name, kind, text in entries]
        if sections and sections[0].startswith("Attributes\n"):
            own += sections.pop(0).splitlines()[2:]
        cls.__doc__ = "\n\n".join([head, "\n".join(["Attributes", "-" * 10, *own]), *sections])
    return cls


def _kind(annotation: str) -> str:
    return re.sub(r"\bFloatArray\b|NDArray\[np\.\w+\]", "ndarray", annotation)


def documented(*names: str) -> Callable[[T], T]:
    """Complete the docstring of a function or class: lines `{name, …}`, and a section of the parameters named here."""

    def complete(thing: T) -> T:
        if thing.__doc__:  # Python may run without docstrings
            told = re.sub(r"^\{([\w, ]+)\}$", _entries, inspect.cleandoc(thing.__doc__), flags=re.MULTILINE)
            if names:
                head, *sections = re.split(r"\n\n(?=\w+\n---)", told, maxsplit=1)
                own = "Parameters\n----------\n" + "\n".join(PARAMETERS[name] for name in names)
                told = "\n\n".join([head, own, *sections])
            thing.__doc__ = told
        return thing

    return complete


def _entries(line: re.Match[str]) -> str:
    return "\n".join(PARAMETERS[name.strip()] for name in line[1].split(","))
