package property

import "context"

// chainKey is the key of a value in the chain, as packages have one each.
type chainKey int

// boxed are the keys as context.WithValue takes them, so that making them interfaces
// costs the chain nothing.
var boxed = func() (list [defined]any) {
	for i := range list {
		list[i] = chainKey(i)
	}
	return list
}()

// contextChain returns a context with props values, as a chain of middleware makes it. The
// first one is the deepest.
//
//go:noinline
func contextChain(props int) context.Context {
	ctx := context.Background()
	for _, k := range boxed[:props] {
		ctx = context.WithValue(ctx, k, ada)
	}
	return ctx
}

func chainHit() loop {
	ctx := contextChain(1 + depth)
	return func(n int) error {
		for range n {
			if v, _ := ctx.Value(chainKey(0)).(*value); v != ada {
				return checkValue(v, nil)
			}
		}
		return nil
	}
}

func chainFirst(props int) loop {
	return func(n int) error {
		for range n {
			if v, _ := contextChain(props).Value(chainKey(props - 1 - depth)).(*value); v != ada {
				return checkValue(v, nil)
			}
		}
		return nil
	}
}

func chainSetup(props int) loop {
	return func(n int) error {
		for range n {
			if contextChain(props) == nil {
				return checkValue(nil, nil)
			}
		}
		return nil
	}
}
