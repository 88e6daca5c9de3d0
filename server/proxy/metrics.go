package proxy

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// counters are the proxy's metrics. Their labels are names from the configuration and
// statuses, never what a client sends.
type counters struct {
	set   *metrics.Set
	rules sync.Map // *ruleCounters by name
}

// ruleCounters are one rule's, looked up once.
type ruleCounters struct {
	allowed, denied, shadowed, failed *metrics.Counter
	furthest                          atomic.Int64
}

func newCounters() *counters { return &counters{set: metrics.NewSet()} }

func (c *counters) rule(name string) *ruleCounters {
	if known, ok := c.rules.Load(name); ok {
		return known.(*ruleCounters)
	}
	decision := func(kind string) *metrics.Counter {
		return c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_decisions_total{rule=%q,decision=%q}", name, kind))
	}
	made := &ruleCounters{allowed: decision("allowed"), denied: decision("denied"), shadowed: decision("shadowed"), failed: decision("failed")}
	known, loaded := c.rules.LoadOrStore(name, made)
	if !loaded {
		c.set.NewGauge(fmt.Sprintf("ratelimit_proxy_furthest_beyond{rule=%q}", name), func() float64 { return float64(made.furthest.Load()) })
	}
	return known.(*ruleCounters)
}

// took counts a decision.
func (c *counters) took(rule string, res ratelimit.Result) {
	r := c.rule(rule)
	switch {
	case res.Source == ratelimit.FromShadow:
		r.shadowed.Inc()
	case res.Allowed:
		r.allowed.Inc()
	default:
		r.denied.Inc()
	}
}

// failed counts a decision that could not be made.
func (c *counters) failed(rule string) { c.rule(rule).failed.Inc() }

// wentBeyond keeps the furthest that any key went beyond its limit.
func (c *counters) wentBeyond(rule string, n int64) {
	furthest := &c.rule(rule).furthest
	for {
		had := furthest.Load()
		if n <= had || furthest.CompareAndSwap(had, n) {
			return
		}
	}
}

func (c *counters) listed(rule, list string) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_listed_total{rule=%q,list=%q}", rule, list)).Inc()
}

func (c *counters) upstreamFailed(name string, status int) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_upstream_failures_total{upstream=%q,status=%q}", name, strconv.Itoa(status))).Inc()
}

func (c *counters) reloaded(ok bool) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_reloads_total{ok=%q}", strconv.FormatBool(ok))).Inc()
}

// write writes the metrics as Prometheus reads them.
func (c *counters) write(w io.Writer) {
	c.set.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
}
