package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
)

func get(t *testing.T, srv *server.Server, path, key string) *servertest.Response {
	r := httptest.NewRequest("GET", path, nil)
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	return servertest.Do(t, srv, r)
}

// TestPlans checks that each customer has the limits of the plan, although all requests come from the same address.
func TestPlans(t *testing.T) {
	srv, err := newServer()
	require.NoError(t, err)
	for _, tt := range []struct {
		key    string
		minute int
		policy string
	}{
		{"", 3, `"api.60s";q=3;w=60, "api.1h";q=20;w=3600`},
		{"key-of-ada", 10, `"api.60s";q=10;w=60, "api.1h";q=200;w=3600`},
		{"key-of-grace", 100, `"api.60s";q=100;w=60, "api.1h";q=5000;w=3600`},
	} {
		for range tt.minute {
			res := get(t, srv, "/report", tt.key)
			require.Equal(t, http.StatusOK, res.Code)
			require.Equal(t, "X-Api-Key", res.Header().Get("Vary"))
			require.Equal(t, tt.policy, res.Header().Get("RateLimit-Policy"))
		}
		require.Equal(t, http.StatusTooManyRequests, get(t, srv, "/report", tt.key).Code, tt.key)
	}
	require.JSONEq(t, `[{"limit":10,"remaining":0},{"limit":200,"remaining":190}]`, get(t, srv, "/quota", "key-of-ada").Body.String())
}

func TestMadeUpKeysBringNoQuota(t *testing.T) {
	srv, err := newServer()
	require.NoError(t, err)
	for _, path := range []string{"/report", "/quota"} {
		res := get(t, srv, path, "made-up")
		require.Equal(t, http.StatusUnauthorized, res.Code)
		require.Empty(t, res.Header().Get("RateLimit"))
	}
	require.JSONEq(t, `[{"limit":3,"remaining":3},{"limit":20,"remaining":20}]`, get(t, srv, "/quota", "").Body.String())
}

func TestPlansCanBeUsed(t *testing.T) {
	for _, rules := range plans {
		require.Len(t, rules, 2)
		for _, rule := range rules {
			require.NoError(t, rule.Err())
		}
	}
	for _, c := range customers {
		require.Contains(t, plans, c.Plan)
	}
}
