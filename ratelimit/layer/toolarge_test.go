package layer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/queue"
	"github.com/lazyreq/lazyreq/ratelimit/reservation"
)

// rulesOfTen returns a rule of each algorithm with limit 10, and a counter without a limit.
func rulesOfTen() (rules []ratelimit.Rule, meter ratelimit.Rule) {
	block := ratelimit.Block{After: 2, For: time.Minute}
	return []ratelimit.Rule{
		ratelimit.PerMinute(10).WithName("buckets"),
		ratelimit.SlidingLog(10, time.Minute).WithName("log"),
		ratelimit.SlidingLog(10, time.Minute).WithName("stream").WithStream(),
		ratelimit.FixedWindow(10, time.Minute).WithName("window").WithBlock(block),
		ratelimit.GCRA(10, time.Minute).WithName("gcra"),
		ratelimit.GCRA(3, 24*time.Hour).WithBurst(10).WithName("burst").WithBlock(block),
	}, ratelimit.SlidingLog(1, time.Minute).WithoutLimit().WithName("meter")
}

// aroundMemory returns a store in memory with nothing, one layer, or all of them around it. Rules
// are shadow rules if they have the name.
func aroundMemory(t *testing.T, shadow string) map[string]ratelimit.Store {
	t.Helper()
	all := map[string]ratelimit.Store{}
	for _, name := range []string{"none", "lists", "shadow", "deny cache", "failover", "local", "prepaid", "all"} {
		m, err := memstore.New(memstore.Options{})
		require.NoError(t, err)
		store := ratelimit.Store(m)
		has := func(layer string) bool { return name == layer || name == "all" }
		if has("prepaid") {
			l, err := newPrepaid(store, PrepaidOptions{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, l.Close()) })
			store = l
		}
		if has("failover") || name == "local" {
			o := FailoverOptions{Timeout: time.Minute, Mode: Open}
			if name == "local" { // with nothing behind it
				store, o = answeringError{}, FailoverOptions{Mode: Local, Replicas: 3}
			}
			store, err = newFailover(store, o)
			require.NoError(t, err)
		}
		if has("deny cache") {
			store, err = newDenyCache(store, DenyCacheOptions{})
			require.NoError(t, err)
		}
		if has("shadow") {
			store, err = newShadow(store, ShadowOptions{Match: func(op ratelimit.Op) bool { return op.Rule.Name() == shadow }})
			require.NoError(t, err)
		}
		if has("lists") {
			store, err = newLists(store, ListsOptions{Allow: List{Prefixes: []string{"p:allowed"}}, Deny: List{Prefixes: []string{"p:denied"}}})
			require.NoError(t, err)
		}
		all[name] = store
	}
	return all
}

type answeringError struct{}

func (answeringError) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	return nil, fmt.Errorf("%w: gone", ratelimit.ErrStore)
}

func (s answeringError) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

