# One target a check. Everything is made inside this folder: .venv (the demo), .envs (the tests' environments).
SHELL := bash
PYTHON ?= python3
PIP := install -q --disable-pip-version-check
PORT ?= 9999
RUNTIME := tornado msgpack protobuf numpy zstandard

.PHONY: demo test test-unit test-tf215 test-tf221 test-e2e test-frontend test-horovod lint bench fuzz docs frontend frontend-types clean envs chromium

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

# ------------------------------------------------------------------------------------------------------ environments
.venv/.made: setup.py
	$(PYTHON) -m venv .venv
	.venv/bin/pip $(PIP) "tensorflow-cpu>=2.12,<2.22"
	.venv/bin/pip $(PIP) -e .
	touch $@

.envs/view/.made: setup.py tests/requirements.txt  # no TensorFlow: the viewer's tests, the browser, lint, docs
	$(PYTHON) -m venv .envs/view
	.envs/view/bin/pip $(PIP) -e . -r tests/requirements.txt
	touch $@

.envs/tf215/.made: setup.py
	$(PYTHON) -m venv .envs/tf215
	.envs/tf215/bin/pip $(PIP) "tensorflow-cpu==2.15.1" pytest pytest-timeout hypothesis psutil
	.envs/tf215/bin/pip $(PIP) -e .
	touch $@

.envs/tf221/.made: setup.py
	$(PYTHON) -m venv .envs/tf221
	.envs/tf221/bin/pip $(PIP) "tensorflow-cpu==2.21.*" pytest pytest-timeout hypothesis psutil
	.envs/tf221/bin/pip $(PIP) -e .
	touch $@
