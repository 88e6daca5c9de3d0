package memstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestBucketsBecomeWide adds units that fit one by one into 32 bits, but not together.
func TestBucketsBecomeWide(t *testing.T) {
	h, ctx := newHand(), t.Context()
	l := newLimiter(t, newStore(t, Options{Clock: h.clock}), ratelimit.Buckets(ratelimit.BucketOptions{}))
	for i := range int64(10) {
		n, err := l.AddCount(ctx, "k", 3<<30, 0)
		require.NoError(t, err)
		require.Equal(t, (i+1)*(3<<30), n)
		h.now = h.now.Add(5 * time.Second)
	}
	n, err := l.Count(ctx, "k", 10*time.Second)
	require.NoError(t, err)
	require.EqualValues(t, 2*(3<<30), n)
}
