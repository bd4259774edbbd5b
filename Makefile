PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
SEED ?= 0

.PHONY: help setup lint quick check test demo docs fix sim bench

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
	$(BIN)/twinlog docs metrics --check docs/metrics.md
	$(BIN)/twinlog docs protocol --check docs/protocol.md
	$(BIN)/twinlog docs settings --check docs/settings.md

quick: lint       ## every save: under a minute
	$(BIN)/pytest tests/test_tidy.py tests/scenarios/test_readme.py tests/unit tests/contract -m "not slow"

check: lint       ## before a commit: what .ci/run runs once everything is installed
	$(BIN)/pytest tests $(PYTEST_ARGS)

test: $(STAMP)    ## set everything up, pass every test
	$(BIN)/pytest tests $(PYTEST_ARGS)

demo: $(STAMP)    ## the main job between two brokers of our own, every step printed (no JVM)
	$(BIN)/twinlog demo

docs: $(STAMP)    ## write the pages that are made from code
	$(BIN)/twinlog docs metrics
	$(BIN)/twinlog docs protocol
	$(BIN)/twinlog docs settings

fix: $(STAMP)     ## let the tools do what tools can do
	$(BIN)/ruff check --fix src tests bench
	$(BIN)/ruff format src tests bench

sim: $(STAMP)     ## one of the seeds of the simulations, told in full:  make sim SEED=47
	$(BIN)/pytest tests/simulation -k "[$(SEED)]" -s -vv

bench: $(STAMP)   ## every measurement beside Apache Kafka, about half an hour (needs a JDK and Maven)
	$(BIN)/python -m bench
