// Package coord coordinates processes that share a Redis: work that is done once, and work that one worker at a time
// does.
//
// [Tokens] are permissions that succeed exactly once, even with concurrent callers:
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
//	err = leases.Run(ctx, "ada", func(ctx context.Context) error { … })
//
// [Leases.Run] fails with a [DeniedError] if the lease is held; [Leases.Wait] waits for it. By this machine's clock, the
// context of the work ends before the lease does in the store. So no two workers hold the lease at the same time, if both
// clocks run at about the same speed and the store loses nothing. A worker that is paused between a check of its context
// and a write, and a failover of Redis, need more: the target of the write has to check the fencing number
// ([Lease.Number]). See docs/coord.md.
//
// Package memstore has a store for one process and for tests, and redisstore one that processes share. Package storetest
// tests implementations.
//
// The package is not a queue: callers wait in order within a process only, and it does not remember work. It does not
// limit rates; see package ratelimit and its Throttle.
package coord
