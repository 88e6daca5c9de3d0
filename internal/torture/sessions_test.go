package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/storage"
)

// Each request that changes a session changes all of these fields in one commit.
var (
	owner       = session.NewField[string]("owner") // the user's name
	left, right = session.NewCounter("left"), session.NewCounter("right")
)

// content is a session as one request saw it.
type content struct {
	Exists      bool
	User, Owner string
	Left, Right int64
}

func read(req *server.Request) (c content, err error) {
	s := req.Session()
	if c.Exists, err = s.Exists(); err != nil || !c.Exists {
		return c, err
	}
	if c.User, err = s.User(); err != nil {
		return c, err
	}
	if c.Owner, err = owner.Get(req.Context()); err != nil {
		return c, err
	}
	if c.Left, err = left.Get(req.Context()); err != nil {
		return c, err
	}
	c.Right, err = right.Get(req.Context())
	return c, err
}

// newApp returns a server whose sessions are in store.
func newApp(t *testing.T, store session.Store) *server.Server {
	srv, err := server.New(server.Options{
		Session:      session.Options{Cookie: session.Cookie{Insecure: true}},
		SessionStore: shortGrace{store}, Logger: discard,
	})
	require.NoError(t, err)
	handle := func(pattern string, h func(req *server.Request, c content) error) {
		srv.HandleFunc(pattern, func(w http.ResponseWriter, req *server.Request) error {
			c, err := read(req)
			if err == nil && h != nil {
				err = h(req, c)
			}
			if err != nil {
				return err
			}
			return json.NewEncoder(w).Encode(c)
		})
	}
	handle("POST /login/{user}", func(req *server.Request, _ content) error {
		if err := req.Session().Bind(req.PathValue("user")); err != nil {
			return err
		}
		return owner.Set(req.Context(), req.PathValue("user"))
	})
	handle("POST /add", func(req *server.Request, c content) error {
		if !c.Exists {
			return nil // a write would begin another session
		}
		if err := left.Add(req.Context(), 1); err != nil {
			return err
		}
		if err := owner.Set(req.Context(), c.User); err != nil {
			return err
		}
		return right.Add(req.Context(), 1)
	})
	handle("GET /read", nil)
	handle("POST /renew", func(req *server.Request, c content) error {
		if !c.Exists {
			return nil
		}
		return req.Session().Renew()
	})
	handle("POST /destroy", func(req *server.Request, _ content) error { return req.Session().Destroy() })
	handle("POST /revoke", func(req *server.Request, c content) error {
		if !c.Exists {
			return nil
		}
		_, err := req.Session().RevokeAll()
		return err
	})
	return srv
}

// grace is how long the old cookie may still read the session after a renewal.
const grace = 100 * time.Millisecond

// shortGrace is a store that shortens the grace of a renewal.
type shortGrace struct{ session.Store }

func (s shortGrace) Commit(ctx context.Context, d storage.Delta) error {
	d.Grace = min(d.Grace, grace)
	return s.Store.Commit(ctx, d)
}

// visit is one session, which begins with a login.
type visit struct {
	user  string
	login [2]int64 // the times at which the login began and ended

	shard, userShard int // the shards of the session and of the user's index

	mu       sync.Mutex     // guards the fields below while requests run
	cookies  []*http.Cookie // the latest last
	renewals [][2]int64     // the times at which each renewal began and ended
	renewing bool
	doubt    int64 // when a renewal with an unknown outcome was sent, or 0
}

// choose returns the number of the cookie that a request sends. It is usually the latest one.
func (v *visit) choose() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	latest := len(v.cookies) - 1
	if latest > 0 && rand.IntN(4) == 0 {
		return rand.IntN(latest)
	}
	return latest
}

func (v *visit) cookie(number int) *http.Cookie {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cookies[number]
}

// latest returns the number of the latest cookie.
func (v *visit) latest() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.cookies) - 1
}

// beginRenewal reports whether the session may be renewed. There is only one renewal at a time, and no further
// renewal after one with an unknown outcome.
func (v *visit) beginRenewal() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.renewing || v.doubt > 0 {
		return false
	}
	v.renewing = true
	return true
}

// endRenewal records the outcome of a renewal. Without a response, the outcome is unknown.
func (v *visit) endRenewal(r request, cookies []*http.Cookie) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.renewing = false
	switch {
	case r.status != 200 || r.Exists && len(cookies) == 0:
		v.doubt = r.sent
	case r.Exists:
		v.cookies, v.renewals = append(v.cookies, cookies[0]), append(v.renewals, [2]int64{r.sent, r.received})
	}
}

