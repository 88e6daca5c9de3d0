package ratelimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// BenchmarkRequest measures a request with and without a take. The difference is the cost of the take.
func BenchmarkRequest(b *testing.B) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	p := ipPolicy("ip", 1<<53)
	ratelimit.Provide(reg, newStore(b, memstore.Options{}), p)
	r := httptest.NewRequest("GET", "/", nil)
	for name, use := range map[string]func(ctx context.Context) error{
		"untouched": func(context.Context) error { return nil },
		"take":      p.Require,
	} {
		b.Run(name, func(b *testing.B) {
			header := make(http.Header, 8)
			b.ReportAllocs()
			for b.Loop() {
				clear(header)
				h := reqctx.New(context.Background(), reg)
				h.SetRequest(r)
				if err := use(&h.Context); err != nil {
					b.Fatal(err)
				}
				if err := h.Commit(http.StatusOK, header); err != nil {
					b.Fatal(err)
				}
				if err := h.Finish(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTakeAllocates checks the number of allocations in a request with a take.
func TestTakeAllocates(t *testing.T) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	p := ipPolicy("ip", 1<<53)
	ratelimit.Provide(reg, newStore(t, memstore.Options{}), p)
	r := httptest.NewRequest("GET", "/", nil)
	header := make(http.Header, 8)
	allocs := func(require func(ctx context.Context) error) float64 {
		return testing.AllocsPerRun(500, func() {
			clear(header)
			h := reqctx.New(context.Background(), reg)
			h.SetRequest(r)
			if err := require(&h.Context); err != nil {
				t.Error(err)
			}
			_ = h.Commit(http.StatusOK, header)
			_ = h.Finish()
		})
	}
	require.LessOrEqual(t, allocs(p.Require), 10.0)
	require.LessOrEqual(t, allocs(func(ctx context.Context) error {
		l, _ := ratelimit.From(ctx) // after an error, l returns it
		return l.Require()
	}), 11.0)
}
