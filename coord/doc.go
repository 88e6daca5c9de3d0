// Package coord coordinates processes that share a Redis: things that are done once, and work that
// one worker at a time does.
//
// [Tokens] are permissions that succeed exactly once, however many callers use them at a time:
//
//	store, err := redisstore.New(client, redisstore.Options{})
//	tokens, err := coord.NewTokens(store)
//	id := coord.NewID()
//	err = tokens.Issue(ctx, id, metadata, 30*time.Second)
//	token, err := tokens.Use(ctx, id, "ada")   // once; then ErrUsed
//
// [Leases] give each user one worker at a time, in all processes:
//
//	leases, err := coord.NewLeases(store, coord.LeaseOptions{Lifetime: 10 * time.Second, MaxLifetime: time.Hour})
//	err = coord.Run(ctx, leases, "ada", func(ctx context.Context) error { … })
//
// [Run] fails with a [DeniedError] if the lease is held; [Leases.Wait] waits for it. The context of
// the work ends before the lease does in the store, by this machine's clock. So no two workers
// believe at the same moment that they hold the lease, as long as both clocks run at about the same
// speed and the store loses nothing. A worker that is paused between a check of its context and a
// write, and a failover of Redis, need more: the fencing number ([Lease.Number]), which the target
// of the write has to check. See docs/coord.md. Leases are those of Gray and Cheriton (SOSP 1989), the
// fencing number is the sequencer of Burrows' Chubby (OSDI 2006).
//
// Package memstore has a store for one process and for tests; redisstore has one that processes
// share; storetest tests implementations.
//
// The package is not a queue: callers wait in order within a process only, and it does not remember
// work. It does not limit rates; see package ratelimit and its Throttle.
package coord
