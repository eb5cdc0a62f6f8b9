# `make train` and `make test` work on a fresh clone: both first make .venv from the pinned versions.

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.stamp
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
PYTEST := $(PY) -m pytest

# The tests run in several processes, and nested thread pools make them many times slower.
check test-slow: export OMP_NUM_THREADS := 1
check test-slow: export MKL_NUM_THREADS := 1
check test-slow: export OPENBLAS_NUM_THREADS := 1
check test-slow: export NUMBA_NUM_THREADS := 1

.PHONY: help setup train test check test-slow docs benchmark clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the pinned versions (the other targets do it when needed)

# torch goes first, alone and exact, so that no later resolution can choose another one. setuptools is
# installed from the pins too, and build isolation is off, because pip would otherwise fetch its newest.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@echo "Making $(VENV) from constraints.txt (a few minutes)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install -c constraints.txt torch==2.13.0 setuptools
	@$(PIP) install -c constraints.txt --no-build-isolation -e ".[train,render,web,dev,docs]"
	@touch $@

train: $(STAMP) ## train PPO with configs/ppo.yaml
	$(PY) scripts/train.py --config ppo.yaml

test: check ## the same as check

check: $(STAMP) ## lint, format, types, import contracts and the fast tests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PYTEST) -n 2

test-slow: $(STAMP) ## the tests that take minutes
	$(PYTEST) -m slow --timeout 1800

docs: $(STAMP) ## write into the pages what they take from the code, and build the site into site/
	$(VENV)/bin/cog --verbosity 1 -I docs -p "import from_code" -r README.md docs/*.md
	$(PY) -m mkdocs build --clean --quiet

benchmark: $(STAMP) ## measure the speed of environments and solvers
	$(PY) scripts/benchmark.py

clean: ## remove .venv, caches and build products; runs/ stays
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find generala_env agents scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +
