# make demo   train a small network on handwritten digits; pictures and checkpoint go to demo/
# make test   run the tests
# make bench  measure speed and memory, beside PyTorch if it is in .venv; BENCH="--rows b3" passes options on
# make lint   ruff, the type checker and the layer check
#
# Each makes .venv and installs into it what it needs, once, and again when pyproject.toml changes.

.DEFAULT_GOAL := demo
.PHONY: demo test bench lint clean
.DELETE_ON_ERROR:

# The first Python on the path that is new enough; PYTHON=... chooses another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null \
	&& echo "$$python" && break; done)
BIN := .venv/bin
# Imports of NumPy and SciPy without kept byte code would be compiled anew in every process.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# One thread each for NumPy's matrix library: the tests run one process a core, and their arrays are small.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

demo: .venv/installed-demo
	@$(BIN)/python -m pellucid demo $(DEMO)

test: .venv/installed-test
	$(ONE_THREAD) $(BIN)/python -m pytest --numprocesses auto $(TESTS)

bench: .venv/installed-demo
	@$(BIN)/python -m pellucid bench $(BENCH)

lint: .venv/installed-lint
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

clean:
	rm -rf .venv build dist demo

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Pellucid needs Python 3.11 to 3.14 on the path (or PYTHON=... for make)" >&2; exit 2; }
	@echo "making .venv with $(PYTHON)"
	@$(PYTHON) -m venv .venv

.venv/installed-demo: WHAT := .[terminal]
.venv/installed-test: WHAT := .[test]
.venv/installed-lint: WHAT := .[dev]

# Without --no-compile pip turns all of SciPy into byte code; Python does that by itself for the part that is imported.
.venv/installed-%: pyproject.toml | $(BIN)/python
	@echo "installing $(WHAT) into .venv"
	@$(PIP) --no-compile --editable '$(WHAT)'
	@touch $@
