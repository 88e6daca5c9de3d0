package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// metricSet is the proxy's metrics. Their labels are names from the configuration and
// statuses, never what a client sends.
type metricSet struct {
	set *metrics.Set // its names are in help

	denials   sync.Mutex // held to change a gauge of denials
	inFlight  atomic.Int64
	requests  histogram
	upstreams sync.Map // *histogram by the upstream's label
}

// metricLabel returns a label whose value is from the configuration.
func metricLabel(name, value string) string {
	return name + `="` + escapes.Replace(strings.ToValidUTF8(value, "?")) + `"`
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// upstreamHistogram returns the histogram of an upstream's response times.
func (c *metricSet) upstreamHistogram(name string) *histogram {
	h, _ := c.upstreams.LoadOrStore(metricLabel("upstream", name), new(histogram))
	return h.(*histogram)
}

// ruleCounters are the metrics of one rule.
type ruleCounters struct {
	allowed, denied, shadowDenied, refused, failed *metrics.Counter

	maxDenials *metrics.Gauge
}

func newMetricSet(p *Proxy) *metricSet {
	c := &metricSet{set: metrics.NewSet()}
	c.set.NewGauge("ratelimit_proxy_denied_keys", func() float64 { return float64(p.denials.size()) })
	c.set.NewGauge("ratelimit_proxy_requests_in_flight", func() float64 { return float64(c.inFlight.Load()) })
	c.set.NewGauge("ratelimit_proxy_store_down", func() float64 {
		if g := p.current.Load(); g != nil && g.store.isRedisDown() {
			return 1
		}
		return 0
	})
	return c
}

func (c *metricSet) ruleCountersFor(name string) *ruleCounters {
	decision := func(kind string) *metrics.Counter {
		return c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_decisions_total{rule=%q,decision=%q}", name, kind))
	}
	return &ruleCounters{
		allowed: decision("allowed"), denied: decision("denied"), failed: decision("error"),
		refused:      decision("refused"),
		shadowDenied: decision("shadow_denied"), // which are allowed as well
		maxDenials:   c.set.GetOrCreateGauge(fmt.Sprintf("ratelimit_proxy_max_consecutive_denials{rule=%q}", name), nil),
	}
}

// countError counts a request without a decision: it is invalid, or the store has failed.
func (r *ruleCounters) countError(err error) {
	var cost *costError
	if errors.Is(err, ratelimit.ErrNoKey) || errors.Is(err, ratelimit.ErrTooLarge) || errors.As(err, &cost) {
		r.refused.Inc()
	} else {
		r.failed.Inc()
	}
}

// observeDenials keeps the largest number of denials in a row.
func (c *metricSet) observeDenials(rule *ruleCounters, n int64) {
	c.denials.Lock()
	defer c.denials.Unlock()
	rule.maxDenials.Set(max(rule.maxDenials.Get(), float64(n)))
}

// responseCounters returns the counters of an upstream's responses, by the status's first digit less 1.
func (c *metricSet) responseCounters(upstream string) (out [5]*metrics.Counter) {
	for i := range out {
		out[i] = c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_responses_total{%s,status=\"%dxx\"}", metricLabel("upstream", upstream), i+1))
	}
	return out
}

func (c *metricSet) countListed(rule, list string) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_listed_total{rule=%q,list=%q}", rule, list)).Inc()
}

// countUpstreamFailure counts a request that an upstream has not answered, by the status that the
// client got, or a response that broke off, as "cut".
func (c *metricSet) countUpstreamFailure(name, status string) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_upstream_failures_total{%s,status=%q}", metricLabel("upstream", name), status)).Inc()
}

func (c *metricSet) countReload(ok bool) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_reloads_total{ok=%q}", strconv.FormatBool(ok))).Inc()
}

// help is the type and the HELP of each metric.
var help = map[string][2]string{
	"ratelimit_proxy_decisions_total":         {"counter", "Decisions about requests, by rule."},
	"ratelimit_proxy_max_consecutive_denials": {"gauge", "Largest number of consecutive denials of a key of the rule."},
	"ratelimit_proxy_denied_keys":             {"gauge", "Keys whose latest request was denied, up to 16384."},
	"ratelimit_proxy_listed_total":            {"counter", "Requests that the allow or the deny list of a rule has decided."},
	"ratelimit_proxy_responses_total":         {"counter", "Responses of an upstream by the first digit of their status."},
	"ratelimit_proxy_upstream_failures_total": {"counter", "Requests that an upstream did not answer, or not to the end."},
	"ratelimit_proxy_store_down":              {"gauge", "1 while Redis does not answer, as of the latest request."},
	"ratelimit_proxy_reloads_total":           {"counter", "Reloads of the configuration, by success."},
	"ratelimit_proxy_requests_in_flight":      {"gauge", "Requests and websockets in flight."},
	requestTimes:                              {"histogram", "Time from the beginning of a request to the end of its response."},
	upstreamTimes:                             {"histogram", "Time from forwarding a request to the header of the response."},
}

const (
	requestTimes  = "ratelimit_proxy_request_duration_seconds"
	upstreamTimes = "ratelimit_proxy_upstream_duration_seconds"
)

// write writes the metrics in the text format of Prometheus.
func (c *metricSet) write(w io.Writer) {
	var all bytes.Buffer
	c.set.WritePrometheus(&all) // sorted, so that the samples of a metric are adjacent
	metrics.WriteProcessMetrics(&all)
	metrics.WriteFDMetrics(&all)
	previous := ""
	for line := range bytes.Lines(all.Bytes()) {
		name := string(line[:bytes.IndexAny(line, "{ ")])
		if strings.HasSuffix(name, "_bucket") { // of the Go runtime, without a sum and a count
			continue
		}
		if family := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); strings.HasSuffix(previous, "_seconds") && family == previous {
			name = previous // a part of a summary
		}
		if name != previous {
			writeHelp(w, name)
			previous = name
		}
		_, _ = w.Write(line)
	}
	writeHelp(w, requestTimes)
	c.requests.write(w, requestTimes, "")
	writeHelp(w, upstreamTimes)
	c.upstreams.Range(func(label, h any) bool {
		h.(*histogram).write(w, upstreamTimes, label.(string))
		return true
	})
}

// writeHelp writes what precedes the samples of a metric.
func writeHelp(w io.Writer, name string) {
	about, ours := help[name]
	switch {
	case ours:
	case name == "go_gc_duration_seconds":
		about = [2]string{"summary", "Pauses of the garbage collector."}
	case strings.HasSuffix(name, "_total"):
		about = [2]string{"counter", "Reported by the Go runtime or the operating system."}
	default:
		about = [2]string{"gauge", "Reported by the Go runtime or the operating system."}
	}
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, about[1], name, about[0])
}
