# One target a check. Everything is made inside this folder: .venv (the demo), .envs (the tests' environments).
SHELL := bash
export PYTHON ?= python3
PIP := install -q --disable-pip-version-check
# An old pip (20.3, beside Debian's Python 3.9) cannot install in development mode with today's setuptools.
# What an interrupted installation has left is cleared.
venv = $(PYTHON) -m venv $(if $(wildcard $(1)/.made),,--clear) $(1) && { $(1)/bin/python -c "import pip; exit(int(pip.__version__.split('.')[0]) < 22)" || \
  $(1)/bin/pip $(PIP) --upgrade pip; }
PORT ?= 9999
PYTHONS ?= python3

.PHONY: demo test test-quick test-unit test-lowest test-dist test-tf215 test-tf221 test-versions test-whole test-programs test-installs test-e2e test-frontend test-horovod lint bench fuzz pictures docs frontend frontend-types frontend-check ci clean envs chromium

.DEFAULT_GOAL := help
help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

# ------------------------------------------------------------------------------------------------------ environments
.venv/.made: pyproject.toml
	$(call venv,.venv)
	.venv/bin/pip $(PIP) "tensorflow-cpu>=2.12,<2.22"
	.venv/bin/pip $(PIP) -e .
	touch $@

.envs/view/.made: pyproject.toml  # no TensorFlow: the viewer's tests, the browser, lint, docs
	$(call venv,.envs/view)
	.envs/view/bin/pip $(PIP) -e .[dev]
	touch $@

.envs/tf215/.made: pyproject.toml
	$(call venv,.envs/tf215)
	.envs/tf215/bin/pip $(PIP) "tensorflow-cpu==2.15.1"
	.envs/tf215/bin/pip $(PIP) -e .[test]
	touch $@

.envs/tf221/.made: pyproject.toml
	$(call venv,.envs/tf221)
	.envs/tf221/bin/pip $(PIP) "tensorflow-cpu==2.21.*"
	.envs/tf221/bin/pip $(PIP) -e .[test] ipykernel
	touch $@

.envs/horovod/.made: pyproject.toml tests/horovod/build.sh  # builds Horovod from its sdist: about five minutes
	bash tests/horovod/build.sh .envs/horovod
	.envs/horovod/bin/pip $(PIP) -e .
	touch $@

OLDER := 212 216 217 218 219 220
$(OLDER:%=.envs/tf%/.made): .envs/tf2%/.made: pyproject.toml
	$(call venv,.envs/tf2$*)
	.envs/tf2$*/bin/pip $(PIP) "tensorflow-cpu==2.$*.*"
	.envs/tf2$*/bin/pip $(PIP) -e .[test]
	touch $@

# GPflow and others need the package `tensorflow`, not `tensorflow-cpu`.
.envs/programs215/.made: pyproject.toml
	$(call venv,.envs/programs215)
	.envs/programs215/bin/pip $(PIP) "tensorflow==2.15.1" "tensorflow-probability==0.23.*" "numpy<2" \
	  deepxde gpflow deepctr tensorflow-recommenders keras-tuner
	.envs/programs215/bin/pip $(PIP) -e .
	touch $@

.envs/programs221/.made: pyproject.toml
	$(call venv,.envs/programs221)
	.envs/programs221/bin/pip $(PIP) "tensorflow-cpu==2.21.*" tensorboard mlflow wandb scikeras optuna keras-tuner
	.envs/programs221/bin/pip $(PIP) -e .
	touch $@

# Not `npm ci`: it refuses a lock file that lacks the optional packages of platforms other than the one it was made on.
frontend/node_modules/.made: frontend/package-lock.json
	cd frontend && npm install --no-save --no-audit --no-fund --loglevel=error
	touch $@

chromium:  ## the browser that the tests drive (Debian's; needs root or sudo when it is not there yet)
	@command -v chromium >/dev/null || { \
	  sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core; }

envs: .envs/view/.made .envs/tf215/.made .envs/tf221/.made

# -------------------------------------------------------------------------------------------------------------- run it
demo: .venv/.made  ## train a small real model under tracing, print the page's URL (Ctrl-C ends it); PORT=9999
	TF_CPP_MIN_LOG_LEVEL=2 .venv/bin/python examples/monitored_session.py --steps 0 --port $(or $(PORT),9999)

# --------------------------------------------------------------------------------------------------------------- checks
# The longest come first, so that both lanes end at about the same time; only what is quick goes before them, for it says in the first
# minute what is broken. The environments are made before, one by one: two that are installed at once would write the package's
# metadata over each other.
SUITES ?= test-quick test-tf221 test-e2e test-tf215 test-unit test-frontend
NEEDED ?= envs frontend/node_modules/.made chromium
LANES ?= 2
test:  ## everything but Horovod, LANES=2 suites at a time; all suites run, and those that failed are named at the end
	@$(MAKE) --no-print-directory -k $(NEEDED) || true
	@log=$$(mktemp) && trap 'rm -f $$log' EXIT && set -o pipefail; \
	  $(MAKE) --no-print-directory -k -j $(LANES) --output-sync=target $(SUITES) 2>&1 | tee $$log || \
	  { echo "FAILED:"; grep -aF ' *** ' $$log; exit 1; }

PYTEST := -m pytest -p no:cacheprovider --timeout 600 --durations 20 --durations-min 20
# Most tests wait for trainings that they start: several files at a time are two to three times as fast, on two cores, too.
AT_ONCE ?= 2
PARALLEL := -n $(AT_ONCE) --dist loadgroup --no-loadscope-reorder

