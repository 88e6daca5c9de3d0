package memstore

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestMemoryIsBounded makes more counters than MaxBytes or MaxKeys allows.
func TestMemoryIsBounded(t *testing.T) {
	takes, most := 80_000, int64(2<<20)
	if testenv.Racing {
		takes, most = takes/2, most/2
	}
	for name, r := range everyRule(100) {
		for _, full := range []WhenFull{EvictNearestFull, DenyNew} {
			h := newHand()
			m := newStore(t, Options{MaxKeys: 1 << 20, MaxBytes: most, WhenFull: full, Clock: h.clock})
			for i := range takes {
				h.advance(time.Microsecond)
				take(t, m, r, fmt.Sprint(i%(takes*7/8)), 1)
				if i%64 == 0 {
					require.LessOrEqual(t, m.Bytes(), most, name)
				}
			}
			require.Greater(t, m.Bytes(), most*8/10, name)

			m = newStore(t, Options{MaxKeys: 1000, WhenFull: full})
			for i := range 5000 {
				take(t, m, r, fmt.Sprint(i), 1)
			}
			require.LessOrEqual(t, m.Len(), 1000, name)
			require.Greater(t, m.Len(), 900, name)
		}
	}
}

// TestMemoryIsBoundedForAllSizes fills a store with counters of many sizes.
func TestMemoryIsBoundedForAllSizes(t *testing.T) {
	h := newHand()
	m := newStore(t, Options{MaxBytes: minBytes, Clock: h.clock})
	r := rand.New(rand.NewPCG(1, 2))
	rules := []ratelimit.Rule{ratelimit.SlidingLog(1, time.Minute).WithoutLimit(), ratelimit.SlidingLog(1, 1000*time.Hour).WithoutLimit()}
	for _, span := range []time.Duration{3, 10, 100, 1000} {
		rules = append(rules, ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40, Interval: time.Second, Span: span * time.Second}))
	}
	adds := 100_000
	if testenv.Racing {
		adds /= 4
	}
	for range adds {
		h.advance(time.Duration(r.IntN(1000)) * time.Microsecond)
		add(t, m, rules[r.IntN(len(rules))], fmt.Sprint(r.IntN(300)), 1<<r.IntN(40))
		require.LessOrEqual(t, m.Bytes(), int64(minBytes))
	}
	require.Greater(t, m.Bytes(), int64(minBytes)*8/10)
}

// TestMemoryIsBoundedUnderLoad creates counters and blocks from several goroutines, with up to four ops in a call.
func TestMemoryIsBoundedUnderLoad(t *testing.T) {
	const counters, bytes = 1500, 2 << 20
	var rules []ratelimit.Rule
	for _, r := range everyRule(2) {
		rules = append(rules, r.WithBlock(ratelimit.Block{After: 2, For: time.Hour}))
	}
	for _, full := range []WhenFull{EvictNearestFull, DenyNew} {
		m := newStore(t, Options{MaxKeys: counters, MaxBytes: bytes, WhenFull: full})
		var callers sync.WaitGroup
		for g := range 4 {
			callers.Go(func() {
				for i := range 2000 {
					var ops []ratelimit.Op
					for k := range 1 + i%len(rules) {
						ops = append(ops, opOf(ratelimit.Take, rules[(i+k)%len(rules)], fmt.Sprint(i*(g+1)%3001), 1+int64(i%2)))
					}
					if _, err := m.Do(t.Context(), ops); err != nil {
						t.Error(err)
						return
					}
					if i%16 == 0 && (m.Len() > counters || m.Bytes() > bytes) {
						t.Errorf("%d counters and %d bytes", m.Len(), m.Bytes())
						return
					}
				}
			})
		}
		callers.Wait()
		require.Greater(t, m.Len(), counters*8/10, "the store is not full")
	}
}
