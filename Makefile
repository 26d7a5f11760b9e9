# Everything runs in .venv, which is made from the lock files on first use and then left alone until they change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
DATA ?=
FILINGS ?=
ARGS ?=

BIN := .venv/bin
LOCKED := requirements.lock requirements-dev.lock pyproject.toml
STAMP := .venv/ready-$(shell cat $(LOCKED) | cksum | cut -d ' ' -f 1)
TORCH := $(shell grep '^torch==' requirements.lock)

.DEFAULT_GOAL := help
.PHONY: help demo test check serve ingest bench study lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) ## Ingest specimen filings (and FILINGS=folder), ask every architecture, show answers and prices
	@$(BIN)/python -m evals.demo $(if $(FILINGS),"$(FILINGS)")

test: $(STAMP) ## Run the tests (ARGS="-k hybrid" goes to pytest)
	@$(BIN)/python -m pytest -ra $(ARGS)

check: $(STAMP) ## Lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

serve: $(STAMP) ## Serve the index in DATA=folder (default: data)
	@$(if $(DATA),DATA_DIR="$(DATA)") $(BIN)/python -m app $(ARGS)

ingest: $(STAMP) ## Ingest FILINGS=folder into DATA=folder (default: data)
	@test -n "$(FILINGS)" || { echo "say which: make ingest FILINGS=folder"; exit 2; }
	@$(if $(DATA),DATA_DIR="$(DATA)") $(BIN)/python -m ingest "$(FILINGS)" $(ARGS)

bench: $(STAMP) ## Measure the speed of service and ingestion, ten minutes or so (ARGS=--quick: two)
	@$(BIN)/python -m evals bench $(ARGS)

study: $(STAMP) ## Show what each architecture wins, damages and costs, over a geometry without any model
	@$(BIN)/python -m evals study $(ARGS)

lock: $(STAMP) ## Pin what is installed in .venv now
	$(BIN)/python deploy/lock.py

clean: ## Remove what was built, but neither .venv nor data
	rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(STAMP):
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up .venv, once: about 650 MB to download, more where the index offers only a CUDA build of torch"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --no-deps -r requirements.lock -r requirements-dev.lock
	@# A CUDA build of torch needs its libraries beside it; for a CPU build this finds nothing to do.
	$(BIN)/python -m pip install --quiet --constraint requirements.lock "$(TORCH)"
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@rm -f .venv/ready-* && touch $@
