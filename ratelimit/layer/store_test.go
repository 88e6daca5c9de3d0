package layer

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

func newMemory(tb testing.TB) (*memstore.Store, *storetest.ManualClock) {
	clock := storetest.NewClock(someTime)
	m, err := memstore.New(memstore.Options{Clock: clock.Now})
	require.NoError(tb, err)
	return m, clock
}

// asked is one call of a store.
type asked struct {
	how string // DoOne or Do
	ctx context.Context
	ops []ratelimit.Op
}

// spy is a store that notes its calls, and lets each wait for hold and do first.
type spy struct {
	ratelimit.Store
	hold  chan struct{}               // if not nil, a call waits to receive
	first func(context.Context) error // if not nil, called after that

	mu    sync.Mutex
	calls []asked
	order []ratelimit.Result // of everything that was asked, in order
}

func (s *spy) come(call asked) error {
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	if s.hold != nil {
		<-s.hold
	}
	if s.first != nil {
		return s.first(call.ctx)
	}
	return nil
}

func (s *spy) ask(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.Store.Do(ctx, ops)
	s.order = append(s.order, out...)
	return out, err
}

func (s *spy) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := s.come(asked{how: "Do", ctx: ctx, ops: slices.Clone(ops)}); err != nil {
		return nil, err
	}
	return s.ask(ctx, ops)
}

func (s *spy) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	if err := s.come(asked{how: "DoOne", ctx: ctx, ops: []ratelimit.Op{op}}); err != nil {
		return ratelimit.Result{}, err
	}
	out, err := s.ask(ctx, []ratelimit.Op{op})
	if err != nil {
		return ratelimit.Result{}, err
	}
	return out[0], nil
}

// hows returns how the store was called, since the last time.
func (s *spy) hows() (how []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		how = append(how, c.how)
	}
	s.calls = nil
	return how
}

func gcra(limit int64) ratelimit.Rule {
	return ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: limit, Per: time.Minute}))
}

func take(r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take}
}
