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
)

// rulesOfTen returns rules of each algorithm with a limit or burst of 10, and a counter without a limit.
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

// aroundMemory returns memory stores by the layers around them: none, a single layer, or all. Rules with the name
// shadow are shadow rules.
func aroundMemory(t *testing.T, shadow string) map[string]ratelimit.Store {
	t.Helper()
	all := Options{
		Lists:  &ListsOptions{Allow: List{Prefixes: []string{"p:allowed"}}, Deny: List{Prefixes: []string{"p:denied"}}},
		Shadow: &ShadowOptions{Match: func(op ratelimit.Op) bool { return op.Rule.Name() == shadow }}, DenyCache: &DenyCacheOptions{},
		Failover: &FailoverOptions{Timeout: time.Minute, Mode: Open}, Prepaid: &PrepaidOptions{},
	}
	stores := map[string]ratelimit.Store{}
	for name, o := range map[string]Options{
		"none": {}, "lists": {Lists: all.Lists}, "shadow": {Shadow: all.Shadow}, "deny cache": {DenyCache: all.DenyCache},
		"failover": {Failover: all.Failover}, "local": {Failover: &FailoverOptions{Mode: Local, Replicas: 3}},
		"prepaid": {Prepaid: all.Prepaid}, "all": all,
	} {
		var inner ratelimit.Store = answeringError{}
		if name != "local" {
			inner, _ = newMemory(t)
		}
		s, err := New(inner, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		stores[name] = s
	}
	return stores
}

type answeringError struct{}

func (answeringError) Do(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) {
	return nil, fmt.Errorf("%w: gone", ratelimit.ErrStore)
}

func (s answeringError) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

// statusOfCost returns the status of the response to a request that has this cost.
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

// TestCostAboveTheLimit checks that a cost above the quota is an error of the client, with all rules and layers. A
// cost below 1 is an error of the program.
func TestCostAboveTheLimit(t *testing.T) {
	rules, meter := rulesOfTen()
	policies := map[string][]ratelimit.Rule{"all": rules}
	for _, r := range rules {
		policies[r.Name()] = []ratelimit.Rule{r}
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
