# What is built and checked, and how; `make` alone prints the targets.

VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.DEFAULT_GOAL := help
# npm installs while others build, and the console's tests run beside those in Go.
MAKEFLAGS += --jobs=4
.PHONY: help run build test test-go test-web lint race race-sample race-all bench e2e browser screenshots captures \
	cluster cluster-kill cluster-check cluster-takeover cluster-rolling release deploy-check image-check sabotage \
	sabotage-sample clean

help: ## print this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Follow-ups without a person are off by default. Here they are on, because the first page of the console offers one.
run: build ## build everything and serve on http://127.0.0.1:8080
	@grep -qs '^AUTONOMY_ENABLED=' .env || export AUTONOMY_ENABLED=$${AUTONOMY_ENABLED-true}; exec bin/parley serve

# PostgreSQL must be installed. Data is in a temporary folder and gone at the end. See docs/cluster.md.
cluster: build bin/cluster-run bin/nats-server ## run three nodes, PostgreSQL, NATS and a balancer on http://127.0.0.1:8080
	@bin/cluster-run $(CLUSTER)

cluster-kill: ## kill -9 a node of make cluster: make cluster-kill NODE=2
	@test -f 'bin/cluster/node$(NODE).pid' || { echo "name a node that runs, as in make cluster-kill NODE=2; make cluster restarts a killed node after 20 s"; exit 1; }
	kill -9 $$(cat bin/cluster/node$(NODE).pid)

# A seed that fails prints how to run it again, and its logs stay in bin/check. The tag lets clocks differ.
cluster-check: web/dist/index.html bin/cluster-run bin/nats-server ## break parts of a cluster at random and check what clients see: CHECK='-seeds 10'
	go build -tags failpoint -o bin/parley-check ./cmd/parley
	bin/cluster-run -parley bin/parley-check -folder bin/check check $(CHECK)

# CHECK='-rounds 5 -sessions 20' changes the numbers.
cluster-takeover: build bin/cluster-run bin/nats-server ## kill the node of 50 streaming sessions, 20 times, and measure how others take over
	bin/cluster-run -folder bin/takeover takeover $(CHECK)

cluster-rolling: build bin/cluster-run bin/nats-server ## restart all nodes one by one under load, ten times; no request may fail
	bin/cluster-run -folder bin/rolling rolling $(CHECK)

