package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// store is where the counters are. Configurations with the same settings share it, so that a
// reload doesn't lose counters, connections or what is known of an outage.
type store struct {
	settings storeSettings
	base     ratelimit.Store
	users    atomic.Int64 // generations

	// With Redis only:
	client *redis.Client
	outage *outage
	chains map[string]*chain // by on_error
}

// storeSettings are the settings that make two stores different.
type storeSettings struct {
	redis    string
	timeout  time.Duration
	replicas int
	memory   config.Memory
}

func storeSettingsOf(c *config.Config) storeSettings {
	if c.Redis == "" {
		return storeSettings{memory: c.Memory}
	}
	return storeSettings{redis: c.Redis, timeout: c.RedisTimeout, replicas: c.Replicas}
}

// minCounterBytes is less than any counter takes in memory, so that only bytes bound them.
const minCounterBytes = 32

// openStore returns the store of a configuration, for one user. before is the store of the
// previous one, nil for none.
func (p *Proxy) openStore(c *config.Config, before *store) (*store, error) {
	settings := storeSettingsOf(c)
	if before != nil && before.settings == settings {
		before.users.Add(1)
		return before, nil
	}
	s := &store{settings: settings}
	s.users.Store(1)
	var err error
	if c.Redis == "" {
		size := int64(c.Memory.MaxBytes)
		s.base, err = memstore.New(memstore.Options{MaxBytes: size, MaxKeys: int(size / minCounterBytes), Clock: p.clock})
		return s, err
	}
	o, err := redis.ParseURL(c.Redis)
	if err != nil {
		return nil, err
	}
	o.DialerRetries = 1 // more of them take longer than a request waits, and hide the cause
	s.client = redis.NewClient(o)
	inner, err := redisstore.New(s.client, redisstore.Options{Timeout: max(c.RedisTimeout, 250*time.Millisecond)})
	if err == nil {
		s.outage = &outage{log: p.log, lost: "Redis fails: the rules' on_error applies",
			back: "Redis works again", affected: "requests were limited without Redis"}
		s.base = &observedStore{store: inner, outage: s.outage, timeout: c.RedisTimeout}
		err = s.openChains()
	}
	if err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// release ends one use of the store, and closes it after the last.
func (s *store) release() error {
	if s.users.Add(-1) > 0 || s.client == nil {
		return nil
	}
	s.outage.close()
	return s.client.Close()
}

// isRedisDown reports whether the last call of Redis has failed.
func (s *store) isRedisDown() bool { return s.outage != nil && s.outage.failing.Load() }

// chain answers for the rules of one on_error, with and without Redis.
type chain struct {
	onError string
	outage  *outage
	layers  *layer.Store
}

func (s *store) openChains() error {
	s.chains = map[string]*chain{}
	for onError, mode := range map[string]layer.Mode{config.Open: layer.Open, config.Closed: layer.Closed, config.Local: layer.Local} {
		layers, err := layer.New(s.base, layer.Options{
			DenyCache: &layer.DenyCacheOptions{},
			Failover: &layer.FailoverOptions{
				Mode: mode, Replicas: s.settings.replicas, Timeout: s.settings.timeout,
				Logger: slog.New(slog.DiscardHandler), // the outage is logged once for all chains
			},
		})
		if err != nil {
			return err
		}
		s.chains[onError] = &chain{onError, s.outage, layers}
	}
	return nil
}

// limitStore returns the store for the limits of a generation.
func (g *generation) limitStore() (ratelimit.Store, error) {
	store := g.store.base
	if g.store.client != nil {
		store = chainStore{g}
	}
	if !slices.ContainsFunc(g.rules, func(r *rule) bool { return r.Shadow }) {
		return store, nil
	}
	return layer.New(store, layer.Options{Shadow: &layer.ShadowOptions{
		Match:  func(op ratelimit.Op) bool { return g.ruleOfOp(op).Shadow },
		Report: g.reportShadow,
	}})
}

// chainStore gives each call to the chain of its rule. All ops of a call are of one rule.
type chainStore struct{ g *generation }

// Do implements [ratelimit.Store].
func (s chainStore) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	c := s.chainFor(ops[0])
	out, err := c.layers.Do(ctx, ops)
	c.countUnavailable(ops[0].Kind, err)
	for i := range out {
		c.countFailover(ops[i].Kind, &out[i])
	}
	return out, err
}

