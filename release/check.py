"""Build wheel and sdist, look into them, and try the wheel in an empty environment of every Python that is found.

    python release/check.py [--python python3.12 …] [--no-install]

Needs `build` and `twine`, and an index of packages for the dependencies.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
NEEDED = (
    *("leastaction/py.typed", "leastaction/results/references.bib", "leastaction/report/page.css"),
    *(f"leastaction/results/viewer/assets/{name}" for name in ("view.js", "stage.js", "chart.js")),
    *(f"leastaction/results/viewer/assets/{name}" for name in ("view.css", "page.css")),
    *(f"leastaction/lab/assets/{name}" for name in ("lab.js", "page.js", "widget.js", "lab.css")),
)
UNWANTED = ("tests/", "benchmarks/", "examples/", "gallery/", "docs/", "__pycache__", ".pyc", ".git", ".venv")
SOURCES = ("tests", "examples", "gallery", "benchmarks", "docs", "recipe", "README.md", "CHANGELOG.md", "CITATION.cff")
MOST_MEGABYTES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter to try (default: every one found)")
    parser.add_argument("--no-install", action="store_true", help="build and look only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = build(Path(folder))
        version = look(wheel, sdist)
        print(f"leastaction {version}: {wheel.name}, {sdist.name}, both as they should be")
        if options.no_install:
            return
        found = options.python or pythons()
        if not found:
            sys.exit(f"none of {', '.join(PYTHONS)} is here: give one with --python")
        for number, python in enumerate(found):
            install(python, wheel, Path(folder) / f"environment-{number}")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel, made from the sdist, and the sdist."""
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    return wheel, sdist


def look(wheel: Path, sdist: Path) -> str:
    """Whether they hold what they should and nothing else; the version."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(about).decode())
    if missing := [name for name in NEEDED if name not in names]:
        sys.exit(f"the wheel lacks {', '.join(missing)}")
    if strange := [name for name in names if any(part in name for part in UNWANTED)]:
        sys.exit(f"the wheel holds {', '.join(strange[:5])}")
    if others := {name.split("/")[0] for name in names} - {"leastaction", about.split("/")[0]}:
        sys.exit(f"the wheel holds {', '.join(sorted(others))} beside the package")
    version = metadata["Version"]
    if version != own_version():
        sys.exit(f"the wheel is of version {version}, the source of {own_version()}")
    for field in ("Summary", "Requires-Python", "License-Expression", "Description-Content-Type"):
        if not metadata[field]:
            sys.exit(f"the metadata lack {field}")
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 2)[1] for name in archive.getnames() if "/" in name}
        caches = [name for name in archive.getnames() if "__pycache__" in name]
    if missing := [name for name in SOURCES if name not in inside]:
        sys.exit(f"the sdist lacks {', '.join(missing)}")
    if caches:
        sys.exit(f"the sdist holds {caches[0]}")
    for file in (wheel, sdist):
        if file.stat().st_size > MOST_MEGABYTES * 1e6:
            sys.exit(f"{file.name} has {file.stat().st_size / 1e6:.1f} MB")
    return version


def own_version() -> str:
    names: dict[str, str] = {}
    exec((ROOT / "src" / "leastaction" / "version.py").read_text("utf-8"), names)
    return names["__version__"]


def pythons() -> list[str]:
    """An interpreter for every version of PYTHONS that can be had: from the path, or from pyenv."""
    found = []
    for name in PYTHONS:
        version = name.removeprefix("python")
        kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/{name}"))
        found += [python for python in (name, *map(str, kept)) if shutil.which(python) and works(python)][:1]
    return found


def works(python: str) -> bool:
    """Whether an interpreter of that name runs: a version manager may have the name and not the thing."""
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0


def install(python: str, wheel: Path, environment: Path) -> None:
    """The wheel without extras in an empty environment, and the smoke test there."""
    run(python, "-m", "venv", str(environment))
    inside = str(environment / "bin" / "python")
    run(inside, "-m", "pip", "install", "--quiet", str(wheel))
    run(inside, "-I", "-W", "error", str(ROOT / "release" / "smoke.py"), folder=environment)
    print(f"{python}: the smoke test passed", flush=True)


def run(*command: str, folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    main()
