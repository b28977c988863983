"""A run as one native function: Programs over one state, and around them the loops and branches of a run.

A Program has no branches. So the pieces of a step are Programs, lowered into one module, and this module writes the
control flow that calls them:

    for every step:   inputs of the step → state
                      first; while a trajectory is going: again
                      a trajectory failed:  hard; while a trajectory is going: harder
                      a trajectory failed:  stop here
                      settle, carry derivatives, land, note where an event may lie
                      store the state, if it is due

All pieces work in place on one state: value i of lane k is at state[i · lanes + k]. Lanes are `width` trajectories, or
the points of one trajectory's step (`width` = 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

# What a run is told and what it tells, one integer each; addresses are those of arrays.
CALL = (
    "steps",  # to do: of a composition, those of its factors
    "enter",  # how the first step begins: EASY; HARD where the cheap way has failed; SOLVED; BEGIN, trajectories do
    "phase",  # of a composition: the factor with which the run begins
    "due", "every",  # steps until a state is stored, and from then on
    "rows", "lane", "width",  # where: the next row of the first lane, numbers between lanes, numbers of a row
    "kept", "kept_count",  # which numbers behind the begin of the block q are stored
    "table", "table_step", "table_lane", "table_node",  # inputs of the next step; numbers between steps, lanes, nodes
    "looks", "look_room", "look_lane", "step",  # where steps are noted in which an event may lie; their number
    "done", "why",  # answers: steps done, and why it ended
)  # fmt: skip
PLACE = {name: k for k, name in enumerate(CALL)}
EASY, HARD, SOLVED, BEGIN = 0, 1, 2, 3
FINISHED, FAILED, LOOK = 0, 1, 2  # why a run ended
RESTING = 8  # steps that begin the hard way after a step for which the cheap one failed


@dataclass(frozen=True)
class Shape:
    """How a state lies in memory, and what the loop does with it.

    places    where each block begins, in values
    lanes     numbers of a value
    width     trajectories side by side
    inputs    (channels, nodes, vectors of nodes) of a driven system; vectors are 0 where nodes lie one by one
    look      numbers of a note where an event may lie; 0 where nobody looks
    phases    factors of a composition: each has a state of its own, one behind the other, and hands on the blocks in
              front of all others, of so many numbers (`handed`)
    size      numbers of a state
    """

    places: Mapping[str, int]
    lanes: int
    width: int
    inputs: tuple[int, int, int] = (0, 0, 0)
    look: int = 0
    phases: int = 1
    handed: int = 0
    size: int = 0


@dataclass
class _Code:
    """LLVM IR of one function, line by line; variables live on the stack until LLVM puts them into registers."""

    entry: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%x{self.count}"

    def op(self, text: str) -> str:
        found = self.name()
        self.lines.append(f"  {found} = {text}")
        return found

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def variable(self, value: str, kind: str = "i64") -> str:
        found = self.name()
        self.entry.append(f"  {found} = alloca {kind}")
        self.put(found, value, kind)
        return found

    def room(self, count: int, kind: str) -> str:
        """An array on the stack."""
        found = self.name()
        self.entry.append(f"  {found} = alloca [{count} x {kind}], align 64")
        return found

    def get(self, pointer: str, kind: str = "i64") -> str:
        return self.op(f"load {kind}, ptr {pointer}, align 8")

    def put(self, pointer: str, value: str, kind: str = "i64") -> None:
        self.do(f"store {kind} {value}, ptr {pointer}, align 8")

    def at(self, pointer: str, index: str | int) -> str:
        """The address of a number, or of an integer, of an array."""
        return self.op(f"getelementptr double, ptr {pointer}, i64 {index}")

    def add(self, a: str, b: str | int) -> str:
        return self.op(f"add i64 {a}, {b}")

    def mul(self, a: str, b: str | int) -> str:
        return self.op(f"mul i64 {a}, {b}")

    def copy(self, to: str, source: str, numbers: str | int) -> None:
        size = self.mul(str(numbers), 8)
        self.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align 8 {to}, ptr align 8 {source}, i64 {size}, i1 false)")

    # Vectors of W numbers; W = 1: numbers.

    def splat(self, x: str, W: int) -> str:
        zeros = ", ".join(["i32 0"] * W)
        one = self.op(f"insertelement <{W} x double> poison, double {x}, i32 0")
        return self.op(f"shufflevector <{W} x double> {one}, <{W} x double> poison, <{W} x i32> <{zeros}>")

    def vector(self, pointer: str, W: int, lane: int = 1) -> str:
        """W numbers, each so far behind the one before."""
        if lane == 1 or W == 1:
            return self.get(pointer, "double" if W == 1 else f"<{W} x double>")
        held = "poison"
        for k in range(W):
            x = self.get(self.at(pointer, k * lane), "double")
            held = self.op(f"insertelement <{W} x double> {held}, double {x}, i32 {k}")
        return held

    def put_vector(self, pointer: str, x: str, W: int, lane: int = 1) -> None:
        if lane == 1 or W == 1:
            return self.put(pointer, x, "double" if W == 1 else f"<{W} x double>")
        for k in range(W):
            self.put(self.at(pointer, k * lane), self.op(f"extractelement <{W} x double> {x}, i32 {k}"), "double")

    def larger(self, x: str, y: str, W: int) -> str:
        """The larger of two; no number, if one is none."""
        kind, of = ("double", "f64") if W == 1 else (f"<{W} x double>", f"v{W}f64")
        self.declared.add(f"declare {kind} @llvm.maximum.{of}({kind}, {kind})")
        return self.op(f"call {kind} @llvm.maximum.{of}({kind} {x}, {kind} {y})")

    def largest(self, x: str, W: int) -> str:
        if W == 1:
            return x
        found = self.op(f"extractelement <{W} x double> {x}, i32 0")
        for k in range(1, W):
            found = self.larger(found, self.op(f"extractelement <{W} x double> {x}, i32 {k}"), 1)
        return found

    def label(self, name: str) -> None:
        self.lines.append(f"{name[1:]}:")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        inside, behind = self.name(), self.name()
        self.do(f"br i1 {condition}, label {inside}, label {behind}")
        self.label(inside)
        yield
        self.do(f"br label {behind}")
        self.label(behind)

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """While the condition holds."""
        test, inside, behind = self.name(), self.name(), self.name()
        self.do(f"br label {test}")
        self.label(test)
        self.do(f"br i1 {condition()}, label {inside}, label {behind}")
        self.label(inside)
        yield
        self.do(f"br label {test}")
        self.label(behind)

    @contextmanager
    def between(self, begin: str, end: str, step: int = 1) -> Iterator[str]:
        """For begin, begin + step, … below end."""
        k = self.variable(begin)
        with self.repeat(lambda: self.op(f"icmp slt i64 {self.get(k)}, {end}")):
            index = self.get(k)
            yield index
            self.put(k, self.add(index, step))

    @contextmanager
    def each(self, count: str | int) -> Iterator[str]:
        """For 0 … count − 1."""
        with self.between("0", str(count)) as k:
            yield k

    def finished(self, head: str, result: str) -> str:
        body = "\n".join([*self.entry, *self.lines])
        return f"define {head} {{\nentry:\n{body}\n  ret {result}\n}}\n"


def driver(names: Sequence[str], shape: Shape) -> str:
    """The IR of `i64 @run(ptr states, ptr work, ptr call)` around pieces of these names."""
    externals = [f"declare void @{name}(ptr, ptr, ptr)" for name in names]
    externals.append("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    return "\n".join(externals) + "\n" + _any(shape) + _step(names, shape) + _run(names, shape)


def _any(shape: Shape) -> str:
    """Whether a flag is set in any trajectory."""
    c, W = _Code(), shape.width
    kind = "double" if W == 1 else f"<{W} x double>"
    bits = c.op(f"fcmp une {kind} {c.get('%flag', kind)}, {'0.0' if W == 1 else 'zeroinitializer'}")
    found = bits if W == 1 else c.op(f"icmp ne i{W} {c.op(f'bitcast <{W} x i1> {bits} to i{W}')}, 0")
    return c.finished("internal i1 @any(ptr %flag) alwaysinline", f"i1 {found}")


def _step(names: Sequence[str], shape: Shape) -> str:
    """One step solved, but for what `settle` does: whether a trajectory failed."""
    c = _Code()

    def flag(name: str) -> str:
        return c.at("%state", shape.places[name] * shape.lanes)

    def call(name: str) -> None:
        c.do(f"call void @{name}(ptr %state, ptr %state, ptr %work)")

    def any_of(name: str) -> str:
        return c.op(f"call i1 @any(ptr {flag(name)})")

    def iterate(first: str, again: str) -> None:
        call(first)
        if again in names:
            with c.repeat(lambda: any_of("going")):
                call(again)

    rests = "hard" in names and shape.width == 1
    failed = c.variable("%enter_hard", "i1")
    if rests:
        resting = c.get(flag("resting"), "double")
        with c.when(c.op(f"fcmp ogt double {resting}, 0.0")):
            c.put(flag("resting"), c.op(f"fsub double {resting}, 1.0"), "double")
            c.put(failed, "true", "i1")
    if "first" in names:
        with c.when(c.op(f"xor i1 {c.get(failed, 'i1')}, true")):
            iterate("first", "again")
            c.put(failed, any_of("failed"), "i1")
            if rests:
                with c.when(c.get(failed, "i1")):
                    c.put(flag("resting"), f"{float(RESTING)}", "double")
    if "hard" in names:
        with c.when(c.get(failed, "i1")):
            iterate("hard", "harder" if "harder" in names else "again")
            c.put(failed, any_of("failed"), "i1")
    return c.finished("internal i1 @solve(ptr %state, ptr %work, i1 %enter_hard)", f"i1 {c.get(failed, 'i1')}")


def _run(names: Sequence[str], shape: Shape) -> str:
    c, L = _Code(), shape.lanes
    where = c.variable("%states", "ptr")
    state = c.get(where, "ptr")

    def given(name: str) -> str:
        return c.get(c.at("%call", PLACE[name]))

    def answer(name: str, value: str) -> None:
        c.put(c.at("%call", PLACE[name]), value)

    def block(name: str) -> str:
        return c.at(c.get(where, "ptr"), shape.places[name] * L)

    def address(name: str) -> str:
        return c.op(f"inttoptr i64 {given(name)} to ptr")

    def piece(name: str) -> None:
        now = c.get(where, "ptr")
        c.do(f"call void @{name}(ptr {now}, ptr {now}, ptr %work)")

    steps, every = given("steps"), given("every")
    k, due, going = c.variable("0"), c.variable(given("due")), c.variable("true", "i1")
    rows, table = c.variable(address("rows"), "ptr"), c.variable(address("table"), "ptr")
    phase, enter = c.variable(given("phase")), c.variable(given("enter"))
    if shape.phases > 1:
        c.put(where, c.at(state, c.mul(c.get(phase), shape.size)), "ptr")
    answer("why", str(FINISHED))

    def more() -> str:
        return c.op(f"and i1 {c.op(f'icmp slt i64 {c.get(k)}, {steps}')}, {c.get(going, 'i1')}")

    with c.repeat(more):
        if shape.inputs[0]:
            _drive(c, shape, c.get(table, "ptr"), block("inputs"), given)
        how = c.get(enter)
        if "begin" in names:
            with c.when(c.op(f"icmp eq i64 {how}, {BEGIN}")):
                _begin(c, shape, where)
        if "first" in names:
            with c.when(c.op(f"icmp ne i64 {how}, {SOLVED}")):
                hard = c.op(f"icmp eq i64 {how}, {HARD}")
                failed = c.op(f"call i1 @solve(ptr {c.get(where, 'ptr')}, ptr %work, i1 {hard})")
                c.put(going, c.op(f"xor i1 {failed}, true"), "i1")
        c.put(enter, str(EASY))
        if "settle" in names:
            with c.when(c.get(going, "i1")):
                piece("settle")
                failed = c.op(f"call i1 @any(ptr {block('failed')})")
                c.put(going, c.op(f"xor i1 {failed}, true"), "i1")
        with c.when(c.op(f"xor i1 {c.get(going, 'i1')}, true")):
            answer("why", str(FAILED))
        with c.when(c.get(going, "i1")):
            if "vary" in names:
                piece("vary")
            if "lift" in names:
                piece("lift")
            piece("land")
            if "check" in names:
                piece("check")
                _look(c, shape, block, given, answer, c.get(k), going)
            c.put(k, c.add(c.get(k), 1))
            whole = c.variable("true", "i1")
            if shape.phases > 1:
                before, after = c.get(where, "ptr"), c.add(c.get(phase), 1)
                c.put(whole, c.op(f"icmp eq i64 {after}, {shape.phases}"), "i1")
                c.put(phase, c.op(f"select i1 {c.get(whole, 'i1')}, i64 0, i64 {after}"))
                c.put(where, c.at("%states", c.mul(c.get(phase), shape.size)), "ptr")
                c.copy(c.get(where, "ptr"), before, shape.handed)
            if shape.inputs[0]:
                c.put(table, c.at(c.get(table, "ptr"), given("table_step")), "ptr")
            with c.when(c.get(whole, "i1")):
                if "reduce" in names:
                    piece("reduce")
                c.put(due, c.add(c.get(due), -1))
                with c.when(c.op(f"icmp eq i64 {c.get(due)}, 0")):
                    c.put(due, every)
                    _store(c, shape, block, given, address, c.get(rows, "ptr"))
                    c.put(rows, c.at(c.get(rows, "ptr"), given("width")), "ptr")
    answer("done", c.get(k))
    answer("phase", c.get(phase))
    return c.finished("i64 @run(ptr %states, ptr %work, ptr %call)", f"i64 {c.get(k)}")


def _begin(c: _Code, shape: Shape, where: str) -> None:
    """What trajectories begin with, in the state of every factor of a composition."""
    first = c.get(where, "ptr")
    with c.each(shape.phases) as k:
        state = c.at(first, c.mul(k, shape.size))
        if shape.phases > 1:
            c.copy(state, first, shape.handed)
        c.do(f"call void @begin(ptr {state}, ptr {state}, ptr %work)")


def _drive(c: _Code, shape: Shape, table: str, inputs: str, given: Callable[[str], str]) -> None:
    """The inputs of a step, from a table (lane, node, channel): node by node, or, with nodes side by side, channel by
    channel, the last node repeated where there are no nodes.
    """
    channels, nodes, vectors = shape.inputs
    for lane in range(shape.width):
        own = c.at(table, c.mul(given("table_lane"), lane))
        with c.each(vectors * shape.lanes if vectors else nodes) as e:
            node = c.op(f"select i1 {c.op(f'icmp slt i64 {e}, {nodes}')}, i64 {e}, i64 {nodes - 1}")
            begin = c.mul(given("table_node"), node)
            with c.each(channels) as j:
                x = c.get(c.at(own, c.add(begin, j)), "double")
                if vectors:
                    place = c.add(c.mul(j, vectors * shape.lanes), e)
                else:
                    place = c.add(c.mul(c.add(c.mul(e, channels), j), shape.lanes), lane)
                c.put(c.at(inputs, place), x, "double")


def _store(
    c: _Code, shape: Shape, block: Callable[[str], str], given: Callable[[str], str],
    address: Callable[[str], str], row: str,
) -> None:  # fmt: skip
    """The numbers that are kept of each trajectory that is alive, and behind them its derivatives."""
    kept, count = address("kept"), given("kept_count")
    for lane in range(shape.width):
        alive = c.op(f"fcmp une double {c.get(c.at(block('alive'), lane), 'double')}, 0.0")
        with c.when(alive):
            own = c.at(row, c.mul(given("lane"), lane))
            with c.each(count) as j:
                place = c.add(c.get(c.at(kept, j)), lane)
                c.put(c.at(own, j), c.get(c.at(block("q"), place), "double"), "double")


def _look(
    c: _Code, shape: Shape, block: Callable[[str], str], given: Callable[[str], str],
    answer: Callable[[str, str], None], k: str, going: str,
) -> None:  # fmt: skip
    """Note the step of each trajectory in which an event may lie: (step, the block look), behind the number of notes;
    the run ends after a step that is urgent, or that fills the room.
    """
    looks = c.op(f"inttoptr i64 {given('looks')} to ptr")
    for lane in range(shape.width):
        doubt, alive, urgent = (
            c.op(f"fcmp une double {c.get(c.at(block(name), lane), 'double')}, 0.0")
            for name in ("doubt", "alive", "urgent")
        )
        with c.when(c.op(f"and i1 {doubt}, {alive}")):
            own = c.at(looks, c.mul(given("look_lane"), lane))
            count = c.op(f"fptosi double {c.get(own, 'double')} to i64")
            note = c.at(own, c.add(c.mul(count, 1 + shape.look), 1))
            c.put(note, c.op(f"sitofp i64 {c.add(given('step'), k)} to double"), "double")
            with c.each(shape.look) as j:
                x = c.get(c.at(block("look"), c.add(c.mul(j, shape.lanes), lane)), "double")
                c.put(c.at(note, c.add(j, 1)), x, "double")
            more = c.add(count, 1)
            c.put(own, c.op(f"sitofp i64 {more} to double"), "double")
            full = c.op(f"icmp sge i64 {more}, {given('look_room')}")
            with c.when(c.op(f"or i1 {full}, {urgent}")):
                answer("why", str(LOOK))
    ended = c.op(f"icmp eq i64 {given('why')}, {LOOK}")
    c.put(going, c.op(f"xor i1 {ended}, true"), "i1")
