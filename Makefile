# Two commands: `make demo` and `make test`. Each sets up what it needs, on a machine with only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Tests run in random order; `make test SEED=...` repeats an order.
SEED ?= $(shell date +%s)
WORKERS ?= 2
IN_RANDOM_ORDER = -n $(WORKERS) --dist loadfile --random-order --random-order-seed=$(SEED)
SLOW := slow or opa or servers or browser or postgres
# as they stand in the folders: files of one test, the longest, would come last and one of them alone
IN_ORDER = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all conformance-proof coverage test-pythons fuzz lint types style size bench docs site release servers agents lock clean help

help:
	@echo "make demo      set up, and watch an agent's tool calls being decided and traced"
	@echo "make test      set up, check types and style, run the fast tests"
	@echo "make test-all  make test, then real servers and kill tests (builds servers and installs agents once, needs Go and npm)"
	@echo "make coverage  the fast tests under the gate of branch coverage; takes twice as long"
	@echo "make test-pythons  a part of the fast tests on every other CPython from 3.11 on that is here"
	@echo "make fuzz      random edits of hostile inputs for FUZZ_SECONDS (an hour)"
	@echo "make conformance-proof  break the package once for each requirement of the standard, in a quarter of an hour"
	@echo "make size      how large and how dense the rooms are: a report"
	@echo "make bench     measure, as ratios in one run"
	@echo "make servers   build the real servers of the slow tests into .servers (needs Go)"
	@echo "make agents    install the coding agents of the slow tests into a cache (needs npm)"
	@echo "make site      build the documentation as a site into build/site"
	@echo "make release   build wheel and sdist, check them, install each extra into a bare environment, write an SBOM, tag the version"
	@echo "make docs      regenerate the generated documents and dashboards"

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/agenttool demo

test: $(STAMP) lint
	@echo "tests in random order: SEED=$(SEED)"
	$(BIN)/python -m pytest -m "not slow and not speed" $(IN_RANDOM_ORDER)

# tracing each line doubles the time, and CI has to end: whoever changes much runs it by hand
coverage: $(STAMP)
	$(BIN)/python -m pytest -m "not slow and not speed" $(IN_RANDOM_ORDER) --cov --cov-report=term

# what `test` leaves out, and what it skips where the servers are not built yet
test-all: test servers agents
	FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) $(BIN)/python -m pytest -m "not speed and ($(SLOW))" $(IN_ORDER)
	$(BIN)/python -m pytest -m "speed"

# FUZZ_SECONDS is for all targets together: ten minutes in test-all (two in CI), an hour here
fuzz: $(STAMP)
	FUZZ_SECONDS=$(or $(FUZZ_SECONDS),3600) $(BIN)/python -m pytest -m "" tests/fuzz

test-pythons: $(STAMP)
	$(BIN)/python tools/pythons.py

# mypy takes as long as all the others together
lint: $(STAMP)
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target types style

types: $(STAMP)
	$(BIN)/mypy

style: $(STAMP)
	$(BIN)/python tools/check_test_names.py
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/check_links.py
	$(BIN)/python tools/one_call.py check

size: $(STAMP)
	$(BIN)/python tools/size.py

# breaks the package once for each requirement of the standard; a quarter of an hour on two cores
conformance-proof: $(STAMP)
	$(BIN)/python tools/proof.py
	$(BIN)/python tools/coverage_page.py

bench: $(STAMP)
	$(BIN)/python -m benchmarks

servers: $(STAMP)
	$(BIN)/python tools/servers.py build --available

agents: $(STAMP)
	$(BIN)/python tools/agent_programs.py build --available

docs: $(STAMP)
	$(BIN)/python tools/generate.py

site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release: $(STAMP)
	$(BIN)/python tools/release.py build install tag

lock: $(STAMP)
	$(BIN)/uv pip compile pyproject.toml --group dev --group docs --extra cli --extra web --extra langchain --extra instrument --extra postgres --extra sandbox --extra mcp --extra pydantic-ai --extra agent-hooks --extra openapi --extra a2a --extra browser \
	  --extra object-store --extra cloudevents --extra notify --extra sql --extra opa-server --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --no-strip-extras --quiet -o requirements.lock

clean:
	rm -rf $(VENV) .venvs .servers .mypy_cache .ruff_cache .hypothesis build dist
