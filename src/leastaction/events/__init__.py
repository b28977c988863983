"""Events that a run looks for on its way, found to the order of the method; and impacts, which throw the motion back.

`watch` traces the functions, `check` is what the native code asks after every step, `examine` finds the events of steps
in doubt (`isolate`: how many there are; `motion`: where), `watcher` books them in a `log` and throws back at impacts,
`watched` wraps a stepper.
"""

from leastaction.events.kinds import T_END, Event, Impact, Watch, Watched, paced_watch, watch
from leastaction.events.log import GROWING, Happened, Log, together
from leastaction.events.watched import LAST_STATES, WatchedForms, WatchedStates

__all__ = [
    "GROWING",
    "LAST_STATES",
    "T_END",
    "Event",
    "Happened",
    "Impact",
    "Log",
    "Watch",
    "Watched",
    "WatchedForms",
    "WatchedStates",
    "paced_watch",
    "together",
    "watch",
]
