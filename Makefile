# Everything runs in .venv, made on first use; a fresh machine needs Python 3.11+, make and a package index.
#   make demo       a study of two drugs, with a report       make docs       build the guide
#   make quick      the inner loop: under 30 seconds          make figures    draw the guide's pictures
#   make test       what CI runs: under four minutes          make fuzz       60 000 random plans
#   make test-all   everything, slow tests and guide too      make bench      speed, beside other libraries
#   make hooks      check every commit                        make lowest     tests with the oldest dependencies
#   make attack     ten minutes of hostile input
# `make quick BIN=path/to/bin` uses an environment that you have, and installs nothing.
PYTHON ?= python3
BIN ?= .venv/bin
PIP := .venv/bin/pip install --quiet --constraint constraints.txt

# Tests that take a few seconds in all and touch every layer below the studies.
QUICK := tests/mdp tests/planning/test_plan.py tests/planning/test_problem.py tests/planning/test_validation.py \
  tests/oracles/test_counts.py tests/oracles/finite tests/agents/test_base.py tests/runs/test_simulate.py \
  tests/test_architecture.py tests/test_contexts.py tests/test_persistence.py

.PHONY: demo quick test test-all check lowest docs figures fuzz attack bench hooks clean

# An environment that was given with BIN is taken as it is.
ifeq ($(BIN),.venv/bin)
have = .venv/$(1)
endif

demo: $(call have,studies)
	$(BIN)/omg-cmdp demo

quick: check
	$(BIN)/pytest -q -n 2 $(QUICK)

test: check
	$(BIN)/pytest -q -n 2

test-all: $(call have,torch) docs test
	$(BIN)/pytest -q -n 2 -m slow

check: $(call have,dev)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(call have,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(call have,studies)
	$(BIN)/python -m docs.figures

fuzz: $(call have,dev)
	$(BIN)/python -m tests.planning.fuzz

attack: $(call have,dev)
	$(BIN)/python -m tests.attack

bench: $(call have,bench) $(call have,rlberry/done)
	$(BIN)/python -m benchmarks

hooks: $(call have,hooks)
	$(BIN)/pre-commit install

# Compiled code is kept apart: two versions of numba would overwrite each other's.
lowest: .venv/lowest/done
	NUMBA_CACHE_DIR=$(CURDIR)/.venv/lowest/compiled .venv/lowest/bin/pytest -q $(QUICK) tests/runs tests/reports tests/test_cli.py \
	  tests/live/test_desk.py tests/live/test_database.py tests/live/test_commands.py tests/live/test_client.py

clean:
	rm -rf .venv benchmarks/results site
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/pip:
	$(PYTHON) -m venv .venv
	$(PIP) pip
	touch $@

.venv/studies: .venv/pip pyproject.toml constraints.txt
	$(PIP) --editable '.[studies]'
	touch $@

.venv/dev: .venv/pip pyproject.toml constraints.txt
	$(PIP) --editable . --group dev
	touch $@

.venv/docs: .venv/pip pyproject.toml constraints.txt
	$(PIP) --editable . --group docs
	touch $@

.venv/hooks: .venv/dev
	$(PIP) pre-commit
	touch $@

.venv/lowest/done: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .venv/lowest
	.venv/lowest/bin/pip install --quiet --constraint constraints-lowest.txt --editable '.[live,gymnasium]' hypothesis pytest
	touch $@

.venv/torch: .venv/pip pyproject.toml constraints.txt
	$(PIP) --editable '.[torch,baselines]'
	touch $@

# The agents' peer needs an older Gymnasium, and so an environment of its own.
.venv/rlberry/done: .venv/pip
	$(PYTHON) -m venv .venv/rlberry
	.venv/rlberry/bin/pip install --quiet rlberry-scool==0.7.3
	touch $@

.venv/bench: .venv/pip pyproject.toml constraints.txt
	$(PIP) --editable '.[bench]'
	touch $@
