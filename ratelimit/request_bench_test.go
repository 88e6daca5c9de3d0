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

// BenchmarkRequest is a request's life with and without a take, so that the difference
// is what the take costs.
func BenchmarkRequest(b *testing.B) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	p := ipPolicy("ip", 1<<53)
	ratelimit.Provide(reg, newStore(b, memstore.Options{}), p)
	r := httptest.NewRequest("GET", "/", nil)
	for name, use := range map[string]func(ratelimit.Limit) error{
		"untouched": nil,
		"take":      func(l ratelimit.Limit) error { _, err := l.Take(); return err },
		"count":     func(l ratelimit.Limit) error { _, err := l.Count(); return err },
		"take and count": func(l ratelimit.Limit) error {
			if _, err := l.Take(); err != nil {
				return err
			}
			_, err := l.Count()
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			header := make(http.Header, 8)
			b.ReportAllocs()
			for b.Loop() {
				clear(header)
				h := reqctx.New(context.Background(), reg)
				c := &h.Context
				c.SetRequest(r)
				if use != nil {
					l, err := ratelimit.From(c)
					if err == nil {
						err = use(l)
					}
					if err != nil {
						b.Fatal(err)
					}
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

// What a take adds to a request, from finding the limit to the header's fields.
func TestTakeAllocates(t *testing.T) {
	reg := reqctx.NewRegistry(reqctx.Options{})
	ratelimit.Provide(reg, newStore(t, memstore.Options{}), ipPolicy("ip", 1<<53))
	r := httptest.NewRequest("GET", "/", nil)
	header := make(http.Header, 8)
	require.LessOrEqual(t, testing.AllocsPerRun(500, func() {
		clear(header)
		h := reqctx.New(context.Background(), reg)
		c := &h.Context
		c.SetRequest(r)
		l, _ := ratelimit.From(c)
		if res, err := l.Take(); err != nil || !res.Allowed {
			t.Error(res, err)
		}
		_ = h.Commit(http.StatusOK, header)
		_ = h.Finish()
	}), 13.0)
}
