# The few commands a developer needs; everything shares .venv/ and build/ at the root.
#   make demo     install what is needed, build, stream real data and show it
#   make test     everything that is checked, ends in "N passed, N failed"
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
MESON  := $(VENV)/bin/meson
SUDO   := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: help system demo test quick bench wheel format fuzz clean install lint
help:
	@sed -n 's/^#   //p' Makefile
	@echo "make quick    the fast part of the tests"
	@echo "make install  command line and Python package into .venv/"
	@echo "make bench    the comparison with a bare C loop and other loaders"
	@echo "make wheel    a wheel in dist/, tried on every Python found"
	@echo "make fuzz     fuzz every parser for SECONDS (default 60) each"
	@echo "make format   clang-format and ruff over the tree;  make lint  only looks"

system: $(VENV)/.system
$(VENV)/.system: tools/packages.txt
$(VENV)/.servers: tools/packages-servers.txt
$(VENV)/.servers: MISSING = echo "not all of $< could be installed: their tests are skipped by name"
$(VENV)/.system: MISSING = false
$(VENV)/.system $(VENV)/.servers:
	@missing=$$(for p in $$(grep -v '^#' $<); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -n "$$missing" ]; then { $(SUDO) apt-get update -q && $(SUDO) apt-get install -y -q --no-install-recommends $$missing; } || $(MISSING); fi
	@mkdir -p $(VENV) && touch $@

$(VENV)/.tools: $(VENV)/.system pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q 'meson>=1.3' 'meson-python>=0.17' ninja
	@touch $@

install: $(VENV)/.tools
	@tools/install.sh
$(VENV)/.demo: $(VENV)/.tools
	$(VENV)/bin/pip install -q 'numpy>=1.24' 'zarr>=3.0.8' 'h5py>=3.10' 'rich>=13' 'iris-sample-data>=2.4' 'anndata>=0.11'
	@$(VENV)/bin/pip install -q --no-deps scanpy || echo "scanpy could not be installed: the demo leaves out its cells"
	@touch $@
$(VENV)/.test: $(VENV)/.demo $(VENV)/.servers
	$(VENV)/bin/pip install -q 'pytest>=8' 'pytest-xdist>=3.6' 'hypothesis>=6.100' 'xarray>=2024.10' cftime dask 'mypy>=1.10' 'ruff>=0.6' ml_dtypes 'fsspec>=2024.10' 'obstore>=0.8' \
	    'icechunk>=1' 'virtualizarr>=2' aiohttp 'moto[server]>=5.2.5' 'azure-storage-blob>=12.19' 'google-auth[requests]>=2.30' gcp-storage-emulator 'numcodecs' 'scipy>=1.11' 'anndata>=0.11' 'pyarrow>=14' 'torch==2.13.0' torchdata jax
	@$(VENV)/bin/pip install -q 'tensorflow-cpu>=2.16' 'ray[data,train]>=2.40' 'lightning>=2.4' || \
	    echo "TensorFlow, Ray or Lightning could not be installed: their tests are skipped by name"
	@touch $@

demo: $(VENV)/.demo install
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/headrace demo $(DEMO)

test: $(VENV)/.test install
	@$(PY) tools/test.py
quick: $(VENV)/.test install
	@$(PY) tools/test.py --quick

bench: $(VENV)/.test install
	@$(PY) bench/run.py $(BENCH)

wheel: $(VENV)/.tools
	@tools/wheel.sh

fuzz: $(VENV)/.tools
	@tools/fuzz.sh $(or $(SECONDS),60)

format: $(VENV)/.test
	clang-format-14 -i $$(git ls-files '*.c' '*.h')
	$(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format .
lint: $(VENV)/.test
	@$(PY) tools/test.py --only lint

clean:
	rm -rf build $(VENV) dist wheelhouse
