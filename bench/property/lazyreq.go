package property

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/reqctx"
)

var keys = func() (list [defined]reqctx.Key[*value]) {
	for i := range list {
		list[i] = reqctx.NewKey[*value](fmt.Sprint("p", i))
	}
	return list
}()

// newRegistry returns a registry with the first n of keys.
func newRegistry(n int) *reqctx.Registry {
	reg := reqctx.NewRegistry(reqctx.Options{})
	for _, k := range keys[:n] {
		reqctx.Provide(reg, k, reqctx.Prop[*value]{
			Resolve: func(context.Context) (*value, error) { return ada, nil },
		})
	}
	return reg
}

// newRequest returns the context of a request as a handler gets it.
//
//go:noinline
func newRequest(reg *reqctx.Registry) context.Context {
	return &reqctx.New(context.Background(), reg).Context
}

func lazyHit() loop {
	ctx := newRequest(newRegistry(defined))
	return func(n int) error {
		for range n {
			if v, err := keys[0].Get(ctx); v != ada || err != nil {
				return checkValue(v, err)
			}
		}
		return nil
	}
}

func lazyFirst(props int) loop {
	reg := newRegistry(props)
	return func(n int) error {
		for range n {
			h := reqctx.New(context.Background(), reg)
			if v, err := keys[0].Get(&h.Context); v != ada || err != nil {
				return checkValue(v, err)
			}
			if err := h.Finish(); err != nil {
				return err
			}
		}
		return nil
	}
}

func lazySetup(props int) loop {
	reg := newRegistry(props)
	return func(n int) error {
		for range n {
			if err := reqctx.New(context.Background(), reg).Finish(); err != nil {
				return err
			}
		}
		return nil
	}
}
