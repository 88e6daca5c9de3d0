package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// TestLogAfter2112 waits for each of ten events at times whose sums leave 2^53, where a search
// by halves does not end if it is rounded. It answers as the memory store does.
func TestLogAfter2112(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	for _, began := range []int64{1<<52 - 20_000_000, 1<<52 + 1, 3 << 51, 1<<53 - 1<<30, 1<<53 - 90_000_001} {
		for name, r := range lasting(ratelimit.Block{}) {
			if r.Algorithm() != "log" {
				continue
			}
			r = r.WithLimit(10)
			clock := storetest.NewClock(time.UnixMicro(began))
			memory, err := memstore.New(memstore.Options{Clock: clock.Now})
			require.NoError(t, err)
			s := newStore(t, c, patient)
			s.clock, s.scripts = clock.Now, slowScripts
			var charged [2]ratelimit.Receipt
			same := func(op ratelimit.Op) {
				t.Helper()
				op.Receipt = charged[0]
				got, err := s.DoOne(t.Context(), op)
				require.NoError(t, err)
				op.Receipt = charged[1]
				want, err := memory.DoOne(t.Context(), op)
				require.NoError(t, err)
				if op.Kind == ratelimit.Take && got.Allowed {
					charged = [2]ratelimit.Receipt{got.Receipt, want.Receipt}
				}
				got.Receipt, want.Receipt = ratelimit.Receipt{}, ratelimit.Receipt{}
				require.Equal(t, want, got, "%s from %d: %v", name, began, op)
			}
			op := func(kind ratelimit.Kind, n int64) ratelimit.Op {
				return ratelimit.Op{Rule: r, Key: fmt.Sprint(began), N: n, Kind: kind}
			}
			for range 10 {
				same(op(ratelimit.Take, 1))
				clock.Advance(time.Second + time.Microsecond)
			}
			for n := range int64(10) {
				same(op(ratelimit.Peek, n+1))
				same(op(ratelimit.Take, n+1))
			}
			ahead := op(ratelimit.Take, 1)
			ahead.Prepaid = 10 * time.Second
			for _, op := range []ratelimit.Op{op(ratelimit.Count, 0), op(ratelimit.Refund, 0), ahead, op(ratelimit.Take, 10), op(ratelimit.Refund, 0), op(ratelimit.Count, 0)} {
				same(op)
			}
		}
	}
}
