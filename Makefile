# Every target sets up what it needs; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN     := bin/pommel
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/pommelgym/pommel/internal/version.version=$(VERSION)
GOFLAGS_BUILD := -trimpath -ldflags '$(LDFLAGS)'
VENV    := .tmp/venv
PEERS   := .tmp/venv-peers
TRAINERS := .tmp/venv-trainers
GOTEST  ?= go test -timeout 12m

export CGO_ENABLED := 0

.PHONY: screenshots help setup build demo test test-go test-python test-peers examples bench experiment soak soak-openenv lint gen install clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing (Chromium, PostgreSQL, fonts, QEMU)
	@scripts/setup

build: ## build bin/pommel
	@go build $(GOFLAGS_BUILD) -o $(BIN) ./cmd/pommel

demo: setup build ## boot worlds, let the oracle and a random agent work, train a policy, print rewards read from PostgreSQL
	@$(BIN) demo --out .tmp/demo

test: setup build test-go test-python test-peers ## run all tests, on real Chromium and real PostgreSQL

# A real browser on a busy machine can be later than a test allows. A test that fails is run once
# more by itself, and the summary names it; one that fails twice, or more than four, fail all.
test-go: .tmp/bin/gotestsum
	@go vet ./...
	@.tmp/bin/gotestsum --format pkgname --format-icons text --hide-summary skipped --rerun-fails=1 --rerun-fails-max-failures=4 --packages ./... -- -timeout 15m

.tmp/bin/gotestsum: tools/go.mod
	@mkdir -p .tmp/bin && GOBIN=$(CURDIR)/.tmp/bin go install -modfile=tools/go.mod gotest.tools/gotestsum

test-python: build $(VENV)/.ready
	@cd clients/python && $(CURDIR)/$(VENV)/bin/mypy
	@cd clients/python && POMMEL_BIN=$(CURDIR)/$(BIN) $(CURDIR)/$(VENV)/bin/python -m pytest -q -p no:cacheprovider --basetemp=$(CURDIR)/.tmp/pytest

$(VENV)/.ready: clients/python/pyproject.toml clients/python/tests/requirements-browsergym.txt
	@mkdir -p .tmp && python3 -m venv $(VENV)
	@$(VENV)/bin/pip install -q --disable-pip-version-check -e 'clients/python[test]'
	@$(VENV)/bin/pip install -q --disable-pip-version-check --no-deps -r clients/python/tests/requirements-browsergym.txt
	@touch $@

examples: build $(VENV)/.ready $(TRAINERS)/.ready ## run the examples of clients/python/examples on world shop (installs PyTorch, about 5 GB)
	@POMMEL_BIN=$(CURDIR)/$(BIN) $(VENV)/bin/python clients/python/examples/rollouts.py
	@POMMEL_BIN=$(CURDIR)/$(BIN) $(VENV)/bin/python clients/python/examples/browsergym_agent.py
	@POMMEL_BIN=$(CURDIR)/$(BIN) $(TRAINERS)/bin/python clients/python/examples/train_torch.py --quick
	@POMMEL_BIN=$(CURDIR)/$(BIN) $(TRAINERS)/bin/python clients/python/examples/train_trl.py --quick

# PyTorch demands a compiler for GPUs and more that nothing here uses, so nothing is resolved.
# The CUDA libraries come only where the wheel that pip has found cannot do without them.
$(TRAINERS)/.ready: clients/python/examples/requirements.txt clients/python/examples/requirements-cuda.txt clients/python/pyproject.toml
	@mkdir -p .tmp && python3 -m venv $(TRAINERS)
	@$(TRAINERS)/bin/pip install -q --disable-pip-version-check --no-deps -r clients/python/examples/requirements.txt
	@$(TRAINERS)/bin/python -c 'import torch' 2>/dev/null || \
	  $(TRAINERS)/bin/pip install -q --disable-pip-version-check --no-deps -r clients/python/examples/requirements-cuda.txt
	@$(TRAINERS)/bin/pip install -q --disable-pip-version-check --no-deps -e clients/python
	@touch $@

