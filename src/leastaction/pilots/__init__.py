"""Which method, which step, which pace: chosen by measuring.

A run until T is to end with an error of the position below tol, relative to the size of the motion. Pilots measure:

1. A pilot interval T_p (`ways`, `reach`): all of T, or as much of it as some thousand steps of 2/ω cover, with the
   pace made from L or without; ω is the largest frequency or growth rate of the linearised motion at the start. Where
   equal steps find the end of the whole run in so short a time that the code of a pace would not pay, no pace is tried.
   Where a pace leads to T in far fewer steps than equal ones do, and these are too many for a pilot, equal steps are
   left out.
2. The answer at T_p (`answer`), by the member of order 16, or a lower one where constraints hold: its step is halved
   until two answers agree.
3. The growth of errors (`trial`, `growth`), from the tangent map D(t) of the pilot, by a cheaper member if it follows
   the motion. Errors grow like a power of t, or exponentially if D grows much more in the second half of the pilot than
   in the first. So errors at T follow from errors at T_p, and what rounding at the start and on the way makes of them.
4. For some members, without and with a pace, the error at two steps (`step`): error = C h^p. The step for tol follows.
   The cost follows from the seconds of the processor that the pilot with about this step took, since steps of other
   lengths cost otherwise: long steps take more iterations. A run with a pace is as many times as long as its pilot in
   s, not in t: far from an encounter a step of s is a long time.

Of the members that follow each other by degree, costs fall and then grow. So the search (`search`) begins with the
degree that is often the best for such a tolerance, and goes to lower and to higher degrees until costs grow. The
cheapest option that keeps the tolerance is chosen (`choice`). The choice may depend on the clock; a run with the chosen
option does not.

All this is to take no longer than the run and a second (`budget`). Pilots are run once (`lab`), and those that were run
for another reason are used first. A member that has not run before may have to be compiled, which takes a tenth of a
second to a second. So the answer and the growth of errors come from members that are measured, too, and others are
loaded only if the run is long enough. After a second in all the member that found the answer carries derivatives, too;
the next advice, which finds its code ready, may choose better.
"""

from leastaction.pilots.asked import Asked
from leastaction.pilots.choice import UNKEPT, UNSURE, choose
from leastaction.pilots.growth import SURE, at_fixed_time
from leastaction.pilots.lab import LAST
from leastaction.pilots.trial import USEFUL

__all__ = ["LAST", "SURE", "UNKEPT", "UNSURE", "USEFUL", "Asked", "at_fixed_time", "choose"]
