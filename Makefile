# make demo: predict and draw the shipped examples.   make test: the whole CPU suite.
# Needs Python 3.11 or newer with pip; everything else is installed into $(VENV).

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
PYTEST_ARGS ?=

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
DEMO := build/gpt3-mlp-row

.DELETE_ON_ERROR:
.PHONY: help demo test lint report bench format clean

help:
	@echo "make demo    predict two examples, simulate one and draw it"
	@echo "make test    run the CPU test suite       (PYTEST_ARGS='-k wheel' to choose)"
	@echo "make lint    ruff, mypy --strict, import contracts"
	@echo "make report  hold the model against everything recorded on the H200: tables and pictures"
	@echo "make format  apply ruff's formatting and safe fixes"
	@echo "make bench   measure the engine, write build/bench.json"
	@echo "make clean   remove the environment, build/ and caches"

demo: $(BASE)
	@mkdir -p build
	$(BIN)/cusim predict cusim/examples/two_gemms.toml --machine h200
	$(BIN)/cusim predict gpt3-mlp --m 768 --machine h200
	$(BIN)/cusim run gpt3-mlp --m 768 --machine h200 --policy row -o $(DEMO).npz
	$(BIN)/cusim plot $(DEMO).npz -o $(DEMO).png
	@echo "The picture: $(CURDIR)/$(DEMO).png"

# Exits with an error when a gate is missed. Pictures go where the README looks for them.
report: $(BASE)
	@mkdir -p build
	$(BIN)/cusim validate --machine h200 traces/h200 --gate traces/h200/gates.toml -o build/h200.json
	$(BIN)/cusim validate --machine h200 --timelines traces/h200/timelines
	$(BIN)/python figures/h200_sealed.py compare build/h200.json
	$(BIN)/python figures/h200_errors.py build/h200.json
	$(BIN)/python figures/h200_overlay.py
	@echo "Every cell: build/h200.json. Pictures: figures/h200_*.png"

test: $(DEV)
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict cusim backend_gpu cli
	$(BIN)/lint-imports --no-logo

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BASE)
	@mkdir -p build
	$(BIN)/python -m cusim.engine.bench

clean:
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find cusim backend_gpu cli tests figures -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The stamp lies inside the environment and is written last: an interrupted install starts over.
# --clear, because an environment updated in place keeps what pyproject.toml no longer asks for.
$(BASE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cusim needs Python 3.11 or newer; name one: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) -e .
	@touch $@

$(DEV): $(BASE)
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@
