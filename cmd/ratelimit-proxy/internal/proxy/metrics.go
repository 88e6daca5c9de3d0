package proxy

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// metricSet contains the metrics of the proxy. Labels are names from the configuration and statuses, never text from
// clients.
type metricSet struct {
	set      *metrics.Set
	inFlight atomic.Int64
	requests *metrics.PrometheusHistogram

	denials sync.Mutex // held to change a maxDenials gauge
}

// metricPrefix begins the names of all metrics.
const metricPrefix = "ratelimit_proxy_"

// durations lists the upper bounds of the histograms' buckets, in seconds.
var durations = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetricSet(p *Proxy) *metricSet {
	metrics.ExposeMetadata(true)
	c := &metricSet{set: metrics.NewSet()}
	c.requests = c.set.NewPrometheusHistogramExt(metricPrefix+"request_duration_seconds", durations)
	c.set.NewGauge(metricPrefix+"denied_keys", func() float64 { return float64(p.denials.size()) })
	c.set.NewGauge(metricPrefix+"requests_in_flight", func() float64 { return float64(c.inFlight.Load()) })
	c.set.NewGauge(metricPrefix+"store_down", func() float64 {
		if g := p.current.Load(); g != nil && g.store.isRedisDown() {
			return 1
		}
		return 0
	})
	return c
}

// counter returns the counter with a name. labels are names and values in turn.
func (c *metricSet) counter(name string, labels ...string) *metrics.Counter {
	return c.set.GetOrCreateCounter(metricName(name, labels...))
}

func metricName(name string, labels ...string) string {
	var list []string
	for i := 0; i < len(labels); i += 2 {
		list = append(list, labels[i]+`="`+escapes.Replace(strings.ToValidUTF8(labels[i+1], "?"))+`"`)
	}
	return metricPrefix + name + "{" + strings.Join(list, ",") + "}"
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// ruleCounters holds the metrics of a rule.
type ruleCounters struct {
	allowed, denied, shadowDenied, refused, failed *metrics.Counter

	maxDenials *metrics.Gauge
}

func (c *metricSet) ruleCountersFor(rule string) *ruleCounters {
	decision := func(kind string) *metrics.Counter {
		return c.counter("decisions_total", "rule", rule, "decision", kind)
	}
	return &ruleCounters{
		allowed: decision("allowed"), denied: decision("denied"), failed: decision("error"), refused: decision("refused"),
		shadowDenied: decision("shadow_denied"), // these requests are also counted as allowed
		maxDenials:   c.set.GetOrCreateGauge(metricName("max_consecutive_denials", "rule", rule), nil),
	}
}

// countError counts a request for which there is no decision, because the request is invalid or the store has failed.
func (r *ruleCounters) countError(err error) {
	var badCost *server.Problem
	if errors.Is(err, ratelimit.ErrNoKey) || errors.Is(err, ratelimit.ErrTooLarge) || errors.As(err, &badCost) {
		r.refused.Inc()
	} else {
		r.failed.Inc()
	}
}

// observeDenials updates the largest number of consecutive denials.
func (c *metricSet) observeDenials(rule *ruleCounters, n int64) {
	c.denials.Lock()
	defer c.denials.Unlock()
	rule.maxDenials.Set(max(rule.maxDenials.Get(), float64(n)))
}

// upstreamMetrics holds the metrics of an upstream.
type upstreamMetrics struct {
	responses [5]*metrics.Counter // index: first digit of the status, minus 1
	times     *metrics.PrometheusHistogram
}

func (c *metricSet) upstreamMetricsFor(upstream string) (m upstreamMetrics) {
	for i := range m.responses {
		m.responses[i] = c.counter("responses_total", "upstream", upstream, "status", strconv.Itoa(i+1)+"xx")
	}
	m.times = c.set.GetOrCreatePrometheusHistogramExt(metricName("upstream_duration_seconds", "upstream", upstream), durations)
	return m
}

// countUpstreamFailure counts a failure of an upstream. status is the status that the client gets, or "cut" if the
// upstream broke off its response.
func (c *metricSet) countUpstreamFailure(upstream, status string) {
	c.counter("upstream_failures_total", "upstream", upstream, "status", status).Inc()
}

// write writes the metrics in the text format of Prometheus.
func (c *metricSet) write(w io.Writer) {
	c.set.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
	metrics.WriteFDMetrics(w)
}
