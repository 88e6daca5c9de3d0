package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	visits = session.NewCounter("visits")
	seat   = session.NewField[string]("seat").FailOnConflict()
)

// brokenSessions is a store whose saves can be made to fail.
type brokenSessions struct {
	session.Store
	broken atomic.Bool
}

func (b *brokenSessions) Commit(ctx context.Context, d storage.Delta) error {
	if b.broken.Load() {
		return errSave
	}
	return b.Store.Commit(ctx, d)
}

// However the header goes out, the session is saved before it, the cookie is in it
// once, and the response is not to be cached.
func TestEveryWayToRespondSavesTheSessionFirst(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			b := inMemory(t)
			srv, l := newStored(t, b)
			srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
				w.Header().Set("Cache-Control", "public, max-age=60, s-maxage=600")
				if err := req.Session().Set("user", "ada"); err != nil {
					return err
				}
				err := way(w)
				if name != "return" && name != "a problem" {
					require.ErrorContains(t, req.Session().Set("user", "late"), "too late")
				}
				return err
			})
			srv.HandleFunc("GET /user", func(w http.ResponseWriter, req *server.Request) error {
				user, err := req.Session().Get("user")
				if err == nil {
					_, err = fmt.Fprint(w, user)
				}
				return err
			})
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			require.Len(t, res.Header.Values("Set-Cookie"), 1)
			require.Contains(t, res.Header.Get("Vary"), "Cookie")
			if name == "a problem" { // what described the page is gone
				require.Equal(t, "private", res.Header.Get("Cache-Control"))
			} else {
				require.Equal(t, "private, max-age=60", res.Header.Get("Cache-Control"))
			}
			require.Equal(t, "ada", askAs(srv, res.Cookies()[0], "GET", "/user").body)
			require.Empty(t, l.at("ERROR"))
		})
	}
}

func TestSaveThatFailsIsOneCleanProblem(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			b := inMemory(t)
			broken := &brokenSessions{Store: b.sessions}
			broken.broken.Store(true)
			b.sessions = broken
			srv, l := newStored(t, b)
			srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
				if err := req.Session().Set("user", "ada"); err != nil {
					return err
				}
				err := way(w)
				_, _ = io.WriteString(w, "the handler's body")
				return err
			})
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			requireProblem(t, 503, `{"status":503,"title":"Session unavailable","detail":"The server could not save the session. Try again."}`, res)
			require.Empty(t, res.Header.Values("Set-Cookie"))
			require.Contains(t, l.only(t)["error"], errSave.Error())
		})
	}
}

// The cookie that ends the session would not go out either.
func TestInvalidHeaderSavesNothing(t *testing.T) {
	srv, l := newStored(t, inMemory(t))
	srv.HandleFunc("POST /renew", func(w http.ResponseWriter, req *server.Request) error {
		if err := req.Session().Bind("eve"); err != nil {
			return err
		}
		w.WriteHeader(1000)
		return nil
	})
	srv.HandleFunc("GET /there", func(w http.ResponseWriter, req *server.Request) error {
		there, err := req.Session().Exists()
		if err == nil {
			_, err = fmt.Fprint(w, there)
		}
		return err
	})
	cookie := login(t, srv)
	res := askAs(srv, cookie, "POST", "/renew")
	require.Equal(t, http.StatusInternalServerError, res.StatusCode)
	require.Empty(t, res.Cookies())
	require.Equal(t, "true", askAs(srv, cookie, "GET", "/there").body)
	require.Len(t, l.at("ERROR"), 1)
}

func TestHijackSavesTheSessionFirst(t *testing.T) {
	b := inMemory(t)
	srv, _ := newStored(t, b)
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		if err := req.Session().Set("user", "ada"); err != nil {
			return err
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		require.Error(t, req.Session().Set("user", "late"))
		_, _ = io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\n")
		_ = w.Header().Write(rw)
		_, _ = io.WriteString(rw, "\r\n")
		return rw.Flush()
	})
	url, _ := listen(t, srv)
	_, in := raw(t, url)
	_, err := in.ReadString('\n')
	require.NoError(t, err)
	h, err := textproto.NewReader(bufio.NewReader(in)).ReadMIMEHeader()
	require.NoError(t, err)
	require.Len(t, h.Values("Set-Cookie"), 1)
}

