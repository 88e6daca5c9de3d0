package storetest_test

import (
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/coord/storetest"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

// benchmark runs call on both stores, alone and from many goroutines.
func benchmark(b *testing.B, call func(s storetest.Store) error) {
	for name, open := range map[string]func(b *testing.B) storetest.Store{
		"memory": func(b *testing.B) storetest.Store {
			return must(memstore.New(memstore.Options{MaxBytes: 1 << 40}))
		},
		"redis": func(b *testing.B) storetest.Store {
			return must(redisstore.New(testhost.StartRedis(b).Client(nil), redisstore.Options{Timeout: 10 * time.Second}))
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b)
			b.Run("alone", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := call(s); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := call(s); err != nil {
							b.Error(err)
						}
					}
				})
			})
		})
	}
}

// BenchmarkToken issues a token and uses it.
func BenchmarkToken(b *testing.B) {
	benchmark(b, func(s storetest.Store) error {
		tokens, err := coord.NewTokens(s)
		if err != nil {
			return err
		}
		id := coord.NewID()
		if err := tokens.Issue(b.Context(), id, []byte("a vm"), time.Second); err != nil {
			return err
		}
		_, err = tokens.Use(b.Context(), id, "ada")
		return err
	})
}

// BenchmarkLease gets the lease of a user of its own, and releases it.
func BenchmarkLease(b *testing.B) {
	benchmark(b, func(s storetest.Store) error {
		leases, err := coord.NewLeases(s, coord.LeaseOptions{Name: "one"})
		if err != nil {
			return err
		}
		lease, err := leases.Acquire(b.Context(), coord.NewID())
		if err != nil {
			return err
		}
		return lease.Release()
	})
}

func must[S storetest.Store](s S, err error) storetest.Store {
	if err != nil {
		panic(err)
	}
	return s
}
