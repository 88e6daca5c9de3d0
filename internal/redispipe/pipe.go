package redispipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/lazy"
)

// ErrTimeout says that Redis did not answer within Options.Timeout. The scripts
// may have run.
var ErrTimeout = errors.New("redis: no answer in time")

// Options configure a [Pipe]. The zero value is usable.
type Options struct {
	// Timeout bounds a round trip, a connection's dialling included. Default: 250 ms.
	Timeout time.Duration
	// InFlight is how many round trips may be under way at once; what is called
	// meanwhile shares the next one. Default: 3.
	InFlight int
	// Batch is the largest number of calls in a round trip. Default: 128.
	Batch int
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 250 * time.Millisecond
	}
	if o.InFlight == 0 {
		o.InFlight = 3
	}
	if o.Batch == 0 {
		o.Batch = 128
	}
	return o
}

func (o Options) check() error {
	for _, f := range []struct {
		name  string
		value int64
	}{{"Timeout", int64(o.Timeout)}, {"InFlight", int64(o.InFlight)}, {"Batch", int64(o.Batch)}} {
		if f.value < 0 {
			return fmt.Errorf("redispipe: Options.%s is negative", f.name)
		}
	}
	return nil
}

// Pipe sends scripts to one Redis. All methods may be called concurrently. It owns
// neither the client nor any goroutine that outlives its calls by more than a
// client's timeout.
type Pipe struct {
	client redis.UniversalClient
	o      Options
	gather *lazy.Gather[*call] // what one request, or one moment, asks for together

	// apart says that calls are joined only within a slot: the client is, or turned
	// out to be, a Cluster's.
	apart atomic.Bool

	mu     sync.Mutex
	queue  []*call
	flying int // round trips under way, those that were given up not counted
}

// New returns a pipe over client, which stays the caller's to close.
func New(client redis.UniversalClient, o Options) (*Pipe, error) {
	if client == nil {
		return nil, errors.New("redispipe: no client")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c, single := client.(*redis.Client)
	if single {
		// The same pool, but reads and writes that end with the round trip. A Cluster
		// client has no such copy; there a round trip is given up at its deadline.
		client = c.WithTimeout(o.Timeout)
	}
	p := &Pipe{client: client, o: o}
	p.apart.Store(!single)
	p.gather = lazy.NewGather(p.send)
	return p, nil
}

// Run runs a call and returns its reply. When ctx ends first, Run returns its cause: a
// call that still waited for its turn is then not sent, one that was sent may have
// run. An error reply is a redis.Error.
func (p *Pipe) Run(ctx context.Context, what Call) (Reply, error) {
	c := &call{Call: what, ctx: ctx}
	if err := p.gather.Do(ctx, c); err != nil {
		return Reply{}, err
	}
	return c.reply, c.err
}

// send queues calls and returns when all of them are answered. If a round trip may
// begin, it is made here.
func (p *Pipe) send(_ context.Context, calls []*call) error {
	group := &group{left: len(calls), done: make(chan struct{})}
	for _, c := range calls {
		c.group = group
	}
	p.mu.Lock()
	p.queue = append(p.queue, calls...)
	t := p.takeOff()
	p.mu.Unlock()
	if t != nil {
		t.fly()
	}
	<-group.done
	return nil
}

// takeOff returns a round trip with what is queued, to be flown by the caller, or
// nil if none may begin. The caller holds p.mu.
func (p *Pipe) takeOff() *trip {
	if p.flying >= p.o.InFlight {
		return nil
	}
	calls := p.wanted()
	if len(calls) == 0 {
		return nil
	}
	p.flying++
	return newTrip(p, calls)
}

// land ends a round trip and begins the next.
func (p *Pipe) land() {
	p.mu.Lock()
	p.flying--
	next := p.takeOff()
	p.mu.Unlock()
	if next != nil {
		go next.fly()
	}
}

// wanted takes a batch of those calls from the queue whose callers are still
// there. The caller holds p.mu.
func (p *Pipe) wanted() []*call {
	calls := make([]*call, 0, min(len(p.queue), p.o.Batch))
	rest := len(p.queue)
	for i, c := range p.queue {
		if len(calls) == p.o.Batch {
			rest = i
			break
		}
		if c.ctx.Err() == nil {
			calls = append(calls, c)
		} else {
			c.group.answered(1)
		}
	}
	p.queue = slices.Delete(p.queue, 0, rest)
	return calls
}
