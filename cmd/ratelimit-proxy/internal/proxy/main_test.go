package proxy

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the parallel tests mostly wait for timeouts, so there can be more than processors
	goleak.VerifyTestMain(m)
}

// parse parses a configuration. If it doesn't say who may read the status, clients on this machine may.
func parse(tb testing.TB, format string, args ...any) config.Config {
	tb.Helper()
	c := parseAlone(tb, format, args...)
	if len(c.Status.Allow) == 0 && c.Status.Token == "" {
		c.Status.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}
	return c
}

// parseAlone parses a configuration and changes nothing.
func parseAlone(tb testing.TB, format string, args ...any) config.Config {
	tb.Helper()
	c, err := config.Parse("proxy.yaml", []byte(fmt.Sprintf(format, args...)))
	require.NoError(tb, err)
	return c
}

// limited returns the same configuration as the flags --upstream and --limit.
func limited(tb testing.TB, upstream, limit string) config.Config {
	return parse(tb, "upstreams: {main: {url: %q}}\nrules: [{name: limit, limit: %s}]\n", upstream, limit)
}

// running is a proxy that is listening, with its log and a client for it.
type running struct {
	*Proxy
	server *Server
	addr   string
	url    string
	log    *logs
	client *http.Client
}

// run starts a proxy, which is stopped at the end of the test.
func run(tb testing.TB, c config.Config) *running { return runAt(tb, c, nil) }

// runAt is like run, but the proxy uses the given clock.
func runAt(tb testing.TB, c config.Config, clock func() time.Time) *running {
	tb.Helper()
	r := &running{log: &logs{}}
	var err error
	r.Proxy, err = newProxy(c, jsonLogger(r.log), clock)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, r.Close()) })
	listener := config.Listener{Address: "127.0.0.1:0"}
	scheme := "http"
	if len(c.Listen) > 0 {
		listener = c.Listen[0]
		if listener.Cert != "" {
			scheme = "https"
		}
	}
	l, err := r.Proxy.Listen(listener)
	require.NoError(tb, err)
	r.server = r.Server()
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.server.Shutdown(ctx)
		require.ErrorIs(tb, <-served, http.ErrServerClosed)
	})
	r.addr = l.Addr().String()
	r.url = scheme + "://" + r.addr
	r.client = newClient(tb)
	return r
}

func newClient(tb testing.TB) *http.Client {
	t := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	tb.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

// get sends a GET request. headers are names and values in turn.
func (r *running) get(tb testing.TB, path string, headers ...string) answer {
	tb.Helper()
	return r.do(tb, http.MethodGet, path, nil, headers...)
}

func (r *running) do(tb testing.TB, method, path string, body io.Reader, headers ...string) answer {
	tb.Helper()
	a := r.ask(tb, method, path, body, headers...)
	require.NotNil(tb, a.Response, "there was an answer")
	return a
}

// ask is like do, but it may be called in any goroutine. After an error, it marks the test as failed and returns.
func (r *running) ask(tb testing.TB, method, path string, body io.Reader, headers ...string) answer {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, r.url+path, body)
	if !assert.NoError(tb, err) {
		return answer{}
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1]) // keeps the spelling of the name
	}
	res, err := r.client.Do(req)
	if !assert.NoError(tb, err) {
		return answer{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	assert.NoError(tb, err)
	return answer{res, string(text)}
}

// reload calls Reload with a configuration.
func (r *running) reload(c config.Config) error {
	return r.Reload(func() (config.Config, error) { return c, nil })
}

// passes reports whether the proxy allows a request.
func (r *running) passes(tb testing.TB, path string, headers ...string) bool {
	tb.Helper()
	a := r.get(tb, path, headers...)
	if a.StatusCode != http.StatusTooManyRequests {
		require.Equal(tb, http.StatusOK, a.StatusCode, a.body)
	}
	return a.StatusCode == http.StatusOK
}

// admits is like passes, but it may be called in any goroutine.
func (r *running) admits(tb testing.TB, path string, headers ...string) bool {
	tb.Helper()
	a := r.ask(tb, http.MethodGet, path, nil, headers...)
	return a.Response != nil && a.StatusCode != http.StatusTooManyRequests && assert.Equal(tb, http.StatusOK, a.StatusCode, a.body)
}

// status asks for the status with the header X-RateLimit-Status. headers are names and values in turn.
func (r *running) status(tb testing.TB, path string, headers ...string) map[string]int64 {
	tb.Helper()
	a := r.get(tb, path, append(headers, "X-RateLimit-Status", "true")...)
	return statusIn(tb, a)
}

func statusIn(tb testing.TB, a answer) (out map[string]int64) {
	tb.Helper()
	require.Equal(tb, http.StatusOK, a.StatusCode, a.body)
	require.Equal(tb, "application/json", a.Header.Get("Content-Type"))
	require.NoError(tb, json.Unmarshal([]byte(a.body), &out))
	return out
}

// metrics returns the lines of /metrics that begin with name.
func (r *running) metrics(tb testing.TB, name string) string {
	tb.Helper()
	rec := httptest.NewRecorder()
	r.Admin().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(tb, 200, rec.Code)
	var out strings.Builder
	for line := range strings.Lines(rec.Body.String()) {
		if strings.HasPrefix(line, name) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// send opens a connection, sends text, and returns everything that the proxy sends until it closes the connection.
func (r *running) send(tb testing.TB, text string) string {
	tb.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(tb, err)
	defer conn.Close()
	require.NoError(tb, conn.SetDeadline(time.Now().Add(20*time.Second)))
	go func() { _, _ = io.WriteString(conn, text) }() // in a goroutine, since the proxy may stop reading
	out, _ := io.ReadAll(conn)                        // the error may be a reset after the response
	return string(out)
}

// backend is an upstream that counts its requests and keeps the last one.
type backend struct {
	*httptest.Server
	n    atomic.Int64
	last atomic.Pointer[http.Request]
}

// behind starts an upstream. If h is nil, it answers "ok".
func behind(tb testing.TB, h http.HandlerFunc) *backend {
	u := &backend{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.n.Add(1)
		u.last.Store(r)
		if h == nil {
			_, _ = io.WriteString(w, "ok")
			return
		}
		h(w, r)
	}))
	tb.Cleanup(u.Close)
	return u
}

func newClock() *storetest.ManualClock {
	return storetest.NewClock(time.Date(2010, 11, 21, 12, 0, 0, 0, time.UTC))
}

func jsonLogger(l *logs) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// logs is a writer that keeps the log of a proxy.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines returns the lines of the log that contain a text.
func (l *logs) lines(with string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}
