# `make demo` and `make test` work on a machine that has Python 3.11, make and a package registry, and nothing else.
PYTHON ?= python3.11
ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
PYTHON := python3
endif
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo
SHARED_DATA := $(abspath ../shared/data)
ifneq ($(wildcard $(SHARED_DATA)/README.md),)
export PLUMBOB_DATA ?= $(SHARED_DATA)
endif
# Many small models: one BLAS thread each is faster than two, and the cores go to workers.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-nodata test-slow check bench install install-test docs clean
help: ## show this
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# xgboost without what it names besides: numpy and scipy are here, and the rest is a third of a gigabyte for graphics cards.
$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps xgboost || echo "no xgboost here: its tests will be skipped"
	@touch $@

install: $(VENV)/.installed ## the environment for users
install-test: $(VENV)/.installed-test ## the environment for developers

demo: $(VENV)/.installed ## audit built-in data and say where the report is
	$(BIN)/plumbob audit --out $(OUT)

# A browser for the report's tests; where it cannot be had those tests say so and are skipped.
.PHONY: browser
browser:
	@command -v chromium >/dev/null 2>&1 || { command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] \
	  && apt-get update -qq >/dev/null && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "no chromium here: the browser tests will be skipped"

test: $(VENV)/.installed-test browser ## everything that runs in minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# No file is there: collection, what needs files (all skipped), and what users do first.
test-nodata: $(VENV)/.installed-test ## the part of the tests that could break where there are no data files
	PLUMBOB_DATA=/nonexistent $(BIN)/python -m pytest -n 2 --dist worksteal -m "(needs_data or nodata) and not slow"

test-slow: $(VENV)/.installed-test browser ## the tests at the papers' sizes, and new examples for the others
	$(BIN)/python -m pytest -m slow
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

check: $(VENV)/.installed-test ## style, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/.installed-docs ## the generated pages, then the site in site/
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.generate.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.installed ## speed, as ratios in one run
	$(BIN)/plumbob bench

clean: ## remove the environment and what the demo made
	rm -rf $(VENV) $(OUT) site
