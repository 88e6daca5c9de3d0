// Package single runs one op on a store of lists.
package single

import (
	"context"
	"fmt"
)

// Func returns the store's method DoOne, or a function that calls Do with a list of one if the
// store has no such method. A reply of any other length is an error that wraps broken.
func Func[Op, Result any](store interface {
	Do(ctx context.Context, ops []Op) ([]Result, error)
}, broken error,
) func(context.Context, Op) (Result, error) {
	if s, ok := store.(interface {
		DoOne(ctx context.Context, op Op) (Result, error)
	}); ok {
		return s.DoOne
	}
	return func(ctx context.Context, op Op) (res Result, err error) {
		out, err := store.Do(ctx, []Op{op})
		switch {
		case err != nil:
			return res, err
		case len(out) != 1:
			return res, fmt.Errorf("%w: %d results of one op", broken, len(out))
		}
		return out[0], nil
	}
}
