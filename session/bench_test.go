package session_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// benchmarkRequest runs requests that carry a cookie and reports store calls.
func benchmarkRequest(b *testing.B, handler func(ctx context.Context) error) {
	s := newSite(b, session.Options{})
	cookie := s.login(b, "ada")
	r := s.begin(b, cookie).Request()
	before := s.store.calls()
	b.ReportAllocs()
	for b.Loop() {
		h := reqctx.New(b.Context(), s.reg)
		c := &h.Context
		c.SetRequest(r)
		if err := handler(c); err != nil {
			b.Fatal(err)
		}
		if err := h.Commit(http.StatusOK, http.Header{}); err != nil {
			b.Fatal(err)
		}
		if err := h.Finish(); err != nil {
			b.Fatal(err)
		}
	}
	after := s.store.calls()
	calls := after[0] + after[1] + after[2] - before[0] - before[1] - before[2]
	b.ReportMetric(float64(calls)/float64(b.N), "storecalls/op")
}

func BenchmarkRequestWithoutSession(b *testing.B) {
	benchmarkRequest(b, func(context.Context) error { return nil })
}

func BenchmarkRequestUntouched(b *testing.B) {
	benchmarkRequest(b, func(ctx context.Context) error {
		_, err := session.From(ctx)
		return err
	})
}

func BenchmarkRequestRead(b *testing.B) {
	benchmarkRequest(b, func(ctx context.Context) error {
		_, err := userField.Get(ctx)
		return err
	})
}

func BenchmarkRequestWrite(b *testing.B) {
	benchmarkRequest(b, func(ctx context.Context) error { return userField.Set(ctx, "bob") })
}
