package algorithms

import (
	"math/rand/v2"
	"time"
)

// horizon is how long an attack lasts, at least: the longest window that is looked at,
// and what comes before it.
const horizon = 3*Per + 2*Per

// moment is what a step waits for.
type moment int

const (
	passes moment = iota // that a unit passes
	whole                // that the whole quota is there, or a lead before it
	later                // a time
	moments
)

// amount is what a step takes then.
type amount int

const (
	one amount = iota
	half
	all
	amounts
)

// step is a part of an attack: to wait, and to take. The attacker knows the state of the
// rules, as a denial's RetryAfter and ResetAfter report it.
type step struct {
	until moment
	lead  time.Duration // of whole
	wait  time.Duration // of later
	take  amount
	drain time.Duration // goes on to take what comes
}

// attack is what a client does, over and over, to get more than it should.
type attack struct {
	phase time.Duration // when it begins, after a whole minute
	steps []step
}

// run returns what gets through.
func (a attack) run(s subject) ([]charge, error) {
	c := newClient(s, a.phase)
	for i := 0; c.err == nil && c.now < horizon; i++ {
		c.step(a.steps[i%len(a.steps)])
	}
	return c.charges, c.err
}

// step takes something or waits, so that an attack ends.
func (c *client) step(s step) {
	v, began := c.peek(), c.now
	switch s.until {
	case passes:
		c.now += v.RetryAfter
	case whole:
		c.now += max(0, v.ResetAfter-s.lead)
	case later:
		c.now += s.wait
	}
	n := c.peek().Remaining
	switch s.take {
	case one:
		n = min(n, 1)
	case half:
		n = (n + 1) / 2
	}
	if n > 0 {
		c.take(n)
	} else if c.now == began {
		c.now += c.peek().RetryAfter
	}
	if s.drain > 0 {
		c.takeAllFor(s.drain)
	}
}

// greedyAttacks takes all there is, and all that comes as it comes, at each of many phases.
func greedyAttacks() []attack {
	list := []attack{{phase: Per - tick, steps: []step{{take: all}}}}
	for i := range 60 {
		list = append(list, attack{phase: time.Duration(i) * Per / 60, steps: []step{{take: all}}})
	}
	return list
}

// edgeAttacks begins with one unit, and takes the others just before they would come back.
func edgeAttacks() []attack {
	steps := []step{{take: one}, {until: whole, lead: tick, take: all}, {take: all}, {take: all}, {take: all}}
	return []attack{{steps: steps}, {phase: Per - tick, steps: steps}}
}

// randomAttacks waits for random times and takes random amounts.
func randomAttacks(rng *rand.Rand) []attack {
	var list []attack
	for range 200 {
		a := attack{phase: randomTime(rng, Per)}
		for range 24 {
			a.steps = append(a.steps, step{until: later, wait: randomTime(rng, Per/2), take: amount(rng.IntN(int(amounts)))})
		}
		list = append(list, a)
	}
	return list
}

// randomTime returns a random time below most, in whole ticks.
func randomTime(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most/tick))) * tick
}
