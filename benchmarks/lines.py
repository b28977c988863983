"""Lines of code that state or solve a step, before a step was data and now: `python benchmarks/lines.py`.

Only lines with code count: no blank lines, comments or docstrings. Before: the files that held a step's equations, its
solvers and steppers in the last commit of 0.1.0 before the rebuild. Now: all of step/ and backends/, whatever they do.
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


def counted(commit: str, files: re.Pattern[str]) -> Counter[str]:
    """Lines by folder."""
    found: Counter[str] = Counter()
    for name in git("ls-tree", "-r", "--name-only", commit, SOURCE).split():
        own = name.removeprefix(SOURCE)
        if name.endswith(".py") and files.match(own):
            folder = own.rpartition("/")[0] or own
            found[folder] += lines(git("show", f"{commit}:{name}"))
    return found


if __name__ == "__main__":
    for commit, files in ((BEFORE, THEN), (NOW, re.compile(r"step/|backends/"))):
        found = counted(commit, files)
        print(f"{commit}: {found.total()} lines; {', '.join(f'{name} {count}' for name, count in found.most_common())}")
