package algorithms

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// tiny returns rules that are so small that a test can try every sequence of takes.
func tiny() []subject {
	const per = 4 * tick
	return []subject{
		{"buckets of one", []ratelimit.Rule{bucketRule(2, per, tick, 2*per)}},
		{"buckets", []ratelimit.Rule{bucketRule(2, per, 2*tick, 2*per)}},
		{"buckets that don't divide Per", []ratelimit.Rule{bucketRule(2, per, 3*tick, 12*tick)}},
		{"log", []ratelimit.Rule{slidingLogRule(2, per)}},
		{"window", []ratelimit.Rule{fixedWindowRule(2, per)}},
		{"gcra", []ratelimit.Rule{gcraRule(2, per, 2)}},
		{"gcra, small burst", []ratelimit.Rule{gcraRule(2, per, 1)}},
		{"throttle", []ratelimit.Rule{ratelimit.Throttle(per)}},
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
	longest  = 7
	lifetime = 12 // ticks: the longest window, and what can come before it
)

// try takes what is planned, if that passes, and then tries all takes in the ticks from at
// on. It believes Take alone: Peek's answer could be stricter.
func (e *everything) try(t *testing.T, plan []charge, at int) {
	c := newClient(e.subject, 0)
	for _, ch := range plan {
		c.now = ch.at
		c.take(ch.n)
	}
	require.NoError(t, c.err)
	if len(c.charges) < len(plan) {
		return // the last one is denied
	}
	e.runs++
	for w := range e.most {
		e.most[w] = max(e.most[w], maxUnitsIn(plan, time.Duration(w+1)*tick))
	}
	for ; at < lifetime; at++ {
		for n := int64(1); n <= e.rules[0].Burst(); n++ {
			e.try(t, append(plan[:len(plan):len(plan)], charge{time.Duration(at) * tick, n}), at+1)
		}
	}
}

// TestBoundsAreReached is a proof for the smallest rules: nothing that a client can do
// gets more through than the bound, in any window, and something gets as much.
func TestBoundsAreReached(t *testing.T) {
	for _, s := range tiny() {
		e := everything{subject: s, most: make([]int64, longest)}
		e.try(t, nil, 0)
		for w, most := range e.most {
			require.Equal(t, s.theoreticalMax(time.Duration(w+1)*tick), most, "%s, %d ticks, %d runs", s.name, w+1, e.runs)
		}
	}
}
