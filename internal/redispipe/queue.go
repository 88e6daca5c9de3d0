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

	// While a round trip is in flight, calls are better off in the next one, as a command of
	// many keys costs Redis and this process a fraction of many commands. Another trip begins
	// beside it if there is enough for one, so that Redis and this process work at the same
	// time, if trips take so long that the wait would cost more than it saves, or if the
	// newest has not come back for a while.
	enough   = 32
	longTrip = 500 * time.Microsecond
	lateTrip = time.Millisecond

	// A yield wakes another processor, which costs a lone call a tenth of its time. After so
	// many first calls that no other has joined, only one of as many yields.
	maxAlone = 8
)

// queue is where the calls on one node meet. It has no bound: a call stays in it until its
// deadline at most.
type queue struct {
	pipe   *Pipe
	of     *redis.Client // whose node it is
	client *redis.Client // of, or what has its pool, with deadlines that are those of contexts

	mu    sync.Mutex
	calls []*call
	trips int           // in flight, or about to be
	began time.Time     // when the newest of them did
	rtt   time.Duration // how long the shortest of the last trips took
	alone int           // calls that were first since one was joined by another
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
	if !q.mayBegin() {
		return nil // the next trip takes them along
	}
	q.trips++
	q.began = time.Now()
	if q.trips == 1 {
		q.collect(len(calls))
	}
	return q.take()
}

// mayBegin reports whether a round trip begins now. The caller holds q.mu.
func (q *queue) mayBegin() bool {
	switch q.trips {
	case 0:
		return true
	case maxTrips:
		return false
	}
	return weight(q.calls) >= enough || q.rtt > longTrip || time.Since(q.began) > lateTrip
}

// weight returns what calls cost Redis, of which a call of a Batch is one.
func weight(calls []*call) (w int) {
	for _, c := range calls {
		if w++; c.Batch == nil {
			w++
		}
	}
	return w
}

// collect yields the processor while calls come, of which there are n. The caller holds q.mu,
// which is released meanwhile.
func (q *queue) collect(n int) {
	q.alone++
	if q.alone > maxAlone && q.alone%maxAlone != 0 {
		return
	}
	q.mu.Unlock()
	yield.WhileGrowing(q.len)
	q.mu.Lock()
	if len(q.calls) != n {
		q.alone = 0
	}
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

// next returns the calls of the trip that takes the place of one which took so long. Callers who
// have just got their replies often call again, so it yields to them if nothing else is in flight.
func (q *queue) next(took time.Duration) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rtt += q.rtt / 64; took < q.rtt || q.rtt == 0 {
		q.rtt = took
	}
	if q.trips == 1 && len(q.calls) > 0 {
		q.mu.Unlock()
		yield.WhileGrowing(q.len)
		q.mu.Lock()
	}
	q.began = time.Now()
	return q.take()
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
