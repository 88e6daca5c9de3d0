package proxy

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"
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

func newCounters(p *Proxy) *counters {
	c := &counters{set: metrics.NewSet()}
	c.set.NewGauge("ratelimit_proxy_beyond_keys", func() float64 { return float64(p.beyond.size()) })
	c.set.NewGauge("ratelimit_proxy_store_down", func() float64 {
		if p.stores.down() {
			return 1
		}
		return 0
	})
	return c
}

func (c *counters) rule(name string) *ruleCounters {
	if known, ok := c.rules.Load(name); ok {
		return known.(*ruleCounters)
	}
	decision := func(kind string) *metrics.Counter {
		return c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_decisions_total{rule=%q,decision=%q}", name, kind))
	}
	made := &ruleCounters{
		allowed: decision("allowed"), denied: decision("denied"), failed: decision("error"),
		shadowed: decision("shadow_denied"), // and allowed
	}
	known, loaded := c.rules.LoadOrStore(name, made)
	if !loaded {
		c.set.NewGauge(fmt.Sprintf("ratelimit_proxy_furthest_beyond{rule=%q}", name), func() float64 { return float64(made.furthest.Load()) })
	}
	return known.(*ruleCounters)
}

// wentBeyond keeps the furthest that any key went beyond its limit.
func (r *ruleCounters) wentBeyond(n int64) {
	for {
		had := r.furthest.Load()
		if n <= had || r.furthest.CompareAndSwap(had, n) {
			return
		}
	}
}

// answers returns the counters of an upstream's responses, by the status's first digit.
func (c *counters) answers(upstream string) (out [6]*metrics.Counter) {
	for i := range out {
		out[i] = c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_responses_total{upstream=%q,status=\"%dxx\"}", upstream, i))
	}
	return out
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
