# Everything runs in .venv, which any target makes on first use. PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test test-browser test-crash test-fuzz lint tables bench dist clean

demo: .venv/user.stamp
	$(BIN)/cell-attention demo

test: lint
	$(BIN)/python -m pytest -n $(JOBS)

# The report of `explain` and the page of `serve` in a real browser.
test-browser: .venv/browser.stamp
	@command -v $${CHROMIUM:-chromium} >/dev/null || { echo "make test-browser: there is no chromium; install it (Debian: apt-get install chromium) or name one in CHROMIUM"; exit 1; }
	$(BIN)/python -m pytest tests/browser -rP

# Twenty kills per engine instead of three, and one in every write of a search.
test-crash: .venv/dev.stamp
	$(BIN)/python -m pytest tests/test_crash.py tests/test_search.py -n $(JOBS) --kills 20

# Ten thousand mutated files instead of five hundred.
test-fuzz: .venv/dev.stamp
	$(BIN)/python -m pytest tests/test_fuzz.py -n $(JOBS) --fuzz 10000

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tables of README.md and docs/ from results/.
tables: .venv/dev.stamp
	$(BIN)/python scripts/tables.py

bench: .venv/dev.stamp
	$(BIN)/cell-attention benchmark
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-columns=min,median,rounds

dist: .venv/dev.stamp
	rm -rf dist
	$(BIN)/python -m build --installer pip

clean:
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks .import_linter_cache

# pip, not a faster installer: it is what every Python has, and it alone sees local wheels.
.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/user.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/browser.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet --editable ".[browser]"
	touch $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench,ray,search]"
	touch $@
	touch .venv/user.stamp
