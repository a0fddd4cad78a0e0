# Everything runs from .venv, which any target makes when it is missing or older than pyproject.toml.
# Needs make and Python 3.11 or newer with venv; `make PYTHON=python3.12 …` picks another interpreter.

PYTHON ?= python3
BIN := .venv/bin
COMPILED := geometry bonuses stores planning algorithms
STAMP := .venv/.installed
BENCHMARKS := $(patsubst benchmarks/%.py,%,$(filter-out benchmarks/_%,$(sort $(wildcard benchmarks/*.py))))

.DEFAULT_GOAL := help
.PHONY: help setup figure paper test again soak lint coverage bench clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
		printf '%-18s %s\n' "$$target" "$$text"; done

setup: $(STAMP)  ## make .venv and install kernelrl with its tools there

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kernelrl needs Python 3.11 or newer; try: make PYTHON=python3.12 setup" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Making .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "Installing kernelrl and its dependencies into .venv (a minute or two the first time) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@
	@echo "Ready: $(BIN)/python"

figure: setup  ## run a small experiment in TwinRooms and write its report, with the figures
	@$(BIN)/kernelrl run quick --out results/quick
	@$(BIN)/kernelrl report results/quick

paper: setup  ## run the paper's experiment at full scale (8 seeds of 50,000 episodes); goes on where it was stopped
	@$(BIN)/kernelrl run paper --out results/paper
	@$(BIN)/kernelrl report results/paper

test: setup  ## run the tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile

soak: setup  ## try for 20 minutes to break what docs/reliability.md promises; SOAK='--minutes 5 --only kills' for less
	@$(BIN)/python tests/soak.py $(SOAK)

again: setup  ## run the tests ten times in random order of files, three of them beside a load; AGAIN='--times 2' for less
	@$(BIN)/python tests/again.py $(AGAIN)

lint: setup  ## check style, formatting and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy --strict examples
	@$(BIN)/mypy --strict --config-file= examples/tank.py

coverage: setup  ## run the core's tests without compilation and show which lines they reach
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/core $(COMPILED:%=--cov=src/kernelrl/%) --cov-report=term-missing:skip-covered

bench: setup  ## run every benchmark; bench-NAME runs benchmarks/NAME.py
	@echo "Benchmarks: $(if $(BENCHMARKS),$(BENCHMARKS:%=bench-%),none yet)"
	@set -e; for name in $(BENCHMARKS); do echo; $(MAKE) --no-print-directory bench-$$name; done

bench-%: benchmarks/%.py setup
	@echo "== $*"
	@$(BIN)/python $<

clean:  ## remove what tools left behind (keeps .venv and results)
	@rm -rf build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
