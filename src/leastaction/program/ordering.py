"""The order of a Program's instructions: another one means the same, but may suit a processor better.

A gradient as it is written goes forwards over all pairs of bodies, then backwards: at the turning point all values
wait, more than the processor has registers for. `ordered` writes each value shortly before its use. It is a list
schedule from the end to the beginning: of the instructions whose uses all stand behind, it takes one after which no
more values wait than before, else the one that stood last. What is an instruction or two away from the inputs does not
count, since it can be computed again.

Where one long chain of instructions has to wait for each other, others should be done meanwhile. A processor looks
ahead, but not far. `prompt` writes each instruction where it can begin, if none had to wait for a place.
"""

from __future__ import annotations

import heapq

from leastaction.program import Program

GIVEN = ("input", "const")
SHORT = 2  # instructions from the inputs


def ordered(program: Program) -> Program:
    """The same program, whose values wait less."""
    code = program.code
    length = [0] * len(code)
    read: list[list[int]] = []
    uses: list[list[int]] = [[] for _ in code]
    for k, (op, *args) in enumerate(code):
        read.append([] if op in GIVEN else [a for a in dict.fromkeys(args) if code[a][0] not in GIVEN])
        if op not in GIVEN:
            length[k] = 1 + sum(length[a] for a in read[k])
        for a in read[k]:
            uses[a].append(k)
    unplaced, waits, placed = [len(used) for used in uses], [False] * len(code), [False] * len(code)

    def candidate(k: int) -> tuple[bool, int]:
        begin = sum(not waits[a] and length[a] > SHORT for a in read[k])
        return begin > (waits[k] and length[k] > SHORT), -k

    ready = [candidate(k) for k, (op, *_) in enumerate(code) if op not in GIVEN and not uses[k]]
    heapq.heapify(ready)
    backwards = []
    while ready:
        found = heapq.heappop(ready)
        k = -found[1]
        if placed[k] or found != candidate(k):  # an outdated entry: a newer one of k is there, too
            continue
        placed[k] = True
        backwards.append(k)
        for a in read[k]:
            unplaced[a] -= 1
            if not waits[a]:
                waits[a] = True
                for other in uses[a]:
                    if not unplaced[other] and not placed[other]:
                        heapq.heappush(ready, candidate(other))
            if not unplaced[a]:
                heapq.heappush(ready, candidate(a))
    return _in_order(program, backwards[::-1])


LATENCY = {
    "div": 13, "max": 2, "min": 2, "maximum": 3, "minimum": 3, "if": 2, "select": 2, "abs": 1, "and": 1, "or": 1,
    "not": 1, "neg": 0,
}  # fmt: skip
USUAL = 4  # cycles from operands to result, of all others


def prompt(program: Program) -> Program:
    """The same program, each instruction as early as its operands are there."""
    code, ready = program.code, [0] * len(program.code)
    for k, (op, *args) in enumerate(code):
        if op not in GIVEN:
            ready[k] = max(ready[a] for a in args) + LATENCY.get(op, USUAL)
    return _in_order(program, sorted((k for k, (op, *_) in enumerate(code) if op not in GIVEN), key=ready.__getitem__))


def _in_order(program: Program, order: list[int]) -> Program:
    """The same program, what is given first, then the instructions in this order."""
    code = program.code
    order = [k for k, (op, *_) in enumerate(code) if op in GIVEN] + order
    place = {k: i for i, k in enumerate(order)}
    moved = tuple(code[k] if code[k][0] in GIVEN else (code[k][0], *(place[a] for a in code[k][1:])) for k in order)
    return Program(program.inputs, program.outputs, moved, tuple(place[k] for k in program.results))
