package proxy

import (
	"bufio"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sample is a line of /metrics.
type sample struct {
	name, labels string
	value        float64
}

// scrape reads /metrics as Prometheus does, and checks that it is in its format.
func (r *running) scrape(tb testing.TB) []sample {
	tb.Helper()
	rec := httptest.NewRecorder()
	r.Admin().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(tb, 200, rec.Code)
	return parseMetrics(tb, rec.Body)
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"(?:, ?)?)*)\})? ([^ ]+)$`)
	leLabel    = regexp.MustCompile(`,?le="([^"]*)"`)
)

func parseMetrics(tb testing.TB, text io.Reader) (out []sample) {
	tb.Helper()
	types, helped, seen := map[string]string{}, map[string]bool{}, map[string]bool{}
	family, done := "", map[string]bool{}
	buckets, bounds, counts := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for lines := bufio.NewScanner(text); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "# ") {
			fields := strings.SplitN(line, " ", 4)
			require.Len(tb, fields, 4, line)
			name := fields[2]
			if name != family {
				require.False(tb, done[name], "the lines of %s stand together", name)
				family, done[name] = name, true
			}
			switch fields[1] {
			case "HELP":
				require.False(tb, helped[name], "two HELP of %s", name)
				helped[name] = true
			case "TYPE":
				require.Empty(tb, types[name], "two TYPE of %s", name)
				require.Contains(tb, []string{"counter", "gauge", "histogram", "summary"}, fields[3])
				types[name] = fields[3]
			default:
				require.Fail(tb, line)
			}
			continue
		}
		parts := sampleLine.FindStringSubmatch(line)
		require.NotNil(tb, parts, "%q is no sample", line)
		value, err := strconv.ParseFloat(parts[3], 64)
		require.NoError(tb, err, line)
		s := sample{parts[1], parts[2], value}
		require.False(tb, seen[s.name+"{"+s.labels], "%s is there twice", line)
		seen[s.name+"{"+s.labels] = true
		out = append(out, s)

		base, suffix := s.name, ""
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if before, ok := strings.CutSuffix(s.name, end); ok && (types[before] == "histogram" || types[before] == "summary" && end != "_bucket") {
				base, suffix = before, end
			}
		}
		require.Equal(tb, family, base, "%s stands behind its HELP and TYPE", line)
		require.NotEmpty(tb, types[base], line)
		require.True(tb, helped[base], line)
		if types[base] == "counter" {
			require.True(tb, strings.HasSuffix(base, "_total"), line)
			require.GreaterOrEqual(tb, value, 0.0)
		}
		if types[base] != "histogram" {
			continue
		}
		of := base + "{" + leLabel.ReplaceAllString(s.labels, "")
		switch suffix {
		case "_bucket":
			le, err := strconv.ParseFloat(leLabel.FindStringSubmatch(s.labels)[1], 64)
			require.NoError(tb, err, line)
			if had, ok := bounds[of]; ok {
				require.Greater(tb, le, had, line)
			}
			require.GreaterOrEqual(tb, value, buckets[of], "cumulative: %s", line)
			bounds[of], buckets[of] = le, value
		case "_count":
			counts[of] = value
		case "_sum":
		default:
			require.Fail(tb, "no part of a histogram", line)
		}
	}
	for of, le := range bounds {
		require.True(tb, math.IsInf(le, 1), "%s ends with +Inf", of)
		require.Contains(tb, counts, of)
		require.Equal(tb, buckets[of], counts[of], of)
	}
	return out
}

// value returns a sample's value.
func value(tb testing.TB, samples []sample, name, labels string) float64 {
	tb.Helper()
	for _, s := range samples {
		if s.name == name && s.labels == labels {
			return s.value
		}
	}
	require.Fail(tb, "there is no "+name+"{"+labels+"}")
	return 0
}

