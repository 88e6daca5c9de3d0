package reqctx_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/reqctx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBoom = errors.New("boom")

// quiet returns a registry that logs nothing.
func quiet() *reqctx.Registry {
	return reqctx.NewRegistry(reqctx.Options{Logger: slog.New(slog.DiscardHandler)})
}

// logged returns a registry and a buffer with its log.
func logged() (*reqctx.Registry, *bytes.Buffer) {
	var log bytes.Buffer
	return reqctx.NewRegistry(reqctx.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

// provide makes a key and provides its property.
func provide[T any](reg *reqctx.Registry, name string, p reqctx.Prop[T]) reqctx.Key[T] {
	k := reqctx.NewKey[T](name)
	reqctx.Provide(reg, k, p)
	return k
}

// provideState makes a key and provides a state with the value v.
func provideState[T any](reg *reqctx.Registry, name string, v T) reqctx.Key[T] {
	k := reqctx.NewKey[T](name)
	reqctx.ProvideState(reg, k, gives(v, nil))
	return k
}

// gives returns a Resolve function that returns v and err.
func gives[T any](v T, err error) func(context.Context) (T, error) {
	return func(context.Context) (T, error) { return v, err }
}

// takes returns a Resolve function that returns v after d, or the cause if its context ends first.
func takes[T any](d time.Duration, v T) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		select {
		case <-time.After(d):
			return v, nil
		case <-ctx.Done():
			var zero T
			return zero, context.Cause(ctx)
		}
	}
}

// stubborn returns a Resolve function that returns v after d, even if its context ends.
func stubborn[T any](d time.Duration, v T) func(context.Context) (T, error) {
	return func(context.Context) (T, error) {
		<-time.After(d)
		return v, nil
	}
}

// journal is a list of events, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string{}, j.lines...)
}

// panicOf returns what fn panics with.
func panicOf(fn func()) (v any) {
	defer func() { v = recover() }()
	fn()
	return nil
}

// request returns a new request. At the end of the test, it is finished, and the test fails if that returns an error.
func request(t *testing.T, reg *reqctx.Registry) *reqctx.Host { return requestOf(t, t.Context(), reg) }

func requestOf(t *testing.T, ctx context.Context, reg *reqctx.Registry) *reqctx.Host {
	c := reqctx.New(ctx, reg)
	t.Cleanup(func() { require.NoError(t, c.Finish()) })
	return c
}

// requireGet checks that the property has the value want.
func requireGet[T any](t *testing.T, ctx context.Context, k reqctx.Key[T], want T) {
	t.Helper()
	if !assertGet(t, ctx, k, want) {
		t.FailNow()
	}
}

// assertGet is like requireGet, but may be called on any goroutine.
func assertGet[T any](t *testing.T, ctx context.Context, k reqctx.Key[T], want T) bool {
	t.Helper()
	got, err := k.Get(ctx)
	return assert.NoError(t, err) && assert.Equal(t, want, got)
}

// errorsOf returns the errors of all functions that use the property k, and of a function that needs a request.
func errorsOf(ctx context.Context, k reqctx.Key[int]) map[string]error {
	_, get := k.Get(ctx)
	_, peek, _ := k.Peek(ctx)
	_, byName := reqctx.Get(ctx, k.Name())
	_, owner := k.Owner(ctx)
	return map[string]error{
		"Get": get, "Peek": peek, "Get by name": byName, "Owner": owner, "Require": k.Require(ctx), "Start": k.Start(ctx),
		"Set": k.Set(ctx, 1), "Set by name": reqctx.Set(ctx, k.Name(), 1), "Invalidate": k.Invalidate(ctx),
		"Resolve": reqctx.Resolve(ctx, k.Name()), "Resolve several": reqctx.Resolve(ctx, k.Name(), k.Name()),
	}
}
