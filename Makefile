# Every command a person or CI runs. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin

# Two layers, so that the first `make up` downloads only what running needs.
RUNTIME := $(VENV)/.runtime-ready
DEV := $(VENV)/.dev-ready

.PHONY: help up setup test test-postgres check format lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

up: $(RUNTIME) ## start Foliot here: embedded PostgreSQL and every role (UP="module.py --port 0")
	@$(BIN)/foliot up $(UP)

setup: $(DEV) ## prepare .venv with everything development needs

test: $(DEV) ## run every test
	@$(BIN)/python scripts/checks.py
	@$(BIN)/pytest -n 2 --dist worksteal $(ARGS)

test-postgres: $(DEV) ## run the store's tests on the other PostgreSQL versions
	@sh scripts/test-postgres $(ARGS)

check: $(DEV) ## format, lint, types, import rules, tidy and unit tests: about a minute
	@$(BIN)/python scripts/checks.py
	@$(BIN)/pytest -q tests/tidy tests/unit

format: $(DEV) ## rewrite the code in the house's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(DEV) ## renew the hashed dependency locks
	@sh scripts/lock

clean: ## remove .venv and caches; data in .foliot stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(RUNTIME): requirements/runtime.txt pyproject.toml scripts/setup
	@sh scripts/setup runtime

$(DEV): requirements/dev.txt $(RUNTIME)
	@sh scripts/setup dev
