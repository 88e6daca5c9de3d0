.PHONY: run test race fight torture lint bench bench-compare fuzz ci

run: ## the quickstart server
	go run ./examples/quickstart

test:
	go test ./...

race:
	go test -race -shuffle=on ./...

FIGHT ?= 60s
fight: ## processes fight for leases, killed and stopped meanwhile; the tests have 4 s of it
	LAZYREQ_TORTURE=$(FIGHT) go test ./coord/redisstore -run 'TestProcessesCompeteForLeases$$$$' -count=1 -v

TORTURE ?= 2m
torture: ## random faults of Redis, memory under 10 M keys, and what else repeats itself, for so long each; the tests have some seconds of each
	LAZYREQ_TORTURE=$(TORTURE) go test ./internal/torture -count=1 -timeout 60m -v
	LAZYREQ_TORTURE=$(TORTURE) go test ./server ./cmd/ratelimit-proxy/internal/proxy -run 'TestMemoryIsFlat$$$$|TestMemoryOfManyKeys$$$$|TestProcessesShareAConcurrent$$$$' -count=1 -timeout 60m -v
	LAZYREQ_TORTURE=$(TORTURE) go test ./ratelimit/... -p 1 -run 'TestProcessesWithAllotmentsKeepTheLimit$$$$|TestConcurrentTakesReachTheLimit$$$$' -count=1 -timeout 60m -v

lint:
	go vet ./...
	@bin=$$(mktemp -d) && go build -C .ci/tools -o $$bin/staticcheck honnef.co/go/tools/cmd/staticcheck \
		&& $$bin/staticcheck ./...; code=$$?; rm -rf $$bin; exit $$code

bench: ## the benchmarks inside of the packages
	go test -run '^$$' -bench . -benchmem ./lazy ./reqctx ./params ./session ./ratelimit ./coord ./server

SUITE ?=
bench-compare: ## against others, a suite with SUITE=property, and the plots of it
	cd bench && go run . -suite '$(SUITE)' && go run . -plot

FUZZTIME ?= 30s
fuzz: ## every fuzz target of the library, one after the other
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

ci:
	CI=true bash .ci/run
