package memstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// blocking has a rule of each algorithm, whose denials are remembered, too.
func blocking() []ratelimit.Rule {
	block := ratelimit.Block{After: 2, For: time.Hour}
	return []ratelimit.Rule{
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 2}).WithBlock(block),
		ratelimit.SlidingLog(2, time.Hour).WithBlock(block),
		ratelimit.FixedWindow(2, time.Hour).WithBlock(block),
		ratelimit.GCRA(2, time.Hour).WithBlock(block),
	}
}

// TestMemoryIsBoundedUnderLoad creates counters, blocks and logs from several goroutines, with one op or several in a
// call. It checks the bounds of the store during the load.
func TestMemoryIsBoundedUnderLoad(t *testing.T) {
	const subjects, bytes = 1500, 2 << 20
	for _, full := range []WhenFull{EvictNearestFull, DenyNew} {
		m, rules := newStore(t, Options{MaxKeys: subjects, MaxBytes: bytes, WhenFull: full}), blocking()
		var asked sync.WaitGroup
		var over atomic.Bool
		for g := range 4 {
			asked.Go(func() {
				for i := range 2000 {
					key := fmt.Sprint(i * (g + 1) % 3001)
					var ops []ratelimit.Op
					for k := range 1 + i%len(rules) {
						ops = append(ops, ratelimit.Op{Rule: rules[(i+k)%len(rules)], Key: key, N: 1 + int64(i%2), Kind: ratelimit.Take})
					}
					if _, err := m.Do(t.Context(), ops); err != nil {
						t.Error(err)
						return
					}
					if i%16 == 0 && (m.Len() > subjects || m.Bytes() > bytes) {
						over.Store(true)
					}
				}
			})
		}
		asked.Wait()
		require.False(t, over.Load())
		require.Greater(t, m.Len(), subjects*8/10, "the bound was met")
	}
}
