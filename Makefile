# `make demo` and `make test` do everything, set-up included; `make down` undoes it.
# The servers are private instances, see dev/services.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The broker of the demo: rabbitmq, rocketmq or none; and RocketMQ's line: 5, which
# has timers, or 4, which has delay levels. Or off: `make test ROCKETMQ=off` does
# without, where Maven Central cannot be reached.
BROKER   ?= rabbitmq
ROCKETMQ ?= 5
# What `make test` runs, and how.
PACKAGES  ?= ./...
TESTFLAGS ?=

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .dev/bin/golangci-lint-$(GOLANGCI_VERSION)
SERVICES := dev/services
# Every race is a failure, but for the one in RocketMQ's client library.
TEST := env GORACE='suppressions=$(CURDIR)/rocket/testdata/library.supp' go test -race -timeout 10m $(TESTFLAGS)
# Leaves out the tests that need a RocketMQ.
WITHOUT_ROCKETMQ := -skip 'RocketMQ|/RocketMQ'
# The drivers' tests wait most of the time and run beside each other. The others
# have promises of milliseconds to keep, and get the machine one package at a time.
DRIVERS := '/(rabbit|rocket)$$'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/producer, bin/consumer and bin/bide (static)
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X github.com/bide-mq/bide/internal/service.version=$(VERSION)' -o bin/ ./cmd/...

.PHONY: demo
demo: build ## run a shop against real servers and audit it (BROKER=rabbitmq|rocketmq|none)
	$(SERVICES) up postgres $(filter rabbitmq,$(BROKER))
	eval "$$($(SERVICES) env)"
	export BIDE_DATABASE_URL="$$BIDE_TEST_DATABASE_URL"
	export BIDE_RABBITMQ_URL="$${BIDE_TEST_RABBITMQ_URL:-}"
	export BIDE_RABBITMQ_MANAGEMENT_URL="$${BIDE_TEST_RABBITMQ_MANAGEMENT_URL:-}"
ifeq ($(BROKER),rocketmq)
	# A broker of its own: the demo deletes all that it holds.
	trap '$(SERVICES) remove demo' EXIT
	$(SERVICES) start rocketmq$(ROCKETMQ) demo >.dev/demo.env
	export BIDE_ROCKETMQ_NAME_SERVERS="$$(sed -n 's/^NAMESRV=//p' .dev/demo.env)"
	bin/bide demo --broker=rocketmq --break='$(SERVICES) kill demo && $(SERVICES) wipe demo && $(SERVICES) restart demo'
else
	bin/bide demo --broker=$(BROKER)
endif

.PHONY: test
test: build compiler ## run all tests, with the race detector, on real servers
ifeq ($(ROCKETMQ),off)
	$(SERVICES) up postgres pgbouncer rabbitmq
	eval "$$($(SERVICES) env)"
	go list $(PACKAGES) | grep -v '/rocket$$' | xargs $(TEST) -p 1 $(WITHOUT_ROCKETMQ)
else
	$(SERVICES) up postgres pgbouncer rabbitmq rocketmq4 rocketmq5
	eval "$$($(SERVICES) env)"
	failed=0
	go list $(PACKAGES) | { grep -E $(DRIVERS) || true; } | xargs -r $(TEST) || failed=1
	go list $(PACKAGES) | { grep -vE $(DRIVERS) || true; } | xargs -r $(TEST) -p 1 || failed=1
	exit $$failed
endif

# The packages whose tests reach the RabbitMQ driver.
MATRIX = $$(go list -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}}{{end}}' ./... | awk '/bide\/rabbit/ { print $$1 }' | sort -u)

.PHONY: test-matrix
test-matrix: build compiler ## run RabbitMQ's tests again on RabbitMQ 4 (Debian 13's, in a chroot; needs root)
	$(SERVICES) up postgres pgbouncer rabbitmq4
	eval "$$($(SERVICES) env)"
	export BIDE_TEST_RABBITMQ_KIND=rabbitmq4
	export BIDE_TEST_RABBITMQ_URL="$$BIDE_TEST_RABBITMQ4_URL"
	export BIDE_TEST_RABBITMQ_MANAGEMENT_URL="$$BIDE_TEST_RABBITMQ4_MANAGEMENT_URL"
	$(TEST) $(WITHOUT_ROCKETMQ) $(MATRIX)

# What `make bench` runs: all measurements, or some of them; BENCHFLAGS for more.
MEASURE    ?=
BENCHFLAGS ?= -out docs/performance

.PHONY: bench
bench: build ## measure beside the peers and the brokers alone (about 30 minutes, on a quiet machine)
	(cd bench && go build -o ../bin/bench .)
	$(SERVICES) up postgres rabbitmq rocketmq5 redis
	eval "$$($(SERVICES) env)"
	export BIDE_DATABASE_URL="$$BIDE_TEST_DATABASE_URL" BIDE_RABBITMQ_URL="$$BIDE_TEST_RABBITMQ_URL"
	export BIDE_ROCKETMQ_NAME_SERVERS="$$BIDE_TEST_ROCKETMQ5_NAMESRV"
	bin/bench $(BENCHFLAGS) $(MEASURE)

.PHONY: bench-short
bench-short: BENCHFLAGS = -short
bench-short: bench ## the same in about 4 minutes, to see that it works

.PHONY: lint
lint: $(GOLANGCI) ## check style, mistakes and layers, of the scripts too
	$(GOLANGCI) run ./...
	command -v shellcheck >/dev/null || $(SERVICES) need shellcheck
	shellcheck -xa $(SERVICES) .ci/run

.PHONY: fmt
fmt: $(GOLANGCI) ## format the Go code
	$(GOLANGCI) fmt ./...

.PHONY: down
down: ## stop and delete every server that was started from this checkout
	$(SERVICES) down

.PHONY: clean
clean: down ## also delete what was built
	rm -rf bin .dev

# The race detector needs a C compiler.
.PHONY: compiler
compiler:
	@command -v "$$(go env CC)" >/dev/null || $(SERVICES) need gcc libc6-dev

$(GOLANGCI):
	GOBIN=$(CURDIR)/.dev/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .dev/bin/golangci-lint $@

# One shell per recipe, so that exported variables reach the command that follows.
.ONESHELL:
