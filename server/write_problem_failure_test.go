package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func TestWriteProblemThatFails(t *testing.T) {
	const taken = `{"status":409,"title":"Conflict","detail":"Taken."}`
	for name, tt := range map[string]struct {
		write  func(w http.ResponseWriter, r *http.Request, p *server.Problem)
		status int
		want   string
		logged any // the panic
	}{
		"panic": {
			write: func(w http.ResponseWriter, _ *http.Request, p *server.Problem) {
				w.Header().Set("Location", "/")
				w.WriteHeader(http.StatusSeeOther)
				fmt.Fprint(w, "half")
				p.Detail = "Changed."
				panic("boom")
			},
			status: 409, want: taken, logged: "boom",
		},
		"no such status": {
			write:  func(w http.ResponseWriter, _ *http.Request, _ *server.Problem) { w.WriteHeader(0) },
			status: 409, want: taken, logged: "server: WriteHeader with status 0",
		},
		"nothing": {
			write:  func(http.ResponseWriter, *http.Request, *server.Problem) {},
			status: 409, want: taken,
		},
		"only informational": {
			write: func(w http.ResponseWriter, _ *http.Request, _ *server.Problem) {
				w.WriteHeader(http.StatusEarlyHints)
			},
			status: 409, want: taken,
		},
		"only changes": {
			write: func(w http.ResponseWriter, _ *http.Request, p *server.Problem) {
				w.Header().Set("Content-Type", "text/html")
				p.Status, p.Title, p.Detail, p.Members = 410, "Gone for good", "", map[string]any{"id": 7}
			},
			status: 410, want: `{"status":410,"title":"Gone for good","id":7}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			srv, l := newServer(t, server.Options{WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
				calls++
				tt.write(w, r, p)
			}})
			provideMark(srv)
			problem := server.Errorf(409, "Taken.")
			srv.HandleFunc("GET /", marked(func(http.ResponseWriter, *server.Request) error { return problem }))
			url, c := listen(t, srv)
			for range 2 { // nothing is left of the first
				res, err := request(t, c, "GET", url)
				require.NoError(t, err)
				requireProblem(t, tt.status, tt.want, res)
				require.Empty(t, res.Header["Location"])
				require.Equal(t, "1", res.Header.Get("X-Mark"))
			}
			require.Equal(t, 2, calls)
			require.Equal(t, server.Errorf(409, "Taken."), problem)
			if tt.logged == nil {
				require.Empty(t, l.at(""))
				return
			}
			require.Len(t, l.at("ERROR"), 2)
			require.Equal(t, tt.logged, l.at("ERROR")[0]["panic"])
			require.Contains(t, l.at("ERROR")[0]["stack"], "TestWriteProblemThatFails")
		})
	}
}

func TestWriteProblemIsCalledAgainAfterAFailedCommit(t *testing.T) {
	var statuses []int
	var late error
	b := inMemory(t)
	broken := &brokenSessions{Store: b.sessions}
	broken.broken.Store(true)
	srv, l := newServer(t, server.Options{
		Session: plainCookies.Session, SessionStore: broken,
		WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
			statuses = append(statuses, p.Status)
			late = visits.Add(r.Context(), 1)
			http.SetCookie(w, &http.Cookie{Name: "own", Value: fmt.Sprint(p.Status)})
			writePage(w, r, p)
		},
	})
	srv.HandleFunc("GET /error", func(http.ResponseWriter, *server.Request) error { return server.Errorf(401, "Log in.") })
	srv.HandleFunc("GET /written", func(w http.ResponseWriter, req *server.Request) error {
		return errors.Join(visits.Add(req.Context(), 1), ignoreError(writeText(w, "body")))
	})
	for path, want := range map[string][]int{"/error": {401, 503}, "/written": {503}} {
		statuses, l.lines = nil, nil
		res := ask(srv, "GET", path)
		require.Equal(t, want, statuses)
		require.Equal(t, 503, res.StatusCode)
		require.Equal(t, "503, Session unavailable, The server could not save the session. Try again.", res.body)
		require.Equal(t, []string{"own=503"}, res.Header["Set-Cookie"], "neither the session's nor that of the first page")
		require.ErrorIs(t, late, reqctx.ErrCommitted)
		require.Contains(t, l.only(t)["error"], errSave.Error())
	}
}

func ignoreError(error) error { return nil }

// If WriteProblem calls WriteError, the rest of its output is dropped. The first failure is logged once, and so is
// another error that WriteProblem passes.
func TestWriteProblemThatCallsWriteError(t *testing.T) {
	other := errors.New("the template has a fault")
	for name, tt := range map[string]struct {
		failed, written error // written is that of WriteError; nil means the problem
		want            string
		status          int
		logged          []string
	}{
		"the problem":       {server.Errorf(409, "Taken."), nil, `{"status":409,"title":"Conflict","detail":"Taken."}`, 409, nil},
		"a failure":         {errSave, nil, internalError, 500, []string{errSave.Error()}},
		"another":           {server.Errorf(409, "Taken."), server.Errorf(410, ""), `{"status":410,"title":"Gone"}`, 410, nil},
		"a failure instead": {server.Errorf(409, "Taken."), other, internalError, 500, []string{other.Error()}},
		"two failures":      {errSave, other, internalError, 500, []string{errSave.Error(), other.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			srv, l := newServer(t, server.Options{WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
				calls++
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, "half a page")
				if tt.written != nil {
					server.WriteError(w, r, tt.written)
				} else {
					server.WriteError(passer{w}, r, p)
				}
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "the other half")
			}})
			provideMark(srv)
			srv.HandleFunc("GET /", marked(func(http.ResponseWriter, *server.Request) error { return tt.failed }))
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			requireProblem(t, tt.status, tt.want, res)
			require.Equal(t, "1", res.Header.Get("X-Mark"))
			require.Equal(t, 1, calls)
			require.Len(t, l.at(""), len(tt.logged))
			for i, text := range tt.logged {
				require.Equal(t, text, l.at("ERROR")[i]["error"])
			}
		})
	}
}

// If a middleware answers while the WriteProblem of an abandoned handler calls WriteError, the middleware's response
// is not cut off.
func TestWriteErrorInWriteProblemOfAnAbandonedHandler(t *testing.T) {
	for name, other := range map[string]error{"the problem": nil, "another": errSave} {
		t.Run(name, func(t *testing.T) {
			begun, answered, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			o := &watcher{}
			srv, _ := newServer(t, server.Options{Observers: []server.Observer{o}, WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
				close(begun)
				<-answered
				if other != nil {
					server.WriteError(w, r, other)
					return
				}
				server.WriteError(w, r, p)
			}})
			srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				go func() {
					defer close(ended)
					next.ServeHTTP(httptest.NewRecorder(), r)
				}()
				<-begun
				_ = writeText(w, "too slow")
				close(answered)
				<-ended
			}))
			srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return server.Errorf(410, "") })
			require.Equal(t, "too slow", ask(srv, "GET", "/").body)
			require.False(t, o.last(t).CutOff)
		})
	}
}

// After a panic, nothing is committed, even if WriteProblem writes to the session.
func TestWriteProblemAfterAPanic(t *testing.T) {
	srv, l := newServer(t, server.Options{
		Session: plainCookies.Session,
		WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
			if err := visits.Add(r.Context(), 1); err != nil {
				panic(err)
			}
			writePage(w, r, p)
		},
	})
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { panic("boom") })
	res := ask(srv, "GET", "/")
	require.Equal(t, "500, Internal Server Error, ", res.body)
	require.Empty(t, res.Cookies())
	l.only(t)
}

// While WriteProblem writes the middleware's error, an abandoned handler fails, too. Its error does not call
// WriteProblem.
func TestWriteProblemRunsOnceAtATime(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	srv, _ := newServer(t, server.Options{WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
		close(begun)
		<-over
		writePage(w, r, p)
	}})
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		go func() {
			defer close(over)
			<-begun
			next.ServeHTTP(rec, r)
		}()
		server.WriteError(w, r, server.Errorf(409, "Taken."))
		require.JSONEq(t, `{"status":410,"title":"Gone"}`, rec.Body.String(), "to a writer of the middleware's")
	}))
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return server.Errorf(410, "") })
	require.Equal(t, "409, Conflict, Taken.", ask(srv, "GET", "/").body)
}

// If WriteProblem ends the goroutine after a panic, the connection is cut and the request is finished.
func TestWriteProblemThatExitsAfterAPanic(t *testing.T) {
	for protocol, listen := range protocols {
		t.Run(protocol, func(t *testing.T) {
			o := &watcher{}
			srv, _ := newServer(t, server.Options{
				Observers:    []server.Observer{o},
				WriteProblem: func(http.ResponseWriter, *http.Request, *server.Problem) { exit() },
			})
			closed := make(chan struct{})
			srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
				req.OnClose(func() error { close(closed); return nil })
				panic("boom")
			})
			url, c := listen(t, srv)
			_, err := request(t, c, "GET", url)
			require.Error(t, err)
			<-closed
			seen := o.last(t)
			require.True(t, seen.CutOff)
			require.ErrorAs(t, seen.Err, new(*lazy.PanicError))
		})
	}
}

// A panic is still reported as a panic if WriteProblem answers it with WriteError.
func TestObserverOfAnErrorInWriteProblem(t *testing.T) {
	for path, want := range map[string]any{"/panic": new(*lazy.PanicError), "/elsewhere": nil} {
		o := &watcher{}
		srv, _ := newServer(t, server.Options{
			Observers:    []server.Observer{o},
			WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) { server.WriteError(w, r, p) },
		})
		srv.HandleFunc("GET /panic", func(http.ResponseWriter, *server.Request) error { panic("boom") })
		ask(srv, "GET", path)
		if seen := o.last(t); want != nil {
			require.ErrorAs(t, seen.Err, want)
		} else {
			require.NoError(t, seen.Err)
		}
	}
}
