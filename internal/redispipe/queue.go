package redispipe

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/yield"
)

const (
	maxInFlight = 4   // round trips of a queue
	maxCalls    = 256 // calls in a round trip

	// Calls do not wait for another round trip if even the shortest recent round trip took more than longTrip, or if the
	// newest one began more than lateAfter ago. Waiting would then cost more than it saves.
	longTrip  = 500 * time.Microsecond
	lateAfter = time.Millisecond

	// maxAlone limits the yields of a program that makes one call at a time: a yield wakes another processor, which makes
	// the call slower by a tenth. After maxAlone round trips that no other call has joined, only one in maxAlone yields.
	maxAlone = 8
)

// queue collects the calls for a node. Its length is not limited, but callers do not wait beyond their deadlines.
type queue struct {
	pipe   *Pipe
	node   *redis.Client // the node's client
	client *redis.Client // node, or a copy with the same pool and with ContextTimeoutEnabled
	addr   string        // the node's address, for errors

	mu       sync.Mutex
	calls    []*call       // waiting calls
	inFlight int           // round trips that have begun or are about to begin
	sending  int           // calls in these round trips
	load     float64       // the recent maximum of sending
	began    time.Time     // when the newest round trip began
	rtt      time.Duration // the shortest of the last round trips
	alone    int           // the number of round trips since a call has joined one during its yield
	yielding bool          // the only round trip has not begun yet and will take all waiting calls
}

func newQueue(p *Pipe, node *redis.Client) *queue {
	q := &queue{pipe: p, node: node, client: node, addr: node.Options().Addr}
	addFailFast(node)
	if !node.Options().ContextTimeoutEnabled {
		q.client = node.WithTimeout(0) // has the same pool, but its own options and no hooks
		q.client.Options().ContextTimeoutEnabled = true
		q.client.AddHook(failFast{})
	}
	return q
}

// start queues calls, and sends them on another goroutine if a round trip may begin.
func (q *queue) start(calls ...*call) {
	if first := q.add(calls...); first != nil {
		go q.run(first)
	}
}

// do sends a call and waits until it is finished. The call is sent on this goroutine if it is the first call of its round
// trip, and no other call of the round trip has a later deadline.
func (q *queue) do(c *call) {
	if calls := q.add(c); calls != nil {
		deadline := latest(calls)
		if calls[0] == c && !deadline.After(c.deadline.Add(time.Millisecond)) {
			calls = q.roundTrip(calls, deadline)
		}
		if calls != nil {
			go q.run(calls)
		}
	}
	c.wait()
}

// run makes a round trip with calls, and then round trips with the calls that were queued in the meantime.
func (q *queue) run(calls []*call) {
	for calls != nil {
		calls = q.roundTrip(calls, latest(calls))
	}
}

// add queues calls. If a round trip may begin, add returns the calls of this round trip, which the caller must send.
func (q *queue) add(calls ...*call) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, calls...)
	if !q.mayBeginLocked() {
		return nil // another round trip will take the calls
	}
	q.inFlight++
	q.began = time.Now()
	if q.inFlight == 1 {
		q.waitForMoreLocked(len(calls))
	}
	return q.takeLocked()
}

// mayBeginLocked reports whether a round trip with the waiting calls may begin. Fewer round trips are better, because a
// command with many keys is much cheaper than many commands. But while Redis works on half of the calls, this process can
// work on the other half. So if a round trip is in flight, another one begins when half of the usual number of concurrent
// calls wait.
func (q *queue) mayBeginLocked() bool {
	switch {
	case q.inFlight == 0:
		return true
	case q.inFlight == maxInFlight || q.yielding:
		return false
	}
	return float64(len(q.calls)) >= q.load/2 || q.rtt > longTrip || time.Since(q.began) > lateAfter
}

// waitForMoreLocked lets other calls join the n calls of a round trip, unless the last round trips were not joined either.
// It releases q.mu meanwhile.
func (q *queue) waitForMoreLocked(n int) {
	q.alone++
	if q.alone > maxAlone && q.alone%maxAlone != 0 {
		return
	}
	q.yieldLocked()
	if len(q.calls) != n {
		q.alone = 0
	}
}

// yieldLocked yields the processor while the queue grows. It releases q.mu meanwhile.
func (q *queue) yieldLocked() {
	q.yielding = true
	q.mu.Unlock()
	yield.WhileGrowing(q.len)
	q.mu.Lock()
	q.yielding = false
}

// len returns the number of waiting calls.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// takeLocked returns the calls of a round trip, which the caller has already counted in q.inFlight. If no calls wait,
// takeLocked returns nil and corrects the count. If too many calls wait, it begins another round trip with the rest.
func (q *queue) takeLocked() []*call {
	taken := q.popLocked()
	if taken == nil {
		q.inFlight--
		return nil
	}
	q.sending += len(taken)
	q.load = max(float64(q.sending), q.load*15/16)
	if len(q.calls) > 0 && q.inFlight < maxInFlight {
		q.inFlight++
		go q.run(q.takeLocked())
	}
	return taken
}

// popLocked removes the calls of a round trip from the queue and returns them. It drops calls that were abandoned.
func (q *queue) popLocked() (popped []*call) {
	for i, c := range q.calls {
		q.calls[i] = nil
		if c.state.Load() != queued {
			continue
		}
		if popped == nil {
			popped = make([]*call, 0, min(len(q.calls)-i, maxCalls))
		}
		if popped = append(popped, c); len(popped) == maxCalls {
			q.calls = q.calls[i+1:]
			return popped
		}
	}
	q.calls = q.calls[:0]
	return popped
}

// next ends a round trip of n calls. It returns the calls of the next round trip, or nil if no round trip may begin. If
// no other round trip is in flight, next first yields, because callers that have just got their replies often call again.
func (q *queue) next(began time.Time, n int) []*call {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.sending -= n
	took := now.Sub(began)
	if q.rtt += q.rtt / 64; took < q.rtt || q.rtt == 0 {
		q.rtt = took
	}
	if len(q.calls) == 0 || !q.mayBeginLocked() {
		return nil
	}
	q.inFlight++
	q.began = now
	if q.inFlight == 1 {
		q.yieldLocked()
	}
	return q.takeLocked()
}

// latest returns the latest deadline of calls.
func latest(calls []*call) time.Time {
	d := calls[0].deadline
	for _, c := range calls[1:] {
		if c.deadline.After(d) {
			d = c.deadline
		}
	}
	return d
}
