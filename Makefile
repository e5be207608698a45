# Two commands matter: `make chaos` and `make test`. `make help` shows the rest.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2
OPTIONS ?=
SEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help install chaos chaos-all test test-all detection explore-matrix lint format bench lock clean docker-up kind-bundle kind-up kind-down chaos-docker chaos-kind chaos-kind-all test-cluster test-cluster-short

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-14s %s\n' "$$name" "$$text"; done

$(STAMP): requirements/all.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v[:2] <= (3, 13) else "Python 3.11 to 3.13 is needed, %s is %d.%d; name another one: make PYTHON=python3.12 ..." % (sys.executable, v[0], v[1]))'
	@echo "Installing pinned dependencies into $(VENV) (once; JAX and Ray are large)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/all.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

install: $(STAMP) ## Make the virtual environment with pinned dependencies

chaos: $(STAMP) ## Kill real training jobs and judge them: the catalogue on this machine, under three minutes
	@$(BIN)/harness run --all --jobs $(JOBS) --seed $(SEED)

chaos-all: $(STAMP) ## The same with the slow scenarios
	@$(BIN)/harness run --all --slow --jobs $(JOBS) --seed $(SEED)

chaos-docker: $(STAMP) ## The catalogue in containers
	@$(BIN)/harness run --all --target docker --jobs $(JOBS) --seed $(SEED)

chaos-kind: $(STAMP) ## The GKE guide's proof and one scenario of each kind of failure, on the local cluster: under 25 minutes
	@$(BIN)/harness run --tag short --slow --target kind --seed $(SEED)

chaos-kind-all: $(STAMP) ## Every scenario of a cluster: an hour and a quarter
	@$(BIN)/harness run --all --slow --target kind --seed $(SEED)

test: $(STAMP) ## The project's own tests; those of containers and of the cluster where an engine and a cluster are up
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not exhaustive" $(OPTIONS)

test-all: $(STAMP) ## The same with every error of a service at every call, of which `make test` takes a sample
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(OPTIONS)

test-cluster: $(STAMP) ## The project's own tests that need the local cluster: half an hour
	@HARNESS_REQUIRE=kind $(BIN)/python -m pytest --require kind tests/contract tests/cluster tests/detection/test_cluster_detection.py -k "kind or cluster"

test-cluster-short: $(STAMP) ## Of these all but the trial of each fault, and of the wrong jobs three: eight minutes
	@HARNESS_REQUIRE=kind $(BIN)/python -m pytest --require kind tests/contract tests/cluster --ignore tests/cluster/test_faults.py tests/detection/test_cluster_detection.py \
	  -k "(kind or cluster) and not caught or without-retries or tolerates-no-queued or names-its-run"

detection: $(STAMP) ## Every wrong job must be caught, every right one pass: the matrix; with a cluster that is up, what is wrong there too
	@$(BIN)/python -m pytest -q --no-header -n $(JOBS) -p no:cacheprovider tests/detection

explore-matrix: $(STAMP) ## Every job that is wrong in how it saves, on every storage model: what its kill points show
	@$(BIN)/python -m tests.detection.kill_points

lint: $(STAMP) ## Style, types, and the import contract
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(STAMP) ## Put the style right where that can be done by itself
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format --quiet .

bench: $(STAMP) ## Measure the figures of the design, as ratios
	@$(BIN)/python -m benchmarks

docker-up: $(STAMP) ## Use the Docker engine that is here, or install and start one (as root, on Debian)
	@$(BIN)/harness up docker

kind-bundle: $(STAMP) ## Build what the cluster is made of, without pulling an image: 14 to 30 minutes once, then seconds
	@$(BIN)/python -m harness.kind.bundle

kind-up: $(STAMP) ## Bring the local cluster up, with Kueue and KubeRay
	@$(BIN)/harness up kind

kind-down: $(STAMP) ## Take the local cluster down
	@$(BIN)/harness down kind

lock: ## Pin the dependencies anew (needs uv)
	@uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml --extra pytest --extra docker --extra kind --extra gcp --extra workloads --group dev --no-header --output-file requirements/all.txt

clean: ## End what runs have left behind
	@$(BIN)/harness clean
