package proxy

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMetrics(t *testing.T) {
	p := run(t, limited(t, behind(t, nil).URL, "2/60s"))
	for range 5 {
		p.get(t, "/", "Authorization", josh)
	}
	m := p.metrics(t, "")
	for _, want := range []string{
		`ratelimit_proxy_decisions_total{rule="limit",decision="allowed"} 2`,
		`ratelimit_proxy_decisions_total{rule="limit",decision="denied"} 3`,
		`ratelimit_proxy_decisions_total{rule="limit",decision="error"} 0`,
		`ratelimit_proxy_max_consecutive_denials{rule="limit"} 3`,
		`ratelimit_proxy_denied_keys 1`,
		`ratelimit_proxy_responses_total{upstream="main",status="2xx"} 2`,
		`ratelimit_proxy_store_down 0`,
		`# TYPE ratelimit_proxy_decisions_total counter`,
		`# TYPE ratelimit_proxy_request_duration_seconds histogram`,
	} {
		require.Contains(t, m, want+"\n")
	}
	require.NotContains(t, m, "am9za")
	require.NotContains(t, m, "0xx")
	require.Regexp(t, `(?m)^process_cpu_seconds_total 0*\.?0*[1-9]`, m)
	require.Regexp(t, `(?m)^process_open_fds [^0]`, m)
	require.Regexp(t, `(?m)^go_goroutines [^0]`, m)
}

// TestMetricsFormat checks that names of upstreams are escaped in labels, and that each metric has one TYPE line
// before its samples.
func TestMetricsFormat(t *testing.T) {
	p := run(t, parse(t, "upstreams: {main: {url: http://a}, 'other \"ä\\': {url: http://a}}\nroutes: [{upstream: main}]\nrules: [{name: limit, limit: 2/60s}]\n"))
	require.Contains(t, p.metrics(t, ""), `ratelimit_proxy_responses_total{upstream="other \"ä\\",status="2xx"} 0`)
	sample := regexp.MustCompile(`^(ratelimit_proxy_[a-z_]+?)(_bucket|_sum|_count)?(\{([a-z]+="([^"\\]|\\.)*",?)+\})? [0-9.e+-]+\n$`)
	typed := map[string]bool{}
	family := ""
	for line := range strings.Lines(p.metrics(t, "")) {
		switch {
		case strings.HasPrefix(line, "# TYPE "):
			family = strings.Fields(line)[2]
			require.False(t, typed[family], line)
			typed[family] = true
		case strings.HasPrefix(line, "ratelimit_proxy_"):
			parts := sample.FindStringSubmatch(line)
			require.NotNil(t, parts, line)
			require.Equal(t, family, parts[1], line)
		}
	}
	require.True(t, typed["ratelimit_proxy_decisions_total"])
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
	has := func(sample string) bool { return strings.Contains(p.metrics(t, ""), "ratelimit_proxy_"+sample+"\n") }
	for range 5 { // two of the requests are denied
		p.get(t, "/")
	}
	require.Eventually(t, func() bool { return has("request_duration_seconds_count 5") }, 20*time.Second, time.Millisecond, "counted after the response")
	require.True(t, has(`upstream_duration_seconds_count{upstream="main"} 3`))
	require.True(t, has(`request_duration_seconds_bucket{le="+Inf"} 5`))
	require.False(t, has("request_duration_seconds_sum 0"))
	require.False(t, has(`upstream_duration_seconds_sum{upstream="main"} 0`))
	require.True(t, has("requests_in_flight 0"))

	p = run(t, parse(t, "upstreams: {main: {url: %q}}\n", up.URL))
	ended := make(chan struct{})
	go func() {
		p.ask(t, "GET", "/slow", nil)
		close(ended)
	}()
	<-asked
	require.True(t, has("requests_in_flight 1"))
	close(answer)
	<-ended
	require.Eventually(t, func() bool { return has("requests_in_flight 0") }, 20*time.Second, time.Millisecond)

	// A request that the upstream doesn't answer also counts as ended.
	up.Close()
	p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	require.True(t, has("requests_in_flight 0"))
}