// DoOne implements [ratelimit.Store].
func (s chainStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	c := s.chainFor(op)
	res, err := c.layers.DoOne(ctx, op)
	c.countUnavailable(op.Kind, err)
	c.countFailover(op.Kind, &res)
	return res, err
}

func (s chainStore) chainFor(op ratelimit.Op) *chain {
	return s.g.store.chains[s.g.ruleOfOp(op).OnError]
}

// countUnavailable counts a take that failed without Redis.
func (c *chain) countUnavailable(kind ratelimit.Kind, err error) {
	var unavailable *layer.UnavailableError
	if kind == ratelimit.Take && errors.As(err, &unavailable) {
		c.outage.countOutcome(config.Closed)
	}
}

// countFailover counts a take that was answered without Redis. An open rule isn't enforced
// then. Like a shadow rule, it must not show a quota, which is not known.
func (c *chain) countFailover(kind ratelimit.Kind, res *ratelimit.Result) {
	if res.Source != ratelimit.FromFailover {
		return
	}
	outcome := c.onError
	if outcome == config.Local && res.Allowed {
		outcome = "local_allowed"
	} else if outcome == config.Local {
		outcome = "local_denied"
	}
	if kind == ratelimit.Take {
		c.outage.countOutcome(outcome)
	}
	if c.onError == config.Open {
		res.Source = ratelimit.FromShadow
	}
}

// reportShadow counts what a shadow rule would have denied, and logs it once a second at most
// for each rule: clients decide how often it happens.
func (g *generation) reportShadow(ctx context.Context, op ratelimit.Op, res ratelimit.Result, err error) {
	r := g.ruleOfOp(op)
	if err != nil {
		r.counters.failed.Inc()
		return
	}
	now := g.p.now()
	n := g.p.denials.increment(op.Key, res.ResetAfter, now)
	r.counters.shadowDenied.Inc()
	g.p.metrics.observeDenials(r.counters, n)
	if last := r.logged.Load(); now.Unix() != last && r.logged.CompareAndSwap(last, now.Unix()) {
		g.p.log.InfoContext(ctx, "a shadow rule would have denied a request",
			slog.String("rule", r.Name), slog.String("key", op.Key), slog.Int64("denials", n))
	}
}

// observedStore reports to an outage how the calls of a store end.
type observedStore struct {
	store      *redisstore.Store
	outage     *outage
	timeout    time.Duration // of a request's wait
	wrongTypes throttledLog
}

// Do implements [ratelimit.Store].
func (o *observedStore) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	out, err := o.store.Do(ctx, ops)
	o.report(ctx, err)
	return out, err
}

// DoOne implements [ratelimit.Store].
func (o *observedStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	res, err := o.store.DoOne(ctx, op)
	o.report(ctx, err)
	return res, err
}

func (o *observedStore) report(ctx context.Context, err error) {
	switch {
	case err == nil:
		o.outage.callSucceeded()
	case ctx.Err() == context.Canceled: // the client has gone
	case errors.Is(err, ratelimit.ErrKeyType):
		o.outage.callSucceeded()
		o.wrongTypes.write(o.outage.log, slog.LevelError, "a key in Redis has an unexpected type: the rule's on_error applies",
			slog.String("error", err.Error()))
	case errors.Is(err, context.DeadlineExceeded):
		o.outage.callFailed(fmt.Errorf("no answer within %v: %w", o.timeout, err))
	case errors.Is(err, ratelimit.ErrStore):
		o.outage.callFailed(err)
	}
}
