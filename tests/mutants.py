"""Can the tests fail? One small change of the library at a time, and whether its tests notice: `make mutants`.

A mutant has one operator, comparison, condition or number changed. It is killed if a test fails, or if the tests take
ten times as long as usual. What nobody notices is printed as a difference: a line that no test needs, or a hole.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# What tests and library load first: each mutant begins with these loaded, and without the library.
LOADED = ("flint", "llvmlite.binding", "mpmath", "numpy", "scipy.integrate", "scipy.optimize", "sympy")

ROOT = Path(__file__).parents[1]
SOURCE = "src/leastaction"
# Modules, as patterns, and the tests that have to notice a change of them, quick ones first.
ROOMS = {
    "tables": (
        ["methods/*.py", "engine/*_tables.py", "engine/collocation.py"],
        ["tests/engine/test_symplectic_tables.py", "tests/methods"],
    ),
    "step": (
        ["step/form.py", "step/prediction.py", "step/rows.py", "step/inputs.py"],
        ["tests/step/test_step_form.py", "tests/systems/test_inputs.py", "tests/methods", "tests/step"],
    ),
    "verdict": (
        ["engine/verdict.py", "engine/rescue.py"],
        ["tests/engine/test_verdict.py", "tests/step", "tests/run/test_failures.py"],
    ),
    "forms": (
        ["engine/form.py", "engine/gauss.py", "engine/increments.py", "engine/newton_*.py", "engine/explicit.py"],
        ["tests/engine", "tests/step/test_explicit.py", "tests/step/test_rk4_lanes.py", "tests/step", "tests/methods"],
    ),
    "constraints": (
        ["step/constraints.py", "step/independence.py", "systems/projection.py", "engine/held.py", "engine/settling.py",
         "engine/ending.py", "engine/long_held.py"],
        ["tests/step/test_rattle.py", "tests/systems/test_constraints.py", "tests/systems/test_sums.py"],
    ),
    "events": (["events/*.py"], ["tests/events"]),
    "archive": (["store/*.py", "run/archive.py"], ["tests/store", "tests/events/test_stored_events.py"]),
}  # fmt: skip
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    # Of floats, which are hardly ever equal, nobody can tell < from ≤.
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int]]:
    """What can be changed, as (node, field, index in a list): not annotations, messages and `strict=True`."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns") or isinstance(tree, ast.JoinedStr | ast.Raise):
            continue
        if isinstance(tree, ast.keyword) and tree.arg == "strict":
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST):
                continue
            number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
            decides = isinstance(tree, ast.If) and field == "test" and not isinstance(node, ast.Compare | ast.BoolOp)
            decides = decides and ast.unparse(node) != "TYPE_CHECKING"
            if type(node) in OPERATORS or number or decides:
                yield tree, field, index
            yield from places(node)


def changed(text: str, number: int) -> str:
    """The module with the change of this number."""
    tree = ast.parse(text)
    node, field, index = list(places(tree))[number]
    value = getattr(node, field)
    old = value[index] if isinstance(value, list) else value
    if isinstance(old, ast.Constant):
        new: ast.AST = ast.Constant(not old.value if isinstance(old.value, bool) else old.value + 1)
    else:
        new = OPERATORS[type(old)]() if type(old) in OPERATORS else ast.UnaryOp(ast.Not(), old)
    if isinstance(value, list):
        value[index] = new
    else:
        setattr(node, field, new)
    return ast.unparse(tree) + "\n"


def passes(copy: Path, tests: list[str], patience: float | None = None) -> tuple[bool, float]:
    """Whether the tests pass with this copy of the library, and how long they take, in a process that has loaded other
    packages already.
    """
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.chdir(copy)
        path = [str(copy / "src"), os.environ.get("PYTHONPATH", "")]
        os.environ |= {"PYTHONPATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, path[0])
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os._exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests]))
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        time.sleep(0.02)
        if patience is not None and time.monotonic() - begun > patience:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False, time.monotonic() - begun
    return ended[1] == 0, time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/mutants.py", description="Mutants, and whether the tests notice.")
    parser.add_argument("rooms", nargs="*", default=list(ROOMS), help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--each", type=int, default=5, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="*", help="these tests, in place of those of the room")
    options = parser.parse_args()
    for name in LOADED:
        importlib.import_module(name)
    killed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for room in options.rooms:
            patterns, tests = ROOMS[room]
            tests = options.tests or tests
            files = [file for pattern in patterns for file in sorted((copy / SOURCE).glob(pattern))]
            all_of_them = [(f, k) for f in files for k in range(len(list(places(ast.parse(f.read_text("utf-8"))))))]
            fine, usual = passes(copy, tests)
            assert fine, f"{' '.join(tests)}: a test fails without any change"
            for file, number in random.Random(options.seed).sample(all_of_them, options.each):
                text = file.read_text("utf-8")
                mutant, plain = changed(text, number), ast.unparse(ast.parse(text)) + "\n"
                if mutant == plain:
                    continue
                file.write_text(mutant, "utf-8")
                survived, _ = passes(copy, tests, 10 * usual)
                file.write_text(text, "utf-8")
                lines = difflib.unified_diff(plain.splitlines(), mutant.splitlines(), n=0, lineterm="")
                tried, killed = tried + 1, killed + (not survived)
                print("SURVIVED" if survived else "killed", room, file.relative_to(copy / SOURCE))
                print("\n".join(f"    {line}" for line in lines if line[:2] not in ("--", "++", "@@")), flush=True)
    print(f"{killed} of {tried} mutants were killed (seed {options.seed})")


if __name__ == "__main__":
    main()
