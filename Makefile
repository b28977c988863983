# From a bare clone: `make reproduce` does the project's main job, `make test` tests it, `make docs` builds the site. Each
# sets up first what it needs, into .venv.
PYTHON ?= python3
BIN := .venv/bin

MAKEFLAGS += --jobs=3  # what needs nothing of each other is done at the same time

.PHONY: setup browser reproduce test test-all mutants lint docs bench release-check clean

setup: .venv/ready

.venv/library: pyproject.toml
	@echo "setup: Python's packages that the library needs, into .venv …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/ready: .venv/library
	@echo "setup: packages for tests, checks and documentation …"
	@$(BIN)/python -m pip install --quiet --group dev
	@touch $@

reproduce: .venv/library
	$(BIN)/leastaction reproduce

# The report is tested in a real browser; where none can be had, that test is skipped and says so.
browser:
	@if command -v chromium >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "setup: Chromium, for tests in a browser …"; apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	else false; fi || echo "no Chromium, and no way to install it here: the tests in a browser will be skipped"

# One worker for each core; whoever is done takes over tests of the others.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal

test: setup browser
	$(PYTEST) $(ARGS)

# Random cases are drawn anew; a failure shows the TEST_SEED that repeats it.
test-all: setup browser
	TEST_SEED=$${TEST_SEED:-$$(date +%s)} $(PYTEST) -m "slow or not slow"

# Can the tests fail? A sample of small changes of the library, and the share of them that a test notices.
mutants: setup
	$(BIN)/python tests/mutants.py $(ARGS)

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in build/site. A broken link, a broken reference and a script of the gallery that fails are errors.
docs: setup
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -W --keep-going -n $(ARGS) docs build/site
	@echo "open build/site/index.html"

bench: setup
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/orders.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/ensemble.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/measured.py

# Wheel and sdist: built, looked at, installed without extras into an empty environment for every Python found, and tried.
release-check: setup
	$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python release/check.py $(ARGS)

clean:
	rm -rf .venv report dist build docs/generated docs/gallery docs/reference/api docs/reference/*.rst docs/_static/made docs/sg_execution_times.rst
