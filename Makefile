# Every target has one line of help: `make help` prints them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# A library to serve instead of the project's own samples: make run CHARTS=DIR
CHARTS ?= samples

.PHONY: help run test record-search lint fmt bench catalogue up down clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

run: ## Serve the public API on 127.0.0.1:8080 over CHARTS (default: the samples), with private servers
	@scripts/run "$(CHARTS)"

test: ## Every test, with private PostgreSQL and Redis servers that end with it
	@scripts/test

record-search: ## Record the exchanges with Meilisearch that the tests replay anew (needs meilisearch on the PATH)
	RECORD_SEARCH=1 cargo test --package chart-index-search --test search recorded_exchanges -- --test-threads=1
	cargo test --package chart-index-search --test search recorded_exchanges

lint: ## Formatting, lints, documentation, scripts, dependency rules
	@scripts/lint

fmt: ## Format the code
	cargo fmt --all

bench: ## Ingest against parsing alone, side by side
	@scripts/bench

catalogue: ## Fill the empty, migrated DATABASE_URL, then MEILISEARCH_URL if it is set, with 300,000 made-up chartsets (CATALOGUE)
	cargo run --release --locked -p chart-index-benchmarks --bin generate-catalogue -- $(CATALOGUE)
	@[ -z "$(MEILISEARCH_URL)" ] || cargo run --release --locked -p chart-index-indexer -- rebuild

up: ## PostgreSQL, Redis and Meilisearch in containers, for development (needs Docker)
	docker compose up --detach --wait

down: ## Stop the containers of `make up`
	docker compose down

clean: ## Remove the private servers of `make run` with their data, and all that was built
	scripts/servers down .run
	rm -rf .run
	cargo clean