// statusOfCost returns the status of requests with a cost.
func statusOfCost(t *testing.T, store ratelimit.Store, key string, rules []ratelimit.Rule, cost int64) int {
	t.Helper()
	limited, err := ratelimit.Middleware(store, &ratelimit.Policy{
		Name: "p", Rules: rules,
		Key:  func(context.Context, *http.Request) (string, error) { return key, nil },
		Cost: func(context.Context, *http.Request) (int64, error) { return cost, nil },
	}, ratelimit.MiddlewareOptions{FailOpen: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	return rec.Code
}

// A cost that no quota allows is the client's mistake, whatever the number, the rules and the
// layers; a cost below 1 is the program's.
func TestCostAboveTheLimit(t *testing.T) {
	rules, meter := rulesOfTen()
	policies := map[string][]ratelimit.Rule{
		"all": rules, "meter first": append([]ratelimit.Rule{meter}, rules...), "meter last": append(rules[:len(rules):len(rules)], meter),
	}
	for _, r := range rules {
		policies[r.Name()] = []ratelimit.Rule{r}
		policies["meter, "+r.Name()] = []ratelimit.Rule{meter, r}
	}
	for name, store := range aroundMemory(t, "") {
		for which, rules := range policies {
			for _, cost := range []int64{11, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1 << 60, math.MaxInt64} {
				require.Equal(t, http.StatusBadRequest, statusOfCost(t, store, "k", rules, cost), "%s, %s: %d", name, which, cost)
				if name == "lists" || name == "all" {
					require.Equal(t, http.StatusOK, statusOfCost(t, store, "allowed", rules, cost), "%s, %s: %d", name, which, cost)
					require.Equal(t, http.StatusBadRequest, statusOfCost(t, store, "denied", rules, cost), "%s, %s: %d", name, which, cost)
				}
			}
			for _, cost := range []int64{0, -1, math.MinInt64} {
				for _, key := range []string{"k", "allowed", "denied"} {
					require.Equal(t, http.StatusInternalServerError, statusOfCost(t, store, key, rules, cost), "%s, %s: %d", name, which, cost)
				}
			}
			require.Equal(t, http.StatusOK, statusOfCost(t, store, which, rules, 1), "%s, %s: nothing was charged", name, which)
		}
		for _, cost := range []int64{1<<53 + 1, 1 << 60, math.MaxInt64} {
			require.Equal(t, http.StatusBadRequest, statusOfCost(t, store, "k", []ratelimit.Rule{meter}, cost), "%s, meter: %d", name, cost)
			if name == "lists" || name == "all" {
				require.Equal(t, http.StatusOK, statusOfCost(t, store, "allowed", []ratelimit.Rule{meter}, cost), "%s, meter: %d", name, cost)
			}
		}
	}
	for name, store := range aroundMemory(t, "gcra") {
		want := http.StatusBadRequest
		if name == "shadow" || name == "all" {
			want = http.StatusOK
		}
		require.Equal(t, want, statusOfCost(t, store, "k", []ratelimit.Rule{rules[4]}, 1<<60), "%s: a shadow rule", name)
		require.Equal(t, http.StatusBadRequest, statusOfCost(t, store, "k", rules, 1<<60), "%s: one of several is a shadow rule", name)
	}
}

// Queues, reservations and limiters return the same errors.
func TestNAboveTheLimit(t *testing.T) {
	rules, _ := rulesOfTen()
	for name, store := range aroundMemory(t, "") {
		for i, r := range rules {
			waits, err := queue.New(store, r, queue.Options{})
			require.NoError(t, err)
			reserver, err := reservation.New(store, r, reservation.Options{})
			require.NoError(t, err)
			limiter, err := ratelimit.NewLimiter(store, r)
			require.NoError(t, err)
			both, err := ratelimit.NewLimiter(store, rules[i], rules[(i+1)%len(rules)])
			require.NoError(t, err)
			for n, want := range map[int64]error{
				11: ratelimit.ErrTooLarge, 1<<53 + 1: ratelimit.ErrTooLarge, 1 << 60: ratelimit.ErrTooLarge, math.MaxInt64: ratelimit.ErrTooLarge,
				0: ratelimit.ErrOp, -1: ratelimit.ErrOp, math.MinInt64: ratelimit.ErrOp,
			} {
				for what, ask := range map[string]func() error{
					"queue":       func() error { _, err := waits.Wait(t.Context(), "k", n); return err },
					"reservation": func() error { _, err := reserver.Reserve(t.Context(), "k", n); return err },
					"take":        func() error { _, err := limiter.Take(t.Context(), "k", n); return err },
					"peek":        func() error { _, err := limiter.Peek(t.Context(), "k", n); return err },
					"both":        func() error { _, err := both.Take(t.Context(), "k", n); return err },
					"both, peek":  func() error { _, err := both.Peek(t.Context(), "k", n); return err },
				} {
					require.ErrorIs(t, ask(), want, "%s, %v: %s of %d", name, r, what, n)
				}
			}
		}
	}
}
