package ratelimit_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

func newStore(t testing.TB, o memstore.Options) *memstore.Store {
	t.Helper()
	m := must(memstore.New(o))
	return m
}

func newLimiter(t testing.TB, s ratelimit.Store, r ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	l := must(ratelimit.NewLimiter(s, r))
	return l
}

// hand is a clock that shows the time now, which tests change.
type hand struct{ now time.Time }

func newHand() *hand { return &hand{time.Unix(1_800_000_000, 0)} }

func (h *hand) clock() time.Time { return h.now }

// coarse returns a rule with buckets of 5 s and a span of 10 minutes.
func coarse(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: 5 * time.Second, Span: 10 * time.Minute})
}

// everyRule returns a rule for each algorithm.
func everyRule(limit int64) map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets":  coarse(limit, time.Minute),
		"log":      ratelimit.SlidingLog(limit, time.Minute),
		"window":   ratelimit.FixedWindow(limit, time.Minute),
		"calendar": ratelimit.Calendar(limit, ratelimit.Month, time.UTC),
		"gcra":     ratelimit.GCRA(limit, time.Minute),
	}
}

// fixedKey returns a key function that always returns key and err.
func fixedKey(key string, err error) ratelimit.KeyFunc {
	return func(context.Context, *http.Request) (string, error) { return key, err }
}

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
