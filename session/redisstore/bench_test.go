package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/session"
)

// benchmark runs call alone and from many goroutines, on a session of ten fields
// of 100 bytes each.
func benchmark(b *testing.B, call func(s session.Store, v visitor) error) {
	s := newStore(b, testhost.StartRedis(b).Client(nil), patient)
	v := newVisitor().created(b, s)
	for k := range 10 {
		require.NoError(b, s.Commit(b.Context(), v.delta(fmt.Sprint("field", k), fmt.Sprintf("%0100d", k))))
	}
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := call(s, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := call(s, v); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkLoad(b *testing.B) {
	benchmark(b, func(s session.Store, v visitor) error {
		_, err := s.Load(b.Context(), v.locator, v.digest, limits)
		return err
	})
}

func BenchmarkCommit(b *testing.B) {
	benchmark(b, func(s session.Store, v visitor) error {
		return s.Commit(b.Context(), v.delta("field3", "a value"))
	})
}
