# `make` alone lists the targets. Every target that needs the environment makes it first.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PYTEST := $(BIN)/python -m pytest

# Tests start thousands of processes, and pytest spends ten seconds on rewriting the asserts of all
# files: what was compiled once is kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo quick test test-slow test-tools test-versions sstables-full check unit integration acceptance format docs bench bench-full pins release clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with everything pinned, and the command .venv/bin/ringhaul

# The stamp is as new as what it was made from, so that a second `make setup` does nothing.
$(STAMP): requirements.txt pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ringhaul needs Python 3.11 or later: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	"$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## load a sample into a real Cassandra and verify it (starts everything it needs)
	$(BIN)/ringhaul demo

# Most of them wait for servers most of the time: three processes keep two cores busy. They share a
# node, but some files need another.
test: setup $(VENV)/.stamp-bench ## what the README promises, against real services that the tests start and stop
	$(PYTEST) -n 3 --tier quick

test-slow: setup test-tools $(VENV)/.stamp-bench ## what takes longer: the tests that tests/proofs.toml names
	$(PYTEST) -n 3 --tier slow

test-tools: setup ## chromium and prometheus for the tests, from Debian's packages
	@tests/debian_tools.sh $(abspath $(VENV)/debian)

test-versions: setup ## load, verify and unload on Cassandra 3.11, 4.0, 4.1 and 5.0, in ten minutes
	$(BIN)/python -m tests.versions

# As in `make test-slow`, but with thousands of generated cases, and on older versions, too. SSTABLES_SEED
# repeats a run.
sstables-full: setup ## every proof about SSTables in its complete form, and on 4.0 and 4.1: some hours
	SSTABLES_FULL=1 $(PYTEST) tests/property/test_sstables.py tests/unit/sstables tests/unit/streaming \
	  tests/unit/load tests/acceptance/sstables tests/acceptance/test_streaming_rate.py \
	  tests/chaos/test_sstable_faults.py tests/chaos/test_streaming_faults.py \
	  tests/chaos/three_nodes/test_streaming.py tests/integration/cluster/test_streaming_tls.py
	$(BIN)/python -m tests.versions.sstables 4.0 4.1

quick: setup ## unit and property tests of what changed since main, and of the whole tree: a minute
	$(PYTEST) -n 2 --durations=5 $$($(BIN)/python -m tests.changed)

check: setup ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

unit: setup ## the tests that need no service
	$(PYTEST) tests/unit tests/property

integration: setup ## the tests of one part with its real service
	$(PYTEST) tests/integration

acceptance: setup test-tools ## the tests of whole commands, rows compared one by one
	$(PYTEST) tests/acceptance tests/chaos tests/hosts

format: setup ## rewrite the code in the format that `make check` wants
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A page needs none of the packages that the code needs.
$(VENV)/docs/.stamp: manual/requirements.txt
	"$(PYTHON)" -m venv --clear $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

docs: $(VENV)/docs/.stamp ## the manual as a site, in build/site
	$(VENV)/docs/bin/python -m manual.site
	$(VENV)/docs/bin/zensical build --strict --clean

$(VENV)/.stamp-bench: $(STAMP) bench/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement bench/requirements.txt
	@touch $@

bench: $(VENV)/.stamp-bench ## ours beside cqlsh COPY, Bulk Loader and the server's own limit, in ten minutes
	$(BIN)/python -m bench

bench-full: $(VENV)/.stamp-bench ## all benches and every system of the articles, some hours; writes docs/explanation/benchmarks.md
	$(BIN)/python -m bench --full

pins: ## after a change of versions: write the hashes of all their files again
	PYTHON="$(PYTHON)" deploy/pins.sh

$(VENV)/release/.stamp: release/requirements.txt
	"$(PYTHON)" -m venv --clear $(VENV)/release
	$(VENV)/release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

release: $(VENV)/release/.stamp ## build the last commit in build/release, the same bytes each time, and check it; publishes nothing
	$(VENV)/release/bin/python -m release

clean: ## remove .venv and caches (data of `ringhaul local`: `ringhaul local down --wipe`)
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
