# From a bare clone: `make reproduce` does the project's main job, `make test` tests it. Both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup reproduce test test-all lint bench clean

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

reproduce: setup
	$(BIN)/leastaction reproduce

test: setup
	$(BIN)/python -m pytest

test-all: setup
	$(BIN)/python -m pytest -m "slow or not slow"

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/ensemble.py

clean:
	rm -rf .venv report
