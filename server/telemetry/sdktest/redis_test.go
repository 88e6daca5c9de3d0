package sdktest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

var visits = session.NewCounter("visits")

// redisServer is a server with sessions and limits on client, which redisotel instruments.
func redisServer(t *testing.T, r *rig, client *redis.Client) *server.Server {
	require.NoError(t, redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(r.tracers)))
	sessions, err := redisstore.New(client, redisstore.Options{})
	require.NoError(t, err)
	limits, err := ratestore.New(client, ratestore.Options{})
	require.NoError(t, err)
	guarded, err := layer.New(limits, layer.Options{Failover: &layer.FailoverOptions{Mode: layer.Open}})
	require.NoError(t, err)
	policy := ratelimit.NewPolicy("visits", ratelimit.ByHeader("X-Key"), ratelimit.PerMinute(2))
	srv := r.newServer(t, server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, SessionStore: sessions,
		RateLimits: []*ratelimit.Policy{policy}, RateLimitStore: guarded,
	})
	srv.HandleFunc("GET /visit", func(_ http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
			return err
		}
		return visits.Add(req.Context(), 1)
	})
	return srv
}

// All commands of a request belong to its trace, below the property that sends them.
func TestRedisCommandsAreBelowTheirProperty(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	client := testhost.StartRedis(t).Client(func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	srv := redisServer(t, r, client)
	require.NoError(t, client.Ping(t.Context()).Err()) // dials
	for range 3 {                                      // the first ones load the scripts
		get(srv, "/visit", "X-Key", t.Name())
	}
	warm := len(r.spans.Ended())
	cookie := visitedCookie(t, srv)
	require.Equal(t, 200, get(srv, "/visit", "X-Key", "another", "Cookie", cookie))

	spans := r.spans.Ended()[warm:]
	byID := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		byID[s.SpanContext().SpanID().String()] = s
	}
	var parents []string
	for _, s := range spans {
		if strings.HasPrefix(s.Name(), "evalsha") || strings.HasPrefix(s.Name(), "redis.pipeline") {
			parent := byID[s.Parent().SpanID().String()]
			require.NotNil(t, parent, "%s is in no request's trace", s.Name())
			parents = append(parents, parent.Name())
		}
	}
	require.Equal(t, []string{
		"resolve ratelimit.visits.take", "GET /visit", // a new session's save
		"resolve ratelimit.visits.take", "resolve session", "GET /visit",
	}, parents)
}

func visitedCookie(t *testing.T, h http.Handler) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/visit", nil)
	r.Header.Set("X-Key", "visitor")
	h.ServeHTTP(w, r)
	require.Len(t, w.Result().Cookies(), 1)
	c := w.Result().Cookies()[0]
	return c.Name + "=" + c.Value
}

// With the store down, decisions have another source, and nothing hangs.
func TestRedisDown(t *testing.T) {
	r := newRig(t, sdktrace.AlwaysSample(), false)
	redisServer := testhost.StartRedis(t)
	client := redisServer.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	sessions, err := redisstore.New(client, redisstore.Options{})
	require.NoError(t, err)
	limits, err := ratestore.New(client, ratestore.Options{})
	require.NoError(t, err)
	guarded, err := layer.New(limits, layer.Options{Failover: &layer.FailoverOptions{Mode: layer.Open, Logger: quiet}})
	require.NoError(t, err)
	bare := r.newServer(t, server.Options{
		SessionStore: sessions, RateLimitStore: limits,
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("bare", ratelimit.ByIP(), ratelimit.PerMinute(2))},
	})
	bare.HandleFunc("GET /bare", func(_ http.ResponseWriter, req *server.Request) error { return req.RateLimit().Require() })
	bare.HandleFunc("GET /session", func(_ http.ResponseWriter, req *server.Request) error {
		return visits.Add(req.Context(), 1)
	})
	failover := r.newServer(t, server.Options{
		RateLimitStore: guarded,
		RateLimits:     []*ratelimit.Policy{ratelimit.NewPolicy("failover", ratelimit.ByIP(), ratelimit.PerMinute(2))},
	})
	failover.HandleFunc("GET /failover", func(_ http.ResponseWriter, req *server.Request) error { return req.RateLimit().Require() })

	redisServer.Stop()
	require.Equal(t, 503, get(bare, "/bare"))
	require.Equal(t, 503, get(bare, "/session"))
	require.Equal(t, 200, get(failover, "/failover"))
	require.Equal(t, map[string]uint64{"policy=bare": 1}, r.metric(t, "ratelimit.backend.errors"))
	require.Equal(t, map[string]uint64{"outcome=allowed policy=failover rule=60s source=failover": 1}, r.metric(t, "ratelimit.decisions"))
	require.Equal(t, map[string]uint64{
		"http.route=/bare reason=ratelimit": 1, "http.route=/session reason=session": 1,
	}, r.metric(t, "request.failures"))
	require.Equal(t, map[string]uint64{"policy=bare": 1, "policy=failover": 1}, r.metric(t, "ratelimit.check.duration"))
}
