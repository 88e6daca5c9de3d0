package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
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

// newServer returns a server and its log.
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

// at returns the lines of a level, or all lines if level is "".
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

// only returns the line of the only error in the log.
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

// send sends a request to h without a connection.
func send(h http.Handler, r *http.Request) answer {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return answer{rec.Result(), rec.Body.String()}
}

func ask(h http.Handler, method, target string) answer {
	return send(h, httptest.NewRequest(method, target, nil))
}

// askAs sends a request with a cookie.
func askAs(h http.Handler, cookie *http.Cookie, method, target string) answer {
	r := httptest.NewRequest(method, target, nil)
	r.AddCookie(cookie)
	return send(h, r)
}

// request sends a request over a connection and returns the response.
func request(tb testing.TB, c *http.Client, method, url string) (answer, error) {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, url, nil)
	require.NoError(tb, err)
	return do(c, r)
}

func do(c *http.Client, r *http.Request) (answer, error) {
	res, err := c.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body)}, err
}

// leave sends a request. Its client leaves once the channel when is closed or gets a value.
func leave(t *testing.T, c *http.Client, r *http.Request, when <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-when; cancel() }()
	r = r.WithContext(ctx)
	r.RequestURI = ""
	_, err := c.Do(r)
	require.ErrorIs(t, err, context.Canceled)
}

// complaints is net/http's error log. Each line fails the test, because the gate must prevent all misuse of
// net/http.
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

// listenItself serves srv with its method Serve until the test ends.
func listenItself(tb testing.TB, srv *server.Server) (url string, c *http.Client) {
	tb.Helper()
	l := listenTCP(tb)
	serving(tb, srv, func() error { return srv.Serve(l) })
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	return "http://" + l.Addr().String(), &http.Client{Transport: transport}
}

// h2Server serves srv with its method ServeTLS until the test ends. The client uses HTTP/2.
func h2Server(tb testing.TB, srv *server.Server) (url string, c *http.Client) {
	tb.Helper()
	files := newPEMFiles(tb, newPair(tb, "127.0.0.1"))
	l := listenTCP(tb)
	serving(tb, srv, func() error { return srv.ServeTLS(l, files.cert, files.key) })
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	tb.Cleanup(tr.CloseIdleConnections)
	return "https://" + l.Addr().String(), &http.Client{Transport: tr}
}

// listenTCP returns a listener like that of ListenAndServe. Some tests need TCP because pipes have no addresses,
// buffers and resets.
func listenTCP(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := graceful.Listen("127.0.0.1:0")
	require.NoError(tb, err)
	return l
}

// serving runs serve until the end of the test, which closes srv.
func serving(tb testing.TB, srv *server.Server, serve func() error) {
	tb.Helper()
	served := make(chan error, 1)
	go func() { served <- serve() }()
	tb.Cleanup(func() {
		require.NoError(tb, srv.Close())
		require.ErrorIs(tb, <-served, http.ErrServerClosed)
	})
}

// endings are the methods that end a server.
var endings = map[string]func(*server.Server) error{
	"Shutdown": func(srv *server.Server) error { return srv.Shutdown(context.Background()) },
	"Close":    (*server.Server).Close,
}

// protocols maps a protocol to a function that serves h over it until the test ends.
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

// requireProblem checks that a response contains only a problem.
func requireProblem(tb testing.TB, status int, members string, res answer) {
	tb.Helper()
	require.Equal(tb, status, res.StatusCode)
	require.Equal(tb, "application/problem+json", res.Header.Get("Content-Type"))
	require.JSONEq(tb, members, res.body)
	require.EqualValues(tb, len(res.body), res.ContentLength)
}

// mark is a property whose Commit function adds a header field.
var mark = reqctx.NewKey[string]("mark")

func provideMark(srv *server.Server) {
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "1", nil },
		Commit:  func(_ context.Context, v string, _ int, h http.Header) error { h.Add("X-Mark", v); return nil },
	})
}

// marked returns a handler that reads mark and then calls h.
func marked(h server.HandlerFunc) server.HandlerFunc {
	return func(w http.ResponseWriter, req *server.Request) error {
		if _, err := mark.Get(req.Context()); err != nil {
			return err
		}
		return h(w, req)
	}
}

// pipes is a listener whose connections are made by net.Pipe. Unlike sockets, they work in a synctest bubble.
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

// serve runs srv on pipes. The test must shut srv down before it ends.
func serve(t *testing.T, srv *server.Server) (*pipes, *http.Client) {
	t.Helper()
	p := newPipes()
	serving(t, srv, func() error { return srv.Serve(p) })
	transport := &http.Transport{DialContext: p.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport}
}

// connect returns the client's end of a connection.
func (p *pipes) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := p.dial(t.Context(), "", "")
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// begin returns a connection on which the text was sent.
func (p *pipes) begin(t *testing.T, text string) net.Conn {
	t.Helper()
	conn := p.connect(t)
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

// middleware returns a middleware that calls fn for each request.
func middleware(fn func(next http.Handler, w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fn(next, w, r) })
	}
}

// concurrently runs fn n times at once and waits.
func concurrently(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

// writeText writes values in the format of [fmt.Fprint].
func writeText(w http.ResponseWriter, values ...any) error {
	_, err := fmt.Fprint(w, values...)
	return err
}

// provide provides mark. commit and end may be nil.
func provide(srv *server.Server, commit func(h http.Header) error, end func() error) {
	p := reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return "1", nil }}
	if commit != nil {
		p.Commit = func(_ context.Context, _ string, _ int, h http.Header) error { return commit(h) }
	}
	if end != nil {
		p.Close = func(context.Context, string, error) error { return end() }
	}
	reqctx.Provide(srv.Registry(), mark, p)
}
