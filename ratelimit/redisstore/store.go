package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Options configure a [Store]. The zero value is usable.
type Options struct {
	// Prefix is the beginning of all keys. It must not contain braces, because a Cluster chooses the slot of a key by the
	// text in its first braces. The zero value means "ratelimit:".
	Prefix string
	// Timeout limits the duration of a call, including the wait for a connection, even if the client's timeouts are
	// longer. The zero value means 250 ms.
	Timeout time.Duration
	// BatchSize is the maximum number of keys in a script call, up to 256. Redis runs nothing else during the call, which
	// takes about 0.5 ms for 128 keys, or about 1.5 ms with logs. If it is 1, each key needs its own call, which costs Redis
	// and this process several times as much. It is always 1 on a Cluster. The zero value means 128.
	BatchSize int
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, "ratelimit:")
	o.Timeout = cmp.Or(o.Timeout, 250*time.Millisecond)
	o.BatchSize = cmp.Or(o.BatchSize, 128)
	return o
}

func (o Options) check() error {
	const maxBatchSize = 256
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return option.Errorf("redisstore", "Options.Prefix", "is %q, want no braces", o.Prefix)
	case o.BatchSize < 0 || o.BatchSize > maxBatchSize:
		return option.Errorf("redisstore", "Options.BatchSize", "is %d, want 0 to %d", o.BatchSize, maxBatchSize)
	}
	return option.Duration("redisstore", "Options.Timeout", o.Timeout, 0)
}

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use. It has no goroutine and needs no closing.
type Store struct {
	pipe    *redispipe.Pipe
	prefix  string
	timeout time.Duration
	batch   int
	clock   func() time.Time // used by tests instead of the server's clock
	wall    func() time.Time // this machine's clock
	rules   ruleCache
	scripts scripts
}

var _ ratelimit.Store = (*Store)(nil)

// New returns a store that uses client. The caller closes client after the last call of the store. New does not call Redis.
// It returns an error if an option is out of range.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: no client")
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	pipe, err := redispipe.For(client)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return &Store{pipe: pipe, prefix: o.Prefix, timeout: o.Timeout, batch: o.BatchSize, wall: time.Now, scripts: theScripts}, nil
}

// Do implements [ratelimit.Store]. Groups of ops on different counters run concurrently, in any order. Do returns the
// errors of [storage.Validate], [ratelimit.ErrOverflow], the cause of ctx, and errors that wrap [ratelimit.ErrStore].
// After an error, any of the groups may have been charged.
func (s *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := validate(ctx, ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	deadline := time.Now().Add(s.timeout)
	for _, requests := range s.trips(ops, out) {
		if err := s.run(ctx, requests, deadline); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// trips returns the requests for ops. Their results will be written to out. The requests of a trip can run at the same time,
// because they do not share counters.
func (s *Store) trips(ops []ratelimit.Op, out []ratelimit.Result) (trips [][]request) {
	var requests []request
	busy := make(map[string]bool)
	for i, group := range storage.Groups(ops) {
		r := s.newRequest(group, out[i:i+len(group)])
		if slices.ContainsFunc(r.keys(), func(key string) bool { return busy[key] }) {
			trips = append(trips, requests)
			requests = nil
			clear(busy)
		}
		for _, key := range r.keys() {
			busy[key] = true
		}
		requests = append(requests, r)
	}
	return append(trips, requests)
}

// run runs requests at the same time and returns the first error.
func (s *Store) run(ctx context.Context, requests []request, deadline time.Time) error {
	if len(requests) == 1 {
		reply, err := s.pipe.Run(ctx, time.Until(deadline), requests[0].call)
		return s.decode(ctx, &requests[0], redispipe.Result{Reply: reply, Err: err})
	}
	calls := make([]redispipe.Call, len(requests))
	for i := range requests {
		calls[i] = requests[i].call
	}
	for i, reply := range s.pipe.RunAll(ctx, time.Until(deadline), calls) {
		if err := s.decode(ctx, &requests[i], reply); err != nil {
			return err
		}
	}
	return nil
}

// DoOne is Do for a single op.
func (s *Store) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if err := validate(ctx, []ratelimit.Op{op}); err != nil {
		return ratelimit.Result{}, err
	}
	if sharesCall(&op) {
		return s.runShared(ctx, &op)
	}
	var out [1]ratelimit.Result
	err := s.run(ctx, []request{s.newRequest([]ratelimit.Op{op}, out[:])}, time.Now().Add(s.timeout))
	return out[0], err
}

func validate(ctx context.Context, ops []ratelimit.Op) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return storage.Validate(ops)
}
