# Everything runs in .venv, which any target makes on first use. PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: demo test test-browser test-notebooks test-crash test-fuzz lint tables docs notebooks gallery bench dist test-dist clean

demo: .venv/user.stamp
	$(BIN)/cell-attention demo

# Each worker has a half of the modules and, at the end, takes tests of the other: fixtures of a
# module are made once and not twice.
test: lint
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# The report of `explain`, the page of `serve` and the site in a real browser.
test-browser: .venv/browser.stamp .venv/axe/axe.min.js docs
	@command -v $${CHROMIUM:-chromium} >/dev/null || { echo "make test-browser: there is no chromium; install it (Debian: apt-get install chromium) or name one in CHROMIUM"; exit 1; }
	$(BIN)/python -m pytest tests/browser -rP

# The notebooks of docs/notebooks, which train for some minutes.
test-notebooks: .venv/dev.stamp
	$(BIN)/python -m pytest tests/notebooks

# Twenty kills per engine instead of three, and one in every write of a search.
test-crash: .venv/dev.stamp
	$(BIN)/python -m pytest tests/test_crash.py tests/test_search.py -n $(JOBS) --kills 20

# Ten thousand mutated files instead of five hundred.
test-fuzz: .venv/dev.stamp
	$(BIN)/python -m pytest tests/test_fuzz.py -n $(JOBS) --fuzz 10000 --fuzz-files 10000

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tables of README.md and docs/ from results/, and the pictures of the same numbers.
tables: .venv/dev.stamp
	$(BIN)/python scripts/tables.py

# The site, into site/: strict, and without anything from elsewhere.
docs: .venv/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python scripts/site_offline.py site

# What the notebooks print and draw, and the pictures of the gallery.
notebooks: .venv/dev.stamp
	$(BIN)/python scripts/notebooks.py

gallery: .venv/dev.stamp
	$(BIN)/python scripts/gallery.py

bench: .venv/dev.stamp
	$(BIN)/cell-attention benchmark
	$(BIN)/python -m pytest benchmarks --benchmark-only --benchmark-columns=min,median,rounds

dist: .venv/dev.stamp
	rm -rf dist
	$(BIN)/python -m build --installer pip

# What lies in dist/, in an environment that has nothing else: the sdist's tests against the wheel.
test-dist: dist
	rm -rf .venv/alone
	$(PYTHON) -m venv .venv/alone
	.venv/alone/bin/python -m pip install --quiet --upgrade pip
	.venv/alone/bin/python -m pip install --quiet "$$(ls dist/*.whl)[dev,bench,docs,ray,search]"
	tar -xzf dist/*.tar.gz -C .venv/alone
	cd .venv/alone/cell_attention-* && ../bin/python -m pytest -n $(JOBS) --dist worksteal

clean:
	rm -rf .venv dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks .import_linter_cache

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

# axe looks for what keeps people from using a page: contrast, names, order. MPL-2.0, from npm.
.venv/axe/axe.min.js: | .venv/bin/python
	@command -v npm >/dev/null || { echo "make test-browser: there is no npm, which fetches axe-core"; exit 1; }
	npm install --silent --no-save --prefix .venv/npm axe-core@4
	mkdir -p .venv/axe
	cp .venv/npm/node_modules/axe-core/axe.min.js $@

.venv/dev.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev,bench,docs,ray,search]"
	touch $@
	touch .venv/user.stamp
