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

	// While a round trip is in flight, calls are better off in the next one: a command of many
	// keys costs Redis and this process a fraction of many commands. Another round trip begins
	// beside it if enough calls wait to keep Redis and this process working at the same time,
	// if round trips take so long that waiting costs more than it saves, or if the newest one is
	// late.
	minWork   = 32
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
	calls    []*call
	inFlight int           // round trips, those about to begin included
	began    time.Time     // when the newest of them began
	rtt      time.Duration // the shortest of the last round trips
	alone    int           // first calls since another call joined one
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
		return nil // the next round trip takes them
	}
	q.inFlight++
	q.began = time.Now()
	if q.inFlight == 1 {
		q.waitForMoreLocked(len(calls))
	}
	return q.takeLocked()
}

// mayBeginLocked reports whether a round trip may begin now.
func (q *queue) mayBeginLocked() bool {
	switch q.inFlight {
	case 0:
		return true
	case maxInFlight:
		return false
	}
	return redisWork(q.calls) >= minWork || q.rtt > longTrip || time.Since(q.began) > lateAfter
}

// redisWork returns what calls cost Redis, in calls of a Batch.
func redisWork(calls []*call) (n int) {
	for _, c := range calls {
		if n++; c.Batch == nil {
			n++
		}
	}
	return n
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
	q.mu.Unlock()
	defer q.mu.Lock()
	yield.WhileGrowing(q.len)
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// takeLocked returns the calls of a round trip that is counted as in flight, or nil if none are
// queued, and then it is not counted any more. If there are too many calls for one round trip,
// another one begins.
func (q *queue) takeLocked() []*call {
	var taken []*call
	for i, c := range q.calls {
		q.calls[i] = nil
		if c.state.Load() == queued { // not abandoned
			if taken == nil {
				taken = make([]*call, 0, min(len(q.calls)-i, maxCalls))
			}
			taken = append(taken, c)
		}
		if len(taken) == maxCalls {
			q.calls = q.calls[i+1:]
			if q.inFlight < maxInFlight {
				q.inFlight++
				go q.run(q.takeLocked())
			}
			return taken
		}
	}
	q.calls = q.calls[:0]
	if taken == nil {
		q.inFlight--
	}
	return taken
}

// next returns the calls of the round trip that follows one that began then. Callers that have
// just got their replies often call again, so it yields to them if nothing else is in flight.
func (q *queue) next(began time.Time) []*call {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	took := now.Sub(began)
	if q.rtt += q.rtt / 64; took < q.rtt || q.rtt == 0 {
		q.rtt = took
	}
	if q.inFlight == 1 && len(q.calls) > 0 {
		q.yieldLocked()
	}
	if len(q.calls) > 0 {
		q.began = time.Now()
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
