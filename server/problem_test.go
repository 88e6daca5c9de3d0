package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// teller is an error whose method Problem determines the response.
type teller struct {
	status  int
	members map[string]any
}

func (e *teller) Error() string                  { return "told" }
func (e *teller) Problem() (int, map[string]any) { return e.status, e.members }

func TestProblemOfError(t *testing.T) {
	secret := errors.New("password=hunter2")
	for name, tt := range map[string]struct {
		err    error
		status int
		want   string
		logged bool
	}{
		"Errorf": {server.Errorf(404, "No %s.", "fish"), 404, `{"status":404,"title":"Not Found","detail":"No fish."}`, false},
		"every member": {
			&server.Problem{
				Status: 402, Type: "https://x/credit", Title: "No credit", Detail: "30 more.", Instance: "/orders/7",
				Members: map[string]any{"balance": 30, "status": 200}, Err: secret,
			},
			402, `{"status":402,"type":"https://x/credit","title":"No credit","detail":"30 more.","instance":"/orders/7","balance":30}`, false,
		},
		"wrapped":         {fmt.Errorf("on the way: %w", server.Errorf(409, "Taken.")), 409, `{"status":409,"title":"Conflict","detail":"Taken."}`, false},
		"zero":            {&server.Problem{Err: secret}, 500, `{"status":500,"title":"Internal Server Error"}`, true},
		"no error status": {server.Errorf(204, "?"), 500, `{"status":500,"title":"Internal Server Error"}`, true},
		"Errorf of 500":   {server.Errorf(503, "%w", secret), 503, `{"status":503,"title":"Service Unavailable"}`, true},
		"no JSON": {
			&server.Problem{Status: 422, Detail: "x", Members: map[string]any{"f": func() {}}},
			422, `{"status":422,"title":"Unprocessable Entity","detail":"x"}`, false,
		},
		"told": {&teller{418, map[string]any{"tea": true}}, 418, `{"status":418,"title":"I'm a teapot","tea":true}`, false},
		"params": {
			&params.Error{Name: "n", Source: params.SourceQuery, Reason: params.ErrMalformed, Detail: "must be a whole number"},
			400, `{"status":400,"title":"Bad Request","detail":"query parameter \"n\" must be a whole number",
				"errors":[{"parameter":"n","source":"query","detail":"must be a whole number"}]}`, false,
		},
		"session": {
			fmt.Errorf("x: %w", &session.Error{Action: "load", Err: secret}),
			503, `{"status":503,"title":"Session unavailable","detail":"The server could not load the session. Try again."}`, true,
		},
		"ratelimit denied": {
			&ratelimit.DeniedError{Policies: []string{"p"}, Limit: 1, RetryAfter: 1500 * time.Millisecond},
			429, `{"status":429,"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded",
				"detail":"Too many requests. Try again in 2 seconds.","violated-policies":["p"]}`, false,
		},
		"ratelimit down": {
			fmt.Errorf("%w: %w", ratelimit.ErrStore, secret),
			503, `{"status":503,"title":"Rate limit unavailable","detail":"The rate limit could not be checked. Try again later."}`, true,
		},
		"property timeout": {&reqctx.TimeoutError{Name: "slow", After: time.Second}, 503, `{"status":503,"title":"Service Unavailable"}`, true},
		"body too large": {
			fmt.Errorf("x: %w", &http.MaxBytesError{Limit: 10}),
			413, `{"status":413,"title":"Request Entity Too Large","detail":"The body may have at most 10 bytes."}`, false,
		},
		"deadline": {fmt.Errorf("x: %w", context.DeadlineExceeded), 503, `{"status":503,"title":"Service Unavailable"}`, true},
		"unknown":  {secret, 500, `{"status":500,"title":"Internal Server Error"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			srv.HandleFunc("POST /path", func(w http.ResponseWriter, _ *server.Request) error {
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("WWW-Authenticate", "Basic")
				return tt.err
			})
			res := ask(srv, "POST", "/path")
			requireProblem(t, tt.status, tt.want, res)
			require.Empty(t, res.Header.Get("Content-Encoding"))
			require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
			require.Equal(t, "Basic", res.Header.Get("WWW-Authenticate"), "what the handler says otherwise is kept")
			if !tt.logged {
				require.Empty(t, l.at(""))
				return
			}
			line := l.only(t)
			require.Equal(t, "POST", line["method"])
			require.Equal(t, "/path", line["path"])
			require.Equal(t, tt.err.Error(), line["error"])
		})
	}
}

// A handler may return a nil *Problem, which is not an error.
func TestNilProblem(t *testing.T) {
	var p *server.Problem
	require.Nil(t, server.ProblemOf(p))
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return p })
	srv.HandleFunc("GET /error", func(w http.ResponseWriter, req *server.Request) error {
		server.WriteError(w, req.Request, p)
		return nil
	})
	require.Equal(t, 200, ask(srv, "GET", "/").StatusCode)
	require.Equal(t, 200, ask(srv, "GET", "/error").StatusCode)
	rec := httptest.NewRecorder()
	server.WriteError(rec, httptest.NewRequest("GET", "/", nil), p)
	require.Empty(t, rec.Body.String())
}

// ProblemOf returns the contents of the error's response, in fields that the caller may change.
func TestProblemOf(t *testing.T) {
	require.Nil(t, server.ProblemOf(nil))
	own := &server.Problem{
		Status: 409, Detail: "Taken.", Members: map[string]any{"id": 7, "title": "In use", "instance": nil},
		Header: http.Header{"Link": {"</help>"}}, Err: io.EOF,
	}
	for name, tt := range map[string]struct {
		err  error
		want server.Problem
	}{
		"its own": {fmt.Errorf("x: %w", own), server.Problem{
			Status: 409, Title: "In use", Detail: "Taken.", Members: map[string]any{"id": 7, "instance": nil},
			Header: http.Header{"Link": {"</help>"}}, Err: io.EOF,
		}},
		"told": {&teller{418, map[string]any{"detail": "Tea.", "type": "https://x/tea", "instance": "/pot", "title": "T", "n": 1}}, server.Problem{
			Status: 418, Type: "https://x/tea", Title: "T", Detail: "Tea.", Instance: "/pot", Members: map[string]any{"n": 1},
		}},
		"unknown":   {io.EOF, server.Problem{Status: 500, Title: "Internal Server Error"}},
		"no status": {&server.Problem{Status: 200, Err: io.EOF}, server.Problem{Status: 500, Title: "Internal Server Error", Err: io.EOF}},
		"denied": {&ratelimit.DeniedError{Policies: []string{"p"}, RetryAfter: time.Second}, server.Problem{
			Status: 429, Type: "https://iana.org/assignments/http-problem-types#quota-exceeded", Title: "Quota exceeded",
			Detail: "Too many requests. Try again in 1 second.", Members: map[string]any{"violated-policies": []string{"p"}},
		}},
	} {
		p := server.ProblemOf(tt.err)
		if tt.want.Err == nil {
			tt.want.Err = tt.err
		}
		if tt.want.Header == nil {
			tt.want.Header = http.Header{}
		}
		require.Equal(t, tt.want, *p, name)
	}
	p := server.ProblemOf(own)
	p.Detail, p.Members["id"], p.Header["Link"][0] = "x", 8, "x"
	require.Equal(t, "Taken.", own.Detail)
	require.Equal(t, 7, own.Members["id"])
	require.Equal(t, "</help>", own.Header.Get("Link"))
}

func TestProblemHeader(t *testing.T) {
	unauthorized := &server.Problem{Status: 401, Header: http.Header{
		"WWW-Authenticate": {"Bearer", `Basic realm="x"`}, "Content-Language": {"en"}, "X-Mark": {"0"},
	}}
	for name, o := range map[string]server.Options{
		"problem+json": {},
		"WriteProblem": {WriteProblem: writePage},
		"nothing written": {WriteProblem: func(_ http.ResponseWriter, _ *http.Request, p *server.Problem) {
			p.Header["Content-Language"] = []string{"de"}
		}},
	} {
		srv, _ := newServer(t, o)
		provideMark(srv)
		srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error {
			w.Header().Set("WWW-Authenticate", "Digest")
			w.Header().Set("Content-Language", "fr")
			return unauthorized
		}))
		h := ask(srv, "GET", "/").Header
		require.Equal(t, []string{"Bearer", `Basic realm="x"`}, h["Www-Authenticate"], name)
		require.Equal(t, []string{"0", "1"}, h["X-Mark"], "before the commit")
		require.Equal(t, name == "nothing written", h.Get("Content-Language") == "de")
	}
	require.Equal(t, []string{"en"}, unauthorized.Header["Content-Language"])
	rec := httptest.NewRecorder()
	server.WriteError(rec, httptest.NewRequest("GET", "/", nil), unauthorized)
	require.Equal(t, "Bearer", rec.Header().Get("WWW-Authenticate"), "without a server")
}

func TestProblemIsAnError(t *testing.T) {
	p := &server.Problem{Status: 409, Detail: "Taken.", Err: io.EOF}
	require.ErrorIs(t, p, io.EOF)
	require.Equal(t, "409 Conflict: Taken: EOF", p.Error())
	require.Equal(t, "500 Internal Server Error", new(server.Problem).Error())
	wrapped := server.Errorf(409, "%w, and taken", io.EOF)
	require.ErrorIs(t, wrapped, io.EOF)
	require.Equal(t, "409 Conflict: EOF, and taken", wrapped.Error())
	require.Equal(t, "500 Internal Server Error: EOF", server.Errorf(500, "%w", io.EOF).Error())
}

// The same problem may be the response to many requests.
func TestProblemIsNotChangedBySending(t *testing.T) {
	shared := &server.Problem{Status: 404, Members: map[string]any{"a": 1}}
	told := &teller{400, map[string]any{"a": 1}}
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("GET /shared", func(http.ResponseWriter, *server.Request) error { return shared })
	srv.HandleFunc("GET /told", func(http.ResponseWriter, *server.Request) error { return told })
	concurrently(8, func(int) {
		_ = ask(srv, "GET", "/shared")
		_ = ask(srv, "GET", "/told")
	})
	require.Equal(t, &server.Problem{Status: 404, Members: map[string]any{"a": 1}}, shared)
	require.Equal(t, map[string]any{"a": 1}, told.members)
}

// A failure after the client has gone is not logged as an error.
func TestDisconnectedClientIsNoError(t *testing.T) {
	for name, h := range map[string]func(w http.ResponseWriter, req *server.Request) error{
		"before the header": func(_ http.ResponseWriter, req *server.Request) error { return context.Cause(req.Context()) },
		"after the header": func(w http.ResponseWriter, req *server.Request) error {
			_, err := w.Write(bytes.Repeat([]byte("x"), 1<<20))
			return errors.Join(err, req.Context().Err())
		},
		"in the commit": marked(func(http.ResponseWriter, *server.Request) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
				Resolve: func(context.Context) (string, error) { return "", nil },
				Commit:  func(ctx context.Context, _ string, _ int, _ http.Header) error { return ctx.Err() },
			})
			began, done := make(chan struct{}), make(chan struct{})
			srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
				req.OnClose(func() error { close(done); return nil })
				_ = marked(func(http.ResponseWriter, *server.Request) error { return nil })(w, req)
				close(began)
				<-req.Context().Done()
				return h(w, req)
			})
			url, c := listen(t, srv)
			leave(t, c, httptest.NewRequest("GET", url, nil), began)
			<-done
			require.Empty(t, l.at("ERROR"))
			require.NotEmpty(t, l.at("DEBUG"))
		})
	}
}
