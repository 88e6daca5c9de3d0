package lazy_test

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/lazy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow returns a function that takes d and respects its context.
func slow[T any](d time.Duration, val T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		if err := pause(ctx, d); err != nil {
			var zero T
			return zero, err
		}
		return val, nil
	}
}

// pause waits for d, or returns the cause of ctx's end.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 { // a timer that is due at once can crash the race detector in a bubble
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// get calls v.Get and returns what it panicked with.
//
//lint:ignore ST1008 the panic comes after the results of Get
func get[T any](ctx context.Context, v *lazy.Value[T]) (val T, err error, panicked any) {
	panicked = catch(func() { val, err = v.Get(ctx) })
	return val, err, panicked
}

// catch returns what fn panicked with.
func catch(fn func()) (panicked any) {
	defer func() { panicked = recover() }()
	fn()
	return nil
}

// goroutine returns the number of the goroutine that calls it.
func goroutine() int {
	buf := make([]byte, 64)
	buf = buf[:runtime.Stack(buf, false)]
	id, _ := strconv.Atoi(string(bytes.Fields(buf)[1]))
	return id
}

// apart returns a context that ends with the test and has its own Done channel. A scope of this context therefore
// assumes that a waiter with t.Context() can leave early.
func apart(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx
}

// newScope returns a scope that the end of the test closes, without an error.
func newScope(t *testing.T) *lazy.Scope { return newScopeOf(t, apart(t)) }

func newScopeOf(t *testing.T, ctx context.Context) *lazy.Scope {
	s := lazy.NewScope(ctx)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// requireGet checks that v has the value want.
func requireGet[T any](t *testing.T, ctx context.Context, v *lazy.Value[T], want T) {
	t.Helper()
	got, err := v.Get(ctx)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// requireLoad checks that b has the value want for key.
func requireLoad[K comparable, V any](t *testing.T, ctx context.Context, b *lazy.Batch[K, V], key K, want V) {
	t.Helper()
	got, err := b.Get(ctx, key)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
