package ratelimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
	"github.com/lazyreq/lazyreq/reqctx"
)

// TestObservedStoreConforms checks that an observed store conforms to storetest, and that each op of a call arrives
// once, in order and with the result or error of the call.
func TestObservedStoreConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		clock := storetest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC))
		return eventCheck{t, newStore(t, memstore.Options{Clock: clock.Now})}, clock
	}, storetest.Everything)
}

// eventCheck is a store that checks the events of each call.
type eventCheck struct {
	t     *testing.T
	inner ratelimit.Store
}

func (c eventCheck) observed(events *[]ratelimit.Event) ratelimit.Store {
	return ratelimit.Observe(c.inner, func(_ context.Context, e ratelimit.Event) { *events = append(*events, e) })
}

func (c eventCheck) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	var events []ratelimit.Event
	out, err := c.observed(&events).Do(ctx, ops)
	c.check(events, ops, out, err)
	return out, err
}

func (c eventCheck) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	var events []ratelimit.Event
	res, err := c.observed(&events).DoOne(ctx, op)
	c.check(events, []ratelimit.Op{op}, []ratelimit.Result{res}, err)
	return res, err
}

func (c eventCheck) check(events []ratelimit.Event, ops []ratelimit.Op, out []ratelimit.Result, err error) {
	c.t.Helper()
	require.Len(c.t, events, len(ops))
	for i, e := range events {
		want := ratelimit.Event{Op: ops[i], Began: e.Began, Took: e.Took, Err: err}
		if err == nil {
			want.Result = out[i]
		}
		require.Equal(c.t, want, e)
	}
}

func TestTimesOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := storespy.Func(func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
			<-time.After(3 * time.Second)
			return nil, ratelimit.ErrStore
		})
		began, calls := time.Now(), 0
		limiter := newLimiter(t, ratelimit.Observe(slow, func(_ context.Context, e ratelimit.Event) {
			calls++
			require.Equal(t, began, e.Began)
			require.Equal(t, 3*time.Second, e.Took)
			require.ErrorIs(t, e.Err, ratelimit.ErrStore)
		}), ratelimit.PerMinute(1))
		_, err := limiter.Take(t.Context(), "k", 1)
		require.ErrorIs(t, err, ratelimit.ErrStore)
		require.Equal(t, 1, calls)
	})
}

// TestPolicyOfEvents checks that all hooks around a policy's store get its name, and that a limiter's ops have none.
func TestPolicyOfEvents(t *testing.T) {
	var seen []string
	see := func(_ context.Context, e ratelimit.Event) { seen = append(seen, e.Policy+"/"+e.Op.Kind.String()) }
	store := ratelimit.Observe(ratelimit.Observe(newStore(t, memstore.Options{}), see), see)
	two := ipPolicy("two", 5)
	two.Rules = append(two.Rules, ratelimit.PerHour(9))
	reg := reqctx.NewRegistry(reqctx.Options{})
	ratelimit.Provide(reg, store, two, ipPolicy("one", 5))
	c := reqctx.New(t.Context(), reg)
	c.SetRequest(httptest.NewRequest("GET", "/", nil))
	require.NoError(t, two.Require(c))
	require.Equal(t, []string{"two/take", "two/take", "two/take", "two/take"}, seen, "two rules, two hooks")
	seen = nil
	_, err := two.Count(c)
	require.NoError(t, err)
	require.Equal(t, []string{"two/count", "two/count"}, seen)
	require.NoError(t, c.Finish())
	seen = nil
	_, err = newLimiter(t, store, ratelimit.PerMinute(1)).Take(t.Context(), "one:k", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"/take", "/take"}, seen)
}

func TestObserveThatPanics(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	store := ratelimit.Observe(newStore(t, memstore.Options{}), func(context.Context, ratelimit.Event) { panic("oh") })
	limiter := newLimiter(t, store, ratelimit.PerMinute(2))
	for i, allowed := range []bool{true, true, false} {
		res, err := limiter.Take(t.Context(), "secret", 1)
		require.NoError(t, err)
		require.Equal(t, allowed, res.Allowed, i)
	}
	_, err := store.Do(t.Context(), []ratelimit.Op{{Rule: ratelimit.PerMinute(2), Key: "secret", Kind: ratelimit.Reset}})
	require.NoError(t, err)
	require.Equal(t, 4, bytes.Count(out.Bytes(), []byte(`msg="rate limit observer panicked" panic=oh stack=`)))
	require.NotContains(t, out.String(), "secret")
}

// TestObserveNothing checks that a missing hook adds no layer, and that a missing store is still an error.
func TestObserveNothing(t *testing.T) {
	store := newStore(t, memstore.Options{})
	require.Same(t, store, ratelimit.Observe(store, nil))
	for _, missing := range []ratelimit.Store{nil, (*memstore.Store)(nil)} {
		_, err := ratelimit.NewLimiter(ratelimit.Observe(missing, func(context.Context, ratelimit.Event) {}), ratelimit.PerMinute(1))
		require.ErrorContains(t, err, "store is nil")
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	denied := 0
	store := ratelimit.Observe(newStore(t, memstore.Options{}), func(_ context.Context, e ratelimit.Event) {
		if e.Result.Violated {
			denied++
		}
	})
	limiter, ctx := newLimiter(t, store, ratelimit.GCRA(1, time.Hour)), t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = limiter.Take(ctx, "k", 1) }))
	require.Equal(t, 100, denied, "AllocsPerRun calls its function once more")
}
