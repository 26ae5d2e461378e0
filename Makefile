PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LABELSTUDIO := .venv-labelstudio
LOWEST := .venv-lowest
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-all test-labelstudio test-lowest test-package check docs bench reproduce clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 24

demo: $(VENV)/.tool  ## a small problem with cheap and trusted labels, start to finish
	$(BIN)/polyfid demo

test: $(VENV)/.dev  ## the tests, without the slow ones
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow"

test-all: $(VENV)/.all  ## all tests, with a sampler to compare with, and the site
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist loadgroup

test-labelstudio: $(VENV)/.dev $(LABELSTUDIO)/.installed  ## the loop with a real Label Studio, a gigabyte in an environment of its own
	$(ONE_THREAD) $(BIN)/python tests/live/whole_loop.py $(LABELSTUDIO)/bin/label-studio

test-lowest: $(VENV)/.release  ## the tests with the lowest versions of what polyfid needs
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable ".[test,all,experiments]"
	$(ONE_THREAD) $(LOWEST)/bin/python -m pytest -q -n 2 --dist loadgroup -m "not slow"

test-package: $(VENV)/.release  ## sdist and wheel: contents, and each extra in an empty environment
	$(BIN)/python tests/package/whole_package.py

check: $(VENV)/.dev  ## lint, format, types and the order of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

docs: $(VENV)/.docs  ## the documentation as a site, with the examples run; needs no network
	@$(ONE_THREAD) $(BIN)/python -m sphinx -q -W --keep-going -n -b html docs docs/_build/html
	@echo "The site: $(CURDIR)/docs/_build/html/index.html"

bench: $(VENV)/.experiments  ## the benchmarks; ARGS="--quick predict" and the like
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --retries 1 \
		--requirement benchmarks/peers.txt >/dev/null 2>&1 \
		|| echo "The peers in benchmarks/peers.txt could not be installed; going on without them"
	$(BIN)/python -m benchmarks $(ARGS)

reproduce: $(VENV)/.experiments  ## the paper's experiments; ARGS="artificial --quick --data DIR"
	$(BIN)/python -m experiments $(ARGS)

clean:  ## remove the environment, caches and builds
	rm -rf .venv $(LABELSTUDIO) $(LOWEST) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	rm -rf docs/_build docs/gallery docs/tutorials docs/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: the library alone, with the command and its reports, with what the experiments need, with
# all that testing and checking need, with a sampler, which takes half a gigabyte, and with what the
# site is built with.
$(VENV)/.core: EXTRAS :=
$(VENV)/.tool: EXTRAS := [cli,report]
$(VENV)/.experiments: EXTRAS := [experiments]
$(VENV)/.dev: EXTRAS := [test,dev,all,experiments]
$(VENV)/.all: EXTRAS := [test,dev,all,experiments,mcmc,docs]
$(VENV)/.docs: EXTRAS := [docs]
$(VENV)/.release: EXTRAS := [release]
$(VENV)/.core $(VENV)/.tool $(VENV)/.experiments $(VENV)/.dev $(VENV)/.all $(VENV)/.docs $(VENV)/.release: pyproject.toml | $(BIN)/pip
	@echo "Installing polyfid$(EXTRAS) into $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".$(EXTRAS)"
	@touch $(VENV)/.core $@

$(LABELSTUDIO)/.installed: tests/live/requirements.txt
	@echo "Installing Label Studio into $(LABELSTUDIO)"
	@$(PYTHON) -m venv $(LABELSTUDIO)
	@$(LABELSTUDIO)/bin/python -m pip install -qq --disable-pip-version-check --requirement $<
	@touch $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "polyfid needs Python 3.11 or newer, and $(PYTHON) is not one." \
			"Name another: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
