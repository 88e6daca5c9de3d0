package layer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// TestLateDenialDoesNotUndoAReset checks that the cache ignores a denial that the store decided before a reset, if
// the denial arrives after the reset.
func TestLateDenialDoesNotUndoAReset(t *testing.T) {
	for _, kind := range []ratelimit.Kind{ratelimit.Reset, ratelimit.Refund} {
		synctest.Test(t, func(t *testing.T) {
			m, err := memstore.New(memstore.Options{})
			require.NoError(t, err)
			slow := &slowStore{Store: m}
			c, err := newDenyCache(slow, DenyCacheOptions{})
			require.NoError(t, err)
			r := windowOf(1)
			paid, err := c.DoOne(t.Context(), take(r, "k", 1))
			require.NoError(t, err)
			for i := range c.table.sets {
				c.table.sets[i].forget("k", r, 0)
			}
			slow.hold = make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				res, err := c.DoOne(t.Context(), take(r, "k", 1))
				assert.NoError(t, err)
				assert.False(t, res.Allowed)
			})
			synctest.Wait() // the store has decided the take
			hold := slow.hold
			slow.hold = nil
			_, err = c.DoOne(t.Context(), ratelimit.Op{Rule: r, Key: "k", Kind: kind, Receipt: paid.Receipt})
			require.NoError(t, err)
			close(hold)
			wg.Wait()
			res, err := c.DoOne(t.Context(), take(r, "k", 1))
			require.NoError(t, err)
			require.True(t, res.Allowed, "%v", kind)
		})
	}
}

// slowStore is a store that decides at once. If hold is not nil, it returns the result only when hold is closed.
type slowStore struct {
	ratelimit.Store
	hold chan struct{}
}

func (s *slowStore) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	results, err := s.Store.Do(ctx, ops)
	if s.hold != nil {
		<-s.hold
	}
	return results, err
}

func (s *slowStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(s.Do).DoOne(ctx, op)
}

// TestResetBeforeATakeInAList checks that a take of a denied key passes if it follows a reset in the same list of
// ops.
func TestResetBeforeATakeInAList(t *testing.T) {
	d := newDenyTest(t, DenyCacheOptions{})
	d.take(1, windowOf(1), 1)
	again := take(windowOf(1), "k", 1)
	again.NewGroup = true
	results := d.do(1, ratelimit.Op{Rule: windowOf(1), Key: "k", Kind: ratelimit.Reset}, again)
	require.True(t, results[1].Allowed)
}

// TestFailedResetForgetsDenials checks that the cache does not repeat a denial after a reset or refund that failed or
// panicked, because the store may have run it.
func TestFailedResetForgetsDenials(t *testing.T) {
	for name, first := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errBroken },
		"panic": func(context.Context) error { panic(errBroken) },
	} {
		for _, kind := range []ratelimit.Kind{ratelimit.Reset, ratelimit.Refund} {
			for _, alone := range []bool{true, false} {
				d := newDenyTest(t, DenyCacheOptions{})
				d.take(1, windowOf(1), 1)
				d.take(0, windowOf(1), 1)
				d.spy.Before = first
				func() {
					defer func() { _ = recover() }()
					op := ratelimit.Op{Rule: windowOf(1), Key: "k", Kind: kind}
					var err error
					if alone {
						_, err = d.DoOne(t.Context(), op)
					} else {
						_, err = d.Do(t.Context(), []ratelimit.Op{take(gcra(1), "other", 1), op})
					}
					require.ErrorIs(t, err, errBroken)
				}()
				d.spy.Before = nil
				require.False(t, d.take(1, windowOf(1), 1).Allowed, "%s %v", name, kind)
			}
		}
	}
}

func TestOnlyResultsOfTheStoreAreRemembered(t *testing.T) {
	for s := ratelimit.FromAllowList; s <= ratelimit.FromPrepaid; s++ {
		calls := 0
		inner := fixedStore(func() ratelimit.Result {
			calls++
			return ratelimit.Result{Violated: true, RetryAfter: time.Hour, Source: s}
		})
		c, err := newDenyCache(inner, DenyCacheOptions{})
		require.NoError(t, err)
		for range 3 {
			_, err = c.DoOne(t.Context(), take(gcra(1), "k", 1))
			require.NoError(t, err)
		}
		require.Equal(t, 3, calls, "%v", s)
	}
}

// fixedStore is a store that returns the same result for every op.
type fixedStore func() ratelimit.Result

func (a fixedStore) Do(_ context.Context, ops []ratelimit.Op) (out []ratelimit.Result, err error) {
	for range ops {
		out = append(out, a())
	}
	return out, nil
}

func (a fixedStore) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return storespy.Func(a.Do).DoOne(ctx, op)
}

func TestCachedDenialWithEndedContext(t *testing.T) {
	d := newDenyTest(t, DenyCacheOptions{})
	d.take(1, windowOf(1), 1)
	why := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := d.DoOne(ctx, take(windowOf(1), "k", 1))
	require.ErrorIs(t, err, why)
	_, err = d.Do(ctx, []ratelimit.Op{take(windowOf(1), "k", 1)})
	require.ErrorIs(t, err, why)
}
