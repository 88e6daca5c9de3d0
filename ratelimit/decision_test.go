package ratelimit_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestDecisions(t *testing.T) {
	two, one := ipPolicy("two", 5), ipPolicy("one", 5)
	two.Rules = append(two.Rules, ratelimit.PerHour(9))
	reg := reqctx.NewRegistry(reqctx.Options{})
	ratelimit.Provide(reg, newStore(t, memstore.Options{}), two, one, ipPolicy("unused", 5))
	c := reqctx.New(t.Context(), reg)
	c.SetRequest(httptest.NewRequest("GET", "/", nil))
	require.NoError(t, one.Require(c))
	require.NoError(t, two.Require(c))
	var quotas []string
	for d := range ratelimit.Decisions(c) {
		require.True(t, d.Result.Allowed)
		require.Same(t, map[string]*ratelimit.Policy{"one": one, "two": two}[d.Policy], d.Of)
		quotas = append(quotas, d.Quota)
	}
	require.ElementsMatch(t, []string{"one", "two.60s", "two.1h"}, quotas)
	for range ratelimit.Decisions(c) {
		break // which ends it
	}
	require.NoError(t, c.Finish())
}

// TestDecisionsOfAnInnerRequest checks that a take is reported by the request that has its policy.
func TestDecisionsOfAnInnerRequest(t *testing.T) {
	q, r := provide(t, ipPolicy("outer", 5)), provide(t, ipPolicy("inner", 5))
	q.serve(func(c *reqctx.Host) {
		inner := reqctx.New(c, r.reg)
		inner.SetRequest(c.Request())
		require.NoError(t, q.policies[0].Require(inner))
		require.NoError(t, r.policies[0].Require(inner))
		for ctx, want := range map[context.Context]string{c: "outer", inner: "inner"} {
			var policies []string
			for d := range ratelimit.Decisions(ctx) {
				policies = append(policies, d.Policy)
			}
			require.Equal(t, []string{want}, policies)
		}
		require.NoError(t, inner.Finish())
	})
}

// TestDecisionsWhileClosing asks for the first time when the request is closing.
func TestDecisionsWhileClosing(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	var policies []string
	list := func(ctx context.Context) {
		policies = nil
		for d := range ratelimit.Decisions(ctx) {
			policies = append(policies, d.Policy)
		}
	}
	var ended context.Context
	q.serve(func(c *reqctx.Host) {
		ended = c
		require.NoError(t, q.policies[0].Require(c))
		c.OnClose(func() error { list(c); return nil })
	})
	require.Equal(t, []string{"ip"}, policies)
	list(ended)
	require.Empty(t, policies, "the request is finished")
}
