package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// TestOnlyPolicy checks that From returns an error unless the request has exactly one policy.
func TestOnlyPolicy(t *testing.T) {
	_, err := ratelimit.From(t.Context())
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
	for want, names := range map[string][]string{
		`no such property: "ratelimit"`: {},
		"":                              {"ip"},
		"the request has several policies (ip, search): call the methods of one of them": {"ip", "search"},
	} {
		q := provide(t, ipPolicies(names...)...)
		q.serve(func(h *reqctx.Host) {
			c := &h.Context
			l, err := ratelimit.From(c)
			dynamic, found := reqctx.Get(c, "ratelimit")
			if want == "" {
				require.NoError(t, err)
				require.NoError(t, l.Require())
			} else {
				require.ErrorContains(t, err, want)
				require.ErrorIs(t, err, reqctx.ErrNoProperty)
				requireLimitErrors(t, l, err)
			}
			if require.Equal(t, len(names) == 0, found != nil); found == nil {
				require.Equal(t, l, dynamic)
			}
		})
		require.Equal(t, len(q.store.keys), q.store.calls)
		require.Equal(t, want == "", q.store.calls == 1, "a limit does no I/O")
	}
}

// requireLimitErrors checks that all methods of l return the error want.
func requireLimitErrors(t *testing.T, l ratelimit.Limit, want error) {
	t.Helper()
	for _, use := range []func() error{
		func() error { _, err := l.Take(); return err },
		l.Require,
	} {
		require.Equal(t, want, use())
	}
}

// TestPolicyIsKnownByItsPointer checks the errors of policies that a request does not have.
func TestPolicyIsKnownByItsPointer(t *testing.T) {
	q := provide(t, ipPolicies("ip", "search")...)
	other := provide(t, ipPolicy("ip", 1)) // has the same name, but is in another registry
	q.serve(func(c *reqctx.Host) {
		requirePolicyErrors(t, c, ipPolicy("nobody", 1))
		requirePolicyErrors(t, c, other.policies[0])
		require.NoError(t, q.policies[0].Require(c))
	})
	c := reqctx.New(t.Context(), q.reg)
	require.NoError(t, c.Finish())
	requirePolicyErrors(t, c, ipPolicy("nobody", 1))
	none := reqctx.New(t.Context(), provide(t).reg)
	requirePolicyErrors(t, none, q.policies[0])
	require.NoError(t, none.Finish())
	for _, use := range usesOf(t.Context(), q.policies[0]) {
		require.ErrorIs(t, use(), reqctx.ErrNoRequest)
	}
	for _, use := range usesOf(c, q.policies[0]) {
		require.ErrorIs(t, use(), reqctx.ErrFinished)
	}
	require.Equal(t, 1, q.store.calls)
}

func requirePolicyErrors(t *testing.T, ctx context.Context, p *ratelimit.Policy) {
	t.Helper()
	for _, use := range usesOf(ctx, p) {
		err := use()
		require.EqualError(t, err, fmt.Sprintf("ratelimit: the request has no policy %q: give this *Policy to the server, in Options.RateLimits", p.Name))
		require.ErrorIs(t, err, reqctx.ErrNoProperty)
	}
}

// usesOf returns a call of each method of p that needs a request.
func usesOf(ctx context.Context, p *ratelimit.Policy) []func() error {
	return []func() error{
		func() error { _, err := p.Take(ctx); return err },
		func() error { return p.Start(ctx) },
		func() error { return p.Require(ctx) },
		func() error { _, err := p.Peek(ctx); return err },
		func() error { _, err := p.Add(ctx, 1); return err },
		func() error { _, err := p.Count(ctx); return err },
		func() error { _, err := p.Refund(ctx); return err },
		func() error { _, err := p.Subject(ctx); return err },
	}
}

// TestTwoRegistriesHaveAPolicy uses a policy for the first time in two registries at the same time.
func TestTwoRegistriesHaveAPolicy(t *testing.T) {
	p := ipPolicy("ip", 1)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			reg := reqctx.NewRegistry(reqctx.Options{})
			ratelimit.Provide(reg, newStore(t, memstore.Options{}), p)
			c := reqctx.New(t.Context(), reg)
			c.SetRequest(httptest.NewRequest("GET", "/", nil))
			if err := errors.Join(p.Require(c), c.Finish()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestACopyIsAnotherPolicy checks that a copy of a used policy does not use the original's charge.
func TestACopyIsAnotherPolicy(t *testing.T) {
	generous, strict := ipPolicy("ip", 9), new(ratelimit.Policy)
	q := provide(t, generous)
	q.take("ip")
	reflect.ValueOf(strict).Elem().Set(reflect.ValueOf(generous).Elem()) // an assignment that vet does not see
	strict.Name, strict.Rules = "strict", ipPolicy("ip", 1).Rules
	m := newLimiting(t, strict, ratelimit.MiddlewareOptions{})
	q.serve(func(c *reqctx.Host) {
		requirePolicyErrors(t, c, strict)
		m.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			require.EqualValues(t, 1, must(strict.Take(r.Context())).Limit)
		})).ServeHTTP(httptest.NewRecorder(), c.Request())
	})
	require.Equal(t, 1, m.store.calls)
}
