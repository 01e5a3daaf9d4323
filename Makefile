# Everything runs inside .venv; nothing is installed outside this folder.
# `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
# Processes that pytest uses.
WORKERS ?= 2
# The torch that `make constraints` pins.
TORCH ?= 2.13.0

VENV := .venv
BIN := $(VENV)/bin
PIP := python -m pip --disable-pip-version-check
INSTALL := $(BIN)/$(PIP) install -qq -c constraints.txt

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---------------------------------------------------------------------------------------- set-up

# One environment, two levels of set-up. A level is repeated only if its stamp is older than
# pyproject.toml or constraints.txt.

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else \
		f"setconv needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is {v[0]}.{v[1]}: run make PYTHON=python3.11 ...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-stamp: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing setconv into $(VENV) (minutes at the first time) ..."
	@$(INSTALL) -e '.[demo]'
	@touch $@

$(VENV)/.dev-stamp: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing setconv and its development tools into $(VENV) (minutes at the first time) ..."
	@$(INSTALL) -e '.[dev]'
	@touch $@

.PHONY: dev
dev: $(VENV)/.dev-stamp  ## Set up .venv with every development tool

.PHONY: hooks
hooks: $(VENV)/.dev-stamp  ## Run the quick checks before each git commit
	@$(BIN)/pre-commit install

# ------------------------------------------------------------------------------------------ use

.PHONY: demo
demo: $(VENV)/.demo-stamp  ## Find the critical ones among vulnerability reports: models, figures, a page
	@$(BIN)/setconv demo --output demo-output

# --------------------------------------------------------------------------------------- checks

.PHONY: test
test: lint unit wheel-check  ## Run the checks of every change: lint, unit, wheel-check

.PHONY: lint
lint: $(VENV)/.dev-stamp  ## Check style, format, types and dead code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/vulture

# One thread a worker: more than one fights over the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) -q

.PHONY: unit
unit: $(VENV)/.dev-stamp  ## Run the tests and the examples in docstrings, without the long ones
	$(PYTEST) -m 'not long and not soak'

.PHONY: test-all
test-all: $(VENV)/.dev-stamp  ## Run what unit leaves out: contracts, browser, a tenth of soak
	$(PYTEST) -m 'long or soak'

.PHONY: soak
soak: $(VENV)/.dev-stamp  ## Run the full numbers of kills and damaged files (minutes)
	$(PYTEST) -m soak --full

.PHONY: fuzz
fuzz: $(VENV)/.dev-stamp  ## Search at random for counterexamples, ten times as many (minutes)
	$(PYTEST) -m hypothesis --hypothesis-profile fuzz

.PHONY: wheel-check
wheel-check: $(VENV)/.dev-stamp  ## Build the wheel, install it alone and use it
	$(BIN)/python tools/check_wheel.py

.PHONY: format
format: $(VENV)/.dev-stamp  ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# ----------------------------------------------------------------------------- docs and upkeep

.PHONY: docs
docs: $(VENV)/.dev-stamp  ## Build the documentation into docs/_build
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build
	@echo "docs/_build/index.html"

# Run it with Python 3.11, the oldest, so that the pins exist for the newer ones too. The local
# part of a version (+cpu) names one build of many and is cut.
.PHONY: constraints
constraints:  ## Regenerate constraints.txt from the newest releases
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(PYTHON) -m venv "$$folder/venv"; \
	"$$folder/venv/bin/"$(PIP) install -qq 'torch==$(TORCH)' -e '.[dev,benchmarks]'; \
	"$$folder/venv/bin/"$(PIP) check; \
	{ echo "# Every package of setconv[dev,benchmarks], direct or not, at the version the checks ran with."; \
	  echo "# Made by \`make constraints\`; do not edit. Use: pip install -c constraints.txt ..."; \
	  "$$folder/venv/bin/"$(PIP) freeze --exclude-editable --exclude setconv | sed -E 's/\+[[:alnum:].]+$$//'; \
	} > "$$folder/constraints.txt"; \
	if grep ' @ ' "$$folder/constraints.txt"; then echo "not from a registry" >&2; exit 1; fi; \
	cp "$$folder/constraints.txt" constraints.txt

.PHONY: clean
clean:  ## Remove what was built, and caches
	@rm -rf build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean  ## Remove .venv as well
	@rm -rf $(VENV)
