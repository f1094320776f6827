# Everything runs in .venv, which is made on first use; a fresh machine needs Python 3.11+, make and a package index.
#   make demo       a study of two drugs, with a report       make docs       build the guide
#   make quick      the inner loop: under 30 seconds          make figures    draw the guide's pictures
#   make test       format, lint, types, tests                make fuzz       60 000 random plans
#   make test-all   everything, slow tests and guide too      make bench      speed, beside other libraries
#   make hooks      check every commit                        make lowest     tests with the oldest dependencies
#   make attack     ten minutes of hostile input              make numbers    count what the README states
#   make mutants    put faults into the code, one at a time, and see whether a test fails
#   make disaster   fifteen minutes of crashes, power cuts and full disks
#   make alone PACKAGE=library   install and test one package with nothing else
# `make test PACKAGE=library` (lab, trial) tests one of the three packages.
# `make quick BIN=path/to/bin` uses an environment that you have, and installs nothing.
PYTHON ?= python3
BIN ?= .venv/bin
# Bytecode is made when a module is first imported, which halves the time of installing. It must be kept, whatever the
# environment says: hundreds of processes of the tests would compile numba and pandas again.
export PYTHONDONTWRITEBYTECODE :=
PIP := .venv/bin/pip install --quiet --no-compile --constraint constraints.txt
# uv installs in a tenth of the time that pip takes. It does not know the settings of pip, which is asked where uv fails.
UV := .venv/bin/uv pip install --quiet --system-certs --python .venv/bin/python --constraint constraints.txt
install = { $(UV) $(1) 2> /dev/null || $(PIP) $(1); }
# Our own packages are built by the hatchling of .venv, not in an environment for each build, seven in all.
OWN := --no-build-isolation

# Tests that take a few seconds in all and touch every room of the library.
QUICK := $(addprefix library/tests/,mdp planning/test_plan.py planning/test_problem.py test_refusals.py \
  oracles/counts oracles/finite agents/test_base.py runs/test_simulate.py test_contexts.py test_persistence.py) \
  tests/test_architecture.py

.PHONY: demo quick test tests test-all check alone lowest docs figures numbers fuzz attack mutants disaster bench hooks clean

# An environment that is given as BIN is used as it is: nothing is installed in it.
ifeq ($(BIN),.venv/bin)
have = .venv/$(1)
endif

demo: $(call have,lab)
	$(BIN)/omg-lab demo

quick: check
	$(BIN)/pytest -q -n 2 $(QUICK)

# Types are checked while the first tests run. Tests that wait for processes leave a core to a third worker.
test: $(call have,dev)
	$(MAKE) --no-print-directory -j 2 check tests

tests:
	$(BIN)/pytest -q -n 3 --dist worksteal $(PACKAGE)

test-all: $(call have,slow) docs test
	$(BIN)/pytest -q -n 2 -m slow