// request holds a client's observations of one request on a session.
type request struct {
	*visit
	path           string
	cookie         int // the number of the cookie
	sent, received int64
	status         int
	content        // set if status is 200: the state before the request's own change
}

// account is a user with the current session and the earlier sessions, which have ended.
type account struct {
	user    string
	mu      sync.Mutex
	current *visit
	earlier []*visit
}

// visits holds sessions of many users and the requests on them.
type visits struct {
	apps     []http.Handler
	accounts []*account
	answered atomic.Int64 // when the latest answered request was sent

	mu       sync.Mutex
	requests []request
	logins   []*visit
}

var users atomic.Int64

func newVisits(apps []http.Handler, n int) *visits {
	v := &visits{apps: apps}
	for range n {
		v.accounts = append(v.accounts, &account{user: fmt.Sprint("user", users.Add(1))})
	}
	return v
}

// call starts clients that log in, read, write and log out at random, several for each user. The returned
// function stops them and waits until they have returned.
func (v *visits) call(ctx context.Context) (stop func()) {
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	for _, a := range v.accounts {
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stopped:
						return
					case <-time.After(rand.N(25 * time.Millisecond)):
					}
					v.act(ctx, a)
				}
			})
		}
	}
	return sync.OnceFunc(func() { close(stopped); wg.Wait() })
}

// act sends one request for a user.
func (v *visits) act(ctx context.Context, a *account) {
	a.mu.Lock()
	if a.current == nil {
		a.current = v.logIn(ctx, a.user)
		a.mu.Unlock()
		return
	}
	on, path := a.current, []string{"POST /add", "GET /read"}[rand.IntN(6)/4]
	switch {
	case len(a.earlier) > 0 && rand.IntN(5) == 0:
		on = a.earlier[rand.IntN(len(a.earlier))]
	case rand.IntN(50) == 0:
		path = []string{"POST /destroy", "POST /revoke"}[rand.IntN(2)]
		a.current, a.earlier = nil, append(a.earlier, on)
	case rand.IntN(25) == 0 && on.beginRenewal():
		path = "POST /renew"
	}
	a.mu.Unlock()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if rand.IntN(4) == 0 { // the client leaves before the response
		time.AfterFunc(rand.N(3*time.Millisecond), leave)
	}
	if path != "POST /renew" {
		v.send(ctx, on, on.choose(), path)
	} else if v.renew(ctx, on).status != 200 { // the client may have lost the new cookie
		a.leave(on)
	}
}

// leave ends the user's use of a session, so that the user logs in again.
func (a *account) leave(v *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == v {
		a.current, a.earlier = nil, append(a.earlier, v)
	}
}

func (v *visits) logIn(ctx context.Context, user string) *visit {
	l := &visit{user: user}
	res := v.do(ctx, "POST /login/"+user, nil, &l.login)
	cookies := res.Cookies()
	if res.StatusCode != 200 || len(cookies) == 0 {
		return nil
	}
	l.cookies = cookies[:1]
	v.mu.Lock()
	defer v.mu.Unlock()
	v.logins = append(v.logins, l)
	return l
}

// renew renews a session's cookie.
func (v *visits) renew(ctx context.Context, on *visit) request {
	r, res := v.request(ctx, on, on.latest(), "POST /renew")
	on.endRenewal(r, res.Cookies())
	return r
}

// send sends a request on a session with one of its cookies.
func (v *visits) send(ctx context.Context, on *visit, cookie int, path string) request {
	r, _ := v.request(ctx, on, cookie, path)
	return r
}

// request sends a request and records what the client observed.
func (v *visits) request(ctx context.Context, on *visit, cookie int, path string) (request, *http.Response) {
	r := request{visit: on, path: path, cookie: cookie}
	var times [2]int64
	res := v.do(ctx, path, on.cookie(cookie), &times)
	r.sent, r.received, r.status = times[0], times[1], res.StatusCode
	if r.status == 200 {
		if err := json.NewDecoder(res.Body).Decode(&r.content); err != nil {
			panic(err)
		}
		if a := &v.answered; a.Load() < r.sent {
			a.Store(r.sent)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, r)
	return r, res
}

func (v *visits) do(ctx context.Context, request string, cookie *http.Cookie, times *[2]int64) *http.Response {
	var method, path string
	_, _ = fmt.Sscan(request, &method, &path)
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	times[0] = now()
	v.apps[rand.IntN(len(v.apps))].ServeHTTP(w, r)
	times[1] = now()
	return w.Result()
}
