"""The command line: `leastaction reproduce | run | advise | lab | methods | problems | bench`."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import sys
import traceback
import warnings
from collections.abc import Container, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from leastaction.errors import StepFailed
from leastaction.results import files
from leastaction.version import __version__

EXAMPLES = """examples:
  leastaction reproduce                               recompute the papers, write report/index.html
  leastaction methods                                 the methods by name
  leastaction bench kepler --h 0.05                   how fast they are here
  leastaction run pendulum --t-end 100 --tol 1e-9     method and step are chosen
  leastaction run pendulum --q0 pi/2 --v0 0 --param omega=2 --t-end 100 --tol 1e-9
  leastaction advise my_system.py --t-end 100 --tol 1e-9
  leastaction run pendulum --method simpson --h 0.01 --t-end 10 --plot pendulum.png
  leastaction lab double-pendulum                     see it move, turn its knobs
  leastaction run my_system.py --method P4N4Q8Gau --h 0.05 --t-end 100 --out run.npz
  leastaction run --mass M.mtx --stiffness K.mtx --q0 bent.txt --method P2N2Q4Gau --h 0.01 --t-end 5 --output 7,8
"""

MIN_DIGITS = 16
# Options of `run` for a linear system from files only; other systems would ignore them.
LINEAR_ONLY = ("damping", "rayleigh", "load", "load_vector", "ground", "fixed", "allow_unstable")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Exit codes: 0 done, 1 the computation failed, 2 the call was wrong, 130 interrupted."""
    parser, arguments = _parser(), sys.argv[1:] if arguments is None else arguments
    for argument in arguments:
        if argument.startswith("--") and argument.endswith("=--"):  # Python up to 3.12 would make an empty list of it
            parser.error(f"argument {argument[:-3]}: expected a value, got '--'")
    options, left = parser.parse_known_args(arguments)
    if left:
        advice = "; a vector is one word, such as 0,1/3,pi" if any(word[-1:].isdigit() for word in left) else ""
        parser.error(f"unrecognized arguments: {' '.join(left)}{advice}")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = int(options.command(options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as head, has closed the pipe; Python's flush at exit must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        print(f"leastaction: {str(error).replace('allow_unstable=True', '--allow-unstable')}", file=sys.stderr)
        return 2
    except StepFailed as failure:
        # A user of the command line has no exception object from which to take the path.
        before = f"{len(failure.path)} states" if len(failure.path) > 1 else "one state"
        kept = "" if getattr(options, "out", None) else f". --out FILE keeps the {before} before"
        print(f"leastaction: {str(failure).rsplit('. The ', 1)[0]}{kept}", file=sys.stderr)
        return 1
    except ArithmeticError as error:
        print(f"leastaction: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"leastaction: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning for people who type a command: without the place in the code."""
    print(f"leastaction: warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="leastaction",
        description="Write the Lagrangian, get the motion.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"leastaction {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    reproduce = commands.add_parser("reproduce", help="recompute what the papers publish and write a report")
    reproduce.add_argument("papers", nargs="*", metavar="PAPER", help="only these (default: all)")
    reproduce.add_argument(
        "--full",
        action="store_true",
        help="every row of the top's tables with 64 digits, on all cores (some 45 minutes of one core)",
    )
    reproduce.add_argument("--digits", type=int, help="precision of the runs that have one")
    reproduce.add_argument("--out", type=Path, default=Path("report"), help="folder of the report (default: report)")
    reproduce.set_defaults(command=_reproduce)

    run = commands.add_parser(
        "run",
        help="integrate a problem, or a system of your own",
        description="Integrate a problem of the catalogue, a Python file that defines `system` (a la.Lagrangian or a "
        "la.Quadratic), `q0`, and `p0` or `v0`, or a linear system M q̈ + C q̇ + K q = f(t) from Matrix Market files.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("system", metavar="PROBLEM|FILE.py", nargs="?")
    run.add_argument("--method", help="with --h (default: simpson)")
    run.add_argument("--h", type=_number, help="step: 0.01, 1/3")
    run.add_argument("--tol", type=float, help="instead of both: the error of the position at the end, of its range")
    run.add_argument("--t-end", type=_number, required=True, help="until when")
    run.add_argument("--digits", type=int, help="decimal digits of the arithmetic (default: float64)")
    run.add_argument("--every", type=int, default=1, help="store one state in this many steps (default: 1)")
    run.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw positions and the energy's error or change to FILE"
    )
    run.add_argument("--out", type=Path, metavar="FILE", help="save the path to this file")
    run.add_argument("--output", type=_indices, metavar="I,J-K", help="store these degrees of freedom only")
    run.set_defaults(command=_run)
    _start_options(run, "zero, or the start of the problem or file")
    linear = run.add_argument_group("linear systems", "vectors are files (.mtx, .npy, text) or numbers: 0,1.5,2")
    linear.add_argument("--mass", metavar="M.mtx", help="mass matrix, or its diagonal as an n × 1 array")
    linear.add_argument("--stiffness", metavar="K.mtx", help="stiffness matrix")
    damping = linear.add_mutually_exclusive_group()
    damping.add_argument("--damping", metavar="C.mtx", help="viscous damping matrix")
    damping.add_argument("--rayleigh", type=float, nargs=2, metavar=("ALPHA", "BETA"), help="damping αM + βK")
    linear.add_argument("--load", metavar="FILE", help="rows of t, f_1 … f_n (or g_1 … g_k), joined by cubic splines")
    shape = linear.add_mutually_exclusive_group()
    shape.add_argument("--load-vector", metavar="FILE", help="n rows of k numbers: the load is this times g")
    shape.add_argument("--ground", metavar="FILE", help="n rows of k directions: g are accelerations of the ground")
    linear.add_argument("--fixed", type=_indices, default=[], metavar="I,J-K", help="degrees of freedom held at zero")
    linear.add_argument("--allow-unstable", action="store_true", help="run even where the method is not stable")

    advise = commands.add_parser(
        "advise",
        help="which method and step keep a tolerance",
        description="Find a method and a step that keep a tolerance for a problem of the catalogue, or for the system "
        "of a Python file, and print what was found and all runs that were made.",
    )
    advise.add_argument("system", metavar="PROBLEM|FILE.py")
    advise.add_argument("--t-end", type=float, required=True, help="until when")
    advise.add_argument("--tol", type=float, required=True, help="error of the position at the end, of its range")
    advise.add_argument("--plot", type=Path, metavar="FILE", help="draw work and errors to this file")
    advise.set_defaults(command=_advise)
    _start_options(advise, "the start of the problem or file")

    lab = commands.add_parser(
        "lab",
        help="see the motion, and turn its knobs, in the browser",
        description="Open a page on this machine that computes while its sliders move: of a problem of the catalogue, "
        "or of a Python file that defines `system` (a la.Lagrangian), `q0`, `p0` or `v0`, and, if it likes, `draw`.",
    )
    lab.add_argument("system", metavar="PROBLEM|FILE.py", nargs="?")
    lab.add_argument("--link", help="a link that the lab gave before, whose state is restored")
    lab.add_argument("--port", type=int, default=0, help="port of the loopback address (default: a free one)")
    lab.add_argument("--no-browser", action="store_true", help="print the address only")
    lab.set_defaults(command=_lab)

    methods = commands.add_parser("methods", help="list the methods")
    methods.add_argument("--max-s", type=int, default=4, help="largest degree listed (default: 4)")
    methods.set_defaults(command=_methods)

    problems = commands.add_parser("problems", help="list the problems; or compare one with its published state")
    problems.add_argument(
        "name", metavar="PROBLEM", nargs="?", help="one of them: what is known of it, and how we compare"
    )
    problems.set_defaults(command=_problems)

    bench = commands.add_parser(
        "bench",
        help="time methods on this machine",
        description="Time methods on a problem of the catalogue or a system of your own, taking turns, the best of "
        "several runs each; with the largest energy error of the run.",
    )
    bench.add_argument("system", metavar="PROBLEM|FILE.py", nargs="?", default="double-pendulum")
    bench.add_argument("--method", action="append", help="may be given several times (default: some of every order)")
    bench.add_argument("--h", type=float, default=0.01, help="step (default: 0.01)")
    bench.add_argument("--steps", type=int, default=20_000, help="steps of a run (default: 20000)")
    bench.add_argument("--repeats", type=int, default=5, help="runs of each method (default: 5)")
    bench.set_defaults(command=_bench)
    return parser


def _start_options(command: argparse.ArgumentParser, default: str) -> None:
    """Where a run begins, and with which values of the parameters."""
    start = command.add_argument_group("start", f"vectors are numbers, such as 0,1/3,pi, or files; default: {default}")
    start.add_argument("--q0", metavar="VECTOR", help="initial positions")
    velocity = start.add_mutually_exclusive_group()
    velocity.add_argument("--v0", metavar="VECTOR", help="initial velocities")
    velocity.add_argument("--p0", metavar="VECTOR", help="initial momenta")
    start.add_argument(
        "--param", type=_parameter, action="append", default=[], metavar="NAME=VALUE",
        help="the value of a parameter; may be given several times",
    )  # fmt: skip


def _reproduce(options: argparse.Namespace) -> int:
    from leastaction.papers import papers
    from leastaction.papers.model import Kind, Options
    from leastaction.report import reproduce
    from leastaction.run.waiting import bar as progress_bar

    known = papers()
    unknown = [key for key in options.papers if key not in known]
    if unknown:
        raise ValueError(f"no paper {unknown[0]!r}; there are {', '.join(known)}")
    if options.digits is not None and options.digits < MIN_DIGITS:
        raise ValueError(f"--digits must be at least {MIN_DIGITS}, what float64 has; got {options.digits}")
    chosen = [known[key] for key in dict.fromkeys(options.papers or known)]
    with progress_bar(1, "part", bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} {elapsed}") as bar:

        def progress(what: str, done: int, total: int) -> None:
            bar.total = total
            bar.set_description(what, refresh=False)
            bar.update(done - bar.n)

        outcomes = reproduce(chosen, options.out, Options(options.full, options.digits), progress)
    rows = []
    for outcome in outcomes:
        agree, hold = sum(cell.agrees for cell in outcome.cells), sum(claim.holds for claim in outcome.claims)
        claims = f"{hold} of {len(outcome.claims)}"
        numbers = [len(outcome.cells), agree, len(outcome.cells) - agree]
        kinds = [len(outcome.kind(kind)) for kind in Kind]
        rows.append([outcome.paper.key, *numbers, len(outcome.figures), claims, *kinds])
    head = ["paper", "published", "reproduced", "different", "figures", "statements hold"]
    _print_table([*head, "misprints proved", "as read", "remarks"], rows)
    for outcome in outcomes:
        for table, note, cells in outcome.differences:
            print(f"\n{outcome.paper.key}, Table {table.number}: {note or 'not explained'}")
            for cell in cells:
                print(f"  {cell.row}, {cell.column}: printed {cell.published}, computed {cell.shown()}")
        for where, _, claim in outcome.failures:
            print(f"\n{outcome.paper.key}, {where}: {claim.note or 'does not hold'}")
            print(f"  {claim.text}: {claim.measured}")
    if timed := sum(len(outcome.timed) for outcome in outcomes):
        print(f"\n{timed} statements on run times are in the report; they are not counted")
    print(f"\nreport: {options.out / 'index.html'}")
    return 0


def _print_table(header: list[str], rows: list[list[Any]]) -> None:
    from leastaction.printing import table

    print(table(header, [[str(entry) for entry in row] for row in rows], left=len(header)))


def _number(text: str) -> str:
    """The text of a number, checked. The number is rounded once, later, to the precision of the run."""
    from leastaction.numbers.notation import exact

    try:
        exact(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _parameter(text: str) -> tuple[str, str]:
    """The name and the text of the value of a parameter."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as g=9.81; got {text!r}")
    return name, _number(value)


def _indices(text: str) -> list[int]:
    """Numbers of degrees of freedom, and ranges of them, both ends included: 0,3,5-7."""
    indices: list[int] = []
    for word in text.replace(",", " ").split():
        parts = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if parts is None or (parts[2] and int(parts[2]) < int(parts[1])):
            raise argparse.ArgumentTypeError(
                f"expected numbers of degrees of freedom, counted from 0, such as 0,3 or 5-7; got {text!r}"
            )
        indices += range(int(parts[1]), int(parts[2] or parts[1]) + 1)
    return indices


def _run(options: argparse.Namespace) -> int:
    import leastaction as la
    from leastaction.numbers.rounding import reals

    matrices = options.mass is not None or options.stiffness is not None
    if matrices == (options.system is not None):
        raise ValueError("say what to run: a problem or a file, or --mass and --stiffness")
    if not matrices and (given := [name for name in LINEAR_ONLY if getattr(options, name) not in (None, [], False)]):
        raise ValueError(
            f"--{given[0].replace('_', '-')} goes with --mass and --stiffness; a problem has its own start, and a "
            "FILE.py defines it"
        )
    _check_outputs(options)
    if (options.h is None) == (options.tol is None):
        raise ValueError("say how to run: with --h and a --method, or with --tol, which chooses both")
    if options.tol is not None and options.method is not None:
        raise ValueError("--tol chooses the method: leave out --method")
    method = "simpson" if options.method is None else options.method
    how = {"method": method, "h": options.h} if options.tol is None else {"tol": options.tol}
    if matrices:
        if options.param:
            raise ValueError(
                "--param goes with a problem or a FILE.py; a linear system of --mass and --stiffness has none"
            )
        system, start = _linear_system(options)
    else:
        system, start = _started(options, exactly=options.digits is not None)
        start["output"] = options.output
    try:
        path = la.integrate(
            system, **start, **how, t_end=options.t_end, every=options.every, digits=options.digits, progress=True
        )
    except la.StepFailed as failure:
        if options.out:
            failure.path.save(options.out)
            print(f"saved, up to the step that failed: {options.out}")
        raise
    print(path)
    if options.fixed:
        print(f"fixed degrees of freedom are not counted: {_counted(path, options.fixed)} of the files")
    if path.advice is not None:
        print(path.advice)
    if path.output is None:
        energy = path.energy()
        with reals(path.digits).working():
            change = float(abs(energy - energy[0]).max())
        print(f"energy {_shown(energy[0], path.digits)}, largest change {change:.2e}")
    for name, state in (("q", path.q[-1]), ("p", path.p[-1])):
        print(f"last {name} {state if path.digits is None else ' '.join(_shown(x, path.digits) for x in state)}")
    if options.out:
        path.save(options.out)
        print(f"saved: {options.out}")
    if options.plot:
        shown = ["configuration", "energy"][: 1 if path.output is not None else 2]  # energy asks for the whole state
        _draw(options.plot, [partial(path.plot, what) for what in shown])
    return 0


def _counted(path: Any, fixed: list[int]) -> str:
    """The numbers of the first and the last stored degree of freedom in the files, which also count the fixed ones."""
    stored = [int(j) for j in (range(path.system.n) if path.output is None else path.output)]
    free = [dof for dof in range(path.system.n + len(set(fixed))) if dof not in fixed]
    return ", ".join(f"q{j} is {free[j]}" for j in dict.fromkeys((stored[0], stored[-1])))


def _advise(options: argparse.Namespace) -> int:
    import leastaction as la

    options.out = None
    _check_outputs(options)
    system, start = _started(options)
    advice = la.advise(system, **start, t_end=options.t_end, tol=options.tol)
    print(advice.details)
    if options.plot:
        _draw(options.plot, [advice.plot])
    return 0


def _shown(x: Any, digits: int | None) -> str:
    import mpmath

    return f"{x:.12g}" if digits is None else str(mpmath.nstr(x, digits))


def _check_outputs(options: argparse.Namespace) -> None:
    """Refuse, before a run that may be long, files that could not be written after it."""
    if options.out is not None:
        files.kind(options.out)
    for file in (options.out, options.plot):
        if file is not None and not file.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {file.parent} to write {file.name} to")
    if options.plot is not None:
        from matplotlib.backend_bases import FigureCanvasBase

        known = FigureCanvasBase.get_supported_filetypes()
        if (ending := options.plot.suffix.lstrip(".").lower()) and ending not in known:
            raise ValueError(f"--plot {options.plot}: no figure format {ending!r}; there are {', '.join(known)}")


def _draw(file: Path, pictures: list[Any]) -> None:
    """Pictures one below the other, each a function of axes, to a file."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (7, 3 * len(pictures)) if len(pictures) > 1 else None
    figure, axes = plt.subplots(len(pictures), 1, figsize=size, layout="constrained", sharex=True, squeeze=False)
    for picture, ax in zip(pictures, axes[:, 0], strict=True):
        picture(ax)
        ax.label_outer()
    figure.savefig(file, dpi=160)
    print(f"drawn: {file}")


def _started(options: argparse.Namespace, exactly: bool = False) -> tuple[Any, dict[str, Any]]:
    """A system and its start, with what the command says in place of what the problem or the file says."""
    given = {word: getattr(options, word) for word in ("q0", "v0", "p0") if getattr(options, word) is not None}
    system, start = _system(options.system, exactly, given)
    if "v0" in given or "p0" in given:
        start = {"q0": start.get("q0")}
    start |= {word: _vector(text, system.n, f"--{word}") for word, text in given.items()}
    return system, start | ({"params": dict(options.param)} if options.param else {})


def _vector(text: str, n: int, name: str) -> Any:
    """n numbers: their texts, which are rounded once to the precision of the run, or the numbers of a file."""
    from leastaction.linear.files import read_numbers
    from leastaction.numbers.notation import exact

    words: Any = text.replace(",", " ").split()
    try:
        for word in words:
            exact(word)
    except ValueError:
        if not Path(text).is_file():
            raise ValueError(f"{name} must be {n} numbers, such as 0,1/3,pi, or a file of them; got {text!r}") from None
        words = read_numbers(text).ravel()
    if len(words) != n:
        raise ValueError(f"{name} must have {n} numbers, one for each degree of freedom; got {len(words)}")
    return words


def _system(name: str, exactly: bool = False, given: Container[str] = ()) -> tuple[Any, dict[str, Any]]:
    """A system and its start, from a file of the user's, or from the catalogue, which also knows exact data.

    What is given elsewhere, a file need not define.
    """
    if name.endswith(".py"):
        found = _own(name, given)
        return found["system"], {word: found[word] for word in ("q0", "p0", "v0") if word in found}
    from leastaction import problems

    problem = problems.get(name)
    if exactly:
        return problem.system, {"q0": problem.exact_q0, "p0": problem.exact_p0}
    return problem.system, {"q0": problem.q0, "p0": problem.p0}


def _own(file: str, given: Container[str] = ()) -> dict[str, Any]:
    """The names that a file of the user's defines: a system, and a start if none is given elsewhere."""
    if not Path(file).is_file():
        raise FileNotFoundError(f"there is no file {file}")
    found = _executed(file)
    missing = [word for word in ("system", "q0") if word not in found and word not in given]
    moving = "p0" in given or "v0" in given
    if missing or (not moving and ("p0" in found) == ("v0" in found)):
        wrong = "has both p0 and v0" if "p0" in found and "v0" in found else "lacks p0 or v0"
        raise ValueError(
            f"{file} must define system, q0, and either p0 or v0; it {f'lacks {missing}' if missing else wrong} "
            "(`run` and `advise` also take --q0, and --p0 or --v0)"
        )
    return found


def _executed(file: str) -> dict[str, Any]:
    """The names that a file of the user's defines; the message of an error in the file names the line."""
    sys.path.insert(0, str(Path(file).resolve().parent))  # files beside it can be imported, as when Python runs it
    try:
        return runpy.run_path(file)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        message = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"{file}, line {line}: {type(error).__name__}: {message}") from error


def _linear_system(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """A linear system and its start, from files; indices count all degrees of freedom of the files, also fixed ones."""
    from leastaction.linear.files import from_files, vector

    if options.mass is None or options.stiffness is None:
        raise ValueError("a linear system needs both --mass and --stiffness")
    names = ("damping", "rayleigh", "load", "load_vector", "ground", "fixed")
    system, free = from_files(options.mass, options.stiffness, **{name: getattr(options, name) for name in names})
    n = system.n + len(set(options.fixed))
    start: dict[str, Any] = {"q0": vector(options.q0, n, "--q0")[free], "allow_unstable": options.allow_unstable}
    if options.p0 is not None:
        start["p0"] = vector(options.p0, n, "--p0")[free]
    else:
        start["v0"] = vector(options.v0, n, "--v0")[free]
    if options.output is not None:
        places = {int(dof): place for place, dof in enumerate(free)}
        if lost := [dof for dof in options.output if dof not in places]:
            raise ValueError(f"--output {lost[0]}: there is no such free degree of freedom among the {n}")
        start["output"] = [places[dof] for dof in options.output]
    return system, start


def _lab(options: argparse.Namespace) -> int:
    from leastaction import problems
    from leastaction.lab.server import serve
    from leastaction.lab.subjects import of_system

    name, own = options.system, None
    if name is not None and not name.endswith(".py"):
        problems.get(name)  # raises if there is no such problem, and lists the problems
    if name is not None and name.endswith(".py"):
        found = _own(name)
        start = {word: found.get(word) for word in ("q0", "p0", "v0", "draw")}
        own, name = of_system(found["system"], **start, name=Path(name).stem, file=name), None
    serve(name, own, options.port, not options.no_browser, options.link)
    return 0


def _methods(options: argparse.Namespace) -> int:
    from leastaction.linear import stable_intervals
    from leastaction.methods import ALIASES, family, method
    from leastaction.methods.composition import KNOWN

    if options.max_s < 1:
        raise ValueError(f"--max-s must be at least 1; got {options.max_s}")
    names: dict[str, list[str]] = {}
    for alias, chosen in ALIASES.items():
        names.setdefault(chosen.name, []).append(alias)
    rows = []
    for member in family(options.max_s):
        also, stable = ", ".join(names.get(member.name, [])), _stability(stable_intervals(member))
        rows.append([member.name, also, member.order, stable, "symplectic, symmetric"])
    stable = _stability(stable_intervals("rk4"))
    rows.append(["rk4", "rk4-hamilton", method("rk4").order, stable, "explicit; neither symplectic nor symmetric"])
    rows.append(["rk4-lagrange", "", method("rk4-lagrange").order, stable, "the same on the state (q, v)"])
    _print_table(["method", "also called", "order", "stable", "properties"], rows)
    print("\ncompositions: NAME(METHOD), as in yoshida(P1N2Q2Lob)")
    for name, what in KNOWN.items():
        print(f"  {name:9} {what}")
    print("\nstable: up to this hω on an oscillator of frequency ω; +: and in intervals beyond (la.analysis.stability)")
    return 0


def _stability(intervals: Sequence[tuple[float, float]]) -> str:
    """Where a method is stable, in a few letters."""
    end = intervals[0][1]
    return "every h" if end == float("inf") else f"{end:.4f}{' +' if len(intervals) > 1 else ''}"


def _problems(options: argparse.Namespace) -> int:
    from leastaction import problems

    if options.name is not None:
        return _problem(problems.get(options.name))
    found = [problems.get(name) for name in (*problems.names(), *problems.driven())]
    rows = []
    for p in found:
        known = "exact" if p.has_exact else "reference" if p.reference is not None else ""
        driven = f", input {', '.join(p.system.inputs)}" if p.system.inputs else ""
        rows.append([p.name, p.system.n, known, p.title + driven])
    _print_table(["problem", "n", "known", "what"], rows)
    return 0


def _problem(problem: Any) -> int:
    """The facts about one problem; a published state is printed beside the computed one."""
    from leastaction.numbers.notation import readable
    from leastaction.problems.comparison import METHOD, compare

    print(f"{problem.title}. {problem.description}\nSource: {problem.source}")
    print(", ".join(f"{name} = {readable(value)}" for name, value in problem.settings.items()))
    if problem.reference is None:
        print("An exact solution is known." if problem.has_exact else "No state of its motion is published.")
        return 0
    found = compare(problem)
    print(f"\nAt t = {found.t:g}: the published state, and {METHOD} with {found.steps} steps\n")
    rows = [
        [name, f"{theirs:.16g}", f"{ours:.16g}", f"{ours - theirs:.1e}", f"{ours - half:.1e}"]
        for name, theirs, ours, half in zip(found.names, found.published, found.ours, found.half, strict=True)
    ]
    _print_table(["", "published", "ours", "difference", "ours - with half the steps"], rows)
    if found.checks:
        print("\nWhat holds of the exact motion, and by how much each misses it\n")
        _print_table(["", "published", "ours"], [[name, f"{a:.1e}", f"{b:.1e}"] for name, a, b in found.checks])
    return 0


BENCH_METHODS = ("midpoint", "stormer-verlet", "simpson", "P2N2Q4Gau", "P3N3Q6Gau", "P4N4Q8Gau", "P8N8Q16Gau", "rk4")


def _bench(options: argparse.Namespace) -> int:
    import leastaction as la

    if options.repeats < 1:
        raise ValueError(f"--repeats must be at least 1; got {options.repeats}")
    system, start = _system(options.system)
    methods = [la.method(name) for name in options.method or BENCH_METHODS]
    best: dict[str, la.Path] = {}
    for _ in range(options.repeats):
        for method in methods:
            path = la.integrate(system, method, **start, h=options.h, steps=options.steps)
            if method.name not in best or path.stats["run_time"] < best[method.name].stats["run_time"]:
                best[method.name] = path
    rows = []
    for name, path in best.items():
        energy = path.energy()
        iterations = path.stats.get("newton_iterations")
        time = f"{path.stats['time_per_step'] * 1e6:.3g}"
        count = "" if iterations is None else f"{iterations / options.steps:.2f}"
        rows.append(
            [name, path.method.order, time, count, f"{abs(energy - energy[0]).max() / (abs(energy[0]) or 1):.1e}"]
        )
    _print_table(["method", "order", "µs per step", "iterations", "energy error"], rows)
    return 0
