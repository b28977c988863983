"""The events that a user asks a run to look for, and the Programs made from them."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import TraceError
from leastaction.program import Builder, Program
from leastaction.program.enclosure import enclosed, jumping

RISING, FALLING = 1, -1


class _OfFunction:
    """What holds a function g: it travels between processes, also where g is a lambda and cloudpickle is there."""

    g: Callable[..., Any]

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        g, *others = (getattr(self, item.name) for item in fields(self))  # type: ignore[arg-type]
        try:
            pickle.dumps(g)
        except Exception as error:
            try:
                from cloudpickle import dumps  # type: ignore[import-untyped]
            except ImportError:
                name = type(self).__name__
                raise pickle.PicklingError(
                    f"the function of la.{name} cannot travel to another process, as no lambda and no function inside "
                    f"another one can ({error}): define it with def at the top of a module, or install cloudpickle"
                ) from None
            return _restored, (type(self), dumps(g), *others)
        return type(self), (g, *others)


def _restored(kind: type, g: bytes, *others: Any) -> Any:
    """An event whose function cloudpickle has packed."""
    return kind(pickle.loads(g), *others)


@dataclass(frozen=True)
class Event(_OfFunction):
    """Something to look for during a run: a change of sign of g(q, p) or g(t, q, p).

    Where g touches zero and does not change its sign, there is no event.

    Parameters
    ----------
    g : callable
        A plain NumPy function of (q, p) or (t, q, p) that returns a number. It may ask for parameters of the system by
        their names.
    direction : {0, +1, −1}, default 0
        +1 counts where g rises, −1 where g falls, 0 both. A run with h < 0 counts as it sees them.
    stop : bool, default False
        End the run at the event; with `most`, at that many of them.
    most : int, optional
        How many to keep. Without `most` all are kept. All are counted.

    Examples
    --------
    >>> import numpy as np, leastaction as la
    >>> pendulum = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 + np.cos(q[0]), n=1)
    >>> events = {"bottom": la.Event(lambda q, p: q[0]), "turn": la.Event(lambda q, p: p[0], stop=True, most=2)}
    >>> path = la.integrate(pendulum, "P4N4Q8Gau", [1.0], [0.0], h=0.1, t_end=20, events=events)
    >>> path.events["bottom"].t.round(6), path.events["turn"].t.round(6)
    (array([1.674994, 5.024982]), array([3.349988, 6.699976]))
    """

    g: Callable[..., Any]
    direction: int = 0
    stop: bool = False
    most: int | None = None

    def __post_init__(self) -> None:
        _check_function(self.g, "Event", "g(q, p) or g(t, q, p)")
        if isinstance(self.direction, bool) or self.direction not in (-1, 0, 1):
            raise ValueError(f"direction must be +1 (rising), −1 (falling) or 0 (both); got {self.direction!r}")
        if not isinstance(self.stop, bool | np.bool_):
            raise ValueError(f"stop must be True or False; got {self.stop!r}")
        if self.most is not None and (
            isinstance(self.most, bool) or not isinstance(self.most, int | np.integer) or self.most < 1
        ):
            raise ValueError(f"most, how many events to keep, must be a positive integer or None; got {self.most!r}")


@dataclass(frozen=True)
class Impact(_OfFunction):
    """A wall g(q) = 0 or g(t, q) = 0 that throws the motion back.

    The motion stays where g ≥ 0. At the wall the momentum jumps along the gradient of g, in the metric of the mass
    M = ∂²L/∂v², so that the rate of g changes its sign::

        p⁺ = p − (1 + e) (∇g·v + g_t) / (∇g·M⁻¹∇g) ∇g,       ġ⁺ = −e ġ⁻

    Parameters
    ----------
    g : callable
        A plain NumPy function of q or of (t, q) that returns a number. It may ask for parameters of the system by
        their names.
    restitution : float, default 1
        e, from 0 (the rate of g is lost) to 1 (elastic: a wall at rest keeps the energy).

    Examples
    --------
    >>> import leastaction as la
    >>> ball = la.Lagrangian(lambda q, v: 0.5 * v[0] ** 2 - 9.81 * q[0], n=1)
    >>> floor = {"floor": la.Impact(lambda q: q[0], restitution=0.8)}
    >>> path = la.integrate(ball, "simpson", [1.0], [0.0], h=0.01, t_end=1.0, events=floor)
    >>> path.events["floor"].count, (path.events["floor"].p_after / path.events["floor"].p).round(6)
    (1, array([[-0.8]]))
    """

    g: Callable[..., Any]
    restitution: float = 1.0

    def __post_init__(self) -> None:
        _check_function(self.g, "Impact", "g(q) or g(t, q)")
        e = self.restitution
        if isinstance(e, bool) or not isinstance(e, int | float | np.number) or not 0.0 <= e <= 1.0:
            raise ValueError(f"restitution must be a number from 0 to 1; got {e!r}")


def _check_function(g: Any, kind: str, form: str) -> None:
    if not callable(g):
        raise TypeError(f"la.{kind} needs a function {form} that returns a number; got {g!r}")


@dataclass(frozen=True)
class Watched:
    """One event or impact as the run sees it. `most` None: keep all.

    monotone   its function always grows or always falls: its signs at the ends of a step are enough
    """

    name: str
    direction: int
    stop: bool
    most: int | None
    restitution: float | None = None  # only of an impact
    monotone: bool = False

    @property
    def urgent(self) -> bool:
        """Whether the run has to be told at once."""
        return self.stop or self.restitution is not None

    def ends(self, count: int) -> bool:
        """Whether this number of occurrences ends the run."""
        return self.stop and count >= (self.most or 1)


@dataclass(frozen=True)
class Watch:
    """All events that a run looks for: plain data that can travel to other processes.

    program   (t, q, p, params) ↦ g, one number for each of `items`
    """

    items: tuple[Watched, ...]
    program: Program

    def __len__(self) -> int:
        return len(self.items)

    @property
    def impacts(self) -> bool:
        return any(item.restitution is not None for item in self.items)

    @cached_property
    def narrow(self) -> tuple[Watch, NDArray[np.intp]]:
        """The same events as functions of only those coordinates that they read, and the places of these in (q, p)."""
        inputs = dict(self.program.inputs)
        n, used = inputs["q"], {args[0] for op, *args in self.program.code if op == "input"}
        first = {block: self.program.input_slice(block).start for block in ("q", "p")}
        read = [j for j in range(n) if first["q"] + j in used or first["p"] + j in used]
        B = Builder([(name, len(read) if name in first else size) for name, size in self.program.inputs])
        nothing = B.const(0.0)
        given = {name: B.input(name) for name in inputs}
        for block in first:
            own = dict(zip(read, given[block], strict=True))
            given[block] = [own.get(j, nothing) for j in range(n)]
        columns = np.array([*read, *(n + j for j in read)], np.intp)
        return Watch(self.items, B.build(g=B.inline(self.program, **given)["g"])), columns

    @cached_property
    def by_momentum(self) -> bool:
        """Whether an event that is to be enclosed depends on p."""
        enclosed = [k for k, item in zip(self.program.results, self.items, strict=True) if not item.monotone]
        return self.program.with_outputs(g=enclosed).depends("g", "p")

    @cached_property
    def by_time(self) -> tuple[bool, ...]:
        """Whether each function depends on t."""
        return tuple(self.program.with_outputs(g=[k]).depends("g", "t") for k in self.program.results)

    @cached_property
    def gradient(self) -> Program:
        """(t, q, p, params) ↦ g_t, one for each, and g_q, g_p, g_w row by row, w being the parameters."""
        from leastaction.trace import derivatives

        sizes = dict(self.program.inputs)
        blocks = (("t", 1), ("q", sizes["q"]), ("v", sizes["p"]), ("params", sizes["params"]))
        B = Builder(self.program.inputs)
        given = {"t": B.input("t"), "q": B.input("q"), "v": B.input("p"), "params": B.input("params")}
        outputs: dict[str, list[int]] = {"g_t": [], "g_q": [], "g_p": [], "g_w": []}
        for k in self.program.results:
            one = self.program.with_outputs(L=[k])
            one = Program(blocks, one.outputs, one.code, one.results)
            found = B.inline(derivatives(one, second=False, parameters=True), **given)
            for name, block in (("g_t", "Lt"), ("g_q", "Lq"), ("g_p", "Lv"), ("g_w", "Lw")):
                outputs[name] += found[block]
        return B.build(**outputs)

    @cached_property
    def rate(self) -> Program:
        """(t, q, p, params, dt, dq, dp) ↦ the event functions along (dt, dq, dp)."""
        n = dict(self.program.inputs)["q"]
        B = Builder([*self.program.inputs, ("dt", 1), ("dq", n), ("dp", n)])
        at = {name: B.input(name) for name, _ in self.program.inputs}
        found = B.inline(self.gradient, **at)
        (dt,), dq, dp = (B.input(name) for name in ("dt", "dq", "dp"))
        along = []
        for e in range(len(self)):
            parts = [(found["g_t"][e], dt)]
            parts += zip(found["g_q"][e * n : (e + 1) * n], dq, strict=True)
            parts += zip(found["g_p"][e * n : (e + 1) * n], dp, strict=True)
            along.append(B.sum(B.mul(slope, change) for slope, change in parts))
        return B.build(rate=along)

    @cached_property
    def bounds(self) -> Program:
        """g at the centre of a box of (t, q, p), and by how much g may differ elsewhere in the box."""
        return enclosed(self.program, ("t", "q", "p"))

    @cached_property
    def rate_bounds(self) -> Program:
        """The same for the rate of g along (dt, dq, dp), which have a box too. Where g may jump, no rate bounds g."""
        plain = enclosed(self.rate, ("t", "q", "p", "dq", "dp"))
        jumps = jumping(self.program, ("t", "q", "p"), "g")
        B = Builder(plain.inputs)
        given = {name: B.input(name) for name, _ in plain.inputs}
        found = B.inline(plain, **given)
        off = B.inline(jumps, **{name: given[name] for name, _ in jumps.inputs})["jumps"]
        radius = [B.add(r, jump) for r, jump in zip(found["rate_radius"], off, strict=True)]
        return B.build(rate=found["rate"], rate_radius=radius)


def watch(events: Mapping[str, Event | Impact] | None, system: Any) -> Watch | None:
    """Check the events asked for, and trace their functions; None if there are none."""
    if events is None:
        return None
    if not isinstance(events, Mapping):
        raise TypeError(f"events must be a mapping of names to events, as in {{'top': la.Event(g)}}; got {events!r}")
    items, results = [], []
    defaults = {name: np.asarray(value) for name, value in system.params.items()}
    B = Builder([("t", 1), ("q", system.n), ("p", system.n), ("params", sum(x.size for x in defaults.values()))])
    for name, event in events.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of an event must be text; got {name!r}")
        if isinstance(event, Event):
            items.append(Watched(name, int(event.direction), bool(event.stop), _most(event)))
        elif isinstance(event, Impact):
            items.append(Watched(name, FALLING, False, None, float(event.restitution)))
        else:
            raise TypeError(f"events[{name!r}] must be la.Event(g) or la.Impact(g); got {event!r}")
        results.append(_traced(name, event, system, defaults, B))
    return Watch(tuple(items), B.build(g=results)) if items else None


T_END = "t_end"


def paced_watch(events: Watch | None, system: Any, until: bool, direction: int) -> Watch | None:
    """The same events of a paced system, whose last coordinate or momentum is the time; and, if `until`, the end of the
    run: the time that is the last parameter.
    """
    if events is None and not until:
        return None
    known = system.__dict__.setdefault("_ends", {})  # the Watches of the end alone, with their Programs
    if events is None and direction in known:
        return cast(Watch, known[direction])
    n = system.n - 1
    B = Builder([("t", 1), ("q", n + 1), ("p", n + 1), ("params", len(system.values()))])
    (*q, place), (*p, momentum), params = (B.input(block) for block in ("q", "p", "params"))
    t = place if system.clock.block == "q" else momentum
    items, results = [], []
    if events is not None:
        thrown = [
            k for k, item in zip(events.program.results, events.items, strict=True) if item.restitution is not None
        ]
        if any((item.restitution or 1.0) < 1.0 or item.restitution == 0 for item in events.items):
            raise ValueError(
                "with pace= impacts must be elastic, restitution=1: a loss changes the energy for which the steps are "
                "made. Run without pace="
            )
        if system.clock.block == "p" and events.program.with_outputs(g=thrown).depends("g", "t"):
            raise ValueError(
                "with pace= the wall of an impact must not move. Give a pace σ(t, q): with it time is a coordinate of "
                "the step, and walls may move"
            )
        own = dict(events.program.inputs)["params"]
        items, results = [*events.items], B.inline(events.program, t=[t], q=q, p=p, params=params[:own])["g"]
    if until:
        if any(item.name == T_END for item in items):
            raise ValueError(f"with pace= the event {T_END!r} is the end of the run: give yours another name")
        items.append(Watched(T_END, direction, True, 1, monotone=True))
        results.append(B.sub(t, params[-1]))
    found = Watch(tuple(items), B.build(g=results))
    if events is None:
        known[direction] = found
    return found


def _most(event: Event) -> int | None:
    return None if event.most is None else int(event.most)


def _traced(name: str, event: Event | Impact, system: Any, defaults: Mapping[str, Any], B: Builder) -> int:
    """Write the function of one event into the Builder, and return the place of its value."""
    from leastaction.trace import EVENT, trace

    t, q, p, params = (B.input(block) for block, _ in B.inputs)
    g, impact = event.g, isinstance(event, Impact)
    forms = ("g(q)", "g(t, q)") if impact else ("g(q, p)", "g(t, q, p)")
    try:
        arguments = inspect.signature(g).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"the function of event {name!r} does not tell its arguments: write it in Python") from None
    wanted = {a.name: defaults[a.name] for a in arguments if a.name in defaults}
    for a in arguments:
        if a.name in wanted and a.default is not a.empty:
            raise TraceError(
                f"the function of event {name!r} has a default for its argument {a.name!r}, which is a parameter of "
                "the system, too: leave the default out to get the parameter, or give the argument another name"
            )
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    free = [a.name for a in arguments if a.kind in positional and a.default is a.empty and a.name not in wanted]
    count = 1 if impact else 2
    if len(free) not in (count, count + 1) or (len(free) == count + 1 and free[0] not in ("t", "time")):
        raise TraceError(
            f"the function of event {name!r} must be {forms[0]} or {forms[1]}, and may ask for parameters of the "
            f"system by name ({', '.join(defaults) or 'it has none'}); got {getattr(g, '__name__', 'g')}"
            f"({', '.join(a.name for a in arguments)})"
        )
    time = len(free) == count + 1

    if time:

        def of_state(t: Any, q: Any, p: Any, **values: Any) -> Any:
            return g(t, q, **values) if impact else g(t, q, p, **values)

    else:

        def of_state(q: Any, p: Any, **values: Any) -> Any:  # type: ignore[misc]
            return g(q, **values) if impact else g(q, p, **values)

    of_state.__module__ = getattr(g, "__module__", __name__)  # where errors are looked for
    try:
        program = trace(of_state, system.n, {key: value.shape for key, value in wanted.items()}, time, EVENT)
    except TraceError as error:
        raise TraceError(f"the function of event {name!r}, {forms[0]} or {forms[1]}: {error}") from error
    places, start = {}, 0
    for key, value in defaults.items():
        places[key] = range(start, start + value.size)
        start += value.size
    mine = [params[i] for key in wanted for i in places[key]]
    return B.inline(program, t=t, q=q, v=p, params=mine)["g"][0]
