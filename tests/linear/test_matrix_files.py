"""Linear systems from files, and `leastaction run` on them."""

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array

import leastaction as la
from leastaction.cli import main
from leastaction.linear.files import from_files, read_matrix, read_numbers, vector
from linear_systems import definite, semidefinite


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    M, K, C = definite(rng, 4), semidefinite(rng, 4, 4), 0.1 * semidefinite(rng, 4, 4)
    for name, a in (("M", M), ("K", K), ("C", C)):
        mmwrite(f"{name}.mtx", coo_array(a), symmetry="symmetric")
    mmwrite("dense.mtx", M)
    mmwrite("lumped.mtx", np.diag(M)[:, None])
    np.savetxt("q0.txt", [0.1, -0.2, 0.3, 0.4])
    np.save("v0.npy", [0.0, 1.0, 0.0, 0.0])
    t = np.linspace(0, 3, 50)
    np.savetxt("load.csv", np.column_stack([t, np.sin(np.outer(t, [1, 2, 3, 4]))]), delimiter=",")
    return M, K, C


def test_reading(files):
    M, _, _ = files
    np.testing.assert_allclose(read_matrix("M.mtx").toarray(), M)
    np.testing.assert_allclose(read_matrix("dense.mtx"), M)
    np.testing.assert_allclose(read_matrix("lumped.mtx"), np.diag(M))
    system, free = from_files("lumped.mtx", "K.mtx", rayleigh=(0.1, 0.2), load="load.csv", fixed=[2])
    assert system.n == 3 and list(free) == [0, 1, 3]
    np.testing.assert_allclose(system.mass_diagonal, np.diag(M)[free])
    np.testing.assert_allclose(system.f(1.5), np.sin(1.5 * np.array([1, 2, 4])), atol=1e-4)
    np.testing.assert_allclose(vector("q0.txt", 4, "q0"), [0.1, -0.2, 0.3, 0.4])
    np.testing.assert_allclose(vector("v0.npy", 4, "v0"), [0, 1, 0, 0])
    np.testing.assert_allclose(vector("1, 2 3,4", 4, "q0"), [1, 2, 3, 4])
    np.testing.assert_allclose(read_numbers("lumped.mtx"), np.diag(M))


def test_run_from_the_command_line(files, capsys):
    M, K, C = files
    given = "--mass M.mtx --stiffness K.mtx --damping C.mtx --q0 q0.txt --v0 v0.npy"
    wanted = "--method P2N2Q4Gau --h 0.05 --t-end 3 --every 4 --out run.npz --plot run.png"
    assert main(["run", *f"{given} {wanted}".split()]) == 0
    assert "energy" in capsys.readouterr().out
    path = la.Path.load("run.npz")
    same = la.integrate(
        la.Quadratic(M, K, C=C), "P2N2Q4Gau", [0.1, -0.2, 0.3, 0.4], v0=[0, 1, 0, 0], h=0.05, t_end=3, every=4
    )
    np.testing.assert_allclose(path.q, same.q, atol=1e-12)


def test_fixed_and_chosen_degrees_of_freedom(files, capsys):
    M, K, _ = files
    given = "--mass M.mtx --stiffness K.mtx --fixed 1 --output 3,0 --q0 q0.txt"
    assert main(["run", *f"{given} --h 0.1 --t-end 1 --out run.npz --plot run.png".split()]) == 0
    keep = np.ix_([0, 2, 3], [0, 2, 3])
    whole = la.integrate(la.Quadratic(M[keep], K[keep]), "simpson", [0.1, 0.3, 0.4], [0, 0, 0], h=0.1, t_end=1)
    np.testing.assert_allclose(la.Path.load("run.npz").q, whole.q[:, [2, 0]], atol=1e-13)
    assert "not counted: q2 is 3, q0 is 0 of the files" in capsys.readouterr().out


