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
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "ratelimit:"
	}
	return o
}

func (o Options) check() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("redisstore: Options.Prefix is %q, want no braces", o.Prefix)
	case o.Timeout < 0:
		return fmt.Errorf("redisstore: Options.Timeout is %v, want at least 0", o.Timeout)
	}
	return nil
}

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use, has no goroutine
// of its own and needs no closing.
type Store struct {
	pipe    *redispipe.Pipe
	prefix  string
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
	pipe, err := redispipe.For(client, redispipe.Options{Timeout: o.Timeout})
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	return &Store{pipe: pipe, prefix: o.Prefix, scripts: scripts}, nil
}

// Do runs ops as [ratelimit.Store] says: each group is one script call, and the next
// begins when it is answered. Its errors are those of [ratelimit.Validate],
// [ratelimit.ErrOverflow], the cause of ctx's end, and what wraps [ratelimit.ErrStore].
// A call that failed by the end of ctx or of the time may have been charged.
func (s *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := validate(ctx, ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	for i, group := range ratelimit.Groups(ops) {
		if err := s.group(ctx, group, out[i:i+len(group)]); err != nil {
			return nil, err
		}
	}
	return out, nil
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

// failure tells the end of ctx and an absent Redis apart.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", ratelimit.ErrStore, err)
}
