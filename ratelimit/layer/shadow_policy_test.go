package layer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// asPolicy returns a function that sends a request to a handler with a policy. The policy's store has a shadow layer.
func (s *shadowTest) asPolicy(cost int64, rules ...ratelimit.Rule) func() *httptest.ResponseRecorder {
	limited, err := ratelimit.Middleware(s.shadowLayer, &ratelimit.Policy{
		Name: "api", Rules: rules, Headers: ratelimit.HeadersDraft10AndX,
		Key:  func(context.Context, *http.Request) (string, error) { return "k", nil },
		Cost: func(context.Context, *http.Request) (int64, error) { return cost, nil },
	}, ratelimit.MiddlewareOptions{})
	require.NoError(s, err)
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		return rec
	}
}

func TestShadowPolicy(t *testing.T) {
	s := newShadowTest(t, isShadow)
	for _, cost := range []int64{1, 4} {
		ask := s.asPolicy(cost, shadowed(3))
		for range 5 {
			rec := ask()
			require.Equal(t, http.StatusOK, rec.Code)
			require.Empty(t, rec.Header())
		}
	}
	require.Len(t, s.reports, 2+5, "denials, and takes of more than the limit")
	s.Spy.Before = func(context.Context) error { return errors.New("gone") }
	require.Equal(t, http.StatusOK, s.asPolicy(1, shadowed(3))().Code)
}

func TestShadowRuleInAPolicy(t *testing.T) {
	s := newShadowTest(t, isShadow)
	ask := s.asPolicy(1, shadowed(3), gcra(5))
	for i := range 6 {
		rec := ask()
		require.Equal(t, `"api.60s";q=5;w=60`, rec.Header().Get("RateLimit-Policy"))
		require.Equal(t, "5", rec.Header().Get("X-RateLimit-Limit"))
		if i < 5 {
			require.Equal(t, http.StatusOK, rec.Code)
			require.Empty(t, rec.Header().Get("Retry-After"))
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, rec.Code)
		require.Equal(t, `"api.60s";r=0;t=12`, rec.Header().Get("RateLimit"))
		require.NotContains(t, rec.Body.String(), "shadow")
	}
	require.Len(t, s.reports, 2)
}
