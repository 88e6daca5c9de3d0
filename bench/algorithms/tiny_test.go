package algorithms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// tiny are rules so small that everything that can be done to them can be tried.
func tiny() []subject {
	const per = 4 * tick
	return []subject{
		{"buckets of one", []ratelimit.Rule{buckets(2, per, tick, 2*per)}},
		{"buckets", []ratelimit.Rule{buckets(2, per, 2*tick, 2*per)}},
		{"buckets that don't divide Per", []ratelimit.Rule{buckets(2, per, 3*tick, 12*tick)}},
		{"log", []ratelimit.Rule{slidingLog(2, per)}},
		{"window", []ratelimit.Rule{fixedWindow(2, per)}},
		{"gcra", []ratelimit.Rule{gcra(2, per, 2)}},
		{"gcra, small burst", []ratelimit.Rule{gcra(2, per, 1)}},
		{"throttle", []ratelimit.Rule{ratelimit.Must(ratelimit.Throttle(per))}},
	}
}

// everything is the most that gets through in each window of 1 to longest ticks,
// whatever a client does in some ticks.
type everything struct {
	subject
	most []int64
	runs int
}

const (
	longest  = 9
	lifetime = 14 // ticks: the longest window, and what can come before it
)

// try goes through all takes that follow those of done, in the ticks from at on.
func (e *everything) try(t *testing.T, done []charge, at int) {
	c := newClient(e.subject, 0)
	for _, ch := range done {
		c.now = ch.at
		require.True(t, c.take(ch.n).Allowed)
	}
	e.runs++
	for w := range e.most {
		e.most[w] = max(e.most[w], worst(done, time.Duration(w+1)*tick))
	}
	for ; at < lifetime; at++ {
		c.now = time.Duration(at) * tick
		left := c.peek().Remaining
		for n := int64(1); n <= left; n++ {
			next := append(done[:len(done):len(done)], charge{c.now, n})
			e.try(t, next, at+1)
		}
	}
	require.NoError(t, c.err)
}

// TestBoundsAreReached is a proof for the smallest rules: nothing that a client can do
// gets more through than the bound, in any window, and something gets as much.
func TestBoundsAreReached(t *testing.T) {
	for _, s := range tiny() {
		e := everything{subject: s, most: make([]int64, longest)}
		e.try(t, nil, 0)
		for w, most := range e.most {
			require.Equal(t, s.bound(time.Duration(w+1)*tick), most, "%s, %d ticks, %d runs", s.name, w+1, e.runs)
		}
		t.Log(s.name, e.runs)
	}
}
