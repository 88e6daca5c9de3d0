// Package coord coordinates processes that share a Redis: some work must be done only once, and some by one worker at
// a time.
//
// [Tokens] are permissions that can be used exactly once, even with concurrent callers:
//
//	store, err := redisstore.New(client, redisstore.Options{})
//	tokens, err := coord.NewTokens(store)
//	id := coord.NewID()
//	err = tokens.Issue(ctx, id, metadata, 30*time.Second)
//	token, err := tokens.Use(ctx, id, "ada")   // once; then ErrUsed
//
// [Leases] allow one worker at a time for each user, in all processes:
//
//	leases, err := coord.NewLeases(store, coord.LeaseOptions{Lifetime: 10 * time.Second, MaxLifetime: time.Hour})
//	err = leases.Run(ctx, "ada", func(ctx context.Context) error { … })
//
// [Leases.Run] fails with a [DeniedError] if the lease is held; [Leases.Wait] waits for it. By this machine's clock,
// the context of the work ends before the lease does in the store. So no two workers hold the lease at the same time,
// if both clocks run at about the same speed and the store loses nothing. This is not enough if a worker is paused
// between a check of its context and a write, or after a failover of Redis: then the target of the write has to check
// the fencing number ([Lease.Number]). See docs/coord.md.
//
// Package memstore has a store for a single process and for tests, and package redisstore has a store that processes
// share. Package storetest tests implementations.
//
// The package is not a queue: callers wait in order within a process only, and it does not remember work. It does not
// limit rates; see package ratelimit and its Throttle.
package coord
