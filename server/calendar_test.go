package server_test

import (
	"net/http"
	"testing"
	"time"
	_ "time/tzdata" // for machines without zone files

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
	"github.com/lazyreq/lazyreq/server"
)

// TestCalendarOverHTTP has two requests per day in Berlin. It begins in the last second of a day with 23 hours.
func TestCalendarOverHTTP(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	clock := storetest.NewClock(time.Date(2026, 3, 29, 23, 59, 59, 0, berlin))
	store, err := memstore.New(memstore.Options{Clock: clock.Now})
	require.NoError(t, err)
	daily := ratelimit.NewPolicy("daily", ratelimit.ByIP(), ratelimit.Calendar(2, ratelimit.Day, berlin))
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{daily}, RateLimitStore: store})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error { return nil }, server.Require(daily))
	url, c := listen(t, srv)
	get := func(status int, limit, retry string) {
		t.Helper()
		res, err := request(t, c, "GET", url)
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode)
		require.Equal(t, `"daily";q=2`, res.Header.Get("RateLimit-Policy"))
		require.Equal(t, limit, res.Header.Get("RateLimit"))
		require.Equal(t, retry, res.Header.Get("Retry-After"))
	}
	get(200, `"daily";r=1;t=1`, "")
	get(200, `"daily";r=0;t=1`, "")
	clock.Advance(time.Second - time.Microsecond)
	get(429, `"daily";r=0;t=1`, "1")
	clock.Advance(time.Microsecond)
	get(200, `"daily";r=1;t=86400`, "")
	get(200, `"daily";r=0;t=86400`, "")
	clock.Advance(-time.Microsecond) // the counter stays in the new day
	get(429, `"daily";r=0;t=86401`, "86401")
}
