package layer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// BenchmarkLease shows what a take of one key costs on a Redis of the benchmark's own, through
// a Lease around the store (hot). scripts/op is the number of script calls.
func BenchmarkLease(b *testing.B) {
	server := redistest.Start(b)
	store, err := redisstore.New(server.Client(nil), redisstore.Options{Timeout: 10 * time.Second})
	require.NoError(b, err)
	lease, err := NewLease(store, LeaseOptions{})
	require.NoError(b, err)
	defer func() { require.NoError(b, lease.Close()) }()
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("hot/%d", callers), func(b *testing.B) {
			before, _ := server.Calls("evalsha")
			takeAll(b, lease, []string{"k"}, callers)
			after, _ := server.Calls("evalsha")
			b.ReportMetric(float64(after-before)/float64(b.N), "scripts/op")
		})
	}
}
