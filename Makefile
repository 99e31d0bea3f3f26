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

VERSION = $$($(BIN)/python -c 'import hermetic; print(hermetic.__version__)')
SIGNING = $(if $(SIGN),--sign $(SIGN)) $(if $(CERTIFICATE),--certificate $(CERTIFICATE))

.PHONY: bundle
bundle: $(INSTALLED) ## build the air-gap bundle: image, chart, CRDs, manifests, docs and SBOMs in one tar; SIGN=KEY signs it
	$(BIN)/python -m shipping bundle dist/hermetic-$(VERSION).tar $(SIGNING)

.PHONY: release
release: $(INSTALLED) ## make every file of a release from a clean checkout of its tag, in dist/release-VERSION; SIGN=KEY CERTIFICATE=FILE sign it
	$(BIN)/python -m shipping release dist/release-$(VERSION) $(SIGNING)

.PHONY: verify-release
verify-release: $(INSTALLED) ## build BUNDLE=FILE again from the commit that it names, and compare the bytes
	$(BIN)/python -m shipping verify-release $(BUNDLE)

.PHONY: wheels
wheels: $(INSTALLED) ## fetch the wheels of the image into dist/wheels, for shipping/Dockerfile and a base of your own
	$(BIN)/python -m shipping wheels dist/wheels

.PHONY: site
site: $(INSTALLED) ## build the documentation as a site that fetches nothing, in dist/site
	$(BIN)/python -m shipping site dist/site

# ---------------------------------------------------------------- test bed

.PHONY: programs
programs: $(INSTALLED) ## build Kubernetes, etcd, kwok, containerd, CoreDNS, Helm, Flux, ORAS, a registry, notation and cosign (minutes when cold, cached outside the checkout)
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

.PHONY: run
run: $(INSTALLED) ## run the operator from source: KUBECONFIG=FILE of an administrator, CONFIG=FILE of the operator (optional)
	test -n '$(KUBECONFIG)' || { echo 'say which cluster: make run KUBECONFIG=FILE; `make controlplane` starts one' >&2; exit 2; }
	exec $(BIN)/python -m testbed run --kubeconfig '$(KUBECONFIG)' $(if $(CONFIG),--config '$(CONFIG)')

.PHONY: packages
packages: $(INSTALLED) ## install the Debian packages of the real node (as root; else say which, and its tests skip)
	$(BIN)/python -m testbed packages || test -z "$$CI"

.PHONY: node
node: packages ## run a real node with its control plane until SIGTERM (root); first line of stdout is JSON
	exec setpriv --pdeathsig TERM $(BIN)/python -m testbed node

# ---------------------------------------------------------------- develop: check, test, bench

.PHONY: fmt
fmt: $(INSTALLED) ## format the code, and mend what the linter can
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .

.PHONY: check
check: $(INSTALLED) ## format, lint, types, import directions, names, generated files (seconds)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy --strict -p testbed -p bench -p shipping -p tools
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.names --check
	$(BIN)/python -m tools --check
	$(BIN)/python -m shipping chart --check

.PHONY: generate
generate: $(INSTALLED) ## write what is generated: CRDs, their reference, reasons, configuration, the chart
	$(BIN)/python -m tools
	$(BIN)/python -m shipping chart

.PHONY: lock
lock: $(INSTALLED) ## resolve pyproject.toml into both locks; UPGRADE=1 takes the newest versions, of Debian's packages too
	$(BIN)/python -m tools.lock $(if $(UPGRADE),--upgrade)
	$(if $(UPGRADE),$(BIN)/python -m shipping lock)

# What decides whether a pod may start, and what a pod is: gates, plan, status, the search for egress paths, engines.
SLOW := tests/unit/test_plan_exposing_objects.py
FAST := tests/golden $(filter-out $(SLOW),$(wildcard $(addprefix tests/unit/test_,gates.py isolation.py plan_*.py drift*.py status.py \
	objects_*.py engines_vllm.py engines_sglang.py engines_nim.py allow_list.py audit_evaluation.py audit_verdict.py \
	egress_*.py checks_nsg*.py checks_routes.py decision_cases_groups.py attestation_chain.py attestation_keys.py \
	sizing_fits.py reasons.py tools_*.py)))
.PHONY: test-fast
test-fast: $(INSTALLED) ## the tests of what decides, without a cluster (less than a minute); make test runs everything
	$(BIN)/python -m pytest $(FAST) --quiet --numprocesses 2 --dist worksteal

