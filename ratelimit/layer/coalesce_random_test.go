package layer

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// step is one event of a history: somebody comes for units, leaves, or the call that is
// under way is answered (both 0).
type step struct{ comes, leaves int }

// caller is somebody who takes, and what the model says of it.
type caller struct {
	*answer
	cancel  context.CancelFunc
	n       int64
	left    bool // before it was answered
	done    bool
	alone   bool // it didn't queue
	allowed bool
	remains int64
}

// TestCoalesceIsOneCallAtATime compares random histories with a model: a queue, and one
// call at a time of all that is in it.
func TestCoalesceIsOneCallAtATime(t *testing.T) {
	const limit = 20
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			switch rapid.IntRange(0, 5).Draw(rt, "event") {
			case 0:
				return step{leaves: rapid.IntRange(1, 20).Draw(rt, "who")}
			case 1:
				return step{}
			default:
				return step{comes: rapid.IntRange(1, 3).Draw(rt, "units")}
			}
		}), 1, 40).Draw(rt, "steps")
		many := rapid.Bool().Draw(rt, "takes many")
		inBubble(t, many, limit, CoalesceOptions{}, func(q *queueing, _ bool) {
			m := &model{queueing: q, free: limit}
			for _, s := range steps {
				m.step(s)
			}
			for len(m.call) > 0 {
				m.step(step{})
			}
			for i, c := range m.callers {
				switch {
				case c.left:
					require.ErrorIs(q, c.err, context.Canceled)
				default:
					require.NoError(q, c.err)
					require.Equal(q, c.allowed, c.res.Allowed, "caller %d", i)
					require.Equal(q, c.remains, c.res.Remaining, "caller %d", i)
				}
				c.cancel()
			}
			require.Equal(q, m.free, q.remaining())
		})
	})
}

type model struct {
	*queueing
	free        int64
	callers     []*caller
	call, queue []*caller
}

func (m *model) step(s step) {
	switch {
	case s.comes > 0:
		m.comes(int64(s.comes))
	case s.leaves > 0 && len(m.callers) > 0:
		m.leaves(m.callers[s.leaves%len(m.callers)])
	case s.leaves == 0 && len(m.call) > 0:
		m.answer()
	}
}

func (m *model) comes(n int64) {
	ctx, cancel := context.WithCancel(m.Context())
	c := &caller{cancel: cancel, n: n, answer: m.take(ctx, n)}
	m.callers = append(m.callers, c)
	if len(m.call) == 0 {
		m.call, c.alone = []*caller{c}, true
	} else {
		m.queue = append(m.queue, c)
	}
}

func (m *model) leaves(c *caller) {
	c.left = c.left || !c.done
	c.cancel()
	synctest.Wait()
	i := slices.Index(m.queue, c)
	if i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
	}
}

// answer charges all of the call. Of one that didn't queue, the store itself sees that its
// caller has left.
func (m *model) answer() {
	for _, c := range m.call {
		c.done = true
		c.allowed = c.n <= m.free
		if c.allowed && !(c.alone && c.left) {
			m.free -= c.n
		}
		c.remains = m.free
	}
	m.call, m.queue = m.queue, nil
	m.answered()
}

// TestEveryResultIsOneOfTheStores has many callers at once: what they get is what the
// store, asked one take after another, has said.
func TestEveryResultIsOneOfTheStores(t *testing.T) {
	const callers, each, limit = 32, 60, 3000
	memory, _ := newMemory(t)
	store := &spy{Store: memory, first: func(context.Context) error { runtime.Gosched(); return nil }}
	c, err := NewCoalesce(spyOfMany{store}, CoalesceOptions{})
	require.NoError(t, err)
	got := make([][]ratelimit.Result, callers)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for range each {
				res, err := c.DoOne(t.Context(), take(gcra(limit), "k", 1+rand.Int64N(3)))
				if err != nil {
					t.Error(err)
				}
				got[i] = append(got[i], res)
			}
		})
	}
	wg.Wait()
	for _, results := range got {
		require.True(t, slices.IsSortedFunc(results, func(a, b ratelimit.Result) int { return cmp.Compare(b.Remaining, a.Remaining) }),
			"a caller's own takes are in order")
	}
	require.Equal(t, counted(store.order), counted(slices.Concat(got...)))
	require.Less(t, len(store.hows()), callers*each, "some shared a call")
	var left int64 = limit
	for _, res := range store.order {
		left -= res.Receipt.N
		require.Equal(t, left, res.Remaining)
	}
}

func counted(results []ratelimit.Result) map[ratelimit.Result]int {
	n := map[ratelimit.Result]int{}
	for _, res := range results {
		n[res]++
	}
	return n
}
