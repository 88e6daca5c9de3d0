package layer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// BenchmarkPrepaid shows what a take of one key costs on a Redis of the benchmark's own, through
// a Allotment around the store (hot). scripts/op is the number of script calls.
func BenchmarkPrepaid(b *testing.B) {
	server := testhost.StartRedis(b)
	store, err := redisstore.New(server.Client(nil), redisstore.Options{Timeout: 10 * time.Second})
	require.NoError(b, err)
	allotment, err := newPrepaid(store, PrepaidOptions{})
	require.NoError(b, err)
	defer func() { require.NoError(b, allotment.Close()) }()
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("hot/%d", callers), func(b *testing.B) {
			before, _ := server.Calls("evalsha")
			takeAll(b, allotment, callers)
			after, _ := server.Calls("evalsha")
			b.ReportMetric(float64(after-before)/float64(b.N), "scripts/op")
		})
	}
}

// takeAll makes b.N takes of one key, each of which is allowed, by so many callers.
func takeAll(b *testing.B, store ratelimit.Store, callers int) {
	op := take(ratelimit.GCRA(1<<30, time.Second), "k", 1)
	var made atomic.Int64
	done := make(chan error, callers)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		go func() {
			var err error
			for err == nil && made.Add(1) <= int64(b.N) {
				var res ratelimit.Result
				if res, err = store.DoOne(context.Background(), op); err == nil {
					err = res.Err()
				}
			}
			done <- err
		}()
	}
	for range callers {
		require.NoError(b, <-done)
	}
}
