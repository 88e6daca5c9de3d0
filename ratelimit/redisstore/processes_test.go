package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/internal/torture"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// short are rules whose interval is short enough to pass several times in a test.
var short = map[string]ratelimit.Rule{
	"buckets": ratelimit.Buckets(ratelimit.BucketOptions{Limit: 100, Per: 250 * time.Millisecond, Interval: 100 * time.Millisecond, Span: time.Second}),
	"log":     ratelimit.SlidingLog(100, 250*time.Millisecond),
	"stream":  ratelimit.SlidingLog(100, 250*time.Millisecond).WithStream(),
	"window":  ratelimit.FixedWindow(100, 250*time.Millisecond),
	"gcra":    ratelimit.GCRA(100, 250*time.Millisecond).WithBurst(50),
}

// checked returns the rule as torture.Check needs it.
func checked(t *testing.T, r ratelimit.Rule) torture.Rule {
	switch r.Algorithm() {
	case "buckets":
		return torture.Buckets(r.Limit(), r.Per(), r.Interval())
	case "log":
		return torture.SlidingLog(r.Limit(), r.Per())
	case "window":
		return torture.FixedWindow(r.Limit(), r.Per())
	case "gcra":
		return torture.GCRA(r.Limit(), r.Per(), r.Burst())
	}
	t.Fatalf("no check of %v", r)
	return torture.Rule{}
}

// take is one take of a process.
type take = func(ctx context.Context, n int64) (allowed bool, err error)

// taking takes from one subject in one step.
func taking(l *ratelimit.Limiter) take {
	return func(ctx context.Context, n int64) (bool, error) {
		res, err := l.Take(ctx, "k", n)
		return res.Allowed, err
	}
}

// processes lets two processes take by rule, with some scripts, and returns the result of torture.Check.
func processes(t *testing.T, r ratelimit.Rule, s scripts, length time.Duration, taker func(*ratelimit.Limiter) take) error {
	takes := torture.Run(t, torture.Plan{
		Processes: 2, Goroutines: 32, Units: 3, For: length,
		Server: func() string { return testhost.StartRedis(t).Addr },
		Taker: func(addr string) take {
			c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
			t.Cleanup(func() { _ = c.Close() })
			store := newStore(t, c, patient)
			store.scripts = s
			l, err := ratelimit.NewLimiter(store, r)
			require.NoError(t, err)
			return taker(l)
		},
	})
	allowed := 0
	for _, k := range takes {
		require.False(t, k.Failed, "%v", k)
		if k.Allowed {
			allowed++
		}
	}
	require.Greater(t, allowed, 33, "all of an interval, in takes of up to 3")
	t.Logf("%d takes, %d allowed", len(takes), allowed)
	return torture.Check(checked(t, r), takes)
}

func TestTwoProcessesKeepTheLimit(t *testing.T) {
	for name, r := range short {
		t.Run(name, func(t *testing.T) { require.NoError(t, processes(t, r, theScripts, 700*time.Millisecond, taking)) })
	}
}

// wrongScripts returns scripts that take by an algorithm with a limit, or burst, that is wrong.
func wrongScripts(t *testing.T, algorithm, wrong string) scripts {
	right := "limit = number(ARGV[at])"
	if algorithm == "gcra" {
		right = "burst = number(ARGV[at + 2])"
	}
	source := theScripts.ops[ratelimit.Take][algorithm].Source()
	require.Equal(t, 1, strings.Count(source, right))
	return scripts{ops: map[ratelimit.Kind]map[string]*redispipe.Script{ratelimit.Take: {
		algorithm: redispipe.NewIntScript(strings.Replace(source, right, right+wrong, 1)),
	}}}
}

// TestWrongScriptsAreDetected checks that the test before this one can fail: with scripts
// whose error is large enough to be seen on a busy machine, and with a check and a charge in two
// calls.
func TestWrongScriptsAreDetected(t *testing.T) {
	if testenv.Racing {
		t.Skip("what it checks is another test's strength")
	}
	for name, r := range short {
		for what, wrong := range map[string]string{"too many": " + 9", "too few": " - 9"} {
			t.Run(name+" "+what, func(t *testing.T) {
				changed := wrongScripts(t, name, wrong)
				require.ErrorContains(t, processes(t, r, changed, 450*time.Millisecond, taking), "torture: ")
			})
		}
	}
	t.Run("two calls", func(t *testing.T) {
		require.ErrorContains(t, processes(t, short["buckets"], theScripts, 450*time.Millisecond, func(l *ratelimit.Limiter) take {
			return func(ctx context.Context, n int64) (bool, error) {
				res, err := l.Peek(ctx, "k", n)
				if err != nil || !res.Allowed {
					return false, err
				}
				_, err = l.Add(ctx, "k", n)
				return true, err
			}
		}), "may pass")
	})
}

// TestScriptDecides uses a script that denies takes within the limit.
func TestScriptDecides(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	for name, r := range hourly() {
		s.scripts, s.rules = wrongScripts(t, name, " - 9"), ruleCache{}
		for i := range 3 {
			res, err := s.DoOne(t.Context(), takeOf(r, "k", 1))
			require.NoError(t, err)
			require.Equal(t, i == 0, res.Allowed, name)
			require.Equal(t, i > 0, res.Violated, name)
		}
	}
}
