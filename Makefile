# `make book` and `make test` set up everything by themselves; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
TORCH ?= pinned
DEVICE ?= auto
SEED ?= 190208129
PRESET ?= laptop
PORT ?= 8000
BIN := .venv/bin
RUN := $(BIN)/python -m

.PHONY: help setup book test smoke verdicts notebook proof serve bench pair lint lock browser clean look

help: ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/.ready: requirements/lock.txt requirements/torch.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v in ((3, 11), (3, 12)) or sys.exit(f"Python {v[0]}.{v[1]} is not supported; use 3.11 or 3.12, as in `make book PYTHON=python3.11`")'
ifeq ($(TORCH),installed)
	@$(PYTHON) -c 'import torch, re, sys; v = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])); v >= (2, 11) or sys.exit(f"the installed torch is {torch.__version__}; 2.11 or newer is needed")'
	$(PYTHON) -m venv --clear --system-site-packages .venv
else
	$(PYTHON) -m venv --clear .venv
endif
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
ifneq ($(TORCH),installed)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/torch.txt
endif
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: .venv/.ready ## the environment in .venv, from the hashed lock

book: setup ## execute every chapter that changed, and render the book to _build/html
	@echo "Executing the chapters ($(PRESET) size; what did not change is kept):"
	@$(RUN) tools.execute --preset $(PRESET) --device $(DEVICE) --seed $(SEED) --results build/results --executed build/executed
	@$(RUN) tools.stage --results build/results --executed build/executed --site build/site
	@$(RUN) tools.build --site build/site --output .

smoke: setup ## every chapter at its smallest size, in a folder of its own, with another seed than the run of record
	@$(RUN) tools.execute --preset smoke --device $(DEVICE) --seed 0 --results build/smoke/results --executed build/smoke/executed

verdicts: setup ## every chapter at its smallest size for ten other seeds (SEEDS='11 12'): does a verdict flip?
	@$(RUN) tools.verdicts $(if $(SEEDS),--seeds $(SEEDS))

test: setup $(if $(CI),browser) ## lint, unit tests, examples, chapters at smoke size, a strict build, checks of the pages
	@$(MAKE) --no-print-directory lint
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --doctest-modules --jaxtyping-packages=bnlib,beartype.beartype bnlib tests --ignore tests/test_book.py
	@$(MAKE) --no-print-directory smoke
	@$(RUN) tools.stage --results build/smoke/results --executed build/smoke/executed --site build/smoke/site
	@$(RUN) tools.build --site build/smoke/site --output build/smoke
	@OMP_NUM_THREADS=1 BNLIB_BOOK=build/smoke/_build/html $(BIN)/pytest tests/test_book.py

lint: setup ## style, documentation rules, notebooks in step with their scripts
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "lint: run .venv/bin/ruff format ."; exit 1; }
	@$(RUN) tools.pair --check

notebook: setup ## one chapter, as in: make notebook NB=04_simplified_tree PRESET=paper DEVICE=cuda
	@test -n "$(NB)" || { echo "notebook: name one, as in NB=04_simplified_tree"; exit 1; }
	@$(RUN) tools.execute $(NB) --preset $(PRESET) --device $(DEVICE) --seed $(SEED) --results build/$(PRESET)/results --executed build/$(PRESET)/executed

proof: setup ## check the certificate of Theorem 14' (chapter 7); with REPROVE=1 prove it again first, and compare
ifdef REPROVE
	@mkdir -p build
	@$(RUN) bnlib.proof --output build/theorem_14.json
	@cmp build/theorem_14.json results/proof/theorem_14.json && echo "The certificate came out the same, byte for byte."
endif
	@$(RUN) bnlib.proof_check results/proof/theorem_14.json

pair: setup ## make the notebooks from their scripts
	@$(RUN) tools.pair

serve: setup ## the built book on http://localhost:8000 (PORT=…), where the search works too
	@test -f _build/html/index.html || { echo "serve: no book yet; run make book"; exit 1; }
	@$(RUN) http.server $(PORT) --bind 127.0.0.1 --directory _build/html

look: setup ## pictures of every page in light, dark and narrow, in build/look (needs a Chromium)
	@$(RUN) tools.look --book _build/html --pictures build/look

bench: setup ## speed and size, as ratios measured in one run
	@$(RUN) benchmarks.ensembles
	@$(RUN) benchmarks.tree

browser: ## a headless Chromium, where there is none and this may install one
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "browser: no Chromium, and no apt-get as root; install Chromium by hand"; exit 1; }; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

lock: setup ## write requirements/lock.txt anew (needs uv)
	@$(RUN) tools.lock

clean: ## remove everything that make has made, but for the environment
	@rm -rf build _build .pytest_cache .ruff_cache
