package redispipe

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/yield"
)

const (
	maxInFlight = 4   // round trips of one queue
	maxCalls    = 256 // in a round trip

	// Waiting for another round trip costs more than it saves if even the shortest takes this long,
	// or if the newest has taken this long.
	longTrip  = 500 * time.Microsecond
	lateAfter = time.Millisecond

	// A yield wakes another processor, which costs a lone call a tenth of its time. After so
	// many first calls that no other call has joined, only one in maxAlone yields.
	maxAlone = 8
)

// queue collects the calls to one node. It is unbounded: a call leaves it at its deadline at the
// latest.
type queue struct {
	pipe   *Pipe
	node   *redis.Client // the client of the node
	client *redis.Client // node, or a copy with its pool whose connections heed the context's deadline
	addr   string        // the node's, for errors
	dials  *dials        // of the node's pool

	mu       sync.Mutex
	calls    []*call       // those that wait
	inFlight int           // round trips, those about to begin included
	sending  int           // calls in these
	load     float64       // the recent maximum of sending
	began    time.Time     // when the newest round trip began
	rtt      time.Duration // the shortest of the last round trips
	alone    int           // first calls since another call joined one
	yielding bool          // the only round trip is about to begin, and takes what comes meanwhile
}

func newQueue(p *Pipe, node *redis.Client) *queue {
	q := &queue{pipe: p, node: node, client: node, addr: node.Options().Addr, dials: dialsOf(node)}
	if q.addr == sentinelAddr {
		q.addr = "by Sentinel"
	}
	if !node.Options().ContextTimeoutEnabled {
		q.client = node.WithTimeout(0) // the same pool, with options of its own, and no hooks
		q.client.Options().ContextTimeoutEnabled = true
		q.client.AddHook(q.dials)
	}
	return q
}

// do sends a call and returns when it is finished. The call is sent on this goroutine if it is
// the first of its round trip and the connection's deadline is its own.
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

// run makes the round trip of calls, and then those of the calls that were queued meanwhile.
func (q *queue) run(calls []*call) {
	for calls != nil {
		calls = q.roundTrip(calls, latest(calls))
	}
}

// add queues calls. If a round trip may begin, add returns its calls, which the caller sends.
func (q *queue) add(calls ...*call) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, calls...)
	if !q.mayBeginLocked() {
		return nil // another round trip takes them
	}
	q.inFlight++
	q.began = time.Now()
	if q.inFlight == 1 {
		q.waitForMoreLocked(len(calls))
	}
	return q.takeLocked()
}

// mayBeginLocked reports whether a round trip with the waiting calls may begin. They are better off in
// fewer round trips, because a command of many keys costs Redis and this process a fraction of many
// commands. But while Redis works on one half of the calls, this process can work on the other half.
// So a round trip begins beside another one once half of the calls that are usually made at the same
// time wait.
func (q *queue) mayBeginLocked() bool {
	switch {
	case q.inFlight == 0:
		return true
	case q.inFlight == maxInFlight || q.yielding:
		return false
	}
	return float64(len(q.calls)) >= q.load/2 || q.rtt > longTrip || time.Since(q.began) > lateAfter
}

// waitForMoreLocked yields the processor while the queue grows beyond n calls. It releases q.mu
// meanwhile.
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

func (q *queue) yieldLocked() {
	q.yielding = true
	q.mu.Unlock()
	yield.WhileGrowing(q.len)
	q.mu.Lock()
	q.yielding = false
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// takeLocked returns the calls of a round trip that is counted as in flight, or nil if none wait, and
// then it is not counted any more. If too many wait for one round trip, another one begins.
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

// popLocked removes the first calls, as many as a round trip may have, and returns those that were
// not abandoned.
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

// next returns the calls of the round trip that follows one of n calls that began then, or nil if none
// follows: the last one in flight takes the calls that wait. Callers that have just got their replies
// often call again, so it yields to them first.
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