// Of requests that all have loaded the same seat, one gets it, and the others are told
// to look again; nothing of that is the server's failure.
func TestConflictIsA409(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{"memory": inMemory, "redis": onRedis} {
		t.Run(name, func(t *testing.T) {
			const n = 10
			srv, l := newStored(t, open(t))
			var loaded sync.WaitGroup
			loaded.Add(n)
			srv.HandleFunc("POST /seat", func(w http.ResponseWriter, req *server.Request) error {
				_, err := seat.Get(req.Context())
				loaded.Done()
				loaded.Wait()
				return errors.Join(err, seat.Set(req.Context(), req.URL.RawQuery), visits.Add(req.Context(), 1))
			})
			srv.HandleFunc("GET /visits", func(w http.ResponseWriter, req *server.Request) error {
				v, err := visits.Get(req.Context())
				fmt.Fprint(w, v)
				return err
			})
			cookie := login(t, srv)
			var ok, conflicts atomic.Int64
			concurrently(n, func(i int) {
				switch res := askAs(srv, cookie, "POST", fmt.Sprint("/seat?", i)); res.StatusCode {
				case http.StatusOK:
					ok.Add(1)
				case http.StatusConflict:
					conflicts.Add(1)
					if !strings.Contains(res.body, "Session changed") {
						t.Error(res.body)
					}
				default:
					t.Error(res.StatusCode, res.body)
				}
			})
			require.EqualValues(t, 1, ok.Load())
			require.EqualValues(t, n-1, conflicts.Load())
			require.Equal(t, "1", askAs(srv, cookie, "GET", "/visits").body)
			require.Empty(t, l.at("ERROR"))
		})
	}
}

func TestConcurrentVisitsAreCounted(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{"memory": inMemory, "redis": onRedis} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newStored(t, open(t))
			srv.HandleFunc("POST /visit", func(_ http.ResponseWriter, req *server.Request) error { return visits.Add(req.Context(), 1) })
			srv.HandleFunc("GET /visits", func(w http.ResponseWriter, req *server.Request) error {
				v, err := visits.Get(req.Context())
				fmt.Fprint(w, v)
				return err
			})
			cookie := login(t, srv)
			concurrently(1000, func(int) {
				if res := askAs(srv, cookie, "POST", "/visit"); res.StatusCode != http.StatusOK {
					t.Error(res.StatusCode, res.body)
				}
			})
			require.Equal(t, "1000", askAs(srv, cookie, "GET", "/visits").body)
		})
	}
}

// A user logs in on two devices, sees both, and throws one out; an administrator then
// throws out the rest without any request.
func TestSessionsOfAUser(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{"memory": inMemory, "redis": onRedis} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newStored(t, open(t))
			srv.HandleFunc("POST /bind", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
			srv.HandleFunc("POST /others", func(w http.ResponseWriter, req *server.Request) error {
				n, err := req.Session().RevokeOthers()
				if err == nil {
					_, err = fmt.Fprint(w, n)
				}
				return err
			})
			srv.HandleFunc("GET /user", func(w http.ResponseWriter, req *server.Request) error {
				user, err := req.Session().User()
				if err == nil {
					_, err = fmt.Fprint(w, user)
				}
				return err
			})
			bind := func() *http.Cookie { return ask(srv, "POST", "/bind").Cookies()[0] }
			one, two := bind(), bind()
			infos, err := srv.Sessions().List(t.Context(), "ada")
			require.NoError(t, err)
			require.Len(t, infos, 2)
			require.Equal(t, "1", askAs(srv, two, "POST", "/others").body)
			require.Empty(t, askAs(srv, one, "GET", "/user").body)
			require.Equal(t, "ada", askAs(srv, two, "GET", "/user").body)
			n, err := srv.Sessions().RevokeAll(t.Context(), "ada")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Empty(t, askAs(srv, two, "GET", "/user").body)
		})
	}
}
