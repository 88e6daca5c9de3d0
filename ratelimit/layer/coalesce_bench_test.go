package layer

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// BenchmarkCoalesce shows what a take costs on a Redis of the benchmark's own, through the
// store alone, with a script call for each decision (plain) and as it is (store), and
// through a Coalesce around it: of one caller (idle), of many callers on as
// many as 16384 keys (many), and of many on one (hot). scripts/op is the number of script
// calls.
func BenchmarkCoalesce(b *testing.B) {
	server := redistest.Start(b)
	client := server.Client(nil)
	plain, err := redisstore.New(client, redisstore.Options{Timeout: 10 * time.Second, Joined: 1})
	require.NoError(b, err)
	store, err := redisstore.New(client, redisstore.Options{Timeout: 10 * time.Second})
	require.NoError(b, err)
	coalesce, err := NewCoalesce(store, CoalesceOptions{})
	require.NoError(b, err)
	keys := make([]string, 16384)
	for i := range keys {
		keys[i] = "key" + strconv.Itoa(i)
	}
	for _, load := range []struct {
		name    string
		keys    []string
		callers int
	}{
		{"idle", keys, 1}, {"many", keys, 64}, {"many", keys, 256}, {"hot", keys[:1], 64}, {"hot", keys[:1], 256},
	} {
		for _, by := range []struct {
			name  string
			store ratelimit.Store
		}{{"plain", plain}, {"store", store}, {"coalesce", coalesce}} {
			b.Run(fmt.Sprintf("%s/%d/%s", load.name, load.callers, by.name), func(b *testing.B) {
				before, _ := server.Calls("evalsha")
				takeAll(b, by.store, load.keys, load.callers)
				after, _ := server.Calls("evalsha")
				b.ReportMetric(float64(after-before)/float64(b.N), "scripts/op")
			})
		}
	}
}

// takeAll makes b.N takes, each of which is allowed, by so many callers.
func takeAll(b *testing.B, store ratelimit.Store, keys []string, callers int) {
	one := ratelimit.DoOne(store)
	rule := ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1 << 30, Per: time.Second}))
	var next atomic.Int64
	done := make(chan error, callers)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		go func() {
			op := ratelimit.Op{Rule: rule, N: 1, Kind: ratelimit.Take}
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					done <- nil
					return
				}
				op.Key = keys[uint64(i)*0x9e3779b97f4a7c15>>20%uint64(len(keys))]
				res, err := one(context.Background(), op)
				if err == nil {
					err = res.Err()
				}
				if err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range callers {
		require.NoError(b, <-done)
	}
}
