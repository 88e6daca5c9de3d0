package reqctx_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lazyreq/lazyreq/reqctx"
)

type user struct{ name string }

var (
	benchUser = reqctx.NewKey[*user]("user")
	benchKeys = func() (keys []reqctx.Key[*user]) {
		for i := range 25 {
			keys = append(keys, reqctx.NewKey[*user](fmt.Sprint("p", i)))
		}
		return keys
	}()
)

// benchRegistry has n properties, one of which is benchUser.
func benchRegistry(n int) *reqctx.Registry {
	reg := reqctx.NewRegistry(reqctx.Options{})
	ada := &user{"ada"}
	p := reqctx.Prop[*user]{Resolve: func(context.Context) (*user, error) { return ada, nil }}
	reqctx.Provide(reg, benchUser, p)
	for _, k := range benchKeys[:n-1] {
		reqctx.Provide(reg, k, p)
	}
	return reg
}

type depthKey int

// BenchmarkHit compares reading a resolved property, without and with an observer, with ctx.Value, five values deep.
func BenchmarkHit(b *testing.B) {
	h := reqctx.New(context.Background(), benchRegistry(4))
	c := &h.Context
	if _, err := benchUser.Get(c); err != nil {
		b.Fatal(err)
	}
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if u, err := benchUser.Get(c); err != nil || u.name != "ada" {
				b.Fatal(u, err)
			}
		}
	})
	b.Run("derived", func(b *testing.B) {
		ctx := context.WithValue(context.Context(c), depthKey(0), 1)
		b.ReportAllocs()
		for b.Loop() {
			if u, err := benchUser.Get(ctx); err != nil || u.name != "ada" {
				b.Fatal(u, err)
			}
		}
	})
}

// BenchmarkFirst makes a context and resolves one property of it.
func BenchmarkFirst(b *testing.B) {
	reg := benchRegistry(16)
	b.ReportAllocs()
	for b.Loop() {
		h := reqctx.New(context.Background(), reg)
		c := &h.Context
		if u, err := benchUser.Get(c); err != nil || u == nil {
			b.Fatal(u, err)
		}
	}
}

// BenchmarkUntouched begins and ends a request that has 16 properties and uses none of them.
func BenchmarkUntouched(b *testing.B) {
	reg := benchRegistry(16)
	b.ReportAllocs()
	for b.Loop() {
		h := reqctx.New(context.Background(), reg)
		if h.Commit(200, nil) != nil || !h.Idle() || h.Finish() != nil {
			b.Fatal("not untouched")
		}
	}
}
