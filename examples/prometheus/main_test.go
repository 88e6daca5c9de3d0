package main

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/doccheck"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers)) }

var listening = regexp.MustCompile(`Listening on (\S+), metrics on (\S+)\n`)

// start runs the program and returns its addresses.
func start(t *testing.T, redisURL string) (app, metrics string) {
	t.Setenv("REDIS_URL", redisURL)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := run(ctx, []string{"-addr", "127.0.0.1:0", "-metrics", "127.0.0.1:0"}, w)
		_ = w.CloseWithError(err)
		require.NoError(t, err)
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	buf := make([]byte, 300)
	n, err := r.Read(buf)
	require.NoError(t, err)
	found := listening.FindStringSubmatch(string(buf[:n]))
	require.NotNil(t, found, "%s", buf[:n])
	return found[1], found[2]
}

// browser returns a function that sends requests with an API key and keeps cookies, like a browser.
func browser(t *testing.T, key string) func(url string) int {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	return func(url string) int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		require.NoError(t, err)
		r.Header.Set("X-Api-Key", key)
		r.Host = "hostile-host:4711"
		res, err := client.Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
}

// scrape requests the metrics. It returns them by name, and as text.
func scrape(t *testing.T, url string) (map[string]*dto.MetricFamily, string) {
	client := &http.Client{Transport: new(http.Transport), Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Get(url)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, 200, res.StatusCode)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	require.NoError(t, err)
	return families, string(text)
}

// values returns the values of a metric by its labels, which are written as "a=1 b=2". The value of a histogram is
// its count.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		slices.Sort(labels)
		all[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return all
}

func TestScrape(t *testing.T) {
	for name, url := range map[string]string{"memory": "", "redis": "redis://" + testhost.StartRedis(t).Addr} {
		t.Run(name, func(t *testing.T) { testScrape(t, url) })
	}
}

func testScrape(t *testing.T, redisURL string) {
	app, metrics := start(t, redisURL)
	user := browser(t, "hostile-key")
	require.Equal(t, 401, user(app+"/profile"), "without a session")
	require.Equal(t, 200, user(app+"/users/hostile-name"))
	for range 4 {
		require.Equal(t, 200, user(app+"/profile"))
	}
	require.Equal(t, 429, user(app+"/profile"))
	require.Equal(t, 200, user(app+"/fast"))
	require.Equal(t, 404, user(app+"/hostile-path"))

	got, text := scrape(t, metrics)
	require.Equal(t, map[string]float64{
		"outcome=ok property=account":                4,
		"outcome=rejected property=account":          1,
		"outcome=ok property=ratelimit.profile.key":  6,
		"outcome=ok property=ratelimit.profile.take": 6,
		"outcome=ok property=session":                6,
	}, values(got["property_resolutions_total"]))
	require.Equal(t, map[string]float64{
		"outcome=allowed policy=profile rule=60s source=store": 5,
		"outcome=denied policy=profile rule=60s source=store":  1,
	}, values(got["ratelimit_decisions_total"]))
	require.Equal(t, map[string]float64{"policy=profile": 6}, values(got["ratelimit_check_duration_seconds"]))
	require.Equal(t, map[string]float64{
		"property=account": 5, "property=ratelimit.profile.key": 6, "property=ratelimit.profile.take": 6, "property=session": 6,
	}, values(got["property_resolve_duration_seconds"]))
	require.NotContains(t, got, "ratelimit_backend_errors_total")
	require.NotContains(t, got, "request_failures_total")

	routes := map[string]float64{}
	for labels, n := range values(got["http_server_request_duration_seconds"]) {
		route := regexp.MustCompile(`http_route=(\S+)`).FindString(labels)
		status := regexp.MustCompile(`http_response_status_code=(\d+)`).FindString(labels)
		routes[strings.TrimSpace(route+" "+status)] += n
	}
	require.Equal(t, map[string]float64{
		"http_route=/profile http_response_status_code=200": 4, "http_route=/profile http_response_status_code=401": 1,
		"http_route=/profile http_response_status_code=429":      1,
		"http_route=/users/{name} http_response_status_code=200": 1, "http_route=/fast http_response_status_code=200": 1,
		"http_response_status_code=404": 1,
	}, routes)
	require.NotContains(t, text, "hostile", "no key, name, path or host is a label")
	require.NotContains(t, text, "4711")
	if redisURL != "" {
		require.Equal(t, map[string]float64{"": 0}, values(got["ratelimit_backend_down"]))
		require.Contains(t, text, "db_client_connections_", "redisotel's")
	}
}

func TestBadSettings(t *testing.T) {
	require.NoError(t, run(t.Context(), []string{"-help"}, io.Discard))
	require.Error(t, run(t.Context(), []string{"-addr", "nowhere:-1"}, io.Discard))
	t.Setenv("REDIS_URL", "nonsense://")
	require.Error(t, run(t.Context(), nil, io.Discard))
}

// TestDocumentedGo compiles the blocks of docs/observing.md, which need the packages of this module.
func TestDocumentedGo(t *testing.T) { doccheck.Test(t, "../../docs/observing.md") }