func TestMetricsFormat(t *testing.T) {
	up := behind(t, nil)
	c := parse(t, "upstreams: {main: {url: %q}, 'other \"ä\\': {url: %q}}\nroutes: [{upstream: main}]\nrules: [{name: limit, limit: 2/60s}, {name: limit_two, limit: 5/60s, deny: [x]}]\n", up.URL, up.URL)
	p := run(t, c)
	p.scrape(t)
	for range 3 {
		p.get(t, "/")
	}
	p.get(t, "/", "Authorization", "x")
	require.NoError(t, p.reload(c))
	samples := p.scrape(t)
	require.Equal(t, 2.0, value(t, samples, "ratelimit_proxy_decisions_total", `rule="limit",decision="allowed"`))
	require.Equal(t, 0.0, value(t, samples, "ratelimit_proxy_responses_total", `upstream="other \"ä\\",status="2xx"`))
}

func TestLatencies(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- struct{}{}
			<-answer
		}
	})
	p := run(t, parse(t, "upstreams: {main: {url: %q}}\nrules: [{name: limit, limit: 3/60s}]\n", up.URL))
	for range 5 { // two of which are denied
		p.get(t, "/")
	}
	const requests, upstream = "ratelimit_proxy_request_duration_seconds", "ratelimit_proxy_upstream_duration_seconds"
	require.Eventually(t, func() bool { // a request is counted after its response was sent
		return value(t, p.scrape(t), requests+"_count", "") == 5
	}, 20*time.Second, time.Millisecond)
	samples := p.scrape(t)
	require.Equal(t, 3.0, value(t, samples, upstream+"_count", `upstream="main"`))
	sum := value(t, samples, requests+"_sum", "")
	require.Positive(t, value(t, samples, upstream+"_sum", `upstream="main"`))
	require.LessOrEqual(t, value(t, samples, upstream+"_sum", `upstream="main"`), sum)
	require.Equal(t, 5.0, value(t, samples, requests+"_bucket", `le="+Inf"`))
	require.Equal(t, 0.0, value(t, samples, "ratelimit_proxy_requests_in_flight", ""))

	p = run(t, parse(t, "upstreams: {main: {url: %q}}\n", up.URL))
	ended := make(chan struct{})
	go func() {
		p.ask(t, "GET", "/slow", nil)
		close(ended)
	}()
	<-asked
	require.Equal(t, 1.0, value(t, p.scrape(t), "ratelimit_proxy_requests_in_flight", ""))
	close(answer)
	<-ended
	require.Eventually(t, func() bool {
		return value(t, p.scrape(t), "ratelimit_proxy_requests_in_flight", "") == 0
	}, 20*time.Second, time.Millisecond)

	// An aborted request is no longer in flight.
	up.Close()
	ask, err := http.NewRequest("GET", "/", nil)
	require.NoError(t, err)
	p.ServeHTTP(httptest.NewRecorder(), ask)
	require.Equal(t, 0.0, value(t, p.scrape(t), "ratelimit_proxy_requests_in_flight", ""))
}

func TestHistogram(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{0, 500 * time.Microsecond, 501 * time.Microsecond, 10 * time.Second, time.Minute} {
		h.observe(d)
	}
	var out strings.Builder
	out.WriteString("# HELP x X.\n# TYPE x histogram\n")
	h.write(&out, "x", `a="b"`)
	samples := parseMetrics(t, strings.NewReader(out.String()))
	for le, want := range map[string]float64{"0.0005": 2, "0.001": 3, "5": 3, "10": 4, "+Inf": 5} {
		require.Equal(t, want, value(t, samples, "x_bucket", `a="b",le="`+le+`"`), le)
	}
	require.Equal(t, 5.0, value(t, samples, "x_count", `a="b"`))
	require.InDelta(t, 70.001001, value(t, samples, "x_sum", `a="b"`), 1e-9)
}

func TestProcessMetrics(t *testing.T) {
	samples := run(t, limited(t, behind(t, nil).URL, "1/s")).scrape(t)
	require.Positive(t, value(t, samples, "process_cpu_seconds_total", ""))
	require.Positive(t, value(t, samples, "go_goroutines", ""))
	if runtime.GOOS != "linux" {
		return
	}
	open, limit := value(t, samples, "process_open_fds", ""), value(t, samples, "process_max_fds", "")
	had, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	require.InDelta(t, float64(len(had)), open, 20)
	require.Greater(t, limit, open)
}
