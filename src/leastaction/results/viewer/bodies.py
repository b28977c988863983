"""Bodies of a drawing: a disc, a box, an ellipsoid, each an affine image of a mesh of one size with a mark on it.

A body is told by points of the drawing: its centre c and the ends a, b (and e in space) of its half axes. A vertex
(x, y, z) of the mesh lies at c + x (a − c) + y (b − c) + z (e − c), so a body turns as its points do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

AXES = {"disc": (2,), "box": (2, 3), "ellipsoid": (3,)}  # how many half axes each kind may have
ROUND = 24  # corners of a circle
MARK, BRIGHT = 0.9, 0.3  # shares of the body's colour in marked faces and in others


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices, in multiples of the half axes; faces, lists of vertices; of each face the share of the colour."""

    vertices: NDArray[np.float64]
    faces: list[list[int]]
    shades: list[float]

    def placed(self, points: NDArray[Any]) -> NDArray[Any]:
        """The vertices of a body whose centre and ends of half axes are the rows of `points`."""
        return np.asarray(points[0] + self.vertices @ (points[1:] - points[0]))


@cache
def mesh(kind: str, axes: int) -> Mesh:
    """The mesh of a kind of body with two or three half axes."""
    if kind == "disc":  # four quarters, one of them marked
        turn = 2 * math.pi * np.arange(ROUND) / ROUND
        vertices = np.vstack([[0.0, 0.0], np.stack([np.cos(turn), np.sin(turn)], axis=1)])
        quarter = ROUND // 4
        faces = [[0, *(1 + k % ROUND for k in range(i, i + quarter + 1))] for i in range(0, ROUND, quarter)]
        return Mesh(vertices, faces, [MARK, BRIGHT, BRIGHT, BRIGHT])
    if kind == "box":
        vertices = np.array(list(product((-1.0, 1.0), repeat=axes)))
        if axes == 2:  # one of its halves is marked
            middle = np.array([[0.0, -1.0], [0.0, 1.0]])
            return Mesh(np.vstack([vertices, middle]), [[0, 4, 5, 1], [4, 2, 3, 5]], [BRIGHT, MARK])
        faces = [[k for k in range(8) if vertices[k, d] == side] for d in range(3) for side in (1, -1)]
        return Mesh(vertices, [[a, b, d, c] for a, b, c, d in faces], [MARK, BRIGHT, 0.5, 0.5, 0.15, 0.15])
    around, up = np.arange(ROUND) * 2 * math.pi / ROUND, np.linspace(0, math.pi, ROUND // 2 + 1)
    vertices = np.array(
        [(math.sin(u) * math.cos(a), math.sin(u) * math.sin(a), math.cos(u)) for u in up for a in around]
    )
    cells = [(i, j) for i in range(len(up) - 1) for j in range(ROUND)]
    faces = [
        [i * ROUND + j, i * ROUND + (j + 1) % ROUND, (i + 1) * ROUND + (j + 1) % ROUND, (i + 1) * ROUND + j]
        for i, j in cells
    ]
    octants = [(j * 4 // ROUND + (i >= ROUND // 4)) % 2 for i, j in cells]  # like a beach ball
    return Mesh(vertices, faces, [MARK if octant else BRIGHT for octant in octants])