.PHONY: cov
cov: $(INSTALLED) ## run tests under coverage and print the lines that they miss; COV="tests/unit/test_gates.py" for some
	$(BIN)/python -m coverage run --source operator/hermetic -m pytest $(or $(COV),$(FAST)) --quiet --numprocesses 0
	$(BIN)/python -m coverage report --show-missing --skip-covered --skip-empty

# A cluster waits for most of its time, so the layers run side by side, and the tests without one take the time that is
# left (nicer than the operator's own evaluation process); the output of each is shown when it ends. In CI the real node
# has the processors for itself and for the API server beside it: what computes all the time runs before, and audits of
# estates when the node has ended, in the time that the API server leaves. A layer that fails does not hide the failures
# of the next.
.PHONY: test test-processes test-clusters test-after-node
test: packages ## every test layer: pure, real API server, real node
	$(MAKE) --jobs=4 --output-sync=target check programs azure-cli wheels
	$(MAKE) --keep-going $(if $(CI),test-processes test-clusters,--jobs=3 --output-sync=target test-node test-controlplane test-pure test-estates test-commands)

test-processes: ## the tests that need no cluster, but for those of whole estates, beside those of commands, image and bundle
	$(MAKE) --keep-going --jobs=2 --output-sync=target test-pure test-commands

test-clusters: ## the tests on a real API server beside those on a real node and what follows these
	$(MAKE) --keep-going --jobs=2 --output-sync=target test-after-node test-controlplane

# One after the other, and none left out where one before it fails.
test-after-node:
	failed=0; for layer in test-node test-oldest-release test-estates; do $(MAKE) $$layer || failed=1; done; exit $$failed

.PHONY: test-pure test-estates test-commands test-controlplane test-node test-oldest-release
# Without byte code each worker would rewrite the assertions of all tests anew: half of what collecting takes.
test-pure test-estates test-commands test-controlplane test-node test-oldest-release: export PYTHONDONTWRITEBYTECODE :=

# Audits of thousands of whole estates: they only compute, and their time does not matter to what they show.
ESTATES := $(wildcard tests/property/test_audit_*.py tests/property/test_textbook_*.py \
	$(addprefix tests/unit/test_,checks_against_plants.py remedies_on_estates.py))

test-pure: $(INSTALLED) ## the tests that need no cluster, but for those of test-estates
	nice -n 19 $(BIN)/python -m pytest tests/unit tests/property tests/golden tests/controller tests/network tests/browser $(ESTATES:%=--ignore=%) --numprocesses 2 --dist worksteal

test-estates: $(INSTALLED) ## the audits of generated and of textbook estates
	nice -n 19 $(BIN)/python -m pytest $(ESTATES) --numprocesses 2 --dist worksteal

# The enumerations of which CI tries a part that the commit draws (tests/sampling.py).
EVERY_CASE := tests/controller/test_closed_gate_schedules.py \
	$(addprefix tests/property/test_,attestation_tampering.py audit_topologies.py textbook_estates.py)

.PHONY: test-every-case
test-every-case: $(INSTALLED) ## every case of the enumerations of which CI tries a part: 2,297 topologies, all plants, 100,000 tamperings (20 minutes of one core)
	nice -n 19 $(BIN)/python -m pytest $(EVERY_CASE) --full --numprocesses 2 --dist worksteal

# The other layers run on the oldest Python that the command line supports. Below build/ nothing is linted or shipped.
IMAGE_PYTHON ?= python3.13
.PHONY: test-image-python
test-image-python: ## the unit tests on the Python of the image, which must be installed: IMAGE_PYTHON=python3.13
	$(MAKE) install VENV=build/image-python PYTHON=$(IMAGE_PYTHON)
	build/image-python/bin/python -m pytest tests/unit --numprocesses 2 --dist worksteal

# Not as nice as the tests beside it: it waits for most of its time, and a build has a time limit.
test-commands: $(INSTALLED) ## the tests of commands, image and bundle
	nice -n 5 $(BIN)/python -m pytest tests/commands tests/shipping --numprocesses 2 --dist loadfile

# Files in their order: by default those of few tests come last, and these take longest.
test-controlplane: $(INSTALLED) ## the tests on a real API server
	$(BIN)/python -m pytest tests/controlplane --numprocesses 2 --dist loadfile --no-loadscope-reorder

