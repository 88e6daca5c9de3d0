package lazy_test

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/sync/singleflight"

	"github.com/lazyreq/lazyreq/lazy"
)

// cache is what one writes without this package: a map for what is there, and
// singleflight for what is not.
type cache struct {
	mu    sync.Mutex
	vals  map[string]int
	group singleflight.Group
}

func (c *cache) get(key string, fn func() (int, error)) (int, error) {
	c.mu.Lock()
	val, ok := c.vals[key]
	c.mu.Unlock()
	if ok {
		return val, nil
	}
	got, err, _ := c.group.Do(key, func() (any, error) {
		val, err := fn()
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.vals == nil {
				c.vals = make(map[string]int)
			}
			c.vals[key] = val
		}
		return val, err
	})
	if err != nil {
		return 0, err
	}
	return got.(int), nil
}

func one(context.Context) (int, error) { return 1, nil }

func plainOne() (int, error) { return 1, nil }

// BenchmarkHit reads what is there.
func BenchmarkHit(b *testing.B) {
	ctx := b.Context()
	v := lazy.New(one)
	once := sync.OnceValues(plainOne)
	var c cache
	for _, bm := range []struct {
		name string
		get  func() (int, error)
	}{
		{"Value", func() (int, error) { return v.Get(ctx) }},
		{"OnceValues", func() (int, error) { return once() }},
		{"MapAndSingleflight", func() (int, error) { return c.get("key", plainOne) }},
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
		b.Run(bm.name+"Parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = bm.get()
				}
			})
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
		{"MapAndSingleflight", func() (int, error) { return new(cache).get("key", plainOne) }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bm.get()
			}
		})
	}
}

// BenchmarkContended has 16 goroutines ask for a new value at once, which lets
// the others come before it is there.
func BenchmarkContended(b *testing.B) {
	const callers = 16
	for _, bm := range []struct {
		name string
		get  func(meet *sync.WaitGroup) func()
	}{
		{"Value", func(meet *sync.WaitGroup) func() {
			ctx := b.Context()
			v := lazy.New(func(context.Context) (int, error) { meet.Wait(); return 1, nil })
			return func() { _, _ = v.Get(ctx) }
		}},
		{"ValueOfScope", func(meet *sync.WaitGroup) func() {
			s := lazy.NewScope(b.Context())
			v := lazy.In(s, func(context.Context) (int, error) { meet.Wait(); return 1, nil })
			return func() { _, _ = v.Get(s.Context()) }
		}},
		{"OnceValues", func(meet *sync.WaitGroup) func() {
			once := sync.OnceValues(func() (int, error) { meet.Wait(); return 1, nil })
			return func() { _, _ = once() }
		}},
		{"MapAndSingleflight", func(meet *sync.WaitGroup) func() {
			var c cache
			return func() { _, _ = c.get("key", func() (int, error) { meet.Wait(); return 1, nil }) }
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var meet, done sync.WaitGroup
				meet.Add(callers)
				get := bm.get(&meet)
				for range callers {
					done.Go(func() {
						meet.Done()
						get()
					})
				}
				done.Wait()
			}
		})
	}
}

// BenchmarkAll waits for eight values at once.
func BenchmarkAll(b *testing.B) {
	b.ReportAllocs()
	ctx := b.Context()
	ws := make([]lazy.Waiter, 8)
	for b.Loop() {
		for i := range ws {
			ws[i] = lazy.New(one)
		}
		if err := lazy.All(ctx, ws...); err != nil {
			b.Fatal(err)
		}
	}
}
