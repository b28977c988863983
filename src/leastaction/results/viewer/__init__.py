"""Motion to look at: pages that play, and films."""

from leastaction.results.viewer.movie import animate
from leastaction.results.viewer.show import CELL_MEGABYTES, cloud_page, frame, path_page, show, write

__all__ = ["CELL_MEGABYTES", "animate", "cloud_page", "frame", "path_page", "show", "write"]
