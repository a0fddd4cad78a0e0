# Everything runs from .venv; every target makes it if it is missing or older than pyproject.toml. `figure` and `paper`
# install only what kernelrl needs to run, the others also the development tools.
# Needs make and Python 3.11 or newer with venv; `make PYTHON=python3.12 …` picks another interpreter.

PYTHON ?= python3
BIN := .venv/bin
COMPILED := geometry bonuses stores planning algorithms
INSTALLED := .venv/.installed
DEV := .venv/.installed-dev
# Modules are byte-compiled when first imported; most installed modules never are. Where Python is told not to write byte
# code, as in many containers, each of the many processes would compile all that it imports again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile
BENCHMARKS := $(patsubst benchmarks/%.py,%,$(filter-out benchmarks/_%,$(sort $(wildcard benchmarks/*.py))))

.DEFAULT_GOAL := help
.PHONY: help setup figure paper suite suite-docs test again soak lint docs docs-figures readme-figure gallery package coverage bench bench-compare clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
		printf '%-20s %s\n' "$$target" "$$text"; done

setup: $(DEV)  ## make .venv and install kernelrl with the development tools there

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kernelrl needs Python 3.11 or newer; try: make PYTHON=python3.12 setup" >&2; exit 1; }
	@echo "Making .venv ..."
	@$(PYTHON) -m venv .venv

$(INSTALLED): pyproject.toml | .venv/bin/python
	@echo "Installing kernelrl into .venv (half a minute the first time) ..."
	@$(PIP) -e .
	@touch $@

$(DEV): pyproject.toml | .venv/bin/python
	@echo "Installing kernelrl and the development tools into .venv (a minute the first time) ..."
	@$(PIP) -e '.[dev]'
	@touch $(INSTALLED) $@
	@echo "Ready: $(BIN)/python"

figure: $(INSTALLED)  ## run a small experiment in TwinRooms and write its report, with the figures
	@$(BIN)/kernelrl run quick --out results/quick --report

suite: $(INSTALLED)  ## run all agents on all problems (about 20 minutes on two cores), or continue it
	@$(BIN)/kernelrl run suite --out results/suite --report

suite-docs: suite  ## the same, and write its tables and figures into docs/benchmarks.md
	@$(BIN)/python benchmarks/_tables_to_docs.py results/suite docs/benchmarks.md

paper: $(INSTALLED)  ## run the paper's experiment at full scale (8 seeds of 50,000 episodes), or continue it
	@$(BIN)/kernelrl run paper --out results/paper --report

test: $(DEV)  ## run the tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

soak: $(DEV)  ## try for 20 minutes to break what docs/reliability.md promises; SOAK='--minutes 5 --only kills' for less
	@$(BIN)/python tests/soak.py $(SOAK)

again: $(DEV)  ## run the tests ten times in random order, three times on a busy machine; AGAIN='--times 2' for less
	@$(BIN)/python tests/again.py $(AGAIN)

lint: $(DEV)  ## check style, formatting and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy --strict examples
	@$(BIN)/mypy --strict --config-file= --follow-imports=silent examples/*.py tests/typed_user_file.py

docs: $(DEV)  ## build the documentation: build/docs/index.html; any warning is an error
	@rm -rf build/docs
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

docs-figures: $(DEV)  ## draw the figures of docs/explained.md again
	@$(BIN)/python docs/draw_explained.py

readme-figure: $(INSTALLED)  ## learn with 8 seeds and draw the first figure of README.md again (a few minutes)
	@$(BIN)/python docs/draw_learning.py

gallery: $(DEV)  ## learn and draw docs/gallery.md again: an episode in each environment
	@$(BIN)/python docs/draw_gallery.py

package: $(DEV)  ## build the wheel and the sdist into dist/, and try them in an empty environment
	@.ci/package

coverage: $(DEV)  ## run the core's tests without compilation and show which lines they reach
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 tests/core $(COMPILED:%=--cov=src/kernelrl/%) --cov-report=term-missing:skip-covered

bench: $(DEV)  ## run every benchmark; bench-NAME runs benchmarks/NAME.py, BENCH='--before COMMIT' has arguments for it
	@echo "Benchmarks: $(if $(BENCHMARKS),$(BENCHMARKS:%=bench-%),none yet)"
	@set -e; for name in $(BENCHMARKS); do echo; $(MAKE) --no-print-directory bench-$$name; done

bench-compare: $(DEV)  ## show the last two results of each benchmark side by side (results/bench.jsonl)
	@$(BIN)/python benchmarks/_history.py $(BENCH)

bench-%: benchmarks/%.py $(DEV)
	@echo "== $*"
	@$(BIN)/python $< $(BENCH)

clean:  ## remove files that tools left (keeps .venv and results)
	@rm -rf build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	@find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
