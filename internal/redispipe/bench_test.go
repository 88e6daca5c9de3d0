package redispipe

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// BenchmarkRun compares calls of scripts of their own, and calls of one Batch for different keys
// and for one key, with go-redis' EvalSha.
func BenchmarkRun(b *testing.B) {
	c := testhost.StartRedis(b).Client(nil)
	p := newPipe(b, c)
	plain := redis.NewScript(incr.Source())
	keys := make([]string, 4096)
	for i := range keys {
		keys[i] = "k" + strconv.Itoa(i)
	}
	for _, kind := range []struct {
		name string
		call func(i int) error
	}{
		{"script", func(i int) error {
			_, err := p.Run(b.Context(), long, add(keys[i%len(keys)], 1))
			return err
		}},
		{"batch", func(i int) error {
			_, err := p.Run(b.Context(), long, of(&counters, keys[i%len(keys)], 1))
			return err
		}},
		{"hot key", func(int) error {
			_, err := p.Run(b.Context(), long, of(&counters, "hot", 1))
			return err
		}},
		{"go-redis", func(i int) error { return plain.Run(b.Context(), c, keys[i%len(keys):][:1], 1).Err() }},
	} {
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, callers), func(b *testing.B) {
				b.ReportAllocs()
				bench(b, callers, kind.call)
			})
		}
	}
}

// bench has callers make b.N calls together.
func bench(b *testing.B, callers int, call func(i int) error) {
	var made atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := int(made.Add(1)); i <= b.N; i = int(made.Add(1)) {
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
