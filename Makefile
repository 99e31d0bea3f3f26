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

# The lock names every package, so pip resolves nothing: a requirement with an extra (pydantic[email]) has no pin of its
# own, and the next release of its package would be refused for want of a hash.
$(INSTALLED): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python %d.%d is too old: 3.11 or newer is needed" % sys.version_info[:2])'
	$(PYTHON) -c 'import ensurepip, venv' || { echo 'Python cannot make virtual environments: apt-get install python3-venv' >&2; exit 1; }
	echo 'installing the locked dependencies into $(VENV)' >&2
	$(PYTHON) -m venv $(VENV) >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock >&2
	$(BIN)/python -m pip check --quiet --disable-pip-version-check >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . >&2
	touch $@

# ---------------------------------------------------------------- ship

.PHONY: image
image: $(INSTALLED) ## build the operator's image, an OCI layout in dist/hermetic.tar, without a container engine or a base image
	$(BIN)/python -m shipping image dist/hermetic.tar

CLI_PYTHON ?= 3.11

.PHONY: cli
cli: $(INSTALLED) ## build the command line as one file, dist/hermetic.pyz, to carry to a machine without internet; CLI_PYTHON=3.12 for another Python
	$(BIN)/python -m shipping cli dist/hermetic.pyz --python $(CLI_PYTHON)

.PHONY: bundle
bundle: $(INSTALLED) ## build the air-gap bundle: image, chart, CRDs, manifests, docs and SBOMs in one tar; SIGN=KEY signs it
	$(BIN)/python -m shipping bundle dist/hermetic-$$($(BIN)/python -c 'import hermetic; print(hermetic.__version__)').tar $(if $(SIGN),--sign $(SIGN))

.PHONY: wheels
wheels: $(INSTALLED) ## fetch the wheels of the image into dist/wheels, for shipping/Dockerfile and a base of your own
	$(BIN)/python -m shipping wheels dist/wheels

.PHONY: site
site: $(INSTALLED) ## build the documentation as a site that fetches nothing, in dist/site
	$(BIN)/python -m shipping site dist/site

# ---------------------------------------------------------------- test bed

.PHONY: programs
programs: $(INSTALLED) ## build Kubernetes, etcd, kwok, containerd, CoreDNS, Helm, Flux, ORAS and a registry (minutes when cold, cached outside the checkout)
	$(BIN)/python -m testbed programs

# What a node needs, and no more: the demo should not wait for Flux to be built.
.PHONY: node-programs
node-programs: $(INSTALLED)
	$(BIN)/python -m testbed programs kubernetes etcd kwok containerd coredns

# Without root there is no real node, and its programs would be built for nothing.
.PHONY: demo-programs
demo-programs: $(INSTALLED)
	$(BIN)/python -m testbed programs kubernetes etcd kwok $(if $(filter 0,$(shell id -u)),containerd coredns) >/dev/null

.PHONY: azure-cli
azure-cli: $(INSTALLED) ## install the az CLI that the remedies are parsed with (0.8 GB, minutes when cold, cached outside the checkout)
	$(BIN)/python -m testbed azure-cli

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
	$(BIN)/mypy --strict -p testbed -p bench -p shipping -p tools
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools --check
	$(BIN)/python -m shipping chart --check

.PHONY: generate
generate: $(INSTALLED) ## write what is generated: CRDs, their reference, reasons, configuration, the chart
	$(BIN)/python -m tools
	$(BIN)/python -m shipping chart

# A cluster waits for most of its time, so the layers run side by side, and the tests without one take the time that is left
# (nice); the output of each is shown when it ends. In CI they run one after another, the cheap ones first: a typo should
# not cost a cluster.
.PHONY: test
test: check packages programs azure-cli wheels ## every test layer: pure, real API server, real node
	$(MAKE) $(if $(CI),,--jobs=3 --output-sync=target) test-pure test-node test-controlplane

.PHONY: test-pure test-controlplane test-node
# Without byte code each worker would rewrite the assertions of all tests anew: half of what collecting takes.
test-pure test-controlplane test-node: export PYTHONDONTWRITEBYTECODE :=

test-pure: $(INSTALLED) ## the tests that need no cluster, and those of commands, image and bundle
	nice $(BIN)/python -m pytest tests/unit tests/property tests/golden tests/controller tests/network tests/browser --numprocesses 2 --dist worksteal
	nice $(BIN)/python -m pytest tests/commands tests/shipping --numprocesses 2 --dist loadfile

# Files in their order: by default those of few tests come last, and these take longest.
test-controlplane: $(INSTALLED) ## the tests on a real API server
	$(BIN)/python -m pytest tests/controlplane --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-node: $(INSTALLED) ## the tests on a real node (root)
	$(BIN)/python -m pytest tests/node

# Opt-in, and no part of `make test`. Needs root and Python 3.11.
.PHONY: test-engine
test-engine: packages ## serve the real vLLM on the CPU in a sandbox (2.9 GB to fetch, 6 GB on disk when cold; 30 to 90 minutes)
	$(BIN)/python -m testbed real-engine >/dev/null
	HERMETIC_REAL_ENGINE=1 $(BIN)/python -m pytest tests/engine -o timeout=1800

.PHONY: test-faults
test-faults: $(INSTALLED) ## live through 10,000 seeded schedules of faults in process (an hour and a half of one core); FAULTS="--count 500" for fewer
	$(BIN)/python -m tests.schedules $(FAULTS)

.PHONY: test-faults-real
test-faults-real: packages node-programs ## the same against a real API server, 500 schedules, 25 side by side (an hour of two cores)
	$(BIN)/python -m tests.schedules --real --count 500 $(FAULTS)

.PHONY: bench
bench: packages node-programs ## measure against an idiomatic kopf operator; writes bench/results/ and docs/figures.md
	$(BIN)/python -m bench

# ---------------------------------------------------------------- show: demo, audit-demo

.PHONY: demo
demo: packages demo-programs ## from kubectl apply to a private endpoint that answers; DEMO_EXIT=1 ends it after success
	exec setpriv --pdeathsig TERM $(BIN)/python -m testbed demo

.PHONY: audit-demo
audit-demo: $(INSTALLED) ## audit the public reference deployment behind a stand-in for Azure; writes the HTML report
	$(BIN)/python -m testbed audit-demo