# What an older API server may do otherwise: CRDs and their rules, policies, messages, defaults, writes at rest, one model.
OLDEST := crds corpus policies tenant_policies model_warnings refusals write_budget lifecycle
# Tests of what 1.32 lacks: resource.k8s.io/v1, MutatingAdmissionPolicy and image volumes.
NOT_SERVED := not needs_more_than_edit and not claims_of_gpus and not pod_security_refuses and not every_pod_of_ours
test-oldest-release: $(INSTALLED) ## compile CRDs and policies for the oldest supported Kubernetes, and test on its control plane (CI; 6 minutes of CPU to build when cold)
	$(BIN)/python -m pytest tests/oldest_release $(OLDEST:%=tests/controlplane/test_%.py) -k '$(NOT_SERVED)' --oldest-kubernetes --full --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-node: $(INSTALLED) ## the tests on a real node (root)
	$(BIN)/python -m pytest tests/node

# Opt-in, and no part of `make test`. Needs root and Python 3.11.
.PHONY: test-engine
test-engine: packages ## serve the real vLLM on the CPU in a sandbox (2.9 GB to fetch, 6 GB on disk when cold; 30 to 90 minutes)
	$(BIN)/python -m testbed real-engine >/dev/null
	HERMETIC_REAL_ENGINE=1 $(BIN)/python -m pytest tests/engine -o timeout=1800

# Opt-in, and no part of `make test`, for the time that building it takes.
.PHONY: test-image-policies
test-image-policies: $(INSTALLED) ## let Ratify judge images by manifests/image-policies/ratify.yaml (more than 3 minutes of CPU to build when cold)
	HERMETIC_IMAGE_POLICIES=1 $(BIN)/python -m pytest tests/image_policies -o timeout=3600

.PHONY: test-faults
test-faults: $(INSTALLED) ## live through 10,000 seeded schedules of faults in process (an hour and a half of one core); FAULTS="--count 500" for fewer
	$(BIN)/python -m tests.schedules $(FAULTS)

.PHONY: test-faults-groups
test-faults-groups: $(INSTALLED) ## live through 1,000 seeded schedules of faults with models of several nodes; FAULTS="--count 100" for fewer
	$(BIN)/python -m tests.schedules --groups --count 1000 $(FAULTS)

.PHONY: test-faults-real
test-faults-real: packages node-programs ## the same against a real API server, 500 schedules, 25 side by side (an hour of two cores)
	$(BIN)/python -m tests.schedules --real --count 500 $(FAULTS)

.PHONY: test-closed-gates
test-closed-gates: $(INSTALLED) ## live through 1,000 seeded schedules of an isolation gate that closes, in process (half a minute of one core)
	$(BIN)/python -m tests.schedules --closed-gates --count 1000 $(FAULTS)

.PHONY: test-closed-gates-real
test-closed-gates-real: packages node-programs ## the same against a real API server, 200 schedules, 5 models at each closing (an hour of two cores)
	$(BIN)/python -m tests.schedules --closed-gates --real --count 200 $(FAULTS)

.PHONY: bench
bench: packages node-programs ## measure against an idiomatic kopf operator; writes bench/results/ and docs/figures.md
	$(BIN)/python -m bench

.PHONY: mutants
mutants: $(INSTALLED) ## plant 100 seeded mistakes and count what each layer of tests finds; MUTANTS="--count 20 --seed 2" for others
	$(BIN)/python -m bench.mutants $(MUTANTS)

# Needs no package of .venv: a machine with a GPU in a closed network has a Python with torch, and no registry.
.PHONY: gpu-check
gpu-check: ## run the accelerator checks on this machine's GPU, with each fault that software can make, then 200 times or 5 minutes; GPUS=8 for eight
	$(PYTHON) -m bench.gpu_faults
	$(PYTHON) -m bench.gpu_check --count $(or $(GPUS),1) --seconds 300

# ---------------------------------------------------------------- show: demo, audit-demo, recording

.PHONY: demo
demo: packages demo-programs ## from kubectl apply to a private endpoint that answers; DEMO_EXIT=1 ends it after success
	exec setpriv --pdeathsig TERM $(BIN)/python -m testbed demo

.PHONY: audit-demo
audit-demo: $(INSTALLED) ## audit the public reference deployment behind a stand-in for Azure; writes the HTML report
	$(BIN)/python -m testbed audit-demo

.PHONY: recording
recording: $(INSTALLED) ## make the pictures of the README (the report needs Chromium); DEMO=1 records make demo instead
	$(BIN)/python -m tools.pictures $(if $(DEMO),--demo)
	$(if $(DEMO),,$(BIN)/python -m tests.browser.pictures)
