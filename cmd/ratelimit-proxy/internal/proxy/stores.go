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

// store holds the counters. Generations with the same settings share a store, so that a reload keeps counters,
// connections and the state of an outage.
type store struct {
	settings storeSettings
	base     ratelimit.Store
	users    atomic.Int64 // number of generations that use the store

	// The fields below are set only with Redis.
	client     *redis.Client
	outage     *outage
	wrongTypes throttledLog
	layers     map[string]*layer.Store // layers around base, by on_error
}

// storeSettings holds the settings that determine a store.
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

// minCounterBytes is smaller than any counter in memory. The bound on keys is computed with it, so that the bound on
// bytes is always reached first.
const minCounterBytes = 32

// openStore returns the store for a configuration. It returns before, the previous store, if the settings are the
// same. The caller must release the result. before may be nil.
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
	o.DialerRetries = 1 // retries would take longer than a request waits, and hide the cause
	s.client = redis.NewClient(o)
	inner, err := redisstore.New(s.client, redisstore.Options{Timeout: max(c.RedisTimeout, 250*time.Millisecond)})
	if err == nil {
		s.outage = &outage{log: p.log, lost: "Redis fails: the rules' on_error applies", back: "Redis works again"}
		s.base = ratelimit.Observe(inner, s.reportOutage)
		err = s.openLayers()
	}
	if err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// release ends the use of the store by one generation. After the last one, it closes the store.
func (s *store) release() error {
	if s.users.Add(-1) > 0 || s.client == nil {
		return nil
	}
	return s.client.Close()
}

// pingOp reads a counter that no rule uses.
var pingOp = ratelimit.Op{Rule: ratelimit.PerMinute(1), Key: "ping", N: 1, Kind: ratelimit.Peek}

// PingRedis calls Redis once, with the commands and the timeout of a request. If that fails, the log shows the outage
// before the first request.
func (p *Proxy) PingRedis(ctx context.Context) {
	g := p.acquireGeneration()
	if g == nil {
		return
	}
	defer g.release()
	if g.store.client != nil {
		_, _ = g.store.base.DoOne(ctx, pingOp) // the store reports errors to its outage
	}
}

// isRedisDown reports whether the last call of Redis has failed.
func (s *store) isRedisDown() bool { return s.outage != nil && s.outage.failing.Load() }

func (s *store) openLayers() (err error) {
	s.layers = map[string]*layer.Store{}
	for onError, mode := range map[string]layer.Mode{config.Open: layer.Open, config.Closed: layer.Closed, config.Local: layer.Local} {
		if s.layers[onError], err = layer.New(s.base, layer.Options{
			DenyCache: &layer.DenyCacheOptions{},
			Failover: &layer.FailoverOptions{
				Mode: mode, Replicas: s.settings.replicas, Timeout: s.settings.timeout,
				Logger: slog.New(slog.DiscardHandler), // store.outage logs instead
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// limitStore returns the store for the rules of a generation, with its layers.
func (g *generation) limitStore() (ratelimit.Store, error) {
	store := g.store.base
	if g.store.client != nil {
		store = failoverStore{g}
	}
	if !slices.ContainsFunc(g.rules, func(r *rule) bool { return r.Shadow }) {
		return store, nil
	}
	return layer.New(ratelimit.Observe(store, g.reportShadow), layer.Options{Shadow: &layer.ShadowOptions{
		Match: func(op ratelimit.Op) bool { return g.ruleOfOp(op).Shadow },
	}})
}

// failoverStore passes each call to the layers for the rule's on_error. All ops of a call belong to the same rule.
type failoverStore struct{ g *generation }

// Do implements [ratelimit.Store].
func (s failoverStore) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	onError := s.g.ruleOfOp(ops[0]).OnError
	out, err := s.g.store.layers[onError].Do(ctx, ops)
	for i := range out {
		hideQuota(onError, &out[i])
	}
	return out, err
}

// DoOne implements [ratelimit.Store].
func (s failoverStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	onError := s.g.ruleOfOp(op).OnError
	res, err := s.g.store.layers[onError].DoOne(ctx, op)
	hideQuota(onError, &res)
	return res, err
}

// hideQuota marks a result of an open rule as unenforced if Redis is down. The quota is then unknown and must not be
// shown.
func hideQuota(onError string, res *ratelimit.Result) {
	if onError == config.Open && res.Source == ratelimit.FromFailover {
		res.Source = ratelimit.FromShadow
	}
}

// reportShadow counts a request that a shadow rule would have denied. It logs at most one such request per rule and
// second, because clients could fill the log.
func (g *generation) reportShadow(ctx context.Context, e ratelimit.Event) {
	r := g.ruleOfOp(e.Op)
	if !r.Shadow || e.Op.Kind != ratelimit.Take || e.Result.Allowed {
		return
	}
	if e.Err != nil {
		r.counters.failed.Inc()
		return
	}
	now := g.p.now()
	n := g.p.denials.increment(e.Op.Key, e.Result.ResetAfter, now)
	r.counters.shadowDenied.Inc()
	g.p.metrics.observeDenials(r.counters, n)
	if last := r.logged.Load(); now.Unix() != last && r.logged.CompareAndSwap(last, now.Unix()) {
		g.p.log.InfoContext(ctx, "a shadow rule would have denied a request",
			slog.String("rule", r.Name), slog.String("key", e.Op.Key), slog.Int64("denials", n))
	}
}

// reportOutage reports a success or a failure of Redis to the outage.
func (s *store) reportOutage(ctx context.Context, e ratelimit.Event) {
	switch err := e.Err; {
	case err == nil:
		s.outage.callSucceeded()
	case ctx.Err() == context.Canceled: // the client has left
	case errors.Is(err, ratelimit.ErrKeyType):
		s.outage.callSucceeded()
		s.wrongTypes.write(s.outage.log, slog.LevelError, "a key in Redis has an unexpected type: the rule's on_error applies",
			slog.String("error", err.Error()))
	case errors.Is(err, context.DeadlineExceeded):
		s.outage.callFailed(fmt.Errorf("no answer within %v: %w", s.settings.timeout, err))
	case errors.Is(err, ratelimit.ErrStore):
		s.outage.callFailed(err)
	}
}
