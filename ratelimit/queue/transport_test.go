package queue_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/queue"
)

// api is a round tripper that answers with the next of its answers, and then with 200. It records the time of each
// request.
type api struct {
	mu      sync.Mutex
	began   time.Time
	answers []answer
	at      []time.Duration
	bodies  []string
	open    int // response bodies that were not closed
}

type answer struct {
	status int
	header string // lines such as "Retry-After: 5"
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := answer{status: http.StatusOK}
	if len(a.answers) > 0 {
		next, a.answers = a.answers[0], a.answers[1:]
	}
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		a.bodies = append(a.bodies, string(b))
	}
	a.at = append(a.at, time.Since(a.began))
	h := http.Header{}
	for line := range strings.Lines(next.header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		h.Add(name, value)
	}
	a.open++
	return &http.Response{StatusCode: next.status, Header: h, Body: &body{Reader: strings.NewReader("x"), a: a}, Request: r}, nil
}

type body struct {
	io.Reader
	a *api
}

func (b *body) Close() error {
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	b.a.open--
	return nil
}

func get(t *testing.T, rt http.RoundTripper, ctx context.Context, url string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := rt.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func TestTransportHonoursAnswers(t *testing.T) {
	const year = "31536000"
	tests := map[string]struct {
		answers []answer
		status  int
		at      []time.Duration
	}{
		"seconds":                  {[]answer{{429, "Retry-After: 5"}}, 200, []time.Duration{0, 5 * time.Second}},
		"a date":                   {[]answer{{429, "Retry-After: Sat, 01 Jan 2000 00:00:07 GMT"}}, 200, []time.Duration{0, 7 * time.Second}},
		"a date in the past":       {[]answer{{429, "Retry-After: Sat, 01 Jan 1999 00:00:00 GMT"}}, 200, []time.Duration{0, 0}},
		"RateLimit":                {[]answer{{429, `RateLimit: "a";r=3;t=50, "b";r=0;t=4`}}, 200, []time.Duration{0, 4 * time.Second}},
		"the longest wait":         {[]answer{{429, "Retry-After: 2\nRateLimit: \"b\";r=0;t=4"}}, 200, []time.Duration{0, 4 * time.Second}},
		"units remain":             {[]answer{{429, `RateLimit: "a";r=3;t=50`}}, 429, []time.Duration{0}},
		"no wait":                  {[]answer{{429, ""}}, 429, []time.Duration{0}},
		"no number":                {[]answer{{429, "Retry-After: soon"}}, 429, []time.Duration{0}},
		"a negative number":        {[]answer{{429, "Retry-After: -5"}}, 429, []time.Duration{0}},
		"a year":                   {[]answer{{429, "Retry-After: " + year}}, 429, []time.Duration{0}},
		"more than a duration":     {[]answer{{429, "Retry-After: 18446744073709551615"}}, 429, []time.Duration{0}},
		"503":                      {[]answer{{503, "Retry-After: 5"}}, 503, []time.Duration{0}},
		"another status":           {[]answer{{400, "Retry-After: 5"}}, 400, []time.Duration{0}},
		"more than three repeats":  {[]answer{{429, "Retry-After: 1"}, {429, "Retry-After: 1"}, {429, "Retry-After: 1"}, {429, "Retry-After: 1"}}, 429, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}},
		"RateLimit of a 200":       {[]answer{{200, `RateLimit: "a";r=0;t=50`}}, 200, []time.Duration{0}},
		"a 429 after a 429 of 0 s": {[]answer{{429, "Retry-After: 0"}, {429, "Retry-After: 3"}}, 200, []time.Duration{0, 0, 3 * time.Second}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &api{began: time.Now(), answers: tt.answers}
				status, err := get(t, &queue.Transport{Base: a}, t.Context(), "http://api.example.com/")
				require.NoError(t, err)
				require.Equal(t, tt.status, status)
				require.Equal(t, tt.at, a.at)
				require.Zero(t, a.open, "response bodies that are open")
			})
		})
	}
}

// A 429 and a 503 also make other requests with the key wait, for at most MaxWait.
func TestTransportHoldsOtherRequests(t *testing.T) {
	for after, status := range map[string]int{"31536000": 503, "99999999999999999999": 429} {
		synctest.Test(t, func(t *testing.T) {
			a := &api{began: time.Now(), answers: []answer{{status, "Retry-After: " + after}}}
			rt := &queue.Transport{Base: a, MaxWait: 10 * time.Second}
			got, err := get(t, rt, t.Context(), "http://api.example.com/")
			require.NoError(t, err)
			require.Equal(t, status, got)

			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			_, err = get(t, rt, ctx, "http://api.example.com/")
			require.ErrorIs(t, err, queue.ErrTooLong)
			var denied *ratelimit.DeniedError
			require.ErrorAs(t, err, &denied)
			require.Equal(t, 10*time.Second, denied.RetryAfter)

			_, err = get(t, rt, ctx, "http://other.example.com/")
			require.NoError(t, err)
			_, err = get(t, rt, t.Context(), "http://api.example.com/")
			require.NoError(t, err)
			require.Equal(t, []time.Duration{0, 0, 10 * time.Second}, a.at)
		})
	}
}

func TestTransportEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{began: time.Now(), answers: []answer{{429, "Retry-After: 30"}, {429, "Retry-After: 30"}}}
		rt := &queue.Transport{Base: a}
		deadline, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		status, err := get(t, rt, deadline, "http://api.example.com/")
		require.NoError(t, err)
		require.Equal(t, 429, status, "the wait would end after the deadline")

		gone := errors.New("the caller has left")
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { leave(gone) })
		_, err = get(t, rt, ctx, "http://api.example.com/")
		require.ErrorIs(t, err, gone)
		require.Len(t, a.at, 1)
	})
}

func TestTransportRepeatsOnlyBodiesItCanSendAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{began: time.Now(), answers: []answer{{429, "Retry-After: 1"}, {200, ""}, {429, "Retry-After: 1"}}}
		rt := &queue.Transport{Base: a}
		post := func(b io.Reader) int {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.example.com/", b)
			require.NoError(t, err)
			res, err := rt.RoundTrip(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.StatusCode
		}
		require.Equal(t, 200, post(strings.NewReader("order")))
		require.Equal(t, 429, post(io.MultiReader(strings.NewReader("stream"))))
		require.Equal(t, []string{"order", "order", "stream"}, a.bodies)
	})
}

// closing records that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// Requests wait for the queue's quota. A request that is not sent closes its body.
func TestTransportWaitsInItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		q, err := queue.New(store, ratelimit.GCRA(10, 10*time.Second).WithBurst(1), queue.Options{})
		require.NoError(t, err)
		a := &api{began: time.Now()}
		rt := &queue.Transport{Base: a, Queue: q, Key: func(r *http.Request) string { return r.Header.Get("Account") }}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "http://api.example.com/", nil).WithContext(t.Context())
				r.Header.Set("Account", "ada")
				res, err := rt.RoundTrip(r)
				require.NoError(t, err)
				_ = res.Body.Close()
			})
		}
		wg.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, a.at)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		b := &closing{Reader: strings.NewReader("order")}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example.com/", b)
		require.NoError(t, err)
		r.Header.Set("Account", "ada")
		_, err = rt.RoundTrip(r)
		require.ErrorIs(t, err, queue.ErrTooLong)
		require.True(t, b.closed)
	})
}

// Over HTTP, a client with a Transport is never denied by a server whose limit it does not know.
func TestTransportOverHTTP(t *testing.T) {
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	policy := ratelimit.NewPolicy("api", ratelimit.ByIP(), ratelimit.GCRA(3, time.Second))
	limit, err := ratelimit.Middleware(store, policy, ratelimit.MiddlewareOptions{})
	require.NoError(t, err)
	srv := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})))
	defer srv.Close()
	base := srv.Client().Transport
	client := &http.Client{Transport: &queue.Transport{Base: base, MaxRepeats: 100}, Timeout: time.Minute}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			res, err := client.Post(srv.URL, "text/plain", strings.NewReader("order"))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			echo, _ := io.ReadAll(res.Body)
			if res.StatusCode != 200 || string(echo) != "order" {
				t.Errorf("status %d, body %q", res.StatusCode, echo)
			}
		})
	}
	wg.Wait()
}

// TestTransportPacesRequestsAfterAnAnswer checks that requests which already wait in the queue take no units while an
// answer makes them wait. Otherwise, all of them would be sent at the end of this wait.
func TestTransportPacesRequestsAfterAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		q, err := queue.New(store, ratelimit.GCRA(1, time.Second), queue.Options{})
		require.NoError(t, err)
		a := &api{began: time.Now(), answers: []answer{{200, ""}, {503, "Retry-After: 10"}}}
		rt, m := &queue.Transport{Base: a, Queue: q}, time.Minute
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), []time.Duration{m, m, 9 * time.Second, m, m}[i])
				defer cancel()
				if _, err := get(t, rt, ctx, "http://api.example.com/"); i == 2 {
					require.ErrorIs(t, err, queue.ErrTooLong)
				} else {
					require.NoError(t, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 11 * time.Second, 12 * time.Second}, a.at)
	})
}

// roundTripper is a function that sends requests.
type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransportClosesBodiesThatDoNotEnd checks that a request is repeated although the body of the 429 does not end.
func TestTransportClosesBodiesThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		unended, server := io.Pipe()
		rt := &queue.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Since(began))
			if len(at) > 1 {
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			}
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"3"}}, Body: unended}, nil
		})}
		status, err := get(t, rt, t.Context(), "http://api.example.com/")
		require.NoError(t, err)
		require.Equal(t, 200, status)
		require.Equal(t, []time.Duration{0, 3 * time.Second}, at)
		_, err = server.Write([]byte("late"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}
