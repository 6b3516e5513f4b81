# `make help` prints the comment after `##` of each target.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The library that `make run` serves: make run CHARTS=DIR
CHARTS ?= samples

.PHONY: help run test test-system test-full history findings load load-full record-search lint fmt bench bench-micro catalogue image dist release-check sbom up down clean

help: ## Print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

run: ## Ingest CHARTS (default: samples) and serve it on LISTEN (127.0.0.1:8080), with private servers (PROFILE=release to measure)
	@scripts/run "$(CHARTS)"

test: ## Run the tests that need PostgreSQL and Redis only
	@scripts/test

test-system: ## Run all other tests: pages in Chromium, image, deployment, monitoring, drills, Meilisearch (installs what they need)
	@scripts/test-system

test-full: ## Run the long forms of the tests, with release builds: hours
	cargo build --release --locked --workspace --bins
	@scripts/test-system --test telemetry --test redis --test indexer --bin chart-indexer --test api_docs --test browser --test image --test cdn -- --ignored --show-output long_
	@scripts/test-system --test drills -- --ignored --show-output --test-threads=1 long_
	@scripts/test-system --bin history -- --ignored --show-output --test-threads=1 long_
	@PROGRAMS="$(abspath $(or $(CARGO_TARGET_DIR),target))/release" scripts/test-system --test differential --test recovery -- --ignored --show-output long_
	@scripts/fuzz 3600

history: ## Check random histories of operations and faults over the whole system (options: HISTORY)
	@scripts/servers install postgres redis haproxy varnish ip faketime
	@scripts/s3 install
	cargo build --locked --workspace --bins
	"$(or $(CARGO_TARGET_DIR),target)/debug/history" $(HISTORY)

findings: ## Run the scripts in findings and say what has changed (options: FINDINGS)
	@scripts/findings $(FINDINGS)

load: ## Load-test the service side by side with nginx, under five minutes (options: LOAD)
load-full: ## The same with 1,000,000 charts and all scenarios, about 45 minutes, the first time an hour (options: LOAD)
load-full load:
	@scripts/servers install postgres redis nginx wrk valgrind
	cargo build --release --locked --workspace --bins
	"$(or $(CARGO_TARGET_DIR),target)/release/load" run --form $(if $(filter load-full,$@),full,short) $(LOAD)

record-search: ## Record the Meilisearch exchanges that tests replay (needs meilisearch on the PATH)
	RECORD_SEARCH=1 cargo test --workspace --test search recorded_exchanges -- --test-threads=1
	cargo test --workspace --test search recorded_exchanges

lint: ## Check formatting, lints, documentation, dependencies, dashboards, deployment and scripts
	@scripts/lint

fmt: ## Format the code
	cargo fmt --all

bench: ## Benchmark ingest and parsing, with copies of CHARTS (default: samples)
	@scripts/servers install postgres
	cargo build --release --locked -p chart-index-indexer -p chart-index-benchmarks
	"$(or $(CARGO_TARGET_DIR),target)/release/bench-ingest" "$(CHARTS)"

# `make test-system` runs each of them once.
bench-micro: ## Run the micro-benchmarks: parsing, note hash, rate limit checks (options: BENCH)
	@scripts/servers install redis
	cargo bench --locked -p chart-index-benchmarks --bench chart_files --bench checks -- $(BENCH)

catalogue: ## Fill an empty, migrated DATABASE_URL and, if set, MEILISEARCH_URL with 300,000 generated chartsets (options: CATALOGUE)
	cargo run --release --locked -p chart-index-benchmarks --bin generate-catalogue -- $(CATALOGUE)
	@[ -z "$(MEILISEARCH_URL)" ] || cargo run --release --locked -p chart-index-indexer -- rebuild

image: ## Build the container image, with Docker or buildah
	@scripts/image build

dist: ## Build the packages of a release, for x86-64 and arm64: archives and a Debian package (TARGETS)
	@scripts/dist build $(TARGETS)

release-check: ## Run the steps of a release that need no secrets: build twice, scan, test as installed, sign
	@scripts/release-check

sbom: ## Write an SBOM of each program (CycloneDX) into target/sbom
	@scripts/image sbom

up: ## Start the whole system in containers, with random passwords, and ingest CHARTS (needs Docker)
	@$(if $(filter file,$(origin CHARTS)),,CHARTS="$(abspath $(CHARTS))") scripts/compose up

down: ## Stop the containers of `make up`. The data stays
	@scripts/compose down

clean: ## Remove the private servers of `make run` with their data, and build output
	for folder in .run*; do scripts/servers down $$folder; rm -rf $$folder; done
	cargo clean