test-peers: build $(PEERS)/.ready
	@cd clients/python/peers && POMMEL_BIN=$(CURDIR)/$(BIN) $(CURDIR)/$(PEERS)/bin/python -m pytest -q -p no:cacheprovider --basetemp=$(CURDIR)/.tmp/pytest-peers

# The clients of OpenEnv, verifiers and MCP as they are published, pinned. Their own demands
# contradict each other in parts that the tests do not use, so nothing is resolved here.
$(PEERS)/.ready: clients/python/peers/requirements.txt clients/python/pyproject.toml
	@mkdir -p .tmp && python3 -m venv $(PEERS)
	@$(PEERS)/bin/pip install -q --disable-pip-version-check --no-deps -r clients/python/peers/requirements.txt
	@$(PEERS)/bin/pip install -q --disable-pip-version-check --no-deps -e clients/python
	@touch $@

bench: setup build ## measure step, reset and throughput on world shop
	@$(BIN) bench step --world shop --n 1000
	@$(BIN) bench reset --world shop --n 200 --against respawn
	@$(BIN) bench reset --world shop --part services --n 200
	@$(BIN) bench throughput --world shop --seconds 30

experiment: setup build ## train policies with and without perturbations, compare them, write docs/experiments/resilience.md
	@$(BIN) experiment --world shop --out .tmp/experiment --report docs/experiments/resilience.md

screenshots: setup build ## play episodes and a training, and take the pictures of docs/img
	@scripts/screenshots

soak: setup build ## long runs: 10,000 resets with random actions, episodes by bad clients, leak and drift checks
	@$(BIN) soak --world shop --resets 10000 --actions 10
	@$(BIN) soak --world shop --part rpc --episodes 5000
	@$(BIN) run --world shop --agent oracle --episodes 1000 --parallel 2 --expect-success 1
	@POMMEL_SOAK=1 $(GOTEST) -timeout 60m -run 'Soak|Continuations|KeptStarts|HostileRoot|Conformance' ./...
	@$(MAKE) soak-openenv

soak-openenv: build $(PEERS)/.ready ## 500 episodes by 8 sessions of the package openenv, half of them killed at the end
	@POMMEL_BIN=$(CURDIR)/$(BIN) $(PEERS)/bin/python clients/python/peers/soak_openenv.py --sessions 8 --episodes 500

lint: ## golangci-lint with the layer rules
	@mkdir -p .tmp/bin && GOBIN=$(CURDIR)/.tmp/bin go install -modfile=tools/go.mod github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@.tmp/bin/golangci-lint run ./...

gen: ## regenerate code from proto/ and docs/actions.md (needs protoc: apt-get install protobuf-compiler)
	@command -v protoc >/dev/null || { echo "gen: please install protobuf-compiler" >&2; exit 3; }
	@mkdir -p .tmp/bin && GOBIN=$(CURDIR)/.tmp/bin go install google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/cmd/protoc-gen-connect-go
	@protoc -I proto --plugin=.tmp/bin/protoc-gen-go --plugin=.tmp/bin/protoc-gen-connect-go \
	  --go_out=gen --go_opt=module=github.com/pommelgym/pommel/gen \
	  --connect-go_out=gen --connect-go_opt=module=github.com/pommelgym/pommel/gen,simple pommel/v1/gym.proto
	@go run ./cmd/pommel actions --markdown > docs/actions.md

install: setup ## install pommel to /usr/local/bin and its worlds to /usr/local/share/pommel
	@go build $(GOFLAGS_BUILD) -o /usr/local/bin/pommel ./cmd/pommel
	@mkdir -p /usr/local/share/pommel && cp -r worlds /usr/local/share/pommel/

clean: ## remove what the build made
	@rm -rf bin .tmp
