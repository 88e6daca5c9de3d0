package redisstore

import (
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
	// Prefix begins the names of all keys. It must not have braces in it, which would
	// take part in a Cluster's choice of slots. Default: "ratelimit:".
	Prefix string
	// Timeout bounds a call from the moment when it is made, whatever the client's own
	// timeouts. Default: 250 ms.
	Timeout time.Duration
	// BatchSize is the largest number of keys whose takes are one script call, while which
	// Redis does nothing else: 128 take about half a millisecond, by logs three times that. With
	// 1, each key is a call of its own, which costs Redis and this process several times as
	// much. At most 256. Default: 128.
	BatchSize int
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "ratelimit:"
	}
	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}
	if o.BatchSize == 0 {
		o.BatchSize = 128
	}
	return o
}

func (o Options) check() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("redisstore: Options.Prefix is %q, want no braces", o.Prefix)
	case o.BatchSize < 0 || o.BatchSize > maxBatchSize:
		return fmt.Errorf("redisstore: Options.BatchSize is %d, want 0 to %d", o.BatchSize, maxBatchSize)
	}
	return option.Duration("redisstore", "Options.Timeout", o.Timeout, 0)
}

// maxBatchSize is how many calls a round trip has at most.
const maxBatchSize = 256

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use, has no goroutine
// of its own and needs no closing.
type Store struct {
	pipe    *redispipe.Pipe
	prefix  string
	timeout time.Duration
	batch   int
	clock   func() time.Time // instead of the server's, in tests
	rules   ruleCache
	scripts scripts
}

var _ ratelimit.Store = (*Store)(nil)

// New returns a store over client, which stays the caller's to close. It does not talk
// to Redis yet. An error names the field that is out of range.
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
	return &Store{pipe: pipe, prefix: o.Prefix, timeout: o.Timeout, batch: o.BatchSize, scripts: theScripts}, nil
}

// Do runs ops as [ratelimit.Store] says. Groups on different counters run at the same time, in any
// order. Its errors are those of [storage.Validate], [ratelimit.ErrOverflow], the cause of
// ctx's end, and what wraps [ratelimit.ErrStore]. With an error, any of the groups may have been
// charged.
func (s *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := validate(ctx, ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	trips, err := s.trips(ops, out)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(s.timeout)
	for _, requests := range trips {
		if err := s.run(ctx, requests, deadline); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// trips returns the requests of ops, and which of them can run at the same time: those of one trip have
// no counter in common. The results go to out.
func (s *Store) trips(ops []ratelimit.Op, out []ratelimit.Result) (trips [][]request, err error) {
	var requests []request
	busy := make(map[string]bool)
	for i, group := range storage.Groups(ops) {
		r, err := s.newRequest(group, out[i:i+len(group)])
		if err != nil {
			return nil, err
		}
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
	return append(trips, requests), nil
}

// run runs requests at once and returns the first error.
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

// DoOne is Do with a list of one.
func (s *Store) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if err := validate(ctx, []ratelimit.Op{op}); err != nil {
		return ratelimit.Result{}, err
	}
	if sharesCall(&op) {
		return s.runShared(ctx, &op)
	}
	var out [1]ratelimit.Result
	r, err := s.newRequest([]ratelimit.Op{op}, out[:])
	if err == nil {
		err = s.run(ctx, []request{r}, time.Now().Add(s.timeout))
	}
	return out[0], err
}

func validate(ctx context.Context, ops []ratelimit.Op) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return storage.Validate(ops)
}
