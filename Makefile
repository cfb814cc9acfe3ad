# Two commands: `make demo` and `make test`. Each sets up what it needs, on a machine with only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-all lint bench docs servers lock clean help

help:
	@echo "make demo      set up, and watch an agent's tool calls being decided and traced"
	@echo "make test      set up, check types and style, run the fast tests"
	@echo "make test-all  everything, with real servers and kill tests (builds servers once, needs Go)"
	@echo "make bench     measure, as ratios in one run"
	@echo "make servers   build the real servers of the slow tests into .servers (needs Go)"
	@echo "make docs      regenerate the generated documents and dashboards"

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/agenttool demo

test: $(STAMP) lint
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-all: $(STAMP) servers
	$(BIN)/python -m pytest -m "slow" -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/interrogate -q src

bench: $(STAMP)
	$(BIN)/python -m benchmarks

servers: $(STAMP)
	$(BIN)/python tools/servers.py build --available

docs: $(STAMP)
	$(BIN)/python tools/generate.py

lock:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --extra cli --extra langchain --extra instrument --extra postgres \
	  --extra object-store --extra cloudevents --extra hyperscan --extra detect-secrets --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements.lock

clean:
	rm -rf $(VENV) .servers .mypy_cache .ruff_cache .hypothesis build dist
