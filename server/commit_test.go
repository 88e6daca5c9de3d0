package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// A Commit function gets the status that the response will have if no Commit function fails.
func TestCommitGetsTheStatus(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	var got []int
	outcome := reqctx.NewKey[int]("outcome")
	reqctx.Provide(srv.Registry(), outcome, reqctx.Prop[int]{
		Resolve: func(context.Context) (int, error) { return 1, nil },
		Commit:  func(_ context.Context, _, status int, _ http.Header) error { got = append(got, status); return nil },
	})
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		_, err := outcome.Get(r.Context())
		require.NoError(t, err)
		if r.URL.Query().Has("wrapped") {
			w = passer{w}
		}
		next.ServeHTTP(w, r)
	}))
	status := func(codes ...int) server.HandlerFunc {
		return func(w http.ResponseWriter, _ *server.Request) error {
			for _, code := range codes {
				w.WriteHeader(code)
			}
			return nil
		}
	}
	for path, h := range map[string]server.HandlerFunc{
		"/nothing": status(),
		"/written": func(w http.ResponseWriter, _ *server.Request) error { _, err := w.Write([]byte("x")); return err },
		"/created": status(http.StatusCreated),
		"/early":   status(http.StatusEarlyHints, http.StatusNoContent),
		"/twice":   status(http.StatusAccepted, http.StatusTeapot),
		"/error":   func(http.ResponseWriter, *server.Request) error { return server.Errorf(http.StatusConflict, "no") },
		"/fault":   func(http.ResponseWriter, *server.Request) error { return errors.New("no") },
		"/hijack": func(w http.ResponseWriter, _ *server.Request) error {
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		},
		"/panic": func(http.ResponseWriter, *server.Request) error { panic("no") },
	} {
		srv.HandleFunc("GET "+path, h)
	}
	for path, want := range map[string][]int{
		"/nothing": {200}, "/written": {200}, "/created": {201}, "/early": {204}, "/twice": {202},
		"/error": {409}, "/fault": {500}, "/hijack": {101}, "/panic": nil, "/unknown": {404},
	} {
		for _, target := range []string{path, path + "?wrapped"} {
			got = nil
			srv.ServeHTTP(hijackable{httptest.NewRecorder()}, httptest.NewRequest("GET", target, nil))
			require.Equal(t, want, got, target)
		}
	}
}

var errSave = errors.New("the disk is full")

// unsaved provides a property whose Commit function sets a cookie and then fails.
func unsaved(srv *server.Server, err error) {
	provide(srv, func(h http.Header) error { h.Add("Set-Cookie", "promise=1"); return err }, nil)
}

func TestFailedCommitIsOneCleanProblem(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			unsaved(srv, errSave)
			srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, req *server.Request) error {
				for _, h := range []string{"Content-Encoding", "ETag", "Content-Range", "Cache-Control", "Last-Modified", "Trailer"} {
					w.Header().Set(h, "x")
				}
				w.Header().Set("Content-Length", "999")
				w.Header().Set("Set-Cookie", "mine=1")
				w.Header().Set("X-Kept", "yes")
				err := way(w)
				switch name {
				case "return", "a problem":
					return err
				case "204", "304", "404", "redirect", "http.ServeFile":
					_, err = w.Write([]byte("more"))
					require.Error(t, err)
				default:
					require.Error(t, err)
				}
				w.WriteHeader(http.StatusAccepted)
				return err
			}))
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			requireProblem(t, 500, `{"status":500,"title":"Internal Server Error"}`, res)
			for _, h := range []string{"Set-Cookie", "Content-Encoding", "ETag", "Content-Range", "Cache-Control", "Last-Modified", "Trailer", "Location"} {
				require.Empty(t, res.Header.Values(h), h)
			}
			require.Equal(t, "yes", res.Header.Get("X-Kept"))
			require.Contains(t, l.only(t)["error"], errSave.Error())
			require.Contains(t, l.only(t)["error"], `"mark"`)
			require.Empty(t, l.at("WARN"), "there was no second header")
		})
	}
}

func TestFailedCommitRefusesTheHijack(t *testing.T) {
	for want, write := range map[string]func(http.ResponseWriter, *http.Request, *server.Problem){
		`{"status":500,"title":"Internal Server Error"}` + "\n": nil, "500, Internal Server Error, ": writePage,
	} {
		srv, l := newServer(t, server.Options{WriteProblem: write})
		unsaved(srv, errSave)
		srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error {
			_, _, err := w.(http.Hijacker).Hijack()
			require.ErrorIs(t, err, errSave)
			_, _, again := w.(http.Hijacker).Hijack()
			require.Error(t, again)
			return err
		}))
		url, c := listen(t, srv)
		res, err := request(t, c, "GET", url)
		require.NoError(t, err)
		require.Equal(t, want, res.body)
		require.Equal(t, 500, res.StatusCode)
		require.Empty(t, res.Cookies())
		l.only(t)
	}
}

// A failed commit is a failure of the server, unless it is a conflict. The status in its error is ignored.
func TestFailedCommitIsAServerError(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"503 stays": {&session.Error{Action: "save", Err: errSave}, 503, `{"status":503,"title":"Session unavailable","detail":"The server could not save the session. Try again."}`},
		"409 stays": {&session.Error{Action: "save", Err: session.ErrGone}, 409,
			`{"status":409,"title":"Session ended","detail":"The session ended or was renewed while this request ran. The changes of this request were not saved."}`},
		"403 becomes": {&server.Problem{Status: 403}, 500, `{"status":500,"title":"Internal Server Error"}`},
		"a problem":   {&server.Problem{Status: 507, Detail: "Full."}, 507, `{"status":507,"title":"Insufficient Storage","detail":"Full."}`},
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			unsaved(srv, tt.err)
			srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error { return nil }))
			res := ask(srv, "GET", "/")
			require.Equal(t, tt.status, res.StatusCode)
			require.JSONEq(t, tt.want, res.body)
		})
	}
}

// If a handler panics because it cannot write, as httputil.ReverseProxy does, the client still gets the complete
// problem.
func TestPanicAfterAFailedCommitLeavesTheProblem(t *testing.T) {
	for _, v := range []any{http.ErrAbortHandler, "must"} {
		srv, _ := newServer(t, server.Options{})
		unsaved(srv, errSave)
		srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error {
			if _, err := io.WriteString(w, "body"); err != nil {
				panic(v)
			}
			return nil
		}))
		url, c := listen(t, srv)
		res, err := request(t, c, "GET", url)
		require.NoError(t, err)
		requireProblem(t, 500, `{"status":500,"title":"Internal Server Error"}`, res)
	}
}

// The session replaces cookies with its own name. Even after a failed commit, the client gets the cookie of the saved
// session.
func TestFailedCommitKeepsACookieThatReplacedTheHandlers(t *testing.T) {
	field := session.NewField[string]("kept")
	srv, l := newServer(t, server.Options{Session: session.Options{Cookie: session.Cookie{Insecure: true}}})
	provide(srv, func(http.Header) error { return errSave }, nil)
	srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, req *server.Request) error {
		for _, line := range []string{"session=a", "other=b", "session=c"} {
			w.Header().Add("Set-Cookie", line)
		}
		return field.Set(req.Context(), "x")
	}))
	res := ask(srv, "GET", "/")
	requireProblem(t, 500, internalError, res)
	require.Len(t, res.Cookies(), 1)
	require.Equal(t, "session", res.Cookies()[0].Name)
	require.Greater(t, len(res.Cookies()[0].Value), 1)
	l.only(t)
}
