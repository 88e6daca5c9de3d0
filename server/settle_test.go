package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
)

// failedLogins returns a policy that charges 401 responses, 3 per minute.
func failedLogins(t *testing.T) *ratelimit.Policy {
	p := policy(t, "logins")
	p.Settle = func(status int) bool { return status == http.StatusUnauthorized }
	return p
}

// guess answers 401 unless the password is right.
func guess(_ http.ResponseWriter, req *server.Request) error {
	if req.FormValue("password") != "right" {
		return server.Errorf(http.StatusUnauthorized, "wrong")
	}
	return nil
}

// In TestSettle, a server or a middleware charges only failed logins. Wrong passwords are sent concurrently.
func TestSettle(t *testing.T) {
	for where, build := range map[string]func(p *ratelimit.Policy, check server.HandlerFunc) http.Handler{
		"Require": func(p *ratelimit.Policy, check server.HandlerFunc) http.Handler {
			srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}})
			srv.HandleFunc("POST /", check, server.Require(p))
			return srv
		},
		"a middleware within a server that has the policy": func(p *ratelimit.Policy, check server.HandlerFunc) http.Handler {
			srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}})
			srv.HandleFunc("POST /", check)
			srv.Use(eager(t, newCalls(t).Store, p))
			return srv
		},
		"a middleware within another server": func(p *ratelimit.Policy, check server.HandlerFunc) http.Handler {
			srv, _ := newServer(t, server.Options{})
			srv.HandleFunc("POST /", check)
			srv.Use(eager(t, newCalls(t).Store, p))
			return srv
		},
		"a middleware around a server": func(p *ratelimit.Policy, check server.HandlerFunc) http.Handler {
			srv, _ := newServer(t, server.Options{})
			srv.HandleFunc("POST /", check)
			return eager(t, newCalls(t).Store, p)(srv)
		},
	} {
		t.Run(where, func(t *testing.T) {
			var checked atomic.Int64
			url, c := listen(t, build(failedLogins(t), func(w http.ResponseWriter, req *server.Request) error {
				checked.Add(1)
				return guess(w, req)
			}))
			for range 10 {
				res, err := request(t, c, "POST", url+"?password=right")
				require.NoError(t, err)
				require.Equal(t, 200, res.StatusCode)
				require.Contains(t, res.Header.Get("RateLimit"), "r=3")
			}
			checked.Store(0)
			var guesses sync.WaitGroup
			for range 20 {
				guesses.Go(func() { _, _ = request(t, c, "POST", url+"?password=wrong") })
			}
			guesses.Wait()
			require.EqualValues(t, 3, checked.Load())
			res, err := request(t, c, "POST", url+"?password=right")
			require.NoError(t, err)
			require.Equal(t, 429, res.StatusCode)
		})
	}
}

// serveGuesses serves logins with counters in a Redis, and prints its URL. If more logins are checked at a time than the
// limit, it answers 500.
func serveGuesses(t *testing.T, addr string, in io.Reader, out io.Writer) {
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	store, err := ratestore.New(client, ratestore.Options{})
	require.NoError(t, err)
	logins := failedLogins(t)
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{logins}, RateLimitStore: store})
	srv.HandleFunc("POST /", func(w http.ResponseWriter, req *server.Request) error {
		n, err := client.Incr(req, "checking").Result()
		defer client.Decr(req, "checking")
		if err == nil && n > 3 {
			err = errors.New("too many")
		}
		return errors.Join(err, guess(w, req))
	}, server.Require(logins))
	url, _ := listen(t, srv)
	fmt.Fprintln(out, url)
	_, _ = io.Copy(io.Discard, in)
}

func TestSettleInTwoProcesses(t *testing.T) {
	testhost.ServeProcess(t, func(addr string, in io.Reader, out io.Writer) { serveGuesses(t, addr, in, out) })
	addr := testhost.StartRedis(t).Addr
	var urls []string
	for range 2 {
		p := testhost.StartProcess(t, addr)
		url, err := bufio.NewReader(p.Out).ReadString('\n')
		require.NoError(t, err)
		urls = append(urls, strings.TrimSpace(url))
		defer p.End(t)
	}
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	send := func(password string) map[int]int {
		var mu sync.Mutex
		var guesses sync.WaitGroup
		statuses := map[int]int{}
		for i := range 60 {
			guesses.Go(func() {
				res, err := request(t, c, "POST", urls[i%2]+"?password="+password)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					statuses[res.StatusCode]++
				}
			})
		}
		guesses.Wait()
		return statuses
	}
	got := send("right")
	require.Positive(t, got[200])
	require.Equal(t, 60, got[200]+got[429], "%v", got)
	require.Equal(t, map[int]int{401: 3, 429: 57}, send("wrong"))
	require.Equal(t, map[int]int{429: 60}, send("right"))
}

