package redispipe

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/internal/yield"
)

const (
	maxTrips = 4   // round trips of one queue in flight
	maxCalls = 256 // calls in a round trip
)

// queue is where the calls on one node meet. It has no bound: a call stays in it until its
// deadline at most.
type queue struct {
	pipe   *Pipe
	of     *redis.Client // whose node it is
	client *redis.Client // of, or what has its pool, with deadlines that are those of contexts

	mu    sync.Mutex
	calls []*call
	trips int // in flight, or about to be
}

func newQueue(p *Pipe, client *redis.Client) *queue {
	q := &queue{pipe: p, of: client, client: client}
	if !client.Options().ContextTimeoutEnabled {
		q.client = client.WithTimeout(0) // the same pool, with options of its own, and no hooks
		q.client.Options().ContextTimeoutEnabled = true
	}
	return q
}

// do sends a call and returns when it has its outcome. The call goes out on this goroutine if
// it is the first and the deadline of its connection is its own.
func (q *queue) do(c *call) {
	if first := q.add(c); first != nil {
		if first[0] == c && !latest(first).After(c.deadline.Add(time.Millisecond)) {
			if more := q.trip(first); more != nil {
				go q.run(more)
			}
		} else {
			go q.run(first)
		}
	}
	c.wait()
}

// add queues calls. If a round trip may begin, add returns the calls of it, which its caller
// sends.
func (q *queue) add(calls ...*call) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, calls...)
	if q.trips == maxTrips || len(q.calls) > len(calls) { // the end of a trip, or who yields, takes it
		return nil
	}
	q.trips++
	if q.trips == 1 {
		q.mu.Unlock()
		yield.WhileGrowing(q.len)
		q.mu.Lock()
	}
	return q.take()
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// take returns the calls of a round trip that has its place. If there are none, the place
// becomes free, and it returns nil. More calls than that are sent at once, too, as long as there
// are places. The caller holds q.mu.
func (q *queue) take() []*call {
	var taken []*call
	for i, c := range q.calls {
		q.calls[i] = nil
		if c.state.CompareAndSwap(waiting, sent) {
			if taken == nil {
				taken = make([]*call, 0, min(len(q.calls)-i, maxCalls))
			}
			taken = append(taken, c)
		}
		if len(taken) == maxCalls {
			q.calls = q.calls[i+1:]
			if q.trips < maxTrips {
				q.trips++
				go q.run(q.take())
			}
			return taken
		}
	}
	q.calls = q.calls[:0]
	if taken == nil {
		q.trips--
	}
	return taken
}

// run makes the round trip of calls, and then those of what came meanwhile.
func (q *queue) run(calls []*call) {
	for calls != nil {
		calls = q.trip(calls)
	}
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
