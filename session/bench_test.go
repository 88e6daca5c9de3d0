package session_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// BenchmarkRequest runs requests that carry a cookie, and reports store calls.
func BenchmarkRequest(b *testing.B) {
	for name, handler := range map[string]func(ctx context.Context) error{
		"without":   func(context.Context) error { return nil },
		"untouched": func(ctx context.Context) error { _, err := session.From(ctx); return err },
		"read":      func(ctx context.Context) error { _, err := userField.Get(ctx); return err },
		"write":     func(ctx context.Context) error { return userField.Set(ctx, "bob") },
	} {
		b.Run(name, func(b *testing.B) {
			s := newSite(b, session.Options{})
			r := s.begin(b, s.login(b, "ada")).Request()
			before := s.store.calls()
			b.ReportAllocs()
			for b.Loop() {
				c := reqctx.New(b.Context(), s.reg)
				c.SetRequest(r)
				if err := handler(c); err != nil {
					b.Fatal(err)
				}
				if err := c.Commit(http.StatusOK, http.Header{}); err != nil {
					b.Fatal(err)
				}
				if err := c.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			after := s.store.calls()
			b.ReportMetric(float64(after[0]+after[1]-before[0]-before[1])/float64(b.N), "storecalls/op")
		})
	}
}
