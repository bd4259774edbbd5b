PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup quick check test demo fix sim bench docs

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

setup: $(STAMP)   ## a virtual environment with the locked dependencies

quick: $(STAMP)   ## every save: under a minute
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/test_tidy.py tests/unit tests/contract -m "not slow"

test: $(STAMP)    ## set everything up, pass every test
	$(BIN)/pytest tests

fix: $(STAMP)     ## let the tools do what tools can do
	$(BIN)/ruff check --fix src tests bench
	$(BIN)/ruff format src tests bench
