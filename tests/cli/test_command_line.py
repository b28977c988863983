"""The command line: what it prints, what it writes, how it fails."""

import json
import re
import socket
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import leastaction as la
from leastaction.cli import EXAMPLES, main

OWN = """
import numpy as np
import leastaction as la

system = la.Lagrangian(lambda q, v, m, k: 0.5 * m * v[0] ** 2 - 0.5 * k * q[0] ** 2, n=1, params=dict(m=2.0, k=8.0))
q0, {word} = [1.0], [0.0]
"""


def refused(arguments, capsys) -> str:
    """A call that was wrong: exit code 2, one line that says why, nothing on the output."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("leastaction: ") and "Traceback" not in err
    return err


def test_methods(capsys):
    assert main(["methods", "--max-s", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    simpson = next(line for line in lines if "simpson" in line).split()
    assert simpson == ["P2N3Q4Lob", "simpson", "4", f"{8**0.5:.4f}", "+", "symplectic,", "symmetric"]
    newmark = next(line for line in lines if "newmark" in line)
    assert "every h" in newmark
    assert any(line.startswith("rk4 ") and "2.8284 " in line for line in lines)
    assert not any(line.startswith("P4") for line in lines)
    listed = [line.split()[0] for line in lines if re.match(r"P\d", line)]
    assert len(set(listed)) == len(listed) > 8
    for line in lines:
        if re.match(r"P\d", line):
            assert f" {la.method(line.split()[0]).order} " in line


def test_problems(capsys):
    assert main(["problems"]) == 0
    out = capsys.readouterr().out
    for name in la.problems.names():
        assert re.search(rf"^{name}\s", out, re.MULTILINE)


def test_run_a_problem(capsys, tmp_path):
    plot, file = tmp_path / "pendulum.png", tmp_path / "run.npz"
    arguments = [
        "run",
        "pendulum",
        "--h",
        "0.01",
        "--t-end",
        "1",
        "--every",
        "4",
        "--plot",
        str(plot),
        "--out",
        str(file),
    ]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert plot.read_bytes().startswith(b"\x89PNG")
    path, problem = la.Path.load(file), la.problems.get("pendulum")
    assert path.t.size == 26 and path.t[-1] == pytest.approx(1)
    np.testing.assert_array_equal(
        path.q, la.integrate(problem.system, "simpson", problem.q0, problem.p0, h=0.01, t_end=1, every=4).q
    )
    assert f"last q {path.q[-1]}" in out and "energy" in out


def test_run_with_digits(capsys, tmp_path):
    """Data of the catalogue and numbers of the command line are taken exactly."""
    file = tmp_path / "run.npz"
    assert main(["run", "kepler", "--h", "1/10", "--t-end", "0.3", "--digits", "40", "--out", str(file)]) == 0
    problem, path = la.problems.get("kepler"), la.Path.load(file)
    same = la.integrate(
        problem.system, "simpson", problem.exact_q0, problem.exact_p0, h="1/10", t_end="3/10", digits=40
    )
    assert path.digits == 40 and (path.q == same.q).all() and (path.t == same.t).all()
    out = capsys.readouterr().out
    assert f"last q {mpmath.nstr(path.q[-1, 0], 40)} {mpmath.nstr(path.q[-1, 1], 40)}\n" in out
    assert "energy -0.5, largest change" in out


@pytest.mark.parametrize("word", ["p0", "v0"])
def test_run_a_file(word, capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.format(word=word))
    assert main(["run", str(file), "--method", "P4N4Q8Gau", "--h", "0.1", "--t-end", "1"]) == 0
    last = float(re.search(r"last q \[(.*)\]", capsys.readouterr().out)[1])
    assert last == pytest.approx(np.cos(2.0), abs=1e-8)


def test_a_start_and_parameters_of_the_command(capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import leastaction as la\n"
        "system = la.Lagrangian(lambda q, v, k: (v @ v - k * (q @ q)) / 2, n=2, params={'k': 1.0})\n"
    )
    start = ["--q0", "1/2,0", "--v0", "0,1", "--param", "k=4", "--t-end", "1", "--output", "0"]
    assert main(["run", str(file), "--method", "P4N4Q8Gau", "--h", "0.1", *start]) == 0
    last = float(re.search(r"last q \[(.*)\]", capsys.readouterr().out)[1])
    assert last == pytest.approx(np.cos(2.0) / 2, abs=1e-8)
    (tmp_path / "q0.txt").write_text("0.5 0\n")
    assert main(["advise", str(file), "--q0", str(tmp_path / "q0.txt"), *start[2:-2], "--tol", "1e-6"]) == 0
    assert "la.integrate(system" in capsys.readouterr().out
    digits = ["run", "pendulum", "--q0", "pi/2", "--p0", "0", "--method", "P2N2Q4Gau", "--digits", "30"]
    assert main([*digits, "--h", "0.1", "--t-end", "0.2"]) == 0
    problem = la.problems.get("pendulum")
    path = la.integrate(problem.system, "P2N2Q4Gau", ["pi/2"], [0], h="0.1", t_end="0.2", digits=30)
    assert str(path.q[-1, 0])[:15] in capsys.readouterr().out


def test_a_file_that_lacks_something(capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text("q0 = [1.0]\np0 = [0.0]\n")
    assert "['system']" in refused(["run", str(file), "--h", "0.1", "--t-end", "1"], capsys)
    file.write_text(OWN.format(word="u0"))
    assert "p0 or v0" in refused(["run", str(file), "--h", "0.1", "--t-end", "1"], capsys)
    file.write_text(OWN.format(word="p0") + "v0 = [0.0]\n")
    assert "either p0 or v0" in refused(["run", str(file), "--h", "0.1", "--t-end", "1"], capsys)
    missing = refused(["run", str(tmp_path / "none.py"), "--h", "0.1", "--t-end", "1"], capsys)
    assert "there is no file" in missing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("system = (", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_file_that_fails_says_where(text, said, capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(f"q0 = [1.0]\n{text}\n")
    err = refused(["run", str(file), "--h", "0.1", "--t-end", "1"], capsys)
    assert f"own.py, line 2: {said}" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "pendulun", "--h", "0.1", "--t-end", "1"], "Did you mean 'pendulum'"),
        (["run", "pendulum", "--method", "P0", "--h", "0.1", "--t-end", "1"], "P0"),
        (["run", "pendulum", "--method", "", "--h", "0.1", "--t-end", "1"], "unknown method ''"),
        (["run", "pendulum", "--h", "-0.1", "--t-end", "1"], "h"),
        (["run", "--h", "0.1", "--t-end", "1"], "say what to run"),
        (
            ["run", "pendulum", "--h", "1e-6", "--t-end", "1e9"],
            "1000000000000000 steps: 1000000000000001 states of 1 deg",
        ),
        (["run", "pendulum", "--digits", "1", "--h", "0.1", "--t-end", "1"], "digits must be an integer, at least 2"),
        (["run", "pendulum", "--q0", "1,2", "--h", "0.1", "--t-end", "1"], "--q0 must have 1 numbers"),
        (["run", "pendulum", "--v0", "fast", "--h", "0.1", "--t-end", "1"], "--v0 must be 1 numbers, such as"),
        (["run", "pendulum", "--param", "G=1", "--h", "0.1", "--t-end", "1"], "G"),
        (["run", "own.py", "--allow-unstable", "--h", "0.1", "--t-end", "1"], "--allow-unstable goes with"),
        (["methods", "--max-s", "0"], "--max-s must be at least 1; got 0"),
        (["reproduce", "top", "--digits", "-5"], "--digits must be at least 16, what float64 has; got -5"),
        (["reproduce", "pendulums"], "no paper 'pendulums'; there are galerkin, pendulum, quadratic, top"),
    ],
)
def test_calls_that_are_wrong(arguments, said, capsys):
    assert said in refused(arguments, capsys)


WITHOUT_VALUE = [["run", "pendulum", "--h=0.1", "--t-end=1", f"--{name}=--"] for name in ("q0", "v0", "h", "method")]


@pytest.mark.parametrize(
    "arguments", [[], ["integrate"], ["run", "pendulum"], ["run", "pendulum", "--h", "fast"], *WITHOUT_VALUE]
)
def test_calls_the_parser_refuses(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: leastaction" in capsys.readouterr().err


def test_vectors_with_spaces(capsys):
    """Numbers with spaces between them are no vector, and the message says what is."""
    with pytest.raises(SystemExit) as stop:
        main(["run", "double-pendulum", "--q0", "1", "2.0", "--v0", "0", "0", "--t-end", "1", "--tol", "1e-6"])
    assert stop.value.code == 2
    assert "unrecognized arguments: 2.0 0; a vector is one word, such as 0,1/3,pi" in capsys.readouterr().err


def test_a_step_that_cannot_be_solved(capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import leastaction as la\n"
        "system = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + q[0] ** 4, n=1)\n"  # reaches infinity in a finite time
        "q0, v0 = [1.0], [1.0]\n"
    )
    assert main(["run", str(file), "--h", "0.1", "--t-end", "50"]) == 1
    err = capsys.readouterr().err
    assert "leastaction: " in err and "Traceback" not in err


def test_help_has_examples_that_parse(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert EXAMPLES.strip() in capsys.readouterr().out
    from leastaction.cli import _parser

    for line in EXAMPLES.splitlines():
        if line.strip().startswith("leastaction"):
            _parser().parse_args(re.split(r" {3,}", line.strip())[0].split()[1:])


def test_reproduce(capsys, tmp_path):
    assert main(["reproduce", "pendulum", "pendulum", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("pendulum"))
    assert row.split() == ["pendulum", "24", "24", "0", "2", "8", "of", "8", "0", "4", "0"]
    assert str(tmp_path / "index.html") in out
    records = json.loads((tmp_path / "results.json").read_text("utf-8"))
    cells, figures = [r for r in records if "table" in r], [r for r in records if "figure" in r]
    statements, errata = [r for r in records if "statement" in r], [r for r in records if "erratum" in r]
    assert len(cells) + len(figures) + len(statements) + len(errata) == len(records) == 36
    for cell in cells:
        names = ["paper", "table", "row", "column", "published", "computed", "agrees", "note", "arithmetic"]
        assert list(cell) == names
    for statement in statements:
        assert list(statement) == ["paper", "statement", "text", "holds", "measured", "note"]
    for erratum in errata:
        assert list(erratum) == ["paper", "erratum", "place", "says", "should", "evidence", "either"]
        assert erratum["erratum"] in ("misprint", "as read", "remark") and erratum["evidence"]
    for figure in figures:
        assert list(figure) == ["paper", "figure", "file", "claims"]
        assert (tmp_path / figure["file"]).read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "index.html").read_text("utf-8")
    assert not re.search(r"(?:src|href)='(?!data:|#)", page)  # all of it is in the file


PROGRAM = [sys.executable, "-c", "import sys; from leastaction.cli import main; sys.exit(main())"]


def test_exit_code_reaches_the_shell():
    done = subprocess.run([*PROGRAM, "run", "nothing", "--h", "1", "--t-end", "1"], capture_output=True)
    assert done.returncode == 2 and b"no problem is called 'nothing'" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error():
    with subprocess.Popen([*PROGRAM, "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.stdout.close()
        err = program.stderr.read()
    assert (program.returncode, err) == (0, b"")


def test_an_output_that_cannot_be_written(capsys, tmp_path):
    file = tmp_path / "no such folder" / "run.npz"
    run = ["run", "pendulum", "--h", "0.1", "--t-end", "1"]
    for option in ("--out", "--plot"):
        assert "no such folder" in refused([*run, option, str(file)], capsys)  # before the run
    assert "no figure format 'foo'" in refused([*run, "--plot", str(tmp_path / "run.foo")], capsys)


def test_a_file_imports_its_neighbours(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "neighbour_of_own.py").write_text(OWN.format(word="p0"))
    file = tmp_path / "own.py"
    file.write_text("from neighbour_of_own import system, q0, p0\n")
    assert main(["run", str(file), "--h", "0.1", "--t-end", "1"]) == 0
    assert "last q" in capsys.readouterr().out


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "leastaction", "problems"], capture_output=True)
    assert done.returncode == 0 and b"pendulum" in done.stdout


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # before the fall ends
def test_a_run_that_fails_saves_what_there_is(tmp_path, capsys):
    own, out = tmp_path / "fall.py", tmp_path / "fall.npz"
    own.write_text(
        "import leastaction as la\nsystem = la.Lagrangian(lambda q, v: v @ v / 2 + 1 / q[0], n=1)\nq0, v0 = 1, 0"
    )
    assert main(["run", str(own), "--h", "0.02", "--t-end", "5", "--out", str(out)]) == 1
    assert "saved, up to the step that failed" in capsys.readouterr().out
    assert 1 < len(la.Path.load(out)) < 250


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"leastaction {la.__version__}\n"


def test_bench(capsys):
    """A row for each method, with its order."""
    assert main(["bench", "kepler", "--method", "simpson", "--method", "rk4", "--steps", "50", "--repeats", "2"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["method", "order"]
    assert [row.split()[:2] for row in rows] == [["P2N3Q4Lob", "4"], ["rk4", "4"]]
    assert "at least 1" in refused(["bench", "--repeats", "0"], capsys)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q0 = [1.0]", "must define system"),
        ("import leastaction as la\nsystem, q0, v0 = la.Quadratic([1.0], [1.0]), [1.0], [0.0]", "la.Lagrangian"),
        ("1 / 0", "line 1: ZeroDivisionError"),
    ],
)
def test_the_lab_refuses_files_it_cannot_show(text, message, tmp_path, capsys):
    (tmp_path / "own.py").write_text(text)
    assert message in refused(["lab", str(tmp_path / "own.py"), "--no-browser"], capsys)


def test_the_lab_refuses_what_it_does_not_know(tmp_path, capsys, monkeypatch):
    assert "Did you mean 'kepler'" in refused(["lab", "keppler", "--no-browser"], capsys)
    assert "there is no file" in refused(["lab", str(tmp_path / "nothing.py")], capsys)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'leastaction[lab]'" in refused(["lab", "kepler", "--no-browser"], capsys)


def test_the_lab_says_when_its_port_is_taken(capsys):
    pytest.importorskip("uvicorn")
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        port = str(door.getsockname()[1])
        assert f"port {port} of 127.0.0.1 cannot be used" in refused(["lab", "--no-browser", "--port", port], capsys)


def test_files_end_as_they_are(capsys, tmp_path):
    """A .csv is one, and other endings are refused before the run."""
    arguments = ["run", "pendulum", "--h", "0.1", "--t-end", "1", "--out"]
    assert main([*arguments, str(tmp_path / "x.csv")]) == 0
    capsys.readouterr()
    assert (tmp_path / "x.csv").read_text().startswith("t,q0,p0\n0.0,")
    assert "store=" in refused([*arguments, str(tmp_path / "x.zarr")], capsys)
    assert not (tmp_path / "x.zarr").exists()


def test_a_range_of_degrees_of_freedom(capsys):
    from leastaction.cli import _indices

    assert _indices("1-3") == [1, 2, 3] and _indices("0,3, 5-6") == [0, 3, 5, 6]
    for text in ("3-1", "-1", "a", "1-"):
        with pytest.raises(SystemExit):
            main(["run", "--mass", "M", "--stiffness", "K", "--h", "1", "--t-end", "1", "--output", text])
        err = capsys.readouterr().err
        assert "_indices" not in err
        assert "counted from 0" in err or "expected one argument" in err  # argparse takes -1 for an option


@pytest.mark.filterwarnings("ignore::leastaction.EnergyWarning")  # before the fall ends
def test_a_step_that_fails_says_what_a_command_can_do(capsys, tmp_path):
    file = tmp_path / "fall.py"
    file.write_text(
        "import numpy as np\nimport leastaction as la\n"
        "system = la.Lagrangian(lambda q, v: 0.5 * (v @ v) + 1 / np.sqrt(q @ q), n=2)\nq0, p0 = [1.0, 0], [0, 0]\n"
    )
    arguments = ["run", str(file), "--h", "0.02", "--t-end", "10"]
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert "exception" not in err and "--out FILE keeps the" in err
    assert main([*arguments, "--out", str(tmp_path / "fall.npz")]) == 1
    out, err = capsys.readouterr()
    assert "saved, up to the step that failed" in out and "--out" not in err
    assert len(la.Path.load(tmp_path / "fall.npz")) > 1


def test_a_file_with_both_or_neither(capsys, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN.format(word="p0") + "v0 = [0.0]\n")
    assert "has both p0 and v0" in refused(["run", str(file), "--h", "0.1", "--t-end", "1"], capsys)
    file.write_text(OWN.format(word="u0"))
    assert "lacks p0 or v0" in refused(["run", str(file), "--h", "0.1", "--t-end", "1"], capsys)


def test_tolerances(capsys, tmp_path):
    assert main(["run", "pendulum", "--t-end", "10", "--tol", "1e-9"]) == 0
    out = capsys.readouterr().out
    assert "pendulum: P" in out and "within tol = 1e-09" in out and "la.integrate(system" in out
    file, plot = tmp_path / "own.py", tmp_path / "advice.png"
    file.write_text(OWN.format(word="p0"))
    assert main(["advise", str(file), "--t-end", "5", "--tol", "1e-6", "--plot", str(plot)]) == 0
    assert "million instructions" in capsys.readouterr().out and plot.stat().st_size > 1000
    assert "--tol, which chooses both" in refused(["run", "pendulum", "--t-end", "1"], capsys)
    assert "leave out --method" in refused(["run", "pendulum", "--t-end", "1", "--tol", "1", "--method", "rk4"], capsys)
    assert "tol must be" in refused(["advise", "pendulum", "--t-end", "1", "--tol", "0"], capsys)


def test_a_problem_beside_its_published_state(capsys):
    """A reference that is off in its last digits, and what g, its rate and the energy say of both."""
    assert main(["problems", "andrews-squeezer"]) == 0
    out = capsys.readouterr().out
    beta = next(line for line in out.splitlines() if line.startswith("β"))
    assert beta.split()[:2] == ["β", "15.81077119629904"] and abs(float(beta.split()[3])) == pytest.approx(1.1e-9)
    assert abs(float(beta.split()[4])) < 1e-13
    checks = {line[:26].strip(): line[26:].split() for line in out.splitlines()[-3:]}
    assert list(checks) == ["largest |g|", "largest |dg/dt|", "energy - that of the start"]
    for name in ("largest |dg/dt|", "energy - that of the start"):
        theirs, ours = (abs(float(x)) for x in checks[name])
        assert theirs > 1e3 * ours
    assert main(["problems", "pendulum"]) == 0
    assert "An exact solution is known." in capsys.readouterr().out
