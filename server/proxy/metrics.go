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
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// counters are the proxy's metrics. Their labels are names from the configuration and
// statuses, never what a client sends.
type counters struct {
	set   *metrics.Set // its names are in help
	rules sync.Map     // *ruleCounters by name

	inFlight  atomic.Int64
	requests  histogram
	upstreams sync.Map // *histogram by the upstream's label
}

// label is a label with a value that is from the configuration.
func label(name, value string) string {
	return name + `="` + escapes.Replace(strings.ToValidUTF8(value, "?")) + `"`
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// begin notes a request that is under way until end, which gets the time of its beginning.
func (c *counters) begin() time.Time {
	c.inFlight.Add(1)
	return time.Now()
}

func (c *counters) end(began time.Time) {
	c.inFlight.Add(-1)
	c.requests.observe(time.Since(began))
}

// upstreamTimes returns the histogram of how long an upstream takes to answer.
func (c *counters) upstreamTimes(name string) *histogram {
	h, _ := c.upstreams.LoadOrStore(label("upstream", name), new(histogram))
	return h.(*histogram)
}

// ruleCounters are one rule's, looked up once.
type ruleCounters struct {
	allowed, denied, shadowed, refused, failed *metrics.Counter
	furthest                                   atomic.Int64
}

func newCounters(p *Proxy) *counters {
	c := &counters{set: metrics.NewSet()}
	c.set.NewGauge("ratelimit_proxy_beyond_keys", func() float64 { return float64(p.beyond.size()) })
	c.set.NewGauge("ratelimit_proxy_requests_in_flight", func() float64 { return float64(c.inFlight.Load()) })
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
		refused:  decision("refused"),
		shadowed: decision("shadow_denied"), // and allowed
	}
	known, loaded := c.rules.LoadOrStore(name, made)
	if !loaded {
		c.set.NewGauge(fmt.Sprintf("ratelimit_proxy_furthest_beyond{rule=%q}", name), func() float64 { return float64(made.furthest.Load()) })
	}
	return known.(*ruleCounters)
}

// undecided counts a request that could not be decided about: what is wrong with it, or with
// the store.
func (r *ruleCounters) undecided(err error) {
	var cost *badCost
	if errors.Is(err, ratelimit.ErrNoKey) || errors.Is(err, ratelimit.ErrTooLarge) || errors.As(err, &cost) {
		r.refused.Inc()
	} else {
		r.failed.Inc()
	}
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

// answers returns the counters of an upstream's responses, by the status's first digit less 1.
func (c *counters) answers(upstream string) (out [5]*metrics.Counter) {
	for i := range out {
		out[i] = c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_responses_total{%s,status=\"%dxx\"}", label("upstream", upstream), i+1))
	}
	return out
}

func (c *counters) listed(rule, list string) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_listed_total{rule=%q,list=%q}", rule, list)).Inc()
}

// upstreamFailed counts what an upstream didn't answer by the status that the client got, and
// a response that broke off by "cut".
func (c *counters) upstreamFailed(name, status string) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_upstream_failures_total{%s,status=%q}", label("upstream", name), status)).Inc()
}

func (c *counters) reloaded(ok bool) {
	c.set.GetOrCreateCounter(fmt.Sprintf("ratelimit_proxy_reloads_total{ok=%q}", strconv.FormatBool(ok))).Inc()
}

// help is what stands before the metrics of a name: their type, and what they are.
var help = map[string][2]string{
	"ratelimit_proxy_decisions_total":         {"counter", "Requests by rule and decision."},
	"ratelimit_proxy_furthest_beyond":         {"gauge", "The most denials in a row that any key of the rule has had."},
	"ratelimit_proxy_beyond_keys":             {"gauge", "Keys beyond their limit that are known of."},
	"ratelimit_proxy_listed_total":            {"counter", "Requests by the lists of a rule."},
	"ratelimit_proxy_responses_total":         {"counter", "Responses of an upstream by the first digit of their status."},
	"ratelimit_proxy_upstream_failures_total": {"counter", "Requests that an upstream has not answered, or not to the end."},
	"ratelimit_proxy_store_down":              {"gauge", "Whether the last call of Redis has failed."},
	"ratelimit_proxy_reloads_total":           {"counter", "Times the configuration was read again."},
	"ratelimit_proxy_requests_in_flight":      {"gauge", "Requests and websockets under way."},
	requestTimes:                              {"histogram", "How long requests took, to the end of their response."},
	upstreamTimes:                             {"histogram", "How long upstreams took, to the header of their response."},
}

const (
	requestTimes  = "ratelimit_proxy_request_duration_seconds"
	upstreamTimes = "ratelimit_proxy_upstream_duration_seconds"
)

// write writes the metrics as Prometheus reads them.
func (c *counters) write(w io.Writer) {
	var all bytes.Buffer
	c.set.WritePrometheus(&all) // sorted, so that those of a name stand together
	metrics.WriteProcessMetrics(&all)
	metrics.WriteFDMetrics(&all)
	had := ""
	for line := range bytes.Lines(all.Bytes()) {
		name := string(line[:bytes.IndexAny(line, "{ ")])
		if strings.HasSuffix(name, "_bucket") { // of the Go runtime, without sum and count
			continue
		}
		if family := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); strings.HasSuffix(had, "_seconds") && family == had {
			name = had // a part of a summary
		}
		if name != had {
			describe(w, name)
			had = name
		}
		_, _ = w.Write(line)
	}
	describe(w, requestTimes)
	c.requests.write(w, requestTimes, "")
	describe(w, upstreamTimes)
	c.upstreams.Range(func(label, h any) bool {
		h.(*histogram).write(w, upstreamTimes, label.(string))
		return true
	})
}

// describe writes what stands before the metrics of a name.
func describe(w io.Writer, name string) {
	about, ours := help[name]
	switch {
	case ours:
	case name == "go_gc_duration_seconds":
		about = [2]string{"summary", "Pauses of the garbage collector."}
	case strings.HasSuffix(name, "_total"):
		about = [2]string{"counter", "Of the program."}
	default:
		about = [2]string{"gauge", "Of the program."}
	}
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, about[1], name, about[0])
}
