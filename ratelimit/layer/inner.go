package layer

import (
	"context"
	"fmt"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// doOne returns store's DoOne, made from Do if it has none.
func doOne(store ratelimit.Store) func(context.Context, ratelimit.Op) (ratelimit.Result, error) {
	if s, ok := store.(interface {
		DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error)
	}); ok {
		return s.DoOne
	}
	return func(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
		out, err := store.Do(ctx, []ratelimit.Op{op})
		switch {
		case err != nil:
			return ratelimit.Result{}, err
		case len(out) != 1:
			return ratelimit.Result{}, fmt.Errorf("%w: %d results of one op", ratelimit.ErrStore, len(out))
		}
		return out[0], nil
	}
}
