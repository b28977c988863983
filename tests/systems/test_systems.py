"""A system answers what a run asks: nobody asks for its kind, but for the border where users come in."""

import ast
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.linear import Quadratic
from leastaction.numbers.rounding import FLOAT64
from leastaction.systems.defaults import Clock
from leastaction.systems.lagrangian import Lagrangian
from leastaction.systems.pace import Paced, paced
from leastaction.systems.protocol import NonlinearSystem, System
from leastaction.systems.sums import Sum

SOURCE = Path(la.__file__).parent
BORDER = SOURCE / "systems" / "protocol.py"
KINDS = {"Lagrangian", "Quadratic", "Sum", "Paced"}

spring = la.Lagrangian(lambda q, v: 0.5 * (v @ v) - 0.5 * (q @ q), n=2)
pair = la.Lagrangian.sum(
    [la.Term(lambda q, v: 0.5 * v[0] ** 2 - 0.5 * q[0] ** 2, over=[0, 1]),
     la.Term(lambda q, v: -0.1 * (q[1] - q[0]) ** 4, over=[[0, 1]])],
    n=2,
)  # fmt: skip


def asks(path):
    """The places of a module where the kind of a system is asked for."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) < 2:
            continue
        names = {x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)}
        asked = ast.unparse(node.args[0])
        if (node.func.id in ("isinstance", "issubclass") and names & KINDS) or (
            node.func.id in ("hasattr", "getattr") and asked.split(".")[-1] in ("system", "mechanics")
        ):
            yield f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}"


def test_nobody_asks_for_the_kind_of_a_system():
    found = [place for path in SOURCE.rglob("*.py") if path != BORDER for place in asks(path)]
    assert not found, "let the system answer (systems/protocol.py):\n" + "\n".join(found)
    assert len(list(asks(BORDER))) == 2


@pytest.mark.parametrize(
    ("system", "protocol"),
    [
        (spring, NonlinearSystem),
        (pair, NonlinearSystem),
        (paced(spring, lambda q: 1 + q @ q, FLOAT64), NonlinearSystem),
        (la.Quadratic([1.0], [4.0]), System),
    ],
    ids=lambda x: type(x).__name__,
)
def test_every_kind_of_system_answers_all(system, protocol):
    names = {name for name in dir(protocol) if not name.startswith("_")} | {"n"}
    assert [name for name in sorted(names) if not hasattr(system, name)] == []
    assert isinstance(system, Lagrangian | Sum | Quadratic)


def test_the_time_stands_first_or_last():
    states = np.arange(24.0).reshape(2, 2, 6)
    for block, t in (("t", [0.0, 0.0]), ("q", [2.0, 14.0]), ("p", [5.0, 17.0])):
        clock = Clock(block, 3)
        rows = np.concatenate([np.zeros((2, 2, 1)), states], axis=2)
        np.testing.assert_array_equal(rows[:, 0, clock.place], t)
        np.testing.assert_array_equal(clock.times(np.zeros((2, 2)), states)[:, 0], t)
        kept = [0, 1, 2, 3, 4, 5] if clock.steady else [0, 1, 3, 4]
        np.testing.assert_array_equal(clock.motion(states), states[..., kept])


def test_a_pace_knows_whose_motion_it_is():
    system = paced(spring, lambda q: 1 + q @ q, FLOAT64)
    assert isinstance(system, Paced) and system.in_time is spring and not system.clock.steady
    assert spring.in_time is spring and spring.clock.steady


def test_analysis_takes_sums_where_it_takes_lagrangians():
    q0, q1 = [1.0, 0.3], [0.9, 0.35]
    one, other = (la.discrete_lagrangian(x, "simpson", h=0.2) for x in (pair, pair.expanded()))
    np.testing.assert_array_equal(one.D1(q0, q1), other.D1(q0, q1))
    found = la.analysis.convergence(pair, "simpson", q0, [0.0, 0.0], h=[0.1, 0.05], t_end=0.2)
    assert found.error[1] < found.error[0]
    rod = la.Lagrangian.sum(
        [la.Term(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], over=[0, 1]),
         la.Term(lambda q, v: 0 * q[0], over=[[0, 1]], constraints=lambda q: q @ q - 1)],
        n=2,
    )  # fmt: skip
    assert la.analysis.symplectic_defect(rod, "simpson", [0.6, -0.8], [0.8, 0.6], h=0.05) < 1e-13


def test_what_is_no_lagrangian_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"resonance is for a la\.Lagrangian; got Sum.*system\.expanded\(\)"):
        la.analysis.resonance(pair, "simpson", [1.0, 0.0], [0.0, 0.0], [0.1, 0.2], t_end=1)
    with pytest.raises(TypeError, match="takes all systems"):
        la.tangent(la.Quadratic([1.0], [4.0]), "simpson", [1.0], [0.0], h=0.1)