test-quick: .envs/view/.made  ## in half a minute: what breaks most often
	.envs/view/bin/ruff check .
	.envs/view/bin/python $(PYTEST) tests/test_architecture.py tests/test_contributing.py tests/test_docs.py tests/test_errors.py tests/contract

test-unit: .envs/view/.made  ## without TensorFlow: the engine, sessions, server, command line
	.envs/view/bin/python $(PYTEST) $(PARALLEL) tests --ignore tests/tf --ignore tests/e2e --ignore tests/horovod

test-tf215: .envs/tf215/.made .envs/view/.made  ## real training on TensorFlow 2.15, Estimator included
	TF_CPP_MIN_LOG_LEVEL=2 .envs/tf215/bin/python $(PYTEST) $(PARALLEL) tests/tf

test-tf221: .envs/tf221/.made .envs/view/.made  ## the same on TensorFlow 2.21
	TF_CPP_MIN_LOG_LEVEL=2 .envs/tf221/bin/python $(PYTEST) $(PARALLEL) tests/tf

test-versions: .envs/tf212/.made .envs/tf218/.made  ## tf.function, Keras and tftracer run on TensorFlow 2.12 and 2.18
	for version in 212 218; do TF_CPP_MIN_LOG_LEVEL=2 .envs/tf$$version/bin/python $(PYTEST) \
	  tests/tf/test_every_way.py tests/tf/test_user_scripts.py tests/tf/test_run_command.py || exit 1; done

test-whole: $(OLDER:%=.envs/tf%/.made)  ## that traces have every op of a step, on TensorFlow 2.12 and 2.16 to 2.20
	for version in $(OLDER); do TF_CPP_MIN_LOG_LEVEL=2 .envs/tf$$version/bin/python $(PYTEST) tests/tf/test_whole_steps.py || exit 1; done

test-programs: .envs/programs215/.made .envs/programs221/.made  ## programs of twelve libraries, PROGRAM_RUNS=2 times with tftracer run and without
	for release in 215 221; do .envs/programs$$release/bin/python tests/programs/run.py $$release --runs $(or $(PROGRAM_RUNS),2) || exit 1; done

test-installs:  ## tftracer[tables] installed next to four releases of TensorFlow: pip check, imports, an export
	for version in 2.12 2.15 2.18 2.21; do bash tests/installs/check.sh $$version || exit 1; done

.envs/lowest/.made: pyproject.toml
	$(call venv,.envs/lowest)
	.envs/lowest/bin/pip $(PIP) -e .[test] $$(.envs/lowest/bin/python .ci/lowest.py)
	touch $@

test-lowest: .envs/lowest/.made  ## with the lowest versions of all dependencies (needs Python 3.9)
	.envs/lowest/bin/python $(PYTEST) tests/storage tests/contract tests/display tests/comparison tests/importers tests/scripting/test_session.py

test-dist: .envs/view/.made  ## wheel and sdist: twine check --strict, installed and used on the Pythons in PYTHONS
	bash tests/installs/distributions.sh .envs/view/bin/python $(PYTHONS)

test-e2e: .envs/view/.made .envs/tf221/.made chromium  ## real clicks in Chromium on real training
	.envs/view/bin/python $(PYTEST) tests/e2e

test-frontend: frontend/node_modules/.made  ## vitest
	cd frontend && npx vitest run

test-horovod: .envs/horovod/.made  ## real Horovod ranks on this machine
	TF_CPP_MIN_LOG_LEVEL=2 .envs/horovod/bin/python $(PYTEST) tests/horovod

lint: .envs/view/.made frontend/node_modules/.made  ## ruff, mypy, eslint, prettier, vue-tsc; generated files up to date
	.envs/view/bin/ruff check .
	.envs/view/bin/ruff format --check .
	.envs/view/bin/mypy
	.envs/view/bin/python -m tftracer.contract.typescript | diff - frontend/src/client/messages.ts
	cd frontend && npx eslint . && npx prettier --check src && npx vue-tsc --noEmit

bench: .envs/view/.made .envs/tf215/.made .envs/tf221/.made chromium  ## every figure that the docs quote (about 100 minutes; THOROUGH=1: more)
	bash benchmarks/run.sh

fuzz: .envs/view/.made  ## a million hostile inputs for every reader, and every question about what it read
	.envs/view/bin/pip $(PIP) atheris
	.envs/view/bin/python tests/fuzz/run.py

pictures: test-e2e  ## what the README shows, from the browser tests' screenshots
	mkdir -p docs/pictures
	for name in overview ledger trace memory compare run slow-steps notebook-cell; do cp tests/out/$$name.png docs/pictures/; done
	cp tests/out/trace-dark.png docs/pictures/dark.png
	cp tests/out/job-trace.png docs/pictures/job.png
	cp tests/out/keras.png docs/pictures/keras.png

docs: .envs/view/.made  ## docs/_build/index.html
	.envs/view/bin/python -m sphinx -W -q -b html docs docs/_build

frontend: frontend/node_modules/.made  ## build the page into tftracer/static
	cd frontend && npm run build

frontend-check: frontend/node_modules/.made  ## the committed page is the one that frontend/src builds
	bash .ci/built_page.sh

frontend-types: .envs/view/.made  ## the page's types from the wire contract
	.envs/view/bin/python -m tftracer.contract.typescript > frontend/src/client/messages.ts

ci: .envs/view/.made  ## the steps of .github/workflows/ci.yml on this machine; JOBS="lint unit" runs some jobs
	.envs/view/bin/python .ci/workflow.py $(JOBS)

clean:  ## remove what the targets make
	rm -rf .venv .envs build dist *.egg-info frontend/node_modules docs/_build benchmarks/out tests/out
