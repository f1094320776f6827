# Everything runs in .venv, made on first use; a fresh machine needs Python 3.11+, make and a package index.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all check docs figures fuzz bench clean

demo: .venv/studies
	$(BIN)/omg-cmdp demo

test: .venv/dev check
	$(BIN)/pytest -q -n 2

test-all: .venv/torch docs test
	$(BIN)/pytest -q -n 2 -m slow

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: .venv/studies
	$(BIN)/python -m docs.figures

fuzz: .venv/dev
	$(BIN)/python -m tests.planning.fuzz

bench: .venv/bench .venv/rlberry/done
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv benchmarks/results site
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/pip:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt pip
	touch $@

.venv/studies: .venv/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[studies]'
	touch $@

.venv/dev: .venv/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $@

.venv/docs: .venv/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . --group docs
	touch $@

.venv/torch: .venv/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[torch,baselines]'
	touch $@

# The agents' peer needs an older Gymnasium, and so an environment of its own.
.venv/rlberry/done: .venv/pip
	$(PYTHON) -m venv .venv/rlberry
	.venv/rlberry/bin/pip install --quiet rlberry-scool==0.7.3
	touch $@

.venv/bench: .venv/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@
