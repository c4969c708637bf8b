# One target a check. Everything is made inside this folder: .venv (the demo), .envs (the tests' environments).
SHELL := bash
export PYTHON ?= python3
PIP := install -q --disable-pip-version-check
# An old pip (20.3, beside Debian's Python 3.9) cannot install in development mode with today's setuptools.
venv = $(PYTHON) -m venv $(1) && { $(1)/bin/python -c "import pip; exit(int(pip.__version__.split('.')[0]) < 22)" || \
  $(1)/bin/pip $(PIP) --upgrade pip; }
PORT ?= 9999
RUNTIME := tornado msgpack protobuf numpy zstandard

.PHONY: demo test test-unit test-tf215 test-tf221 test-versions test-installs test-e2e test-frontend test-horovod lint bench fuzz pictures docs frontend frontend-types clean envs chromium

.DEFAULT_GOAL := help
help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

# ------------------------------------------------------------------------------------------------------ environments
.venv/.made: setup.py
	$(call venv,.venv)
	.venv/bin/pip $(PIP) "tensorflow-cpu>=2.12,<2.22"
	.venv/bin/pip $(PIP) -e .
	touch $@

.envs/view/.made: setup.py tests/requirements.txt  # no TensorFlow: the viewer's tests, the browser, lint, docs
	$(call venv,.envs/view)
	.envs/view/bin/pip $(PIP) -e . -r tests/requirements.txt
	touch $@

.envs/tf215/.made: setup.py
	$(call venv,.envs/tf215)
	.envs/tf215/bin/pip $(PIP) "tensorflow-cpu==2.15.1" pytest pytest-timeout hypothesis psutil
	.envs/tf215/bin/pip $(PIP) -e .
	touch $@

.envs/tf221/.made: setup.py
	$(call venv,.envs/tf221)
	.envs/tf221/bin/pip $(PIP) "tensorflow-cpu==2.21.*" pytest pytest-timeout hypothesis psutil ipykernel
	.envs/tf221/bin/pip $(PIP) -e .
	touch $@

.envs/horovod/.made: setup.py tests/horovod/build.sh  # builds Horovod from its sdist: about five minutes
	bash tests/horovod/build.sh .envs/horovod
	.envs/horovod/bin/pip $(PIP) -e .
	touch $@

.envs/tf212/.made .envs/tf218/.made: .envs/tf2%/.made: setup.py
	$(call venv,.envs/tf2$*)
	.envs/tf2$*/bin/pip $(PIP) "tensorflow-cpu==2.$*.*" pytest pytest-timeout hypothesis psutil
	.envs/tf2$*/bin/pip $(PIP) -e .
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
# The longest come first, so that both lanes end at about the same time. The environments are made before, one by one: two
# that are installed at once would write the package's metadata over each other.
SUITES ?= test-tf221 test-e2e test-tf215 test-unit test-frontend
NEEDED ?= envs frontend/node_modules/.made chromium
LANES ?= 2
test:  ## everything but Horovod, LANES=2 suites at a time; all suites run, and those that failed are named at the end
	@$(MAKE) --no-print-directory -k $(NEEDED) || true
	@logs=$$(mktemp -d) && trap 'rm -rf $$logs' EXIT; \
	  $(MAKE) --no-print-directory -k -j $(LANES) LOGS=$$logs $(SUITES:%=logged-%) || touch $$logs/make.failed; \
	  failed=$$(cd $$logs && ls | sed -n 's/\.failed$$//p' | xargs); \
	  if [ -n "$$failed" ]; then echo "FAILED: $$failed"; exit 1; fi

# One suite, whose output is printed in one piece when it has ended.
logged-%:
	@echo "$*: started"; begun=$$SECONDS; \
	  $(MAKE) --no-print-directory $* >$(LOGS)/$*.log 2>&1 || touch $(LOGS)/$*.failed; \
	  echo "$*: ended after $$((SECONDS - begun)) s"; cat $(LOGS)/$*.log

PYTEST := -m pytest -p no:cacheprovider --timeout 600

test-unit: .envs/view/.made  ## without TensorFlow: the engine, sessions, server, command line
	.envs/view/bin/python $(PYTEST) tests --ignore tests/tf --ignore tests/e2e --ignore tests/horovod

test-tf215: .envs/tf215/.made .envs/view/.made  ## real training on TensorFlow 2.15, Estimator included
	TF_CPP_MIN_LOG_LEVEL=2 .envs/tf215/bin/python $(PYTEST) tests/tf

test-tf221: .envs/tf221/.made .envs/view/.made  ## the same on TensorFlow 2.21
	TF_CPP_MIN_LOG_LEVEL=2 .envs/tf221/bin/python $(PYTEST) tests/tf

test-versions: .envs/tf212/.made .envs/tf218/.made  ## tf.function, Keras and tftracer run on TensorFlow 2.12 and 2.18
	for version in 212 218; do TF_CPP_MIN_LOG_LEVEL=2 .envs/tf$$version/bin/python $(PYTEST) \
	  tests/tf/test_every_way.py tests/tf/test_user_scripts.py tests/tf/test_run_command.py || exit 1; done

test-installs:  ## tftracer[tables] installed next to four releases of TensorFlow: pip check, imports, an export
	for version in 2.12 2.15 2.18 2.21; do bash tests/installs/check.sh $$version || exit 1; done

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

bench: .envs/view/.made .envs/tf215/.made .envs/tf221/.made chromium  ## every figure that the docs quote (about 45 minutes; THOROUGH=1: twice that)
	bash benchmarks/run.sh

fuzz: .envs/view/.made  ## a million hostile inputs for every reader
	.envs/view/bin/pip $(PIP) atheris
	.envs/view/bin/python tests/fuzz/run.py

pictures: test-e2e  ## what the README shows, from the browser tests' screenshots
	mkdir -p docs/pictures
	for name in overview trace memory compare run slow-steps notebook-cell; do cp tests/out/$$name.png docs/pictures/; done
	cp tests/out/trace-dark.png docs/pictures/dark.png
	cp tests/out/job-trace.png docs/pictures/job.png
	cp tests/out/keras.png docs/pictures/keras.png

docs: .envs/view/.made  ## docs/_build/index.html
	.envs/view/bin/python -m sphinx -W -q -b html docs docs/_build

frontend: frontend/node_modules/.made  ## build the page into tftracer/static
	cd frontend && npm run build

frontend-types: .envs/view/.made  ## the page's types from the wire contract
	.envs/view/bin/python -m tftracer.contract.typescript > frontend/src/client/messages.ts

clean:  ## remove what the targets make
	rm -rf .venv .envs build dist *.egg-info frontend/node_modules docs/_build benchmarks/out tests/out
