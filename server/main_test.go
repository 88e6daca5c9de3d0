package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newServer returns a server, and what it logs.
func newServer(tb testing.TB, o server.Options) (*server.Server, *logs) {
	tb.Helper()
	l := &logs{}
	o.Logger = l.logger()
	srv, err := server.New(o)
	require.NoError(tb, err)
	return srv, l
}

// logs keeps what a server logs.
type logs struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logs) Write(p []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return len(p), nil
}

// at returns the lines of a level, or of all for "".
func (l *logs) at(level string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for _, line := range l.lines {
		if level == "" || line["level"] == level {
			found = append(found, line)
		}
	}
	return found
}

// only returns the one error that was logged.
func (l *logs) only(tb testing.TB) map[string]any {
	tb.Helper()
	lines := l.at("ERROR")
	require.Len(tb, lines, 1)
	return lines[0]
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

// ask sends a request to h without a connection.
func ask(h http.Handler, method, target string) answer {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, target, nil))
	return answer{rec.Result(), rec.Body.String()}
}

// request sends one over a connection.
func request(tb testing.TB, c *http.Client, method, url string) (answer, error) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, nil)
	if err != nil {
		return answer{}, err
	}
	res, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body)}, err
}

// complaints is for what net/http logs: the gate leaves it nothing to log.
type complaints struct{ testing.TB }

func (c complaints) Write(p []byte) (int, error) {
	c.Errorf("net/http: %s", p)
	return len(p), nil
}

// listen serves h on real connections until the test ends.
func listen(tb testing.TB, h http.Handler) (url string, c *http.Client) {
	tb.Helper()
	return protocols["HTTP/1"](tb, h)
}

// listenItself serves srv on a listener of its own until the test ends.
func listenItself(tb testing.TB, srv *server.Server) (url string, c *http.Client) {
	tb.Helper()
	l, err := graceful.Listen("127.0.0.1:0") // as ListenAndServe does
	require.NoError(tb, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	transport := &http.Transport{}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(tb, srv.Close())
		require.ErrorIs(tb, <-served, http.ErrServerClosed)
	})
	return "http://" + l.Addr().String(), &http.Client{Transport: transport}
}

// protocols serve as listen does.
var protocols = map[string]func(tb testing.TB, h http.Handler) (url string, c *http.Client){
	"HTTP/1": func(tb testing.TB, h http.Handler) (string, *http.Client) {
		return started(tb, h, (*httptest.Server).Start)
	},
	"HTTP/2": func(tb testing.TB, h http.Handler) (string, *http.Client) {
		return started(tb, h, func(ts *httptest.Server) { ts.EnableHTTP2 = true; ts.StartTLS() })
	},
}

func started(tb testing.TB, h http.Handler, start func(*httptest.Server)) (url string, c *http.Client) {
	tb.Helper()
	ts := httptest.NewUnstartedServer(h)
	ts.Config.ErrorLog = log.New(complaints{tb}, "", 0)
	start(ts)
	tb.Cleanup(ts.Close)
	ts.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return ts.URL, ts.Client()
}

// requireProblem checks that a response is nothing but a problem.
func requireProblem(tb testing.TB, status int, members string, res answer) {
	tb.Helper()
	require.Equal(tb, status, res.StatusCode)
	require.Equal(tb, "application/problem+json", res.Header.Get("Content-Type"))
	require.JSONEq(tb, members, res.body)
	require.EqualValues(tb, len(res.body), res.ContentLength)
}

// mark is a property that leaves a line in the header when it is committed.
var mark = reqctx.NewKey[string]("mark")

func provideMark(srv *server.Server) {
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "1", nil },
		Commit: func(_ context.Context, v string, _ int, h http.Header) error {
			h.Add("X-Mark", v)
			return nil
		},
	})
}

// marked makes h read the property first.
func marked(h server.HandlerFunc) server.HandlerFunc {
	return func(w http.ResponseWriter, req *server.Request) error {
		if _, err := mark.Get(req.Context()); err != nil {
			return err
		}
		return h(w, req)
	}
}

// pipes is a listener without sockets, for bubbles of synctest.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	close sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), over: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close.Do(func() { close(p.over) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve runs srv on pipes. The end of the test must have shut it down.
func serve(t *testing.T, srv *server.Server) (*pipes, *http.Client) {
	t.Helper()
	p := newPipes()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(p) }()
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return p, &http.Client{Transport: transport}
}

// concurrently runs fn n times at once and waits.
func concurrently(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}
