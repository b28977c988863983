"""Lines of code that state or solve a step, before a step was data and now: `python benchmarks/lines.py`.

Only lines with code count: no blank lines, comments or docstrings. Before: the files that held a step's equations, its
solvers and steppers in the last commit of 0.1.0 before the rebuild. Now: all of step/ and backends/, by what they do; a
file counts for the first capability whose pattern it matches. The last ones are those that 0.1.0 had, too.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter

BEFORE, NOW = "e16ea8f", "HEAD"
SOURCE = "src/leastaction/"
THEN = re.compile(
    r"discrete|stepping/|many/newton|analysis/tangent|linear/(weak|operator)|precision/(equations|newton|steppers|linear)\."
)
CAPABILITIES = {
    "sums": r"backends/(sum|cells|tables|sparse)|"
    r"loops/(summed|constrained_sums|rows|sparse|strips|swift|krylov|team|helpers)",
    "constraints": r"step/(constraints|independence)|fused/(settling|rattle|hop)|(loops|flint)/constraints|loops/hops",
    "inputs": r"step/(inputs|samples)|flint/driven",
    "chords and shifts": r"fused/(chord|separable|places|collocation|nodes|mass|stiff)|patterns|chords|definite|shift",
    "marches, cyclic coordinates, steps with one root": r"fused/(march|uniqueness)|cyclic|poles",
    "explicit steps": r"(fused|loops)/explicit",
    "compositions": r"composed",
    "noise, Legendre's map, L_d itself": r"loops/(noise|legendre)|flint/boundary",
    "tangent maps": r"tangent|sensitivity",
    "RK4": r"rk4|backends/field",
    "linear systems": r"linear|kronecker",
    "any precision": r"flint",
    "a step, its verdict and prediction": r"step/",
    "Newton's iteration": r"fused/(newton|equations|judging)|"
    r"loops/(solver|iterations|sweep|increments|coarse)|/elimination",
    "native records, translation": r"backends/(layout|records|native|built|build|status)|machine|__init__",
    "kernels, loops over steps, steppers": r"",
}
OLD = 8  # so many of the last ones 0.1.0 had, too
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def lines(text: str) -> int:
    """Lines with code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            found |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            found -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(found)


def counted(commit: str, files: re.Pattern[str]) -> dict[str, int]:
    """Lines of each file."""
    names = git("ls-tree", "-r", "--name-only", commit, SOURCE).split()
    own = [name.removeprefix(SOURCE) for name in names if name.endswith(".py")]
    return {name: lines(git("show", f"{commit}:{SOURCE}{name}")) for name in own if files.match(name)}


def shares(found: dict[str, int]) -> Counter[str]:
    """Lines by capability."""
    total: Counter[str] = Counter()
    for name, count in found.items():
        total[next(what for what, pattern in CAPABILITIES.items() if re.search(pattern, name))] += count
    return total


if __name__ == "__main__":
    before, now = counted(BEFORE, THEN), counted(NOW, re.compile(r"step/|backends/"))
    print(f"{BEFORE}: {sum(before.values())} lines\n{NOW}: {sum(now.values())} lines")
    found = shares(now)
    for what in CAPABILITIES:
        print(f"  {found[what]:5d}  {what}")
    print(f"what {BEFORE} had, too: {sum(found[what] for what in list(CAPABILITIES)[-OLD:])} lines")
