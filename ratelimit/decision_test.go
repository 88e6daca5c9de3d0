package ratelimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

func TestDecisions(t *testing.T) {
	two := ipPolicy("two", 5)
	two.Rules = append(two.Rules, ratelimit.PerHour(9))
	reg := reqctx.NewRegistry(reqctx.Options{})
	ratelimit.Provide(reg, newStore(t, memstore.Options{}), two, ipPolicy("one", 5), ipPolicy("unused", 5))
	c := reqctx.New(t.Context(), reg)
	c.SetRequest(httptest.NewRequest("GET", "/", nil))
	for _, name := range []string{"one", "two"} {
		l, err := ratelimit.For(c, name)
		require.NoError(t, err)
		_, err = l.Take()
		require.NoError(t, err)
	}
	var quotas []string
	for d := range ratelimit.Decisions(c) {
		require.True(t, d.Result.Allowed)
		quotas = append(quotas, d.Quota)
	}
	require.ElementsMatch(t, []string{"one", "two.60s", "two.1h"}, quotas)
	for range ratelimit.Decisions(c) {
		break // which ends it
	}
	require.NoError(t, c.Finish())
}
