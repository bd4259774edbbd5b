PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
SEED ?= 0

.PHONY: help setup lint quick check test fix sim bench

help:             ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */\1\t/' | expand -t 10

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

setup: $(STAMP)   ## a virtual environment with the locked dependencies

lint: $(STAMP)    ## what needs no test to be seen
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: lint       ## every save: under a minute
	$(BIN)/pytest tests/test_tidy.py tests/unit tests/contract -m "not slow"

check: lint       ## before a commit: what .ci/run runs once everything is installed
	$(BIN)/pytest tests $(PYTEST_ARGS)

test: $(STAMP)    ## set everything up, pass every test
	$(BIN)/pytest tests $(PYTEST_ARGS)

fix: $(STAMP)     ## let the tools do what tools can do
	$(BIN)/ruff check --fix src tests bench
	$(BIN)/ruff format src tests bench

sim: $(STAMP)     ## one seed of the simulation, told in full:  make sim SEED=4711
	$(BIN)/pytest tests/simulation --seed=$(SEED) -s

bench: $(STAMP)   ## every measurement beside Apache Kafka, about half an hour (needs a JDK and Maven)
	$(BIN)/python -m bench
