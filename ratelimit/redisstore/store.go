package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// ErrForeign means that a counter's name in Redis is taken by something else, which is
// left as it is. It comes with [ratelimit.ErrStore].
var ErrForeign = errors.New("redisstore: the key holds something that is not this counter")

// Options configure a [Store]. The zero value is usable.
type Options struct {
	// Prefix begins the names of all keys. It must not have braces in it, which would
	// take part in a Cluster's choice of slots. Default: "ratelimit:".
	Prefix string
	// Timeout bounds a call, a connection's dialling included, whatever the client's
	// own timeouts. Default: 250 ms.
	Timeout time.Duration
	// Joined is how many decisions of one moment may be one script call, while which Redis
	// does nothing else: with 1, each is a call of its own, which costs Redis and this
	// process several times as much. Lower it where others on the same Redis are to wait
	// for less than a fifth of a millisecond. Default: 128.
	Joined int
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "ratelimit:"
	}
	if o.Joined == 0 {
		o.Joined = 128
	}
	return o
}

func (o Options) check() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("redisstore: Options.Prefix is %q, want no braces", o.Prefix)
	case o.Timeout < 0:
		return fmt.Errorf("redisstore: Options.Timeout is %v, want at least 0", o.Timeout)
	case o.Joined < 0:
		return fmt.Errorf("redisstore: Options.Joined is %d, want at least 0", o.Joined)
	}
	return nil
}

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use, has no goroutine
// of its own and needs no closing.
type Store struct {
	pipe    *redispipe.Pipe
	prefix  string
	joined  int
	clock   func() time.Time // instead of the server's, in tests
	rules   rules
	scripts map[string]*redispipe.Script
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
	pipe, err := redispipe.For(client, redispipe.Options{Timeout: o.Timeout, Joined: o.Joined})
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return &Store{pipe: pipe, prefix: o.Prefix, joined: o.Joined, scripts: scripts}, nil
}

// Do runs ops as [ratelimit.Store] says. Groups on different keys are sent together, and
// run in any order; one on a key that has come before, unless both are takes by one rule,
// waits until those are answered. Its errors are those of [ratelimit.Validate],
// [ratelimit.ErrOverflow], the cause of ctx's end, and what wraps [ratelimit.ErrStore].
// With an error, any of the groups may have been charged.
func (s *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := validate(ctx, ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	if err := s.run(ctx, ops, out); err != nil {
		return nil, err
	}
	return out, nil
}

// run runs all groups of ops.
func (s *Store) run(ctx context.Context, ops []ratelimit.Op, out []ratelimit.Result) error {
	w := s.newWave()
	for i, group := range ratelimit.Groups(ops) {
		if len(group) == len(ops) {
			return s.group(ctx, ops, out)
		}
		if w.add(i, group, out[i:i+len(group)]) {
			continue
		}
		if err := w.run(ctx); err != nil {
			return err
		}
		w = s.newWave()
		w.add(i, group, out[i:i+len(group)])
	}
	return w.run(ctx)
}

// DoOne is Do with a list of one.
func (s *Store) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	ops, out := [1]ratelimit.Op{op}, [1]ratelimit.Result{}
	if err := validate(ctx, ops[:]); err != nil {
		return ratelimit.Result{}, err
	}
	err := s.group(ctx, ops[:], out[:])
	return out[0], err
}

func validate(ctx context.Context, ops []ratelimit.Op) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return ratelimit.Validate(ops)
}

// group runs one atomic group of ops.
func (s *Store) group(ctx context.Context, ops []ratelimit.Op, out []ratelimit.Result) error {
	if listed(ops) {
		taken, err := s.take(ctx, &ops[0])
		if err == nil {
			out[0] = taken.result(0)
		}
		return err
	}
	c, err := s.call(ops)
	if err != nil {
		return err
	}
	reply, err := s.pipe.Run(ctx, c)
	if err != nil {
		return failure(ctx, err)
	}
	return results(reply.Ints, c.Keys, ops, out)
}

// take does a take by a rule without a block.
func (s *Store) take(ctx context.Context, op *ratelimit.Op) (series, error) {
	t := s.tell(op.Rule)
	key := s.key(op.Key, t.counter)
	c := redispipe.Call{Script: s.scripts[t.takes], Head: t.head, Keys: []string{key}}
	if op.N > 1 {
		c.Mode, c.Numbers = 1, []int64{op.N}
	}
	reply, err := s.pipe.Run(ctx, c)
	if err != nil {
		return series{}, failure(ctx, err)
	}
	return t.series(reply.Text, op.N, key)
}

// failure tells the end of ctx and an absent Redis apart.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", ratelimit.ErrStore, err)
}
