// Package coord lets processes that share a Redis agree on who does what: things that are
// done once, and work that one at a time does.
//
// [Tokens] are permissions that succeed exactly once, however many use them at one moment:
//
//	store, err := redisstore.New(client, redisstore.Options{})
//	tokens, err := coord.NewTokens(store)
//	id := coord.NewID()
//	err = tokens.Issue(ctx, id, metadata, 30*time.Second)
//	token, err := tokens.Use(ctx, id, "ada")   // once; then ErrUsed
//
// [Leases] give each user one worker at a time, in all processes:
//
//	leases, err := coord.NewLeases(store, coord.LeaseOptions{Lifetime: 10 * time.Second, MaxLife: time.Hour})
//	err = coord.Run(ctx, leases, "ada", func(ctx context.Context) error { … })
//
// [Run] fails with a [DeniedError] if another has the lease; [Leases.Wait] waits for it.
// The context of the work ends when the lease does, by a clock of this machine that runs
// out earlier than the store's. So two workers never believe at the same moment that they
// hold the lease, as long as both clocks run at about the same speed and the store forgets
// nothing. But a worker that is paused between a look at its context and what it does
// then, or a failover of Redis, is beyond that: for those there is the fencing number
// ([Lease.Number]), which whatever is written to has to check. docs/coord.md says how.
//
// Package memstore has a store for one process and for tests, which needs no Redis; redisstore has
// one that processes share; storetest tests others.
//
// The package is no queue: callers that wait are in order within a process only, and work
// that no caller asks for is not remembered. It does not limit rates: that is package ratelimit,
// whose Throttle says how often something may be asked for.
package coord