def test_an_unstable_step_names_the_option_of_the_command(files, capsys):
    given = "--mass M.mtx --stiffness K.mtx --method verlet --h 100 --t-end 1000 --q0 q0.txt"
    assert main(["run", *given.split()]) == 2
    assert "insist with --allow-unstable" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--mass M.mtx", "both --mass and --stiffness"),
        ("", "say what to run"),
        ("pendulum --mass M.mtx --stiffness K.mtx", "say what to run"),
        ("pendulum --allow-unstable", "--allow-unstable goes with --mass and --stiffness"),
        ("--mass no.mtx --stiffness K.mtx", "there is no file no.mtx"),
        ("--mass q0.txt --stiffness K.mtx", "not a Matrix Market file"),
        ("--mass M.mtx --stiffness K.mtx --q0 1,2", "--q0 must have 4 numbers"),
        ("--mass M.mtx --stiffness K.mtx --load q0.txt", "two rows of t and 4 forces"),
        ("--mass M.mtx --stiffness K.mtx --load q0.txt --ground q0.txt", "two rows of t and 1 numbers"),
        ("--mass M.mtx --stiffness K.mtx --load load.csv --load-vector load.csv", "load.csv must have 4 rows"),
        ("--mass M.mtx --stiffness K.mtx --ground q0.txt", "give the load, too"),
        ("pendulum --ground q0.txt", "--ground goes with --mass and --stiffness"),
        ("--mass M.mtx --stiffness K.mtx --output 9", "no such free degree of freedom"),
        ("--mass M.mtx --stiffness K.mtx --fixed 1 --output 1", "no such free degree of freedom"),
        ("--mass M.mtx --stiffness K.mtx --method stormer-verlet --h 100 --t-end 1000", "not stable"),
    ],
)
def test_mistakes_on_the_command_line(files, capsys, arguments, message):
    steps = [] if "--h" in arguments else ["--h", "0.1", "--t-end", "1"]
    assert main(["run", *arguments.split(), *steps]) == 2
    assert message in capsys.readouterr().err


def test_negative_degrees_of_freedom_are_refused(files, capsys):
    with pytest.raises(SystemExit):
        main(["run", "--mass", "M.mtx", "--stiffness", "K.mtx", "--fixed=-1,3", "--h", "0.1", "--t-end", "1"])
    assert "counted from 0" in capsys.readouterr().err


def test_a_run_with_a_load_is_saved(files):
    t = np.linspace(0, 1, 8)
    np.savetxt("load.txt", np.column_stack([t, t, t, t, t]))
    given = "--mass M.mtx --stiffness K.mtx --load load.txt --fixed 1 --h 0.1 --t-end 1 --out run.npz"
    assert main(["run", *given.split()]) == 0
    path = la.Path.load("run.npz")
    np.testing.assert_allclose(path(path.t[3]), path.q[3], atol=1e-13)


def test_records_with_vectors_and_moving_grounds(files):
    M, _, _ = files
    t = np.linspace(0, 1, 30)
    np.savetxt("records.txt", np.column_stack([t, np.sin(t), np.cos(t)]))
    vectors = np.arange(8.0).reshape(4, 2)
    np.savetxt("vectors.txt", vectors)
    wanted = vectors @ [np.sin(0.3), np.cos(0.3)]
    load = from_files("M.mtx", "K.mtx", load="records.txt", load_vector="vectors.txt")[0].f
    np.testing.assert_allclose(load(0.3), wanted, rtol=1e-6)
    ground = from_files("M.mtx", "K.mtx", load="records.txt", ground="vectors.txt", fixed=[0, 2])[0].f
    np.testing.assert_allclose(ground(0.3), -(M @ wanted)[[1, 3]], rtol=1e-6)
    with pytest.raises(ValueError, match="not both"):
        from_files("M.mtx", "K.mtx", load="records.txt", load_vector="vectors.txt", ground="vectors.txt")
    given = "--mass M.mtx --stiffness K.mtx --load records.txt --ground vectors.txt --fixed 1 --h 0.1 --t-end 1"
    assert main(["run", *f"{given} --out run.npz".split()]) == 0
    assert isinstance(la.Path.load("run.npz").system.f, la.linear.Load)
