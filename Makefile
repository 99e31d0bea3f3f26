# The commands of this repository. `make help` lists them; docs and CI call nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# stdout is data (`make controlplane` prints one line of JSON): no chatter of make around it.
# Only `make -C` says where it enters before it reads this; add -s there.
MAKEFLAGS += --no-print-directory
.SILENT:
.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# ---------------------------------------------------------------- install

.PHONY: install
install: $(INSTALLED) ## create .venv with the locked dependencies; the CLI is .venv/bin/hermetic

$(INSTALLED): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python %d.%d is too old: 3.11 or newer is needed" % sys.version_info[:2])'
	$(PYTHON) -c 'import ensurepip, venv' || { echo 'Python cannot make virtual environments: apt-get install python3-venv' >&2; exit 1; }
	echo 'installing the locked dependencies into $(VENV)' >&2
	$(PYTHON) -m venv $(VENV) >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . >&2
	touch $@

# ---------------------------------------------------------------- test bed

.PHONY: programs
programs: $(INSTALLED) ## build Kubernetes, etcd, kwok, containerd and CoreDNS (minutes when cold, cached outside the checkout)
	$(BIN)/python -m testbed programs

.PHONY: controlplane
controlplane: $(INSTALLED) ## run the embedded control plane until SIGTERM; first line of stdout is JSON
	exec setpriv --pdeathsig TERM $(BIN)/python -m testbed controlplane

.PHONY: packages
packages: $(INSTALLED) ## install the Debian packages of the real node (as root; else say which, and its tests skip)
	$(BIN)/python -m testbed packages || test -z "$$CI"

.PHONY: node
node: packages ## run a real node with its control plane until SIGTERM (root); first line of stdout is JSON
	exec setpriv --pdeathsig TERM $(BIN)/python -m testbed node

# ---------------------------------------------------------------- develop: check, test, bench

.PHONY: check
check: $(INSTALLED) ## format, lint, types, import directions, generated files (seconds)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy --strict -p testbed -p bench
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m hermetic.api.crd --check
	$(BIN)/python -m hermetic.api.reference --check
	$(BIN)/python -m hermetic.cli.reference --check

.PHONY: generate
generate: $(INSTALLED) ## write what is generated: CRDs, their reference, reasons, configuration
	$(BIN)/python -m hermetic.api.crd
	$(BIN)/python -m hermetic.api.reference
	$(BIN)/python -m hermetic.cli.reference

# The layers one after another, the cheap ones first: a typo should not cost a cluster.
.PHONY: test
test: check packages programs ## every test layer: pure, real API server, real node
	$(BIN)/python -m pytest tests/unit tests/property tests/golden tests/controller tests/network tests/browser --numprocesses 2 --dist worksteal
	$(BIN)/python -m pytest tests/controlplane --numprocesses 2 --dist loadfile
	$(BIN)/python -m pytest tests/node

.PHONY: bench
bench: packages programs ## measure against an idiomatic kopf operator; writes bench/results/ and docs/figures.md
	$(BIN)/python -m bench

# ---------------------------------------------------------------- show: demo, audit-demo

.PHONY: demo
demo: packages programs ## from kubectl apply to a private endpoint that answers; DEMO_EXIT=1 ends it after success
	exec setpriv --pdeathsig TERM $(BIN)/python -m testbed demo

.PHONY: audit-demo
audit-demo: $(INSTALLED) ## audit the public reference deployment behind a stand-in for Azure; writes the HTML report
	$(BIN)/python -m testbed audit-demo
