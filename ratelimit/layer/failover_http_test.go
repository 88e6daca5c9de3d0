package layer_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/layer"
)

// TestReducedCapacityOverHTTP checks the responses of a middleware, with and without FailOpen, while the store fails.
func TestReducedCapacityOverHTTP(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	stack, err := layer.New(gone{}, layer.Options{
		DenyCache: &layer.DenyCacheOptions{},
		Failover:  &layer.FailoverOptions{Retry: 2 * time.Second, Logger: quiet},
	})
	require.NoError(t, err)
	second := ratelimit.Throttle(time.Hour)
	policies := map[string][]ratelimit.Rule{
		"one rule":  {ratelimit.Throttle(time.Second)},
		"two rules": {ratelimit.Throttle(time.Second), ratelimit.GCRA(1, time.Hour).WithName("other")},
		"another":   {second},
	}
	for name, rules := range policies {
		for _, open := range []bool{false, true} {
			limited, err := ratelimit.Middleware(stack, &ratelimit.Policy{Name: "api", Rules: rules, Key: ratelimit.ByIP()},
				ratelimit.MiddlewareOptions{FailOpen: open, Logger: quiet})
			require.NoError(t, err)
			h := limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") }))
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
			if open {
				require.Equal(t, http.StatusOK, rec.Code, name)
				continue
			}
			require.Equal(t, http.StatusServiceUnavailable, rec.Code, name)
			require.Equal(t, "2", rec.Header().Get("Retry-After"), name)
			require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
			var problem map[string]any
			require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &problem))
			require.Equal(t, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", problem["type"])
			require.EqualValues(t, 503, problem["status"])
			require.Contains(t, problem, "title")
		}
	}
}
