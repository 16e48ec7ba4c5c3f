# Every command a person or CI runs. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help up setup test test-postgres test-pooler test-long chaos chaos-zoo simulate bench bench-store soak check format lock clean runtime

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

up: runtime ## start Foliot here: embedded PostgreSQL and every role (UP="module.py --port 0")
	@$(BIN)/foliot up $(UP)

# Asked before every command and answered at once when all is fresh: a folder that was moved, a
# Python that is gone or another one that is wanted must not break what follows. Two layers, so that
# the first `make up` downloads only what running needs.
runtime:
	@sh scripts/setup runtime

setup: ## prepare .venv with everything development needs
	@sh scripts/setup dev

test: setup ## run every test
	@$(BIN)/python scripts/checks.py
	@sh scripts/provide /usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 faketime
	@$(BIN)/pytest -n 2 --dist worksteal $(ARGS)

test-postgres: setup ## run the store's tests on the other PostgreSQL versions
	@sh scripts/test-postgres $(ARGS)

test-pooler: setup ## run the store's tests through pgbouncer in transaction mode
	@sh scripts/test-pooler $(ARGS)

test-long: setup ## the whole engine for as long as its promises name: about eight minutes
	@FOLIOT_TEST_LONG=1 $(BIN)/pytest tests/acceptance/test_engine_*.py tests/simulation/test_lease_protocol.py $(ARGS)

chaos: setup ## the whole engine under seeded faults, every promise checked (SEED=1 SECONDS=300)
	@sh scripts/provide /usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 faketime
	@$(BIN)/python -m chaos --seed $(or $(SEED),1) --seconds $(or $(SECONDS),300) $(ARGS)

chaos-zoo: setup ## every guard taken out once, and what catches it: about half an hour (ARGS="--by test")
	@sh scripts/provide /usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1 faketime
	@$(BIN)/python -m chaos.zoo $(ARGS)

simulate: setup ## the real schedulers and workers on virtual time under seeded faults (SEEDS=10000)
	@$(BIN)/python -m chaos.simulation --seeds $(or $(SEEDS),10000) $(ARGS)

bench: setup ## every figure beside its peers, on this machine: about 20 minutes (ARGS="--quick")
	@$(BIN)/python -m bench $(ARGS)

bench-store: setup ## rows/s of the store's stages beside a bare baseline (ARGS="--quick")
	@$(BIN)/python -m bench.store_stages $(ARGS)

soak: setup ## ten minutes of 5,000 executions/s through the store (ARGS="--pinned")
	@$(BIN)/python -m bench.soak $(ARGS)

check: setup ## format, lint, types, import rules, tidy and unit tests: about a minute
	@$(BIN)/python scripts/checks.py
	@$(BIN)/pytest -q tests/tidy tests/unit

format: setup ## rewrite the code in the house's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: setup ## renew the hashed dependency locks
	@sh scripts/lock

clean: ## remove .venv and caches; data in .foliot stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