// failingRefunds is a store whose refunds fail.
type failingRefunds struct{ ratelimit.Store }

func (f failingRefunds) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if op.Kind == ratelimit.Refund {
		return ratelimit.Result{}, ratelimit.ErrStore
	}
	return f.Store.DoOne(ctx, op)
}

// TestSettleKeepsTheCharge checks that failures do not change the response, and that the charge stays.
func TestSettleKeepsTheCharge(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(p *ratelimit.Policy, o *server.Options)
		handler http.HandlerFunc
		logged  string
	}{
		"Settle panics": {change: func(p *ratelimit.Policy, _ *server.Options) {
			p.Settle = func(int) bool { panic("settle broke") }
		}, logged: "settle broke"},
		"the refund fails": {change: func(_ *ratelimit.Policy, o *server.Options) {
			o.RateLimitStore = failingRefunds{o.RateLimitStore}
		}, logged: "store unavailable"},
		"hijacked": {handler: func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			_ = conn.Close()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := failedLogins(t), server.Options{RateLimitStore: newCalls(t).Store}
			if tt.change != nil {
				tt.change(p, &o)
			}
			if tt.handler == nil {
				tt.handler = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
			}
			o.RateLimits = []*ratelimit.Policy{p}
			srv, l := newServer(t, o)
			srv.Handle("GET /", tt.handler, server.Require(p))
			srv.HandleFunc("GET /left", func(w http.ResponseWriter, req *server.Request) error {
				res, err := p.Peek(req)
				return errors.Join(err, writeText(w, fmt.Sprint(res.Remaining)))
			})
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			require.Equal(t, 200, res.StatusCode)
			require.Equal(t, "ok", res.body)
			res, err = request(t, c, "GET", url+"/left")
			require.NoError(t, err)
			require.Equal(t, "2", res.body)
			if tt.logged != "" {
				require.Contains(t, l.only(t)["error"], tt.logged)
			}
		})
	}
}

// TestSettleAfterTheClientHasLeft checks that the charge of a guess stays if the client doesn't wait for the response.
func TestSettleAfterTheClientHasLeft(t *testing.T) {
	p, store := failedLogins(t), newCalls(t)
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store})
	began, ended := make(chan struct{}), make(chan struct{})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		close(began)
		<-req.Done()
		return writeText(w, "too late")
	}, server.Require(p))
	url, c := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		srv.ServeHTTP(w, r)
	}))
	r, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	leave(t, c, r, began)
	<-ended
	require.Equal(t, []string{"take logins:127.0.0.1"}, store.keys)
}

// TestSettleGetsTheStatusOfTheError checks that failed logins stay charged if WriteProblem redirects them, as successful
// logins are redirected, also behind a middleware that replaces the writer.
func TestSettleGetsTheStatusOfTheError(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		p := failedLogins(t)
		srv, _ := newServer(t, server.Options{
			RateLimits: []*ratelimit.Policy{p},
			WriteProblem: func(w http.ResponseWriter, r *http.Request, _ *server.Problem) {
				http.Redirect(w, r, "/login", http.StatusSeeOther)
			},
		})
		if wrapped {
			srv.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
				})
			})
		}
		srv.HandleFunc("POST /login", func(w http.ResponseWriter, req *server.Request) error {
			if err := guess(w, req); err != nil {
				return err
			}
			http.Redirect(w, req.Request, "/", http.StatusSeeOther)
			return nil
		}, server.Require(p))
		for _, password := range []string{"right", "wrong"} {
			res := ask(srv, "POST", "/login?password="+password)
			require.Equal(t, 303, res.StatusCode)
			require.Equal(t, password == "wrong", strings.Contains(res.Header.Get("RateLimit"), "r=2"))
		}
	}
}
