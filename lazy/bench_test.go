package lazy_test

import (
	"context"
	"sync"
	"testing"

	"github.com/lazyreq/lazyreq/lazy"
)

func one(context.Context) (int, error) { return 1, nil }

func plainOne() (int, error) { return 1, nil }

// BenchmarkHit reads values that are already computed.
func BenchmarkHit(b *testing.B) {
	ctx := b.Context()
	v := lazy.New(one)
	once := sync.OnceValues(plainOne)
	for _, bm := range []struct {
		name string
		get  func() (int, error)
	}{
		{"Value", func() (int, error) { return v.Get(ctx) }},
		{"OnceValues", func() (int, error) { return once() }},
	} {
		if _, err := bm.get(); err != nil {
			b.Fatal(err)
		}
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bm.get()
			}
		})
	}
}

// BenchmarkFirst makes a value and computes it.
func BenchmarkFirst(b *testing.B) {
	s := lazy.NewScope(b.Context())
	defer s.Close()
	for _, bm := range []struct {
		name string
		get  func() (int, error)
	}{
		{"ValueInline", func() (int, error) { return lazy.New(one).Get(context.Background()) }},
		{"ValueOnGoroutine", func() (int, error) { return lazy.New(one).Get(b.Context()) }},
		{"ScopeInline", func() (int, error) { return lazy.In(s, one).Get(s.Context()) }},
		{"ScopeOnGoroutine", func() (int, error) { return lazy.In(s, one).Get(b.Context()) }},
		{"OnceValues", func() (int, error) { return sync.OnceValues(plainOne)() }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bm.get()
			}
		})
	}
}