check: $(call have,dev)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(call have,docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(call have,lab)
	$(BIN)/python -m docs.figures

numbers: $(call have,dev)
	$(BIN)/python -m tests.test_readme

fuzz: $(call have,dev)
	$(BIN)/python -m library.tests.planning.fuzz

attack: $(call have,dev)
	$(BIN)/python -m tests.attack

# COUNT mutants of each group of modules are drawn at random, from SEED: `make mutants COUNT=20 SEED=1`.
COUNT ?= 60
SEED ?= 0
mutants: $(call have,dev)
	$(BIN)/python -m tests.mutants --count $(COUNT) --seed $(SEED)

# Both tools run at the same time. They print their seeds, so that every failure can be replayed.
disaster: $(call have,dev)
	$(BIN)/python -m trial.tests.disaster simulate --years 1000 --minutes 12.5 & simulated=$$!; \
	$(BIN)/python -m trial.tests.disaster storage --count 40000 --minutes 4; stored=$$?; \
	wait $$simulated && exit $$stored

# Benchmarks have an environment of their own: rlberry asks for an older gymnasium than the tests have.
bench: .venv/bench/done
	.venv/bench/bin/python -m lab.benchmarks

hooks: $(call have,hooks)
	$(BIN)/pre-commit install

# Compiled code is kept apart: two versions of numba would overwrite each other's.
lowest: .venv/lowest/done
	NUMBA_CACHE_DIR=$(CURDIR)/.venv/lowest/compiled .venv/lowest/bin/pytest -q $(QUICK) library/tests/runs lab/tests/reports \
	  lab/tests/test_cli.py $(addprefix trial/tests/,test_desk.py test_database.py test_commands.py test_client.py)

# Test one package in an environment of its own, which has only what the package and its tests ask for.
alone: .venv/alone-$(PACKAGE)/done
	.venv/alone-$(PACKAGE)/bin/pytest -q -n 2 $(PACKAGE)

clean:
	rm -rf .venv lab/benchmarks/results trial/benchmarks/results site
	find . -name __pycache__ -prune -exec rm -rf {} +

PACKAGES := library lab trial
PROJECTS := pyproject.toml $(PACKAGES:%=%/pyproject.toml) constraints.txt

.venv/pip: constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) pip hatchling editables uv
	touch $@

# The lab asks for the library of the same clone; then both are made editable.
.venv/lab: .venv/pip $(PROJECTS)
	$(call install,$(OWN) ./lab)
	$(call install,$(OWN) --no-deps --editable ./library --editable ./lab)
	touch $@

# The library is installed first, so that its code is compiled while the rest is installed, on both cores. Tests are
# collected once here: otherwise each worker would make the bytecode of everything that it imports.
WARM_UP := PYTHONPATH=library:lab .venv/bin/python -m tests.warm_up
.venv/dev: .venv/pip $(PROJECTS)
	$(call install,$(OWN) --editable ./library)
	$(WARM_UP) omg_cmdp.agents & \
	$(WARM_UP) $(addprefix omg_cmdp.,oracles logs runs planning) omg_lab.rivals & \
	$(call install,$(OWN) ./lab ./trial) && \
	$(call install,--group dev $(PACKAGES:%=--group %/pyproject.toml:test)) && \
	$(call install,--no-deps --group lab/pyproject.toml:tables) && \
	$(call install,$(OWN) --no-deps $(PACKAGES:%=--editable ./%)) && \
	{ .venv/bin/pytest --collect-only -qq > /dev/null; wait; }
	touch $@

.venv/docs: .venv/dev
	$(call install,--group docs)
	touch $@

.venv/hooks: .venv/dev
	$(PIP) pre-commit
	touch $@

.venv/alone-%/done: %/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --constraint constraints.txt pip
	$(@D)/bin/pip install --quiet --constraint constraints.txt ./$* --group $*/pyproject.toml:test
	$(if $(filter lab,$*),$(@D)/bin/pip install --quiet --constraint constraints.txt --no-deps --group lab/pyproject.toml:tables)
	touch $@

.venv/lowest/done: $(PROJECTS) constraints-lowest.txt
	$(PYTHON) -m venv .venv/lowest
	.venv/lowest/bin/pip install --quiet --constraint constraints-lowest.txt ./library[gymnasium] ./lab ./trial hypothesis pytest
	.venv/lowest/bin/pip install --quiet --no-deps $(PACKAGES:%=--editable ./%)
	touch $@

.venv/slow: .venv/dev
	$(PIP) --group lab/pyproject.toml:slow --group trial/pyproject.toml:slow
	touch $@

.venv/bench/done: $(PROJECTS)
	$(PYTHON) -m venv $(@D)
	grep -v ^gymnasium== constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/pip install --quiet --no-compile --constraint $(@D)/constraints.txt pip
	$(@D)/bin/pip install --quiet --no-compile --constraint $(@D)/constraints.txt ./lab --group lab/pyproject.toml:bench
	$(@D)/bin/pip install --quiet --no-compile --no-deps --editable ./library --editable ./lab
	touch $@