bin/cluster-run: $(wildcard cmd/cluster/*.go)
	go build -o $@ ./cmd/cluster

bin/nats-server: tools/go.mod
	go build -modfile=tools/go.mod -o $@ github.com/nats-io/nats-server/v2

# With the same flags everywhere, what one target compiles serves the others.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# Without symbols for debuggers (-s -w); stack traces of panics and profiles do not need them. Without C, as in releases,
# also where a C compiler is installed.
build: web/dist/index.html ## write bin/parley
	CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/parley ./cmd/parley

# Set RELEASE_URL to the address from which the files will be downloaded, or there is no formula for Homebrew.
# RELEASE='-only linux/amd64' builds one binary.
release: web/dist/index.html ## write static binaries for all systems, checksums, an SBOM and a formula to dist
	go run ./cmd/release -version $(VERSION) -time "$$(git log -1 --format=%cI)" -url "$(RELEASE_URL)" $(RELEASE)

deploy-check: ## check the chart and the compose files with the libraries of Helm and Docker Compose
	cd tools && go test ./deploy

# Docker is not needed; root, bubblewrap and apt are. IMAGE names a static binary that is there already.
image-check: $(if $(IMAGE),,build) ## assemble the file system of the image and run the server in it
	deploy/image-check $(or $(IMAGE),bin/parley)

# The console is built into the binary.
WEB := $(shell find web -path web/node_modules -prune -o -path web/e2e -prune -o -path web/dist -prune -o -name '*.go' -prune -o -type f -print)

web/dist/index.html: web/node_modules/.installed $(WEB)
	cd web && npm run --silent check && npm run --silent build

# The end-to-end tests drive clients, and the tests of the providers a server,
# that are installed by npm.
NODE_MODULES := $(patsubst %/package.json,%/node_modules/.installed,$(wildcard e2e/package.json web/package.json web/e2e/package.json provider/providertest/package.json))

%/node_modules/.installed: %/package.json %/package-lock.json
	cd $* && npm ci
	mkdir -p $(@D) && touch $@

# Slow packages start first, so that none of them runs alone at the end. One more at a time than there are
# processors: tests wait for the disk and for other processes.
SLOW := ./e2e ./store/postgres ./cmd/parley ./engine ./sandbox
JOBS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Packages whose tests wait for child processes and databases run more of them at a time (TestMain).
# Without the checks of go vet, all of which make lint does. Without symbols for debuggers (-s), also in the programs
# that tests build: they are half of the time of linking, and stack traces do not need them.
GOTEST := GOFLAGS="$$GOFLAGS -ldflags=-s" go test -vet=off -p $(JOBS)

test: test-go test-web ## run all tests

test-go: $(NODE_MODULES) web/dist/index.html
	$(GOTEST) -timeout 20m $(SLOW) ./...

test-web: web/node_modules/.installed
	cd web && npm test --silent

e2e: $(NODE_MODULES) browser ## run the end-to-end tests alone, those in a browser too
	go test -count=1 ./e2e/...

browser: build web/e2e/node_modules/.installed ## drive the console in Chromium, in front of the real binary
	cd web/e2e && npm test --silent

captures: web/dist/index.html ## capture the full screen of parley chat for docs/terminal.md and docs/images
	PARLEY_CAPTURES=$(CURDIR)/docs go test -count=1 -run '^TestCaptures$$' ./cmd/parley

screenshots: build web/e2e/node_modules/.installed ## take the pictures in docs/images
	cd web/e2e && node screenshots.mjs ../../docs/images

# The race detector sees only the process of the test, and the end-to-end tests run the server in another.
# -short leaves out tests that measure time, and repeats random tests less often.
race: $(NODE_MODULES) ## run all tests but e2e under the race detector, random ones briefly
	$(GOTEST) -race -short -timeout 30m $(filter-out ./e2e,$(SLOW)) $$(go list ./... | grep -v '/e2e$$')

# Under the race detector these take as long as all others together, mostly for child processes that it does not see.
RACE_SAMPLED := ./cmd/parley ./sandbox ./config ./store/postgres
# RACE_TESTS='TestA|TestB' repeats a sample.
RACE_TESTS ?= $(shell grep -ho '^func Test[A-Za-z0-9]*' $(RACE_SAMPLED:%=%/*_test.go) | cut -c6- | shuf -n 60 | paste -sd '|')

race-sample: $(NODE_MODULES) ## the same, with a sample of 60 tests of the slowest packages
	$(GOTEST) -race -short -timeout 30m ./engine $$(go list ./... | grep -vE '/(e2e|cmd/parley|sandbox|config|store/postgres)$$')
	$(GOTEST) -race -short -timeout 30m -run '^($(RACE_TESTS))$$' $(RACE_SAMPLED)

race-all: $(NODE_MODULES) ## run all tests under the race detector, at full length
	go test -race -timeout 60m ./...

# The bugs are listed in sabotage/sabotage_test.go. PARLEY_SABOTAGE_SEED repeats a sample.
SABOTAGE := go test -v -count=1 -parallel 3 -timeout 90m ./sabotage/...

sabotage: ## plant every listed bug, one at a time, and demand that tests fail
	PARLEY_SABOTAGE=1 $(SABOTAGE)

sabotage-sample: ## the same for bugs near recent commits and a few at random
	PARLEY_SABOTAGE=sample $(SABOTAGE)

bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

# S1016 asks to convert one struct into another that looks alike. A command and
# the event it leads to look alike today and are not the same thing.
lint: ## check formatting, go vet and staticcheck
	@files=$$(find . -name node_modules -prune -o -name '*.go' -exec gofmt -l {} +) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck -checks inherit,-S1016 ./...

clean: ## remove what was built and installed; data stays
	rm -rf bin dist web/node_modules web/e2e/node_modules web/dist/[!R]* e2e/node_modules provider/providertest/node_modules
