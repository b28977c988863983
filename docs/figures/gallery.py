"""Draws the pictures of the README and of docs/ensembles.md that scripts of the gallery make."""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PICTURES = {
    "double_pendulum": "02_double_pendulum",
    "henon_heiles": "12_henon_heiles",
    "kepler_spread": "32_kepler_cloud",
}


def main() -> None:
    for picture, script in PICTURES.items():
        plt.close("all")
        runpy.run_path(str(HERE.parents[1] / "gallery" / f"{script}.py"))
        plt.savefig(HERE / f"{picture}.png", dpi=140)


if __name__ == "__main__":
    main()
