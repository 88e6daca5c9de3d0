// Package coord coordinates processes that share a Redis. Some work must be done only once, and some work only by
// one worker at a time.
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
// [Leases.Run] returns a [DeniedError] if another worker holds the lease. [Leases.Wait] waits for the lease. The
// context of the work ends before the lease ends in the store. So two workers never hold the lease at the same
// time, if the clocks of the process and the store run at about the same speed and the store loses nothing. Two
// cases need more: a worker that is paused between a check of its context and a write, and a failover of Redis.
// For these, the target of the write must check the fencing number ([Lease.Number]). See docs/coord.md.
//
// Package memstore has a store for a single process and for tests, and package redisstore has a store that processes
// share. Package storetest tests implementations.
//
// The package is not a queue: it does not remember work, and callers wait in order only within a process. It does
// not limit rates; see package ratelimit and its Throttle.
package coord
